"""Random straight kernels on components of vectors: the same bits for any number of lanes."""

import os

import numpy as np
import pytest

import costate as ti

pytestmark = pytest.mark.skipif(os.environ.get("COSTATE_DEVICE", "cpu") not in ("", "cpu"), reason="lanes are those of CPUs")

SET, ADD, SET_ALL, ADD_ALL, INSIDE = range(5)
INTEGERS = ("i8", "i32", "i64", "u32")


class Program:
    """Statements on two vectors that change and one, of neighbours too, that does not."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.components, self.n = self.below(1, 10), self.below(1, 45)
        self.is_float = seed % 3 > 0
        self.types = [self.pick(("f32", "f64"))] * 3 if self.is_float else [self.pick(INTEGERS) for _ in range(3)]
        most = self.pick((2, self.components))    # often the first components only
        part = lambda: self.below(0, min(most, self.components) - 1)   # noqa: E731
        self.statements = [(self.below(SET, INSIDE), self.below(0, 1), part(), self.below(0, 1), part(), part(), self.below(0, 2))
                           for _ in range(self.below(2, 8))]
        self.values = [self.numbers() for _ in range(3)]
        self.slopes = [self.numbers() for _ in range(3)]

    def below(self, least, most):
        return int(self.random.integers(least, most + 1))

    def pick(self, choices):
        return choices[self.below(0, len(choices) - 1)]

    def numbers(self):
        return self.random.integers(0, 8, (self.n + 2, self.components))

    def run(self, lanes, threads):
        """What the kernel leaves in all vectors, and their gradients."""
        ti.init(arch=ti.cpu, lanes=lanes, cpu_max_num_threads=threads)
        types = [getattr(ti, name) for name in self.types]
        fields = [ti.Vector.field(self.components, dtype, self.n + 2, needs_grad=self.is_float and number < 2)
                  for number, dtype in enumerate(types)]
        n, statements = self.n, self.statements

        @ti.kernel
        def work():
            for i in range(n):
                for what, to, c, source, d, e, shift in ti.static(statements):
                    factor = fields[2][i + shift][e]
                    if ti.static(what == SET):
                        fields[to][i][c] = ti.cast(factor * fields[source][i][d], types[to])
                    if ti.static(what == ADD):
                        fields[to][i][c] += ti.cast(factor * fields[source][i][d], types[to])
                    if ti.static(what == SET_ALL):
                        fields[to][i] = ti.cast(factor * fields[source][i], types[to])
                    if ti.static(what == ADD_ALL):
                        fields[to][i] += ti.cast(factor * fields[source][i], types[to])
                    if ti.static(what == INSIDE):
                        if factor > 3:
                            fields[to][i][c] = ti.cast(fields[source][i][d], types[to])

        for field, values, dtype in zip(fields, self.values, types, strict=True):
            field.from_numpy(values.astype(dtype.np))
        work()
        result = [field.to_numpy() for field in fields]
        if self.is_float:
            for field, slopes in zip(fields[:2], self.slopes, strict=False):
                field.grad.from_numpy(slopes.astype(types[0].np))
            work.grad()
            result += [field.grad.to_numpy() for field in fields[:2]]
        return [array.tobytes() for array in result]

    def expected(self):
        """The vectors, by the statements one after the other."""
        with np.errstate(over="ignore"):
            arrays = [values.astype(getattr(ti, name).np) for values, name in zip(self.values, self.types, strict=True)]
            for i in range(self.n):
                for what, to, c, source, d, e, shift in self.statements:
                    factor, old = arrays[2][i + shift, e], arrays[source][i].copy()
                    if what in (SET, ADD):
                        arrays[to][i, c] = (factor * old[d]).astype(arrays[to].dtype) + (arrays[to][i, c] if what == ADD else 0)
                    elif what in (SET_ALL, ADD_ALL):
                        arrays[to][i] = (factor * old).astype(arrays[to].dtype) + (arrays[to][i] if what == ADD_ALL else 0)
                    elif factor > 3:
                        arrays[to][i, c] = old[d].astype(arrays[to].dtype)
        return arrays


@pytest.mark.parametrize("seed", range(24))
def test_lanes_give_the_bits_of_one(seed):
    program = Program(seed)
    alone = program.run(1, 1)
    if program.is_float:
        assert [array.tobytes() for array in program.expected()] == alone[:3]
    for lanes in (0, 2, 4, 8, 16):
        assert program.run(lanes, 1 + lanes % 3) == alone, f"{lanes} lanes"
