"""Random programs: is what Python source becomes the kernel that C++ makes of them?"""

import os
from pathlib import Path

import pytest

import costate
from costate import _core
from programs.compare import compare, programs_of

FUZZER = Path(os.environ.get("COSTATE_FUZZ", Path(_core.__file__).parents[2] / "bin/costate-fuzz"))


@pytest.fixture
def strict():
    """Numbers of 64 bits, in one order."""
    costate.init(arch=costate.cpu, default_fp=costate.f64, default_ip=costate.i64,
                 cpu_max_num_threads=1)
    yield
    costate.reset()


@pytest.mark.skipif(not FUZZER.exists(), reason=f"there is no {FUZZER}")
@pytest.mark.parametrize("first", [1, pytest.param(2000, marks=pytest.mark.slow)])
def test_kernels_of_python_and_of_cpp_agree(strict, first):
    compared = 0
    for seed, program, _, ir in programs_of(FUZZER, first, 25):
        if ir is not None:
            assert compare(seed, program, ir) == "", f"seed {seed}: {program}"
            compared += 1
    assert compared > 20
