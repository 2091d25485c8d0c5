"""What loops run over, other than arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from costate.errors import QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.base.callers import in_their_words
from costate.lang.data.storage import Storage
from costate.lang.values.expr import Expr, is_scalar
from costate.lang.values.matrix import Matrix


class Static:
    """The value of `ti.static(...)` where a loop runs over it."""

    def __init__(self, value: Any) -> None:
        self.value = value


def static(x: Any, *more: Any) -> Any:
    """x, known while the kernel is compiled: `if ti.static(flag)`, `for i in ti.static(range(3))`."""
    if isinstance(x, Expr):
        raise QuadrantsTypeError("`ti.static` of a value that exists only when the kernel runs: its arguments must be compile-time constants")
    return (x, *more) if more else x


class RangeOf:
    """`range` with bounds that are values of the kernel."""

    def __init__(self, lo: Any, hi: Any, step: Any) -> None:
        self.lo, self.hi, self.step = lo, hi, step


class Grouped:
    """`ti.grouped(x)`: the indices of a loop as a vector."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __iter__(self) -> Iterator[Any]:
        box = self.value
        if isinstance(box, Storage):
            lows = box.offset or (0,) * len(box.shape)
            box = NDRange(*((lo, lo + n) for lo, n in zip(lows, box.shape)))
        return (Matrix(list(i)) for i in box.python())


def _order(axes: Any, count: int) -> tuple[int, ...]:
    """The axes of the loops from the outermost one on."""
    if axes is None:
        return tuple(range(count))
    if not isinstance(axes, (tuple, list)) or not all(type(a) is int for a in axes):
        raise QuadrantsTypeError(in_their_words(f"`axes` of `ti.ndrange` is a tuple of integers, not {axes!r}"))
    if sorted(axes) != list(range(count)):
        raise QuadrantsSyntaxError(in_their_words(f"`axes` of `ti.ndrange` has each of the numbers below {count} once, not {tuple(axes)}"))
    return tuple(axes)


class NDRange:
    """`ti.ndrange(n, (lo, hi), ...)`: all tuples of indices. `axes` are those of its loops, from the outermost one on."""

    def __init__(self, *args: Any, axes: Any = None) -> None:
        self.bounds: list[Any] = []
        for a in args:
            if isinstance(a, Matrix):
                a = tuple(a.entries)
            if isinstance(a, range) and a.step == 1:
                a = (a.start, a.stop)
            if isinstance(a, (tuple, list)):
                if len(a) != 2:
                    raise QuadrantsSyntaxError(in_their_words("each dimension of `ti.ndrange` is a number or a "
                                                              f"pair (lo, hi), not {a!r}"))
                lo, hi = a
            else:
                lo, hi = 0, a
            for x in (lo, hi):
                if isinstance(x, Expr) and not x.dtype.is_int or isinstance(x, (float, np.floating)):
                    raise QuadrantsTypeError("Every argument of ndrange should be an integer scalar "
                                             "or a tuple/list of (int, int)")
                if not is_scalar(x):
                    raise QuadrantsTypeError("Every argument of ndrange should be an integer scalar "
                                             "or a tuple/list of (int, int)")
            self.bounds.append((lo, hi))
        self.axes = _order(axes, len(self.bounds))
        self.bounds = [self.bounds[a] for a in self.axes]

    def dimensions(self, values: Any) -> list[Any]:
        """Indices in the order of the arguments, of those in the order of the loops."""
        return [values[self.axes.index(k)] for k in range(len(self.axes))]

    def python(self) -> Any:
        return (tuple(self.dimensions(one)) for one in itertools.product(*(range(lo, hi) for lo, hi in self.bounds)))

    def __iter__(self) -> Any:
        return self.python()

    def grouped(self) -> Any:
        return Grouped(self)


def ndrange(*args: Any, axes: Any = None) -> NDRange:
    """All tuples of indices below the extents: `for i, j in ti.ndrange(n, (1, m))`.

    `axes=(1, 0)` runs through them with the first dimension innermost.
    """
    return NDRange(*args, axes=axes)


def grouped(x: Any) -> Grouped:
    """Loops with a vector of indices: `for I in ti.grouped(x)`."""
    return Grouped(x)
