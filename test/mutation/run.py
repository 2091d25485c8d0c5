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
SCRATCH = ROOT / "build" / "mutation"
TREE = SCRATCH / "tree"
BUILD = TREE / "build" / "release"
FINDING = {"ir": re.compile(r"^seed \d+: wrong: ([a-z-]+)"),
           "language": re.compile(r"(?:Failure|^\[  FAILED)"),
           "simt": re.compile(r"^seed \d+"),
           "recordings": re.compile(r"(?:Failure|^\[  FAILED)"),
           "lanes": re.compile(r"(?:Failure|^\[  FAILED)"),
           "python": re.compile(r"^seed \d+: (\w+)"),
           "tests": re.compile(r"(?:Failure|^\[  FAILED)")}
TESTS = {"language": "RandomKernel.AgreeForLonger",
         "recordings": "RandomRecordings.EqualThemForLonger",
         "lanes": "Lanes.*",
         "tests": "Nvidia.*:Simt.*:*GpuSort*:GpuTapes.*:*HostCopiesOf*:RowPrefetch.*:AtomicLoops.*:Guards.*"
                 ":Metal*.*:Hip*.*:*StreamQueue*:Float64.*:Directories.*:Intact.*:Plans.*:Schedules.*:MinimalCut.*:CostTable.*:PackedRecords.*"}


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
    made = {"python": "costate-python", **dict.fromkeys(TESTS, "costate-test")}
    return sorted({made.get(kind, "costate-fuzz") for kind in kinds})


def build(kinds):
    """The errors of the build; empty if it succeeds."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["/usr/bin/cmake", "--preset", "release",
                        "-DCMAKE_MAKE_PROGRAM=/usr/bin/ninja"],
                       cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(["/usr/bin/ninja", "-C", BUILD, *targets(kinds)],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout[-3000:]


def command(kind, seconds):
    environment = dict(os.environ, COSTATE_FUZZ_SECONDS=str(seconds), COSTATE_FUZZ_SEED="1000")
    if kind == "tests":
        environment.update(COSTATE_DEVICE="simt", COSTATE_CACHE="0")
    if kind == "lanes":
        environment.update(COSTATE_CACHE="0")
    if kind == "python":
        environment.update(PYTHONPATH=f"{BUILD / 'python'}:{TREE / 'python' / 'tests'}", COSTATE_CACHE="0")
        return [ROOT / ".venv" / "bin" / "python", "-u", "-m", "steps", "--seed", "1000"], environment
    if kind not in TESTS:
        device = ["--device", "simt"] if kind == "simt" else []
        return [BUILD / "bin" / "costate-fuzz", *device, "--seconds", str(seconds)], environment
    return [BUILD / "bin" / "costate-test",
            f"--gtest_filter={TESTS[kind]}", "--gtest_color=no"], environment


def what(kind, before, line, following):
    """By which property a fault shows."""
    if kind in ("ir", "python"):
        return FINDING[kind].match(line).group(1)
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


def run_fuzzer(kind, seconds):
    """(by which property, seconds) if something was found, else None."""
    arguments, environment = command(kind, seconds)
    start = time.monotonic()
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    lines = lines_until(process, start + seconds + 60)
    before = ""
    for line in lines:
        if line is None:
            stop(process)
            return "does not end", time.monotonic() - start
        if FINDING[kind].search(line):
            found = what(kind, before, line, next(lines, "") or "")
            spent = time.monotonic() - start
            stop(process)
            return found, spent
        before = line
    status = stop(process)
    if status < 0:
        return f"crash ({signal.Signals(-status).name})", time.monotonic() - start
    return None if status == 0 else ("failure", time.monotonic() - start)


def check_baseline(kinds):
    print("building without a fault", flush=True)
    if errors := build(kinds):
        sys.exit(f"the tree does not build:\n{errors}")
    for kind in kinds:
        if found := run_fuzzer(kind, 20):
            sys.exit(f"without a fault, the fuzzer of {kind} finds: {found[0]}")


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
            if found := run_fuzzer(kind, seconds):
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
    check_baseline(sorted({kind for fault in chosen for kind in kinds_of(fault)}))
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
