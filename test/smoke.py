"""Every registered benchmark runs once, on its smallest case; so does every
example, and the fuzzer on a device."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from report import Counts


def check(process, lines, bench):
    if process.returncode != 0:
        return process.stdout + process.stderr
    if not lines:
        return "printed no result"
    for line in lines:
        result = json.loads(line)
        for key in ("bench", "case", "device", "threads"):
            if key not in result:
                return f"no '{key}' in {line}"
    return ""


def run_examples(build, counts):
    """In a folder of their own, where they leave their pictures."""
    for example in sorted((build / "bin").glob("example-*")):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.run([example], capture_output=True, text=True, timeout=600,
                                     cwd=folder)
        if process.returncode == 0:
            counts.passes()
        else:
            counts.fails(example.name, process.stdout + process.stderr)


def run_fuzzer(build, counts, gpu):
    process = subprocess.run(
        [build / "bin" / "costate-fuzz", "--device", "simt", "--count", "12", "--jobs", "2"],
        capture_output=True, text=True, timeout=600, env=dict(os.environ, COSTATE_SIMT=gpu))
    # Kernels may have printed before.
    summaries = [line for line in process.stdout.splitlines() if line.startswith("12 programs from seed 1 on, ")]
    if process.returncode == 0 and summaries:
        counts.passes()
    else:
        counts.fails(f"costate-fuzz --device simt, {gpu}", process.stdout + process.stderr)


def run(root, build, preset):
    counts = Counts()
    run_examples(build, counts)
    run_fuzzer(build, counts, "lanes=32")
    run_fuzzer(build, counts, "lanes=64")
    binary = build / "bin" / "costate-bench"
    if not binary.exists():
        counts.fails("costate-bench", "has not been built")
        return counts
    names = subprocess.run([binary, "--list"], capture_output=True, text=True).stdout.split()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "results.json"
            process = subprocess.run(
                [binary, name, "--smoke", "--json", output], capture_output=True, text=True,
                timeout=600, env={k: v for k, v in os.environ.items()
                                  if k not in ("COSTATE_DATA", "COSTATE_CACHE")})
            lines = output.read_text().splitlines() if output.exists() else []
        problem = check(process, lines, name)
        counts.fails(name, problem) if problem else counts.passes()
    return counts
