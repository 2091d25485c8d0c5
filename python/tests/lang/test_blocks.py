"""Large sparse nodes, whose memory is that of what is active: the same as dense memory, in less."""

import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import test_sparse
import test_sparse_offsets

import costate as ti
from costate.lang.data import blocks


@pytest.fixture(params=[(1 << 22, 128, 1 << 22), (2, 2, 0)], ids=["one level", "levels"])
def in_blocks(request, monkeypatch):
    """All sparse nodes have blocks."""
    monkeypatch.setattr(blocks, "dense_bytes", 0)
    monkeypatch.setattr(blocks, "_FIRST", request.param[0])
    monkeypatch.setattr(blocks, "DIGIT", request.param[1])
    monkeypatch.setattr(blocks, "_STATES", request.param[2])


OTHERS = [one for module in (test_sparse, test_sparse_offsets) for name, one in vars(module).items()
          if name.startswith("test_") and not inspect.signature(one).parameters]


@pytest.mark.parametrize("test", OTHERS, ids=lambda one: one.__name__)
def test_what_holds_of_dense_memory(in_blocks, test):
    test()


DECLARATIONS = {
    "one level": lambda x: ti.root.pointer(ti.ijk, 512).dense(ti.ijk, 8).place(x),
    "two levels": lambda x: ti.root.pointer(ti.ijk, 64).pointer(ti.ijk, 8).dense(ti.ijk, 8).place(x),
    "bits": lambda x: ti.root.pointer(ti.ijk, 512).bitmasked(ti.ijk, 8).place(x),
    "cells": lambda x: ti.root.bitmasked(ti.ijk, 4096).place(x),
}


def in_4096(declare, count):
    """(field, where, numbers, loss, three kernels) of cells with an index up to 4095, each of a block of its own."""
    x = ti.field(ti.f32)
    declare(x)
    ti.root.lazy_grad()
    rng = np.random.default_rng(1)
    places = rng.integers(0, 4096, (count, 3))
    places[:2] = [4095, 4095, 4095], [0, 4095, 4088]
    at, a = ti.Vector.field(3, ti.i32, count), ti.field(ti.f32, count, needs_grad=True)
    at.from_numpy(places.astype(np.int32))
    a.from_numpy(rng.uniform(0.5, 1, count).astype(np.float32))
    loss, visits = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.i64, ())

    @ti.kernel
    def put():
        for i in at:
            x[at[i]] = a[i] * a[i]

    @ti.kernel
    def square():
        for index in ti.grouped(x):
            x[index] = x[index] * x[index]

    @ti.kernel
    def total():
        for index in ti.grouped(x):
            visits[None] += 1
            loss[None] += ti.cast(x[index], ti.f64)

    return x, places, a, loss, visits, (put, square, total)


@pytest.mark.parametrize("name", DECLARATIONS)
def test_gradients_of_a_grid_of_4096(name):
    x, places, a, loss, visits, kernels = in_4096(DECLARATIONS[name], 300)
    with ti.ad.Tape(loss):
        for k in kernels:
            k()
    values = a.to_numpy().astype(np.float64)
    assert loss[None] == pytest.approx((values ** 4).sum(), rel=1e-6)
    assert a.grad.to_numpy() == pytest.approx(4 * values ** 3, rel=1e-5)
    assert visits[None] == 300 * (1 if name in ("bits", "cells") else 512)
    for index, value in zip(places[:3], values):
        assert x[tuple(index)] == pytest.approx(value ** 4, rel=1e-5)
    assert x[1, 2, 3] == 0 and x.grad[1, 2, 3] == 0


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import costate as ti
import test_blocks as t
x, places, a, loss, visits, kernels = t.in_4096(t.DECLARATIONS[{name!r}], 10_000)
with ti.ad.Tape(loss):
    for k in kernels:
        k()
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))   # not the parent's
print(peak // 1024, abs(a.grad.to_numpy() - 4 * a.to_numpy() ** 3).max())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in KiB")
@pytest.mark.parametrize("name", DECLARATIONS)
def test_ten_thousand_blocks_take_less_than_300_mb(name):
    if ti.lang.base.runtime.device().name != "cpu":
        pytest.skip("other devices have memory of their own")
    folder = __file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM.format(folder=folder, name=name))],
                          capture_output=True, text=True, check=True)
    megabytes, error = done.stdout.split()[-2:]
    assert int(megabytes) < 300 and float(error) < 1e-4


