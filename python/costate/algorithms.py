"""`ti.algorithms`: sums, scans, selection and sorting.

`parallel_sort` and `PrefixSumExecutor` work on the host. The others are funcs for the top level of a kernel, with the
arguments that they have in Quadrants: blocks of 256 elements are independent work items, and `scratch` holds a number
for each, in u32, or u64 for types of 8 bytes.
"""

import numpy as np

from costate.lang.base.callers import in_their_words
from costate.lang.base.dtypes import f32, f64, i32, i64, u32, u64
from costate.lang.data.annotations import template
from costate.lang.data.ranges import static
from costate.lang.trace.atomics import atomic_add
from costate.lang.trace.func import func
from costate.lang.values.ops import bit_cast, cast
from costate.lang.values.ops import max as maximum
from costate.lang.values.ops import min as minimum

__all__ = ["PrefixSumExecutor", "exclusive_scan_add", "exclusive_scan_max", "exclusive_scan_min",
           "exclusive_scan_scratch_slots", "parallel_sort", "reduce_add", "reduce_by_key_add",
           "reduce_by_key_scratch_slots", "reduce_max", "reduce_min", "reduce_scratch_slots", "select",
           "select_scratch_slots", "sort", "sort_scratch_slots"]

BLOCK = 256
MOST_LEVELS = 4
ADD, MIN, MAX = range(3)


def parallel_sort(keys, values=None):
    """Sorts the field `keys`, and `values` with it; equal keys keep their order."""
    found = keys.to_numpy()
    order = np.argsort(found, kind="stable")
    keys.from_numpy(found[order])
    if values is not None:
        values.from_numpy(values.to_numpy()[order])


class PrefixSumExecutor:
    """`PrefixSumExecutor(n).run(x)` replaces x[i] by x[0] + ... + x[i], for i < n."""

    def __init__(self, length):
        self.length = length

    def run(self, input_arr):
        x = input_arr.to_numpy()
        x[:self.length] = np.cumsum(x[:self.length], dtype=x.dtype)
        input_arr.from_numpy(x)


def _blocks(n):
    return (n + BLOCK - 1) // BLOCK


def _levels(n):
    levels = 1
    while BLOCK ** levels < n:
        levels += 1
    return levels


def _check_levels(levels):
    if not 1 <= levels <= MOST_LEVELS:
        raise ValueError(f"log256_max_n={levels} is not in 1 ... {MOST_LEVELS}: arrays have at most 256 ** {MOST_LEVELS} "
                         "elements")


def _stacked(n, levels):
    """The blocks of n elements, of those blocks, and so on."""
    total = 0
    for _ in range(levels):
        n = _blocks(n)
        total = total + n
    return total


def _at_least_one(slots):
    return slots + (slots < 1)


def reduce_scratch_slots(n, log256_max_n=None):
    """The numbers in `scratch` that `reduce_add` and the like need for n elements."""
    levels = _levels(n) if log256_max_n is None else log256_max_n
    _check_levels(levels)
    return _at_least_one(_stacked(n, levels - 1))


def exclusive_scan_scratch_slots(n, log256_max_n=None):
    """The numbers in `scratch` that `exclusive_scan_add` and the like need for n elements."""
    return reduce_scratch_slots(n, log256_max_n)


def select_scratch_slots(n):
    """The numbers in `scratch`, of type u32, that `select` needs for n elements."""
    return _at_least_one(n + _stacked(n, MOST_LEVELS))


def reduce_by_key_scratch_slots(n):
    """The numbers in `scratch`, of type u32, that `reduce_by_key_add` needs for n elements."""
    return select_scratch_slots(n)


def sort_scratch_slots(n, log256_max_n=None):
    """The numbers in `scratch`, of type u32, that `sort` needs for n elements."""
    levels = _levels(n) if log256_max_n is None else log256_max_n
    _check_levels(levels)
    return _at_least_one(BLOCK * _blocks(n) + _stacked(BLOCK * _blocks(n), levels - 1))


def _word(dtype):
    """The unsigned type of `scratch` for numbers of a type."""
    if dtype.bits not in (32, 64):
        raise TypeError(in_their_words(f"`ti.algorithms` takes numbers of 4 or 8 bytes, not {dtype}"))
    return u64 if dtype.bits == 64 else u32


