"""Every unit test that launches kernels, on a Vulkan driver: Mesa's for the CPU
if there is no other.

Assembling a gradient takes seconds there, so this takes an hour or two on two
cores and is no part of a test run: `./dev vulkan` starts it. With `--profile
moltenvk` or `kosmickrisp` code does without what those drivers lack; `;f64`
behind the name keeps the numbers of most tests. A test that takes longer than
the limit is too slow, Mesa's driver may have ended loops of one, and one may
need what the profile lacks: all are named, and count as skipped.
"""

import argparse
import os
import re
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Counts, Report

ROOT = Path(__file__).resolve().parent.parent
BEGIN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
END = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?),? .*\(\d+ ms\)$", re.M)
SKIPS = {"Mesa's Vulkan driver for the CPU ends the loops": "ended by the driver", "this device has no ": "lacks numbers",
         "which this device lacks": "lacks operations"}
# Where others have the cores, a test may take so many times as long.
STARVED = 10
# Tests that one process runs: few, so that many workers end at the same time.
BATCH = 12
LABELS = "devices"
KINDS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


class Outcome:
    def __init__(self, kind, seconds, text):
        self.kind, self.seconds, self.text = kind, seconds, text


def listed_tests(command, chosen, labels=LABELS):
    """The chosen tests of each suite."""
    listed = subprocess.run([*command, f"--labels={labels}", "--gtest_list_tests", f"--gtest_filter={chosen}"],
                            capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if re.match(r"\S+\.$", name):
            tests = found.setdefault(name, [])
        elif name.startswith("  ") and not name.strip().startswith("DISABLED_"):
            tests.append(name.strip())
    return found


def batches(command, chosen):
    """The chosen tests, a few of one suite in each; those listed last, which
    have many parameters and take longest, come first."""
    return [[suite + test for test in tests[i:i + BATCH]]
            for suite, tests in reversed(listed_tests(command, chosen).items())
            for i in range(0, len(tests), BATCH)]


class Process:
    """Runs tests one after another, and ends where one takes too long."""

    def __init__(self, command, device, names, limit):
        environment = dict(os.environ, COSTATE_DEVICE=device, COSTATE_VALIDATE="1",
                           COSTATE_CACHE="0", GTEST_FILTER=":".join(names))
        self.limit = limit
        self.outcomes = {}
        self.running, self.text, self.since, self.used = None, "", time.monotonic(), 0.0
        self.process = subprocess.Popen([*command, "--gtest_color=no"], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.watch()

    def processor_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_over(self):
        return (self.processor_seconds() - self.used > self.limit
                or time.monotonic() - self.since > STARVED * self.limit)

    def watch(self):
        pipe, rest = self.process.stdout, b""
        while True:
            if not select.select([pipe], [], [], 1)[0]:
                if not self.is_over():
                    continue
                self.process.kill()
                self.process.wait()
                return self.finish("too slow")
            data = os.read(pipe.fileno(), 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.read(line.decode(errors="replace"))
            if not data:
                return self.finish(f"ended with status {self.process.wait()}")

    def read(self, line):
        begin, end = BEGIN.match(line), END.match(line)
        if begin:
            self.running, self.text, self.since = begin[1], "", time.monotonic()
            self.used = self.processor_seconds()
        elif end and end[2] == self.running:
            self.finish(KINDS[end[1]])
        else:
            self.text += line + "\n"

    def finish(self, kind):
        if not self.running:
            return
        if kind != "passed":
            kind = next((name for text, name in SKIPS.items() if text in self.text), kind)
        seconds = time.monotonic() - self.since
        self.outcomes[self.running] = Outcome(kind, seconds, self.text)
        print(f"{kind}: {self.running} ({seconds:.1f} s)", flush=True)
        self.running = None


def run_batch(command, device, names, limit):
    """Tests after one that ends the process run in another."""
    outcomes = {}
    while names:
        process = Process(command, device, names, limit)
        outcomes.update(process.outcomes)
        if not process.outcomes:
            outcomes[names[0]] = Outcome("ended outside any test", 0, process.text)
        names = [name for name in names if name not in outcomes]
    return outcomes


def counted(outcomes):
    counts = Counts()
    for name, outcome in outcomes.items():
        if outcome.kind == "passed":
            counts.passes()
        elif outcome.kind in ("skipped", "too slow", *SKIPS.values()):
            counts.skips(name, outcome.kind)
        else:
            counts.fails(name, outcome.kind + "\n" + outcome.text)
    return counts


def run_all(command, device, batches, arguments):
    outcomes = {}
    with ThreadPoolExecutor(arguments.workers) as pool:
        for run in [pool.submit(run_batch, command, device, names, arguments.limit) for names in batches]:
            outcomes.update(run.result())
    return counted(outcomes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--profile", help="of a driver: moltenvk or kosmickrisp, and with ;f64")
    parser.add_argument("--limit", type=float, default=60, help="seconds of processor time for a test")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("filter", nargs="?", default="*", help="of GoogleTest")
    arguments = parser.parse_args()
    binary = arguments.build_dir / "bin" / "costate-test"
    if arguments.profile:
        os.environ["COSTATE_VULKAN_PROFILE"] = arguments.profile
    report = Report()
    report.run(f"{arguments.device} {arguments.profile or ''}".strip(),
               lambda: run_all([binary], arguments.device, batches([binary], arguments.filter), arguments))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
