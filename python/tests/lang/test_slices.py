"""Starred indices, and slices of vectors and matrices with indices of run time."""

import numpy as np
import pytest

import costate as ti

vec2, vec3 = ti.types.vector(2, ti.f64), ti.types.vector(3, ti.f64)
M = np.arange(9.0).reshape(3, 3)


def field_of(values, **options):
    x = ti.Matrix.field(3, 3, ti.f64, len(values), **options)
    x.from_numpy(np.array(values))
    return x


@pytest.mark.parametrize("changes", [False, True])
def test_rows_and_columns(changes, double):
    @ti.kernel
    def k(j: ti.i32, change: ti.template()) -> (vec3, vec3, vec2):
        m = ti.Matrix([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])
        if ti.static(change):
            m[0, 0] += 0.0
        return m[:, j], m[j, :], m[1:, j]

    for j in range(3):
        column, row, part = k(j, changes)
        assert list(column) == M[:, j].tolist() and list(row) == M[j].tolist() and list(part) == M[1:, j].tolist()


def test_of_large_local_matrices(double):
    @ti.kernel
    def k(j: ti.i32) -> ti.f64:
        m = ti.Matrix.zero(ti.f64, 6, 6)
        for a in range(6):
            for b in range(6):
                m[a, b] = a * 6 + b
        m[j, :] = m[:, j]
        return m[j, 5] + m[j, 0] * 100

    assert k(3) == 33 + 300


def test_assignments(double):
    @ti.func
    def swap(m: ti.template(), i, j):
        m[:, i], m[:, j] = m[:, j], m[:, i]

    x = field_of([M, 10 * M])

    @ti.kernel
    def k(i: ti.i32, j: ti.i32):
        for e in x:
            m = x[e]
            swap(m, i, j)
            x[e] = m
            x[e][j, :] += 1.0
            x[e][i, 0:2] = ti.Vector([-1.0, -2.0])

    k(0, 2)
    for got, m in zip(x.to_numpy(), (M, 10 * M)):
        want = m[:, ::-1].copy()
        want[2] += 1
        want[0, :2] = -1, -2
        assert np.array_equal(got, want)


@pytest.mark.parametrize("local", [False, True])
def test_gradients(local, double):
    x = field_of([M + 1, M * M - 3], needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    column = np.array([2, 0])
    index = ti.field(ti.i32, 2)
    index.from_numpy(column.astype(np.int32))

    @ti.kernel
    def k(copy: ti.template()):
        for e in x:
            j = index[e]
            if ti.static(copy):
                m = x[e]
                m[:, j] *= 2.0
                y[None] += m[:, j].dot(m[j, :]) * (e + 1)
            else:
                y[None] += x[e][:, j].dot(x[e][j, :]) * (e + 1)

    with ti.ad.Tape(y):
        k(local)

    def f(values):
        total = 0.0
        for e, (m, j) in enumerate(zip(values.copy(), column)):
            if local:
                m[:, j] *= 2
            total += m[:, j] @ m[j] * (e + 1)
        return total

    at, want = x.to_numpy(), np.zeros((2, 3, 3))
    for place in np.ndindex(*at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-6
        want[place] = (f(at + step) - f(at - step)) / 2e-6
    assert x.grad.to_numpy() == pytest.approx(want, rel=1e-6, abs=1e-6)


def test_steps(double):
    @ti.kernel
    def k() -> ti.f64:
        v = ti.Vector([1.0, 2.0, 3.0, 4.0])
        v[::-1] = v
        v[1:3] = ti.Vector([9.0, 8.0])
        w = v[::2] + 10 * v[3:1:-1] + 100 * v[-2:]
        return w[0] + 1000 * w[1]

    v = np.array([4.0, 9.0, 8.0, 1.0])
    w = v[::2] + 10 * v[3:1:-1] + 100 * v[-2:]
    assert k() == w[0] + 1000 * w[1]


@pytest.mark.parametrize("index, text", [("0:j", "the bounds of a slice"), ("2:2", "is empty"), ("0:2, 0:2", "takes 1 indices")])
def test_refused(index, text, tmp_path):
    @ti.kernel
    def bounds(j: ti.i32) -> ti.i32:
        v = ti.Vector([1, 2, 3])
        return v[0:j].sum()

    @ti.kernel
    def empty(j: ti.i32) -> ti.i32:
        v = ti.Vector([1, 2, 3])
        return v[2:2].sum() + j

    @ti.kernel
    def many(j: ti.i32) -> ti.i32:
        v = ti.Vector([1, 2, 3])
        return v[0:2, 0:2].sum() + j

    with pytest.raises(ti.QuadrantsIndexError, match=text):
        {"0:j": bounds, "2:2": empty, "0:2, 0:2": many}[index](1)


def test_starred_indices():
    x, y = np.zeros((2, 2, 2), np.float32), ti.field(ti.f32, (2, 2))

    @ti.kernel
    def k(x: ti.types.ndarray()):
        for i in range(x.shape[0]):
            for J in ti.static(ti.grouped(ti.ndrange(2, 2))):
                x[(i, *J)] = 100 * i + 10 * J[0] + J[1]
        for I in ti.grouped(y):
            rest = ti.static((0,))
            y[(*I,)] += I[0]
            y[(I[0], *I[1:])] += 10 * I[1]
            y[(0, *rest)] += 100

    k(x)
    assert x.tolist() == [[[0, 1], [10, 11]], [[100, 101], [110, 111]]]
    assert y.to_numpy().tolist() == [[400, 10], [1, 11]]


def test_starred_values():
    @ti.func
    def f(a, b, c):
        return a + 10 * b + 100 * c

    @ti.kernel
    def k() -> ti.i32:
        v = ti.Vector([1, 2])
        return f(*v, 3) + ti.Vector([*v, 4])[2] * 1000

    @ti.kernel
    def number(a: ti.i32) -> ti.i32:
        return f(1, *a)

    assert k() == 4321
    with pytest.raises(ti.QuadrantsTypeError, match=r"`\*a`: a number of type i32 is not a list, tuple or vector"):
        number(1)


def test_any_and_all_give_one_value():
    @ti.kernel
    def k(a: ti.f32) -> ti.i32:
        m = ti.Matrix([[a, 0.0], [0.0, 0.0]])
        r = 0
        if any(m > 0):
            r += 1
        if all(m >= 0):
            r += 10
        if any([a > 5, a < -5]):
            r += 100
        return r + 1000 * ti.Vector([a]).any() + 10000 * m.any()

    assert [k(a) for a in (2.5, 0.0, -7.0)] == [11011, 10, 11100]
