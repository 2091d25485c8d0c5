"""The lit tests of src and test."""

import json
import subprocess
import tempfile
from pathlib import Path

from report import Counts

LIT = "/usr/lib/llvm-22/bin/lit"
PASSED = ("PASS", "XFAIL", "FLAKYPASS")
SKIPPED = ("UNSUPPORTED", "SKIPPED", "EXCLUDED")


def run(root, build, preset):
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "lit.json"
        process = subprocess.run([LIT, "-q", "-o", output, build / "test"],
                                 capture_output=True, text=True)
        if not output.exists():
            counts.fails("lit", process.stdout + process.stderr)
            return counts
        tests = json.loads(output.read_text())["tests"]
    for test in tests:
        if test["code"] in PASSED:
            counts.passes()
        elif test["code"] in SKIPPED:
            counts.skips(test["name"])
        else:
            counts.fails(test["name"], test["output"])
    if process.returncode != 0 and not counts.failed:
        counts.fails("lit", process.stdout + process.stderr)
    return counts
