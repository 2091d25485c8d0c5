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
    """The gradient by a `Tape` or by hand."""
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


@ti.func
def total(x: ti.template()):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


@ti.func
def total_from(x: ti.template(), s):
    for i in range(x.shape[0]):
        s += x[i]
    return s


@ti.func
def add_total(x: ti.template(), s: ti.template()):
    for i in range(x.shape[0]):
        s += x[i]


@ti.func
def any_above(x: ti.template(), limit):
    found = False
    for i in range(x.shape[0]):
        if x[i] > limit:
            found = True
    return found


@ti.func
def product_of_totals(x: ti.template()):
    a = total(x)
    b = total_from(x, a)
    for i in range(x.shape[0]):
        b += 1
    return a * b


def test_in_functions():
    @ti.kernel
    def k(x: ti.types.ndarray(), c: ti.f32) -> (ti.f32, ti.f32, ti.f32, ti.u1):
        s = c
        add_total(x, s)
        add_total(x, s)
        return product_of_totals(x), total_from(x, c) + c, s, any_above(x, 3)

    for _ in range(2):
        assert k(np.float32([1, 2, 3, 4]), 100) == (240, 210, 120, True)
        assert k(np.float32([1, 2]), 0) == (24, 3, 6, False)


def test_functions_where_loops_are_serial():
    @ti.func
    def early(x: ti.template(), c):
        if c > 2:
            return -1.0
        return total(x)

    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray(), c: ti.i32) -> ti.f32:
        for j in range(3):
            y[j] = total(x) * j
        r = 0.0
        if c > 1:
            r = total(x)
        return r + 100 * early(x, c)

    x, y = np.float32([1, 2, 3, 4]), np.zeros(3, np.float32)
    assert [k(x, y, c) for c in (1, 2, 3)] == [1000, 1010, -90]
    assert y.tolist() == [0, 10, 20]


def test_changed_by_a_function_in_the_loop():
    @ti.func
    def add(s: ti.template(), v):
        s += v

    @ti.kernel
    def k(x: ti.types.ndarray()) -> ti.f32:
        s = 0.0
        for i in range(x.shape[0]):
            add(s, x[i])
        return s

    assert k(np.float32([1, 2, 3, 4])) == 10


def test_structs_in_functions():
    Sums = ti.types.struct(a=ti.f32, v=ti.types.vector(2, ti.f32))

    @ti.func
    def sums(x: ti.template()):
        s = Sums(a=0.0, v=ti.Vector([0.0, 0.0]))
        for i in range(x.shape[0]):
            s.a += x[i]
            s.v += ti.Vector([1.0, x[i] * x[i]])
        return s

    @ti.kernel
    def k(x: ti.types.ndarray()) -> ti.f32:
        s = sums(x)
        return s.a + 100 * s.v[0] + 1000 * s.v[1]

    assert k(np.float32([1, 2])) == 3 + 200 + 5000


@both
def test_gradients_through_functions(tape, double):
    x, y = fields([0.5, 0.7, 0.2])

    @ti.kernel
    def k():
        a = product_of_totals(x)
        for i in x:
            y[None] += ti.sin(x[i]) * a

    def expected(v):
        a = sum(v) * (2 * sum(v) + 3)
        return sum(math.sin(e) * a for e in v)

    assert gradient(k, x, y, tape=tape) == differences(expected, x.to_numpy())


def test_components_at_indices_of_run_time_are_left_to_other_work_items():
    @ti.kernel
    def counts(n: ti.i32) -> ti.types.vector(5, ti.f64):
        v = ti.Vector([0.0] * 5, ti.f64)
        for i in range(n):
            v[i % 5] += 1.0
            ti.atomic_add(v[(i + 1) % 5], 1.0)
        return v

    @ti.kernel
    def stored(n: ti.i32) -> ti.types.matrix(3, 2, ti.i32):
        m = ti.Matrix([[0, 0], [0, 0], [0, 0]])
        for i in range(n):
            m[(i // 2) % 3, i % 2] = 10 * ((i // 2) % 3) + i % 2
        return m

    assert counts(200000).entries == [80000] * 5
    for _ in range(20):
        assert stored(60000).entries == [0, 1, 10, 11, 20, 21]
