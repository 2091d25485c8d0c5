"""`return` in branches and loops of kernels and functions."""

import numpy as np
import pytest

import costate as ti

S = ti.types.struct(a=ti.f32, v=ti.math.vec2)


@ti.kernel
def sign(x: ti.i32) -> ti.i32:
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


@ti.kernel
def first_square_above(n: ti.i32) -> ti.i32:
    i = 0
    while True:
        i += 1
        if i * i > n:
            return i
    return -1


@ti.kernel
def both(x: ti.i32) -> (ti.f32, ti.i32):
    while x > 0:
        x -= 3
        if x == 2:
            return 1.5, 2
    return 2.5, 1


@ti.kernel
def struct(x: ti.i32) -> S:
    s = S(a=1.0, v=[1, 2])
    if x > 0:
        s.a = 7
        return s
    return S(a=2.0, v=[3, 4])


@ti.kernel
def only_if_positive(x: ti.i32) -> ti.i32:
    if x > 0:
        return 5


def test_kernels():
    assert [sign(x) for x in (5, -5, 0)] == [1, -1, 0]
    assert first_square_above(30) == 6
    assert both(8) == (1.5, 2) and both(3) == (2.5, 1)
    assert struct(1).a == 7 and struct(0).v[1] == 4
    assert [only_if_positive(x) for x in (1, 0, 1)] == [5, 0, 5]


def test_a_kernel_with_a_type_and_without_return():
    @ti.kernel
    def k() -> ti.i32:
        pass

    with pytest.raises(ti.QuadrantsSyntaxError, match="does not have a return statement"):
        k()


def test_not_in_a_parallel_loop():
    @ti.kernel
    def k() -> ti.i32:
        for i in range(3):
            return i
        return 0

    with pytest.raises(ti.QuadrantsSyntaxError, match="serialize=True"):
        k()


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_ranges_after_a_return_have_no_gradient(stage):
    x, loss = ti.field(ti.f32, 4, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def k(last: ti.i32) -> ti.i32:
        for i in x:
            loss[None] += x[i] ** 2
        if last == 1:
            return 1
        for i in x:
            loss[None] += x[i] ** 3
        if last == 2:
            return 2
        for i in x:
            loss[None] += x[i] ** 4
        return 3

    x.fill(2)
    with ti.ad.Tape(loss):
        assert k(stage) == stage
    assert x.grad[0] == sum(n * 2 ** (n - 1) for n in range(2, stage + 2))


@ti.func
def digits(v):
    if v < 1:
        return S(a=v * v, v=[v, 2 * v])
    for i in range(3):
        if v > 3:
            return S(a=v, v=[v * v, v])
        v *= 1.5
    return S(a=0.0, v=[v, v])


def test_a_function_that_returns_structs():
    x, loss = ti.field(ti.f64, 4, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            s = digits(x[i])
            loss[None] += s.a * s.v.x + s.v.y

    def expected(v):
        if v < 1:
            return v ** 3 + 2 * v
        for _ in range(3):
            if v > 3:
                return v ** 3 + v
            v *= 1.5
        return v

    at = np.array([0.5, 1.1, 2.1, 3.5])
    x.from_numpy(at)
    with ti.ad.Tape(loss):
        k()
    slopes = [(expected(v + 1e-6) - expected(v - 1e-6)) / 2e-6 for v in at]
    assert x.grad.to_numpy() == pytest.approx(slopes, rel=1e-5)


def test_a_function_that_returns_nothing():
    @ti.func
    def bump(x, n: ti.template()):
        if x > 0:
            n += 1
            return
        n += 2

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        n = 0
        bump(x, n)
        bump(-x, n)
        return n

    assert k(1) == 3 and k(0) == 4


def test_a_loop_of_a_function_that_a_kernel_calls_outside_of_loops():
    @ti.func
    def find(x):
        for i in range(5):
            if i == x:
                return i * 10
        return -1

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        return find(x)

    assert k(3) == 30 and k(9) == -1


def test_a_func_that_says_it_returns_and_does_not():
    @ti.func
    def nothing() -> ti.i32:
        pass

    @ti.kernel
    def k() -> ti.i32:
        return nothing()

    with pytest.raises(ti.QuadrantsCompilationError, match="`nothing`: Function has a return type but does not have a return statement"):
        k()
