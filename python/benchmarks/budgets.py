"""Gradients within a budget beside gradients that save everything: launches, time and memory.

    ./dev bench budgets [--device cpu|simt|cuda|vulkan] [--only CASE ...] [--scale F] [--threads N] [--json FILE]

- `wave`: 2,048 steps of a wave equation on two buffers of 512 x 512, each step in the place of the state before the last;
- `growth`: 1,024 steps of 512 x 512 which spread, and grow by a kernel that overwrites what its own gradient needs;
- `points`: 256 steps of a material point method in three dimensions, 20,000 particles, 32 x 32 x 32 cells;
- `loop`, `while`: one loop of 10,000,000 iterations in a kernel (CPU).

`--scale` multiplies the numbers of steps and iterations. A recording is told its steps or (`unknown`) only marks them. Times are of the
processor, all threads together, on other devices of the clock; launches are those of kernels for a step of the recording.
The difference is the largest of two gradients, by the largest element: 0 if they have the same bits. On GPUs the particles of `points` add in
any order.
"""

import argparse
import re
import sys
import time
from pathlib import Path

import numpy as np

import costate as qd

import results


def between(side):
    """Numbers from -1 to 1, smooth, of two dimensions."""
    x = np.linspace(0, 3, side)
    return np.sin(2 * x)[:, None] * np.cos(3 * x)[None, :]


@qd.func
def bent(u: qd.template(), i, j):
    n = u.shape[0]
    return u[qd.max(i - 1, 0), j] + u[qd.min(i + 1, n - 1), j] + u[i, qd.max(j - 1, 0)] + u[i, qd.min(j + 1, n - 1)] - 4 * u[i, j]


class Grids:
    """Two buffers and a coefficient, of which a loss depends."""

    def __init__(self, side, coefficient):
        self.u, self.v, self.k = (qd.field(qd.f64, (side, side), needs_grad=True) for _ in range(3))
        self.loss = qd.field(qd.f64, (), needs_grad=True)
        self.side = side
        self.k.from_numpy(coefficient * (1 + 0.3 * between(side)))

        @qd.kernel
        def measure(u: qd.template()):
            for i, j in u:
                self.loss[None] += u[i, j] ** 2

        self.of = measure

    def begin(self):
        self.u.from_numpy(0.5 + 0.2 * between(self.side))
        self.v.from_numpy(0.5 + 0.2 * between(self.side))

    def measure(self):
        self.of(self.u)

    def gradient(self):
        return self.k.grad.to_numpy()


class Wave(Grids):
    def __init__(self):
        super().__init__(512, 0.2)

        @qd.kernel
        def advance(u: qd.template(), w: qd.template()):
            for i, j in u:
                w[i, j] = 2 * u[i, j] - w[i, j] + self.k[i, j] * bent(u, i, j)

        self.advance = advance

    def step(self, t):
        self.advance(*((self.u, self.v) if t % 2 == 0 else (self.v, self.u)))


class Growth(Grids):
    def __init__(self):
        super().__init__(512, 0.1)

        @qd.kernel
        def spread(u: qd.template(), v: qd.template()):
            for i, j in u:
                v[i, j] = u[i, j] + self.k[i, j] * bent(u, i, j)

        @qd.kernel
        def grow(v: qd.template()):
            for i, j in v:
                v[i, j] = v[i, j] + 0.02 * v[i, j] * (1 - v[i, j])

        self.spread, self.grow = spread, grow

    def step(self, t):
        u, v = (self.u, self.v) if t % 2 == 0 else (self.v, self.u)
        self.spread(u, v)
        self.grow(v)


