"""Derivatives by scalar arguments: `k.grad(..., scalars=True)` returns them, `k.jvp(..., scalars={...})` takes tangents."""

import numpy as np
import pytest

import costate as ti


@pytest.fixture(params=[ti.f32, ti.f64], ids=str)
def dtype(request):
    return request.param


def fill(array, values):
    array.from_numpy(np.asarray(values))


def test_numbers_vectors_and_integers(dtype):
    @ti.kernel
    def k(a: dtype, n: ti.i32, v: ti.types.vector(2, dtype), m: ti.types.matrix(2, 2, dtype), x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = a * x[i] ** n + ti.sin(v[0] * x[i]) * v[1] + m[0, 1] * m[1, 0] * x[i]

    x, y = (ti.ndarray(dtype, 1000, needs_grad=True, needs_dual=True) for _ in range(2))
    xs = np.linspace(0.1, 1, 1000)
    fill(x, xs)
    y.grad.fill(1)
    v, m = ti.Vector([0.5, 2.0]), ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
    found = k.grad(1.5, 2, v, m, x, y, scalars=True)
    assert list(found) == ["a", "v", "m"]
    close = dict(rtol=1e-4 if dtype is ti.f32 else 1e-12)
    np.testing.assert_allclose(found["a"], (xs ** 2).sum(), **close)
    np.testing.assert_allclose(found["v"].to_list(), [(2 * np.cos(xs / 2) * xs).sum(), np.sin(xs / 2).sum()], **close)
    np.testing.assert_allclose(found["m"].to_list(), [[0, 3 * xs.sum()], [2 * xs.sum(), 0]], **close)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * xs + np.cos(xs / 2) + 6, **close)
    assert k.grad(1.5, 2, v, m, x, y) is None
    tangents = {"a": 2.0, "v": [0.0, 1.0]}
    k.jvp(1.5, 2, v, m, x, y, scalars=tangents)
    np.testing.assert_allclose(y.dual.to_numpy(), 2 * xs ** 2 + np.sin(xs / 2), **close)


def test_serial_code_and_changed_parameters(double):
    x, y = (ti.field(ti.f64, 4, needs_grad=True, needs_dual=True) for _ in range(2))

    @ti.kernel
    def k(a: ti.f64, n: ti.i32):
        for i in range(1):
            t = a
            for j in range(n):
                if t < 2:
                    t = t * x[j] + a
            y[0] = t
        b = a * 2
        for i in x:
            y[i] += b * b * x[i]

    x.fill(0.5)
    for _ in range(2):    # also after launches with a plain number
        k(0.7, 3)
        y.grad.fill(0)
        y.grad[0] = 1
        found = k.grad(0.7, 3, scalars=True)
        assert found == {"a": pytest.approx(1 + 0.5 + 0.25 + 0.125 + 8 * 0.7 * 0.5)}
        k.jvp(0.7, 3, scalars={"a": 1})
        assert y.dual[0] == pytest.approx(found["a"])


def test_members_and_objects(double):
    x = ti.field(ti.f64, 3, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    kind = ti.types.struct(a=ti.f64, b=ti.types.vector(2, ti.f64))

    @ti.data_oriented(template_primitives=False)
    class Model:
        def __init__(self):
            self.a, self.n = 0.5, 2

        @ti.kernel
        def run(self, k: kind):
            for i in x:
                loss[None] += self.a * x[i] ** self.n * k.a * k.b[1]

    x.fill(2)
    loss.grad.fill(1)
    found = Model().run.grad(kind(a=2.0, b=ti.Vector([0.0, 3.0])), scalars=True)
    assert found["a"] == 72 and found["k.a"] == 18
    assert found["k.b"].to_list() == [0, 12]


def test_what_has_no_gradient_is_not_returned(double):
    @ti.kernel
    def k(n: ti.i32, flag: ti.u1, x: ti.types.ndarray()):
        for i in x:
            x[i] += n
    assert k.grad(1, True, ti.ndarray(ti.f64, 2, needs_grad=True), scalars=True) == {}


def test_tangents_of_what_is_no_scalar_argument(double):
    x = ti.field(ti.f64, 3, needs_dual=True)

    @ti.kernel
    def k(a: ti.f64, n: ti.i32):
        for i in x:
            x[i] = a * n
    for wrong in ({"b": 1.0}, {"n": 1.0}, {"a": [1.0, 2.0]}):
        with pytest.raises(ti.errors.BadArgument, match="no float argument"):
            k.jvp(1.0, 2, scalars=wrong)
    assert x.to_numpy().tolist() == [0, 0, 0]


def test_second_derivatives(double):
    @ti.kernel
    def k(a: ti.f64, v: ti.types.vector(2, ti.f64), x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[0] += a * a * ti.sin(x[i]) * v[0] + v[0] * v[1] * x[i]

    x, y = ti.ndarray(ti.f64, 3, needs_grad=True, needs_dual=True), ti.ndarray(ti.f64, 1, needs_grad=True, needs_dual=True)
    xs = np.array([0.3, 0.6, 1.1])
    x.from_numpy(xs)
    x.dual.from_numpy(np.array([1.0, 0.0, -1.0]))
    y.grad.fill(1)
    found = ti.ad.hessian_vector_product(k, 1.5, [2.0, 3.0], x, y, scalars={"a": 0.5, "v": [1.0, -1.0]})
    sines, moved = np.sin(xs).sum(), np.cos(xs[0]) - np.cos(xs[2])
    assert found["a"] == pytest.approx(0.5 * 2 * sines * 2 + 1.0 * 2 * 1.5 * sines + 2 * 1.5 * 2 * moved)
    assert found["v"].to_list() == pytest.approx([0.5 * 2 * 1.5 * sines - xs.sum() + 1.5 ** 2 * moved, xs.sum()])
    assert y.dual.to_numpy().tolist() == [0]
