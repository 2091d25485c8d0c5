"""`data_oriented(template_primitives=False)`: numbers that objects hold are arguments of each launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from costate.lang.base import dtypes
from costate.lang.base.number import Number

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


def lifts(value: Any) -> bool:
    """Whether the numbers of an object are read at each launch."""
    return getattr(type(value), "_template_primitives", True) is False


def numbers(value: Any, seen: set[Any] | None = None) -> Iterator[Any]:
    """(object, name, number) of all numbers that an object holds, and the objects below it."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    for name, member in list(vars(value).items()):
        if type(member) in (bool, int, float, Number):
            yield value, name, member
        elif dataclasses.is_dataclass(member) or getattr(member, "_data_oriented", False):
            yield from numbers(member, seen)


def type_of(number: float) -> DataType:
    """The type of a number as an argument."""
    return dtypes.defaults.fp if isinstance(number, float) else dtypes.defaults.ip


class Lifted:
    """Numbers of the objects that a kernel is traced with: each becomes an argument where it is first used."""

    def __init__(self) -> None:
        self.positions: dict[Any, Any] = {}   # (id of an object, name) -> (position among the items, type, item)

    def add(self, value: Any, path: Any) -> None:
        for owner, name, number in numbers(value):
            position = path.next()
            self.positions[id(owner), name] = position, type_of(number), path.items[position]

    def find(self, owner: Any, name: str) -> Any:
        return self.positions.get((id(owner), name))
