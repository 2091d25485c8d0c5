#!/usr/bin/env python3
"""Tables of docs/performance.md that are made of what benchmarks have written.

    performance.py NAME...                runs the commands of a measurement, keeps what they write, and writes its tables
    performance.py NAME --file FILE --on MACHINE
                                          the same of what they have written elsewhere by --json
    performance.py                        writes the tables of what is kept
    performance.py --check                says whether tables are not those of what is kept

What is kept lies in docs/performance: the machine, the month, and a line for each case, of which the least time counts
where it was measured more than once. performance_tables.py says which commands make which tables.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import generated
from performance_tables import MEASUREMENTS, TABLES

ROOT = generated.ROOT
PAGE, KEPT = "docs/performance.md", ROOT / "docs/performance"
TIMES = ("_ms", "_us", "_ns", "_s")


class Numbers:
    """What is kept of a measurement, by metric, case, and what else says which line it is."""

    def __init__(self, rows):
        self.rows = {}
        for row in rows:
            known = self.rows.setdefault(tuple(row.get(word) for word in ("bench", "case", "device", "threads", "label")), {})
            for name, value in row.items():
                is_less = name.endswith(TIMES) and None not in (value, known.get(name))
                known[name] = min(value, known[name]) if is_less else value

    def __call__(self, metric, case, **where):
        where = {"label": None, **where}
        for row in self.rows.values():
            if row["case"] == case and row.get(metric) is not None and all(row.get(word) == value for word, value in where.items()):
                return row[metric]
        return None


def text_of(table):
    """None of what has not been measured yet."""
    file = KEPT / f"{table.measured}.json"
    if not file.exists():
        return None
    measured = json.loads(file.read_text())
    rows = table.rows(Numbers(measured["rows"]))
    return f"{table.command}, {measured['machine']}, {measured['month']}:\n\n" + generated.table(table.head, rows)


def this_machine():
    models = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} cores of {models[0] if models else 'an unknown processor'}"


def measure(name):
    """The lines of all commands of a measurement."""
    rows = []
    for command in MEASUREMENTS[name]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.json"
            if subprocess.run(f"{command} --json {file}", shell=True, cwd=ROOT).returncode != 0:
                sys.exit(f"`{command}` failed")
            rows += lines_of(file)
    return rows


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def shortened(value):
    return float(f"{value:.5g}") if isinstance(value, float) else value


def keep(name, rows, machine):
    lines = ",\n".join("  " + json.dumps({key: shortened(value) for key, value in row.items()}) for row in rows)
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{name}.json").write_text(
        f'{{"machine": {json.dumps(machine)}, "month": "{time.strftime("%B %Y")}", "rows": [\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--file", type=Path, help="what the commands have written elsewhere")
    parser.add_argument("--on", default=this_machine(), metavar="MACHINE")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASUREMENTS):
        parser.error(f"no measurement is called {', '.join(unknown)}")
    for name in options.names:
        keep(name, lines_of(options.file) if options.file else measure(name), options.on)
    generated.write({PAGE: {name: text_of(table) for name, table in TABLES.items()}}, options.check, "./dev performance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