@qd.data_oriented
class Points:
    """A weakly compressible fluid (MLS-MPM, quadratic weights); the gradient by the velocity at the start."""

    def __init__(self, particles=20_000, cells=32):
        self.cells, self.particles = cells, particles
        self.dt, self.dx, self.stiffness = 1e-4, 1.0 / cells, 400.0
        self.volume = (self.dx / 2) ** 3
        self.x, self.v = (qd.Vector.field(3, qd.f64, particles, needs_grad=True) for _ in range(2))
        self.c = qd.Matrix.field(3, 3, qd.f64, particles, needs_grad=True)
        self.j = qd.field(qd.f64, particles, needs_grad=True)
        self.momentum = qd.Vector.field(3, qd.f64, (cells,) * 3, needs_grad=True)
        self.mass = qd.field(qd.f64, (cells,) * 3, needs_grad=True)
        self.start = qd.Vector.field(3, qd.f64, (), needs_grad=True)
        self.loss = qd.field(qd.f64, (), needs_grad=True)
        self.places = 0.3 + 0.4 * np.random.default_rng(3).random((particles, 3))

    @qd.func
    def near(self, x):
        base = qd.cast(x / self.dx - 0.5, qd.i32)
        f = x / self.dx - qd.cast(base, qd.f64)
        return base, f, [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]

    @qd.kernel
    def throw(self):
        for p in self.v:
            self.v[p] = self.start[None]

    @qd.kernel
    def clear(self):
        for i, j, k in self.mass:
            self.mass[i, j, k] = 0.0
            self.momentum[i, j, k] = [0.0, 0.0, 0.0]

    @qd.kernel
    def to_grid(self):
        for p in self.x:
            base, f, w = self.near(self.x[p])
            pressure = -self.dt * self.volume * 4 * self.stiffness * (self.j[p] - 1) / self.dx ** 2
            affine = qd.Matrix([[pressure, 0, 0], [0, pressure, 0], [0, 0, pressure]]) + self.volume * self.c[p]
            for a, b, c in qd.static(qd.ndrange(3, 3, 3)):
                away = (qd.Vector([a, b, c]) - f) * self.dx
                weight = w[a][0] * w[b][1] * w[c][2]
                at = base + qd.Vector([a, b, c])
                self.momentum[at] += weight * (self.volume * self.v[p] + affine @ away)
                self.mass[at] += weight * self.volume

    @qd.kernel
    def move_grid(self):
        for i, j, k in self.mass:
            if self.mass[i, j, k] > 0:
                v = self.momentum[i, j, k] / self.mass[i, j, k]
                v[1] -= 9.8 * self.dt
                for d in qd.static(range(3)):
                    place = [i, j, k][d]
                    if (place < 3 and v[d] < 0) or (place > self.cells - 3 and v[d] > 0):
                        v[d] = 0.0
                self.momentum[i, j, k] = v

    @qd.kernel
    def to_points(self):
        for p in self.x:
            base, f, w = self.near(self.x[p])
            v = qd.Vector([0.0, 0.0, 0.0])
            c = qd.Matrix.zero(qd.f64, 3, 3)
            for i, j, k in qd.static(qd.ndrange(3, 3, 3)):
                away = (qd.Vector([i, j, k]) - f) * self.dx
                weight = w[i][0] * w[j][1] * w[k][2]
                g = self.momentum[base + qd.Vector([i, j, k])]
                v += weight * g
                c += 4 * weight * g.outer_product(away) / self.dx ** 2
            self.v[p] = v
            self.c[p] = c
            self.x[p] += self.dt * v
            self.j[p] *= 1 + self.dt * c.trace()

    @qd.kernel
    def measure(self):
        for p in self.x:
            self.loss[None] += self.x[p].norm_sqr() / self.particles

    def begin(self):
        self.x.from_numpy(self.places)
        self.c.fill(0.0)
        self.j.fill(1.0)
        self.start.from_numpy(np.array([1.0, -0.5, 0.25]))

    def step(self, t):
        if t == 0:
            self.throw()
        self.clear()
        self.to_grid()
        self.move_grid()
        self.to_points()

    def gradient(self):
        return self.start.grad.to_numpy()


#: The problem, its steps, and the options of a `Tape` that are compared with none.
RECORDINGS = {
    "wave": (Wave, 2048, ({"snapshots": 16}, {"snapshots": 64}, {"snapshots": 16, "unknown": True}, {"snapshots": 64, "unknown": True})),
    "growth": (Growth, 1024, ({"budget": "512MB"}, {"budget": "128MB"})),
    "points": (Points, 256, ({"budget": "400MB"}, {"budget": "100MB"})),
}


