"""Gradients of random stencils: each element of an adjoint gathers what its neighbours have for it. Debug kernels
add one after the other instead. All numbers are small multiples of powers of 2, so that sums have no order."""

import itertools
import os
import random

import numpy as np
import pytest

import costate as ti
from written import load

ARCH = getattr(ti, os.environ.get("COSTATE_DEVICE") or "cpu")
NAMES = "ijk"


class Stencil:
    """The source of a kernel for an array of `shape`; extents of odd seeds are numbers in it."""

    def __init__(self, seed, shape):
        dims = len(shape)
        self.random = random.Random(f"{seed} {dims}")
        self.indices = list(NAMES[:dims])
        self.fixed = seed % 2 == 1
        self.extents = [str(shape[d]) if self.fixed else f"u.shape[{d}]" for d in range(dims)]
        self.inside = self.random.random() < 0.4
        self.cubic = self.random.random() < 0.4

    def at(self, array, indices=None):
        return f"{array}[{', '.join(indices or self.indices)}]"

    def beside(self, index, extent, distance):
        """An index of a neighbour that is there for all work items, or for those of the interior."""
        how = "plain" if self.inside else self.random.choice(["clamped", "periodic", "python", "ternary"])
        sign = "+" if distance > 0 else "-"
        moved = f"{index} {sign} {abs(distance)}"
        return {"plain": moved,
                "clamped": f"max(min({moved}, {extent} - 1), 0)",
                "periodic": f"({moved} + {extent}) % {extent}",
                "python": f"({moved}) % {extent}",
                "ternary": f"{moved} if 0 <= {moved} and {moved} < {extent} else {index}"}[how]

    def value(self, indices=None):
        u = self.at("u", indices)
        return f"{u} * {u} * {u}" if self.cubic else u

    def neighbour(self, d):
        indices = list(self.indices)
        indices[d] = self.beside(indices[d], self.extents[d], self.random.choice([-2, -1, -1, 1, 1, 2]))
        return self.value(indices)

    def conditional(self, d):
        """Lines that use a neighbour where there is one, or another one at a border."""
        index, extent, step = self.indices[d], self.extents[d], self.random.choice([-1, 1])
        indices = list(self.indices)
        indices[d] = f"{index} + {step}"
        condition = f"{index} > 0" if step < 0 else f"{index} < {extent} - 1"
        if self.random.random() < 0.4:  # which only a run tells
            condition += self.random.choice([" and flag == 1", " or flag == 1", " and flag > 0"])
            return [f"s += {self.at('a')} * ti.select({condition}, 0.0, {self.value()})"]
        lines = [f"if {condition}:", f"    s += {self.at('a')} * {self.value(indices)}"]
        if self.random.random() < 0.4:
            indices[d] = f"{index} - ({step})"
            opposite = f"{index} < {extent} - 1" if step < 0 else f"{index} > 0"
            lines += [f"elif {opposite}:", f"    s += 2 * {self.value(indices)}"]
        return lines

    def body(self):
        lines = ["s = " + self.value()]
        for _ in range(self.random.randint(1, 3)):
            d = self.random.randrange(len(self.indices))
            if self.random.random() < 0.4:
                lines += self.conditional(d)
            else:
                lines.append(f"s += {self.random.choice(['', self.at('a') + ' * '])}{self.neighbour(d)}")
        return lines + [f"{self.at('w')} = {self.at('a')} * s"]

    def source(self):
        elements = f"ti.ndrange({', '.join(self.extents)})" if self.fixed else "u"
        loop = f"for {', '.join(self.indices)} in {elements}:"
        lines = self.body()
        if self.inside and self.random.random() < 0.5:
            bounds = ", ".join(f"(2, {n} - 2)" for n in self.extents)
            loop = f"for {', '.join(self.indices)} in ti.ndrange({bounds}):"
        elif self.inside:
            inside = " and ".join(f"{i} > 1 and {i} < {n} - 2" for i, n in zip(self.indices, self.extents))
            lines = [f"if {inside}:"] + ["    " + line for line in lines]
        array = f"ti.types.ndarray(ti.f64, {len(self.indices)})"
        head = ["import costate as ti", "", "@ti.kernel", f"def step(u: {array}, a: {array}, w: {array}, flag: int):",
                "    " + loop]
        return "\n".join(head + ["        " + line for line in lines]) + "\n"


def gradients(path, source, shape, seed, flag, **options):
    ti.init(arch=ARCH, **options)
    step = load(path, source).step
    numbers = np.random.default_rng(seed)
    u, a, w = (ti.ndarray(ti.f64, shape, needs_grad=True) for _ in range(3))
    u.from_numpy(numbers.integers(-3, 4, shape) / 2)
    a.from_numpy(numbers.integers(-2, 3, shape) / 2)
    u.grad.from_numpy(numbers.integers(-2, 3, shape) / 1)
    w.grad.from_numpy(numbers.integers(-2, 3, shape) / 4)
    step.grad(u, a, w, flag)
    return [array.grad.to_numpy() for array in (u, a, w)]


@pytest.mark.parametrize("shapes", [[(3,), (21,), (70,)], [(1, 1), (3, 5), (5, 37)], [(2, 1, 3), (3, 4, 35)]])
@pytest.mark.parametrize("seed", range(12))
def test_neighbours_are_gathered(tmp_path, seed, shapes):
    for shape, flag in itertools.product(shapes, (0, 1)):
        source = Stencil(seed, shape).source()
        wanted = gradients(tmp_path / "stencil.py", source, shape, seed, flag, debug=True)
        for threads in (1, 3):
            found = gradients(tmp_path / "stencil.py", source, shape, seed, flag, cpu_max_num_threads=threads)
            for name, one, other in zip("uaw", found, wanted):
                assert np.array_equal(one, other), f"gradient of {name}, shape {shape}, {threads} threads of\n{source}"


@pytest.mark.skipif(ARCH != ti.cpu, reason="CPUs have ranges in the report")
@pytest.mark.parametrize("deterministic", [False, True])
def test_report_names_what_is_gathered_by_line(tmp_path, deterministic):
    ti.init(arch=ARCH, deterministic=deterministic)
    step = load(tmp_path / "stencil.py", "\n".join([
        "import costate as ti", "", "@ti.kernel", "def step(u: ti.types.ndarray(ti.f64, 1), w: ti.types.ndarray(ti.f64, 1)):",
        "    for i in ti.ndrange((1, u.shape[0] - 1)):", "        before = u[i - 1] * u[i - 1]", "        after = u[i + 1] * u[i]",
        "        w[i] = before + after"])).step
    u, w = (ti.ndarray(ti.f64, 30, needs_grad=True) for _ in range(2))
    step.grad(u, w)
    assert "additions: gathered (lines 6, 7)" in step.report(u, w)