def test_work_items_that_write_the_same_blocks(in_blocks):
    x = ti.field(ti.i32)
    ti.root.pointer(ti.ij, 32).dense(ti.ij, 4).place(x)
    cells = ti.field(ti.i32, ())

    @ti.kernel
    def scatter(n: ti.i32):
        for i in range(n):
            x[(i * 7919) % 128, (i * 104729) % 97] += 1

    @ti.kernel
    def count() -> ti.i32:
        s = 0
        for i, j in x:
            s += x[i, j]
            cells[None] += 1
        return s

    scatter(200_000)
    i = np.arange(200_000)
    expected = np.zeros((128, 128), int)
    np.add.at(expected, ((i * 7919) % 128, (i * 104729 % 2 ** 32).astype(np.uint32).view(np.int32) % 97), 1)
    assert count() == 200_000
    blocks_hit = len(np.unique(np.argwhere(expected) // 4, axis=0))
    assert cells[None] == 16 * blocks_hit == 16 * x.parent(2).blocks().count()
    assert (x.to_numpy() == expected).all()


def test_more_blocks_than_there_is_room_for():
    x, seen = ti.field(ti.f32), ti.field(ti.f32, 4)
    ti.root.pointer(ti.i, 100, capacity=3).dense(ti.i, 4).place(x)

    @ti.kernel
    def put(n: ti.i32):
        for i in range(n):
            x[8 * i] = 1.0

    @ti.kernel
    def look():
        for i in range(4):
            seen[i] = x[300 + i]

    put(3)
    for _ in range(2):
        with pytest.raises(ti.QuadrantsRuntimeError, match="node of 100 cells has room for 3 .*`capacity=`"):
            put(10)
    with pytest.raises(ti.QuadrantsRuntimeError, match="has room for 3"):
        x[399] = 1
    look()
    assert seen.to_numpy().tolist() == [0] * 4 and x.to_numpy()[[0, 8, 16]].tolist() == [1, 1, 1]
    x.parent(2).deactivate_all()
    assert not x.to_numpy().any()
    put(2)
    assert x.to_numpy().sum() == 2


@pytest.mark.parametrize("capacity", [0, -1, 2.5, True])
def test_a_capacity_is_a_number_of_cells(capacity):
    with pytest.raises(ti.QuadrantsRuntimeError, match="`capacity` of a node"):
        ti.root.pointer(ti.i, 4, capacity=capacity)


def history(x, node, is_loud):
    """Kernels that write, deactivate and write again what lies below a node; a loss of x."""
    a, loss = ti.field(ti.f64, 12, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def write(start: ti.i32):
        for i in range(6):
            x[4 * (i + start)] += a[i + start] * a[i]

    @ti.kernel
    def read():
        for i in range(12):
            loss[None] += x[4 * i] ** 2 * (i + 1) + x[4 * i + 1]

    @ti.kernel
    def drop():
        for i in range(2, 9):
            ti.deactivate(node, [i])

    @ti.kernel
    def spread():
        for i in x:
            x[i] = x[i] * a[2] + 1.0

    def run():
        write(0)
        read()
        drop()
        read()
        write(3)
        spread()
        read()
        if is_loud:
            x[5] = 3.0
            read()

    return a, loss, run


@pytest.mark.parametrize("is_loud", [False, True])
@pytest.mark.parametrize("options", [{}, {"snapshots": 2}], ids=["log", "snapshots"])
def test_recordings_go_back_to_what_was_active(in_blocks, options, is_loud):
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64)
    node = ti.root.pointer(ti.i, 12)
    node.dense(ti.i, 4).place(x)
    ti.root.lazy_grad()
    a, loss, run = history(x, node, is_loud)
    start = np.random.default_rng(2).uniform(0.5, 1.5, 12)
    first = np.zeros(48)
    first[:20] = np.arange(20) / 10

    def begin(values, contents):
        node.deactivate_all()
        a.from_numpy(values)
        for k in range(20):
            x[k] = contents[k]
        loss[None] = 0

    def value(values, contents):
        begin(values, contents)
        run()
        return loss[None]

    begin(start, first)
    x.grad.fill(0)
    with ti.ad.Tape(loss, **options):
        run()
    slopes, initial = a.grad.to_numpy(), x.grad.to_numpy()
    for k in range(12):
        step = 1e-5 * (np.arange(12) == k)
        assert slopes[k] == pytest.approx((value(start + step, first) - value(start - step, first)) / 2e-5, rel=1e-6, abs=1e-7)
    for k in range(20):
        step = 1e-5 * (np.arange(48) == k)
        assert initial[k] == pytest.approx((value(start, first + step) - value(start, first - step)) / 2e-5, rel=1e-6, abs=1e-7)


def test_forward_mode(in_blocks):
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64)
    node = ti.root.pointer(ti.i, 12)
    node.dense(ti.i, 4).place(x)
    ti.root.lazy_dual()
    a, loss = ti.field(ti.f64, 4, needs_dual=True), ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def k():
        for i in range(4):
            x[8 * i] += a[i] ** 3
        for i in x:
            loss[None] += x[i] * x[i]

    a.from_numpy(np.arange(1.0, 5))
    with ti.ad.FwdMode(loss, a, seed=[1, 0, 2, 0]):
        k()
    assert loss.dual[None] == 6 * 1 + 2 * 6 * 3.0 ** 5
    assert x.dual[0] == 3 and x.dual[1] == 0 and x.dual[16] == 2 * 27


@pytest.mark.parametrize("layout", ["vector", "struct"])
def test_the_host_reads_and_writes(in_blocks, layout):
    x = ti.Vector.field(2, ti.f32, needs_grad=True)
    s = ti.types.struct(v=ti.math.vec2, k=ti.i32).field()
    node = ti.root.pointer(ti.ij, (4, 8))
    below = node.dense(ti.ij, (2, 4))
    below.place(x, offset=(-2, 3)) if layout == "vector" else below.place(s, offset=(-2, 3))
    field = x if layout == "vector" else s.v
    field[-2, 3] = [1, 2]
    field[5, 34][1] = 7
    assert field[5, 34].to_list() == [0, 7] and field[0, 3].to_list() == [0, 0]
    values = field.to_numpy()
    assert values.shape == (8, 32, 2) and np.argwhere(values).tolist() == [[0, 0, 0], [0, 0, 1], [7, 31, 1]]
    assert (np.asarray(field) == values).all()
    field.from_numpy(np.ones((8, 32, 2), np.float32))
    assert field.to_numpy().sum() == 2 * 2 * 8 and field[-2, 4].to_list() == [1, 1]
    field.fill(3)
    assert field.to_numpy().sum() == 3 * 2 * 2 * 8
    field.fill([1, 0])
    assert field.to_numpy().sum() == 2 * 8
    if layout == "vector":
        x.grad[0, 3] = [4, 5]     # of what is not active
        assert x.grad[0, 3].to_list() == [4, 5] and x[0, 3].to_list() == [0, 0] and x.to_numpy().sum() == 16
        given = np.random.default_rng(0).random((8, 32, 2)).astype(np.float32)
        x.grad.from_numpy(given)
        assert (x.grad.to_numpy() == given).all()
        x.grad.fill([0, 2])
        assert x.grad[-2, 3].to_list() == [0, 2]
    node.deactivate_all()
    assert not field.to_numpy().any()


def test_what_is_given_back_is_not_written_any_more(in_blocks, monkeypatch):
    monkeypatch.setattr(ti.lang.base.runtime, "shares_memory", lambda: False)
    x = ti.field(ti.f32)
    node = ti.root.pointer(ti.i, 8)
    node.dense(ti.i, 2).place(x)
    x[3] = 5
    node.deactivate_all()
    ti.sync()
    assert x[3] == 0
    x[4] = 7
    assert x[4] == 7 and x[3] == 0


def test_what_has_no_array():
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ijk, 512).dense(ti.ijk, 8).place(x)
    x[4, 5, 6] = 1
    with pytest.raises(ti.QuadrantsRuntimeError, match="would take 256 GiB as an array"):
        x.to_numpy()
    with pytest.raises(ti.QuadrantsRuntimeError, match="is sparse, and its memory is no array|memory is on the device"):
        x.to_numpy(copy=False)
    with pytest.raises(BufferError, match="is sparse"):
        np.from_dlpack(x, copy=False) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else x.__dlpack__(copy=False)
    assert not hasattr(x, "__array_interface__")


