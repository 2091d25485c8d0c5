"""What exchanges between ranks cost, and what follows from that for many ranks.

    torchrun --nproc-per-node 2 halo.py --json halo.json                                       gloo, on the CPU
    torchrun --nproc-per-node 2 halo.py --backend nccl --arch cuda --size 4096 --json halo.json    NCCL, a GPU for each rank
    python halo.py --model halo.json                                                            a table up to 1,024 ranks

Measured are steps of a wave and their gradient on one rank and on all of them, as many cells on each (weak) or in all (strong). The program of
a step is written in several ways:

    plain      halo, then all cells
    overlap    the halo starts, cells that need none, the halo finishes, cells at both ends
    wide       halos of `--width` slices, once in as many steps; cells of the halo are computed by both neighbours
    graph      plain, sixteen steps in one graph;  graph-overlap, graph-wide: the others

The efficiency of weak scaling is the time of the fastest way on one rank by that of each way on all of them. Beside that the parts of a step:
cells alone, a `Halo`, the time that the host takes for one, and the engine alone with the same bytes. Gradients of all ways are compared with those of one rank.

The model: a step takes as long as on one rank, and two messages, one to each side at the same time, each latency + bytes / bandwidth; the gradient the same
with twice the step. A sum over ranks of the gradients of weights takes 2 log2(ranks) latencies, and twice its bytes. Not in it: noise, by which all wait for
the slowest, and links that several messages share.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np

RANKS = (1, 2, 4, 8, 16, 64, 256, 1024)
STEPS = 16
WAYS = ("plain", "overlap", "wide", "graph", "graph-overlap", "graph-wide")


def begin(options):
    """The group of all ranks, of one, and PyTorch with the GPU of this rank as its only one."""
    if options.arch == "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")     # no multicast over NVLink
    import torch
    import torch.distributed as dist
    import costate as qd
    from costate import distributed
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    qd.init(arch=options.arch, default_fp=qd.f32, cpu_max_num_threads=1 if options.arch == "cpu" else 0, enable_fallback=False)
    return distributed.TorchGroup(), distributed.in_process(1)[0]


def kernels():
    import costate as qd

    @qd.kernel
    def step(before: qd.types.ndarray(), now: qd.types.ndarray(), after: qd.types.ndarray(), margin: qd.template()):
        for i, j in qd.ndrange((margin, now.shape[0] - margin), (1, now.shape[1] - 1)):
            bent = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4 * now[i, j]
            after[i, j] = 2 * now[i, j] - before[i, j] + 0.2 * bent * (1 + 0.1 * now[i, j])

    @qd.kernel
    def ends(before: qd.types.ndarray(), now: qd.types.ndarray(), after: qd.types.ndarray(), apart: qd.template()):
        for k, j in qd.ndrange(2, (1, now.shape[1] - 1)):
            i = 1 + k * apart
            bent = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4 * now[i, j]
            after[i, j] = 2 * now[i, j] - before[i, j] + 0.2 * bent * (1 + 0.1 * now[i, j])
    return step, ends


class Wave:
    """A domain of `rows` x `columns` cells on this rank, at all times of a few steps."""

    def __init__(self, group, rows, columns, way="plain", width=16):
        import costate as qd
        from costate import distributed
        self.group, self.rows = group, rows
        self.is_graph, self.way = way.startswith("graph"), way.removeprefix("graph").removeprefix("-") or "plain"
        self.width = width if self.way == "wide" else 1
        self.w = [qd.ndarray(qd.f32, (rows + 2 * self.width, columns), needs_grad=True) for _ in range(STEPS + 2)]
        if self.way == "wide":
            self.halos = [distributed.Halo(self.w[t:t + 2], width=width, periodic=True, group=group) for t in range(0, STEPS, width)]
        else:
            self.halos = [distributed.Halo(one, periodic=True, group=group) for one in self.w[:-1]]
        self.step, self.ends = kernels()
        self.replays = {}

    def start(self, first, total):
        rows, columns = self.w[0].shape
        i = (np.arange(rows) - self.width + first) % total
        whole = np.sin(2 * np.pi * i / total)[:, None] * np.cos(np.arange(columns) / 7)
        for one in self.w[:2]:
            one.from_numpy(whole.astype(np.float32))

    # -- a step at time t ----------------------------------------------------------

    def plain(self, t):
        self.halos[t + 1]()
        self.step(*self.w[t:t + 3], 1)

    def plain_grad(self, t):
        self.step.grad(*self.w[t:t + 3], 1)
        self.halos[t + 1].grad()

    def overlap(self, t):
        self.halos[t + 1].start()
        self.step(*self.w[t:t + 3], 2)
        self.halos[t + 1].finish()
        self.ends(*self.w[t:t + 3], self.rows - 1)

    def overlap_grad(self, t):
        self.ends.grad(*self.w[t:t + 3], self.rows - 1)
        self.halos[t + 1].finish_grad()
        self.step.grad(*self.w[t:t + 3], 2)
        self.halos[t + 1].start_grad()

    def wide(self, t):
        """Cells of the halo are right for so many steps."""
        if t % self.width == 0:
            self.halos[t // self.width]()
        self.step(*self.w[t:t + 3], 1 + t % self.width)

    def wide_grad(self, t):
        self.step.grad(*self.w[t:t + 3], 1 + t % self.width)
        if t % self.width == 0:
            self.halos[t // self.width].grad()

    # -- what is measured, STEPS steps -----------------------------------------------

    def steps(self):
        for t in range(STEPS):
            getattr(self, self.way)(t)

    def seed(self):
        """Nothing of the halo, which is another rank's."""
        self.w[-1].grad.fill(1)

    def there_and_back(self):
        self.steps()
        self.seed()
        for t in reversed(range(STEPS)):
            getattr(self, self.way + "_grad")(t)

    def replay(self, function):
        import costate as qd
        if function not in self.replays:
            self.replays[function] = qd.capture(function)
        self.replays[function].replay()

    def primal(self):
        self.replay(self.steps) if self.is_graph else self.steps()

    def gradient(self):
        import costate as qd
        if self.is_graph:
            return self.replay(self.there_and_back)
        self.seed()
        with qd.ad.Tape(None):
            self.steps()

    # -- its parts -------------------------------------------------------------------

    def cells(self):
        for t in range(STEPS):
            self.step(*self.w[t:t + 3], 1)

    def cells_graph(self):
        self.replay(self.cells)

    def exchange(self):
        for t in range(STEPS):
            self.halos[t]()

    def exchange_graph(self):
        self.replay(self.exchange)

    def exchange_grad(self):
        for t in range(STEPS):
            self.halos[t].grad()

    def engine(self):
        """The same bytes by PyTorch alone, from buffers on the device of the engine."""
        import torch
        import torch.distributed as dist
        cuda = self.group.in_place
        rank, size, columns = self.group.rank(), self.group.size(), self.w[0].shape[1]
        buffers = torch.zeros(4, columns, device="cuda" if cuda else "cpu")
        down, up = (rank - 1) % size, (rank + 1) % size
        for _ in range(STEPS):
            works = dist.batch_isend_irecv([dist.P2POp(dist.isend, buffers[0], down, tag=0),
                                            dist.P2POp(dist.isend, buffers[1], up, tag=1),
                                            dist.P2POp(dist.irecv, buffers[2], up, tag=0),
                                            dist.P2POp(dist.irecv, buffers[3], down, tag=1)])
            for work in works:
                work.wait()


