"""Unit tests on the host as another GPU: under other schedules of the threads that
wait for each other, one, or COSTATE_SCHEDULES many, and with warps of 64 lanes, but for
those that are slow. With COSTATE_SLOW all tests of devices run with those."""

import os

import unit
from report import Counts

SEEDS = range(1, 1 + int(os.environ.get("COSTATE_SCHEDULES", "1")))
WAITS = "devices,waits"


def others():
    """What of the GPU is another one, and which tests run on it."""
    yield from ((f"seed={seed}", WAITS) for seed in SEEDS)
    yield "lanes=64", "devices" if os.environ.get("COSTATE_SLOW") else f"{WAITS},-slow"


def run(root, build, preset):
    counts = Counts()
    for other, labels in others():
        counts.add_as_one(unit.run(root, build, preset, labels, COSTATE_DEVICE="simt", COSTATE_SIMT=other), f"with COSTATE_SIMT={other}")
    return counts