def test_gradients_in_kernels(in_blocks):
    x = ti.field(ti.f32, needs_grad=True)
    node = ti.root.pointer(ti.i, 8)
    node.dense(ti.i, 2).place(x)
    seen, loss = ti.field(ti.f32, 16), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def read():
        for i in range(16):
            loss[None] += x[i] * i

    @ti.kernel
    def look():
        for i in range(16):
            seen[i] = x.grad[i]

    @ti.kernel
    def put():
        for i in range(4, 6):
            x.grad[i] = 9.0
            x[12] += 1.0

    x[6] = 1
    with ti.ad.Tape(loss):
        read()
    look()
    assert seen.to_numpy().tolist() == [0] * 6 + [6, 7] + [0] * 8   # of what is active, and 0 elsewhere
    put()
    look()
    assert seen.to_numpy().tolist() == [0] * 4 + [9, 9, 6, 7] + [0] * 8 and x.to_numpy().sum() == 3


def test_large_lists():
    x, lengths = ti.field(ti.f32), ti.field(ti.i32, 4)
    node = ti.root.dense(ti.i, 1 << 22).dynamic(ti.j, 256)
    node.place(x)
    total = ti.field(ti.f32, ())

    @ti.kernel
    def fill():
        for i in range(4):
            for j in range(10 * i):
                x[i * 1_000_003].append(j)
            lengths[i] = x[i * 1_000_003].length()

    @ti.kernel
    def add():
        for i, j in x:
            total[None] += x[i, j] + ti.cast(i // 1_000_003, ti.f32)

    @ti.kernel
    def drop():
        for i in range(3):
            ti.deactivate(node, [i * 1_000_003])

    fill()
    add()
    assert lengths.to_numpy().tolist() == [0, 10, 20, 30] and total[None] == 45 + 190 + 435 + 10 + 40 + 90
    drop()
    total[None] = 0
    add()
    assert total[None] == 435 + 90 and x[3_000_009, 29] == 29 and x[2_000_006, 3] == 0


@pytest.mark.parametrize("options", [{}, {"deterministic": True}, {"debug": True}], ids=["plain", "deterministic", "debug"])
def test_loops(in_blocks, options):
    ti.init(**options)
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    node = ti.root.pointer(ti.ij, (8, 4))
    node.dense(ti.ij, (2, 4)).place(x, offset=(-4, 0))
    ti.root.bitmasked(ti.ij, (16, 16)).place(y)
    seen, cells = ti.field(ti.i32, (16, 16)), ti.field(ti.i32, 3)

    @ti.kernel
    def k():
        x[3, 5] = 1
        x[-4, 0] = 2
        for i, j in x:
            y[i + 4, j] = x[i, j] + 1
            x[i, j] += 10
        for index in ti.grouped(y):
            seen[index] += y[index]
        for i, j in node:
            cells[0] += 1

    @ti.kernel
    def in_order():
        ti.loop_config(serialize=True)
        for i, j in y:
            if cells[1] == 5:
                break
            cells[1] += 1

    k()
    in_order()
    expected = np.zeros((16, 16), int)
    expected[6:8, 4:8] = expected[0:2, 0:4] = 1
    assert cells.to_numpy().tolist() == [2, 5, 0]
    values = x.to_numpy()
    assert (values == 10 * expected + (values % 10)).all() and values[7, 5] == 11 and values[0, 0] == 12
    expected[7, 5], expected[0, 0] = 2, 3
    assert (seen.to_numpy() == expected).all() and (y.to_numpy() == expected).all()


def test_indices_out_of_range_in_debug_mode():
    ti.init(debug=True)
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ij, 512).dense(ti.ij, 8).place(x)

    @ti.kernel
    def k(i: ti.i32):
        for j in range(4):
            x[i, j] = 1

    k(4095)
    with pytest.raises(ti.QuadrantsAssertionError, match="index is out of range of .* shape \\(4096, 4096\\)"):
        k(4096)


