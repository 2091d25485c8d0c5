"""Arrays in kernels, and their elements."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import KnownIndexError, MissingGradient, QuadrantsIndexError, QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.base import dtypes, runtime
from costate.lang.base.dtypes import i64
from costate.lang.base.hooks import Hook
from costate.lang.trace.message import Text
from costate.lang.trace.passed import Item, Met
from costate.lang.trace.places import Group, Place, check_fits, scalar_for, warn_of_loss
from costate.lang.values import arith, linalg
from costate.lang.values.builder import require
from costate.lang.values.describe import describe
from costate.lang.values.expr import (Expr, condition_handle, handle_of, index_handle, index_value, is_number,
                                      is_scalar, known_index)
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.values.builder import Builder

Op = _core.Op

#: `activate(element)` of a sparse field that a kernel writes.
activate: Hook[..., Any] = Hook("activate")
#: `locate(element, written)`: where an element of a field lies in its blocks. What is written becomes active.
locate: Hook[..., list[Any]] = Hook("locate")
#: `list_at(node, handles)`: a list of a `dynamic` node.
list_at: Hook[..., Any] = Hook("list_at")


def _written(element: Element, b: Builder) -> list[_core.Value]:
    """A kernel is about to change an element: where it lies in memory."""
    if not b.dry:
        b.written.add(element.array.argument)
    if b.check:
        b.check.written(element)
    if element.array.blocks is None and getattr(element.array.host, "_sparse_node", None) is not None:
        activate(element)
    return element.located(is_written=True)


class Element(Place):
    """A number in an array."""

    is_element = True

    def __init__(self, array: TracedArray, handles: list[Any], is_placed: bool = False) -> None:
        self.array, self.handles = array, handles
        self.is_placed = is_placed   # the handles say where it lies in memory
        self.dtype = array.dtype

    def located(self, is_written: bool = False) -> list[_core.Value]:
        """Where it lies in memory."""
        return self.handles if self.is_placed or self.array.blocks is None else locate(self, is_written)

    def get(self) -> Expr:
        b = require("an element")
        if self.dtype.is_float and not b.dry:
            b.read[self.array.argument] = None
        if b.check:
            b.check.read(self)
        place = self.located()
        handle = b.trace.load(self.array.handle, self.dtype.core, place, b.loc)
        if self.array.is_companion and self.array.blocks is not None:
            handle = _if_in_row(b, place[0], handle, self.dtype)
        if b.stopped and self.dtype.is_float and any(self.array is one for one in b.stopped):
            handle = b.pure(Op.stop_gradient, self.dtype, handle)
        return Expr(handle, self.dtype)

    def set(self, value: Any) -> None:
        b = require("an element")
        place = _written(self, b)
        b.trace.store(self.array.handle, self.dtype.core, place,
                      scalar_for(value, self.dtype, "an element", self.first), b.loc)

    @staticmethod
    def check_operand(value: Any) -> None:
        if not is_scalar(value):
            raise QuadrantsTypeError(f"{describe(value)} cannot be added to a number")

    def value_for_update(self, value: int) -> _core.Value:
        self.check_operand(value)
        check_fits(value, self.dtype, "an element")
        warn_of_loss("Atomic update", self.dtype, value)
        return handle_of(value, self.dtype)

    def update(self, op: str, value: Any) -> None:
        b = require("an element")
        place = _written(self, b)
        operation, operand = self._operation(op, value)
        b.trace.update(operation, self.array.handle, self.dtype.core, place, operand, b.loc)

    def exchange(self, value: int) -> Expr:
        b = require("an element")
        place = _written(self, b)
        old = b.trace.exchange(self.array.handle, self.dtype.core, place,
                               self.value_for_update(value), b.loc)
        return Expr(old, self.dtype)

    def compare_exchange(self, expected: int, desired: int) -> Expr:
        b = require("an element")
        if self.dtype.is_float:
            raise QuadrantsTypeError(f"`atomic_cas` is of integers, not of {self.dtype}; use `atomic_add`, `atomic_min`, "
                                     "`atomic_max` or `atomic_exchange`, or keep the bits in a field of integers")
        place = _written(self, b)
        old = b.trace.compare_exchange(self.array.handle, self.dtype.core, place,
                                       self.value_for_update(expected),
                                       self.value_for_update(desired), b.loc)
        return Expr(old, self.dtype)

    def fetch(self, op: str, value: Any) -> Expr:
        b = require("an element")
        place = _written(self, b)
        operation, operand = self._operation(op, value)
        old = b.trace.fetch(operation, self.array.handle, self.dtype.core, place, operand, b.loc)
        return Expr(old, self.dtype)

    def _operation(self, op: str, value: Any) -> tuple[_core.Op, _core.Value]:
        """The atomic operation of the library that `op` is, and its right side as an element."""
        dtype = self.dtype
        self.check_operand(value)
        if op in ("and", "or", "xor") and dtype.is_float:
            raise QuadrantsTypeError(f"an element of type {dtype} has no bits for `{op}`; use a field of integers, or `bit_cast`")
        if dtype.is_bool and op in ("add", "sub", "min", "max"):
            raise QuadrantsTypeError(f"an element of type {dtype} has no atomic `{op}`; use `&=`, `|=` and `^=`, or "
                                     "another type")
        if op in ("min", "max"):
            if not is_number(value):
                warn_of_loss("Atomic update", dtype, value, self.first)
            return getattr(Op, op), handle_of(arith.limited(op, value, dtype), dtype)
        check_fits(value, dtype, "an element")
        kept = arith.whole(value, dtype) if op in ("add", "sub") else value
        if not (is_number(value) and kept == value):
            warn_of_loss("Atomic update", dtype, value, self.first)
        handle = handle_of(kept, dtype)
        if op == "sub":  # of a `dtype`: the negative of an unsigned number depends on its width
            return Op.add, require("-=").pure(Op.neg, dtype, handle)
        return getattr(Op, op + "_" if op in ("and", "or") else op), handle


def _if_in_row(b: Builder, row: _core.Value, handle: _core.Value, dtype: DataType) -> _core.Value:
    """A gradient or tangent of what has no row is 0, whatever has been added to row 0."""
    return b.pure(Op.select, dtype, b.pure(Op.gt, dtypes.u1, row, b.constant(i64, 0)), handle, b.constant(dtype, 0))


class ElementGroup(Group):
    """A vector or matrix in an array."""

    def __init__(self, array: TracedArray, handles: list[Any], is_placed: bool = False) -> None:
        self.array, self.handles, self.is_placed = array, handles, is_placed
        self.shape = array.element_shape
        self._places: Any = None

    @property
    def places(self) -> Any:  # type: ignore[override]
        if self._places is not None:
            return self._places
        b = require("an element")
        numbers = [b.constant(i64, k) for k in range(max(self.shape))]
        made = [Element(self.array, self.handles + [numbers[k] for k in index], self.is_placed)
                for index in _all_indices(self.shape)]
        if not b.dry:   # the numbers of a dry run are none
            self._places = made
        return made

    dtype = property(lambda self: self.array.dtype)
    is_local, is_element = False, True

    def _placed(self, is_written: bool) -> ElementGroup | None:
        """The same at its place in memory, which is looked for once and not for each number; None: that is known."""
        if self.is_placed or self.array.blocks is None:
            return None
        return ElementGroup(self.array, locate(self, is_written), is_placed=True)

    def get(self) -> Matrix:
        placed = self._placed(False)
        return super().get() if placed is None else placed.get()

    def set(self, value: Any) -> None:
        placed = self._placed(True)
        if placed is not None:
            placed.set(value)
            return
        with self._activated():
            super().set(value)

    def update(self, op: str, value: Any) -> Matrix:
        placed = self._placed(True)
        if placed is not None:
            return placed.update(op, value)
        with self._activated():
            return super().update(op, value)

    def _activated(self) -> Any:
        """The element becomes active once, and not with each of its numbers."""
        b = require("an element")
        if not self.is_placed and getattr(self.array.host, "_sparse_node", None) is not None:
            activate(self)
        return b.unmarking()

    def part(self, index: Any) -> Any:
        if isinstance(index, Matrix):
            index = tuple(index.entries)
        pattern = Matrix.of(range(len(list(_all_indices(self.shape)))), self.shape)
        if pattern.is_part(index):
            return super().part(index)
        pattern.offset(index)  # checks numbers
        if self.array.clamps:
            return Element(self.array, self.handles + self._clamped(index), self.is_placed)
        index = linalg.known(index if isinstance(index, tuple) else (index,), self.shape)
        return Element(self.array, self.handles + [index_handle(k) for k in index], self.is_placed)

    def _clamped(self, index: Any) -> list[_core.Value]:
        """The indices of the component nearest in memory."""
        b = require("an element")
        number: Any = 0
        for k, extent in zip(index if isinstance(index, tuple) else (index,), self.shape):
            number = arith.add(arith.mul(number, extent), k)
        last = b.constant(i64, math.prod(self.shape) - 1)
        number = Expr(b.pure(Op.clamp, i64, index_handle(number), b.constant(i64, 0), last), i64)
        if len(self.shape) == 1:
            return [number.handle]
        return [index_handle(arith.floordiv(number, self.shape[1])), index_handle(arith.mod(number, self.shape[1]))]

    def fetch(self, op: str, value: Matrix) -> Matrix:
        placed = self._placed(True)
        if placed is not None:
            return placed.fetch(op, value)
        old = [p.fetch(op, e) for p, e in zip(self.places, self.entries_of(value), strict=True)]
        return Matrix.of(old, self.shape)


def _all_indices(shape: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, shape))


class TracedArray:
    """An array argument of the kernel that is traced."""

    def __init__(self, dtype: DataType, ndim: int, element_shape: tuple[Any, ...] = (),
                 extents: tuple[Any, ...] | None = None, host: Any = None, is_gradient: bool = False) -> None:
        b = require("an array")
        self.dtype, self.ndim, self.element_shape = dtype, ndim, tuple(element_shape)
        self.rank = ndim + len(self.element_shape)
        self.blocks = host._blocks() if host is not None else None
        self.is_companion = hasattr(host, "which")
        rank = self.rank if self.blocks is None else 2 + len(self.element_shape)   # in memory
        if rank > 8:
            raise QuadrantsTypeError(f"an array has at most 8 dimensions with its components, this "
                                     f"one {rank}")
        # What the kernel itself calls a gradient is none of its constants.
        form = "gradient" if is_gradient else "directory" if getattr(host, "is_directory", False) else None
        self.extents = extents   # those of fields are known
        self.handle = b.trace.array(dtype.core, rank, _core.ElementForm(form, 0) if form else None,
                                    self._known_in_memory(rank))
        self.argument = len(b.arguments)
        self.host = host
        self.companions: dict[Any, Any] = {}
        self.make_companion: Any = None   # of arguments, see launch/arguments.py
        self.clamps = False      # indices outside are those of the border

    def _known_in_memory(self, rank: int) -> list[int]:
        """Extents that addresses are computed with; -1 where fields of any size share their code."""
        known = [-1] * (rank - len(self.element_shape)) + list(self.element_shape)
        if self.extents is not None and self.blocks is None:
            known[1:self.ndim] = self.extents[1:]
        return known if any(extent >= 0 for extent in known[1:]) else []

    n = property(lambda self: self.element_shape[0] if self.element_shape else 1)
    m = property(lambda self: self.element_shape[1] if len(self.element_shape) == 2 else 1)

    @property
    def offset(self) -> Any:
        """The indices of the first element, if they are not 0."""
        return getattr(self.host, "offset", None)

    def extent(self, dim: int) -> Any:
        if self.extents is not None:
            return self.extents[dim]
        b = require("an extent")
        return index_value(b.trace.extent(self.handle, self.rank, dim, b.loc))

    def extent_handle(self, dim: Any) -> Any:
        b = require("an extent")
        return b.trace.extent(self.handle, self.rank, dim, b.loc)

    @property
    def shape(self) -> tuple[Any, ...]:
        if self.extents is not None:
            return tuple(self.extents)
        return tuple(self.extent(dim) for dim in range(self.ndim))

    def at(self, index: Any) -> Any:
        """The element at a tuple of indices."""
        index = flat_indices(index)
        dimensions = self._dimensions(len(index))
        handles = [self._handle(k, d, *dimensions[d]) for d, k in enumerate(index[:len(dimensions)])]
        if len(index) == self.ndim:
            return self.from_start(handles)
        if len(index) == self.rank and self.element_shape:
            return Element(self, handles)
        if len(index) == self.ndim - 1 and getattr(getattr(self.host, "_node", None), "kind", "") == "dynamic":
            return list_at(self.host._node, handles)
        raise QuadrantsIndexError(f"{self._name()} with {self.ndim} dimensions is accessed with {len(index)} indices")

    def _dimensions(self, count: int) -> list[Any]:
        """(first index, extent if it is known) of what so many indices are of."""
        result = list(zip(self.offset or (0,) * self.ndim, self.extents or (None,) * self.ndim))
        node = getattr(self.host, "_node", None)
        if count == self.ndim - 1 and node is not None and node.own_axis is not None:
            del result[sorted(node.extents).index(node.own_axis)]
        return result + [(0, extent) for extent in self.element_shape]

    def _handle(self, k: Any, d: int, low: int, extent: int | None) -> Any:
        """The handle of an index of dimension d, from 0; numbers below 0 count from the end."""
        b, number = require("an index"), k.number if isinstance(k, Expr) else k
        if self.clamps and d < self.ndim:
            last = b.pure(Op.sub, i64, self.extent_handle(d), b.constant(i64, 1))
            return b.pure(Op.clamp, i64, index_handle(k), b.constant(i64, 0), last)
        if extent is None:
            below = is_number(number) and number < 0
            return b.pure(Op.add, i64, self.extent_handle(d), index_handle(k)) if below else index_handle(k)
        if self.offset and d < self.ndim:
            if isinstance(k, Expr) and (known := b.from_start.get((id(k.wide), low))):
                return known
            if is_number(number) and not low <= number < low + extent:
                raise KnownIndexError(f"index {number} is out of range of {self._text()}, whose indices begin at "
                                          f"{self.offset}")
            return index_handle(arith.sub(k, low) if low else k)
        return index_handle(known_index(k, extent, self._text))

    def _name(self) -> str:
        b = require("an array")
        named = b.labels.get(self.argument) or getattr(b.arguments[self.argument] if self.argument < len(b.arguments) else None, "name", None)
        return f"the array `{named}`" if named else self.host.describe() if self.host else "an array"

    def _text(self) -> str:
        shape = (*(self.extents or ("?",) * self.ndim), *self.element_shape)
        return f"{self.host.describe() if self.host else self._name()} of shape {shape}"

    def traced_view(self, offset: Any, size: Any) -> TracedView:
        """A `BufferView` of this array."""
        return TracedView(self, 0, self.extent(0)).subview(offset, size)

    def from_start(self, handles: list[_core.Value]) -> Place:
        """The element at handles that count from 0, whatever the offset is."""
        return ElementGroup(self, handles) if self.element_shape else Element(self, handles)


class TracedView(TracedArray):
    """A view in a kernel."""

    def __init__(self, array: TracedArray, offset: Any, size: Any) -> None:
        self.array, self.start, self.size = array, offset, size
        self.dtype, self.ndim, self.element_shape, self.rank = array.dtype, 1, array.element_shape, array.rank
        self.handle, self.extents, self.host, self.blocks, self.is_companion = array.handle, None, None, None, False
        self.companions: dict[Any, Any] = {}

    def extent(self, dim: int) -> Any:
        return self.size

    def extent_handle(self, dim: Any) -> Any:
        return index_handle(self.size)

    shape = property(lambda self: (self.size,))

    def at(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        index = flat_indices(index)
        if len(index) != 1:
            raise QuadrantsIndexError(f"a view has one index, not {len(index)}")
        self._assert(index[0], 1, "BufferView Out Of Range: index=")
        return self.array.at([arith.add(self.start, index[0])])

    def _part(self, key: slice) -> TracedView:
        if key.step not in (None, 1):
            raise QuadrantsSyntaxError("a part of a view is a slice with step=1")
        start = 0 if key.start is None else key.start
        stop = self.size if key.stop is None else key.stop
        return self.subview(start, arith.sub(stop, start))

    def subview(self, offset: Any, size: Any) -> TracedView:
        """A part of this part."""
        self._assert(offset, size, "BufferView subview Out Of Range: first=")
        return TracedView(self.array, arith.add(self.start, offset), size)

    def _assert(self, offset: Any, size: Any, what: str) -> None:
        """In debug mode: `size` elements from `offset` on lie inside."""
        b = require("a view")
        if not b.debug:
            return
        text = Text()
        for part in (what, offset, ", of a view with offset=", self.start, ", size=", self.size):
            text.add(part)
        pattern, values = next(text.patterns(3))
        end = arith.add(offset, size)
        for inside in (arith.ge(offset, 0), arith.ge(size, 0), arith.le(end, self.size)):
            b.trace.check(condition_handle(inside), pattern, values, b.loc)


def flat_indices(index: Any) -> Any:
    if index is None:
        return []
    if isinstance(index, Matrix):
        return index.entries
    if isinstance(index, (tuple, list)):
        return [k for one in index for k in flat_indices(one)]
    if isinstance(index, slice):
        raise QuadrantsIndexError("slices are those of vectors and matrices; loop over the elements "
                                  "of an array")
    return [index]


def has_traced(x: Any) -> bool:
    """Whether x holds values that exist only when the kernel runs."""
    if isinstance(x, (Expr, TracedArray)):
        return True
    if isinstance(x, Matrix):
        return any(isinstance(e, Expr) for e in x.entries)
    if isinstance(x, (list, tuple)):
        return any(has_traced(e) for e in x)
    return False


class Hidden:
    """An argument that belongs to one kernel; each thread that launches it has an array of its own."""

    def __init__(self, builder: Builder, dtype: DataType, shape: tuple[Any, ...]) -> None:
        self.dtype, self.shape = dtype, tuple(shape)
        builder.arguments.append(self)

    def make(self) -> _core.Array:
        return _core.Array(runtime.device(), self.dtype.core, list(self.shape), grad=self.dtype.is_float,
                           dual=self.dtype.is_float, scratch=True)


# -- arguments of the kernel ------------------------------------------------------


def lifted(builder: Builder, owner: Any, name: str) -> Any:
    """The argument of the kernel for a number that an object holds, or None."""
    found = builder.lifted.find(owner, name)
    if found is None:
        return None
    position, dtype, item = found
    if not isinstance(item, _core.Array):    # a value of the block where it is used
        builder.arguments.append(Item(position, name))
        return Expr(builder.trace.scalar(dtype.core), dtype)
    key = ("lifted", position)
    if key not in builder.arrays:
        builder.arrays[key] = TracedArray(dtype, 0)
        builder.arguments.append(Item(position, name))
    return Element(builder.arrays[key], []).get()


def traced(builder: Builder, storage: Any, label: str | None = None) -> TracedArray:
    """The argument of the kernel for a host array."""
    found = builder.arrays.get(id(storage))
    if found is None:
        if hasattr(storage, "which") and not storage.placed:
            what = "Gradient" if storage.which == "grad" else "Tangent"
            raise MissingGradient(f"{what} {label or storage.describe()} has not been placed, check whether `needs_{storage.which}=True` "
                                  "is given where its array is made")
        dtype = storage.dtype
        if hasattr(storage, "which"):
            dtype = dtypes.of_core(storage.core().dtype) if not builder.dry else dtype
        found = TracedArray(dtype, len(storage.shape), storage.element_shape,
                            storage.shape, storage, getattr(storage, "which", "") == "grad")
        builder.arrays[id(storage)] = found
        builder.labels[len(builder.arguments)] = storage.name or label
        builder.arguments.append(Met(storage))
    return found


def companion(builder: Builder, array: TracedArray, which: str) -> Any:
    """The gradient or tangent of an argument."""
    if array.host is not None:
        return array.host.companion(which)
    if which not in array.companions:
        made = array.make_companion(which)
        array.companions[which] = made
    return array.companions[which]
