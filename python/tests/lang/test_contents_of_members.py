"""Members of objects that keep their identity, and whose contents change in place."""

import time
from collections import deque

import numpy as np
import pytest

import costate as ti
from replacements import expect_seen


@ti.data_oriented
class Holder:
    def __init__(self):
        self.out = ti.field(ti.f64, ())
        self.a, self.m, self.set, self.deque = np.array([1.0, 2.0, 3.0]), np.eye(3), {1, 2}, deque([1.0, 2.0])
        self.long = [1.0] * 400

    @ti.kernel
    def sum_(self):
        self.out[None] = self.a.sum()

    @ti.kernel
    def dot_(self):
        self.out[None] = np.dot(self.a, self.a)

    @ti.kernel
    def loop_(self):
        total = ti.f64(0.0)
        for k, v in ti.static(enumerate(self.a)):
            total += k * v
        self.out[None] = total

    @ti.kernel
    def vector_(self):
        self.out[None] = ti.Vector(self.a).sum()

    @ti.kernel
    def starred_(self):
        self.out[None] = ti.Vector([*self.a]).max()

    @ti.kernel
    def matrix_(self):
        self.out[None] = ti.Matrix(self.m).trace()

    @ti.kernel
    def row_(self):
        self.out[None] = self.m[0][0]

    @ti.kernel
    def slice_(self):
        self.out[None] = self.a[1:].sum()

    @ti.kernel
    def set_(self):
        self.out[None] = len(self.set)

    @ti.kernel
    def in_(self):
        self.out[None] = ti.static(2 in self.set)

    @ti.kernel
    def deque_(self):
        self.out[None] = self.deque[1]

    @ti.kernel
    def long_(self):
        self.out[None] = sum(self.long)

    @ti.kernel
    def length_(self):
        self.out[None] = len(self.a) + self.a.shape[0]


@pytest.mark.parametrize("kernel, change, expected", [
    *((name, lambda s: s.a.__setitem__(1, 5.0), value) for name, value in [
        ("sum_", 9), ("dot_", 35), ("loop_", 11), ("vector_", 9), ("starred_", 5), ("slice_", 8)]),
    *((name, lambda s: s.m.__setitem__((0, 0), 5.0), value) for name, value in [("matrix_", 7), ("row_", 5)]),
    ("long_", lambda s: s.long.__setitem__(7, 3.0), 402),
    ("set_", lambda s: s.set.add(7), 3),
    ("in_", lambda s: s.set.discard(2), 0),
    ("deque_", lambda s: s.deque.append(s.deque.popleft()), 1),
])
def test_contents(kernel, change, expected):
    expect_seen(Holder(), kernel, change, expected)


def test_tensors():
    torch = pytest.importorskip("torch")

    @ti.data_oriented
    class S:
        def __init__(self):
            self.out, self.t = ti.field(ti.f64, ()), torch.ones(3)

        @ti.kernel
        def k(self):
            self.out[None] = float(self.t[0])
    expect_seen(S(), "k", lambda s: s.t.fill_(4), 4)


@pytest.mark.parametrize("kernel", ["length_", "row_"])
def test_what_is_not_used_compiles_nothing(kernel):
    s = Holder()
    launch = getattr(s, kernel)
    launch()
    start = time.process_time()
    for k in range(50):
        s.a[0] = k
        launch()
    assert time.process_time() - start < 0.01