def test_memory_that_is_given_back_is_new(in_blocks):
    x = ti.field(ti.i32)
    node = ti.root.pointer(ti.i, 64)
    node.dense(ti.i, 4).place(x)

    @ti.kernel
    def put(k: ti.i32):
        for i in range(8):
            x[(16 * i + k) % 256] = k

    for k in range(1, 20):
        put(k)
        assert node.blocks().count() == 8 and x.to_numpy().sum() == 8 * k
        node.deactivate_all()
        assert not x.to_numpy().any() and x[k] == 0


def test_an_interrupted_launch_leaves_no_entry_taken(in_blocks):
    x = ti.field(ti.i32)
    node = ti.root.pointer(ti.i, 64)
    node.dense(ti.i, 4).place(x)

    @ti.kernel
    def put():
        for i in range(256):
            x[i] = 1

    directory = node.blocks().directory
    directory.core().write_at([1], np.full((), blocks.BUSY, np.int32))
    node.blocks().free_taken()
    put()
    assert x.to_numpy().sum() == 256


def test_kernels_fill_what_is_active(in_blocks):
    x, seen = ti.field(ti.f32, needs_grad=True), ti.field(ti.f32, 12)
    ti.root.pointer(ti.i, 6).dense(ti.i, 2).place(x)
    x[3] = x[10] = 1

    @ti.kernel
    def k():
        x.fill(4.0)
        x.grad.fill(2.0)

    @ti.kernel
    def look():
        for i in x.grad:
            seen[i] = x[i] + x.grad[i]

    k()
    look()
    assert x.to_numpy().tolist() == [0, 0, 4, 4, 0, 0, 0, 0, 0, 0, 4, 4]
    assert seen.to_numpy().tolist() == [0, 0, 6, 6, 0, 0, 0, 0, 0, 0, 6, 6]


