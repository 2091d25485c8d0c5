"""Sparse fields: what is active, loops over it, lists, gradients."""

import numpy as np
import pytest

import costate as ti


def tree():
    """A field of 16 by 16 below two levels of pointers and one of single cells."""
    x = ti.field(ti.i32)
    blocks = ti.root.pointer(ti.ij, (4, 4))
    smaller = blocks.pointer(ti.ij, (2, 2))
    pixel = smaller.bitmasked(ti.ij, (2, 2))
    pixel.place(x)
    return x, blocks, smaller, pixel


def test_levels_become_active_by_themselves_and_by_writes():
    x, blocks, smaller, pixel = tree()
    seen = ti.field(ti.i32, shape=(3, 16, 16))
    active = ti.field(ti.i32, shape=4)

    @ti.kernel
    def k():
        ti.activate(blocks, [0, 1])
        ti.activate(smaller, [1, 2])
        x[2, 4] = 5
        for i, j in x:
            seen[0, i, j] += 1
        for i, j in smaller:
            seen[1, i, j] += 1
        for index in ti.grouped(blocks):
            seen[2, index] += 1
        active[0] = ti.is_active(smaller, [1, 2])
        active[1] = ti.is_active(smaller, [1, 1])
        active[2] = ti.is_active(pixel, [2, 4])
        active[3] = ti.is_active(pixel, [3, 4])

    k()
    assert np.argwhere(seen.to_numpy()).tolist() == [[0, 2, 4], [1, 1, 2], [2, 0, 1]]
    assert active.to_numpy().tolist() == [1, 0, 1, 0]


def test_what_is_inactive_is_0():
    x, blocks, smaller, pixel = tree()
    active = ti.field(ti.i32, shape=3)
    x[2, 4], x[9, 9] = 5, 6

    @ti.kernel
    def k():
        ti.deactivate(smaller, [1, 2])
        active[0] = ti.is_active(smaller, [1, 2])
        active[1] = ti.is_active(pixel, [2, 4])
        active[2] = ti.is_active(blocks, [0, 1])

    k()
    assert active.to_numpy().tolist() == [0, 0, 1] and x[2, 4] == 0 and x[9, 9] == 6
    blocks.deactivate_all()
    assert not x.to_numpy().any()


def test_fill_and_from_numpy_write_what_is_active():
    x = ti.field(ti.i32)
    ti.root.bitmasked(ti.i, 6).place(x)
    x[1] = x[4] = 1
    x.fill(7)
    assert x.to_numpy().tolist() == [0, 7, 0, 0, 7, 0]
    x.from_numpy(np.arange(6))
    assert x.to_numpy().tolist() == [0, 1, 0, 0, 4, 0]
    ti.deactivate_all_snodes()
    assert x.to_numpy().tolist() == [0] * 6


def test_a_loop_is_over_what_is_active_at_its_start():
    x, iterations = ti.field(ti.f32), ti.field(ti.i32, shape=())
    cells = ti.root.bitmasked(ti.i, 16)
    cells.place(x)

    @ti.kernel
    def grow():
        for i in x:
            iterations[None] += 1
            if i < 15:
                x[i + 1] += 1.0

    @ti.kernel
    def shrink():
        for i in x:
            if x[i] > 1.5:
                ti.deactivate(cells, [i])

    x[3] = 1
    for _ in range(3):
        grow()
    assert iterations[None] == 1 + 2 + 3 and x.to_numpy()[3:8].tolist() == [1, 3, 2, 1, 0]
    shrink()
    grow()
    assert iterations[None] == 6 + 2


def test_indices_of_levels():
    x, blocks, *_ = tree()

    @ti.kernel
    def k() -> ti.types.vector(4, ti.i32):
        down = ti.rescale_index(x, blocks, ti.Vector([9, 13]))
        up = ti.rescale_index(blocks, x, ti.Vector([1, 2]))
        return ti.Vector([down[0], down[1], up[0], up[1]])

    assert list(k()) == [2, 3, 4, 8] and x.parent(3) is blocks and x.parent().kind == "bitmasked"


def test_lists():
    lists, lengths = ti.field(ti.i32), ti.field(ti.i32, shape=5)
    total = ti.field(ti.i32, shape=())
    node = ti.root.dense(ti.i, 5).dynamic(ti.j, 20, chunk_size=4)
    node.place(lists)

    @ti.kernel
    def fill():
        for i in range(5):
            for j in range(i):
                ti.append(lists.parent(), i, j * 10)
            lists[i].append(7)
            if i == 4:
                lists[i].deactivate()
            lengths[i] = ti.length(node, [i])

    @ti.kernel
    def add():
        for i, j in lists:
            total[None] += lists[i, j]

    fill()
    add()
    assert lengths.to_numpy().tolist() == [1, 2, 3, 4, 0]
    assert total[None] == 4 * 7 + sum(10 * j for i in range(4) for j in range(i)) and lists[4, 0] == 0


