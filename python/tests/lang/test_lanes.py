"""Work items of a CPU as lanes of vectors: the same bits for any number of them."""

import math
import os

import numpy as np
import pytest

import costate as ti

pytestmark = pytest.mark.skipif(os.environ.get("COSTATE_DEVICE", "cpu") not in ("", "cpu"), reason="lanes are those of CPUs")

SIZE = 45  # more than two vectors of the widest, and a rest
STARTS = [0.2 + 0.03 * (i * 7 % SIZE) for i in range(SIZE)]
COUNTS = [i * i % 11 for i in range(SIZE)]
LANES = (1, 4, 16, 64)


def ragged(v, n, math):
    for j in range(n):
        if (n + j) % 3 == 0:
            v = math.sin(v) * v + 0.3
        else:
            v = math.exp(-v) + 0.2 * v * j
    return v


def ended(v, n, math):
    k = 0
    while k < n:
        v = math.sin(v) + 0.4 * v
        if v > 1.1:
            break
        k += 1
    return v * v + k


def nested(v, n, math):
    for j in range(n % 5):
        for k in range(j, n):
            v = math.cos(v) * v + 0.1 * k
            if k == n % 4 + 2:
                break
        if j % 2 == n % 2:
            continue
        v = 0.7 * math.sin(v)
    return v


def returned(v, n, math):
    if n == 3:
        return v * v
    while abs(v * v - 0.9) > 0.001:
        v = 0.5 * (v + 0.9 / v)
        if n > 8:
            v = math.sin(v)
            break
    return v


BODIES = [ragged, ended, nested, returned]


