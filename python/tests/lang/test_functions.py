"""Every function of floats of the language is in the package, with both derivatives."""

import math

import numpy as np
import pytest

import costate as ti
from costate import _core
from derivatives import in_both_modes

FUNCTIONS = {op.name: (operands, doc) for op, operands, doc in _core.functions()}


def points(name, operands):
    """One column for each operand, where every function is smooth."""
    above = name in ("acosh", "pow")
    return np.array([[0.13, 0.37, 0.71, 0.93][k:] + [0.13, 0.37, 0.71, 0.93][:k]
                     for k in range(operands)]) + above


def launched(function, columns):
    """(values, reverse, forward) of a `ti.func` at points; derivatives by the first operand."""
    n = columns.shape[1]
    x, y = (ti.field(ti.f64, shape=n, needs_grad=True, needs_dual=True) for _ in range(2))
    z = ti.field(ti.f64, shape=n)

    @ti.kernel
    def k():
        for i in x:
            y[i] = function(x[i], z[i])

    x.from_numpy(columns[0])
    z.from_numpy(columns[-1])
    return in_both_modes(k, x, y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_differences(name, double):
    own, (operands, _) = getattr(ti, name), FUNCTIONS[name]

    @ti.func
    def of(a, b):
        return own(a) if ti.static(operands == 1) else own(a, b)

    columns = points(name, operands)
    value, reverse, forward = launched(of, columns)
    step = 1e-5
    shifted = [columns + np.array([[by]] + [[0.0]] * (operands - 1)) for by in (step, -step)]
    above, below = (launched(of, each)[0] for each in shifted)
    np.testing.assert_allclose(reverse, (above - below) / (2 * step), rtol=1e-8)
    np.testing.assert_allclose(forward, reverse, rtol=1e-14)
    if of_numbers := getattr(math, name, None):
        np.testing.assert_allclose(value, [of_numbers(*p) for p in columns.T], rtol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_numbers_of_python(name):
    operands, doc = FUNCTIONS[name]
    own = getattr(ti, name)
    assert own.__doc__ == doc

    @ti.kernel
    def k(a: ti.f64, b: ti.f64) -> ti.f64:
        return own(a) if ti.static(operands == 1) else own(a, b)

    for point in points(name, operands).T:
        assert own(*point) == pytest.approx(k(point[0], point[-1]), rel=1e-14)
