"""`Tape(grad_check=[x])`: the differences are those of the same program."""

import numpy as np
import pytest

import costate as ti


@pytest.mark.parametrize("write", [
    lambda x, y, v: y.__setitem__(0, 7.0),
    lambda x, y, v: y.fill(2),
    lambda x, y, v: y.from_numpy(np.arange(3.0)),
    lambda x, y, v: v[1].__setitem__(0, 5.0),
    lambda x, y, v: y.copy_from(x),
    lambda x, y, v: x.grad.fill(0),
    lambda x, y, v: ti.ad.no_grad(lambda: v[1].__setitem__(0, 5.0))(),
], ids=["element", "fill", "from_numpy", "component", "copy_from", "gradient", "no_grad"])
def test_what_the_host_writes_is_repeated(double, write):
    x, y = (ti.field(ti.f64, 3, needs_grad=True) for _ in range(2))
    v, loss = ti.Vector.field(2, ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def add():
        for i in x:
            loss[None] += y[i] * y[i] * (1 + v[i].sum())
    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    with ti.ad.Tape(loss, grad_check=[x]):
        square()
        write(x, y, v)
        add()
    found, value = x.grad.to_numpy(), loss[None]
    v.fill(0)
    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    with ti.ad.Tape(loss):
        square()
        write(x, y, v)
        add()
    assert found.tolist() == x.grad.to_numpy().tolist() and value == pytest.approx(loss[None])


@pytest.mark.parametrize("shares", [True, False], ids=["shared memory", "copies on the host"])
def test_numbers_of_the_host_are_computed_again(double, monkeypatch, shares):
    if not shares:
        monkeypatch.setattr(ti.lang.runtime, "shares_memory", lambda: False)
    x = ti.field(ti.f64, 3, needs_grad=True)
    v, loss = ti.Vector.field(2, ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def add(a: ti.f64, w: ti.types.vector(2, ti.f64)) -> ti.f64:
        for i in x:
            loss[None] += a * x[i] * x[i] + v[i].dot(w)
        return x[0] * a

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    with ti.ad.Tape(loss, grad_check=[x]):
        a = x[0] * x[1] + 1
        v[1] = [a, np.sin(x[2])]
        v[2].y = a
        b = add(a, [x[0], 1.0])
        x[2] *= b
        add(b ** 2, v[1] * b)
    found = x.grad.to_numpy()
    assert np.abs(found).min() > 1


def test_a_kernel_that_does_nothing_has_no_derivatives_to_compare():
    x = ti.field(ti.f64, 3, needs_grad=True, needs_dual=True)

    @ti.kernel
    def nothing():
        pass

    with pytest.raises(ti.BadArgument, match="`nothing` does nothing, and has no derivatives"):
        ti.ad.check_gradient(nothing)
    ti.ad.hessian_vector_product(nothing)
    assert x.grad.to_numpy().tolist() == [0, 0, 0]