def _identity(dtype, op):
    """What changes nothing under `op`."""
    if op == ADD:
        return 0
    if dtype.is_float:
        return np.inf if op == MIN else -np.inf
    info = np.iinfo(dtype.np)
    return int(info.max if op == MIN else info.min)


@func
def _joined(a, b, op: template()):
    result = a
    if static(op == ADD):
        result = a + b
    if static(op == MIN):
        result = minimum(a, b)
    if static(op == MAX):
        result = maximum(a, b)
    return result


@func
def _reduce(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(), op: template()):
    for block in range(_blocks(n)):
        total = cast(static(_identity(dtype, op)), dtype)
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            total = _joined(total, arr[i], op)
        scratch[block] = bit_cast(total, static(_word(dtype)))
    for _ in range(1):
        total = cast(static(_identity(dtype, op)), dtype)
        for block in range(_blocks(n)):
            total = _joined(total, bit_cast(scratch[block], dtype), op)
        out[0] = total


@func
def _scan_of_blocks(scratch: template(), n: i32, dtype: template(), op: template()):
    """Replaces the totals of the blocks by those of all blocks before."""
    for _ in range(1):
        total = cast(static(_identity(dtype, op)), dtype)
        for block in range(_blocks(n)):
            own = bit_cast(scratch[block], dtype)
            scratch[block] = bit_cast(total, static(_word(dtype)))
            total = _joined(total, own, op)


