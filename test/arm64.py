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
from vulkan_all import listed_tests, run_all

ROOT = Path(__file__).resolve().parent.parent
BATCH = 400  # tests that one process runs: it takes half a minute to start
DEVICE = "cpu"
STARTS = "starts this program anew, which QEMU does not do"


def names_of(command, arguments, labels):
    return [suite + test for suite, tests in listed_tests(command, arguments.filter, labels).items() for test in tests]


def batches(names, arguments):
    count = max(arguments.workers, -(-len(names) // BATCH))
    return [batch for i in range(count) if (batch := names[i::count])]


def run(command, arguments):
    counts = run_all(command, DEVICE, batches(names_of(command, arguments, "-starts"), arguments), arguments)
    for name in names_of(command, arguments, "starts"):
        counts.skips(name, STARTS)
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "arm64")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of processor time for a test")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("filter", nargs="?", default="*", help="of GoogleTest")
    arguments = parser.parse_args()
    build = arguments.build_dir.resolve()
    os.environ["QEMU_LD_PREFIX"] = str(build / "sysroot")
    command = ["qemu-aarch64", build / "bin" / "costate-test"]
    report = Report()
    report.run("arm64", lambda: run(command, arguments))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
