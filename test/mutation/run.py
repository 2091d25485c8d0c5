"""Do the fuzzers find seeded faults?

Each fault of faults.toml is put into a scratch copy of the tree; what depends
on it is built, and a fuzzer runs until it reports something. Unit tests take
its place where no random program gets. Prints a table, and how many were found.
The tree itself is not touched.
"""

import argparse
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import faults

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import text  # noqa: E402

PYTHON = ROOT / ".venv" / "bin" / "python"
SCRATCH = ROOT / "build" / "mutation"
TREE = SCRATCH / "tree"
BUILD = TREE / "build" / "release"
FINDING = {"ir": re.compile(r"^seed \d+: wrong: ([a-z-]+)"),
           "language": re.compile(r"(?:Failure|^\[  FAILED)"),
           "simt": re.compile(r"^seed \d+"),
           "recordings": re.compile(r"(?:Failure|^\[  FAILED)"),
           "lanes": re.compile(r"(?:Failure|^\[  FAILED)"),
           "python": re.compile(r"^seed \d+: (\w+)"),
           "tests": re.compile(r"(?:Failure|^\[  FAILED|^FAILED)")}
TESTS = {"language": "RandomKernel.AgreeForLonger",
         "recordings": "RandomRecordings.EqualThemForLonger",
         "lanes": "Lanes.*"}


def listed():
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [name for name in names.split("\0") if name and (ROOT / name).is_file()]


def copy_tree():
    """Makes the scratch copy equal to the tree; equal files keep their times."""
    wanted = set(listed())
    for name in wanted:
        source, target = ROOT / name, TREE / name
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        target.touch()
    for path in TREE.rglob("*"):
        if path.is_file() and BUILD not in path.parents and str(path.relative_to(TREE)) not in wanted:
            path.unlink()


def targets(kinds):
    made = {"python": ["costate-python"], "tests": ["costate-test", "costate-opt", "costate-python"],
            **dict.fromkeys(TESTS, ["costate-test"])}
    return sorted({target for kind in kinds for target in made.get(kind, ["costate-fuzz"])})


