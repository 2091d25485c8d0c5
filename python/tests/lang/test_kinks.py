"""Derivatives where a function has a kink are those of docs/guide/kinks.md."""

import numpy as np
import pytest

import costate as ti


def test_a_norm_has_slope_0_at_0(double):
    x = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True)
    y = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def total():
        for i in x:
            y[None] += x[i].norm()

    x[1] = [3.0, 4.0]
    total()
    assert y[None] == 5.0
    y.grad[None] = 1.0
    total.grad()
    assert x.grad.to_numpy() == pytest.approx(np.array([[0.0, 0.0], [0.6, 0.8]]), abs=1e-15)


def test_clamp_passes_the_derivative_on_at_its_bounds(double):
    x = ti.field(ti.f64, shape=5, needs_grad=True, needs_dual=True)
    y = ti.field(ti.f64, shape=5, needs_grad=True, needs_dual=True)

    @ti.kernel
    def clamped():
        for i in x:
            y[i] = ti.math.clamp(x[i], 0.0, 1.0)

    x.from_numpy(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))
    x.dual.fill(1.0)
    clamped.jvp()
    assert y.to_numpy().tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    y.grad.fill(1.0)
    clamped.grad()
    assert x.grad.to_numpy().tolist() == y.dual.to_numpy().tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_clamp_of_vectors_and_of_numbers():
    @ti.kernel
    def k(n: ti.i32) -> ti.types.vector(2, ti.f32):
        return ti.math.clamp(ti.Vector([n, 3.0]), 0.0, ti.Vector([2.0, 4.0]))

    assert list(k(5)) == [2.0, 3.0] and ti.math.clamp(7, 0, 3) == 3
