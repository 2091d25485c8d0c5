"""`qd.simt.Tile16x16` and `qd.simt.Tile32x32`: matrices of which each lane of a warp holds a row."""

import re

import numpy as np
import pytest

import costate as qd
from costate import _core

NAME = _core.Device.best().name
has_warps = pytest.mark.skipif(NAME == "cpu" or NAME.startswith("vulkan"), reason="needs warps of 32 threads")
TILES = pytest.mark.parametrize("tile", [qd.simt.Tile16x16, qd.simt.Tile32x32])
TYPES = pytest.mark.parametrize("dtype, rounding", [(qd.f64, 1e-12), (qd.f32, 1e-4)])


def matrices(count, n):
    a = np.random.default_rng(n).normal(size=(count, n, n))
    return a @ a.transpose(0, 2, 1) + n * np.eye(n)


def field_of(numbers, dtype):
    made = qd.field(dtype, numbers.shape)
    made.from_numpy(numbers.astype(np.float64 if dtype == qd.f64 else np.float32))
    return made


def close(a, b, rounding):
    return np.abs(a - b).max() <= rounding * np.abs(b).max()


@has_warps
@TILES
@TYPES
def test_cholesky_of_a_large_matrix(tile, dtype, rounding):
    size = tile.SIZE
    for n in size, size - 5, 2 * size + 3:
        numbers, blocks = matrices(2, n), -(-n // size)
        a, lower = field_of(numbers, dtype), field_of(np.zeros_like(numbers), dtype)

        @qd.func
        def factor(b, kind: qd.template()):
            for k in range(blocks):
                k0 = k * size
                k1 = qd.min(k0 + size, n)
                diagonal = kind.eye(dtype=dtype)
                diagonal[:] = a[b, k0:k1, k0:k1]
                for j in range(k0):
                    v = lower[b, k0:k1, j]
                    diagonal -= qd.outer(v, v)
                diagonal.cholesky_(1e-12)
                for i in range(k + 1, blocks):
                    i0 = i * size
                    i1 = qd.min(i0 + size, n)
                    below = kind.zeros(dtype=dtype)
                    below[:] = a[b, i0:i1, k0:k1]
                    for j in range(k0):
                        below -= qd.outer(lower[b, i0:i1, j], lower[b, k0:k1, j])
                    diagonal.solve_triangular_(below)
                    lower[b, i0:i1, k0:k1] = below
                lower[b, k0:k1, k0:k1] = diagonal

        @qd.kernel
        def run():
            qd.loop_config(block_dim=size)
            for i in range(2 * size):
                factor(i // size, tile)

        run()
        assert close(np.tril(lower.to_numpy()), np.linalg.cholesky(numbers), rounding)


@has_warps
@TILES
@TYPES
def test_triangular_solve_and_outer_products(tile, dtype, rounding):
    n = tile.SIZE
    r = np.random.default_rng(1)
    lower, right = np.tril(r.normal(size=(n, n))) + 4 * np.eye(n), r.normal(size=(n, n))
    l, b, columns = field_of(lower, dtype), field_of(right, dtype), field_of(r.normal(size=(n, 4)), dtype)
    x, products = field_of(0 * right, dtype), field_of(0 * right, dtype)

    @qd.kernel
    def run():
        qd.loop_config(block_dim=n)
        for i in range(n):
            left, t = tile.zeros(dtype=dtype), tile.zeros(dtype=dtype)
            left[:] = l[0:n, 0:n]
            t[:] = b[0:n, 0:n]
            left.solve_triangular_(t)
            x[0:n, 0:n] = t
            t.eye_()
            t -= qd.outer(columns[0:n, 0], columns[0:n, 1])
            t -= qd.outer(columns[i, 2], columns[i, 3])
            products[0:n, 0:n] = t

    run()
    c = columns.to_numpy().astype(np.float64)
    assert close(x.to_numpy(), np.linalg.solve(lower, right.T).T, rounding)
    assert close(products.to_numpy(), np.eye(n) - np.outer(c[:, 0], c[:, 1]) - np.outer(c[:, 2], c[:, 3]), rounding)


@has_warps
def test_parts_end_with_their_bounds_and_with_the_array():
    a, whole, part = field_of(np.arange(400.0).reshape(20, 20), qd.f32), qd.field(qd.f32, (20, 20)), qd.ndarray(qd.f32, (20, 20))
    part.fill(-1)

    @qd.kernel
    def run(to: qd.types.ndarray(), n: qd.i32):
        qd.loop_config(block_dim=16)
        for _ in range(16):
            t = qd.simt.Tile16x16.eye(dtype=qd.f32)
            t[:] = a[10:26, 12:28]
            whole[10:26, 12:28] = t
            t.eye_()
            t[:] = a[3:3 + n, 4:n]
            to[1:6, 2:4] = t

    run(part, 8)
    wanted = np.arange(400.0).reshape(20, 20)
    assert (whole.to_numpy()[10:, 12:] == wanted[10:, 12:]).all() and not whole.to_numpy()[:10].any() and not whole.to_numpy()[:, :12].any()
    here = np.full((20, 20), -1.0)
    here[1:6, 2:4] = wanted[3:8, 4:6]
    assert (part.to_numpy() == here).all()


@has_warps
def test_tiles_are_values_and_rows_are_numbers():
    y = qd.field(qd.f32, (2, 16))

    @qd.func
    def made(k):
        t = qd.simt.Tile16x16.eye(dtype=qd.f32)
        t.r[2] = k
        return t

    @qd.kernel
    def run():
        qd.loop_config(block_dim=16)
        for i in range(16):
            t = made(5)
            u = t
            u.r[2] += 1
            y[0, i], y[1, i] = t.r[2], u.r[2] + u.r[15]

    run()
    assert y.to_numpy().tolist() == [[5] * 16, [6] * 15 + [7]]


@has_warps
def test_pivots_are_not_below_a_limit_of_each_lane():
    y = qd.field(qd.f64, (16, 16))

    @qd.kernel
    def run():
        qd.loop_config(block_dim=16)
        for i in range(16):
            t = qd.simt.Tile16x16.zeros(dtype=qd.f64)
            t.cholesky_(1.0 + i)
            y[0:16, 0:16] = t

    run()
    assert close(y.to_numpy(), np.diag(np.sqrt(1.0 + np.arange(16))), 1e-15)


@has_warps
@TILES
def test_tiles_of_the_default_type(tile):
    y = qd.field(qd.f32, (32, 32))

    @qd.kernel
    def run():
        qd.loop_config(block_dim=tile.SIZE)
        for _ in range(tile.SIZE):
            y[0:32, 0:32] = tile.eye()

    run()
    assert (y.to_numpy() == np.diag(np.arange(32) < tile.SIZE)).all() and repr(tile) == f"qd.simt.Tile{tile.SIZE}x{tile.SIZE}"


# -- segmented reductions --------------------------------------------------------------------------


def segmented(combine, values, heads, group):
    result = []
    for i, v in enumerate(values):
        result.append(v if i % group == 0 or heads[i] else combine(result[-1], v))
    return result


@has_warps
@pytest.mark.parametrize("name, combine", [("add", lambda a, b: a + b), ("min", min), ("max", max)])
@pytest.mark.parametrize("dtype", [qd.i32, qd.f32, qd.f64])
def test_segmented_reductions(name, combine, dtype):
    subgroup, count = qd.simt.subgroup, 77    # the last warp is not full
    of_warps, of_groups = getattr(subgroup, f"segmented_reduce_{name}"), getattr(subgroup, f"segmented_reduce_{name}_tiled")
    values = (np.arange(count) * 37 % 41 - 20).tolist()
    r = np.random.default_rng(3)
    for density in 0, 0.3, 1:
        heads = (r.random(count) < density) * r.integers(-3, 0, count)
        v, h = field_of(np.array(values), qd.f64), qd.field(qd.i32, count)
        h.from_numpy(heads.astype(np.int32))
        y = qd.field(dtype, (7, count))

        @qd.kernel
        def run():
            qd.loop_config(block_dim=64)
            for i in range(count):
                x = qd.cast(v[i], dtype)
                y[6, i] = of_warps(x, h[i])
                for k in qd.static(range(6)):
                    y[k, i] = of_groups(x, h[i], k)

        run()
        wanted = [segmented(combine, values, heads, 2**k) for k in (0, 1, 2, 3, 4, 5, 5)]
        assert (y.to_numpy() == np.array(wanted)).all()


# -- what is refused -------------------------------------------------------------------------------


def refused(kernel, *words, gradient=False):
    with pytest.raises(Exception) as error:
        kernel.grad() if gradient else kernel()
    text = str(error.value)
    assert re.search(r"test_tiles\.py\W*(:|, line )\d+", text), text
    assert all(re.search(word, text) for word in words), text


def in_a_range(act):
    @qd.kernel
    def run():
        qd.loop_config(block_dim=32)
        for i in range(32):
            act(i)
    return run


def test_the_cpu_has_none():
    if NAME != "cpu":
        pytest.skip("of the CPU")

    @qd.kernel
    def made():
        for _ in range(32):
            t = qd.simt.Tile16x16.eye(dtype=qd.f32)
            t.cholesky_(0.0)

    @qd.kernel
    def reduced():
        for i in range(32):
            qd.simt.subgroup.segmented_reduce_add(i, 1)

    refused(made, "Tile16x16", "is for GPUs", "simt")
    refused(reduced, "is for GPUs", "simt")


def with_a_tile(act):
    @qd.func
    def inside(i):
        t = qd.simt.Tile32x32.zeros(dtype=qd.f32)
        act(t, i)
    return in_a_range(inside)


@has_warps
def test_what_cannot_be_loaded():
    a = qd.field(qd.f32, (32, 32))
    flat, deep, vectors = qd.field(qd.f32, 32), qd.field(qd.f32, (2, 2, 32, 32)), qd.Vector.field(2, qd.f32, (32, 32))

    @qd.func
    def open_bound(t: qd.template(), i):
        t[:] = a[0:, 0:32]

    @qd.func
    def step(t: qd.template(), i):
        t[:] = a[0:32:2, 0:32]

    @qd.func
    def a_column(t: qd.template(), i):
        t[:] = a[0:32, 0]

    @qd.func
    def of_one_dimension(t: qd.template(), i):
        t[:] = flat[0:32]

    @qd.func
    def of_two_batches(t: qd.template(), i):
        t[:] = deep[0, 0, 0:32, 0:32]

    @qd.func
    def a_row(t: qd.template(), i):
        t[:] = a[0, 0:32]

    @qd.func
    def too_few(t: qd.template(), i):
        t[:] = deep[0, 0:32, 0:32]

    @qd.func
    def of_vectors(t: qd.template(), i):
        t[:] = vectors[0:32, 0:32]

    @qd.func
    def of_floats(t: qd.template(), i):
        t[:] = a[0:1.5, 0:32]

    for act, *words in ((open_bound, r"both bounds", r"x\[a:b, c:d\]"), (step, "no step"), (a_column, "rows and columns"),
            (of_one_dimension, "of 1 dimension", r"x\[a:b, c:d\]"), (of_two_batches, "4 dimensions"), (a_row, "2 indices"),
            (too_few, "3 indices", "4 dimensions"), (of_vectors, "vector"), (of_floats, "integers")):
        refused(with_a_tile(act), *words)


@has_warps
def test_what_cannot_be_assigned():
    a = qd.field(qd.f32, (32, 32))

    @qd.func
    def a_number(t: qd.template(), i):
        t[:] = 1.0

    @qd.func
    def an_element(t: qd.template(), i):
        t[0] = 1.0

    @qd.func
    def stored_number(t: qd.template(), i):
        a[0:32, 0:32] = 1.0

    @qd.func
    def stored_column(t: qd.template(), i):
        a[0:32, 0] = t

    @qd.func
    def part_as_value(t: qd.template(), i):
        a[0, 0] = a[0:32, 0] + 1.0

    for act, *words in ((a_number, "rows and columns"), (an_element, r"tile\[:\]"), (stored_number, "cannot be assigned to a part"),
            (stored_column, "rows and columns"), (part_as_value, "a part of an array is no number", r"tile\[:\]")):
        refused(with_a_tile(act), *words)


@has_warps
def test_what_tiles_do_not_do():
    a = qd.field(qd.f32, (32, 32))

    @qd.func
    def added(t: qd.template(), i):
        t += qd.outer(a[0:32, 0], a[0:32, 0])

    @qd.func
    def no_product(t: qd.template(), i):
        t -= a[0:32, 0]

    @qd.func
    def outer_of_tiles(t: qd.template(), i):
        t -= qd.outer(t, t)

    @qd.func
    def outer_as_value(t: qd.template(), i):
        a[0, 0] = qd.outer(1.0, 2.0)

    @qd.func
    def outer_in_sums(t: qd.template(), i):
        t -= qd.outer(1.0, 2.0) + qd.outer(1.0, 2.0)

    @qd.func
    def upper(t: qd.template(), i):
        t.solve_triangular_(t, lower=False)

    @qd.func
    def solved_for_a_number(t: qd.template(), i):
        t.solve_triangular_(1.0)

    @qd.func
    def other_size(t: qd.template(), i):
        u = qd.simt.Tile16x16.zeros(dtype=qd.f32)
        t.solve_triangular_(u)

    for act, *words in ((added, r"tile -= qd\.outer\(a, b\)"), (no_product, r"tile -= qd\.outer\(a, b\)"), (outer_of_tiles, "qd.outer", "numbers"),
            (outer_as_value, "what `qd.outer` gives"), (outer_in_sums, "what `qd.outer` gives is no number", r"tile -="),
            (upper, "lower=True"), (solved_for_a_number, "solve_triangular_", "a tile"), (other_size, "of 32 rows", "one of 16")):
        refused(with_a_tile(act), *words)


@has_warps
def test_what_types_are_none():
    def of(dtype):
        @qd.func
        def act(i):
            t = qd.simt.Tile16x16.zeros(dtype=dtype)
            t.eye_()
        return act

    for dtype in qd.i32, 3:
        refused(in_a_range(of(dtype)), "Tile16x16", "f32", "f64")


@has_warps
def test_outside_of_ranges_and_in_gradients():
    x, y = qd.field(qd.f32, (32, 32), needs_grad=True), qd.field(qd.f32, 32, needs_grad=True)

    @qd.kernel
    def outside():
        t = qd.simt.Tile16x16.eye(dtype=qd.f32)
        x[0:16, 0:16] = t

    @qd.kernel
    def factored():
        qd.loop_config(block_dim=32)
        for _ in range(32):
            t = qd.simt.Tile32x32.eye(dtype=qd.f32)
            t[:] = x[0:32, 0:32]
            t.cholesky_(0.0)
            x[0:32, 0:32] = t

    @qd.kernel
    def reduced():
        qd.loop_config(block_dim=32)
        for i in range(32):
            y[i] = qd.simt.subgroup.segmented_reduce_add(x[0, i], i == 3)

    refused(outside, "outside")
    refused(factored, "no derivative", gradient=True)
    refused(reduced, "no derivative", gradient=True)


def test_on_the_host():
    with pytest.raises(Exception, match="Tile16x16.*kernel"):
        qd.simt.Tile16x16.eye()


@has_warps
def test_sizes_of_segmented_reductions():
    def of(size):
        @qd.func
        def act(i):
            qd.simt.subgroup.segmented_reduce_add_tiled(i, 1, size)
        return act

    @qd.func
    def of_run_time(i):
        qd.simt.subgroup.segmented_reduce_add_tiled(i, 1, i)

    refused(in_a_range(of(6)), "log2_size", "0 to 5", "6")
    refused(in_a_range(of(-1)), "log2_size", "0 to 5")
    refused(in_a_range(of_run_time), "log2_size", "known while the kernel is compiled")
