"""The unit tests as a program for arm64, which QEMU runs on this machine.

They take some ten times as long as otherwise, so they are no part of a test run:
`./dev test arm64` starts them. Each is named when it ends, and one that ends
the process fails alone.
"""

import argparse
import os
import sys
from pathlib import Path

from report import Report
from vulkan_all import counted, listed_tests, run_batch

ROOT = Path(__file__).resolve().parent.parent
BATCH = 400  # tests that one process runs: it takes half a minute to start
DEVICE = "cpu"


def batches(command, chosen):
    names = [suite + test for suite, tests in listed_tests(command, chosen, "").items() for test in tests]
    return [names[i:i + BATCH] for i in range(0, len(names), BATCH)]


def run_all(command, arguments):
    outcomes = {}
    for names in batches(command, arguments.filter):
        outcomes.update(run_batch(command, DEVICE, names, arguments.limit))
    return counted(outcomes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "arm64")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of processor time for a test")
    parser.add_argument("filter", nargs="?", default="*", help="of GoogleTest")
    arguments = parser.parse_args()
    build = arguments.build_dir.resolve()
    os.environ["QEMU_LD_PREFIX"] = str(build / "sysroot")
    report = Report()
    report.run("arm64", lambda: run_all(["qemu-aarch64", build / "bin" / "costate-test"], arguments))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
