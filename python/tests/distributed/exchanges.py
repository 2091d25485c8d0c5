"""Random programs with exchanges, cut into parts along an axis."""

import random

import numpy as np

import costate as qd
from costate import distributed


@qd.kernel
def stencil(u: qd.types.ndarray(), v: qd.types.ndarray(), p: qd.types.ndarray(), axis: qd.template(), k: qd.i32, lo: qd.i32, hi: qd.i32):
    for I in qd.grouped(u):
        if lo <= I[axis] and I[axis] < hi:
            up, down = I, I
            up[axis] = I[axis] + k
            down[axis] = I[axis] - k
            v[I] = 0.8 * u[I] + p[0] * u[up] * u[down] + p[1] * qd.sin(u[up])


@qd.kernel
def total(u: qd.types.ndarray(), s: qd.types.ndarray(), axis: qd.template(), lo: qd.i32, hi: qd.i32):
    for I in qd.grouped(u):
        if lo <= I[axis] and I[axis] < hi:
            s[None] += u[I] * u[I]


@qd.kernel
def use(u: qd.types.ndarray(), s: qd.types.ndarray(), axis: qd.template(), lo: qd.i32, hi: qd.i32):
    for I in qd.grouped(u):
        if lo <= I[axis] and I[axis] < hi:
            u[I] += 0.01 * s[None] * u[I]


@qd.kernel
def inner(part: qd.types.ndarray(), u: qd.types.ndarray(), axis: qd.template(), width: qd.i32):
    """The part without its halo, its axis first."""
    for I in qd.grouped(part):
        J = I
        J[0] = I[axis]
        J[axis] = I[0]
        J[axis] = J[axis] + width
        part[I] = u[J]


@qd.kernel
def outer(part: qd.types.ndarray(), u: qd.types.ndarray(), axis: qd.template(), width: qd.i32):
    for I in qd.grouped(part):
        J = I
        J[0] = I[axis]
        J[axis] = I[0]
        J[axis] = J[axis] + width
        u[J] = part[I]


@qd.kernel
def square(w: qd.types.ndarray()):
    for I in qd.grouped(w):
        w[I] = w[I] - 0.1 * w[I] * w[I]


class Program:
    """Chosen by a number: a domain, and what is done with it."""

    def __init__(self, seed, count=6):
        choose = random.Random(seed)
        self.seed = seed
        self.rank = choose.choice((2, 2, 3))
        self.axis = choose.randrange(self.rank)
        self.width = choose.randint(1, 3)
        self.periodic = choose.random() < 0.5
        self.shape = [choose.randint(2, 4) for _ in range(self.rank)]
        self.shape[self.axis] = 12 + choose.randrange(3)
        self.options = choose.choice(({}, {}, dict(snapshots=2)))
        self.steps = [(choose.choice("hhhoosg"), choose.randint(1, self.width)) for _ in range(count)]
        self.start = np.random.default_rng(seed).uniform(-0.5, 0.5, self.shape)
        self.parameters = np.array([0.3, 0.2])

    def cut(self, rank, size):
        """Where the part of a rank begins and ends."""
        n = self.shape[self.axis]
        return n * rank // size, n * (rank + 1) // size


