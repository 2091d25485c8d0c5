"""Products of derivatives are 0 where the adjoint is, whatever the other factor."""

import os

import numpy as np
import pytest

import costate as ti

ARCH = getattr(ti, os.environ.get("COSTATE_DEVICE") or "cpu")
SEEDS = [0.0, -0.0, 1.0, -2.0, 1e-300, np.inf, np.nan]
PLACES = [0.0, -0.0, 3.0, -0.5, 1e-200, 1e200, np.inf, -np.inf, np.nan]


def cube(x):
    return x * x * x


def opposite(x):
    return -x * x * x


def power(x):
    return x**3


@pytest.mark.parametrize("lanes", [1, 0])
@pytest.mark.parametrize("function", [cube, opposite, power])
def test_adjoints_of_zero_make_zeros(function, lanes):
    ti.init(arch=ARCH, lanes=lanes)
    inline = ti.func(function)
    seeds, places = (a.ravel() for a in np.meshgrid(SEEDS, PLACES))
    x, y = (ti.field(ti.f64, len(seeds), needs_grad=True) for _ in range(2))

    @ti.kernel
    def each():
        for i in x:
            y[i] = inline(x[i])

    x.from_numpy(places)
    y.grad.from_numpy(seeds)
    each.grad()
    with np.errstate(all="ignore"):
        wanted = np.where(seeds == 0, 0, seeds * function(1.0) * 3 * places**2)
    np.testing.assert_allclose(x.grad.to_numpy(), wanted, rtol=1e-14)
