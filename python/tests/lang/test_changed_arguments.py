"""Which arguments functions may change: those that they assign, and no others."""

import pytest

import costate as ti
from written import load


@ti.func
def read(u: ti.template(), i, j):
    return u[i, j]


@ti.func
def bump(x: ti.template()):
    x += 2


@ti.func
def bump_through(x: ti.template(), y):
    bump(x)


@ti.func
def bump_often(n: ti.template(), x: ti.template()):
    if ti.static(n > 0):
        x += 1
        bump_often(n - 1, x)


@ti.func
def harmless(x: ti.template()):
    return x


@ti.func
def apply(harmless: ti.template(), x: ti.template()):
    harmless(x)


@ti.data_oriented
class Bumper:
    @ti.func
    def bump(self, x: ti.template(), by):
        x += by

    @ti.func
    def same(self, x: ti.template()):
        return x

    @ti.kernel
    def run(self, y: ti.types.ndarray()):
        for i in y:
            k = i
            for _ in range(2):
                self.bump(k, by=3)
            y[i] = k + self.same(i)

    @ti.kernel
    def indices(self, u: ti.types.ndarray(), w: ti.types.ndarray()):
        for i, j in u:
            w[i, j] = w[i, j] + u[self.same(i), j]


@ti.dataclass
class Step:
    by: ti.i32

    @ti.func
    def get(self, x: ti.template()):      # a name that values of structs have for themselves
        x += self.by

    @ti.func
    def twice(self, x: ti.template()):
        self.get(x)
        self.get(x)


@ti.dataclass
class Inner:
    a: ti.f64

    @ti.func
    def inc(self):
        self.a += 1


@ti.dataclass
class Outer:
    x: ti.f64
    i: Inner

    @ti.func
    def by_func(self):
        double(self.x)

    @ti.func
    def by_itself(self):
        self.x *= 2

    @ti.func
    def by_atomic(self):
        ti.atomic_add(self.x, self.x)

    @ti.func
    def by_other(self):
        self.by_itself()

    @ti.func
    def by_inner(self):
        self.i.inc()
        self.x = self.x * self.i.a


@ti.func
def double(q: ti.template()):
    q *= 2.0


METHODS = ("by_func", "by_itself", "by_atomic", "by_other", "by_inner")


@pytest.mark.parametrize("how", METHODS)
def test_methods_of_structs_that_are_template_parameters(tmp_path, how):
    """Called by a function that gets the struct by value, and by a kernel whose argument it is."""
    module = load(tmp_path / "kernel.py", f"""
import costate as ti
from {__name__} import Inner, Outer

@ti.func
def via(s: ti.template()):
    s.{how}()

@ti.func
def by_value(s: Outer):
    via(s)
    return s.x

@ti.kernel
def run(u: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in u:
        y[i] = by_value(Outer(x=u[i], i=Inner(a=1.0)))

@ti.kernel
def argument(s: Outer, y: ti.types.ndarray()):
    for i in range(1):
        via(s)
        y[i] = s.x
""")
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    u, y = (ti.ndarray(ti.f64, 2, needs_grad=True) for _ in range(2))
    u.fill(3.0)
    y.grad.fill(1.0)
    module.run(u, y)
    module.run.grad(u, y)
    assert y.to_numpy().tolist() == [6, 6] and u.grad.to_numpy().tolist() == [2, 2]
    module.argument(Outer(x=3.0, i=Inner(a=1.0)), y)
    assert y.to_numpy()[0] == 6


@pytest.mark.parametrize("call, added", [
    ("bump(k)", 2), ("bump(x=k)", 2), ("bump_through(k, i)", 2), ("bump_through(y=k, x=k)", 2), ("bump_often(3, k)", 3),
    ("apply(bump, k)", 2), ("Step(by=5).twice(k)", 10), ("harmless(k)", 0), ("read(u, k, i)", 0)])
def test_what_a_function_assigns(tmp_path, call, added):
    module = load(tmp_path / "kernel.py", f"""
import costate as ti
from {__name__} import *

@ti.kernel
def run(u: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in y:
        k = i
        for _ in range(3):
            {call}
        y[i] = k
""")
    u, y = ti.ndarray(ti.f32, (20, 20)), ti.ndarray(ti.i32, 4)
    module.run(u, y)
    assert y.to_numpy().tolist() == [i + 3 * added for i in range(4)]


def test_a_function_that_others_call_by_a_name_may_become_another(tmp_path):
    module = load(tmp_path / "kernel.py", f"""
import costate as ti
from {__name__} import bump, harmless

inner = harmless

@ti.func
def outer(x: ti.template()):
    inner(x)

def make():
    @ti.kernel
    def run(y: ti.types.ndarray()):
        for i in y:
            k = i
            for _ in range(2):
                outer(k)
            y[i] = k
    return run
""")
    y = ti.ndarray(ti.i32, 3)
    for inner, added in ((harmless, 0), (bump, 4), (harmless, 0)):
        module.inner = inner
        module.make()(y)
        assert y.to_numpy().tolist() == [i + added for i in range(3)]


def test_methods():
    y = ti.ndarray(ti.i32, 4)
    Bumper().run(y)
    assert y.to_numpy().tolist() == [2 * i + 6 for i in range(4)]


def element_plus_neighbours(u: ti.types.ndarray(), w: ti.types.ndarray()):
    for i, j in u:
        w[i, j] = w[i, j] + read(u, i, j) + read(u, max(i - 1, 0), j)


@pytest.mark.parametrize("kernel, slopes", [(ti.kernel(element_plus_neighbours), [3, 2, 1]), (Bumper().indices, [1, 1, 1])])
def test_indices_that_a_function_reads_stay_those_of_the_range(kernel, slopes):
    """So that the element is known to be of this work item alone."""
    ti.init(arch=ti.cpu, deterministic=True)
    u, w = (ti.ndarray(ti.f64, (3, 2), needs_grad=True) for _ in range(2))
    w.grad.fill(1.0)
    kernel.grad(u, w)
    assert w.grad.to_numpy().tolist() == [[1, 1]] * 3
    assert u.grad.to_numpy().tolist() == [[slope] * 2 for slope in slopes]
