"""Variables of a kernel around its loops: parallel, serial, unrolled, and in branches."""

import math

import numpy as np
import pytest

import costate as ti


def fields(values):
    x, y = ti.field(ti.f64, len(values), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array(values, float))
    return x, y


def gradient(kernel, x, y, *args, tape):
    """The gradient by a tape or by hand."""
    if tape:
        with ti.ad.Tape(y):
            kernel(*args)
    else:
        y.grad[None] = 1
        kernel(*args)
        kernel.grad(*args)
    return x.grad.to_numpy().tolist()


def differences(f, at, h=1e-6):
    steps = h * np.eye(len(at))
    return pytest.approx([(f(at + s) - f(at - s)) / (2 * h) for s in steps], rel=1e-6)


both = pytest.mark.parametrize("tape", [True, False])


@both
def test_in_a_branch_of_run_time(tape, double):
    x, y = fields([0.5, 0.7, 0.2])

    @ti.kernel
    def k(n: ti.i32, flag: ti.template()):
        s = 1.0
        if n > 0:
            for i in range(3):
                s = s * x[i] + ti.sin(s)
        elif ti.static(flag):
            for i in range(3):
                s += x[i]
        y[None] = s

    def expected(v):
        s = 1.0
        for a in v:
            s = s * a + math.sin(s)
        return s

    assert gradient(k, x, y, 1, True, tape=tape) == differences(expected, x.to_numpy())


@both
@pytest.mark.parametrize("flag", [True, False])
def test_in_a_branch_of_compile_time(tape, flag, double):
    x, y = fields([2, 2])

    @ti.kernel
    def k(squares: ti.template()):
        s = 0.0
        if ti.static(squares):
            for i in x:
                s += x[i] ** 2
        else:
            for i in x:
                s += x[i]
        y[None] = s * s

    assert gradient(k, x, y, flag, tape=tape) == ([64.0, 64.0] if flag else [8.0, 8.0])


@both
def test_in_unrolled_loops(tape, double):
    x, y = fields([2, 2, 2])

    @ti.kernel
    def k():
        s, m = 0.0, 1.0
        for d in ti.static(range(2)):
            s += x[d] ** 2
        for d in ti.static(range(2)):
            for i in x:
                m += x[i] * (d + 1)
        y[None] = s * s + m

    assert gradient(k, x, y, tape=tape) == [67.0, 67.0, 3.0]


@both
def test_in_serial_loops(tape, double):
    x, y = fields([1.5, 1.2, 0.7, 0.9])

    @ti.kernel
    def k(n: ti.i32):
        a, b = 1.0, 0.0
        ti.loop_config(serialize=True)
        for i in range(n):
            a, b = a * x[i] + b, a
        while n > 0:
            n -= 1
            b += a * x[n]
        y[None] = b

    def expected(v):
        a, b = 1.0, 0.0
        for t in v:
            a, b = a * t + b, a
        return b + a * sum(v)

    assert gradient(k, x, y, 4, tape=tape) == differences(expected, x.to_numpy())


@both
def test_a_softmax(tape, double):
    x, y = fields([1, 5, 3, 2])

    @ti.kernel
    def k():
        most, s = -1e9, 0.0
        for i in x:
            ti.atomic_max(most, x[i])
        for i in x:
            s += ti.exp(x[i] - most)
        y[None] = most + ti.log(s)

    weights = np.exp(x.to_numpy())
    assert gradient(k, x, y, tape=tape) == pytest.approx(weights / weights.sum(), rel=1e-9)


def test_static_print_prints_once(capsys):
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        ti.static_print("traced")
        for i in range(4):
            s += i
            if ti.random() < 0:
                s = 100
        ti.static_print("again")
        return s

    assert k() == 6 and capsys.readouterr().out == "traced\nagain\n"