def wait(group):
    import costate as qd
    qd.sync()
    if getattr(group, "in_place", False):
        import torch
        torch.cuda.synchronize()


def meet(group):
    wait(group)
    if group.size() > 1:
        group.barrier()
        wait(group)


def slowest(group, seconds):
    """Of all ranks."""
    if group.size() == 1:
        return seconds
    import torch
    import torch.distributed as dist
    number = torch.tensor([seconds], device="cuda" if group.in_place else "cpu")
    dist.all_reduce(number, dist.ReduceOp.MAX)
    return number.item()


def seconds(wave, function, rounds, repeats):
    """Of a step, until the device is done and until the host is: the least of several rounds, on the slowest rank."""
    function()
    best, host = math.inf, math.inf
    for _ in range(rounds):
        meet(wave.group)
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        called = time.perf_counter() - start
        wait(wave.group)
        best = min(best, slowest(wave.group, time.perf_counter() - start))
        host = min(host, called)
    return best / repeats / STEPS, host / repeats / STEPS


def gradients_agree(group, alone, size, width):
    """The largest difference from one rank, relative to the largest gradient, for each way."""
    rows = 16
    expected = Wave(alone, rows * group.size(), size)
    expected.start(0, rows * group.size())
    expected.gradient()
    whole = expected.w[0].grad.to_numpy()[1:-1]
    first, differences = rows * group.rank(), {}
    for way in WAYS:
        found = Wave(group, rows, size, way, width)
        found.start(first, rows * group.size())
        found.gradient()
        part = found.w[0].grad.to_numpy()[found.width:-found.width]
        differences[way] = float(np.abs(part - whole[first:first + rows]).max() / np.abs(whole).max())
    return differences


def ways(group, rows, options):
    """Seconds of a step and of its gradient in each way."""
    found = {}
    for way in WAYS:
        wave = Wave(group, rows, options.size, way, options.width)
        found[way] = {kind: seconds(wave, getattr(wave, kind), options.rounds, options.repeats)[0] for kind in ("primal", "gradient")}
    return found


def parts(group, options):
    """Seconds of the parts of a step: all, and those of the host."""
    wave = Wave(group, options.size, options.size)
    return {name: seconds(wave, getattr(wave, name), options.rounds, options.repeats)
            for name in ("cells", "cells_graph", "exchange", "exchange_graph", "exchange_grad", "engine")}


