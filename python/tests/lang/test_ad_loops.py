"""Gradients through loops and branches, of fields and of ndarrays."""

import math

import numpy as np
import pytest

import costate as ti

KINDS = ("field", "ndarray")


def arrays(kind, *shapes, dtype=ti.f64):
    make = ti.field if kind == "field" else ti.ndarray
    return [make(dtype, shape=s, needs_grad=True, needs_dual=True) for s in shapes]


def gradient(kernel, x, y, at):
    x.from_numpy(np.asarray(at, x.to_numpy().dtype))
    kernel()
    y.grad.fill(1)
    x.grad.fill(0)
    kernel.grad() if not hasattr(kernel, "args") else kernel.grad(*kernel.args)
    return y.to_numpy(), x.grad.to_numpy()


@pytest.mark.parametrize("n", [0, 1, 7, 60])
def test_a_recurrence(n, double):
    x, y = arrays("field", 4, 4)

    @ti.kernel
    def k(n: ti.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = 0.95 * v + 0.01 * ti.sin(v)
            y[i] = v

    at = np.array([0.1, 0.5, 1.0, 2.0])
    x.from_numpy(at)
    k(n)
    y.grad.fill(1)
    k.grad(n)
    v, d = at.copy(), np.ones(4)
    for _ in range(n):
        d *= 0.95 + 0.01 * np.cos(v)
        v = 0.95 * v + 0.01 * np.sin(v)
    assert y.to_numpy() == pytest.approx(v)
    assert x.grad.to_numpy() == pytest.approx(d)


def test_bounds_from_memory(double):
    x, y = arrays("field", 5, 5)
    trips = ti.field(ti.i32, shape=5)

    @ti.kernel
    def k():
        for i in x:
            p = 1.0
            for j in range(trips[i]):
                p *= x[i]
            y[i] = p

    trips.from_numpy(np.array([0, 1, 2, 3, 9], np.int32))
    value, slope = gradient(k, x, y, [1.1, 1.2, 1.3, 1.4, 1.5])
    assert value == pytest.approx([1, 1.2, 1.69, 1.4 ** 3, 1.5 ** 9])
    assert slope == pytest.approx([0, 1, 2.6, 3 * 1.4 ** 2, 9 * 1.5 ** 8])


def test_nested_triangular_loops_on_ndarrays(double):
    x, y = arrays("ndarray", 3, 3)

    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in range(a.shape[0]):
            s = 0.0
            for j in range(i + 2):
                t = a[i]
                for l in range(j):
                    t = t * a[i] + l
                s += t
            b[i] = s

    def f(v, i):
        s = 0
        for j in range(i + 2):
            t = v
            for l in range(j):
                t = t * v + l
            s += t
        return s

    at = [0.5, 0.7, 0.9]
    x.from_numpy(np.array(at))
    k(x, y)
    y.grad.fill(1)
    k.grad(x, y)
    for i, v in enumerate(at):
        assert y[i] == pytest.approx(f(v, i))
        assert x.grad[i] == pytest.approx((f(v + 1e-6, i) - f(v - 1e-6, i)) / 2e-6, rel=1e-6)


def test_fibonacci(double):
    x, y = arrays("field", (), ())

    @ti.kernel
    def k(n: ti.i32):
        for _ in range(1):
            p, q = 0.0, x[None]
            for i in range(n):
                p, q = q, p + q
            y[None] = p

    x[None] = 1
    k(20)
    y.grad[None] = 1
    k.grad(20)
    assert y[None] == 6765 and x.grad[None] == 6765


def test_csr_rows(double):
    values, y = arrays("field", 9, 4)
    starts = ti.field(ti.i32, shape=5)

    @ti.kernel
    def k():
        for i in y:
            s = 1.0
            for j in range(starts[i], starts[i + 1]):
                s *= values[j]
            y[i] = s

    starts.from_numpy(np.array([0, 3, 3, 5, 9], np.int32))
    at = np.linspace(1, 2, 9)
    _, slope = gradient(k, values, y, at)
    for lo, hi in ((0, 3), (3, 5), (5, 9)):
        assert slope[lo:hi] == pytest.approx(np.prod(at[lo:hi]) / at[lo:hi])


def test_while_and_break(double):
    x, y = arrays("field", 4, 4)

    @ti.kernel
    def k():
        for i in x:
            r = x[i]
            while ti.abs(r * r - x[i]) > 1e-13:
                r = 0.5 * (r + x[i] / r)
            total = 0.0
            for j in range(100):
                if total > 3.0:
                    break
                if j % 2 == 0:
                    continue
                total += r
            y[i] = total

    at = np.array([0.5, 1.21, 4, 9.0])
    _, slope = gradient(k, x, y, at)
    iterations = [next(n for n in range(100) if n * math.sqrt(v) > 3) for v in at]
    assert slope == pytest.approx([n * 0.5 / math.sqrt(v) for n, v in zip(iterations, at)], rel=1e-9)


def test_newton_in_while_with_and(double):
    x, y = arrays("field", 3, 3)

    @ti.kernel
    def k():
        for i in x:
            r = 1.0
            n = 0
            while n < 60 and ti.abs(r * r * r - x[i]) > 1e-14:
                r -= (r * r * r - x[i]) / (3 * r * r)
                n += 1
            y[i] = r

    at = np.array([2.0, 8, 27])
    value, slope = gradient(k, x, y, at)
    assert value == pytest.approx(np.cbrt(at))
    assert slope == pytest.approx(np.cbrt(at) / at / 3)


@pytest.mark.parametrize("kind", KINDS)
def test_ifs(kind, double):
    x, y = arrays(kind, 6, 6)

    @ti.kernel
    def k(a: ti.types.ndarray() if kind == "ndarray" else ti.template(), b: ti.template()):
        for i in range(6):
            v = a[i]
            if v > 0.5:
                if i % 2 == 0:
                    v = v * v
                else:
                    v *= 3
            elif v > 0.2:
                v = ti.sin(v)
            b[i] = v

    at = np.array([0.1, 0.3, 0.6, 0.7, 0.8, 0.9])
    x.from_numpy(at)
    k(x, y)
    y.grad.fill(1)
    k.grad(x, y)
    assert x.grad.to_numpy() == pytest.approx(
        [1, math.cos(0.3), 1.2, 3, 1.6, 3])


def test_several_loops_and_serial_statements(double):
    x, y = arrays("field", 4, 4)
    u, z = arrays("field", 4, ())

    @ti.kernel
    def k():
        scale = x[0] * 2
        for i in x:
            u[i] = x[i] * scale
        z[None] = u[1] * u[2]
        for i in y:
            y[i] = u[i] + z[None]

    at = np.array([1.0, 2, 3, 4])
    _, slope = gradient(k, x, y, at)

    def f(v):
        u = v * v[0] * 2
        return sum(u + u[1] * u[2])
    expected = [(f(at + e) - f(at - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    assert slope == pytest.approx(expected, rel=1e-6)


def test_sibling_loops_in_a_loop(double):
    x, y = arrays("field", 3, 3)

    @ti.kernel
    def k(n: ti.i32):
        for i in x:
            s = 0.0
            for j in range(n):
                s += x[i] * j
            t = s * s
            for j in range(n):
                t = t * 0.5 + s * x[i]
            y[i] = t

    x.from_numpy(np.array([1.0, 2, 3]))
    k(4)
    y.grad.fill(1)
    k.grad(4)

    def f(v):
        s = sum(v * j for j in range(4))
        t = s * s
        for _ in range(4):
            t = t * 0.5 + s * v
        return t
    assert x.grad.to_numpy() == pytest.approx([(f(v + 1e-6) - f(v - 1e-6)) / 2e-6 for v in (1, 2, 3)])


def test_a_vector_that_is_rebuilt_from_itself(double):
    x = ti.Vector.field(3, ti.f64, shape=2, needs_grad=True)
    y, = arrays("field", 2)

    @ti.kernel
    def k(n: ti.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = ti.Vector([v[1] * v[2], v[2] + v[0], v[0] * 0.5]).normalized()
            y[i] = v.x + 2 * v.y

    def f(v):
        for _ in range(5):
            v = np.array([v[1] * v[2], v[2] + v[0], v[0] * 0.5])
            v = v / np.linalg.norm(v)
        return v[0] + 2 * v[1]

    at = np.array([[1.0, 2, 3], [0.5, -1, 2]])
    x.from_numpy(at)
    k(5)
    y.grad.fill(1)
    k.grad(5)
    for i in range(2):
        assert y[i] == pytest.approx(f(at[i]))
        for c in range(3):
            e = 1e-6 * np.eye(3)[c]
            assert x.grad[i][c] == pytest.approx((f(at[i] + e) - f(at[i] - e)) / 2e-6, rel=1e-5)


def test_components_that_change_at_run_time(double):
    x, y = arrays("field", 3, ())

    @ti.kernel
    def k():
        for _ in range(1):
            v = ti.Vector([0.0, 0.0, 0.0])
            m = ti.Matrix([[1.0, 0.0], [0.0, 1.0]])
            for j in range(3):
                v[j] = x[j] * x[j]
            for j in range(2):
                m[j, 1 - j] += v[j]
            y[None] = v[0] * v[1] * v[2] + m.determinant()

    _, slope = gradient(k, x, y, [1.0, 2, 3])

    def f(v):
        u = v * v
        return np.prod(u) + 1 - u[0] * u[1]
    at = np.array([1.0, 2, 3])
    assert slope == pytest.approx([(f(at + e) - f(at - e)) / 2e-6 for e in 1e-6 * np.eye(3)])


def test_large_local_matrices(double):
    x, y = arrays("field", 7, ())

    @ti.kernel
    def k():
        for _ in range(1):
            m = ti.Matrix([[0.0] * 7 for _ in range(7)])
            for i in range(7):
                for j in range(7):
                    m[i, j] = x[i] * x[j]
            s = 0.0
            for i in range(7):
                s += m[i, (i + 1) % 7]
            y[None] = s

    at = np.arange(1.0, 8)
    _, slope = gradient(k, x, y, at)
    assert slope == pytest.approx(np.roll(at, 1) + np.roll(at, -1))


def test_time_steps_in_one_array(double):
    u, = arrays("field", (6, 8))
    y, = arrays("field", ())

    @ti.kernel
    def step(t: ti.i32):
        for i in range(8):
            u[t + 1, i] = 0.5 * u[t, i] + 0.25 * ti.sin(u[t, (i + 1) % 8])

    @ti.kernel
    def total():
        for i in range(8):
            y[None] += u[5, i] ** 2

    def f(v):
        for _ in range(5):
            v = 0.5 * v + 0.25 * np.sin(np.roll(v, -1))
        return (v ** 2).sum()

    at = np.linspace(0.1, 1, 8)
    start = np.zeros((6, 8))
    start[0] = at
    u.from_numpy(start)
    with ti.ad.Tape(y):
        for t in range(5):
            step(t)
        total()
    assert y[None] == pytest.approx(f(at))
    expected = [(f(at + e) - f(at - e)) / 2e-6 for e in 1e-6 * np.eye(8)]
    assert u.grad.to_numpy()[0] == pytest.approx(expected, rel=1e-6)


def test_a_reduction_variable_of_the_kernel(double):
    x, y = arrays("field", 5, ())

    @ti.kernel
    def k():
        s = 0.0
        for i in x:
            s += x[i] ** 2
        y[None] = ti.sqrt(s)

    at = np.array([1.0, 2, 3, 4, 5])
    _, slope = gradient(k, x, y, at)
    assert slope == pytest.approx(at / np.linalg.norm(at))


def test_gradients_accumulate_and_stores_consume(double):
    x, y = arrays("field", 3, 3)

    @ti.kernel
    def k():
        for i in x:
            y[i] = 3 * x[i]

    x.fill(1)
    k()
    for iteration in range(1, 4):
        y.grad.fill(1)
        k.grad()
        assert x.grad.to_numpy().tolist() == [3 * iteration] * 3
        assert y.grad.to_numpy().tolist() == [0] * 3


def test_integers_carry_nothing(double):
    x, y = arrays("field", 3, 3)

    @ti.kernel
    def k():
        for i in x:
            y[i] = int(x[i]) * 2.0 + x[i]

    _, slope = gradient(k, x, y, [1.5, 2.5, 3.5])
    assert slope.tolist() == [1, 1, 1]


def test_no_nan_from_the_branch_not_taken(double):
    x, y = arrays("field", 2, 2)

    @ti.kernel
    def k():
        for i in x:
            y[i] = ti.select(x[i] > 0, ti.sqrt(x[i]), 0.0)
            if x[i] > 0:
                y[i] += ti.log(x[i])

    _, slope = gradient(k, x, y, [0.0, 4.0])
    assert slope == pytest.approx([0, 0.25 + 0.25])


def test_functions_that_return_under_a_condition(double):
    x, y = arrays("field", 6, 6)

    @ti.func
    def f(v):
        if v > 3:
            return v * v
        s = 0.0
        for i in range(10):
            for j in range(3):
                s += v
                if s > 4:
                    return s * 2
        if v < 0:
            return -v
        return s

    @ti.func
    def pair(a):
        if a > 2:
            return a, ti.Vector([a, 1.0])
        return -a, ti.Vector([0.0, a])

    @ti.func
    def factorial(n: ti.template()):
        if ti.static(n < 2):
            return 1
        return n * factorial(n - 1)

    @ti.func
    def found(limit):
        for i, j in ti.ndrange(5, 5):
            if i * j > limit:
                return i * 10 + j
        return -1

    @ti.kernel
    def k():
        for i in x:
            a, b = pair(x[i])
            y[i] = f(x[i]) + a + b.y + factorial(12) * 1e-8 + found(5) + found(100)

    def expected(v):
        def g(v):
            if v > 3:
                return v * v
            s = 0
            for _ in range(30):
                s += v
                if s > 4:
                    return s * 2
            return -v if v < 0 else s
        return g(v) + (v + 1 if v > 2 else -v + v) + math.factorial(12) * 1e-8 + 23 - 1

    at = np.array([-1, 0.05, 0.55, 1.5, 2.5, 4.0])
    value, slope = gradient(k, x, y, at)
    assert value == pytest.approx([expected(v) for v in at])
    assert slope == pytest.approx([(expected(v + 1e-5) - expected(v - 1e-5)) / 2e-5 for v in at], rel=1e-4)
