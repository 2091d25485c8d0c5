"""`qd.simt.block`: what the work items of a block share, and do together."""

from __future__ import annotations

from costate.lang.base.dtypes import i32
from costate.lang.data.annotations import template
from costate.lang.data.ranges import static
from costate.lang.trace.atomics import atomic_add
from costate.lang.trace.func import func
from costate.lang.trace.groups import (SharedArray, block_fence as mem_fence, block_sync as sync,
                                       global_thread_index as global_thread_idx, thread_index as thread_idx)
from costate.lang.values.ops import cast, max as maximum, min as minimum, select

mem_sync = mem_fence


@func
def sync_count_nonzero(predicate):
    """In how many work items of the block `predicate` is not 0; waits for all of them."""
    counter = SharedArray((1,), i32)
    if thread_idx() == 0:
        counter[0] = 0
    sync()
    atomic_add(counter[0], select(predicate != 0, 1, 0))
    sync()
    count = counter[0]
    sync()
    return count


@func
def sync_any_nonzero(predicate):
    """1 if it is not 0 in some work item; else 0."""
    return minimum(sync_count_nonzero(predicate), 1)


@func
def sync_all_nonzero(predicate):
    """1 if it is 0 in no work item; else 0."""
    return 1 - minimum(sync_count_nonzero(select(predicate == 0, 1, 0)), 1)


@func
def add_of(a, b):
    return a + b


@func
def min_of(a, b):
    return minimum(a, b)


@func
def max_of(a, b):
    return maximum(a, b)


@func
def inclusive_scan(value, block_dim: template(), op: template(), dtype: template()):
    """`op` of the values of all work items of the block up to this one."""
    kept = SharedArray((block_dim,), dtype)
    own = thread_idx()
    result = cast(value, dtype)
    for k in static(range((block_dim - 1).bit_length())):
        kept[own] = result
        sync()
        if own >= (1 << k):
            result = op(kept[own - (1 << k)], result)
        sync()
    return result


@func
def exclusive_scan(value, block_dim: template(), op: template(), identity, dtype: template()):
    """The same without the own one; `identity` in the first work item."""
    kept = SharedArray((block_dim,), dtype)
    own = thread_idx()
    kept[own] = inclusive_scan(value, block_dim, op, dtype)
    sync()
    result = cast(identity, dtype)
    if own > 0:
        result = kept[own - 1]
    sync()
    return result


@func
def reduce_all(value, block_dim: template(), op: template(), dtype: template()):
    """`op` of the values of all work items of the block, in the order of a tree."""
    kept = SharedArray((block_dim,), dtype)
    own = thread_idx()
    kept[own] = cast(value, dtype)
    sync()
    for k in static(range((block_dim - 1).bit_length())[::-1]):
        if own < (1 << k) and own + (1 << k) < block_dim:
            kept[own] = op(kept[own], kept[own + (1 << k)])
        sync()
    result = kept[0]
    sync()
    return result


reduce = reduce_all


@func
def reduce_all_add(value, block_dim: template(), dtype: template()):
    return reduce_all(value, block_dim, add_of, dtype)


@func
def reduce_all_min(value, block_dim: template(), dtype: template()):
    return reduce_all(value, block_dim, min_of, dtype)


@func
def reduce_all_max(value, block_dim: template(), dtype: template()):
    return reduce_all(value, block_dim, max_of, dtype)


@func
def inclusive_add(value, block_dim: template(), dtype: template()):
    return inclusive_scan(value, block_dim, add_of, dtype)


@func
def inclusive_min(value, block_dim: template(), dtype: template()):
    return inclusive_scan(value, block_dim, min_of, dtype)


@func
def inclusive_max(value, block_dim: template(), dtype: template()):
    return inclusive_scan(value, block_dim, max_of, dtype)


@func
def exclusive_add(value, block_dim: template(), dtype: template()):
    return exclusive_scan(value, block_dim, add_of, 0, dtype)


reduce_add, reduce_min, reduce_max = reduce_all_add, reduce_all_min, reduce_all_max
