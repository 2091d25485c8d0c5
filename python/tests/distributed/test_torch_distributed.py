"""Ranks that are processes of `torch.distributed`, with gloo."""

import os
import signal
import time

import numpy as np
import pytest
from exchanges import Program, Run, join
from ranks import in_processes, in_threads, values

import costate as qd
from costate import distributed

torch = pytest.importorskip("torch")

SEEDS = (3, 5, 8, 11, 14)
_groups = []


def group():
    """That of all processes, with a short timeout."""
    if not _groups:
        _groups.append(distributed.TorchGroup(timeout=20))
    return _groups[0]


def several():
    return [Run(Program(seed), group()).gradient() for seed in SEEDS]


@pytest.mark.parametrize("size", [2, *(pytest.param(k, marks=pytest.mark.host) for k in (3, 4))])
def test_gradients_are_those_of_one_rank(size):
    parts = in_processes(size, several)
    for k, seed in enumerate(SEEDS):
        (loss, parameters, start), = values(in_threads(1, lambda alone: Run(Program(seed), alone).gradient()))
        for part in parts:
            assert part[k][0] == pytest.approx(loss, rel=1e-14)
            np.testing.assert_allclose(part[k][1], parameters, rtol=1e-14, atol=1e-14 * np.abs(parameters).max())
        whole = join(Program(seed), [part[k][2] for part in parts])
        np.testing.assert_allclose(whole, start, rtol=1e-14, atol=1e-14 * np.abs(start).max())


def everything():
    """Sums of all types, groups of a part of the ranks, a barrier, what differs between ranks."""
    rank = torch.distributed.get_rank()
    sums = []
    for dtype in (qd.f16, qd.f32, qd.f64, qd.i8, qd.i32, qd.u32, qd.i64, qd.u64):
        x = qd.field(dtype, 2)
        x.fill(rank + 1)
        distributed.all_reduce(x)
        sums.append(x.to_numpy().tolist())
    pair = torch.distributed.new_group([0, 2])
    if rank != 1:
        x = qd.field(qd.i32, 3)
        x.fill(rank)
        distributed.Halo(x, periodic=True, group=pair)()
        sums.append(x.to_numpy().tolist())
    group().barrier()
    try:
        distributed.Halo(qd.field(qd.f64, 4 + (rank == 1), needs_grad=rank == 1), group=group())
    except qd.BadArgument as error:
        sums.append(str(error))
    return sums


def test_types_groups_and_errors():
    parts = in_processes(3, everything)
    for part in parts:
        assert part[:8] == [[6, 6]] * 8
        assert "rank 1 asks for a halo" in part[-1]
    assert parts[0][8] == [2, 0, 2] and parts[2][8] == [0, 2, 0]


def network():
    """A layer of ours in a module of PyTorch that DDP wraps."""
    @qd.kernel
    def layer(w: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] += w[0] * x[i] + qd.sin(w[1] * x[i])
    function = qd.torch_function(layer, outputs={2: 1})

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([0.5, 2.0], dtype=torch.float64))

        def forward(self, x):
            return function(self.w, x)
    data = torch.linspace(0, 1, 12, dtype=torch.float64)
    size, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(Layer())
    (model(data[rank::size]) ** 2).sum().backward()
    by_ddp = model.module.w.grad.clone() * size     # which takes means
    alone = Layer()
    (alone(data[rank::size]) ** 2).sum().backward()
    distributed.sum_gradients(alone.w, group())
    whole = Layer()
    (whole(data) ** 2).sum().backward()
    return by_ddp.tolist(), alone.w.grad.tolist(), whole.w.grad.tolist()


@pytest.mark.host
def test_data_parallel_of_pytorch():
    for by_ddp, by_sum, whole in in_processes(2, network):
        assert by_ddp == pytest.approx(whole, rel=1e-14) and by_sum == pytest.approx(whole, rel=1e-14)


class Dying(distributed.TorchGroup):
    """A rank that is killed when it has begun so many exchanges."""

    def __init__(self, victim, count):
        super().__init__(timeout=5)
        self.left = count if self.rank() == victim else -1

    def exchange(self, sends, receives):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().exchange(sends, receives)


def lose(victim, count):
    program = Program(1)
    program.periodic, program.steps = True, [("h", 1), ("o", 1), ("s", 1), ("h", 1), ("h", 1)]
    run, start = Run(program, Dying(victim, count)), time.time()
    try:
        run.gradient()
    except qd.RankLost as error:
        return "RankLost", time.time() - start, str(error)
    return "nothing", time.time() - start, ""


@pytest.mark.host
@pytest.mark.parametrize("number", [0, 1, 2, *(pytest.param(k, marks=pytest.mark.slow) for k in range(3, 20))])
def test_a_rank_that_is_killed(number):
    """In the middle of the primal and of the gradient, which have four exchanges each."""
    size, count = 2 + number % 3, 1 + number % 8
    victim = number % size
    for rank, answer in enumerate(in_processes(size, lose, victim, count, lost=[victim])):
        if rank != victim:
            assert answer[0] == "RankLost", answer
            assert answer[1] < 5 + 10
            assert f"rank {rank} of {size}" in answer[2]


class Lending(distributed.TorchGroup):
    """Sends from the memory of arrays and receives into it, as NCCL does."""

    def __init__(self):
        super().__init__()
        self.in_place = True

    def _lent(self, array, read_only=False):
        return torch.from_dlpack(array.__dlpack__(read_only=read_only))


def lent():
    found = []
    for seed in SEEDS:
        made = Run(Program(seed), Lending())
        found.append(made.gradient())
    return found


def test_buffers_are_used_where_they_are():
    parts = in_processes(2, lent)
    for k, seed in enumerate(SEEDS):
        (loss, _, start), = values(in_threads(1, lambda alone: Run(Program(seed), alone).gradient()))
        assert [part[k][0] for part in parts] == pytest.approx([loss, loss], rel=1e-14)
        whole = join(Program(seed), [part[k][2] for part in parts])
        np.testing.assert_allclose(whole, start, rtol=1e-14, atol=1e-14 * np.abs(start).max())
