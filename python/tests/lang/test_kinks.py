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
