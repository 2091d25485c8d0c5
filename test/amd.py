"""A part of the unit tests that launch kernels, by code for AMD GPUs, which runs on the host but for the last step of its compilation.

With 64 and with 32 lanes. All of them:
COSTATE_DEVICE=amd-host:gfx942 build/release/bin/costate-test --labels=devices
"""

import unit
from report import Counts

CHIPS = ("gfx942", "gfx1100")


def run(root, build, preset):
    counts = Counts()
    for chip in CHIPS:
        counts.add(unit.run(root, build, preset, "devices,sample", COSTATE_DEVICE=f"amd-host:{chip}", COSTATE_VALIDATE="1"))
    return counts
