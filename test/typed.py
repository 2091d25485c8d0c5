"""The types of the Python package, by mypy; its options are in pyproject.toml."""

import os
import subprocess

import python
from report import Counts


def run(root, build, preset):
    counts = Counts()
    interpreter = python.interpreter(root, build, counts)
    if interpreter is None:
        return counts
    # Without PyTorch nothing is known of what the package takes from it.
    if preset != "release" or subprocess.run([interpreter, "-c", "import mypy, torch"], capture_output=True).returncode:
        counts.skips("mypy", "(only with mypy and PyTorch in .venv, and once: in release)")
        return counts
    command = [interpreter, "-m", "mypy", "--config-file", root / "pyproject.toml", "--cache-dir", build / "mypy", "-p", "costate"]
    counts.check("mypy", subprocess.run(command, env=dict(os.environ, MYPYPATH=str(build / "python")), capture_output=True,
                                        text=True))
    return counts
