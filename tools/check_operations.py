#!/usr/bin/env python3
"""Checks the lists of functions by library in docs/design/maths.md against the table of operations."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "include/costate/detail/operations.def"
ROW = re.compile(r"^COSTATE_FUNCTION\((.*)\)$", re.M)
SOURCES = {"Sleef": "| SLEEF |", "Libm": "| libm |"}


def functions():
    """(name, library) of each."""
    rows = [[cell.strip() for cell in row.split(",")] for row in ROW.findall(TABLE.read_text())]
    return [(row[1], row[4]) for row in rows]


def missing(names, listed, where):
    listed = set(re.findall(r"\w+", listed))
    return [f"{where} does not list `{name}`" for name in names if name not in listed]


def main():
    known, problems = functions(), []
    page = "docs/design/maths.md"
    for library, front in SOURCES.items():
        listed = (ROOT / page).read_text().split(front, 1)[1].split("|", 1)[0]
        problems += missing([name for name, own in known if own == library], listed, page)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
