"""The module below the package: what C++ offers, and that misuse is an exception."""

import gc
import threading

import numpy as np
import pytest

from costate import _core
from costate._core import DType, Loc, Op

HERE = Loc(__file__, 12, 3)


def sine(trace):
    """y[i] = sin(x[i]) * h"""
    x, y = trace.array(DType.f64, 1), trace.array(DType.f64, 1)
    h = trace.scalar(DType.f64)
    (i,) = trace.begin_range([trace.extent(x, 1, 0, HERE)], HERE)
    value = trace.pure(Op.sin, DType.f64, [trace.load(x, DType.f64, [i], HERE)], HERE)
    trace.store(y, DType.f64, [i], trace.pure(Op.mul, DType.f64, [value, h], HERE), HERE)
    trace.end()


def test_a_kernel_and_its_derivatives(device, trace):
    k = trace("sine", sine)
    values = np.linspace(0, 1, 10)
    x = _core.Array(device, DType.f64, [10], grad=True, dual=True)
    y = _core.Array(device, DType.f64, [10], grad=True, dual=True)
    x.write(values)
    k.launch(x, y, 3)
    assert np.allclose(y.to_numpy(), 3 * np.sin(values))
    y.grad.fill(1)
    k.grad(x, y, 3.0)
    assert np.allclose(x.grad.to_numpy(), 3 * np.cos(values))
    x.dual.fill(2)
    k.jvp(x, y, np.float32(3))
    assert np.allclose(y.dual.to_numpy(), 6 * np.cos(values))
    assert _core.check_gradient(k, x, y, 3.0)
    assert k.name == "sine" and [a.rank for a in k.arguments] == [1, 1, -1]
    assert "costate.kernel" in k.ir() and "sine" in k.report()
