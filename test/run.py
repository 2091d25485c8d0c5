"""Runs every test of a build and sums them up in one line.

The parts: unit tests (GoogleTest), the same on the host as a GPU, also under
several schedules, a part of them on Vulkan, by the text of Metal's language and by code
for AMD GPUs on the host and on an emulator, SPIR-V by Mesa's compiler for these, text tests (lit), the Python
package, its types, a program outside the tree, the listings of the documentation, its
site and its gallery, ranks of MPI, a round through the benchmarks, the rules about the tree itself, and
whether it links without shared LLVM.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import amd
import docs
import emulated
import external
import gallery
import listings
import metal
import mpi
import package
import python
import radv
import schedules
import simt
import smoke
import structure
import text
import typed
import unit
import vulkan
from report import Report

ROOT = Path(__file__).resolve().parent.parent


def sanitizer_environment():
    """Where generated code and tools find the runtime of the sanitizers."""
    folder = subprocess.run(
        ["clang++-22", "-print-file-name=libclang_rt.asan-x86_64.so"],
        capture_output=True, text=True).stdout.strip()
    found = Path(folder).parent if "/" in folder else None
    environment = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
                   "UBSAN_OPTIONS": "print_stacktrace=1"}
    if found:
        paths = [str(found), os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(p for p in paths if p)
    return environment


PARTS = {"unit": unit, "simt": simt, "schedules": schedules, "vulkan": vulkan, "metal": metal, "amd": amd, "emulated": emulated, "radv": radv, "text": text,
         "python": python, "types": typed, "external": external, "listings": listings, "docs": docs, "gallery": gallery, "mpi": mpi, "smoke": smoke,
         "structure": structure,
         "package": package}
QUICK = {"structure": structure.run, "text": text.run, "unit": unit.run_quick, "python": python.run_quick}


def chosen(arguments):
    """What runs each part."""
    parts = QUICK if arguments.quick else {name: part.run for name, part in PARTS.items()}
    return {name: run for name, run in parts.items() if not arguments.only or name in arguments.only}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="release")
    parser.add_argument("--build-dir", type=Path)
    parser.add_argument("--setup", type=int, default=0)
    parser.add_argument("--build", type=int, default=0)
    parser.add_argument("--only", action="append", help="a part, by name")
    parser.add_argument("--quick", action="store_true",
                        help="what a change most likely breaks, without what is slow")
    arguments = parser.parse_args()
    build = (arguments.build_dir or ROOT / "build" / arguments.preset).resolve()
    os.environ["COSTATE_CACHE"] = "0"  # tests see what this build compiles
    if arguments.preset == "asan":
        os.environ.update(sanitizer_environment())
    if not os.environ.get("COSTATE_DATA"):
        print("no test data (COSTATE_DATA or ../shared/data): tests that need it are skipped")

    start = time.monotonic()
    report = Report()
    for name, part in chosen(arguments).items():
        report.run(name, lambda: part(ROOT, build, arguments.preset))
    print(f"setup {arguments.setup} s, build {arguments.build} s, "
          f"run {time.monotonic() - start:.0f} s")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