def test_parts_of_vectors(in_blocks):
    v = ti.Vector.field(3, ti.f64, needs_grad=True)
    ti.root.pointer(ti.i, 6).dense(ti.i, 2).place(v)
    loss = ti.field(ti.f64, (), needs_grad=True)
    v[5] = [1, 2, 3]

    @ti.func
    def double(place: ti.template()):
        place *= 2.0

    @ti.kernel
    def k(m: ti.i32):
        double(v[5])
        v[7][m] += v[5].y * v[5][2]
        v[7].zx += ti.Vector([1.0, 2.0])
        loss[None] += v[7].dot(ti.Vector([1.0, 10.0, 100.0]))

    with ti.ad.Tape(loss):
        k(1)
    assert v[5].to_list() == [2, 4, 6] and v[7].to_list() == [2, 24, 1] and loss[None] == 342
    assert v.grad[5].to_list() == [0, 10 * 4 * 3, 10 * 4 * 2]


def test_what_validation_sees(in_blocks):
    ti.init(debug=True)
    x = ti.field(ti.f32, needs_grad=True)
    ti.root.pointer(ti.i, 6).dense(ti.i, 2).place(x)
    loss = ti.field(ti.f32, (), needs_grad=True)
    x[3] = 1

    @ti.kernel
    def read():
        loss[None] += x[3]

    @ti.kernel
    def write():
        x[3] = 2

    with pytest.raises(ti.QuadrantsAssertionError, match="global data access rule"):
        with ti.ad.Tape(loss, validation=True):
            read()
            write()


