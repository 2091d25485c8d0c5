"""Costate beside quadrants, taichi, warp-lang and drjit, in one run on two cores.

    python python/benchmarks/peers/run.py [--venvs DIR] [--only SYSTEM] [--part PART] [--rounds N] [--json FILE]

`--part recurrence --lengths 64 1024 "63, exponential" --both-maths --only costate --only quadrants` is the table of
recurrences with other lengths, and of Quadrants with `fast_math` and without it.

Each peer gets a virtual environment of its own, outside of the tree; Costate is the one that
this Python imports (PYTHONPATH=build/release/python). Times are the least of all rounds; the
systems alternate, so that what else the machine does hits all of them. Prints a page.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import common
import table

FOLDER = Path(__file__).resolve().parent
NUMPY = "numpy==2.4.6"
PEERS = {"quadrants": "1.4.0", "taichi": "1.7.4", "warp-lang": "1.19.0", "drjit": "1.5.0"}
VERSIONS = PEERS | {"equinox": "0.13.8"}  # which checkpoints.py asks for
PYTHONS = {"quadrants": "python3.12", "equinox": "python3.12"}  # the others have wheels for this one
SCRIPTS = {"warp-lang": ["warps.py"], "drjit": ["drjits.py"]}
PARTS = ("launch", "cold", "cached", "recurrence", "conformance")


def python_of(system, folder):
    """The interpreter of a system, or why there is none."""
    if system == "costate":
        return sys.executable, ""
    home = folder / f"{system}-{VERSIONS[system]}"
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return str(python), ""
    base = PYTHONS.get(system, sys.executable)
    for command in ([base, "-m", "venv", "--clear", home],
                    [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
                     f"{system}=={VERSIONS[system]}", NUMPY]):
        if not shutil.which(command[0]):
            return None, f"{command[0]} is not there"
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1]
    (home / "ready").touch()
    return str(python), ""


def call(system, python, part, cache):
    script = SCRIPTS.get(system, ["fields.py", system])
    part = "first" if part in ("cold", "cached") else part
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    bytecode = Path(tempfile.gettempdir()) / "costate-peers-bytecode" / system  # of no system it is made while its import is timed
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), PEERS_CACHE=str(cache),
                       PYTHONPYCACHEPREFIX=str(bytecode), PYTHONDONTWRITEBYTECODE="",
                       COSTATE_CACHE_DIR=str(cache), DRJIT_CACHE_DIR=str(cache), TI_LOG_LEVEL="error", QD_LOG_LEVEL="error")
    done = subprocess.run([python, *script, part], cwd=FOLDER, env=environment,
                          capture_output=True, text=True, timeout=3000)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    text = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
    return {"system": system, "error": text[-1]}


def measure(systems, parts, rounds):
    answers = {system: {part: [] for part in PARTS} for system in systems}
    for part in parts:
        for iteration in range(1 if part == "conformance" else rounds):
            for system, python in systems.items():
                with tempfile.TemporaryDirectory() as cache:
                    if part == "cached":
                        call(system, python, part, cache)
                    answers[system][part].append(call(system, python, part, cache))
                print(f"{part} {iteration + 1}: {system}", file=sys.stderr)
    return answers


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "costate-peers")
    parser.add_argument("--only", action="append")
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--lengths", nargs="+", choices=list(common.LENGTHS), help="of recurrences")
    parser.add_argument("--both-maths", action="store_true", help="recurrences without `fast_math` too, for all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    os.environ["PEERS_LENGTHS"] = json.dumps(arguments.lengths)
    os.environ["PEERS_BOTH_MATHS"] = str(int(arguments.both_maths))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])

    systems, missing = {}, {}
    for system in arguments.only or ["costate", *PEERS]:
        python, why = python_of(system, arguments.venvs)
        if python:
            systems[system] = python
        else:
            missing[system] = why
    result = {"processor": processor(), "cores": len(os.sched_getaffinity(0)),
              "missing": missing,
              "answers": measure(systems, arguments.part or PARTS, arguments.rounds)}
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
    print(table.page(result))


if __name__ == "__main__":
    main()
