"""Counts of test results, and how they are printed."""

import sys
import time
import traceback


class Counts:
    def __init__(self):
        self.passed = 0
        self.failed = []  # (name, output)
        self.skipped = []  # (name, reason)

    def passes(self, count=1):
        self.passed += count

    def fails(self, name, output=""):
        self.failed.append((name, output))

    def skips(self, name, reason=""):
        self.skipped.append((name, reason))

    def add_as_one(self, other, under):
        """One test that passes if all of `other` do, which ran under these conditions."""
        for name, output in other.failed:
            self.fails(f"{name} {under}", output)
        if not other.failed:
            self.passes()

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def check(self, name, process):
        """Counts a finished process as one test."""
        if process.returncode == 0:
            self.passes()
        else:
            self.fails(name, process.stdout + process.stderr)

    def __str__(self):
        return (f"{self.passed} passed, {len(self.failed)} failed, "
                f"{len(self.skipped)} skipped")


class Report:
    """The sum over all parts."""

    def __init__(self):
        self.total = Counts()

    def run(self, name, part):
        start = time.monotonic()
        try:
            counts = part()
        except Exception:
            counts = Counts()
            counts.fails(name, traceback.format_exc())
        for test, output in counts.failed:
            print(f"--- FAILED {name}: {test}\n{output[-4000:]}")
        for test, reason in counts.skipped:
            print(f"--- skipped {name}: {test} {reason}".rstrip())
        print(f"{name}: {counts} ({time.monotonic() - start:.1f} s)")
        sys.stdout.flush()
        self.total.add(counts)

    def finish(self):
        """Prints the last line; returns the exit status."""
        print(self.total)
        return 1 if self.total.failed or not self.total.passed else 0
