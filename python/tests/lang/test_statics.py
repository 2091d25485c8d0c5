"""What stays known while the kernel is compiled: template parameters that are passed on, `x = ti.static(...)`."""

import functools

import numpy as np
import pytest

import costate as ti


@ti.func
def iterations(n: ti.template()):
    r = 0
    for _ in ti.static(range(n)):
        r += 1
    return r


@ti.func
def passed_on(a, n: ti.template() = 3):
    return a * 100 + iterations(n) + iterations(n=n)


@ti.func
def either(flag: ti.template()):
    return 1 if ti.static(flag) else 2


def test_through_functions():
    @ti.kernel
    def k(n: ti.template()) -> ti.i32:
        t = ti.static((n,))
        return passed_on(1, n) + 1000 * passed_on(0) + 10000 * iterations(*t)

    assert k(4) == 108 + 6000 + 40000
    assert k(0) == 100 + 6000


def test_flags_strings_and_functions():
    @ti.func
    def double(x):
        return 2 * x

    @ti.func
    def applied(f: ti.template(), x):
        return f(x)

    @ti.kernel
    def k(flag: ti.template(), f: ti.template(), name: ti.template()) -> ti.i32:
        return either(flag) + 10 * applied(f, 3) + 100 * either(name == "a")

    assert k(True, double, "a") == 161
    assert k(False, double, "b") == 262


def test_through_methods():
    @ti.data_oriented
    class Thing:
        n = 3

        @ti.func
        def inner(self, m: ti.template()):
            return iterations(m + self.n)

        @ti.func
        def outer(self, m: ti.template()):
            return self.inner(m) + 10 * self.inner(self.n)

        @ti.kernel
        def k(self, m: ti.template()) -> ti.i32:
            return self.outer(m)

    assert Thing().k(2) == 65


def test_in_loops_and_branches():
    @ti.kernel
    def k(x: ti.types.ndarray(), flag: ti.template(), n: ti.i32):
        for i in range(3):
            x[i] = either(flag)
            if i > n:
                x[i] += 10 * either(flag)

    x = np.zeros(3, np.int32)
    k(x, True, 0)
    assert x.tolist() == [1, 11, 11]
    k(x, False, 1)
    assert x.tolist() == [2, 2, 22]


def test_assigned():
    @ti.kernel
    def k(n: ti.template(), flag: ti.template()) -> ti.i32:
        m = ti.static(n + 1)
        a, b = ti.static(n, 2 * n)
        c, d = ti.static(n), 5
        off = ti.static(not flag)
        r = 0
        for _ in range(3) if ti.static(off) else ti.static(range(2)):
            r += 1
        for _ in ti.static(range(m)):
            r += 10
        for _ in ti.static(range(b - a)):
            r += 100
        return r + 1000 * iterations(c) + 10000 * iterations(ti.static(d))

    assert k(3, True) == 2 + 40 + 300 + 3000 + 50000
    assert k(1, False) == 3 + 20 + 100 + 1000 + 50000


def test_constants_and_their_arithmetic():
    @ti.kernel
    def k(n: ti.template()) -> ti.i32:
        m = ti.static(n) + 1
        v = ti.Vector([1, 2, 3, 4, 5])
        r = v[0:m].sum()
        for _ in ti.static(range(m)):
            r += 100
        return r

    assert k(2) == 306


def test_a_constant_that_changes_is_a_variable():
    @ti.kernel
    def k(n: ti.template()) -> ti.i32:
        m = ti.static(n)
        m += 1
        return m

    assert k(3) == 4


def test_assigned_again_where_that_is_known():
    @ti.kernel
    def k(flag: ti.template(), n: ti.template()) -> ti.i32:
        r = 0
        if ti.static(flag):
            m = ti.static(n)
            for _ in ti.static(range(m)):
                r += 1
        if ti.static(not flag) or ti.static(n == 4):
            m = ti.static(n + 1)
            for _ in ti.static(range(m)):
                r += 10
        last = ti.static(0)
        for i in ti.static(range(3)):
            last = ti.static(last + i)
            if ti.static(i == 1):
                last = ti.static(last + 4)
        r += 100 * last + 10000 * iterations(last)
        last = ti.static(1)
        return r + 1000 * last

    assert k(True, 2) == 2 + 700 + 1000 + 70000
    assert k(True, 4) == 4 + 50 + 700 + 1000 + 70000
    assert k(False, 2) == 30 + 700 + 1000 + 70000


def test_assigned_again_where_it_is_not_known():
    @ti.kernel
    def k(x: ti.types.ndarray(), n: ti.i32):
        for i in range(3):
            a = ti.static(1)
            if i > n:
                a = ti.static(2)
            b = ti.static(1)
            for _ in range(i):
                x[i] += 100 * b
                b = ti.static(3)
            c, d = ti.static(4), ti.static(5)
            if ti.static(True):
                if i == n:
                    c = ti.static(6)
            d = c
            x[i] += a + 10 * b + 1000 * c + 10000 * d

    x = np.zeros(3, np.int32)
    k(x, 0)
    assert x.tolist() == [66011, 44132, 44432]


def test_size_of_blocks_that_is_a_value_of_the_kernel():
    @ti.kernel
    def k(x: ti.types.ndarray()):
        size = 32
        ti.loop_config(block_dim=size)
        for i in range(3):
            x[i] = i

    with pytest.raises(ti.QuadrantsTypeError, match=r"ti\.loop_config\(block_dim=size\)[\s\S]*`block_dim` is a value of the kernel.*`n = ti.static\(...\)`"):
        k(np.zeros(3, np.int32))


def test_a_template_that_is_a_constant_cannot_change():
    @ti.func
    def increase(x: ti.template()):
        x += 1

    @ti.kernel
    def k(n: ti.template()) -> ti.i32:
        increase(n)
        return n

    @ti.kernel
    def of_a_variable(n: ti.i32) -> ti.i32:
        m = n
        increase(m)
        return m

    with pytest.raises(ti.QuadrantsTypeError, match="`x` is a template parameter whose argument is a constant, 3") as error:
        k(3)
    assert "        x += 1\n" in str(error.value)
    assert of_a_variable(3) == 4


def test_static_of_what_exists_at_run_time():
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        m = n + 1
        return iterations(ti.static(m))

    with pytest.raises(ti.QuadrantsTypeError, match="exists only when the kernel runs"):
        k(3)


@pytest.mark.parametrize("make", [lambda: ti.atomic_add, lambda: functools.partial(ti.atomic_add)])
def test_closures_over_atomics(make):
    op, table = make(), {"add": make(), "max": ti.atomic_max}

    @ti.func
    def apply(y: ti.template(), value, f: ti.template()):
        f(y, value)

    @ti.kernel
    def k(x: ti.types.ndarray(), f: ti.template()):
        for i in range(4):
            op(x[0], i)
            apply(x[1], i, f)
            table["max"](x[2], i)
            local = ti.static(op)
            local(x[3], 2 * i)

    x = np.zeros(4, np.float32)
    k(x, op)
    assert x.tolist() == [6, 6, 3, 12]
