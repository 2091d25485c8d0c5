"""Functions that call themselves: those that end while the kernel is compiled work, the others are named in one line."""

import pytest

import costate as ti


@ti.func
def direct(x):
    return direct(x - 1) + 1


@ti.func
def ternary(x):
    return 1 if x < 2 else ternary(x - 1) * x


@ti.func
def early(x):
    if x < 2:
        return 1
    return early(x - 1) + early(x - 2)


@ti.func
def first(x):
    r = 0
    if x > 0:
        r = second(x - 1)
    return r


@ti.func
def second(x):
    r = 0
    for _ in range(3):
        r += third(x)
    return r


@ti.func
def third(x):
    return first(x)


@ti.data_oriented
class Methods:
    @ti.func
    def f(self, x):
        return self.g(x) + 1

    @ti.func
    def g(self, x):
        return self.f(x) + 1

    @ti.kernel
    def k(self, x: ti.i32) -> ti.i32:
        return self.f(x)


def kernel_of(function):
    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        return function(x)
    return k


@pytest.mark.parametrize("kernel, line, text", [
    (kernel_of(direct), "    return direct(x - 1) + 1", "the function `direct` calls itself, and what would end that"),
    (kernel_of(ternary), "    return 1 if x < 2 else ternary(x - 1) * x", "the function `ternary` calls itself, "),
    (kernel_of(early), "    return early(x - 1) + early(x - 2)", "the function `early` calls itself, "),
    (kernel_of(first), "    return first(x)", "the function `first` calls itself through `second`, `third`, "),
    (Methods().k, "        return self.f(x) + 1", "the function `f` calls itself through `g`, "),
])
def test_refused(kernel, line, text):
    with pytest.raises(ti.QuadrantsSyntaxError) as error:
        kernel(3)
    where, shown, carets, message = str(error.value).split("\n")
    assert where.startswith(f'File "{__file__}", line ') and shown == line and "^" in carets
    assert message.startswith(text)
    assert error.value.__cause__ is None


def test_templates_without_an_end():
    @ti.func
    def f(x, n: ti.template()):
        return f(x, n + 1)

    with pytest.raises(ti.QuadrantsSyntaxError, match=r"\A[^\n]*\n[^\n]*\n *\^+\nthe function `f` calls itself, more than"):
        kernel_of(ti.func(lambda_of(f)))(3)


def lambda_of(f):
    def start(x):
        return f(x, 0)
    return start


def test_functions_of_python():
    def endless(x):
        return endless(x)

    def ends(x, n):
        return x if n == 0 else ends(x + 1, n - 1)

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        return ends(x, 50)

    assert k(3) == 53
    with pytest.raises(ti.QuadrantsSyntaxError, match=r"\A[^\n]*\n[^\n]*\n *\^+\ncalls of functions, one in the other"):
        kernel_of(endless)(3)


def test_what_ends_while_the_kernel_is_compiled():
    @ti.func
    def power(x, n: ti.template()):
        r = 1
        if ti.static(n > 0):
            r = power(x, n - 1) * x
        return r

    @ti.func
    def tree(x, n: ti.template()):
        if ti.static(n == 0):
            return x
        return tree(x, n - 1) + tree(x + 1, n - 1)

    @ti.func
    def total(v):
        r = v[0]
        if ti.static(len(v) > 1):
            r += total(v[1:])
        return r

    wider = {ti.u8: ti.i16, ti.i16: ti.i32, ti.i32: ti.i64, ti.i64: ti.f32, ti.f32: ti.f64}

    @ti.func
    def widest(x):
        r = ti.cast(x, ti.f64)
        if ti.static(x.dtype in wider):
            r = widest(ti.cast(x, wider[x.dtype])) + 1
        return r

    @ti.kernel
    def k(x: ti.i32) -> (ti.i32, ti.i32, ti.i32, ti.f64):
        return power(x, 20), tree(x, 3), total(ti.Vector([x, 2, 3, 4, 5, 6])), widest(ti.cast(x, ti.u8))

    assert k(2) == (2**20, 8 * 2 + 12, 22, 7)
