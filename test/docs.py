"""The documentation site, built without warnings."""

import os
import subprocess

from report import Counts


def builder(root, build, out):
    """The command that builds the site into `out`, and its environment."""
    command = [root / ".venv/bin/python", "-m", "sphinx", "-E", "-W", "--keep-going", "-q", "-b", "html",
               "-d", build / "doctrees", root / "docs", out]
    return command, dict(os.environ, PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")


def has_sphinx(root):
    python = root / ".venv/bin/python"
    return python.exists() and subprocess.run([python, "-c", "import furo, jupytext, myst_parser"],
                                              capture_output=True).returncode == 0


def run(root, build, preset):
    counts = Counts()
    if preset != "release" or not has_sphinx(root):
        counts.skips("site", "(only with Sphinx in .venv, and once: in release)")
        return counts
    command, environment = builder(root, build, root / "build/docs")
    counts.check("site", subprocess.run(command, env=environment, capture_output=True, text=True))
    return counts
