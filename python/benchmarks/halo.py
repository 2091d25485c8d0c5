"""What exchanges between ranks cost, and what follows from that for many ranks.

    torchrun --nproc-per-node 2 halo.py --json halo.json                                       gloo, on the CPU
    torchrun --nproc-per-node 2 halo.py --backend nccl --arch cuda --size 4096 --json halo.json    NCCL, a GPU for each rank
    python halo.py --model halo.json                                                            a table up to 1,024 ranks

Measured are a step of a wave and its gradient on one rank and on all of them, as many cells on each (weak) or in all (strong); a
`Halo`; and the engine alone with the same bytes. Gradients are compared with those of one rank. The model: a step takes as long as on one rank,
and two messages, one to each side at the same time, each latency + bytes / bandwidth; the gradient the same with twice the step. A sum over ranks of the
gradients of weights takes 2 log2(ranks) latencies, and twice its bytes. Not in it: noise, by which all wait for the slowest, and links that several
messages share.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np

RANKS = (1, 2, 4, 8, 16, 64, 256, 1024)


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


class Wave:
    """A domain of `rows` x `columns` cells on this rank."""

    def __init__(self, group, rows, columns):
        import costate as qd
        from costate import distributed
        self.group, self.steps = group, 8
        self.u, self.v = (qd.ndarray(qd.f32, (rows + 2, columns), needs_grad=True) for _ in range(2))
        self.halos = [distributed.Halo(one, periodic=True, group=group) for one in (self.u, self.v)]

        @qd.kernel
        def step(u: qd.types.ndarray(), v: qd.types.ndarray()):
            for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
                bent = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
                v[i, j] = 2 * u[i, j] - v[i, j] + 0.2 * bent * (1 + 0.1 * u[i, j])
        self.step = step
        self.seed = np.pad(np.ones((rows, columns), np.float32), ((1, 1), (0, 0)))

    def start(self, first, total):
        rows, columns = self.u.shape[0] - 2, self.u.shape[1]
        i = (np.arange(rows + 2) - 1 + first) % total
        whole = np.sin(2 * np.pi * i / total)[:, None] * np.cos(np.arange(columns) / 7)
        self.u.from_numpy(whole.astype(np.float32))
        self.v.from_numpy(whole.astype(np.float32))

    def primal(self):
        for t in range(self.steps):
            u, v = (self.u, self.v) if t % 2 == 0 else (self.v, self.u)
            self.halos[t % 2]()
            self.step(u, v)

    def gradient(self):
        import costate as qd
        self.u.grad.from_numpy(self.seed)      # nothing of the halo, which is another rank's
        self.v.grad.fill(0)
        with qd.ad.Tape(None):
            self.primal()

    def exchange(self):
        for _ in range(self.steps):
            self.halos[0]()

    def engine(self):
        """The same bytes by PyTorch alone, from buffers on the device of the engine."""
        import torch
        import torch.distributed as dist
        cuda = self.group.in_place
        rank, size, columns = self.group.rank(), self.group.size(), self.u.shape[1]
        buffers = torch.zeros(4, columns, device="cuda" if cuda else "cpu")
        down, up = (rank - 1) % size, (rank + 1) % size
        for _ in range(self.steps):
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
    if group.size() > 1:
        group.barrier()


def seconds(wave, function, rounds):
    """Of a step, the least of several rounds."""
    function()
    best = math.inf
    for _ in range(rounds):
        wait(wave.group)
        start = time.perf_counter()
        function()
        wait(wave.group)
        best = min(best, time.perf_counter() - start)
    return best / wave.steps


def gradients_agree(group, alone, size):
    """The largest difference from one rank, relative to the largest gradient."""
    rows = 16
    found, expected = Wave(group, rows, size), Wave(alone, rows * group.size(), size)
    first = rows * group.rank()
    found.start(first, rows * group.size())
    expected.start(0, rows * group.size())
    for one in (found, expected):
        one.gradient()
    whole, part = expected.u.grad.to_numpy()[1:-1], found.u.grad.to_numpy()[1:-1]
    return float(np.abs(part - whole[first:first + rows]).max() / np.abs(whole).max())


def measure(options):
    group, alone = begin(options)
    size, count = options.size, group.size()
    report = dict(backend=options.backend, arch=options.arch, ranks=count, size=size,
                  difference=gradients_agree(group, alone, 64))
    for name, ranks, rows in (("one", alone, size), ("weak", group, size), ("strong", group, size // count)):
        wave = Wave(ranks, rows, size)
        report[name] = {kind: seconds(wave, getattr(wave, kind), options.rounds) for kind in ("primal", "gradient")}
    report["messages"] = []
    for columns in (64, 1024, size, 16 * size):
        wave = Wave(group, 4, columns)
        report["messages"].append(dict(bytes=4 * columns, halo=seconds(wave, wave.exchange, options.rounds),
                                       engine=seconds(wave, wave.engine, options.rounds)))
    for kind in ("primal", "gradient"):
        report[f"weak_efficiency_{kind}"] = report["one"][kind] / report["weak"][kind]
    if group.rank() == 0:
        print(json.dumps(report, indent=1))
        if options.json:
            Path(options.json).write_text(json.dumps(report))
    group.barrier()


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
                work, messages = report["one"][kind] / part, message * (1 if kind == "primal" else 2)
                cells.append(f"{100 * work / (work + messages):.0f} %")
        total = 2 * math.log2(ranks) * latency + (2 * (ranks - 1) / ranks) * 1e6 / bandwidth
        print(f"| {ranks} | {' | '.join(cells)} | {1e3 * total:.2f} ms |")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--arch", default="cpu")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--model")
    options = parser.parse_args(arguments)
    model(options.model) if options.model else measure(options)


if __name__ == "__main__":
    main()
