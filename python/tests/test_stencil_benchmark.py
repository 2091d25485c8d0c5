"""The spellings of stencils that `benchmarks/stencils.py` measures have the gradients of differences."""

import sys
from pathlib import Path

import numpy as np
import pytest

import costate as qd

pytestmark = pytest.mark.host

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
import stencils

SIDE = 6


def test_there_are_84():
    assert len({spelling.name for spelling in stencils.SPELLINGS}) == 84


@pytest.mark.parametrize("spelling", [s for s in stencils.SPELLINGS if s.type == "f64"], ids=lambda s: s.name)
def test_gradient_along_a_direction(spelling, tmp_path):
    qd.init(arch=qd.cpu)
    heat = spelling.kernel(SIDE, tmp_path)
    u, k, w = arrays = spelling.arrays(SIDE)
    numbers = np.random.default_rng(5)
    values, directions = ([numbers.uniform(0.5, 1.5, (SIDE,) * spelling.dims) for _ in range(3)] for _ in range(2))
    adjoint = numbers.uniform(-1, 1, (SIDE,) * spelling.dims)

    def result(step):
        for array, value, direction in zip(arrays, values, directions):
            array.from_numpy(value + step * direction)
        heat(*arrays)
        return (w.to_numpy() * adjoint).sum()

    step = 1e-4
    slope = (result(step) - result(-step)) / (2 * step)
    result(0.0)
    w.grad.from_numpy(adjoint)
    heat.grad(*arrays)
    # what the kernel does not store keeps its adjoint
    found = sum((array.grad.to_numpy() * direction).sum() for array, direction in zip(arrays, directions))
    assert found == pytest.approx(slope, rel=1e-6)
