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
    if preset != "release" or subprocess.run([interpreter, "-c", "import mypy"], capture_output=True).returncode:
        counts.skips("mypy", "(only with mypy in .venv, and once: in release)")
        return counts
    command = [interpreter, "-m", "mypy", "--config-file", root / "pyproject.toml", "--cache-dir", build / "mypy", "-p", "costate"]
    counts.check("mypy", subprocess.run(command, env=dict(os.environ, MYPYPATH=str(build / "python")), capture_output=True,
                                        text=True))
    return counts