@func
def _scan(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(), op: template()):
    for block in range(_blocks(n)):
        total = cast(static(_identity(dtype, op)), dtype)
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            own = arr[i]
            out[i] = total
            total = _joined(total, own, op)
        scratch[block] = bit_cast(total, static(_word(dtype)))
    _scan_of_blocks(scratch, n, dtype, op)
    for i in range(n):
        out[i] = _joined(bit_cast(scratch[i // BLOCK], dtype), out[i], op)


@func
def reduce_add(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(), log256_max_n: template()):
    """out[0] = arr[0] + ... + arr[n - 1]."""
    _check_levels(log256_max_n)
    _reduce(arr, out, scratch, n, dtype, ADD)


@func
def reduce_min(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(), log256_max_n: template()):
    """out[0] is the least of arr[0], ..., arr[n - 1]."""
    _check_levels(log256_max_n)
    _reduce(arr, out, scratch, n, dtype, MIN)


@func
def reduce_max(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(), log256_max_n: template()):
    """out[0] is the greatest of arr[0], ..., arr[n - 1]."""
    _check_levels(log256_max_n)
    _reduce(arr, out, scratch, n, dtype, MAX)


@func
def exclusive_scan_add(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(),
                       log256_max_n: template()):
    """out[i] = arr[0] + ... + arr[i - 1], for i < n."""
    _check_levels(log256_max_n)
    _scan(arr, out, scratch, n, dtype, ADD)


@func
def exclusive_scan_min(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(),
                       log256_max_n: template()):
    """out[i] is the least of arr[0], ..., arr[i - 1], for i < n."""
    _check_levels(log256_max_n)
    _scan(arr, out, scratch, n, dtype, MIN)


@func
def exclusive_scan_max(arr: template(), out: template(), scratch: template(), n: i32, dtype: template(),
                       log256_max_n: template()):
    """out[i] is the greatest of arr[0], ..., arr[i - 1], for i < n."""
    _check_levels(log256_max_n)
    _scan(arr, out, scratch, n, dtype, MAX)


@func
def select(arr: template(), flags: template(), out: template(), num_out: template(), scratch: template(), n: i32,
           log256_max_n: template()):
    """Copies the arr[i] with flags[i] != 0 to out[0], out[1], ..., in their order, and their number to num_out[0]."""
    _check_levels(log256_max_n)
    for block in range(_blocks(n)):
        count = u32(0)
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            if flags[i] != 0:
                count += u32(1)
        scratch[block] = count
    for _ in range(1):
        total = u32(0)
        for block in range(_blocks(n)):
            count = scratch[block]
            scratch[block] = total
            total += count
        num_out[0] = cast(total, i32)
    for block in range(_blocks(n)):
        position = cast(scratch[block], i32)
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            if flags[i] != 0:
                out[position] = arr[i]
                position += 1


@func
def _starts(keys: template(), i):
    """Whether a run of equal keys starts at i."""
    found = i == 0
    if i > 0:
        found = keys[i] != keys[i - 1]
    return found


@func
def reduce_by_key_add(keys_in: template(), values_in: template(), keys_out: template(), values_out: template(),
                      num_runs: template(), scratch: template(), n: i32, value_dtype: template(), log256_max_n: template()):
    """For each run of equal keys one key and the sum of its values; num_runs[0] is the number of runs."""
    _check_levels(log256_max_n)
    for block in range(_blocks(n)):
        count = u32(0)
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            if _starts(keys_in, i):
                count += u32(1)
        scratch[block] = count
    for _ in range(1):
        total = u32(0)
        for block in range(_blocks(n)):
            count = scratch[block]
            scratch[block] = total
            total += count
        num_runs[0] = cast(total, i32)
    for i in range(n):
        values_out[i] = cast(0, value_dtype)
    for block in range(_blocks(n)):
        run = cast(scratch[block], i32) - 1
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            if _starts(keys_in, i):
                run += 1
                keys_out[run] = keys_in[i]
            atomic_add(values_out[run], values_in[i])


@func
def _bits(key, dtype: template()):
    """An unsigned integer with the order of the key."""
    bits = bit_cast(key, static(_word(dtype)))
    sign = cast(1, static(_word(dtype))) << static(dtype.bits - 1)
    if static(dtype in (i32, i64)):
        bits = bits ^ sign
    if static(dtype in (f32, f64)):
        if bits & sign:
            bits = ~bits
        else:
            bits = bits ^ sign
    return bits


@func
def _digit(key, shift: template(), dtype: template()):
    return cast((_bits(key, dtype) >> shift) & 255, i32)


@func
def _sort_by_digit(keys: template(), keys_out: template(), values: template(), values_out: template(), scratch: template(),
                   n: i32, shift: template(), dtype: template(), has_values: template()):
    for block in range(_blocks(n)):
        for digit in range(BLOCK):
            scratch[digit * _blocks(n) + block] = u32(0)
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            scratch[_digit(keys[i], shift, dtype) * _blocks(n) + block] += u32(1)
    for _ in range(1):
        total = u32(0)
        for slot in range(BLOCK * _blocks(n)):
            count = scratch[slot]
            scratch[slot] = total
            total += count
    for block in range(_blocks(n)):
        for i in range(block * BLOCK, minimum(n, (block + 1) * BLOCK)):
            slot = _digit(keys[i], shift, dtype) * _blocks(n) + block
            position = cast(scratch[slot], i32)
            scratch[slot] = u32(position + 1)
            keys_out[position] = keys[i]
            if static(has_values):
                values_out[position] = values[i]


def _check_sort(dtype, end_bit):
    if dtype not in (u32, i32, f32, u64, i64, f64):
        raise TypeError(f"`sort` takes keys of u32, i32, f32, u64, i64 or f64, not {dtype}")
    if end_bit <= 0 or end_bit % 16 or end_bit > dtype.bits:
        raise ValueError(f"`end_bit` of a sort of {dtype} is a multiple of 16 up to {dtype.bits}, not {end_bit}")


@func
def sort(keys: template(), tmp_keys: template(), values: template(), tmp_values: template(), scratch: template(),
         n: template(), key_dtype: template(), has_values: template(), end_bit: template(), log256_max_n: template()):
    """Sorts the first n[()] keys, and values with them, by their lowest `end_bit` bits; equal keys keep their order."""
    _check_levels(log256_max_n)
    _check_sort(key_dtype, end_bit)
    for shift in static(range(0, end_bit, 16)):
        _sort_by_digit(keys, tmp_keys, values, tmp_values, scratch, n[()], shift, key_dtype, has_values)
        _sort_by_digit(tmp_keys, keys, tmp_values, values, scratch, n[()], shift + 8, key_dtype, has_values)
