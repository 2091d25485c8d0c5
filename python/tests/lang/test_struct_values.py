"""Structs that are assigned together, and that arguments change after them: each has what it held before."""

import pytest

import costate as ti
from written import load

P = ti.types.struct(a=ti.f64)


@ti.dataclass
class Pair:
    p: P
    q: P

    @ti.func
    def swap(self):
        self.p, self.q = self.q, self.p


@ti.dataclass
class Counter:
    a: ti.f64

    @ti.func
    def inc(self, by):
        self.a += by
        return by


@ti.func
def exchanged(p: ti.template(), q: ti.template()):
    return q, p


@ti.func
def exchange(p: ti.template(), q: ti.template()):
    p, q = q, p


@ti.func
def first(c: Counter, by):
    return c.a


@ti.func
def both(c: Counter, d: Counter, by):
    return c.a * 10 + d.a


PROGRAMS = {
    "two names": ("p = P(a=u[0]); q = P(a=u[1]); p, q = q, p; y[0] = p.a; y[1] = q.a", [[0, 1], [1, 0]]),
    "in a loop": ("""p = P(a=u[0]); q = P(a=u[1])
        for _ in range(2):
            p, q = P(a=p.a + q.a), p
        y[0] = p.a; y[1] = q.a""", [[2, 1], [1, 1]]),
    "what a function returns": ("p = P(a=u[0]); q = P(a=u[1]); p, q = exchanged(p, q); y[0] = p.a; y[1] = q.a", [[0, 1], [1, 0]]),
    "template parameters": ("s = Pair(p=P(a=u[0]), q=P(a=u[1])); exchange(s.p, s.q); y[0] = s.p.a; y[1] = s.q.a", [[0, 1], [1, 0]]),
    "members": ("s = Pair(p=P(a=u[0]), q=P(a=u[1])); s.p, s.q = s.q, s.p; y[0] = s.p.a; y[1] = s.q.a", [[0, 1], [1, 0]]),
    "members by a method": ("s = Pair(p=P(a=u[0]), q=P(a=u[1])); s.swap(); y[0] = s.p.a; y[1] = s.q.a", [[0, 1], [1, 0]]),
    "nested tuples": ("p = P(a=u[0]); q = P(a=u[1]); r = P(a=0.0); p, (q, r) = q, (r, p); y[0] = p.a; y[1] = r.a", [[0, 1], [1, 0]]),
    "kept in a tuple": ("p = P(a=u[0]); old = (p,); p = P(a=u[1]); y[0] = old[0].a; y[1] = p.a", [[1, 0], [0, 1]]),
    "kept in a list": ("p = P(a=u[0]); q = P(a=u[1]); t = [q, p]; p = t[0]; q = t[1]; y[0] = p.a; y[1] = q.a", [[0, 1], [1, 0]]),
    "kept in a dictionary": ("""p = P(a=u[0]); old = {"p": p}; p = P(a=p.a + u[1]); y[0] = old["p"].a; y[1] = p.a""", [[1, 0], [1, 1]]),
    "a list is a copy": ("p = P(a=u[0]); t = [p]; t[0].a += u[1]; y[0] = p.a; y[1] = t[0].a", [[1, 0], [1, 1]]),
    "members of itself": ("s = Pair(p=P(a=u[0]), q=P(a=u[1])); s = ti.Struct(p=s.q, q=s.p); y[0] = s.p.a; y[1] = s.q.a", [[0, 1], [1, 0]]),
    "an argument that a later one changes": ("c = Counter(a=u[0]); y[0] = first(c, c.inc(u[1])); y[1] = c.a", [[1, 0], [1, 1]]),
    "by keywords": ("c = Counter(a=u[0]); y[0] = both(d=c, by=c.inc(u[1]), c=c); y[1] = c.a", [[11, 10], [1, 1]]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(tmp_path, name):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    body, slopes = PROGRAMS[name]
    module = load(tmp_path / "kernel.py", f"""
import costate as ti
from {__name__} import *

@ti.kernel
def run(u: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in range(1):
        {body}
""")
    u, y = (ti.ndarray(ti.f64, 2, needs_grad=True) for _ in range(2))
    u[0], u[1] = 3.0, 7.0
    module.run(u, y)
    assert y.to_numpy().tolist() == [3 * a + 7 * b for a, b in slopes]
    for k, slope in enumerate(slopes):
        u.grad.fill(0.0)
        y.grad.fill(0.0)
        y.grad[k] = 1.0
        module.run.grad(u, y)
        assert u.grad.to_numpy().tolist() == slope


def test_elements_of_a_field():
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    f = P.field(shape=2)

    @ti.kernel
    def swap():
        for i in range(1):
            f[0], f[1] = f[1], f[0]

    f.a[0], f.a[1] = 3.0, 7.0
    swap()
    assert f.a.to_numpy().tolist() == [7, 3]
