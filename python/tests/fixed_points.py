"""Random kernels that overwrite what they read, with numbers so round that what they leave is often what they find: is a gradient
by hand that of the launch, or an error? python fixed_points.py --count 2000 --seed 1"""

import argparse
import collections
import linecache

import numpy as np

import costate as qd
from costate.errors import CannotReplay

ROUND = (-1.0, -0.0, 0.0, 0.5, 1.0, 2.0)
FLOATS = ("x", "y", "w")
WIDTH = 4
HEAD = """
@qd.kernel
def k(x: qd.types.ndarray(), y: qd.types.ndarray(), w: qd.types.ndarray(), n: qd.types.ndarray()):
"""


class Source:
    """The text of a kernel: parts that are parallel or serial. It writes `x`, `y` and perhaps `n`."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.lines = []
        self.writes_indices = self.one_of(False, False, False, True)
        self.parallel = False
        self.locals = 0

    def one_of(self, *choices):
        return choices[self.random.integers(len(choices))]

    def text(self):
        for _ in range(self.one_of(1, 1, 2, 3)):
            self.parallel = self.one_of(False, False, True)
            self.part()
        return HEAD + "\n".join(self.lines) + "\n"

    def part(self):
        if self.parallel:
            self.lines.append(f"    for i in range({WIDTH}):")
            return self.sum() if self.one_of(*[False] * 5, True) else self.statements(8)
        self.lines.append("    for b in range(1):")
        for _ in range(self.one_of(1, 2)):
            bounds = self.one_of("4", "1, 4", "3", "n[0]")
            self.lines.append(f"        for i in {self.one_of('range', 'range', 'qd.static(range')}({bounds}):"
                              if bounds != "n[0]" else "        for i in range(qd.min(n[0], 4)):")
            if "static" in self.lines[-1]:
                self.lines[-1] = self.lines[-1][:-1] + "):"
            self.statements(12)

    def sum(self):
        """Additions in any order."""
        self.lines.append(f"        {self.one_of('x', 'y')}[{self.one_of(0, 1, 'n[i]')}] += w[i] * {self.one_of(*ROUND, 'w[i]')}")

    def statements(self, indent, depth=0):
        known = self.locals
        for _ in range(self.one_of(1, 1, 2, 3)):
            self.statement(indent, depth)
        self.locals = known

    def statement(self, indent, depth):
        space, kind = " " * indent, self.random.random()
        if kind < 0.08:
            self.local(space)
        elif kind < 0.5:
            self.lines.append(f"{space}{self.one_of('x', 'y')}[{self.index()}] = {self.value(2)}")
        elif kind < 0.65:
            self.lines.append(f"{space}{self.one_of('x', 'y')}[{self.index()}] += {self.value(1)}")
        elif kind < 0.8 and depth < 2:
            self.lines.append(f"{space}if {self.value(1)} {self.one_of('<', '>', '>=')} {self.one_of(*ROUND)}:")
            self.statements(indent + 4, depth + 1)
        elif kind < 0.84 and depth < 2:
            self.lines += [f"{space}m{depth} = 0", f"{space}while m{depth} < 3 and {self.value(1)} > {self.one_of(*ROUND)}:",
                           f"{space}    m{depth} += 1"]
            self.statements(indent + 4, depth + 1)
        elif kind < 0.88 and depth < 2:
            self.lines.append(f"{space}for j{depth} in range({self.one_of('2', '3', 'qd.min(n[1], 3)')}):")
            self.statements(indent + 4, depth + 1)
        elif self.writes_indices:
            number = self.one_of(0, 1, 2, 3, "n[i] + 1", f"qd.cast(qd.abs({self.value(1)}), qd.i32)")
            self.lines.append(f"{space}n[{'i' if self.parallel else self.index()}] = ({number}) % 4")
        else:
            self.lines.append(f"{space}x[{self.index()}] = {self.one_of(*ROUND)}")

    def local(self, space):
        """A number or a private array, by an element that is found in memory."""
        vector = ", ".join(self.value(1) for _ in range(4))
        number = self.one_of(self.value(2), f"qd.Vector([{vector}])[n[i]]")
        self.lines.append(f"{space}v{self.locals} = {number}")
        self.locals += 1

    def index(self):
        if self.parallel:
            return self.one_of("i", "i", "i", "i", "n[i]")
        return self.one_of("i", "i", "i", "n[i]", "0", "1", "3", "(i + 1) % 4")

    def value(self, depth):
        if depth == 0 or self.random.random() < 0.2:
            if self.random.random() < 0.15:
                return str(self.one_of(*ROUND))
            if self.locals and self.random.random() < 0.4:
                return f"v{self.random.integers(self.locals)}"
            return f"{self.one_of(*FLOATS)}[{self.index()}]"
        operands = [self.value(depth - 1) for _ in range(2)]
        return self.one_of("({} + {})", "({} * {})", "({} * {})", "qd.min({}, {})", "qd.max({}, {})", "qd.sin({})",
                           "qd.abs({})", "qd.floor({})", "qd.select({} > 0.5, {}, 1.0)").format(*operands)


def kernel_of(text, name):
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {"qd": qd}
    exec(compile(text, file, "exec"), namespace)
    return namespace["k"]


class Arrays:
    """The arguments, with numbers and gradients of `seed`."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.floats = [qd.ndarray(qd.f64, (WIDTH,), needs_grad=True) for _ in FLOATS]
        self.indices = qd.ndarray(qd.i32, (WIDTH,))
        self.all = [*self.floats, self.indices]
        self.values = [self.random.choice(ROUND, WIDTH) for _ in FLOATS] + [self.random.integers(0, WIDTH, WIDTH)]
        self.seeds = [self.random.choice((1.0, 2.0, 3.0), WIDTH) for _ in FLOATS]

    def write(self, values):
        for array, one in zip(self.all, values):
            array.from_numpy(np.asarray(one).astype(array.to_numpy().dtype))

    def read(self):
        return [array.to_numpy().copy() for array in self.all]

    def gradient(self, kernel, **options):
        """The gradients, or None if there are none."""
        for array, one in zip(self.floats, self.seeds):
            array.grad.from_numpy(one)
        try:
            kernel.grad(*self.all, **options)
        except CannotReplay:
            return None
        return [array.grad.to_numpy().copy() for array in self.floats]


def compare(seed):
    """What differs, or "", and of three gradients by hand how many there are: right after the launch, after somebody has written the
    same values, and of a launch that has not run."""
    text = Source(seed).text()
    kernel, arrays = kernel_of(text, f"fixed point {seed}"), Arrays(seed)
    arrays.write(arrays.values)
    expected = arrays.gradient(kernel, initial_state=True)
    alone = arrays.gradient(kernel)
    kernel(*arrays.all)
    after = arrays.gradient(kernel)
    arrays.write(arrays.read())
    written = arrays.gradient(kernel)
    found = {"of no launch": alone, "after the launch": after, "after somebody has written": written}
    for when, gradient in found.items():
        if gradient is not None and (expected is None or not all(
                np.allclose(one, other, 1e-12, 1e-12, equal_nan=True) for one, other in zip(gradient, expected))):
            return f"{when}: {gradient}, not {expected}\n{text}", found
    return "", found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    arguments = parser.parse_args()
    qd.init(default_fp=qd.f64, offline_cache=False)
    counts, wrong = collections.Counter(), 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        difference, found = compare(seed)
        counts.update(when for when, gradient in found.items() if gradient is not None)
        if difference:
            wrong += 1
            print(f"seed {seed}: {difference}", flush=True)
    print(f"{arguments.count} kernels, {wrong} wrong; gradients {dict(counts)}")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
