"""The spellings of stencils that `benchmarks/stencils.py` measures have the gradients of differences."""

import json
import shutil
import subprocess
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


@pytest.mark.skipif(not shutil.which("llvm-objdump-22") or "avx2" not in Path("/proc/cpuinfo").read_text(), reason="needs LLVM's disassembler and AVX2")
def test_instructions_of_loops_are_counted(tmp_path):
    script = Path(__file__).resolve().parent.parent / "benchmarks/instructions.py"
    subprocess.run([sys.executable, script, "--json", tmp_path / "rows"], check=True, capture_output=True)
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert [row["case"] for row in rows] == ["2d-f32-cubic-inside", "3d-f32-cubic-inside"]
    for row in rows:
        assert row["kernel"] < row["gradient"] == sum(row[kind] for kind in ("products", "sums", "guards", "moves", "prefetches", "others"))
