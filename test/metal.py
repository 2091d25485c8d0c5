"""A part of the unit tests that launch kernels, by the text of Metal's language, which is compiled as C++ and run on the host.

It takes a tenth of a second to compile a kernel, so these are few. All of them:
COSTATE_DEVICE=metal-host:f64 build/release/bin/costate-test --labels=devices
"""

import shutil

import unit
from report import Counts


def run(root, build, preset):
    counts = Counts()
    if not shutil.which("clang++-22"):
        counts.skips("kernels in Metal's language", "there is no clang++-22")
        return counts
    # Functions of f64 are no numbers of Metal, and slow there.
    return unit.run(root, build, preset, "devices,sample", COSTATE_DEVICE="metal-host:f64", COSTATE_VALIDATE="1",
                    GTEST_FILTER="-*OfF64*")
