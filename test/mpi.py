"""Ranks of MPI: gradients on 2, 3 and 4 of them, and what happens when one is lost."""

import os
import shutil
import subprocess

from report import Counts


def run_ranks(program, count, *arguments):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(["mpirun", "--oversubscribe", "-n", str(count), program, *arguments], env=environment, capture_output=True,
                          text=True, timeout=300)


def check_lost(program, how, counts):
    """The launcher may end the other ranks before they have said what is wrong; nobody hangs."""
    process = run_ranks(program, 3, how)
    named = process.stdout.count("RankLost")
    if process.returncode != 0 and (named or how == "kill"):
        counts.passes()
    else:
        counts.fails(how, process.stdout + process.stderr)


def run(root, build, preset):
    counts, program = Counts(), build / "bin/costate-mpi-test"
    if not program.exists() or not shutil.which("mpirun"):
        counts.skips("all", "(only where MPI is found)")
        return counts
    for count in (2, 3, 4):
        process = run_ranks(program, count)
        if process.returncode == 0 and process.stdout.split() == ["passed"] * count:
            counts.passes()
        else:
            counts.fails(f"{count} ranks", process.stdout + process.stderr)
    for how in ("lost", "kill"):
        check_lost(program, how, counts)
    return counts
