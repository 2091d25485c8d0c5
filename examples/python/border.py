"""How fast are waves inside, if they are only heard at the border?

A square is cut into four parts, and a rank has each of them. Waves go through all parts: before each step ranks exchange
the rows at their borders, and in the gradient the adjoints of these rows. The speed is a map of a few numbers, which all
ranks have, so their gradients are added up over ranks.

    python border.py [--picture border.png] [--iterations 60]          four threads
    torchrun --nproc-per-node 4 border.py                              four processes
"""

import argparse
import os
import threading

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import costate as qd
from costate import distributed

N, COARSE, STEPS, RANKS = 48, 5, 100, 4
SHOTS = ((4, 24), (24, 43), (43, 8))
SLOW, FAST = 0.25, 0.6  # cells a step

Grid = qd.types.ndarray(dtype=qd.f64, ndim=2)


@qd.kernel
def spread_map(q: Grid, c: Grid, first: qd.i32):
    """The square of the speed in each cell: between those of the map."""
    for i, j in c:
        y = qd.min(qd.max(first + i - 1, 0), N - 1) * (COARSE - 1.0) / (N - 1)
        x = j * (COARSE - 1.0) / (N - 1)
        a, b = qd.min(qd.cast(y, qd.i32), COARSE - 2), qd.min(qd.cast(x, qd.i32), COARSE - 2)
        s, t = y - a, x - b
        between = (1 - s) * ((1 - t) * q[a, b] + t * q[a, b + 1]) + s * ((1 - t) * q[a + 1, b] + t * q[a + 1, b + 1])
        speed = SLOW + (FAST - SLOW) / (1 + qd.exp(-between))
        c[i, j] = speed * speed


@qd.kernel
def step(before: Grid, u: Grid, after: Grid, c: Grid, first: qd.i32):
    """The wave equation; waves come back from the border of the square."""
    for i, j in qd.ndrange((1, u.shape[0] - 1), N):
        up = u[i - 1, j] if first + i > 1 else u[i, j]
        down = u[i + 1, j] if first + i < N else u[i, j]
        bent = up + down + u[i, qd.max(j - 1, 0)] + u[i, qd.min(j + 1, N - 1)] - 4 * u[i, j]
        after[i, j] = 2 * u[i, j] - before[i, j] + c[i, j] * bent


@qd.func
def is_border(row, j):
    return row == 0 or row == N - 1 or j == 0 or j == N - 1


@qd.kernel
def hear(u: Grid, heard: qd.types.ndarray(dtype=qd.f64, ndim=3), t: qd.i32, first: qd.i32):
    for i, j in qd.ndrange((1, u.shape[0] - 1), N):
        if is_border(first + i - 1, j):
            heard[t, i, j] = u[i, j]


@qd.kernel
def compare(u: Grid, heard: qd.types.ndarray(dtype=qd.f64, ndim=3), t: qd.i32, first: qd.i32,
            loss: qd.types.ndarray(dtype=qd.f64, ndim=0)):
    for i, j in qd.ndrange((1, u.shape[0] - 1), N):
        if is_border(first + i - 1, j):
            loss[None] += (u[i, j] - heard[t, i, j]) ** 2


class Part:
    """The rows of one rank, with a row of each neighbour."""

    def __init__(self, group):
        self.group, self.first = group, group.rank() * N // group.size()
        rows = (group.rank() + 1) * N // group.size() - self.first
        array = lambda *shape: qd.ndarray(qd.f64, shape, needs_grad=True)
        self.rows, self.q, self.c = rows, array(COARSE, COARSE), array(rows + 2, N)
        self.waves = [array(rows + 2, N) for _ in range(3)]
        self.halos = [distributed.Halo(one, axis=0, width=1, group=group) for one in self.waves]
        self.heard = [qd.ndarray(qd.f64, (STEPS, rows + 2, N)) for _ in SHOTS]
        self.loss = array()

    def begin(self, shot):
        """A bump that is at rest."""
        i, j = np.meshgrid(np.arange(self.rows + 2) + self.first - 1, np.arange(N), indexing="ij")
        bump = np.exp(-((i - shot[0]) ** 2 + (j - shot[1]) ** 2) / 6.0)
        for one in self.waves:
            one.from_numpy(bump)

    def run(self, listen):
        spread_map(self.q, self.c, self.first)
        for t in range(STEPS):
            before, now, after = (k % 3 for k in (t, t + 1, t + 2))
            self.halos[now]()
            step(self.waves[before], self.waves[now], self.waves[after], self.c, self.first)
            listen(self.waves[after], t)

    def record(self, q):
        """What is heard with this map."""
        self.q.from_numpy(q)
        for shot, heard in zip(SHOTS, self.heard):
            self.begin(shot)
            self.run(lambda u, t: hear(u, heard, t, self.first))

    def gradient(self, q):
        """The loss of all ranks, and its gradient by the map."""
        loss, slope = 0.0, np.zeros_like(q)
        for shot, heard in zip(SHOTS, self.heard):
            self.q.from_numpy(q)
            self.q.grad.fill(0)
            self.begin(shot)
            with qd.ad.Tape(self.loss):
                self.run(lambda u, t: compare(u, heard, t, self.first, self.loss))
            distributed.sum_gradients(self.q, self.group)
            distributed.all_reduce(self.loss, self.group)
            loss, slope = loss + self.loss[None], slope + self.q.grad.to_numpy()
        return loss, slope


