"""A few unit tests that launch kernels, by code objects for AMD GPUs on an emulator of their instruction set (test/emulator).

It runs about ten thousand instructions of a wave per second, so these are few. More of them:
COSTATE_AMD_EMULATOR=".venv/bin/python test/emulator" COSTATE_DEVICE=amd-emulator:gfx942 build/release/bin/costate-test --labels=devices,sample
"""

import os
import subprocess

import unit
from report import Counts

CHIPS = ("gfx942", "gfx1100")
# Atomic operations and loops of them, gradients with a tape, derivatives of every kind of function, errors of one work item and of
# many, sums that stay within their type, numbers of 16 bits.
TESTS = ("Atomic.LoopsOfCompareExchange", "Atomic.TruthValues", "Atomic.DerivativesWhereNobodyInterrupts", "Atomic.CountersOfSerialCodeSteerGradients",
         "Atomic.IndicesAreChecked", "MathFunction.BitsAreCounted", "Half.SignsAndConstants", "ErrorConformance.TheFirstOfManyWorkItemsIsNamed")
# A random program with more values alive across a branch than there are registers, and its seed.
MANY_VALUES = ("gfx942", "test/emulator/many_values.txt", 110720543)


def run_program(root, build, environment, chip, path, seed):
    return subprocess.run([build / "bin/costate-fuzz", "--device", f"amd-emulator:{chip}", "--seed", str(seed), "--replay", root / path],
                          capture_output=True, text=True, env=dict(os.environ, COSTATE_CACHE="0", **environment))


def run(root, build, preset):
    counts = Counts()
    python = root / ".venv/bin/python"
    if not python.exists() or subprocess.run([python, "-c", "import tinygrad.renderer.amd"], capture_output=True).returncode:
        counts.skips("code for AMD GPUs on an emulator", "there is no tinygrad in .venv")
        return counts
    environment = {"COSTATE_AMD_EMULATOR": f"{python} -B {root / 'test/emulator'}"}
    for chip in CHIPS:
        counts.add(unit.run(root, build, preset, "devices,sample", COSTATE_DEVICE=f"amd-emulator:{chip}", GTEST_FILTER=":".join(TESTS),
                            **environment))
    counts.check("many values across a branch on gfx942", run_program(root, build, environment, *MANY_VALUES))
    return counts
