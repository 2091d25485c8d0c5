"""The unit tests that run on the host as a GPU, under other schedules of the
threads that wait for each other."""

import unit
from report import Counts
from simt import OTHERS

SEEDS = (1, 2)
SLOW = ":RandomKernel*:RandomRecordings*:*Kink*:Demo*:*Maths*:Limits*"


def run(root, build, preset):
    counts = Counts()
    for seed in SEEDS:
        under = unit.run(root, build, preset, COSTATE_DEVICE="simt", COSTATE_SIMT_SEED=str(seed),
                         GTEST_FILTER=OTHERS + SLOW)
        for name, output in under.failed:
            counts.fails(f"{name} with COSTATE_SIMT_SEED={seed}", output)
        if not under.failed:
            counts.passes()
    return counts
