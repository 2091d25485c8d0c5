"""Debug mode: indices of run time of local vectors and matrices, and integers that overflow."""

import re

import pytest

import costate as ti


@pytest.fixture(autouse=True)
def debug(fresh):
    ti.init(arch=ti.cpu, debug=True, default_fp=ti.f64)


def vectors():
    """Kernels that read or write an index of a local vector of 3 components, or of 40."""
    x = ti.field(ti.f64, 3, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)

    @ti.func
    def component(v, k):
        return v[k]

    @ti.kernel
    def read(k: ti.i32):
        v = ti.Vector([x[0], x[1], x[2]])
        y[None] += v[k]

    @ti.kernel
    def in_func(k: ti.i32):
        for i in range(1):
            y[None] += component(ti.Vector([x[0], x[1], x[2]]), k)

    @ti.kernel
    def written(k: ti.i32):
        v = ti.Vector([x[0], x[1], x[2]])
        v[k] = x[0]
        y[None] += v.sum()

    @ti.kernel
    def added(k: ti.i32):
        v = ti.Vector([x[0], x[1], x[2]])
        v[k] += x[0]
        y[None] += v.sum()

    @ti.kernel
    def row(k: ti.i32):
        m = ti.Matrix([[x[0], x[1]], [x[1], x[0]], [x[2], x[2]]])
        y[None] += m[k].sum()

    @ti.kernel
    def column(k: ti.i32):
        m = ti.Matrix([[x[0], x[1], x[2]], [x[1], x[0], x[2]]])
        m[1, k] *= 2.0
        y[None] += m[0, k] + m[1, k]

    return read, in_func, written, added, row, column


def test_local_vectors_and_matrices():
    for kernel in vectors():
        for k in range(3):
            kernel(k)
            kernel.grad(k)
        for k in (3, -1, 2**31 - 1):
            for launch in (kernel, kernel.grad):
                with pytest.raises(ti.OutOfRange, match=f"index {k} is outside of a private array of 3 elements"):
                    launch(k)


def test_large_matrices_are_checked_by_dimension():
    @ti.kernel
    def k(i: ti.i32, j: ti.i32) -> ti.f64:
        m = ti.Matrix([[0.0] * 8 for _ in range(8)])
        m[i, j] = 5.0
        return m[i, j]

    assert k(7, 7) == 5
    for index in ((0, 8), (8, 0), (1, -1)):
        with pytest.raises(ti.OutOfRange, match="outside of a private array of 8 elements"):
            k(*index)


def test_components_of_elements():
    v = ti.Matrix.field(2, 2, ti.f64, 2)

    @ti.kernel
    def k(i: ti.i32, j: ti.i32):
        v[0][i, j] = v[1][j, i] + 1.0

    k(1, 1)
    for index in ((2, 0), (0, -1)):
        with pytest.raises(ti.OutOfRange, match="is outside dimension . of `v`, whose extent is 2"):
            k(*index)


def test_conditions():
    @ti.kernel
    def first(limit: ti.i32) -> ti.i32:
        v, i = ti.Vector([1, 2, 3]), 0
        while v[i] < limit:
            i += 1
        return i

    @ti.kernel
    def guarded(k: ti.i32) -> ti.i32:
        v = ti.Vector([1, 2, 3])
        n = 0
        if 0 <= k and k < 3 and v[k] > 1:
            n = 1
        return n

    assert first(3) == 2 and guarded(2) == 1 and guarded(0) == 0
    with pytest.raises(ti.OutOfRange, match="index 3 is outside"):
        first(4)


OVERFLOWS = [(name, a, b, t) for t in (ti.i8, ti.u8, ti.i16, ti.u16, ti.i32, ti.u32, ti.i64, ti.u64)
             for most in [2**(t.bits - (t.kind == "i")) - 1]
             for name, a, b in (("Addition", most, 1), ("Subtraction", -2 if t.kind == "i" else 1, most),
                                ("Multiplication", most // 2, 3), ("Shift left", most, 1))]


@pytest.mark.parametrize("name,a,b,dtype", OVERFLOWS, ids=str)
def test_integers_that_overflow_are_reported(capfd, name, a, b, dtype):
    @ti.kernel
    def add(x: dtype, y: dtype) -> dtype:
        return x + y

    @ti.kernel
    def subtract(x: dtype, y: dtype) -> dtype:
        return x - y

    @ti.kernel
    def multiply(x: dtype, y: dtype) -> dtype:
        return x * y

    @ti.kernel
    def shift(x: dtype, y: dtype) -> dtype:
        return x << y

    kernel = {"Addition": add, "Subtraction": subtract, "Multiplication": multiply, "Shift left": shift}[name]
    kernel(1, 0)
    ti.sync()
    assert capfd.readouterr().out == ""
    kernel(a, b)
    ti.sync()
    shown = re.search(rf'{name} overflow detected in File "(.*)", line \d+, in {kernel.__name__}:\n        return x . ?y\n *\^'
                      if name != "Shift left" else rf"{name} overflow detected in File (.*), in shift:\n        return x << y\n",
                      capfd.readouterr().out)
    assert shown and "test_debug_integers" in shown.group(1)


def test_what_wraps_by_itself_is_silent(capfd):
    x, n = ti.field(ti.u32, 4), ti.field(ti.i32, ())

    @ti.kernel
    def k(base: ti.i32, exponent: ti.i32):
        for i in x:
            x[i] = ti.cast(ti.random(ti.f32) * 100, ti.u32) + ti.random(ti.u32) // 2
            x[i] = ti.math.ffs(ti.u32(0)) if ti.static(hasattr(ti.math, "ffs")) else 0
        n[None] = base ** exponent
        for i in range(-2, 2):
            n[None] += i * 2 - 1

    k(2, 30)
    ti.sync()
    assert capfd.readouterr().out == ""


def test_without_debug_nothing_is_reported(capfd):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def add(x: ti.i32, y: ti.i32) -> ti.i32:
        return x + y

    assert add(2**31 - 1, 1) == -2**31
    ti.sync()
    assert capfd.readouterr().out == ""


def test_gradients_of_kernels_that_report(capfd):
    x, y = (ti.field(ti.f64, (), needs_grad=True) for _ in range(2))
    x[None] = 3

    @ti.kernel
    def k(a: ti.i32):
        for i in range(2):
            b = a + i
            y[None] += x[None] * (b > 0)

    k(2**31 - 1)
    ti.sync()
    assert capfd.readouterr().out.count("Addition overflow detected") == 1
    y.grad[None] = 1
    k.grad(2**31 - 1)
    assert x.grad[None] == 1