def test_functions_with_gradients_of_their_own(in_blocks):
    x, a = ti.field(ti.f32, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    node = ti.root.pointer(ti.i, 6)
    node.dense(ti.i, 2).place(x)
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def put(i: ti.i32):
        x[i] += a[None] * a[None]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * (i + 1)

    @ti.ad.grad_replaced
    def forward():
        put(3)
        put(8)

    @ti.ad.grad_for(forward)
    def backward():
        put.grad(8)
        put.grad(3)

    a[None] = 3
    with ti.ad.Tape(loss):
        forward()
        total()
    assert loss[None] == 9 * (4 + 9) and a.grad[None] == 6 * (4 + 9)


def test_graphs(in_blocks):
    x, k = ti.field(ti.i32), ti.field(ti.i32, ())
    node = ti.root.pointer(ti.i, 64, capacity=5)
    node.dense(ti.i, 4).place(x)

    @ti.kernel
    def put():
        for i in range(2):
            x[4 * k[None] + 8 * i] += 1

    x[3] = 7
    graph = ti.capture(put)
    for k[None] in range(2):
        graph.replay()
    assert np.flatnonzero(x.to_numpy()).tolist() == [0, 3, 4, 8, 12]
    k[None] = 5
    with pytest.raises(ti.QuadrantsRuntimeError, match="room for 5"):
        graph.replay()
    node.deactivate_all()
    with pytest.raises(ti.CannotCapture, match="`deactivate_all`"):
        graph.replay()


def test_numbers_that_go_through_the_host(in_blocks):
    x, a = ti.field(ti.f64, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    ti.root.pointer(ti.i, 6).dense(ti.i, 2).place(x)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def put():
        x[5] += a[None] * a[None]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * (i + 1)

    a[None] = 3
    with ti.ad.Tape(loss):
        put()
        x[8] = x[5] * 2 + x[11]
        total()
    assert loss[None] == 9 * 6 + 18 * 9 and a.grad[None] == 6 * 6 + 12 * 9
    with pytest.raises(ti.NotDifferentiable, match="sparse"):
        with ti.ad.Tape(loss):
            put()
            x.fill(x[5])


@pytest.mark.parametrize("options", [{}, {"snapshots": 2}], ids=["log", "snapshots"])
def test_blocks_that_the_host_needs_in_a_recording(in_blocks, options):
    ti.init(default_fp=ti.f64)
    x, a = ti.field(ti.f64), ti.field(ti.f64, 8, needs_grad=True)
    ti.root.pointer(ti.i, 16).dense(ti.i, 2).place(x)
    ti.root.lazy_grad()
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def put(n: ti.i32):
        for i in range(n):
            x[2 * i] += a[i] * a[i]
        for i in x:
            loss[None] += x[i] * x[i]

    a.from_numpy(np.arange(1.0, 9))
    with ti.ad.Tape(loss, **options):
        put(2)
        x[24] = 5.0
        put(4)
        x[30] = 2.0
        put(8)
    squares = np.arange(1.0, 9) ** 2
    times = np.array([(1, 2, 3)] * 2 + [(0, 1, 2)] * 2 + [(0, 0, 1)] * 4)
    values = times * squares[:, None]
    assert loss[None] == (values ** 2).sum() + 2 * 25 + 4
    assert a.grad.to_numpy() == pytest.approx((2 * values * times).sum(axis=1) * 2 * np.arange(1.0, 9))