def build(kinds):
    """The errors of the build; empty if it succeeds."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["/usr/bin/cmake", "--preset", "release",
                        "-DCMAKE_MAKE_PROGRAM=/usr/bin/ninja", f"-DCOSTATE_VENV={PYTHON}"],
                       cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(["/usr/bin/ninja", "-C", BUILD, *targets(kinds)],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]


def commands(fault, kind, seconds):
    """What looks for the fault, one after the other: commands and their environments."""
    if kind == "tests":
        return commands_of_test(fault.found)
    environment = dict(os.environ, COSTATE_FUZZ_SECONDS=str(seconds), COSTATE_FUZZ_SEED="1000")
    if kind == "lanes":
        environment.update(COSTATE_CACHE="0")
    if kind == "python":
        environment.update(PYTHONPATH=f"{BUILD / 'python'}:{TREE / 'python' / 'tests'}", COSTATE_CACHE="0")
        return [([PYTHON, "-u", "-m", "steps", "--seed", "1000"], environment)]
    if kind not in TESTS:
        device = ["--device", "simt"] if kind == "simt" else []
        return [([BUILD / "bin" / "costate-fuzz", *device, "--seconds", str(seconds)], environment)]
    return [(unit_test(TESTS[kind]), environment)]


def unit_test(filter):
    return [BUILD / "bin" / "costate-test", f"--gtest_filter={filter}", "--gtest_color=no"]


def commands_of_test(name):
    """A text of the IR, a test of Python or a unit test, the latter two on both devices of the host."""
    if ".mlir" in name:
        return [([text.LIT, "-v", "--filter", name.split()[0], BUILD / "test"], dict(os.environ))]
    test = unit_test(f"*{name}*")
    if ".py::" in name:
        file, function = name.split("::")
        test = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", function, *(TREE / "python").rglob(file)]
    path = {"PYTHONPATH": str(BUILD / "python")}
    return [(test, dict(os.environ, COSTATE_CACHE="0", COSTATE_DEVICE=device, **path)) for device in ("cpu", "simt")]


def what(kind, before, line, following):
    """By which property a fault shows."""
    if kind in ("ir", "python"):
        return FINDING[kind].match(line).group(1)
    if kind == "tests":
        return line.strip()[:80]
    if kind == "simt":
        return before.split(":")[0].strip()[:40]
    return following.split(":")[0].strip()[:40]


def lines_until(process, end):
    """The lines of a process up to a time; then None."""
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    rest = b""
    while time.monotonic() < end:
        if not selector.select(timeout=max(0, end - time.monotonic())):
            break
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            return
        *complete, rest = (rest + data).split(b"\n")
        for line in complete:
            yield line.decode(errors="replace")
    yield None


def stop(process):
    if process.poll() is None:
        process.kill()
    return process.wait()


def run_fuzzer(fault, kind, seconds):
    """(by which property, seconds) if something was found, else None."""
    start = time.monotonic()
    for arguments, environment in commands(fault, kind, seconds):
        if found := found_by(arguments, environment, kind, start + seconds + 60):
            return found, time.monotonic() - start
    return None


def found_by(arguments, environment, kind, end):
    process = subprocess.Popen(arguments, env=environment, cwd=TREE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    lines = lines_until(process, end)
    before = ""
    for line in lines:
        if line is None:
            stop(process)
            return "does not end"
        if FINDING[kind].search(line):
            found = what(kind, before, line, next(lines, "") or "")
            stop(process)
            return found
        before = line
    status = stop(process)
    if status < 0:
        return f"crash ({signal.Signals(-status).name})"
    return "failure" if status else None


def check_baseline(looked_for):
    """That nothing is found without a fault; the test of each fault has to be there, and pass."""
    print("building without a fault", flush=True)
    if errors := build({kind for _, kind in looked_for}):
        sys.exit(f"the tree does not build:\n{errors}")
    once = {fault.found if kind == "tests" else kind: (fault, kind) for fault, kind in looked_for}
    for name, (fault, kind) in once.items():
        if found := run_fuzzer(fault, kind, 20):
            sys.exit(f"without a fault, {name} finds: {found[0]}")


def judge(fault, kinds, seconds):
    """The row of the table for one fault."""
    row = {"name": fault.name, "file": fault.file}
    original = (TREE / fault.file).read_text()
    try:
        fault.apply(TREE)
        if errors := build(kinds):
            row["error"] = "does not compile"
            print(errors)
            return row
        for kind in kinds:
            if found := run_fuzzer(fault, kind, seconds):
                row[kind] = {"by": found[0], "seconds": round(found[1], 1)}
    finally:
        (TREE / fault.file).write_text(original)
    return row


def text_of(row):
    if "error" in row:
        return row["error"]
    found = [f"{kind}: {row[kind]['by']}, {row[kind]['seconds']:.1f} s"
             for kind in FINDING if kind in row]
    return "; ".join(found) or "NOT FOUND"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="faults; default: all")
    parser.add_argument("--minutes", type=float, default=10, help="for each fault")
    parser.add_argument("--both", action="store_true", help="run both fuzzers on every fault")
    parser.add_argument("--list", action="store_true", help="print what faults there are, and run nothing")
    parser.add_argument("--json", type=Path, help="append a line for each fault")
    arguments = parser.parse_args()

    every = faults.load()
    if wrong := faults.problems(ROOT, every):
        sys.exit("\n".join(wrong))
    unknown = set(arguments.names) - {fault.name for fault in every}
    if unknown:
        sys.exit(f"no fault {', '.join(sorted(unknown))}")
    chosen = [fault for fault in every if not arguments.names or fault.name in arguments.names]
    if arguments.list:
        print("\n".join(faults.table(chosen)))
        return 0
    both = ["ir", "language"]
    kinds_of = lambda fault: both if arguments.both and fault.by in both else [fault.by]

    copy_tree()
    check_baseline([(fault, kind) for fault in chosen for kind in kinds_of(fault)])
    found = 0
    for fault in chosen:
        row = judge(fault, kinds_of(fault), 60 * arguments.minutes)
        found += any(kind in row for kind in FINDING)
        print(f"{fault.name:42} {text_of(row)}", flush=True)
        if arguments.json:
            with open(arguments.json, "a") as file:
                file.write(json.dumps(row) + "\n")
    print(f"{found} of {len(chosen)} found")
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