def recorded(problem, steps, unknown=False, **options):
    problem.begin()
    with qd.ad.Tape(problem.loss, **options) as tape:
        for t in range(steps) if unknown or not options else tape.steps(steps):
            problem.step(t)
            if unknown:
                tape.step()
        problem.measure()
    return problem.gradient(), tape.report().peak_bytes


def measured(clock, call):
    """What a call returns, its seconds and its launches."""
    call()
    qd.sync()
    launches, start = qd.statistics().primal_launches, clock()
    found = call()
    qd.sync()
    return found, clock() - start, qd.statistics().primal_launches - launches


def name_of(case, options):
    return ", ".join([case, *(f"{value} {name}" if name == "snapshots" else name if value is True else str(value)
                              for name, value in options.items())])


def difference(one, other):
    return float(np.abs(one - other).max() / np.abs(other).max())


def recordings(case, scale, clock):
    make, steps, choices = RECORDINGS[case]
    problem, steps = make(), max(8, int(scale * steps))
    whole = None
    for options in ({}, *choices):
        (gradient, peak), seconds, launches = measured(clock, lambda: recorded(problem, steps, **options))
        whole = whole or (gradient, seconds, launches)
        yield {"case": name_of(case, options or {"everything": True}), "gradient_ms": 1e3 * seconds, "ratio": seconds / whole[1],
               "launches_per_step": launches / whole[2], "peak_bytes": peak, "difference": difference(gradient, whole[0])}


def iterate(count):
    """Arrays and kernels of one work item that iterates, by `for` and by `while`."""
    x, y = (qd.field(qd.f64, 1, needs_grad=True) for _ in range(2))
    x.fill(0.5)

    def by_for():
        for i in x:
            v, s = x[i], 0.0
            for _ in range(count):
                v = v * qd.sin(v) + 0.7
                s += v
            y[i] = s

    def by_while():
        for i in x:
            v, s, t = x[i], 0.0, 0
            while t < count:
                v = v * qd.sin(v) + 0.7
                s += v
                t += 1
            y[i] = s

    return x, y, {"loop": by_for, "while": by_while}


def largest_tape(kernel):
    """In bytes, as its report prints it."""
    number, unit = re.search(r"largest tape of the last launch: ([\d.]+) (\w+)", kernel.report()).groups()
    return float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB").index(unit)


def iterations(case, scale, clock):
    x, y, bodies = iterate(int(scale * 10_000_000))
    whole = None
    for budget in (None, "64MB", "1MB", "64kB"):
        kernel = qd.kernel(lanes=1, tape_budget=budget)(bodies[case])

        def gradient():
            x.grad.fill(0)
            y.grad.fill(1)
            kernel.grad()
            return x.grad.to_numpy()

        found, seconds, _ = min((measured(clock, gradient) for _ in range(3)), key=lambda one: one[1])
        whole = whole or (found, seconds)
        yield {"case": name_of(case, {"budget": budget or "everything"}), "gradient_ms": 1e3 * seconds, "ratio": seconds / whole[1],
               "peak_bytes": largest_tape(kernel), "difference": difference(found, whole[0])}


def cases(device):
    return [*RECORDINGS, *(("loop", "while") if device == "cpu" else ())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "simt", "cuda", "vulkan"])
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: all")
    parser.add_argument("--only", nargs="+", metavar="CASE")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    print(f"{'case':32} {'ms':>9} {'ratio':>6} {'launches':>9} {'MB':>9} {'difference':>10}")
    for case in options.only or cases(options.device):
        qd.init(arch=getattr(qd, options.device), default_fp=qd.f64, deterministic=on_cpu,
                **({"cpu_max_num_threads": options.threads} if on_cpu and options.threads else {}))
        make = recordings if case in RECORDINGS else iterations
        for row in make(case, options.scale, clock):
            launches = row.get("launches_per_step")
            print(f"{row['case']:32} {row['gradient_ms']:9.1f} {row['ratio']:6.2f} {'' if launches is None else f'{launches:9.3f}':>9} "
                  f"{row['peak_bytes'] / 1e6:9.2f} {row['difference']:10.1e}", flush=True)
            if options.json:
                results.append(options.json, [{"bench": "budgets", "device": options.device, "threads": qd.lang.runtime.device().threads, **row}])
    return 0


if __name__ == "__main__":
    sys.exit(main())
