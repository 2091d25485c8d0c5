"""What gradients of stencils cost beside their kernels, in 84 spellings.

    ./dev bench stencils [--device cpu|cuda] [--threads N ...] [--only WORD ...] [--fast-math]

A heat equation of 5 points in 2 dimensions and of 7 in 3, of the field or of its cubes, in f32 and f64, with 10 ways
to write its borders (11 in 2 dimensions). Kernel and gradient alternate, and the least time of each counts: on CPUs
that of the processor, all threads together, elsewhere that of launches in a row. COSTATE_VECTORS chooses vectors.
"""

import argparse
import importlib.util
import itertools
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import costate as qd

import results

INDICES = "ijl"


@dataclass(frozen=True)
class Border:
    """How work items are chosen, and how each of them comes to its neighbours."""

    before: str = "{i} - 1"
    after: str = "{i} + 1"
    bounds: str = ""  # of the range; all elements without
    guard: bool = False  # an `if` around the body
    neighbour: str = "s += {value}"


BORDERS = {
    "inside": Border(bounds="(1, {n} - 1)"),
    "static": Border(bounds="(1, {number} - 1)"),
    "inside-if": Border(guard=True),
    "one-sided": Border(neighbour="if {there}: s += {value}"),
    "zero": Border(neighbour="s += {value} if {there} else 0.0"),
    "clamped": Border("max({i} - 1, 0)", "min({i} + 1, {n} - 1)"),
    "periodic": Border("({i} - 1 + {n}) % {n}", "({i} + 1) % {n}"),
    "python": Border("({i} - 1) % {n}", "({i} + 1) % {n}"),
    "choice": Border("({i} - 1 if {i} > 0 else {n} - 1)", "({i} + 1 if {i} + 1 < {n} else 0)"),
    "reflected": Border("abs({i} - 1)", "{n} - 1 - abs({n} - 2 - {i})"),
}
CHANNEL = [BORDERS["periodic"], BORDERS["clamped"]]


@dataclass(frozen=True)
class Spelling:
    border: str
    dims: int
    cubic: bool
    type: str

    @property
    def name(self):
        return f"{self.dims}d-{self.type}-{'cubic-' if self.cubic else ''}{self.border}"

    def borders(self):
        """One for each dimension."""
        return CHANNEL if self.border == "channel" else [BORDERS[self.border]] * self.dims

    def value(self, indices):
        u = f"u[{', '.join(indices)}]"
        return f"{u} * {u} * {u}" if self.cubic else u

    def lines(self, names):
        """The body of the loop, of which `names` has the words for each dimension."""
        indices = list(INDICES[:self.dims])
        yield f"s = -{2 * self.dims} * {self.value(indices)}"
        for d, border in enumerate(self.borders()):
            for index, there in ((border.after, "{i} < {n} - 1"), (border.before, "{i} > 0")):
                other = indices.copy()
                other[d] = index.format(**names[d])
                yield border.neighbour.format(value=self.value(other), there=there.format(**names[d]))
        at = ", ".join(indices)
        yield f"w[{at}] = u[{at}] + 0.2 * k[{at}] * s"

    def source(self, side):
        names = [{"i": INDICES[d], "n": f"u.shape[{d}]", "number": side} for d in range(self.dims)]
        border, indices = self.borders()[0], ", ".join(INDICES[:self.dims])
        elements = f"qd.ndrange({', '.join(border.bounds.format(**n) for n in names)})" if border.bounds else "u"
        lines = list(self.lines(names))
        if border.guard:
            inside = " and ".join("{i} > 0 and {i} < {n} - 1".format(**n) for n in names)
            lines = [f"if {inside}:"] + ["    " + line for line in lines]
        array = f"qd.types.ndarray(qd.{self.type}, {self.dims})"
        head = ["import costate as qd", "", "@qd.kernel", f"def heat(u: {array}, k: {array}, w: {array}):",
                f"    for {indices} in {elements}:"]
        return "\n".join(head + ["        " + line for line in lines]) + "\n"

    def kernel(self, side, folder):
        path = Path(folder) / f"{self.name.replace('-', '_')}.py"
        path.write_text(self.source(side))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.heat

    def arrays(self, side):
        return [qd.ndarray(getattr(qd, self.type), (side,) * self.dims, needs_grad=True) for _ in range(3)]


