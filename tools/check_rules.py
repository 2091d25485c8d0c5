#!/usr/bin/env python3
"""Checks that each rule of docs/design/semantics.md has a test, and each counter-example its own.

A test is marked with the rules that it shows, in a comment above it: `// RULE: steps, ranges`
(`# RULE:` in Python). Unit tests, kernels of text tests and tests of Python can be marked. The site
shows the table that `--table` prints."""

import re
import sys
from collections import defaultdict

from check_tables import GTEST, KERNEL, PYTEST, ROOT, SOURCES

PAGE = ROOT / "docs/design/semantics.md"
EXAMPLES = ROOT / "test/conformance/gradients/CounterExampleTest.cpp"
MARK = re.compile(r"^(?://|#) RULE: (.+)$", re.M)
NAME = re.compile(r"^\| `([\w-]+)` \|", re.M)
KINDS = ((("cpp",), GTEST, "{1}.{2}"), (("mlir",), KERNEL, "{file} @{1}"), (("py",), PYTEST, "{file}::{1}"))


def names_of(section):
    """The first cells of the table in a section of the page."""
    return NAME.findall(PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0])


def marked_in(path, pattern, form, problems):
    """Pairs of rule and test, in the order of the file."""
    text = path.read_text()
    if "RULE:" not in text:
        return
    tests = list(pattern.finditer(text))
    for mark in MARK.finditer(text):
        test = next((test for test in tests if test.start() > mark.end()), None)
        if not test:
            problems.append(f"{path.relative_to(ROOT)}: no test follows RULE: {mark[1]}")
            continue
        name = form.format(*[test[0], *test.groups()], file=path.name)
        yield from ((rule.strip(), name) for rule in mark[1].split(","))


def marks(problems):
    """The tests that show each rule."""
    shown = defaultdict(list)
    for endings, pattern, form in KINDS:
        for folder in (*SOURCES, "python/tests"):
            for path in sorted(file for ending in endings for file in (ROOT / folder).rglob(f"*.{ending}")):
                for rule, test in marked_in(path, pattern, form, problems):
                    shown[rule].append(test)
    return shown


def table():
    shown = marks([])
    return ["| Rule | Tests |", "|---|---|",
            *(f"| {rule} | {', '.join(f'`{test}`' for test in shown[rule])} |" for rule in names_of("Rules"))]


def problems_of():
    found = []
    shown, rules = marks(found), names_of("Rules")
    found += [f"{PAGE.name}: no test is marked with RULE: {rule}" for rule in rules if rule not in shown]
    found += [f"{test}: {PAGE.name} has no rule {rule}" for rule in shown.keys() - set(rules) for test in shown[rule]]
    tests = {name for _, name in GTEST.findall(EXAMPLES.read_text())}
    examples = set(names_of("Counter-examples"))
    found += [f"{PAGE.name}: there is no test CounterExample.{name}" for name in sorted(examples - tests)]
    found += [f"{PAGE.name}: CounterExample.{name} has no row" for name in sorted(tests - examples)]
    return found


def main():
    lines = table() if "--table" in sys.argv[1:] else problems_of()
    print("\n".join(lines))
    return 1 if lines and "--table" not in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
