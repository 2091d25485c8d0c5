"""Unit tests on the host as a GPU, under other schedules of the threads that
wait for each other: one, or COSTATE_SCHEDULES many."""

import os

import unit
from report import Counts

SEEDS = range(1, 1 + int(os.environ.get("COSTATE_SCHEDULES", "1")))


def run(root, build, preset):
    counts = Counts()
    for seed in SEEDS:
        under = unit.run(root, build, preset, "devices,waits", COSTATE_DEVICE="simt", COSTATE_SIMT=f"seed={seed}")
        for name, output in under.failed:
            counts.fails(f"{name} with COSTATE_SIMT=seed={seed}", output)
        if not under.failed:
            counts.passes()
    return counts