def run(body, dtype, lanes):
    """The values and the gradient of `body` in every work item, and the report of its kernel."""
    ti.init(arch=ti.cpu, lanes=lanes, default_fp=dtype)
    inline = ti.func(body)
    x, y = (ti.field(dtype, SIZE, needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, SIZE)

    @ti.kernel
    def each():
        for i in x:
            y[i] = inline(x[i], n[i], ti)

    x.from_numpy(np.array(STARTS, dtype=x.to_numpy().dtype))
    n.from_numpy(np.array(COUNTS, dtype=np.int32))
    each()
    y.grad.fill(1)
    each.grad()
    return y.to_numpy(), x.grad.to_numpy(), each.report()


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
@pytest.mark.parametrize("body", BODIES)
def test_have_the_same_bits(body, dtype):
    values, gradient, _ = run(body, dtype, LANES[0])
    for lanes in LANES[1:]:
        others, slopes, report = run(body, dtype, lanes)
        assert f": {lanes} work items at a time, as lanes" in report
        np.testing.assert_array_equal(others, values)
        np.testing.assert_array_equal(slopes, gradient)


@pytest.mark.parametrize("body", BODIES)
def test_have_the_derivatives_of_plain_python(body):
    values, gradient, _ = run(body, ti.f64, 8)
    h = 1e-6
    for i, (v, n) in enumerate(zip(STARTS, COUNTS)):
        assert values[i] == pytest.approx(body(v, n, math), rel=1e-12)
        slope = (body(v + h, n, math) - body(v - h, n, math)) / (2 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("lanes", [3, -1, 128, 4.0, True, "4"])
def test_are_as_many_as_a_vector_can_have(lanes):
    with pytest.raises((TypeError, ValueError), match="lanes.*a power of 2 up to 64, or 0 for what pays"):
        ti.init(arch=ti.cpu, lanes=lanes)


def test_report_names_lanes_and_obstacles_by_line():
    ti.init(arch=ti.cpu, lanes=4)
    x, n = ti.field(ti.f32, SIZE), ti.field(ti.i32, SIZE)

    @ti.kernel
    def each():
        for i in x:
            for j in range(n[i]):
                x[i] = ti.sin(x[i])
        for i in x:
            x[i] *= 2.0
        for i in x:
            for j in range(n[i]):
                print(j)

    each()
    lines = [line.strip() for line in each.report().splitlines() if " lanes" in line and ".py:" in line and "kernel" not in line]
    assert [line.split(": ", 1)[1] for line in lines] == [
        "4 work items at a time, as lanes", "no lanes: straight code, left to the loop vectoriser", "no lanes: `print`"]
    numbers = [int(line.split(":")[1]) for line in lines]
    assert numbers == [numbers[0], numbers[0] + 3, numbers[0] + 5]
    assert lines[0].startswith("test_lanes.py:")


@pytest.mark.parametrize("lanes", (4, 8, 16))
@pytest.mark.parametrize("dtype", (ti.u8, ti.i8, ti.u1))
def test_bytes_under_a_mask_that_outlives_a_call(dtype, lanes):
    ti.init(arch=ti.cpu, default_fp=ti.f64, lanes=lanes, cpu_max_num_threads=1)

    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.f64, ndim=1), o: ti.types.ndarray(dtype=dtype, ndim=1), z: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in range(x.shape[0]):
            if o[i] == 0:
                z[i] += ti.erfc(x[i])
                o[i] = 0

    x, z = ti.ndarray(ti.f64, SIZE), ti.ndarray(ti.f64, SIZE)
    o = ti.ndarray(dtype, SIZE)
    flags = np.array([1 if c % 3 else 0 for c in COUNTS])
    x.from_numpy(np.array(STARTS))
    o.from_numpy(flags.astype(o.to_numpy().dtype))
    k(x, o, z)
    assert (o.to_numpy() == flags).all()
    wanted = [0.0 if flag else math.erfc(start) for flag, start in zip(flags, STARTS)]
    assert z.to_numpy() == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_elements_beside_each_other(dtype):
    """At the border too: lanes that are not there have no element that lies beside another one."""
    def launch(lanes):
        ti.init(arch=ti.cpu, lanes=lanes)

        @ti.kernel
        def corners(at: ti.types.ndarray(ti.i32), x: ti.types.ndarray(dtype), y: ti.types.ndarray(dtype)):
            for i in range(y.shape[0]):
                j, k = at[i, 0], at[i, 1]
                s = ti.cast(0, dtype)
                if j < x.shape[0] - 2 and k > 0:
                    s = x[j, k] - x[j + 1, k] + 3 * x[j + 2, k - 1]
                    m = 0
                    while m < j % 5:
                        s += x[j - m, k] * x[j - m, k - 1]
                        m += 1
                    m = 0
                    while m < 2:
                        s += x[j, k] * x[j + 1, k]
                        m += 1
                y[i] = s

        places = np.stack([np.arange(SIZE) % 9, np.arange(SIZE) * 5 % 7], 1).astype(np.int32)
        numbers = np.sin(np.arange(63.0)).reshape(9, 7)
        at, x, y = ti.ndarray(ti.i32, places.shape), ti.ndarray(dtype, (9, 7)), ti.ndarray(dtype, (SIZE,))
        at.from_numpy(places)
        x.from_numpy(numbers.astype(y.to_numpy().dtype))
        corners(at, x, y)
        values = y.to_numpy()
        ti.reset()
        return places, numbers, values

    places, x, one = launch(1)
    expected = [x[j, k] - x[j + 1, k] + 3 * x[j + 2, k - 1] + sum(x[j - m, k] * x[j - m, k - 1] for m in range(j % 5)) + 2 * x[j, k] * x[j + 1, k]
                if j < 7 and k > 0 else 0 for j, k in places]
    assert np.allclose(one, expected, rtol=1e-5, atol=1e-6)
    for lanes in LANES[1:]:
        assert np.array_equal(launch(lanes)[-1], one)


@pytest.mark.parametrize("lanes", LANES)
def test_elements_beside_each_other_by_sums_that_wrap(lanes):
    ti.init(arch=ti.cpu, lanes=lanes)

    @ti.kernel
    def add(x: ti.types.ndarray(ti.f64), at: ti.types.ndarray(ti.u32), y: ti.types.ndarray(ti.f64), o: ti.u32, both: ti.i32):
        for i in range(y.shape[0]):
            k = at[i]
            y[i] = x[ti.cast(k + o, ti.i32)] + 10 * x[ti.cast(k + o + ti.u32(1), ti.i32)]
            if both:
                y[i] += 100 * x[ti.cast(k + o + ti.u32(2), ti.i32)]

    numbers, result = np.arange(SIZE + 2.0), np.zeros(SIZE)
    add(numbers, (np.arange(SIZE) + 0x80000000).astype(np.uint32), result, 0x80000000, 1)
    ti.reset()
    assert np.array_equal(result, numbers[:-2] + 10 * numbers[1:-1] + 100 * numbers[2:])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("components, a, b", [(2, 0, 1), (2, 1, 1), (3, 0, 1), (3, 2, 0), (3, 1, 1), (4, 3, 1), (4, 0, 0), (8, 7, 2), (9, 4, 8), (9, 0, 0), (10, 9, 3)])
def test_straight_code_of_some_components(components, a, b, dtype):
    n, dtype = 53, getattr(ti, dtype)
    p, q, r = (ti.Vector.field(components, dtype, n, needs_grad=True) for _ in range(3))
    w = ti.field(dtype, n, needs_grad=True)

    @ti.kernel
    def work():
        for i in range(n):
            w[i] = p[i][a] * p[i][b]
            q[i][a] = 2.0 * p[i][b]
            r[i][b] += p[i][a]

    random = np.random.default_rng(3)
    values = {name: random.random((n, components) if name != "w" else n).astype(dtype.np) for name in "pqrw"}
    slopes = {name: random.random(values[name].shape).astype(dtype.np) for name in "pqrw"}
    for name, array in zip("pqrw", (p, q, r, w), strict=True):
        array.from_numpy(values[name])
        array.grad.from_numpy(slopes[name])
    work()
    one, other = values["p"][:, a], values["p"][:, b]
    expected = {name: values[name].copy() for name in "pqr"}
    expected["q"][:, a] = 2 * other
    expected["r"][:, b] += one
    assert np.array_equal(w.to_numpy(), one * other)
    assert all(np.array_equal(array.to_numpy(), expected[name]) for name, array in zip("pqr", (p, q, r), strict=True))
    work.grad()
    gradient = slopes["p"].astype(np.float64)
    gradient[:, a] += slopes["w"] * other + slopes["r"][:, b]
    gradient[:, b] += slopes["w"] * one + 2 * slopes["q"][:, a]
    assert np.allclose(p.grad.to_numpy(), gradient, rtol=1e-6)
    slopes["q"][:, a] = 0
    assert np.array_equal(q.grad.to_numpy(), slopes["q"]) and np.array_equal(r.grad.to_numpy(), slopes["r"])


@pytest.mark.parametrize("lanes", [0, 1, 4, 16])
def test_straight_code_of_matrices(lanes):
    n = 37
    ti.init(arch=ti.cpu, lanes=lanes)
    a, b, c = (ti.Matrix.field(3, 3, ti.f32, n, needs_grad=True) for _ in range(3))
    t = ti.field(ti.f32, n, needs_grad=True)

    @ti.kernel
    def work():
        for i in range(n):
            c[i] = a[i] @ b[i]
            t[i] = a[i][0, 1] + b[i].trace()

    random = np.random.default_rng(5)
    x, y, s = (random.random((n, 3, 3)).astype(np.float32) for _ in range(3))
    a.from_numpy(x)
    b.from_numpy(y)
    work()
    assert np.allclose(c.to_numpy(), x @ y, rtol=1e-6)
    assert np.allclose(t.to_numpy(), x[:, 0, 1] + np.trace(y, axis1=1, axis2=2), rtol=1e-6)
    c.grad.from_numpy(s)
    t.grad.fill(0.5)
    work.grad()
    by_a = s @ y.transpose(0, 2, 1)
    by_a[:, 0, 1] += 0.5
    assert np.allclose(a.grad.to_numpy(), by_a, rtol=1e-5)
    assert np.allclose(b.grad.to_numpy(), x.transpose(0, 2, 1) @ s + 0.5 * np.eye(3), rtol=1e-5)


@pytest.mark.parametrize("lanes", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("components", [2, 3, 4, 8, 9])
def test_one_component_of_narrowed_integers(components, lanes):
    """LLVM stores 8 bytes of a truncated number under a constant mask of one element."""
    n = 20
    ti.init(arch=ti.cpu, lanes=lanes, cpu_max_num_threads=1)
    for own in (0, components - 1):
        c, s, w = ti.Vector.field(components, ti.i32, n), ti.field(ti.i64, n), ti.field(ti.f64, n)
        c.fill(7)

        @ti.kernel
        def work():
            for i in range(n):
                c[i][own] = ti.cast(s[i], ti.i32)
                w[i] = ti.sin(w[i])

        work()
        expected = np.full((n, components), 7)
        expected[:, own] = 0
        assert np.array_equal(c.to_numpy(), expected)
