"""Members that functions of Python read while a kernel is compiled, and that are replaced afterwards."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import costate as ti
from replacements import expect_seen, put

known = SimpleNamespace(k=1.0)


class Inner:
    def __init__(self, k):
        self.k = k

    def doubled(self):
        return 2 * self.k


class Table:
    """Gives what another object holds."""

    def __init__(self, k):
        self.data = {"k": k}

    def __getitem__(self, name):
        return self.data[name]


class Callable:
    def __init__(self, k):
        self.k = k

    def __call__(self):
        return self.k


def outside(o):
    return o.inner.k + known.k


@ti.data_oriented
class Outer:
    def __init__(self):
        self.out = ti.field(ti.f64, ())
        self.inner, self.list = Inner(1.0), [Inner(1.0), Inner(2.0)]
        self.table, self.callable, self.count = Table(1.0), Callable(1.0), 2
        self.partial = functools.partial(outside, self)
        self.fields = [ti.field(ti.f64, ())]

    def of_member(self):
        return self.inner.doubled()

    def of_list(self):
        return sum(one.doubled() for one in self.list)

    def made(self):
        return [one.k for one in self.list]

    def get_fields(self):
        return self.fields

    def get_count(self):
        return self.count

    @property
    def pair(self):
        return [self.inner.k, self.list[0].k]

    @property
    def vector(self):
        return ti.Vector([self.inner.k, self.of_member()])

    @ti.kernel
    def of_member_(self):
        self.out[None] = self.of_member()

    @ti.kernel
    def of_list_(self):
        self.out[None] = self.of_list()

    @ti.kernel
    def made_(self):
        self.out[None] = self.made()[1]

    @ti.kernel
    def outside_(self):
        self.out[None] = outside(self)

    @ti.kernel
    def partial_(self):
        self.out[None] = self.partial()

    @ti.kernel
    def table_(self):
        self.out[None] = self.table["k"]

    @ti.kernel
    def callable_(self):
        self.out[None] = self.callable()

    @ti.kernel
    def pair_(self):
        self.out[None] = self.pair[0] + self.pair[1]

    @ti.kernel
    def vector_(self):
        self.out[None] = self.vector.sum()

    @ti.kernel
    def fields_(self):
        self.out[None] = self.get_fields()[0][None]

    @ti.kernel
    def count_(self):
        n = 0
        for _ in ti.static(range(self.get_count())):
            n += 1
        self.out[None] = n


def five():
    made = ti.field(ti.f64, ())
    made[None] = 5
    return made


@pytest.mark.parametrize("kernel, change, expected", [
    ("of_member_", put("inner.k", 4.0), 8),
    ("of_member_", put("inner", lambda: Inner(5.0)), 10),
    ("of_list_", put("list.1.k", 3.0), 8),
    ("of_list_", lambda s: s.list.append(Inner(1.0)), 8),
    ("made_", put("list.1.k", 7.0), 7),
    ("outside_", put("inner.k", 3.0), 4),
    ("partial_", put("inner.k", 4.0), 5),
    ("table_", lambda s: s.table.data.update(k=6.0), 6),
    ("table_", put("table", lambda: Table(7.0)), 7),
    ("callable_", put("callable.k", 3.0), 3),
    ("pair_", put("list.0.k", 3.0), 4),
    ("vector_", put("inner.k", 2.0), 6),
    ("fields_", put("fields.0", five), 5),
    ("count_", put("count", 3), 3),
])
def test_what_functions_read(kernel, change, expected):
    expect_seen(Outer(), kernel, change, expected)


def test_objects_that_functions_find_around_themselves():
    s = Outer()
    s.outside_()
    known.k = 10.0
    try:
        s.outside_()
        assert s.out[None] == 11
    finally:
        known.k = 1.0


@pytest.mark.parametrize("values", [[1.0, 2.0], np.array([1.0, 2.0]), {0: 1.0, 1: 2.0}], ids=["list", "array", "dict"])
def test_what_is_changed_in_place(values):
    out = ti.field(ti.f64, ())

    def total():
        return float(values[0] + values[1])

    @ti.kernel
    def k():
        out[None] = total()
    k()
    values[1] = 7.0
    for _ in range(2):
        k()
        assert out[None] == 8


def test_what_no_function_reads_compiles_nothing():
    s = Outer()
    s.of_member_()
    kernels = [*s.of_member_.original.cache.values()]
    s.count, s.list = 7, []
    s.of_member_()
    assert [*s.of_member_.original.cache.values()] == kernels
