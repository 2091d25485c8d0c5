"""Warnings where a value is stored as a type that does not hold it."""

import linecache
import warnings

import numpy as np
import pytest

import costate as ti

TYPES = {"f16": ti.f16, "f32": ti.f32, "f64": ti.f64, "i8": ti.i8, "i32": ti.i32, "i64": ti.i64, "u8": ti.u8, "u32": ti.u32,
         "u1": ti.u1}


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(one.filename, one.lineno, linecache.getline(one.filename, one.lineno).strip(), str(one.message).split(";")[0])
            for one in found]


def texts(call):
    return [(line, text.split(": ")[1]) for _, _, line, text in warned(call)]


@pytest.mark.parametrize("to, of", [("f32", "f64"), ("f16", "f32"), ("i32", "i64"), ("i32", "u32"), ("i32", "f32"), ("i8", "i32"),
                                    ("u8", "i32"), ("u1", "f32")])
def test_what_loses(to, of):
    @ti.kernel
    def k(a: TYPES[of], x: ti.types.ndarray()):
        for i in range(1):
            v = ti.cast(0, TYPES[to])
            v = a
            x[i] = a
            x[i] = v

    assert texts(lambda: k(1, np.zeros(1, TYPES[to].np))) == [("v = a", f"{to} <- {of}"), ("x[i] = a", f"{to} <- {of}")]


@pytest.mark.parametrize("to, of", [("f64", "f32"), ("f32", "i32"), ("f32", "i64"), ("u32", "i32"), ("i64", "u32"), ("i32", "u1"),
                                    ("u1", "i32"), ("f32", "f32")])
def test_what_does_not(to, of):
    @ti.kernel
    def k(a: TYPES[of], x: ti.types.ndarray()):
        for i in range(1):
            v = ti.cast(0, TYPES[to])
            v = a
            x[i] = a

    assert warned(lambda: k(1, np.zeros(1, TYPES[to].np))) == []


def test_the_lines_of_the_user():
    Pair = ti.types.struct(a=ti.f32, v=ti.types.vector(2, ti.f32))

    @ti.func
    def add(s: ti.template(), x):
        s += x

    @ti.kernel
    def k(a: ti.f64, n: ti.i64, x: ti.types.ndarray()) -> ti.f32:
        s = 0.0
        s += a
        s = a if n > 3 else 2.0
        m = 3
        m = n
        p = Pair(a=0.0, v=ti.Vector([0.0, 0.0]))
        p.a = a
        p.v = ti.Vector([a, a])
        for i in range(2):
            x[i] += a
            ti.atomic_max(x[i], a)
            add(x[i], a)
        return s + m

    x = np.zeros(2, np.float32)
    found = warned(lambda: k(1, 2, x))
    assert {file for file, *_ in found} == {__file__}
    assert [line for _, _, line, _ in found] == [
        "s += a", "s = a if n > 3 else 2.0", "m = n", "p.a = a", "p.v = ti.Vector([a, a])", "x[i] += a",
        "ti.atomic_max(x[i], a)", "s += x"]
    assert warned(lambda: (k(2, 3, x), k(2, 3, x.astype(np.float64)))) == []   # once for each place


def test_a_variable_that_becomes_shared_warns_once():
    @ti.kernel
    def k(n: ti.i32) -> ti.f64:
        s = 0.0
        for _ in range(n):
            s += ti.f64(0.1)
        return s

    assert texts(lambda: k(3)) == [("s += ti.f64(0.1)", "f32 <- f64")]


@pytest.mark.parametrize("fp", [ti.f32, ti.f64])
def test_literals_indices_and_casts_are_silent(fp):
    ti.init(arch=ti.cpu, default_fp=fp)

    @ti.func
    def scaled(x: ti.f32):
        return x

    @ti.kernel
    def k(a: ti.f64, n: ti.i64, x: ti.types.ndarray(), c: ti.types.ndarray()) -> ti.f32:
        s: ti.f32 = a
        s = 0.1
        s = ti.f32(a)
        s = ti.cast(a, ti.f32)
        s = scaled(a)
        ok = True
        ok = n > 2 and a > 1.0
        for i in range(2):
            x[i] = 0.1
            x[i] += 0.1
            x[i] -= 1
            x[i] = i
            x[i] = x[i] * x[i] + i
            c[i] = i + x.shape[0] * 2 + len(c)
            c[i] = x[i] > 0
            c[i] += ti.i32(n)
        return ti.cast(s, ti.f32) + ok

    assert warned(lambda: k(1, 2, np.zeros(2, np.float32), np.zeros(2, np.int32))) == []


def test_constants_that_become_infinite():
    x = ti.field(ti.f32, 3)

    @ti.kernel
    def k():
        for i in x:
            x[i] = 1e39
            x[1] = ti.min(1e38, ti.math.inf)
            x[2] = ti.f64(1e300) / 1e300

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        k()
        k()
    found = [w for w in found if "infinite" in str(w.message)]
    assert [str(w.message) for w in found] == ["1e+39 is out of the range of f32, and becomes infinite; use a value of f64"]
    assert found[0].filename == __file__