class Run:
    """A program on one rank."""

    def __init__(self, program, group):
        self.program, self.group = program, group
        self.begin, self.end = program.cut(group.rank(), group.size())
        self.lo, self.hi = program.width, program.width + self.end - self.begin
        shape = list(program.shape)
        shape[program.axis] = self.hi + program.width
        field = lambda shape: qd.ndarray(qd.f64, shape, needs_grad=True, needs_dual=True)
        self.u, self.v = field(shape), field(shape)
        self.p, self.loss = field(2), field(())
        self.sums = [field(()) for _ in program.steps]
        self.halos = [distributed.Halo(one, program.axis, program.width, program.periodic, group) for one in (self.u, self.v)]
        flat = lambda extent: [extent if k == 0 else program.shape[0 if k == program.axis else k] for k in range(program.rank)]
        self.part = field(flat(self.end - self.begin))
        self.whole = field(flat(program.shape[program.axis])) if group.rank() == 0 else None
        self.apart = distributed.Gather(self.part, self.whole, group=group), distributed.Scatter(self.whole, self.part, group=group)

    def owned(self, array):
        return np.moveaxis(np.moveaxis(array, self.program.axis, 0)[self.lo:self.hi], 0, self.program.axis)

    def mine(self, whole):
        """The part of a whole domain, with a halo of zeros."""
        part = np.moveaxis(whole, self.program.axis, 0)[self.begin:self.end]
        pad = [(self.program.width,) * 2] + [(0, 0)] * (whole.ndim - 1)
        return np.moveaxis(np.pad(part, pad), 0, self.program.axis)

    def set(self):
        self.u.from_numpy(self.mine(self.program.start))
        self.v.fill(0)
        self.p.from_numpy(self.program.parameters)
        for one in (self.loss, *self.sums):
            one.fill(0)

    def run(self):
        axis, here = self.program.axis, 0
        fields = self.u, self.v
        for k, (kind, shift) in enumerate(self.program.steps):
            u, v, halo = fields[here], fields[1 - here], self.halos[here]
            if kind == "h":
                halo()
                stencil(u, v, self.p, axis, shift, self.lo, self.hi)
                here = 1 - here
            elif kind == "o":
                halo.start()
                stencil(u, v, self.p, axis, shift, self.lo + shift, self.hi - shift)
                halo.finish()
                middle = max(self.lo + shift, self.hi - shift)
                stencil(u, v, self.p, axis, shift, self.lo, self.lo + shift)
                stencil(u, v, self.p, axis, shift, middle, self.hi)
                here = 1 - here
            elif kind == "s":
                total(u, self.sums[k], axis, self.lo, self.hi)
                distributed.all_reduce(self.sums[k], self.group, ordered=bool(shift % 2))
                use(u, self.sums[k], axis, self.lo, self.hi)
            else:
                inner(self.part, u, axis, self.program.width)
                self.apart[0]()
                if self.whole is not None:
                    square(self.whole)
                self.apart[1]()
                outer(self.part, u, axis, self.program.width)
        total(fields[here], self.loss, axis, self.lo, self.hi)

    def gradient(self):
        """The loss, and its gradients by the parameters and by the own part of the start."""
        self.set()
        with qd.ad.Tape(self.loss, **self.program.options):
            self.run()
        distributed.sum_gradients(self.p, self.group)
        distributed.all_reduce(self.loss, self.group)
        return float(self.loss[None]), self.p.grad.to_numpy(), self.owned(self.u.grad.to_numpy())

    def tangent(self, direction, by):
        """The derivative of the loss along directions of the start and of the parameters."""
        self.set()
        with qd.ad.FwdMode(self.loss, [self.u, self.p], np.concatenate([self.mine(direction).reshape(-1), by])):
            self.run()
        distributed.all_reduce(self.loss.dual, self.group)
        return float(self.loss.dual[None])


def run(group, seed):
    return Run(Program(seed), group).gradient()


def push(group, seed):
    program = Program(seed)
    choose = np.random.default_rng(seed + 1)
    direction, by = choose.normal(size=program.start.shape), choose.normal(size=2)
    made = Run(program, group)
    tangent = made.tangent(direction, by)
    return tangent, made.gradient(), direction, by


def join(program, parts):
    """What ranks have of the start, as a whole."""
    return np.concatenate(parts, program.axis)


def by_torch(program):
    """The same in PyTorch, without parts."""
    import torch
    u = torch.tensor(program.start, requires_grad=True)
    p = torch.tensor(program.parameters, requires_grad=True)
    start, axis, width = u, program.axis, program.width

    def moved(u, k):
        if program.periodic:
            return torch.roll(u, -k, axis)
        padding = [0] * (2 * u.ndim)
        padding[2 * (u.ndim - 1 - axis):2 * (u.ndim - axis)] = [width, width]
        padded = torch.nn.functional.pad(u, padding)
        return padded.narrow(axis, width + k, u.shape[axis])
    for kind, k in program.steps:
        if kind in "ho":
            u = 0.8 * u + p[0] * moved(u, k) * moved(u, -k) + p[1] * torch.sin(moved(u, k))
        elif kind == "s":
            u = u + 0.01 * (u * u).sum() * u
        else:
            u = u - 0.1 * u * u
    loss = (u * u).sum()
    loss.backward()
    return float(loss.detach()), p.grad.numpy(), start.grad.numpy()
