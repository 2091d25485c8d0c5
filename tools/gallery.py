"""Runs the gallery: programs of examples/python that are written in cells, each as a notebook.

    gallery.py [--quick] [NAME...]

What a notebook draws and prints is kept in docs/gallery, where the site finds it. With --quick, notebooks have their smallest
sizes, must run without an error and draw a picture, and nothing is kept.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import jupytext
from jupyter_client import KernelManager
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
SOURCES, KEPT = ROOT / "examples/python", ROOT / "docs/gallery"
LARGEST = 150_000  # bytes of a picture


def names():
    return sorted(file.stem for file in SOURCES.glob("*.py") if "\n# %%" in file.read_text())


def notebook(name):
    made = jupytext.read(SOURCES / f"{name}.py")
    made.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return made


def fingerprint(made):
    """Of the code: whether a picture was drawn by it."""
    code = "\n\n".join(cell.source for cell in made.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def kept(name):
    """What the last whole run has printed, or an empty dictionary."""
    file = KEPT / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def printed(cell):
    return "".join(one.text for one in cell.get("outputs", ()) if one.output_type == "stream" and one.name == "stdout")


def execute(name, folder):
    """The notebook after its run in the folder, and the seconds of processors that it took."""
    made, before = notebook(name), resource.getrusage(resource.RUSAGE_CHILDREN)
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(Path(folder) / "kernel"))
    try:
        NotebookClient(made, km=manager, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    finally:
        manager.shutdown_kernel()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return made, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pictures(name, folder):
    found = sorted(file for file in Path(folder).iterdir() if file.suffix in (".png", ".gif"))
    if not found or any(not file.stem.startswith(name) for file in found):
        sys.exit(f"{name}: pictures are called {name}*.png or .gif, but these are {[file.name for file in found]}")
    return found


def keep(name, made, seconds, folder):
    for file in pictures(name, folder):
        if file.suffix == ".png":  # a third of the size
            Image.open(file).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True)
        if file.stat().st_size > LARGEST:
            sys.exit(f"{file.name} has {file.stat().st_size} bytes, more than {LARGEST}")
        shutil.copy(file, KEPT)
    results = {"code": fingerprint(made), "seconds": round(seconds), "printed": [printed(cell) for cell in made.cells]}
    (KEPT / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, and nothing is kept")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; without, all")
    options = parser.parse_args()
    os.environ["TQDM_DISABLE"] = "1"  # bars of progress are nothing to keep
    if options.quick:
        os.environ["COSTATE_QUICK"] = "1"
    for name in options.names or names():
        with tempfile.TemporaryDirectory() as folder:
            made, seconds = execute(name, folder)
            pictures(name, folder) if options.quick else keep(name, made, seconds, folder)
        print(f"{name}: {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
