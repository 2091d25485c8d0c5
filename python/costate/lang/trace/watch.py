"""What a trace has read of objects of Python: at the next launch they may have other members."""

from __future__ import annotations

import operator
import weakref
from collections import deque
from types import MethodType, ModuleType
from typing import Any

import numpy as np

from costate.lang.base import dtypes
from costate.lang.trace.named import MOST_ENTRIES, is_ours, members
from costate.lang.values.matrix import Matrix

_PRIMITIVE = (int, float, str, bytes, bool, type(None), np.generic)
_FACTS = {"shape", "ndim", "size", "dtype", "itemsize", "nbytes"}
MOST_BYTES = 1 << 15   # of an array that is watched as a whole


class Watch:
    """Collects what is read; `sealed()` can tell whether all of it is still there."""

    def __init__(self) -> None:
        self._members: dict[Any, Any] = {}   # id of an object -> (it, {name: value})
        self._called: dict[Any, Any] = {}    # ids of functions and arguments -> (function, arguments)
        self._parts: dict[Any, Any] = {}     # (id of a container, what of it) -> (it, a function that reads, what that gave)

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name` was read."""
        if name not in _FACTS:
            self.used(owner)
        if isinstance(owner, (ModuleType, Matrix, *_PRIMITIVE)) or is_ours(owner):
            return
        if _is_stable(owner, name, value):
            self._members.setdefault(id(owner), (owner, {}))[1][name] = value
        elif isinstance(getattr(type(owner), name, None), property):
            self.call(MethodType(getattr(type(owner), name).fget, owner))
        self.contents(value)

    def presence(self, owner: Any, name: str) -> None:
        """Whether there is an `owner.name` was asked."""
        if not isinstance(owner, (ModuleType, *_PRIMITIVE)) and not is_ours(owner):
            self._parts[id(owner), f"has {name}"] = owner, lambda one: (hasattr(one, name),), (hasattr(owner, name),)

    def call(self, function: Any, args: Any = ()) -> None:
        """A function of Python was called."""
        key = tuple(id(one) for one in (getattr(function, "__func__", function), getattr(function, "__self__", None), *args)
                    if not isinstance(one, _PRIMITIVE))
        if key in self._called:
            return
        self._called[key] = function, args
        for owner, name, value in members(function, args):
            if owner is None:
                self.used(value)
                self.contents(value)
            elif not isinstance(value, MethodType):
                self.attribute(owner, name, value)

    def item(self, owner: Any, index: Any, value: Any) -> None:
        """`owner[index]` was read."""
        if isinstance(owner, (list, dict, deque)) or isinstance(owner, np.ndarray) and isinstance(value, np.generic):
            self._parts[id(owner), str(index)] = owner, lambda one: (one[index],), (value,)
            self.contents(value)
        elif dtypes.is_tensor(owner):
            self.used(owner)
        elif not isinstance(owner, (np.ndarray, *_PRIMITIVE)) and not is_ours(owner) and hasattr(type(owner), "__getitem__"):
            self.call(MethodType(type(owner).__getitem__, owner))

    def contents(self, value: Any) -> None:
        """Anything may be done with a list, dictionary or vector while the kernel is compiled."""
        read: Any = (_entries if isinstance(value, Matrix) else _of_dict if isinstance(value, dict) else
                _itself if isinstance(value, list) else list if isinstance(value, (set, deque)) else None)
        if read is not None and len(value) > MOST_ENTRIES:
            read = _length
        if read is not None:
            self._parts[id(value), "all"] = value, read, list(read(value))
        if isinstance(value, (list, tuple)) and len(value) <= MOST_ENTRIES:
            for one in value:
                self.contents(one)

    def used(self, value: Any) -> None:
        """More was asked of an array, or of a long list, than its shape or one element."""
        read: Any = (_bytes if isinstance(value, np.ndarray) and value.nbytes <= MOST_BYTES and not value.dtype.hasobject else
                _hash if isinstance(value, list) and MOST_ENTRIES < len(value) <= MOST_BYTES and _are_numbers(value) else
                _version if dtypes.is_tensor(value) else None)
        if read is not None:
            self._parts[id(value), "used"] = value, read, list(read(value))

    def sealed(self) -> Seen:
        members = [(owner, _getter(names), list(names.values())) for owner, names in self._members.values()]
        return Seen([*members, *self._parts.values()])


class Seen:
    """What was read, kept alive only where it is numbers, lists and dictionaries."""

    def __init__(self, places: list[Any]) -> None:
        self.gone: list[Any] = []
        self.places = [(_reference(owner), read, [id(v) for v in values], [self._kept(v) for v in values])
                       for owner, read, values in places]

    def _kept(self, value: Any) -> Any:
        if isinstance(value, _PRIMITIVE):
            return value
        try:
            return weakref.ref(value, self.gone.append)
        except TypeError:
            return value

    def objects(self) -> set[Any]:
        """The identities of the objects that were read."""
        return {place for _, _, ids, kept in self.places for place, one in zip(ids, kept) if isinstance(one, weakref.ref)}

    def holds(self) -> bool:
        """Whether all is as it was."""
        if self.gone or not self.places:
            return not self.gone
        try:
            for owner, read, ids, kept in self.places:
                values = read(owner())
                if [*map(id, values)] != ids and not _alike(values, ids, kept):
                    return False
        except Exception:    # an owner is gone, or has no such member
            return False
        return True


def _alike(values: tuple[Any, ...], ids: list[int], kept: list[Any]) -> bool:
    """The same objects, or equal numbers."""
    return len(values) == len(ids) and all(
        id(v) == place or type(v) is type(k) and isinstance(v, _PRIMITIVE) and (v == k or v != v and k != k)
        for v, place, k in zip(values, ids, kept))


def _entries(vector: Matrix) -> Any:
    return vector.entries


def _of_dict(one: dict[Any, Any]) -> Any:
    return [*one, *one.values()]


def _itself(one: list[Any]) -> Any:
    return one


def _bytes(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return array.tobytes(),


def _hash(numbers: list[Any]) -> tuple[int, ...]:
    return hash(tuple(numbers)),


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(one, (int, float)) for one in values)


def _version(tensor: Any) -> tuple[int, ...]:
    return tensor._version, tensor.data_ptr()


def _length(one: list[Any]) -> tuple[int, ...]:
    return len(one),


def _getter(names: dict[Any, Any]) -> Any:
    get = operator.attrgetter(*names)
    return get if len(names) > 1 else lambda owner: (get(owner),)


def _is_stable(owner: Any, name: str, value: Any) -> bool:
    """Whether a member is there, and not made anew whenever it is asked for, as methods are."""
    try:
        again = getattr(owner, name)
    except Exception:
        return False
    return again is value or isinstance(value, _PRIMITIVE) and type(again) is type(value)


def _reference(value: Any) -> Any:
    """What gives the value when it is called, and does not keep it alive if that is possible and it is not made for each
    use."""
    if isinstance(value, np.ndarray) and value.base is not None:
        return lambda: value
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
