"""Kernels that read `x.grad` and whose gradient is taken: what depends on it would be lost."""

import pytest

import costate as ti
from costate import ad


def fields():
    return [ti.field(ti.f64, shape=3, needs_grad=True) for _ in range(2)]


def test_what_depends_on_a_gradient_is_refused():
    x, y = fields()

    @ti.kernel
    def k():
        for i in x:
            y[i] = x[i] * x.grad[i]

    with pytest.raises(ti.NotDifferentiable, match=r"test_gradient_of_gradients.py:\d+:\d+.*itself a gradient"):
        k.grad()


def test_so_it_is_under_a_tape():
    x, y = fields()
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            if x.grad[i] < 1.0:
                t = 2.0 * x.grad[i]
                loss[None] += t * y[i]

    with pytest.raises(ti.NotDifferentiable, match="itself a gradient"), ad.Tape(loss):
        k()


def test_through_an_array_in_between():
    x, y = fields()
    t = ti.field(ti.f64, shape=3)

    @ti.kernel
    def k():
        for i in x:
            t[i] = x.grad[i]
        for i in x:
            y[i] = t[i] * x[i]

    with pytest.raises(ti.NotDifferentiable, match="itself a gradient"):
        k.grad()


def test_as_an_argument():
    x, y = (ti.ndarray(ti.f64, (3,), needs_grad=True) for _ in range(2))

    @ti.kernel
    def k(g: ti.types.ndarray(), x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(3):
            y[i] = x[i] * g[i]

    other = ti.ndarray(ti.f64, (3,))
    other.fill(2.0)
    y.grad.fill(1.0)
    k.grad(other, x, y)
    assert x.grad.to_numpy().tolist() == [2.0] * 3
    with pytest.raises(ti.Error, match="are the same array"):
        k.grad(x.grad, x, y)


def test_what_no_output_depends_on_is_free():
    x, y = fields()
    seen = ti.field(ti.f64, shape=3)

    @ti.kernel
    def k():
        for i in x:
            seen[i] = y.grad[i] * 2.0
            y[i] = x[i] * x[i]

    @ti.kernel
    def constant():
        for i in x:
            y[i] = x[i] * ti.stop_gradient(y.grad[i])

    x.fill(3.0)
    k()
    y.grad.fill(1.0)
    k.grad()
    assert x.grad.to_numpy().tolist() == [6.0] * 3


def test_a_step_outside_of_a_tape():
    x, y = fields()
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def compute():
        for i in x:
            loss[None] += x[i] * x[i]

    @ti.kernel
    def step():
        for i in x:
            x[i] -= 0.25 * x.grad[i]

    x.fill(1.0)
    for _ in range(2):
        with ad.Tape(loss):
            compute()
        step()
    assert x.to_numpy().tolist() == [0.25] * 3
