"""Blocks of work items: shared arrays, barriers, and operations of warps."""

import re

import numpy as np
import pytest

import costate as qd
from costate import _core

NAME = _core.Device.best().name
on_gpu = pytest.mark.skipif(NAME == "cpu", reason="blocks are of GPUs")
has_warps = pytest.mark.skipif(NAME == "cpu" or NAME.startswith("vulkan"), reason="needs warps of 32 threads")
BLOCK = 32
block, warp, subgroup = qd.simt.block, qd.simt.warp, qd.simt.subgroup


def numbers(n, dtype=np.float32):
    return (np.arange(n) * 7 % 23 - 5).astype(dtype)


@on_gpu
def test_block_dim_gives_thread_indices():
    x = qd.field(qd.i32, 128)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(128):
            x[i] = qd.simt.block.thread_idx()

    run()
    assert x.to_numpy().tolist() == [i % 32 for i in range(128)]


@on_gpu
def test_global_thread_indices():
    x = qd.field(qd.i32, 96)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(96):
            x[i] = block.global_thread_idx()

    run()
    assert x.to_numpy().tolist() == list(range(96))


@on_gpu
@pytest.mark.parametrize("dtype", [qd.f32, qd.i32, qd.u32])
def test_sum_of_a_block(dtype):
    n = 4 * BLOCK
    x, y = qd.field(dtype, n), qd.field(dtype, n // BLOCK)
    given = abs(numbers(n))
    x.from_numpy(given.astype(x.to_numpy().dtype))

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(n):
            kept = block.SharedArray((BLOCK,), dtype)
            t = block.thread_idx()
            kept[t] = x[i]
            block.sync()
            for k in qd.static(range(5)):
                if t < (BLOCK >> (k + 1)):
                    kept[t] = kept[t] + kept[t + (BLOCK >> (k + 1))]
                block.sync()
            if t == 0:
                y[i // BLOCK] = kept[0]

    run()
    assert y.to_numpy().tolist() == given.reshape(-1, BLOCK).sum(axis=1).tolist()


@on_gpu
def test_transposition_by_tiles():
    n, tile = 16, 4
    x, y = qd.field(qd.f32, (n, n)), qd.field(qd.f32, (n, n))
    x.from_numpy(numbers(n * n).reshape(n, n))

    @qd.kernel
    def transpose():
        qd.loop_config(block_dim=tile * tile)
        for k in range(n * n):
            kept = block.SharedArray((tile, tile), qd.f32)
            t, b = block.thread_idx(), k // (tile * tile)
            row, column = t // tile, t % tile
            kept[row, column] = x[b // (n // tile) * tile + row, b % (n // tile) * tile + column]
            block.sync()
            y[b % (n // tile) * tile + row, b // (n // tile) * tile + column] = kept[column, row]

    transpose()
    assert (y.to_numpy() == x.to_numpy().T).all()


@on_gpu
def test_vectors_and_atomics_in_shared_arrays():
    n = 2 * BLOCK
    y = qd.Vector.field(2, qd.i32, n // BLOCK)
    old = qd.field(qd.i32, n)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(n):
            sums = block.SharedArray((1,), qd.types.vector(2, qd.i32))
            most = block.SharedArray(1, qd.i32)
            if block.thread_idx() == 0:
                sums[0] = qd.Vector([0, 0])
                most[0] = -1
            block.sync()
            sums[0] += qd.Vector([i, 1])
            old[i] = qd.atomic_max(most[0], i)
            block.sync()
            if block.thread_idx() == 0:
                y[i // BLOCK] = sums[0]

    run()
    assert y.to_numpy().tolist() == [[sum(range(BLOCK)), BLOCK], [sum(range(BLOCK, n)), BLOCK]]
    assert sorted(old.to_numpy().reshape(-1, BLOCK).min(axis=1).tolist()) == [-1, -1]


@on_gpu
def test_blocks_that_are_not_full():
    if NAME.startswith("vulkan"):
        pytest.skip("all threads of a block come to its barriers")
    n = BLOCK + 5
    x = qd.field(qd.i32, n)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(n):
            kept = block.SharedArray(BLOCK, qd.i32)
            kept[block.thread_idx()] = i
            block.sync()
            x[i] = kept[0]

    run()
    assert x.to_numpy().tolist() == [0] * BLOCK + [BLOCK] * 5


@on_gpu
def test_shared_arrays_in_functions():
    x = qd.field(qd.f32, BLOCK)

    @qd.func
    def reversed_value(v):
        kept = block.SharedArray((BLOCK,), qd.f32)
        kept[block.thread_idx()] = v
        block.sync()
        return kept[BLOCK - 1 - block.thread_idx()]

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(BLOCK):
            x[i] = reversed_value(qd.cast(i, qd.f32))

    run()
    assert x.to_numpy().tolist() == list(range(BLOCK))[::-1]


@on_gpu
@pytest.mark.parametrize("name, expected", [
    ("reduce_all_add", lambda v: [v.sum()] * BLOCK), ("reduce_all_max", lambda v: [v.max()] * BLOCK),
    ("inclusive_add", lambda v: np.cumsum(v)), ("exclusive_add", lambda v: np.cumsum(v) - v)])
def test_reductions_and_scans_of_blocks(name, expected):
    x, y = qd.field(qd.i32, BLOCK), qd.field(qd.i32, BLOCK)
    given = numbers(BLOCK, np.int32)
    x.from_numpy(given)
    function = getattr(block, name)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(BLOCK):
            y[i] = function(x[i], BLOCK, qd.i32)

    run()
    assert y.to_numpy().tolist() == list(expected(given))


@on_gpu
def test_counts_at_barriers():
    y = qd.field(qd.i32, (3, BLOCK))

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(BLOCK):
            y[0, i] = block.sync_count_nonzero(i < 5)
            y[1, i] = block.sync_any_nonzero(i == 40)
            y[2, i] = block.sync_all_nonzero(i < 40)

    run()
    assert y.to_numpy().tolist() == [[5] * BLOCK, [0] * BLOCK, [1] * BLOCK]


@has_warps
@pytest.mark.parametrize("dtype", [qd.i32, qd.u32, qd.f32, qd.i64, qd.u64, qd.f64])
def test_shuffles(dtype):
    y = qd.field(dtype, (4, 64))
    big = 2**40 if dtype in (qd.i64, qd.u64, qd.f64) else 100

    @qd.kernel
    def run():
        qd.loop_config(block_dim=64)
        for i in range(64):
            v = qd.cast(i, dtype) * big
            y[0, i] = warp.shfl_sync_i32(qd.u32(0xFFFFFFFF), v, 3)
            y[1, i] = warp.shfl_up_i32(0xFFFFFFFF, v, 2)
            y[2, i] = warp.shfl_down_f32(0xFFFFFFFF, v, 5)
            y[3, i] = warp.shfl_xor_i32(0xFFFFFFFF, v, 1)

    run()
    lanes = np.arange(64)
    warps, lane = lanes // 32 * 32, lanes % 32
    expected = [warps + 3, np.where(lane < 2, lanes, lanes - 2), np.where(lane > 26, lanes, lanes + 5), lanes ^ 1]
    assert (y.to_numpy().astype(np.float64) == np.array(expected) * float(big)).all()


@has_warps
def test_votes_ballots_and_matches():
    y = qd.field(qd.u32, (7, 32))

    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(32):
            all_lanes = qd.u32(0xFFFFFFFF)
            y[0, i] = qd.cast(warp.all_nonzero(all_lanes, i < 32), qd.u32)
            y[1, i] = qd.cast(warp.any_nonzero(all_lanes, i == 40), qd.u32)
            y[2, i] = qd.cast(warp.unique(all_lanes, i < 3), qd.u32)
            y[3, i] = warp.ballot(i % 4 == 0)
            y[4, i] = warp.match_any(all_lanes, i % 3)
            y[5, i] = warp.match_all(all_lanes, i // 32)
            y[6, i] = warp.active_mask()
            warp.sync(all_lanes)

    run()
    classes = [sum(1 << k for k in range(32) if k % 3 == c) for c in range(3)]
    found = y.to_numpy()
    assert found[:4].tolist() == [[1] * 32, [0] * 32, [0] * 32, [0x11111111] * 32]
    assert found[4].tolist() == [classes[i % 3] for i in range(32)]
    assert found[5:].tolist() == [[0xFFFFFFFF] * 32] * 2


@has_warps
def test_lanes_of_a_mask_go_their_own_way():
    y = qd.field(qd.i32, 32)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(32):
            if i < 8:
                y[i] = warp.shfl_xor_i32(0xFF, i, 1)
            else:
                y[i] = warp.shfl_sync_i32(0xFFFFFF00, i, 8)

    run()
    assert y.to_numpy().tolist() == [i ^ 1 for i in range(8)] + [8] * 24


@has_warps
def test_subgroups():
    y = qd.field(qd.i32, (8, 32))

    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(32):
            y[0, i] = subgroup.reduce_all_add(i)
            y[1, i] = subgroup.inclusive_add(1)
            y[2, i] = subgroup.exclusive_max(i)
            y[3, i] = subgroup.broadcast(i, 9)
            y[4, i] = subgroup.invocation_id()
            y[5, i] = subgroup.reduce_min_tiled(i, 3)
            y[6, i] = subgroup.elect()
            y[7, i] = qd.cast(subgroup.lanemask_lt(5), qd.i32)

    run()
    low = -2**31
    assert y.to_numpy().tolist() == [
        [496] * 32, list(range(1, 33)), [low, *range(31)], [9] * 32, list(range(32)), [i // 8 * 8 for i in range(32)],
        [1] + [0] * 31, [31] * 32]


def about(error, *words):
    return all(re.search(word, str(error.value)) for word in words)


def summing():
    x = qd.field(qd.f32, BLOCK, needs_grad=True)
    y = qd.field(qd.f32, (), needs_grad=True)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(BLOCK):
            kept = block.SharedArray((BLOCK,), qd.f32)
            kept[block.thread_idx()] = x[i]
            block.sync()
            y[None] += kept[0]

    return run


def test_gradients_are_refused_by_name():
    with pytest.raises(Exception) as error:
        summing().grad()
    assert about(error, "a shared array has no derivative", r"test_work_item_blocks\.py:\d+")


def test_the_cpu_has_no_blocks():
    if NAME != "cpu":
        pytest.skip("of the CPU")
    with pytest.raises(Exception) as error:
        summing()()
    assert about(error, "is for GPUs", "simt", r"test_work_item_blocks\.py:\d+")


@on_gpu
def test_barriers_that_some_do_not_come_to():
    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(BLOCK):
            if block.thread_idx() < 7:
                block.sync()

    with pytest.raises(Exception) as error:
        run()
    assert about(error, "reached by some work items of a block", r"test_work_item_blocks\.py:\d+")


@pytest.mark.skipif(NAME != "simt", reason="another device would hang")
def test_barriers_that_some_have_not_come_to():
    x = qd.field(qd.i32, 64)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=64)
        for i in range(64):
            if x[i] == 0:
                block.sync()

    x[3] = 1
    with pytest.raises(Exception) as error:
        run()
    assert about(error, "wait for each other", "block.sync")


@on_gpu
def test_shared_arrays_that_are_too_large():
    x = qd.field(qd.f32, BLOCK)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=BLOCK)
        for i in range(BLOCK):
            kept = block.SharedArray((2**18,), qd.f32)
            kept[i] = x[i]
            block.sync()
            x[i] = kept[0]

    with pytest.raises(Exception) as error:
        run()
    assert about(error, "shared arrays of a block take", "this device has")


def test_what_is_refused_while_the_kernel_is_compiled():
    @qd.kernel
    def serial():
        block.sync()

    @qd.kernel
    def large():
        qd.loop_config(block_dim=4096)
        for i in range(8):
            pass

    with pytest.raises(Exception) as error:
        serial()
    assert about(error, "block.sync", "is for GPUs" if NAME == "cpu" else "outside")
    with pytest.raises(Exception) as error:
        large()
    assert about(error, "from 1 to 1024")


def test_simt_is_still_a_device():
    assert qd.simt == qd.simt and qd.simt.name == "simt" and repr(qd.simt) == "Arch.simt"
    with pytest.raises(AttributeError):
        _ = qd.simt.nothing


@pytest.mark.parametrize("serial", [False, True])
def test_what_never_runs_is_left_out(serial):
    """On all devices, in serial code too."""
    @qd.kernel
    def fill(x: qd.types.ndarray()):
        qd.loop_config(serialize=serial)
        for i in range(4):
            n = 3
            never = False
            if never:
                lane = qd.simt.subgroup.invocation_id()
                n = qd.simt.subgroup.shuffle(n, qd.u32(lane))
            x[i] = n
    x = qd.ndarray(qd.i32, 4)
    fill(x)
    assert x.to_numpy().tolist() == [3] * 4


@on_gpu
def test_a_size_of_blocks_that_branches_assign():
    n, total = 64, qd.field(qd.i32, 2)

    @qd.func
    def first_of(x, size: qd.template()):
        kept = qd.simt.block.SharedArray((size,), qd.i32)
        kept[qd.simt.block.thread_idx()] = x
        qd.simt.block.sync()
        r = 0
        for j in qd.static(range(size)):
            r += kept[j]
        return r

    @qd.kernel
    def k(first: qd.template(), second: qd.template()):
        if qd.static(first):
            size = qd.static(32)
            qd.loop_config(block_dim=size)
            for i in range(n):
                s = first_of(i, size)
                if i == 0:
                    total[0] = s
        if qd.static(second):
            size = qd.static(16)
            qd.loop_config(block_dim=size)
            for i in range(n):
                s = first_of(i, size)
                if i == 16:
                    total[1] = s

    k(True, True)
    assert total.to_numpy().tolist() == [sum(range(32)), sum(range(16, 32))]


@has_warps
def test_votes_in_conditions_of_loops():
    y = qd.field(qd.i32, 64)

    @qd.func
    def any_of(p):
        return subgroup.any_true_tiled(p, 5) != 0

    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(64):
            n = 0
            while any_of(n < i):
                n += 1
            y[i] = n

    run()
    assert y.to_numpy().tolist() == [31] * 32 + [63] * 32


@on_gpu
def test_shared_arrays_have_what_the_device_says():
    most = qd.lang.impl.get_max_shared_memory_bytes(is_lowerbound_ok=True)

    def run(bytes):
        x = qd.field(qd.i32, BLOCK)

        @qd.kernel
        def fill():
            qd.loop_config(block_dim=BLOCK)
            for i in range(BLOCK):
                shared = block.SharedArray((bytes // 4,), qd.i32)
                shared[bytes // 4 - BLOCK + i] = 3 * i
                block.sync()
                x[i] = shared[bytes // 4 - 1 - i]

        fill()
        return x.to_numpy().tolist()

    assert run(most) == [3 * (BLOCK - 1 - i) for i in range(BLOCK)]
    with pytest.raises(_core.BadKernel, match="the shared arrays of a block take"):
        run(most + 1024)
