"""`qd.simt.subgroup`: what all lanes of a warp do together; `_tiled`, neighbours of which there are 2 ** `log2_size`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costate.errors import QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.dtypes import i32, u32, u64
from costate.lang.trace import groups
from costate.lang.trace.groups import ALL_LANES, WARP
from costate.lang.values import arith
from costate.lang.values.describe import describe
from costate.lang.values.ops import cast, select

_LOG2 = WARP.bit_length() - 1


def subgroup_sync() -> None:
    """Waits until all lanes have come here."""
    groups.warp_sync()


sync = barrier = subgroup_sync
mem_fence = memory_barrier = groups.block_fence


def group_size() -> int:
    """How many lanes there are."""
    return WARP


def log2_group_size() -> int:
    return _LOG2


def invocation_id() -> Any:
    """The number of this lane."""
    return arith.bit_and(groups.thread_index(), WARP - 1)


def elect() -> Any:
    """1 in the first lane; else 0."""
    return cast(invocation_id() == 0, i32)


def shuffle(value: Any, index: Any) -> Any:
    return groups.shuffle(ALL_LANES, value, index)


def shuffle_up(value: Any, offset: Any) -> Any:
    return groups.shuffle_up(ALL_LANES, value, offset)


def shuffle_down(value: Any, offset: Any) -> Any:
    return groups.shuffle_down(ALL_LANES, value, offset)


def shuffle_xor(value: Any, mask: Any) -> Any:
    return groups.shuffle_xor(ALL_LANES, value, mask)


broadcast = shuffle


def broadcast_first(value: Any) -> Any:
    return shuffle(value, 0)


def ballot(predicate: Any) -> Any:
    """The lanes where `predicate` is not 0, as u64."""
    return cast(groups.ballot(ALL_LANES, predicate), u64)


ballot_full_subgroup = ballot


def ballot_first_n(predicate: Any, n: int) -> Any:
    """The same of the first n lanes, as u32."""
    return arith.bit_and(groups.ballot(ALL_LANES, predicate), (1 << n) - 1)


def lanemask_eq(lane: Any) -> Any:
    return arith.shl(cast(1, u32), cast(lane, u32))


def lanemask_lt(lane: Any) -> Any:
    return lanemask_eq(lane) - cast(1, u32)


def lanemask_le(lane: Any) -> Any:
    return lanemask_eq(lane) | lanemask_lt(lane)


def lanemask_gt(lane: Any) -> Any:
    return lanemask_le(lane) ^ cast(ALL_LANES, u32)


def lanemask_ge(lane: Any) -> Any:
    return lanemask_lt(lane) ^ cast(ALL_LANES, u32)


# -- reductions and scans ------------------------------------------------------------------

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": arith.add, "mul": arith.mul, "min": arith.least, "max": arith.greatest, "and": arith.bit_and,
    "or": arith.bit_or, "xor": arith.bit_xor}


def _bits(log2_size: Any) -> int:
    """Checked."""
    if isinstance(log2_size, bool) or not isinstance(log2_size, int) or not 0 <= log2_size <= _LOG2:
        raise QuadrantsTypeError(f"`log2_size` is {log2_size if isinstance(log2_size, int) else describe(log2_size)}; it is a number from 0 to {_LOG2} that is known while the kernel is compiled")
    return log2_size


def _reduced(op: Callable[[Any, Any], Any], value: Any, log2_size: int) -> Any:
    """In all lanes, the same bits: each pair of lanes gives its operands in one order."""
    lane = invocation_id()
    for k in range(_bits(log2_size))[::-1]:
        other = shuffle_xor(value, 1 << k)
        is_upper = arith.bit_and(lane, 1 << k) != 0
        value = op(select(is_upper, other, value), select(is_upper, value, other))
    return value


def _scanned(op: Callable[[Any, Any], Any], value: Any, log2_size: int) -> Any:
    place = arith.bit_and(invocation_id(), (1 << _bits(log2_size)) - 1)
    for k in range(log2_size):
        value = select(place >= (1 << k), op(shuffle_up(value, 1 << k), value), value)
    return value


def _identity(name: str, value: Any) -> Any:
    dtype = getattr(value, "dtype", None) or dtypes.of_number(value)
    if name in ("add", "or", "xor", "mul"):
        return int(name == "mul")
    if name == "and":
        return cast(cast(-1, dtypes.i64), dtype)
    if dtype.is_float:
        return float("inf") if name == "min" else -float("inf")
    low, high = (0, 2**dtype.bits - 1) if dtype.core.is_unsigned else (-2**(dtype.bits - 1), 2**(dtype.bits - 1) - 1)
    return high if name == "min" else low


def _family(name: str) -> dict[str, Callable[..., Any]]:
    op = _OPERATIONS[name]

    def reduce_tiled(value: Any, log2_size: int) -> Any:
        return _reduced(op, value, log2_size)

    def inclusive_tiled(value: Any, log2_size: int) -> Any:
        return _scanned(op, value, log2_size)

    def exclusive_tiled(value: Any, log2_size: int) -> Any:
        place = arith.bit_and(invocation_id(), (1 << log2_size) - 1)
        before = shuffle_up(_scanned(op, value, log2_size), 1)
        return select(place == 0, cast(_identity(name, value), before.dtype), before)

    def segmented_tiled(value: Any, head_flag: Any, log2_size: int) -> Any:
        """The inclusive scan of each segment; one begins where `head_flag` is not 0, and with the first lane."""
        lane = invocation_id()
        first = arith.bit_and(lane, WARP - (1 << _bits(log2_size)))
        head = _scanned(arith.greatest, select(head_flag != 0, lane, first), log2_size)
        for k in range(log2_size):
            value = select(lane - head >= (1 << k), op(shuffle_up(value, 1 << k), value), value)
        return value

    def segmented(value: Any, head_flag: Any) -> Any:
        return segmented_tiled(value, head_flag, _LOG2)

    made = {f"reduce_{name}": reduce_tiled, f"reduce_all_{name}": reduce_tiled, f"inclusive_{name}": inclusive_tiled,
            f"exclusive_{name}": exclusive_tiled}
    tiled = {f"{key}_tiled": function for key, function in made.items()}
    whole = {key: (lambda value, function=function: function(value, _LOG2)) for key, function in made.items()}
    return {**tiled, **whole, f"segmented_reduce_{name}_tiled": segmented_tiled, f"segmented_reduce_{name}": segmented}


for _name in _OPERATIONS:
    globals().update(_family(_name))


def all_true_tiled(predicate: Any, log2_size: int) -> Any:
    return _reduced(arith.bit_and, cast(predicate != 0, i32), log2_size)


def any_true_tiled(predicate: Any, log2_size: int) -> Any:
    return _reduced(arith.bit_or, cast(predicate != 0, i32), log2_size)


def all_equal_tiled(value: Any, log2_size: int) -> Any:
    first = arith.bit_and(invocation_id(), WARP - (1 << log2_size))
    return all_true_tiled(cast(shuffle(value, first) == value, i32), log2_size)


def all_true(predicate: Any) -> Any:
    return all_true_tiled(predicate, _LOG2)


def any_true(predicate: Any) -> Any:
    return any_true_tiled(predicate, _LOG2)


def all_equal(value: Any) -> Any:
    return all_equal_tiled(value, _LOG2)
