"""Genesis on Costate beside Genesis on Quadrants, in one run on two cores.

    python python/benchmarks/genesis/run.py [--wheel FILE] [--venvs DIR] [--only SCENE] [--device cpu|cuda]
                                            [--performance-mode] [--together] [--rounds N] [--json FILE]

Both run the same installed Genesis, unchanged, in a virtual environment that is made outside of the tree if it is not
there. `--python` takes another Python instead, which has Genesis and its needs, but no Quadrants. A process has one of
two folders on its path: Quadrants, or Costate by the name of Quadrants. Costate comes from a wheel, the newest of
build/wheels if none is named. `pip` obeys PIP_FIND_LINKS and PIP_NO_INDEX, where there is no network.

Each scene has a first process with empty caches, which ends after the first step (and its gradient), and then
processes that find these caches, `--rounds` of them, whose least times count; the systems alternate. Quadrants also
begins at a start that is moved by 1e-14: what comes of that is how far two right answers may be apart.
Prints a table.
"""

import argparse
import ast
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import table

FOLDER = Path(__file__).resolve().parent
WHEELS = FOLDER.parents[2] / "build" / "wheels"
GENESIS = ["genesis-world==1.4.5", "torch==2.13.0"]
QUADRANTS = "quadrants==1.3.3"
LIMIT = 1200  # seconds for a process
CACHES = ("COSTATE_CACHE_DIR", "QD_OFFLINE_CACHE_FILE_PATH", "GS_CACHE_FILE_PATH", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME",
          "CUDA_CACHE_PATH")


def execute(*command, **variables):
    done = subprocess.run([str(word) for word in command], env=os.environ | variables, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr.strip()}")
    return done.stdout


def install(python, *words):
    execute(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words)


def genesis_python(folder):
    """The Python of an environment with Genesis and without Quadrants."""
    home = folder / "genesis"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        print("making an environment with Genesis", file=sys.stderr)
        base = shutil.which("python3.12") or sys.executable
        execute(base, "-m", "venv", "--clear", home)
        install(python, *GENESIS)
        execute(python, "-m", "pip", "uninstall", "-q", "-y", "quadrants")
        (home / "ready").touch()
    return python


def folders(python, folder, wheel):
    """The folder of each system, by its name."""
    homes = {system: folder / system for system in table.SYSTEMS}
    if not (homes["quadrants"] / "quadrants").exists():
        install(python, "--no-deps", "--target", homes["quadrants"], QUADRANTS)
    shutil.rmtree(homes["costate"], ignore_errors=True)
    install(python, "--no-deps", "--target", homes["costate"], wheel)
    execute(python, "-m", "costate.quadrants", "install", "--target", homes["costate"], PYTHONPATH=str(homes["costate"]))
    return homes


def newest_wheel():
    found = sorted(WHEELS.glob(f"costate_lang-*-cp312-abi3-*_{platform.machine()}.whl"), key=lambda file: file.stat().st_mtime)
    if not found:
        raise SystemExit(f"no wheel in {WHEELS}: name one with --wheel")
    return found[-1]


def call(python, home, cache, scene, *options):
    paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {name: str(cache) for name in CACHES} | {
        "PYTHONPATH": os.pathsep.join(paths), "GENESIS_BEGIN": str(time.time())}
    try:
        done = subprocess.run([str(python), "scenes.py", scene, *map(str, options)], cwd=FOLDER, env=environment,
                              capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"error": f"not ready after {LIMIT} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("RESULT ") and done.returncode == 0:
            return json.loads(line[7:])
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return {"error": lines[-1] if lines else f"exit status {done.returncode}", "output": lines[-40:]}


def differences(one, other):
    """The largest difference of each array, of its largest element."""
    if not (one.exists() and other.exists()):
        return {}
    with np.load(one) as a, np.load(other) as b:
        return {name: difference(a[name], b[name]) if name in b else float("inf") for name in a}


def difference(a, b):
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("inf")
    return float(np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300))


def measure(python, homes, scene, arguments):
    """Of one scene: the answers of each system's processes, and how far their arrays are apart."""
    common = ["--device", arguments.device] + ["--performance-mode"] * arguments.performance_mode
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(len(homes) if arguments.together else 1) as pool:
        arrays = {system: Path(place) / f"{system}.npz" for system in (*homes, "moved")}

        def cold(system):
            return call(python, homes[system], Path(place) / system, scene, *common, "--first")

        def warm(system):
            moved = ["--moved", arrays["moved"]] * (system == "quadrants")
            return call(python, homes[system], Path(place) / system, scene, *common, "--arrays", arrays[system], *moved)

        rounds = [dict(zip(homes, pool.map(process, homes))) for process in [cold] + [warm] * arguments.rounds]
        answers = {system: {"cold": [rounds[0][system]], "warm": [one[system] for one in rounds[1:]]} for system in homes}
        return answers | {"difference": differences(arrays["costate"], arrays["quadrants"]),
                          "moved": differences(arrays["moved"], arrays["quadrants"])}


def scene_names():
    """Of scenes.py, which only a Python with Genesis imports."""
    tree = ast.parse((FOLDER / "scenes.py").read_text())
    found = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "SCENES")
    return [key.value for key in found.keys]


def versions(python, homes):
    code = ("import importlib.metadata as m, platform; print(platform.python_version(),"
            " *(n + ' ' + m.version(n) for n in ('genesis-world', 'torch', 'numpy', 'quadrants')), sep=', ')")
    return "Python " + execute(python, "-c", code, PYTHONPATH=str(homes["quadrants"])).strip()


def machine(python, device):
    if device == "cuda":
        return execute(python, "-c", "import torch; print(torch.cuda.get_device_name())").strip()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "a processor")
    return f"{len(os.sched_getaffinity(0))} cores of {name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "costate-genesis")
    parser.add_argument("--wheel", type=Path, help="of Costate")
    parser.add_argument("--python", type=Path, help="a Python with Genesis and its needs")
    parser.add_argument("--only", action="append", choices=scene_names(), metavar="SCENE", help=", ".join(scene_names()))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--performance-mode", action="store_true", help="Genesis compiles for the sizes of the scene")
    parser.add_argument("--together", action="store_true", help="both systems at the same time, where the machine is busy anyway")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])

    python = arguments.python or genesis_python(arguments.venvs)
    homes = folders(python, arguments.venvs, arguments.wheel or newest_wheel())
    result = {"machine": machine(python, arguments.device), "versions": versions(python, homes), "scenes": {}}
    for scene in arguments.only or scene_names():
        result["scenes"][scene] = measure(python, homes, scene, arguments)
        print(table.row_of(scene, result["scenes"][scene]), file=sys.stderr)
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1))
    print(table.page(result))


if __name__ == "__main__":
    main()