def truth():
    """Fast, but for a place in the middle."""
    y, x = np.meshgrid(np.linspace(-1, 1, COARSE), np.linspace(-1, 1, COARSE), indexing="ij")
    return 1.0 - 3.5 * np.exp(-((x - 0.3) ** 2 + (y + 0.2) ** 2) / 0.3)


def check(part, q, at=(1, 3), by=1e-4):
    """The gradient against differences, on all ranks."""
    shift = np.zeros_like(q)
    shift[at] = by
    difference = (part.gradient(q + shift)[0] - part.gradient(q - shift)[0]) / (2 * by)
    slope = part.gradient(q)[1][at]
    assert abs(slope - difference) < 1e-5 * abs(difference)
    return slope, difference


def find(part, iterations, rate=0.1):
    """Adam (Kingma and Ba, 2015); the map, and the losses on the way."""
    q = np.ones((COARSE, COARSE))      # what is there far from the bump
    mean, square, losses = np.zeros_like(q), np.zeros_like(q), []
    for t in range(1, iterations + 1):
        loss, slope = part.gradient(q)
        losses.append(loss)
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope ** 2 - square)
        q -= rate * mean / (1 - 0.9 ** t) / (np.sqrt(square / (1 - 0.99 ** t)) + 1e-12)
    return q, losses


def speeds(part, q):
    part.q.from_numpy(q)
    spread_map(part.q, part.c, part.first)
    return np.sqrt(part.c.to_numpy()[1:-1])


def on_threads(function):
    """What the function returns for each rank of this process."""
    results = [None] * RANKS
    groups = distributed.in_process(RANKS)

    def run(rank):
        results[rank] = function(Part(groups[rank]))
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(RANKS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return results


def on_processes(function):
    """The same where `torchrun` has begun a process for each rank; nothing but on rank 0."""
    import torch.distributed as dist
    dist.init_process_group("gloo")
    own = function(Part(distributed.TorchGroup()))
    results = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(own, results)
    dist.destroy_process_group()
    return results


def draw(results, file):
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axis, k, title in ((axes[0], 1, "the speed"), (axes[1], 2, "found from the border")):
        picture = axis.imshow(np.concatenate([one[k] for one in results]), vmin=SLOW, vmax=FAST, cmap="viridis")
        for rank in range(1, len(results)):
            axis.axhline(rank * N / len(results) - 0.5, color="white", lw=0.8, ls=":")
        axis.plot([j for _, j in SHOTS], [i for i, _ in SHOTS], "r*")
        axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(picture, ax=axes[:2], label="cells a step")
    axes[2].semilogy(results[0][0])
    axes[2].set(title="loss", xlabel="iterations")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--picture")
    options = parser.parse_args(arguments)
    qd.init(arch=qd.cpu, default_fp=qd.f64, cpu_max_num_threads=1)

    def work(part):
        part.record(truth())
        if part.group.rank() == 0:
            print("reverse mode {:.8e}, central differences {:.8e}".format(*check(part, np.ones((COARSE, COARSE)))))
        else:
            check(part, np.ones((COARSE, COARSE)))
        q, losses = find(part, options.iterations)
        return losses, speeds(part, truth()), speeds(part, q)
    results = (on_processes if "RANK" in os.environ else on_threads)(work)
    if results is None:
        return None
    losses = results[0][0]
    miss = max(np.abs(found - true).max() for _, true, found in results)
    print(f"loss {losses[0]:.3e} -> {losses[-1]:.3e}; the speed is off by at most {miss:.3f} cells a step")
    if options.picture:
        draw(results, options.picture)
    return losses


if __name__ == "__main__":
    main()