SPELLINGS = [Spelling(border, dims, cubic, type)
             for dims, cubic, type in itertools.product((2, 3), (False, True), ("f32", "f64"))
             for border in (*BORDERS, *(["channel"] if dims == 2 else []))]


def least(calls, clock, seconds):
    """The least milliseconds of each call; they alternate, in rows of some milliseconds."""
    def row(call, count):
        qd.sync()
        begin = clock()
        for _ in range(count):
            call()
        qd.sync()
        return 1e3 * (clock() - begin) / count

    for call in calls:
        row(call, 1)  # compiles
    counts = [max(1, min(200, int(5 / max(1e-3, row(call, 3))))) for call in calls]
    best, end = [float("inf")] * len(calls), time.perf_counter() + seconds
    while True:
        best = [min(time, row(call, count)) for time, call, count in zip(best, calls, counts)]
        if time.perf_counter() > end:
            return best


def measure(spelling, side, clock, seconds, folder):
    heat = spelling.kernel(side, folder)
    arrays = u, k, w = spelling.arrays(side)
    u.fill(1.0)
    k.fill(1.0)
    w.grad.fill(1.0)
    return least([lambda: heat(*arrays), lambda: heat.grad(*arrays)], clock, seconds)


def run(options, threads):
    """Rows of a table, printed as they come."""
    on_cpu = options.device == "cpu"
    qd.init(arch=getattr(qd, options.device), fast_math=options.fast_math,
            **({"cpu_max_num_threads": threads} if on_cpu else {}))
    where = f"{threads} threads, {os.environ.get('COSTATE_VECTORS', 'all vectors')}" if on_cpu else options.device
    print(f"{where}\n{'case':24} {'primal_ms':>10} {'gradient_ms':>12} {'ratio':>6}")
    clock = time.process_time if on_cpu else time.perf_counter
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for spelling in SPELLINGS:
            if not all(word in spelling.name for word in options.only):
                continue
            side = options.sides[spelling.dims - 2]
            primal, gradient = measure(spelling, side, clock, options.seconds, folder)
            rows.append({"bench": "stencils", "case": spelling.name, "device": options.device,
                         "threads": threads if on_cpu else 1, "primal_ms": primal, "gradient_ms": gradient,
                         "ratio": gradient / primal})
            print(f"{spelling.name:24} {primal:10.4f} {gradient:12.4f} {gradient / primal:6.2f}", flush=True)
    return rows


def summary(rows, limit):
    ordered = sorted(rows, key=lambda row: row["ratio"])
    over = [row for row in ordered if row["ratio"] > limit]
    return (f"{len(rows)} spellings: median {ordered[len(rows) // 2]['ratio']:.2f}, largest {ordered[-1]['ratio']:.2f} "
            f"({ordered[-1]['case']}), {len(over)} above {limit:g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "simt", "cuda", "vulkan"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of the CPU")
    parser.add_argument("--sides", type=int, nargs=2, help="of arrays in 2 and 3 dimensions")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each spelling")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="names that have all of these in them")
    parser.add_argument("--fast-math", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    on_host = options.device in ("cpu", "simt")
    options.sides = options.sides or ((1024, 128) if on_host else (4096, 256))
    for threads in options.threads if options.device == "cpu" else [1]:
        rows = run(options, threads)
        if not rows:
            parser.error("no spelling has such a name")
        print(summary(rows, 4.0 if on_host else 3.5), "\n")
        if options.json:
            results.append(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
