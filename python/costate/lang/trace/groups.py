"""What the work items of a block do together, and the arrays that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import QuadrantsIndexError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.dtypes import i32, i64, u1, u32
from costate.lang.data.annotations import CompoundType
from costate.lang.trace.arrays import Element
from costate.lang.trace.places import Group, scalar_for
from costate.lang.values.builder import require
from costate.lang.values.describe import describe
from costate.lang.values.expr import Expr, condition_handle, dtype_of, handle_of, index_handle, is_number, is_scalar
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

Op, GroupOp = _core.Op, _core.GroupOp

#: The mask of all lanes of a warp, and how many these are.
ALL_LANES, WARP = 0xFFFFFFFF, 32


class SharedElement(Element):
    """A number in an array that the work items of a block share."""

    def __init__(self, array: SharedArray, position: _core.Value) -> None:
        self.shared, self.position = array, position
        self.dtype = array.dtype

    def get(self) -> Expr:
        b = require("an element")
        return Expr(b.trace.load_local(self.dtype.core, self.shared.handle, self.position, b.loc), self.dtype)

    def set(self, value: Any) -> None:
        b = require("an element")
        b.trace.store_local(self.shared.handle, self.position, scalar_for(value, self.dtype, "an element"), b.loc)

    def fetch(self, op: str, value: Any) -> Expr:
        b = require("an element")
        operation, operand = self._operation(op, value)
        return Expr(b.trace.update_shared(operation, self.shared.handle, self.position, operand, b.loc), self.dtype)

    def update(self, op: str, value: Any) -> None:
        self.fetch(op, value)

    def exchange(self, value: Any) -> Any:
        raise QuadrantsTypeError("a shared array has no `atomic_exchange`; use `atomic_add`, `atomic_min`, `atomic_max`, "
                                 "`atomic_and`, `atomic_or` or `atomic_xor`")

    def compare_exchange(self, expected: Any, desired: Any) -> Any:
        raise QuadrantsTypeError("a shared array has no `atomic_cas`; use `atomic_add`, `atomic_min`, `atomic_max`, "
                                 "`atomic_and`, `atomic_or` or `atomic_xor`")


class SharedArray:
    """An array that the work items of a block share, in a parallel loop; what its elements are at first is left open."""

    def __init__(self, shape: Any, dtype: Any) -> None:
        extents = (shape,) if is_number(shape) else shape
        if not isinstance(extents, (tuple, list)) or not all(isinstance(n, int) and n > 0 for n in extents):
            raise ValueError("the shape of a `SharedArray` is a whole number or a tuple of them, above 0, that are known "
                             f"while the kernel is compiled; this is {describe(shape)}")
        self.shape = tuple(int(n) for n in extents)
        compound = isinstance(dtype, CompoundType)
        self.element_shape = dtype.shape if compound else ()
        self.dtype: DataType = dtypes.cook(dtype.dtype if compound else dtype) or dtypes.defaults.fp
        self.count = dtype.count if compound else 1
        total = self.count
        for extent in self.shape:
            total *= extent
        b = require("SharedArray")
        self.handle = b.trace.declare_shared(self.dtype.core, total, b.loc)

    def at(self, index: Any) -> Any:
        indices = index.entries if isinstance(index, Matrix) else index if isinstance(index, tuple) else (index,)
        if len(indices) != len(self.shape):
            raise QuadrantsIndexError(f"{len(indices)} indices for a `SharedArray` of {len(self.shape)} dimensions")
        b = require("an element")
        place = index_handle(indices[0])
        for k, extent in zip(indices[1:], self.shape[1:]):
            place = b.pure(Op.add, i64, b.pure(Op.mul, i64, place, b.constant(i64, extent)), index_handle(k))
        if not self.element_shape:
            return SharedElement(self, place)
        first = b.pure(Op.mul, i64, place, b.constant(i64, self.count))
        return Group([SharedElement(self, b.pure(Op.add, i64, first, b.constant(i64, k))) for k in range(self.count)],
                     self.element_shape)


# -- operations ------------------------------------------------------------------------


def _together(op: _core.GroupOp, dtype: DataType, *operands: _core.Value) -> Expr:
    b = require(str(op.name))
    return Expr(b.trace.group(op, dtype.core, list(operands), b.loc), dtype)


def _alone(name: str, op: _core.GroupOp, text: str) -> Callable[[], None]:
    def function() -> None:
        b = require(name)
        b.trace.group(op, i32.core, [], b.loc)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


block_sync = _alone("block_sync", GroupOp.block_sync, "Waits until all work items of the block have come here.")
block_fence = _alone("block_fence", GroupOp.block_fence, "Orders what this work item writes, for others of its block.")
grid_fence = _alone("grid_fence", GroupOp.grid_fence, "Orders what this work item writes, for all others.")


def thread_index() -> Expr:
    """The number of this work item in its block."""
    return _together(GroupOp.block_thread_index, i32)


def global_thread_index() -> Expr:
    """The number of the thread that runs this work item, among all."""
    return _together(GroupOp.block_global_thread_index, i32)


def _mask(mask: Any) -> _core.Value:
    return handle_of(mask & ALL_LANES if is_number(mask) else mask, u32)


def warp_sync(mask: Any = ALL_LANES) -> None:
    """Waits until the lanes of `mask` have come here."""
    b = require("warp.sync")
    b.trace.group(GroupOp.warp_sync, i32.core, [_mask(mask)], b.loc)


def active_mask() -> Expr:
    """The lanes that run together here."""
    return _together(GroupOp.warp_active_mask, u32)


def _number(value: Any, what: str) -> Expr:
    """A number as it is exchanged: of 32 or 64 bits."""
    if not is_scalar(value):
        raise QuadrantsTypeError(f"`{what}` is of numbers, not of {describe(value)}")
    dtype = dtype_of(value)
    if dtype.bits < 32:
        dtype = dtypes.f32 if dtype.is_float else u32 if dtype.core.is_unsigned else i32
    return Expr(handle_of(value, dtype), dtype)


def _shuffle(name: str, op: _core.GroupOp, text: str) -> Callable[..., Any]:
    def function(mask: Any, value: Any, lanes: Any) -> Any:
        if isinstance(value, Matrix):
            return Matrix.of([function(mask, e, lanes) for e in value.entries], value.shape)
        number = _number(value, name)
        return _together(op, number.dtype, _mask(mask), number.handle, handle_of(lanes, i32))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


shuffle = _shuffle("shuffle", GroupOp.warp_shuffle, "`value` of the lane `lanes`.")
shuffle_up = _shuffle("shuffle_up", GroupOp.warp_shuffle_up, "`value` of the lane so many before; the own one if there is none.")
shuffle_down = _shuffle("shuffle_down", GroupOp.warp_shuffle_down, "`value` of the lane so many after; the own one if there is none.")
shuffle_xor = _shuffle("shuffle_xor", GroupOp.warp_shuffle_xor, "`value` of the lane whose number is the own one ^ `lanes`.")


def _vote(name: str, op: _core.GroupOp, text: str) -> Callable[..., Expr]:
    is_mask = name == "ballot"

    def function(mask: Any, predicate: Any) -> Expr:
        answer = _together(op, u32 if is_mask else u1, _mask(mask), condition_handle(predicate))
        return answer if is_mask else Expr(answer.as_type(i32), i32)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


vote_all = _vote("all_nonzero", GroupOp.warp_all, "1 if `predicate` is not 0 in any lane of `mask`; else 0.")
vote_any = _vote("any_nonzero", GroupOp.warp_any, "1 if `predicate` is not 0 in some lane of `mask`; else 0.")
vote_unique = _vote("unique", GroupOp.warp_unique, "1 if all lanes of `mask` say the same; else 0.")
ballot = _vote("ballot", GroupOp.warp_ballot, "The lanes of `mask` where `predicate` is not 0, a bit for each.")


def _match(name: str, op: _core.GroupOp, text: str) -> Callable[..., Expr]:
    def function(mask: Any, value: Any) -> Expr:
        number = _number(value, name)
        if number.dtype.bits != 32:
            raise QuadrantsTypeError(f"`{name}` compares numbers of 32 bits, not of type {number.dtype}")
        return _together(op, u32, _mask(mask), number.handle)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


match_any = _match("match_any", GroupOp.warp_match_any, "The lanes of `mask` that have the same value.")
match_all = _match("match_all", GroupOp.warp_match_all, "`mask` if all of its lanes have the same value; else 0.")
