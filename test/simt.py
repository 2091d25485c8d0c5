"""The unit tests that launch kernels, on the host as a GPU, with validation."""

import os

import unit


def run(root, build, preset):
    labels = "devices" if os.environ.get("COSTATE_SLOW") else "devices,-repeats"
    return unit.run(root, build, preset, labels, COSTATE_DEVICE="simt", COSTATE_VALIDATE="1")
