#!/usr/bin/env python3
"""Checks that what a plan is chosen by stands in the table of its target.

Numbers with a name in the layers that plan are costs, which belong in src/sizing/Costs.cpp, or limits,
which docs/decisions/0031-plans.md lists."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/decisions/0031-plans.md"
FOLDERS = ("autodiff", "sizing", "conversion/PlaceTapes", "conversion/Lanes")
NUMBER = re.compile(r"\bconstexpr\s+(?:static\s+)?(?:std::)?(?:u?int(?:\d+_t)?|unsigned|size_t|float|double|auto)\s+([^;{]+);")
NAME = re.compile(r"(\w+)\s*=[^,;]*\d")
ROW = re.compile(r"^\| `([\w/.]+)` \| ([^|]+) \|", re.M)


def named():
    for folder in FOLDERS:
        for path in sorted((ROOT / "src" / folder).rglob("*")):
            if path.suffix in (".cpp", ".h") and path.stem != "Costs" and "Test" not in path.stem:
                for numbers in NUMBER.findall(path.read_text()):
                    yield from ((str(path.relative_to(ROOT / "src")), name) for name in NAME.findall(numbers))


def limits():
    table = PAGE.read_text().split("\n## Limits\n")[1]
    return {(file, name) for file, names in ROW.findall(table) for name in re.findall(r"`(\w+)`", names)}


def main():
    found, listed = set(named()), limits()
    problems = [f"src/{file}: `{name}` belongs in sizing/Costs.cpp, or among the limits of {PAGE.name}"
                for file, name in sorted(found - listed)]
    problems += [f"{PAGE.name}: src/{file} has no limit `{name}`" for file, name in sorted(listed - found)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
