"""Random programs of launches, derivatives and fills: replays of a graph leave what the launches leave, bit by bit."""

import random

import numpy as np
import pytest

import costate as ti

N = 5


@ti.kernel
def scale(x: ti.types.ndarray(), y: ti.types.ndarray(), s: ti.f64):
    for i in x:
        y[i] = s * x[i] * ti.sin(x[i])


@ti.kernel
def add(x: ti.types.ndarray(), y: ti.types.ndarray(), s: ti.f64):
    for i in x:
        y[i] += s * x[i]


@ti.kernel
def total(x: ti.types.ndarray(), y: ti.types.ndarray(), s: ti.f64):
    for i in range(1):
        for k in range(x.shape[0]):
            y[i] += s * x[k] * x[k]


@ti.kernel
def iterate(x: ti.types.ndarray(), y: ti.types.ndarray(), s: ti.f64):
    for i in x:
        v = x[i]
        for _ in range(3):
            v = v * ti.cos(v) + s
        y[i] = v


KERNELS = (scale, add, total, iterate)


class World:
    def __init__(self, seed):
        draw = np.random.default_rng(seed)
        self.arrays = []
        for _ in range(4):
            x = ti.ndarray(ti.f64, shape=N, needs_grad=True, needs_dual=True)
            for part in (x, x.grad, x.dual):
                part.from_numpy(draw.uniform(-1, 1, N))
            self.arrays.append(x)

    def state(self):
        return [part.to_numpy().tobytes() for x in self.arrays for part in (x, x.grad, x.dual)]


def steps_of(chance):
    """A program: (what, ...) each."""
    steps = []
    for _ in range(chance.randint(1, 8)):
        kind = chance.choice(["launch", "launch", "grad", "jvp", "fill", "fill grad"])
        a, b = chance.sample(range(4), 2)
        steps.append((kind, chance.choice(KERNELS), a, b, round(chance.uniform(-1, 1), 3)))
    return steps


def do(world, steps, factor):
    for kind, kernel, a, b, s in steps:
        x, y = world.arrays[a], world.arrays[b]
        if kind == "fill":
            x.fill(s)
        elif kind == "fill grad":
            x.grad.fill(s)
        else:
            {"launch": kernel, "grad": kernel.grad, "jvp": kernel.jvp}[kind](x, y, s * factor)


def check(seed):
    chance = random.Random(seed)
    steps, direct, captured = steps_of(chance), World(seed), World(seed)
    graph = ti.capture(do, captured, steps, 1.0)
    assert captured.state() == World(seed).state()
    for _ in range(chance.randint(1, 4)):
        if chance.random() < 0.3:       # by the host, between replays
            k, v = chance.randrange(4), chance.uniform(-1, 1)
            direct.arrays[k][2] = captured.arrays[k][2] = v
        factor = chance.choice([1.0, 1.0, 2.0])
        do(direct, steps, factor)
        graph.replay(captured, steps, factor)
        assert captured.state() == direct.state(), (seed, steps)


@pytest.mark.parametrize("part", range(4))
def test_replays_do_what_launches_do(double, part):
    for seed in range(part * 40, part * 40 + 40):
        check(seed)
