"""Members of objects that are replaced between launches are seen by kernels that have run before."""

import gc
import time
import warnings
import weakref
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import costate as ti
from replacements import expect_seen, put


def field(value, n=3):
    made = ti.field(ti.f32, n)
    made.fill(value)
    return made


@ti.data_oriented
class Inner:
    def __init__(self, value):
        self.y = field(value)
        self.c = value


@ti.data_oriented
class Outer:
    factor = 1

    def __init__(self):
        self.out = ti.field(ti.f32, ())
        self.x, self.k, self.inner = field(1), 10, Inner(5)
        self.fields, self.named = [field(1), field(2)], {"a": field(7)}
        self.m, self.array = ti.Vector([1.0, 2.0]), np.ones(3, np.float32)
        self.last = None

    @ti.func
    def of_func(self):
        return self.x[0]

    @ti.kernel
    def x_(self):
        self.out[None] = self.x[0]

    @ti.kernel
    def func_(self):
        self.out[None] = self.of_func()

    @ti.kernel
    def shape_(self):
        for i in self.x:
            self.out[None] = self.x.shape[0]

    @ti.kernel
    def k_(self):
        self.out[None] = self.k

    @ti.kernel
    def inner_(self):
        self.out[None] = self.inner.y[0] + self.inner.c

    @ti.kernel
    def fields_(self):
        s = 0.0
        for f in ti.static(self.fields):
            s += f[0]
        self.out[None] = s

    @ti.kernel
    def named_(self):
        self.out[None] = self.named["a"][0]

    @ti.kernel
    def m_(self):
        self.out[None] = self.m[0]

    @ti.kernel
    def array_(self):
        self.out[None] = self.array[1]

    @ti.kernel
    def factor_(self):
        self.out[None] = self.factor

    @ti.kernel
    def asked_(self):
        self.out[None] = getattr(self, "x")[0]

    @ti.kernel
    def last_(self):
        if ti.static(self.last is None):
            self.out[None] = -1
        else:
            self.out[None] = self.last[0]


@pytest.mark.parametrize("kernel,change,expected", [
    ("x_", put("x", lambda: field(100)), 100),
    ("func_", put("x", lambda: field(100)), 100),
    ("asked_", put("x", lambda: field(100)), 100),
    ("shape_", put("x", lambda: field(1, 4)), 4),
    ("k_", put("k", 20), 20),
    ("k_", put("k", 2.5), 2.5),
    ("inner_", put("inner", lambda: Inner(60)), 120),
    ("inner_", put("inner.y", lambda: field(50)), 55),
    ("inner_", put("inner.c", 0.5), 5.5),
    ("fields_", put("fields.0", lambda: field(11)), 13),
    ("fields_", lambda s: s.fields.append(field(3)), 6),
    ("fields_", put("fields", lambda: [field(4)]), 4),
    ("named_", put("named.a", lambda: field(8)), 8),
    ("m_", put("m", lambda: ti.Vector([3.0, 4.0])), 3),
    ("m_", put("m.0", 9.0), 9),
    ("array_", put("array.1", 6.0), 6),
    ("factor_", put("factor", 4), 4),
    ("last_", put("last", lambda: field(2)), 2),
])
def test_what_a_kernel_of_an_object_reads(kernel, change, expected):
    expect_seen(Outer(), kernel, change, expected)


def test_a_member_that_becomes_none_after_it_has_gone():
    s = Outer()
    s.last = field(2)
    s.last_()
    s.last = None
    gc.collect()
    s.last_()
    assert s.out[None] == -1


def test_what_comes_back_is_not_compiled_again():
    s = Outer()
    a, b = s.x, field(2)
    for x in (a, b):
        s.x = x
        s.x_()
    kernels = len(s.x_.original.cache)
    start = time.process_time()
    for k in range(40):
        s.x = (a, b)[k % 2]
        s.x_()
        assert s.out[None] == (1, 2)[k % 2]
    assert len(s.x_.original.cache) == kernels and time.process_time() - start < 0.2


