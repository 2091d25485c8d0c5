"""How much memory does a gradient through many steps take, and how much time?

Heat spreads through a plate whose conductivity is learnt: each step overwrites one of two buffers, and its
gradient needs what was there. All of that together may exceed any memory; a `Tape` with a budget takes snapshots
and runs steps again.

    python memory.py [--size 1024] [--steps 4096] [--budget 2GB]
    python memory.py --picture memory.png --size 256 --steps 512
"""

import argparse
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import costate as qd


BUDGETS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 400)


class Plate:
    """u(t + 1) = u + k(u) laplace(u), where k(u) = conductivity * (1 + u^2)."""

    def __init__(self, size, steps):
        self.size, self.steps = size, steps
        shape = (size, size)
        self.conductivity = qd.field(qd.f64, shape=shape, needs_grad=True)
        self.buffers = [qd.field(qd.f64, shape=shape, needs_grad=True) for _ in range(2)]
        self.loss = qd.field(qd.f64, shape=(), needs_grad=True)
        x = np.linspace(0, 1, size)
        self.start = np.sin(3 * np.pi * x)[:, None] * np.cos(2 * np.pi * x)[None, :]
        self.conductivity.from_numpy(0.06 + 0.03 * self.start)
        last = self.buffers[steps % 2]

        @qd.kernel
        def step(u: qd.template(), v: qd.template()):
            for i, j in u:
                c = u[i, j]
                bent = (u[qd.max(i - 1, 0), j] + u[qd.min(i + 1, size - 1), j] + u[i, qd.max(j - 1, 0)]
                        + u[i, qd.min(j + 1, size - 1)] - 4 * c)
                v[i, j] = c + self.conductivity[i, j] * (1 + c * c) * bent

        @qd.kernel
        def measure():
            for i, j in last:
                self.loss[None] += last[i, j] ** 2

        self.step, self.measure = step, measure

    def gradient(self, bar=False, **options):
        """Of the loss by the conductivity, the seconds that it takes, and what it holds."""
        self.buffers[0].from_numpy(self.start)
        began, primal = time.perf_counter(), qd.statistics().primal_launches
        bars = []

        def show(done, total):
            if not bars:
                bars.append(tqdm(total=total, desc="backward"))
            bars[0].update(done - bars[0].n)

        with qd.ad.Tape(self.loss, progress=show if bar else None, **options) as tape:
            for t in tqdm(tape.steps(self.steps), desc="forward ", disable=not bar):
                self.step(self.buffers[t % 2], self.buffers[(t + 1) % 2])
            self.measure()
        for one in bars:
            one.close()
        seconds = time.perf_counter() - began
        launches = qd.statistics().primal_launches - primal
        return self.conductivity.grad.to_numpy(), seconds, launches, tape.report()


def check(plate):
    """The gradient against differences, along one direction."""
    way = np.cos(np.arange(plate.size ** 2)).reshape(plate.size, plate.size)
    gradient = plate.gradient(snapshots=3)[0]
    base, values = plate.conductivity.to_numpy(), []
    for step in (1e-6, -1e-6):
        plate.conductivity.from_numpy(base + step * way)
        plate.gradient()
        values.append(plate.loss[None])
    plate.conductivity.from_numpy(base)
    slope, expected = (gradient * way).sum(), (values[0] - values[1]) / 2e-6
    print(f"gradient against differences: {abs(slope - expected) / abs(expected):.1e}")
    assert abs(slope - expected) <= 1e-6 * abs(expected)


def plot(plate, file, budgets):
    """Time against budget, in states."""
    plate.gradient(snapshots=2)    # compiles
    whole, all_seconds, launches, _ = plate.gradient()
    points, state = [], 8 * plate.size ** 2
    for states in budgets:
        got, seconds, launches, report = plate.gradient(budget=states * state)
        assert np.array_equal(got, whole)
        points.append((states * state / 1e6, seconds, launches / plate.steps))
        print(f"{points[-1][0]:8.1f} MB  {seconds:6.2f} s  {points[-1][2]:.2f} launches for each step")
    megabytes, seconds, again = zip(*points)
    figure, axis = plt.subplots(figsize=(7, 4))
    axis.semilogx(megabytes, seconds, "o-", label="with a budget")
    axis.semilogx([plate.steps * state / 1e6], [all_seconds], "s", label="everything saved")
    for x, y, k in points:
        axis.annotate(f"{k:.1f}", (x, y), textcoords="offset points", xytext=(4, 6), fontsize=8)
    axis.set_xlabel("budget in MB")
    axis.set_ylabel("seconds")
    axis.set_ylim(0, 1.15 * max(seconds + (all_seconds,)))
    axis.set_title(f"Gradient through {plate.steps} steps of {plate.size} x {plate.size}; numbers: launches for each step")
    axis.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    print(f"picture: {file}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=512)
    parser.add_argument("--budget", help="such as 2GB; without, everything is saved")
    parser.add_argument("--picture", help="time against budget, in this file")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    qd.init(arch=getattr(qd, options.device), default_fp=qd.f64)
    check(Plate(16, 20))
    plate = Plate(options.size, options.steps)
    if options.picture:
        return plot(plate, options.picture, [k for k in BUDGETS if k < plate.steps])
    chosen = dict(budget=options.budget) if options.budget else {}
    gradient, seconds, launches, report = plate.gradient(bar=True, **chosen)
    print(report if report.snapshots else f"{report.peak_bytes / 1e9:.2f} GB of copies")
    print(f"{seconds:.1f} s, {launches} launches of {options.steps + 1}, at most {report.peak_bytes / 1e9:.2f} GB; "
          f"|gradient| = {np.linalg.norm(gradient):.12e}")
    return report


if __name__ == "__main__":
    main()
