"""The tests of the Python package, on the CPU and on the host as a GPU."""

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Counts

DEVICES = {"cpu": "", "simt": "not host"}  # and which of the tests run there, by their marks


def count(results, device, counts):
    for case in ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')} on {device}"
        wrong = [case.find(kind) for kind in ("failure", "error")]
        wrong = [element for element in wrong if element is not None]
        skipped = case.find("skipped")
        if wrong:
            counts.fails(name, wrong[0].text or "")
        elif skipped is not None:
            counts.skips(name, f"({skipped.get('message')})")
        else:
            counts.passes()


def run_on(device, python, root, build, counts, tests=("",), marks="", **chosen):
    """`tests`: files in the folder of the tests; `marks`: of pytest; `chosen`: environment variables."""
    environment = dict(os.environ, COSTATE_DEVICE=device, PYTHONPATH=str(build / "python"),
                       PYTHONDONTWRITEBYTECODE="1", **chosen)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        process = subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, f"--junitxml={results}",
             *(root / "python/tests" / test for test in tests)], env=environment, capture_output=True, text=True)
        if results.exists():
            count(results, device, counts)
        if process.returncode not in (0, 1) or not results.exists():
            counts.fails(f"pytest on {device}", process.stdout + process.stderr)


def interpreter(root, build, counts):
    """None, and a test that is skipped, where there is no package."""
    python = root / ".venv/bin/python"
    if list((build / "python").glob("costate/_core.*")) and python.exists():
        return python
    counts.skips("all", "(the package is not built: sanitized, or no PyPI)")
    return None


def run_quick(root, build, preset):
    counts = Counts()
    if python := interpreter(root, build, counts):
        run_on("cpu", python, root, build, counts, marks="not slow")
    return counts


def run(root, build, preset):
    counts = Counts()
    if python := interpreter(root, build, counts):
        with ThreadPoolExecutor(len(DEVICES)) as pool:
            list(pool.map(lambda device: run_on(device, python, root, build, counts, marks=DEVICES[device]), DEVICES))
    return counts