def test_templates_and_objects_of_any_class():
    out = ti.field(ti.f32, ())
    known = SimpleNamespace(x=field(1), k=1)

    @ti.kernel
    def of_template(o: ti.template()):
        out[None] = o.x[0] + o.k

    @ti.kernel
    def by_name():
        out[None] = known.x[0] + known.k

    for launch in (lambda: of_template(known), by_name):
        known.x, known.k = field(1), 1
        for _ in range(3):
            launch()
        known.x = field(4)
        launch()
        assert out[None] == 5
        known.k = 6
        launch()
        assert out[None] == 10


def test_dataclasses():
    out = ti.field(ti.f32, ())

    @dataclass
    class D:
        x: ti.template()
        k: ti.i32

    @ti.kernel
    def of_parameter(d: D):
        out[None] = d.x[0] + d.k

    @ti.kernel
    def of_template(d: ti.template()):
        out[None] = d.x[0] + d.k

    for kernel in (of_parameter, of_template):
        d = D(field(1), 1)
        for _ in range(3):
            kernel(d)
        d.x = field(3)
        kernel(d)
        assert out[None] == 4
        d.k = 5
        kernel(d)
        assert out[None] == 8


def test_gradients_and_tapes():
    @ti.data_oriented
    class S:
        def __init__(self):
            self.x = ti.field(ti.f32, (), needs_grad=True)
            self.y = ti.field(ti.f32, (), needs_grad=True)

        @ti.kernel
        def square(self):
            self.y[None] = self.x[None] ** 2

    s = S()
    for value in (3.0, 5.0):
        s.x = ti.field(ti.f32, (), needs_grad=True)
        s.x[None] = value
        with ti.ad.Tape(s.y):
            s.square()
        assert s.x.grad[None] == 2 * value
        s.x.grad[None], s.y.grad[None] = 0, 1
        s.square()
        s.square.grad()
        assert s.x.grad[None] == 2 * value


def test_members_are_not_kept_alive():
    s = Outer()
    s.inner_()
    inner = weakref.ref(s.inner)
    s.inner = Inner(1)
    gc.collect()
    assert inner() is None


def test_numbers_that_change_often_are_warned_of():
    s = Outer()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in range(20):
            s.k = k
            s.k_()
            assert s.out[None] == k
    assert len([w for w in seen if "kernel `k_` is compiled again whenever a member" in str(w.message)]) == 1


def test_members_that_appear_and_go():
    class Part:
        pass

    part = Part()

    @ti.kernel
    def asked() -> ti.i32:
        result = 0
        if ti.static(hasattr(part, "more")):
            result = 1
        return result

    @ti.kernel
    def with_default() -> ti.i32:
        return ti.static(getattr(part, "more", 5))

    assert (asked(), with_default()) == (0, 5)
    part.more = 7
    assert (asked(), with_default()) == (1, 7)
    part.more = 8
    assert (asked(), with_default()) == (1, 8)
    del part.more
    assert (asked(), with_default()) == (0, 5)


def test_members_that_functions_of_python_read():
    class Part:
        def __init__(self, x):
            self.x = x

    def doubled(owner):
        return 2 * owner.parts[0].x

    @ti.data_oriented
    class Whole:
        def __init__(self):
            self.n, self.parts, self.marks, self.frame = 1, [Part(10)], {1}, 0
            self.array = np.arange(3)

        def _more(self):
            return self.n + 1

        def total(self):
            return self._more() + sum(part.x for part in self.parts)

        @ti.kernel
        def k(self) -> ti.i32:
            compiled.append(1)
            return self.total() + ti.static(doubled(self)) + ti.static(100 * len(self.marks) + self.array.sum())

    compiled, whole = [], Whole()

    def wanted():
        return whole.total() + doubled(whole) + 100 * len(whole.marks) + whole.array.sum()
    changes = [lambda: None, lambda: setattr(whole, "n", 5), lambda: setattr(whole.parts[0], "x", 7),
               lambda: whole.parts.append(Part(3)), lambda: whole.marks.add(4),
               lambda: whole.array.fill(4)]
    for change in changes:
        change()
        assert whole.k() == wanted()
    whole.frame += 1
    before = len(compiled)
    assert whole.k() == wanted() and len(compiled) == before
