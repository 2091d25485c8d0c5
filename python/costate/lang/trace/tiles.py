"""Square matrices of which each lane of a warp holds a row: `qd.simt.Tile16x16` and `qd.simt.Tile32x32`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsIndexError, QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.dtypes import i32
from costate.lang.data.struct import Struct
from costate.lang.trace import groups
from costate.lang.trace.places import Group, Place
from costate.lang.trace.variables import variable_for
from costate.lang.values import arith
from costate.lang.values.builder import require
from costate.lang.values.describe import describe
from costate.lang.values.expr import condition_handle, dtype_of, is_number, is_scalar
from costate.lang.values.matrix import Matrix
from costate.lang.values.ops import sqrt

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


def _lane() -> Any:
    return arith.bit_and(groups.thread_index(), groups.WARP - 1)


def _of_lane(value: Any, lane: Any) -> Any:
    return groups.shuffle(groups.ALL_LANES, value, lane)


def _less(a: Any, b: Any) -> Any:
    return a < b if is_number(a) and is_number(b) else arith.lt(a, b)


def _sum(a: Any, b: Any) -> Any:
    return a + b if is_number(a) and is_number(b) else arith.add(a, b)


@contextmanager
def _if(condition: Any) -> Iterator[None]:
    b = require("a tile")
    b.trace.begin_if(condition_handle(condition), b.loc)
    with b.nested():
        yield
    b.trace.end()


def _refuse(self: Any, *_: Any) -> Any:
    raise QuadrantsTypeError(f"{describe(self)} is no number; {self.use}")


class _NoNumber:
    use: str


for _name in "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul":
    setattr(_NoNumber, f"__{_name}__", _refuse)
    setattr(_NoNumber, f"__r{_name}__", _refuse)


class Part(_NoNumber, Place):
    """Rows and columns of an array, or rows of a column, whose bounds may be values of the kernel: what a tile is loaded
    from, stored to, or reduced by."""

    is_element = True
    description = "a part of an array"
    use = "it is assigned to a tile, `tile[:] = x[a:b, c:d]`, or passed to `qd.outer`"

    def __init__(self, array: Any, index: tuple[Any, ...]) -> None:
        *self.batch, self.rows, self.columns = index
        self.array, self.dtype = array, array.dtype
        for bounds in self.rows, self.columns:
            if isinstance(bounds, slice):
                _check_bounds(bounds)

    @property
    def is_column(self) -> bool:
        return not isinstance(self.columns, slice)

    def get(self) -> Part:
        return self

    def set(self, value: Any) -> None:
        if self.is_column or not is_tile(value):
            raise QuadrantsTypeError(f"{describe(value)} cannot be assigned to a part of an array; a tile can, to rows and columns: "
                                     "`x[a:b, c:d] = tile`")
        for place, entry in self.each(value):
            place.set(entry.get() if isinstance(entry, Place) else entry)

    def each(self, tile: Struct) -> Iterator[Any]:
        """The elements of the row of this lane that are there, each where it is one of the array, and what the tile holds for it."""
        with self._row() as row:
            last = self._end(-1, self.columns.stop)
            for j, one in enumerate(_numbers(tile)):
                column = _sum(self.columns.start, j)
                inside = _less(column, last)
                if inside is False:
                    break
                with _if(inside):
                    yield self.array.at((*self.batch, row, column)), one

    def column(self) -> Any:
        """That of a lane in rows of one column; 0 in those without one."""
        found = variable_for(arith.cast(0, self.dtype))
        with self._row() as row:
            found.set(self.array.at((*self.batch, row, self.columns)).get())
        return found.get()

    @contextmanager
    def _row(self) -> Iterator[Any]:
        row = arith.add(self.rows.start, _lane())
        with _if(arith.lt(row, self._end(-2, self.rows.stop))):
            yield row

    def _end(self, dimension: int, stop: Any) -> Any:
        extent = self.array.shape[dimension]
        if is_number(extent) and is_number(stop):
            return min(stop, extent)
        return arith.least(stop, arith.cast(extent, i32))


def _check_bounds(bounds: slice) -> None:
    if bounds.start is None or bounds.stop is None or bounds.step is not None:
        raise QuadrantsSyntaxError("a part of an array that is a tile has both bounds, and no step: `x[a:b, c:d]`")
    for one in bounds.start, bounds.stop:
        if not is_scalar(one) or not dtype_of(one).is_int:
            raise QuadrantsTypeError(f"a bound of a part of an array is {describe(one)}; bounds are integers")


class _Whole(Place):
    """`tile[:]`."""

    def __init__(self, tile: Struct) -> None:
        self.tile = tile

    def get(self) -> Struct:
        return self.tile.get()

    def set(self, value: Any) -> None:
        if not isinstance(value, Part) or value.is_column:
            raise QuadrantsTypeError(f"a tile is loaded from rows and columns of an array, `tile[:] = x[a:b, c:d]`, not from "
                                     f"{describe(value)}")
        for place, one in value.each(self.tile):
            one.set(place.get())


class Outer(_NoNumber):
    """`a * b^T` of what lanes have in `a` and in `b`, to subtract from a tile."""

    description = "what `qd.outer` gives"
    use = "it is subtracted from a tile: `tile -= qd.outer(a, b)`"

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def operands(self) -> tuple[Any, Any]:
        a = _of_lanes(self.a)
        return a, a if self.b is self.a else _of_lanes(self.b)


def outer(a: Any, b: Any) -> Outer:
    """To subtract from a tile: `tile -= qd.outer(a, b)`, of numbers of lanes or of columns of arrays."""
    return Outer(a, b)


def _of_lanes(x: Any) -> Any:
    if isinstance(x, Part) and x.is_column:
        return x.column()
    if not is_scalar(x):
        raise QuadrantsTypeError(f"{describe(x)} in `qd.outer(a, b)`; `a` and `b` are numbers of lanes, or columns of arrays, `x[a:b, c]`")
    return x


def is_tile(x: Any) -> bool:
    return isinstance(x, Struct) and x._methods is _METHODS


def whole(tile: Struct, index: Any) -> Place:
    if not isinstance(index, slice) or index != slice(None):
        raise QuadrantsSyntaxError("of a tile, `tile[:]` is assigned; the number of a row that a lane holds is `tile.r[j]`")
    return _Whole(tile)


def part_of(array: Any, index: Any) -> Part | None:
    """What `array[index]` is where the kernel has tiles and the index has slices."""
    index = index if isinstance(index, tuple) else (index,)
    if not require("an element").has_tiles or not any(isinstance(i, slice) for i in index):
        return None
    count = len(array.shape)
    if len(index) != count or count not in (2, 3) or [isinstance(i, slice) for i in index[:-1]] != [False, True][3 - count:]:
        raise QuadrantsIndexError(f"{len(index)} indices of an array of {count} dimensions; a tile is `x[a:b, c:d]` of an array of 2, "
                                  "`x[k, a:b, c:d]` of one of 3; a column, `x[a:b, c]` or `x[k, a:b, c]`")
    if array.element_shape:
        raise QuadrantsTypeError("a part of an array whose elements are vectors or matrices; tiles have numbers")
    return Part(array, index)


def subtract(tile: Any, op: ast.operator, value: Any) -> None:
    if not isinstance(op, ast.Sub) or not isinstance(value, Outer):
        raise QuadrantsTypeError("a tile is changed by `tile -= qd.outer(a, b)`")
    a, b = value.operands()
    for j, one in enumerate(_numbers(tile)):
        one.set(arith.sub(one.get(), arith.mul(a, _of_lane(b, j))))


def _numbers(tile: Struct) -> list[Any]:
    """Those of the row of this lane: places, of a tile in a variable."""
    row = tile.member("r")
    return list(row.places if isinstance(row, Group) else row.entries)


def _zero(one: Any) -> Any:
    return arith.cast(0, one.dtype)


# -- methods, in which L and all others are rows, one to a lane ------------------------------------


def _set_to_identity(tile: Struct) -> None:
    """Makes it the identity."""
    lane = _lane()
    for j, one in enumerate(_numbers(tile)):
        one.set(arith.cast(arith.eq(lane, j), one.dtype))


def _factor(tile: Struct, eps: Any) -> None:
    """Cholesky: L with A = L L^T in the lower triangle. Pivots are at least sqrt(`eps`), which each lane may have of its own."""
    numbers, lane = _numbers(tile), _lane()
    squares = _zero(numbers[0])
    for k, one in enumerate(numbers):
        pivot = sqrt(arith.greatest(arith.sub(one.get(), squares), arith.cast(eps, one.dtype)))
        of_row = _of_lane(pivot, k)
        below = arith.truediv(arith.sub(one.get(), _products(numbers, numbers, k)), of_row)
        below = arith.select(arith.gt(lane, k), below, one.get())
        one.set(arith.select(arith.eq(lane, k), pivot, below))
        squares = arith.add(squares, arith.select(arith.gt(lane, k), arith.mul(below, below), _zero(one)))


def _solve(tile: Struct, other: Struct, lower: bool = True) -> None:
    """Replaces `other`, B, by X with X L^T = B; L is this one, a lower triangle."""
    if not lower:
        raise QuadrantsTypeError("`solve_triangular_` takes a lower triangle: `lower=True`")
    size = len(_numbers(tile))
    if not is_tile(other) or len(_numbers(other)) != size:
        raise QuadrantsTypeError(f"`solve_triangular_` of a tile of {size} rows takes a tile of {size} rows, not "
                                 + (f"one of {len(_numbers(other))}" if is_tile(other) else describe(other)))
    of_l, numbers = _numbers(tile), _numbers(other)
    for c, one in enumerate(numbers):
        one.set(arith.truediv(arith.sub(one.get(), _products(of_l, numbers, c)), _of_lane(of_l[c].get(), c)))


def _products(of_l: list[Any], numbers: list[Any], k: int) -> Any:
    """The sum over j < k of L[k, j] and the own number j, even and odd j apart: each waits for half as many."""
    sums = [_zero(numbers[0]), _zero(numbers[0])]
    for j in range(k):
        sums[j % 2] = arith.add(sums[j % 2], arith.mul(_of_lane(of_l[j].get(), k), numbers[j].get()))
    return arith.add(*sums)


_METHODS = {"eye_": _set_to_identity, "cholesky_": _factor, "solve_triangular_": _solve}


class TileType:
    """What makes tiles of `size` rows in a kernel."""

    def __init__(self, size: int) -> None:
        self.SIZE = size

    def __repr__(self) -> str:
        return f"qd.simt.Tile{self.SIZE}x{self.SIZE}"

    def zeros(self, *, dtype: DataType | None = None) -> Struct:
        """All numbers are 0; of `default_fp` if there is no `dtype`."""
        b = require(repr(self))
        b.has_tiles = True
        cooked = dtypes.defaults.fp if dtype is None else dtypes.cook(dtype) if dtypes.is_dtype(dtype) else None
        if cooked not in (dtypes.f32, dtypes.f64):
            raise QuadrantsTypeError(f"{self!r} of {describe(dtype)}; tiles are of f32 or f64")
        row = variable_for(Matrix.of([arith.cast(0, cooked)] * self.SIZE, (self.SIZE,)))
        return Struct({"r": row}, _METHODS)

    def eye(self, *, dtype: DataType | None = None) -> Struct:
        """The identity."""
        tile = self.zeros(dtype=dtype)
        _set_to_identity(tile)
        return tile


Tile16x16, Tile32x32 = TileType(16), TileType(32)
