#!/usr/bin/env python3
"""Tables of docs/performance.md that are made of what benchmarks have written.

    performance.py NAME...                runs the benchmark of a table, keeps what it measures, and writes the table
    performance.py NAME --file FILE --on MACHINE
                                          the same of what its command has written elsewhere by --json
    performance.py                        writes the tables of what is kept
    performance.py --check                says which tables are not those of what is kept

What is kept lies in docs/performance: the machine, the month, and the lines of the benchmark. A table stands on the page
between `<!-- table NAME -->` and `<!-- end -->`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parent.parent
PAGE, KEPT = ROOT / "docs/performance.md", ROOT / "docs/performance"
REGION = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
BORDERS = ("inside", "static", "inside-if", "one-sided", "zero", "clamped", "periodic", "python", "choice", "reflected", "channel")
BODIES = [f"{dims}d-{kind}-{body}" for dims in (2, 3) for kind in ("f32", "f64") for body in ("", "cubic-")]


@dataclass
class Table:
    command: str
    head: list
    rows: dict  # the first cell of each row, and the cases of the others
    cell: Callable  # of the numbers of a case


def milliseconds(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def both(numbers):
    """`0.08 / 0.24 (3.0)`: of the kernel and of its gradient."""
    return f"{milliseconds(numbers['primal_ms'])} / {milliseconds(numbers['gradient_ms'])} ({numbers['ratio']:.1f})"


TABLES = {
    "stencils-cuda": Table(
        "./dev bench stencils --device cuda",
        ["border", *(f"{dims} D, {kind}{body}" for dims in (2, 3) for kind in ("f32", "f64") for body in ("", ", cube"))],
        {border: [body + border for body in BODIES] for border in BORDERS}, both),
}


def row(cells):
    return "| " + " | ".join(cells) + " |"


def text_of(name):
    table, kept = TABLES[name], json.loads((KEPT / f"{name}.json").read_text())
    numbers = {one["case"]: one for one in kept["rows"]}
    lines = [f"`{table.command}`, {kept['machine']}, {kept['month']}:", "", row(table.head), "|---" * len(table.head) + "|"]
    for first, cases in table.rows.items():
        lines.append(row([first, *(table.cell(numbers[case]) if case in numbers else "" for case in cases)]))
    return "\n".join(lines) + "\n"


def page():
    text = PAGE.read_text()
    missing = set(TABLES) - {found[2] for found in REGION.finditer(text)}
    if missing:
        sys.exit(f"docs/performance.md has no place for {', '.join(missing)}")
    return REGION.sub(lambda found: found[1] + text_of(found[2]) + found[3], text)


def this_machine():
    models = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} cores of {models[0] if models else 'an unknown processor'}"


def measure(name, file):
    command = TABLES[name].command.split() + ["--json", str(file)]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed")


def keep(name, file, machine):
    rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
    KEPT.mkdir(exist_ok=True)
    lines = ",\n".join("  " + json.dumps(one) for one in rows)
    (KEPT / f"{name}.json").write_text(
        f'{{"machine": {json.dumps(machine)}, "month": "{time.strftime("%B %Y")}", "rows": [\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--file", type=Path, help="what the command of the table has written elsewhere")
    parser.add_argument("--on", default=this_machine(), metavar="MACHINE")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(TABLES):
        parser.error(f"no table is called {', '.join(unknown)}")
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            file = options.file or Path(folder) / "results.json"
            if not options.file:
                measure(name, file)
            keep(name, file, options.on)
    if not options.check:
        PAGE.write_text(page())
    elif page() != PAGE.read_text():
        sys.exit("docs/performance.md: a table is not what docs/performance holds: run `./dev performance`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
