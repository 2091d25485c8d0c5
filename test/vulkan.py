"""A part of the unit tests that launch kernels, on Mesa's Vulkan driver for the CPU.

It takes seconds to assemble a gradient, so these are few. All of them:
COSTATE_DEVICE=vulkan build/release/bin/costate-test
"""

import unit

CHOSEN = ("AdbenchGmm.*:AdbenchLstm.EveryEntry*:Atomic.*:Functions.*:LongLoops.*:Local.InsertionSort:Local.HornerOverATable:"
          "Local.Cholesky*:Local.AroundARange*:SerialRanges.ALoopDrivesTimeSteps:Struct.*")


def run(root, build, preset):
    return unit.run(root, build, preset, COSTATE_DEVICE="vulkan", COSTATE_VALIDATE="1", GTEST_FILTER=CHOSEN)
