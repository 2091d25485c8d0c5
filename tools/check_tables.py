#!/usr/bin/env python3
"""Checks the tables that hold features and seeded faults against the tests they name, and that the benchmarks that the documentation runs exist.

A row whose first cell is a letter and a number names in its last cell the tests
that show it: `Suite.Name` of GoogleTest, `file.mlir @kernel`, or
`test_file.py::test_name` of pytest. A row without a
test says what is *missing*: an entry of the list in docs/design/README.md. Every kind of
device has a column and a row in docs/guide/devices.md."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src", "test", "benchmark", "examples", "tools")
TABLES = {
    "docs/guide/features.md":
        {f"{part}{n}" for part, rows in {"M": 23, "O": 19, "A": 13, "C": 20, "T": 13, "K": 31}.items()
         for n in range(1, rows + 1)},
    "docs/guide/devices.md": {f"D{n}" for n in range(1, 14)},
}
FAULTS = "test/mutation/faults.toml"
ROW = re.compile(r"^\| ([A-Z]\d+[a-z]?) \|.*\| ([^|]*) \|$")
GTEST = re.compile(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
PYTEST = re.compile(r"^def (test_\w+)\(", re.M)
NAME = re.compile(r"`(?:(\w+)\.([A-Z]\w+)|(\w+\.mlir) @(\w+)|(\w+\.py::test_\w+))`")
MISSING = re.compile(r"\*missing\*: ([\w ]+)")
ENTRY = re.compile(r"^\d+\. \*\*([^*]+)\*\*", re.M)
BENCHES = re.compile(r"(?:costate-bench|\./dev bench)((?: [a-z][a-z-]*)+)")
BENCH = re.compile(r'"([a-z][a-z-]*)"')
KIND = re.compile(r'^    \{"([a-z-]+)", "([^"]*)",', re.M)
KERNEL = re.compile(r"costate\.kernel @(\w+)")


def sources(pattern):
    for folder in SOURCES:
        yield from (ROOT / folder).rglob(pattern)


def existing_tests():
    tests = {f"{suite}.{name}" for path in sources("*.cpp")
             for suite, name in GTEST.findall(path.read_text())}
    kernels = {f"{path.name} @{name}" for path in sources("*.mlir")
               for name in KERNEL.findall(path.read_text())}
    python = {f"{path.name}::{name}" for path in (ROOT / "python/tests").rglob("test_*.py")
              for name in PYTEST.findall(path.read_text())}
    return tests | kernels | python


def missing_entries():
    text = (ROOT / "docs/design/README.md").read_text()
    return {entry.rstrip(".").lower() for entry in ENTRY.findall(text)}


def names_in(cell):
    return [python or (f"{suite}.{name}" if suite else f"{file} @{kernel}")
            for suite, name, file, kernel, python in NAME.findall(cell)]


def check(document, expected, tests, problems):
    seen, entries, columns = set(), missing_entries(), 0
    for number, line in enumerate((ROOT / document).read_text().splitlines(), 1):
        line = line.replace("\\|", " or ")
        if line.startswith("|---"):
            columns = line.count("|")
        row = ROW.match(line)
        if not row:
            continue
        label, cell = row.groups()
        place = f"{document}:{number}: {label}"
        if any(not text.strip() for text in line.split("|")[1:-1]):
            problems.append(f"{place} has an empty cell")
        if line.count("|") != columns:
            problems.append(f"{place} has another number of cells than the head")
        if label in seen:
            problems.append(f"{place} has two rows")
        seen.add(label)
        names, missing = names_in(cell), [m.strip().lower() for m in MISSING.findall(cell)]
        if not names and not missing:
            problems.append(f"{place} names no test")
        problems += [f"{place}: {name} is not in the list of what is missing"
                     for name in missing if name not in entries]
        problems += [f"{place} names {name}, which does not exist"
                     for name in names if name not in tests]
    problems += [f"{document}: no row for {label}" for label in sorted(expected - seen)]


def check_faults(tests, problems):
    """A seeded fault says by which test it is found, or by which property of random programs."""
    files = {test.split()[0] for test in tests if ".mlir" in test}
    for fault in tomllib.loads((ROOT / FAULTS).read_text())["fault"]:
        found = fault.get("found", "")
        if "." in found and found not in tests | files:
            problems.append(f"{FAULTS}: {fault['name']} names {found}, which does not exist")


def check_benchmarks(problems):
    names = {"micro", "python", "stencils", "instructions", "budgets"} | {name for path in (ROOT / "benchmark").rglob("*.cpp")
                                   for name in BENCH.findall(path.read_text())}
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        named = {name for command in BENCHES.findall(path.read_text()) for name in command.split()}
        problems += [f"{path.relative_to(ROOT)}: there is no benchmark `{name}`" for name in sorted(named - names)]


def check_devices(problems):
    """Kinds without a note are those of users: the others are for tests, or other names."""
    page = (ROOT / "docs/guide/devices.md").read_text()
    for name, note in KIND.findall((ROOT / "src/api/Device.cpp").read_text()):
        if not note and not (f" `{name}` |" in page.split("\n|---")[0] and f"\n| `{name}` |" in page):
            problems.append(f"docs/guide/devices.md: no column and row for the device `{name}`")


def main():
    problems, tests = [], existing_tests()
    for document, expected in TABLES.items():
        check(document, expected, tests, problems)
    check_faults(tests, problems)
    check_benchmarks(problems)
    check_devices(problems)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
