"""What the arguments of a compiled kernel are, beside hidden arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, repr=False)
class Item:
    """What a parameter is given, by its position among the items of a launch; `name` is for messages."""

    position: int
    name: str | None = None


@dataclass(eq=False, repr=False)
class Companion:
    """The gradient or tangent of an array that a parameter is given."""

    of: Item
    which: str


@dataclass(eq=False, repr=False)
class Met:
    """An array of a field that the kernel has met by its name."""

    storage: Any


@dataclass(eq=False, repr=False)
class Fixed:
    """An array that is the same in all launches."""

    array: Any


@dataclass(eq=False, repr=False)
class RandomKey:
    """The key of the random numbers of a launch."""
