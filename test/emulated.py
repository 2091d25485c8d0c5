"""A few unit tests that launch kernels, by code objects for AMD GPUs on an emulator of their instruction set (test/emulator).

It runs about ten thousand instructions of a wave per second, so these are few. More of them:
COSTATE_AMD_EMULATOR=".venv/bin/python test/emulator" COSTATE_DEVICE=amd-emulator:gfx942 build/release/bin/costate-test --labels=devices,sample
"""

import subprocess
import unit
from report import Counts

CHIPS = ("gfx942", "gfx1100")
# Atomic operations and loops of them, gradients with a tape, derivatives of every kind of function, errors of one work item and of
# many, sums that stay within their type, numbers of 16 bits.
TESTS = ("Atomic.LoopsOfCompareExchange", "Atomic.TruthValues", "Atomic.DerivativesWhereNobodyInterrupts", "Atomic.CountersOfSerialCodeSteerGradients",
         "Atomic.IndicesAreChecked", "MathFunction.BitsAreCounted", "Half.SignsAndConstants", "ErrorConformance.TheFirstOfManyWorkItemsIsNamed")


def run(root, build, preset):
    counts = Counts()
    python = root / ".venv/bin/python"
    if not python.exists() or subprocess.run([python, "-c", "import tinygrad.renderer.amd"], capture_output=True).returncode:
        counts.skips("code for AMD GPUs on an emulator", "there is no tinygrad in .venv")
        return counts
    for chip in CHIPS:
        counts.add(unit.run(root, build, preset, "devices,sample", COSTATE_DEVICE=f"amd-emulator:{chip}", GTEST_FILTER=":".join(TESTS),
                            COSTATE_AMD_EMULATOR=f"{python} -B {root / 'test/emulator'}"))
    return counts