def test_one_list():
    x = ti.field(ti.f32)
    ti.root.dynamic(ti.i, 1000).place(x)

    @ti.kernel
    def k() -> ti.i32:
        for i in range(100):
            x.append(i)
        return x.length()

    @ti.kernel
    def total() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    assert k() == 100 and sorted(x.to_numpy()[:100]) == list(range(100)) and total() == 4950


@pytest.mark.parametrize("debug", [False, True])
def test_gradients_of_particles_on_a_sparse_grid(debug):
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=debug)
    momentum, mass = ti.Vector.field(2, ti.f64), ti.field(ti.f64)
    ti.root.pointer(ti.ij, (4, 4)).dense(ti.ij, (4, 4)).place(momentum, mass)
    ti.root.lazy_grad()
    p = ti.Vector.field(2, ti.f64, shape=8, needs_grad=True)
    loss, cells = ti.field(ti.f64, shape=(), needs_grad=True), ti.field(ti.i32, shape=())

    @ti.kernel
    def scatter():
        for k in p:
            base = ti.cast(p[k], ti.i32)
            for a in ti.static(ti.grouped(ti.ndrange(2, 2))):
                d = p[k] - (base + a)
                momentum[base + a] += d * d.norm_sqr()
                mass[base + a] += d.x

    @ti.kernel
    def gather():
        for index in ti.grouped(mass):
            cells[None] += 1
            loss[None] += momentum[index].norm_sqr() * mass[index]

    start = np.random.default_rng(0).uniform(1, 6, (8, 2))
    p.from_numpy(start)
    with ti.ad.Tape(loss):
        scatter()
        gather()

    def expected(at):
        grid = np.zeros((16, 16, 3))
        for k, (i, j) in enumerate(start.astype(int)):
            for a, b in np.ndindex(2, 2):
                d = at[k] - [i + a, j + b]
                grid[i + a, j + b] += [*(d * (d @ d)), d[0]]
        return ((grid[..., :2] ** 2).sum(-1) * grid[..., 2]).sum()

    slopes = np.zeros((8, 2))
    for index in np.ndindex(8, 2):
        step = np.zeros((8, 2))
        step[index] = 1e-6
        slopes[index] = (expected(start + step) - expected(start - step)) / 2e-6
    assert 0 < cells[None] < 256 and cells[None] % 16 == 0 and loss[None] == pytest.approx(expected(start))
    assert p.grad.to_numpy() == pytest.approx(slopes, rel=1e-5, abs=1e-6)


def test_a_kernel_that_activates_and_loops():
    x, a = ti.field(ti.f32), ti.field(ti.f32, shape=8, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    ti.root.bitmasked(ti.i, 8).place(x)
    ti.root.lazy_grad()

    @ti.kernel
    def k(n: ti.i32):
        for i in range(n):
            x[2 * i] += a[i] * a[i]
        for i in x:
            loss[None] += x[i] * a[i]

    a.from_numpy(np.arange(1, 9))
    with ti.ad.Tape(loss):
        k(3)
    # a0^3 + a1^2 a2 + a2^2 a4
    assert a.grad.to_numpy().tolist() == [3, 2 * 2 * 3, 4 + 2 * 3 * 5, 0, 9, 0, 0, 0]


@pytest.mark.parametrize("wrong, part", [
    (lambda: ti.root.dense(ti.i, 3).dynamic(ti.i, 4), "axis"), (lambda: ti.root.quant_array(), "quantised"),
    (lambda: ti.root.dense(ti.i, 3).deactivate_all(), "without sparse nodes"),
])
def test_nodes_that_cannot_be(wrong, part):
    with pytest.raises(ti.QuadrantsRuntimeError, match=part):
        wrong()


def test_dense_nodes_have_no_lists():
    x = ti.field(ti.f32)
    ti.root.dense(ti.i, 3).place(x)

    @ti.kernel
    def k():
        ti.append(x.parent(), [], 1.0)

    with pytest.raises(TypeError, match="`dense` node has no lists"):
        k()


@pytest.mark.parametrize("serial", [False, True])
def test_indices_may_begin_below_0(serial):
    x, seen = ti.field(ti.i32), ti.field(ti.i32, shape=16)
    blocks = ti.root.pointer(ti.ij, (2, 2))
    blocks.dense(ti.ij, (2, 2)).place(x, offset=(-2, -2))

    @ti.kernel
    def k():
        x[-1, 1] = 7
        ti.loop_config(serialize=ti.static(serial))
        for i, j in x:
            seen[(i + 2) * 4 + j + 2] = 1
        for i, j in blocks:
            seen[0] = 10 * i + j

    @ti.kernel
    def in_order():
        x[-1, 1] = 7
        ti.loop_config(serialize=True)
        for i, j in x:
            seen[(i + 2) * 4 + j + 2] = 1

    (in_order if serial else k)()
    assert np.flatnonzero(seen.to_numpy()[1:]).tolist() == [1, 2, 5, 6] and seen[0] == (0 if serial else 1)