def messages(group, options):
    found = []
    for columns in (64, 1024, options.size, 16 * options.size):
        wave = Wave(group, 4, columns)
        found.append({"bytes": 4 * columns, **{name: seconds(wave, function, options.rounds, options.repeats)[0] for name, function in
                                               (("halo", wave.exchange), ("graph", wave.exchange_graph), ("engine", wave.engine))}})
    return found


def measure(options):
    group, alone = begin(options)
    size, count = options.size, group.size()
    report = dict(backend=options.backend, arch=options.arch, ranks=count, size=size, width=options.width,
                  differences=gradients_agree(group, alone, 64, options.width),
                  parts=parts(group, options), one=ways(alone, size, options), weak=ways(group, size, options),
                  strong=ways(group, size // count, options), messages=messages(group, options))
    fastest = {kind: min(one[kind] for one in report["one"].values()) for kind in ("primal", "gradient")}
    report["weak_efficiency"] = {way: {kind: fastest[kind] / took[kind] for kind in took} for way, took in report["weak"].items()}
    if group.rank() == 0:
        print(text(report))
        if options.json:
            Path(options.json).write_text(json.dumps(report, indent=1))
    group.barrier()


def text(report):
    lines = [f"{report['ranks']} ranks, {report['backend']} on {report['arch']}, {report['size']} x {report['size']} cells of f32 on each; microseconds",
             "", f"{'a step':16s}{'one':>9s}{'all':>9s}{'weak':>8s}   {'gradient: one':>14s}{'all':>9s}{'weak':>8s}   {'difference':>10s}"]
    for way in WAYS:
        cells = []
        for kind in ("primal", "gradient"):
            cells += [1e6 * report["one"][way][kind], 1e6 * report["weak"][way][kind], 100 * report["weak_efficiency"][way][kind]]
        lines.append(f"{way:16s}{cells[0]:9.1f}{cells[1]:9.1f}{cells[2]:6.1f} %   {cells[3]:14.1f}{cells[4]:9.1f}{cells[5]:6.1f} %   "
                     f"{report['differences'][way]:10.1e}")
    lines += ["", f"{'part':16s}{'all':>9s}{'host':>9s}"]
    lines += [f"{name:16s}{1e6 * took:9.1f}{1e6 * host:9.1f}" for name, (took, host) in report["parts"].items()]
    lines += ["", f"{'bytes':>9s}{'halo':>9s}{'graph':>9s}{'engine':>9s}"]
    lines += [f"{one['bytes']:9d}{1e6 * one['halo']:9.1f}{1e6 * one['graph']:9.1f}{1e6 * one['engine']:9.1f}" for one in report["messages"]]
    return "\n".join(lines)


def fitted(messages):
    """Latency and bandwidth of a `Halo`: what is least off, relative to the times. Neither is negative."""
    lines = np.array([[1 / one["halo"], one["bytes"] / one["halo"]] for one in messages])
    found = []
    for chosen in ([0, 1], [0], [1]):
        both = np.zeros(2)
        both[chosen] = np.linalg.lstsq(lines[:, chosen], np.ones(len(lines)), rcond=None)[0]
        if both.min() >= 0:
            found.append((np.abs(lines @ both - 1).max(), both))
    latency, slope = min(found, key=lambda one: one[0])[1]
    return latency, 1 / max(slope, 1e-15)


def model(file):
    report = json.loads(Path(file).read_text())
    latency, bandwidth = fitted(report["messages"])
    row = 4 * report["size"]
    print(f"{report['backend']} on {report['arch']}, {report['size']} x {report['size']} cells of f32: {1e6 * latency:.0f} µs, "
          f"{bandwidth / 1e9:.2f} GB/s\n")
    print("| ranks | weak, step | weak, gradient | strong, step | strong, gradient | sum of 1 MB |\n|---|---|---|---|---|---|")
    for ranks in RANKS:
        message = latency + row / bandwidth if ranks > 1 else 0.0
        cells = []
        for part in (1, ranks):
            for kind in ("primal", "gradient"):
                work, messages = report["one"]["plain"][kind] / part, message * (1 if kind == "primal" else 2)
                cells.append(f"{100 * work / (work + messages):.0f} %")
        total = 2 * math.log2(ranks) * latency + (2 * (ranks - 1) / ranks) * 1e6 / bandwidth
        print(f"| {ranks} | {' | '.join(cells)} | {1e3 * total:.2f} ms |")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--arch", default="cpu")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--width", type=int, default=16, help="slices of a wide halo")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="calls of sixteen steps in a round")
    parser.add_argument("--json")
    parser.add_argument("--model")
    options = parser.parse_args(arguments)
    model(options.model) if options.model else measure(options)


if __name__ == "__main__":
    main()
