"""The gallery: each example runs as a notebook, in small."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import python
from report import Counts

NEEDS = {"archer": "torch"}


def has(interpreter, module):
    return subprocess.run([interpreter, "-c", f"import {module}"], capture_output=True).returncode == 0


def run(root, build, preset):
    counts = Counts()
    interpreter = python.interpreter(root, build, counts)
    if interpreter is None:
        return counts
    if preset != "release" or not has(interpreter, "jupytext, nbclient, ipykernel"):
        counts.skips("notebooks", "(only with Jupyter in .venv, and once: in release)")
        return counts
    script = root / "tools/gallery.py"
    environment = dict(os.environ, PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")
    names = subprocess.run([interpreter, "-c", "import gallery; print(*gallery.names())"], capture_output=True, text=True,
                           env=dict(environment, PYTHONPATH=str(script.parent)), check=True).stdout.split()

    def check(name):
        if name in NEEDS and not has(interpreter, NEEDS[name]):
            return counts.skips(name, f"(needs {NEEDS[name]})")
        return counts.check(name, subprocess.run([interpreter, script, "--quick", name], env=environment, capture_output=True,
                                                 text=True))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check, names))
    return counts
