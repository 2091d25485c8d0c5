"""Warnings of programs that are probably meant otherwise: they name the line and a way out."""

import warnings

import numpy as np
import pytest

import costate as ti

N = 6


def said(function, *args):
    """What is warned of while a kernel is compiled: (text, line below the `def`)."""
    first = function.__code__.co_firstlineno
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kernel = ti.kernel(function)
        kernel(*args)
        kernel(*args)
    assert all(w.category is UserWarning and w.filename == __file__ for w in seen)
    return [(str(w.message), w.lineno - first) for w in seen]


def numbers(count=N):
    return np.linspace(1, 2, count, dtype=np.float32)


X = ti.types.ndarray(dtype=ti.f32, ndim=1)


# -- what iterations of a parallel loop leave to others ----------------------------


def test_a_variable_that_goes_from_one_iteration_to_the_next():
    def k(x: X, y: X):
        v = 0.0
        for t in range(N):
            v = 0.5 * v + x[t]
            y[t] = v

    ((text, line),) = said(k, numbers(), numbers())
    assert line == 2
    assert text.startswith("all iterations of this loop share `v`, and run in parallel: what they read there (line ")
    assert ": `v = 0.5 * v + x[t]`) is left to chance, since others change it. To run them in order, put "  in text
    assert "`ti.loop_config(serialize=True)` in front of the loop; for sums, products, minima and maxima over all of them" in text
    assert text.endswith("what belongs to one iteration gets its first value inside of the loop")


def test_an_array_that_goes_from_one_iteration_to_the_next():
    def k(x: X):
        for t in range(N - 1):
            v = 2.0 * x[t]
            x[t + 1] = v

    ((text, line),) = said(k, numbers())
    assert line == 1
    assert text.startswith("iterations of this loop read elements of `x` (line ")
    assert ": `v = 2.0 * x[t]`) that others change (line " in text and ": `x[t + 1] = v`), but they run in parallel" in text
    assert "`ti.loop_config(serialize=True)` in front of the loop; else write to another array, or launch a kernel once" in text


def carried_sum(x: X, y: X):
    v = 0.0
    for t in x:
        v += x[t]
        y[t] = v


def largest(x: X, y: X):
    v = 0.0
    for t in x:
        v = max(v, x[t])
    y[0] = v


def states(x: X, y: X):
    state = 0
    for t in x:
        if state == 0 and x[t] > 1.5:
            state = 1
        elif state == 1 and x[t] < 1.2:
            state = 2
        y[t] = state


def scratch(x: X, y: X):
    v = ti.Vector([0.0, 0.0])
    for t in x:
        v[0] = x[t]
        y[t] = v[0]


@ti.func
def decay(v: ti.template(), by):
    v = 0.5 * v + by


def in_a_function(x: X, y: X):
    v = 0.0
    for t in x:
        decay(v, x[t])
    y[0] = v


def two(x: X, y: X):
    a, b = 0.0, 1.0
    for t in x:
        a, b = b, a + x[t]
        y[t] = a


def by_hand(x: X, y: X):
    for t in x:
        y[0] = y[0] + x[t]


def behind_a_border(x: X, y: X):
    for t in x:
        if t > 0 and t < N:
            x[t] = x[t - 1] + y[t]


def backwards(x: X, y: X):
    for t in range(N - 1):
        x[N - 2 - t] = x[N - 1 - t] + y[t]


def grouped(x: X, y: X):
    for I in ti.grouped(ti.ndrange((1, N))):
        x[I] = x[I - 1] + y[I]


def triangle(x: X, y: X):
    for t in x:
        v = y[t]
        for s in range(t):
            v -= x[s]
        x[t] = v


def products(x: X, y: X):
    for t, s in ti.ndrange(N, N):
        y[t] = y[t] + x[s]


@pytest.mark.parametrize("function", [
    carried_sum, largest, states, scratch, in_a_function, two, by_hand, behind_a_border, backwards, grouped, triangle, products])
def test_what_depends_on_the_order(function):
    assert len(said(function, numbers(), numbers())) == 1


def total(x: X, y: X):
    v = 0.0
    for t in x:
        v += x[t]
    y[0] = v


def total_in_an_array(x: X, y: X):
    for t in x:
        y[0] += x[t]
        ti.atomic_max(y[1], x[t])


def smallest(x: X, y: X):
    v = 9.0
    for t in x:
        if x[t] < v:
            ti.atomic_min(v, x[t])
    y[0] = v


def flag(x: X, y: X):
    found = False
    for t in x:
        if not found and x[t] > 1.5:
            found = True
    y[0] = found


def own(x: X, y: X):
    for t in x:
        x[t] = x[t] * 2.0
        y[t] = x[t] + y[t]


def even_and_odd(x: X, y: X):
    for t in range(N // 2):
        x[2 * t] = 0.5 * x[2 * t + 1]
    for t in range(0, N, 2):
        y[t] = 0.5 * y[t + 1]
    for t in x:
        if t % 2 == 0:
            x[t] = 0.5 * x[t + 1]
    for t in x:
        if t % 2 == 0:
            continue
        x[t] = 0.5 * x[t - 1]


def one_iteration(x: X, y: X):
    v = 0.0
    for _ in range(1):
        for t in range(N):
            v = 0.5 * v + x[t]
        for t in range(N - 1):
            y[t + 1] = y[t] + v


def one_of_them(x: X, y: X):
    for t in x:
        if t == 0:
            for s in range(N - 1):
                x[s + 1] = x[s]
            y[0] = y[0] + 1.0


def in_order(x: X, y: X):
    v = 0.0
    ti.loop_config(serialize=True)
    for t in range(N - 1):
        v = 0.5 * v + x[t]
        y[t + 1] = y[t] + v


def indirect(x: X, y: X):
    for t in x:
        s = int(x[t])
        y[s] = y[t]
        x[t + s] = 1.0


def of_another_array(x: X, y: X):
    for t in range(N - 1):
        y[t] = x[t + 1] - x[t]


def serial_inside(x: ti.types.ndarray(dtype=ti.f32, ndim=2)):
    for t in range(N):
        for s in range(N - 1):
            x[t, s + 1] = x[t, s]


@pytest.mark.parametrize("function", [
    total, total_in_an_array, smallest, flag, own, even_and_odd, one_iteration, one_of_them, in_order, indirect, of_another_array])
def test_what_does_not(function):
    assert said(function, numbers(), numbers()) == []


def test_loops_inside_are_in_order():
    assert said(serial_inside, np.ones((N, N), np.float32)) == []


def test_fields_by_the_names_that_they_have_in_the_program():
    heat, named = ti.field(ti.f32, N), ti.field(ti.f32, (), name="the loss")

    def k():
        for t in range(N - 1):
            heat[t + 1] = 0.5 * heat[t]
        for t in range(N):
            named[None] = named[None] + heat[t]

    first, second = said(k)
    assert "elements of `heat` (" in first[0] and "share `the loss`, " in second[0]


# -- variables whose first value gives them a type ---------------------------------


def test_the_line_that_gave_a_variable_its_type(double):
    def k(x: X):
        w, v = 0, ti.Vector([0, 0])
        for t in x:
            w += x[t]
            ti.atomic_max(w, x[t])
        v[0] = 0.5
        n = 0
        n = n + x[0]
        x[0] = w + n

    texts = said(k, numbers())
    assert [line for _, line in texts] == [3, 4, 5, 7]
    at = k.__code__.co_firstlineno
    pair = f"(line {at + 1}: `w, v = 0, ti.Vector([0, 0])`)"
    assert texts[0][0] == (f"Atomic update may lose precision: i32 <- f32; `cast` says that this is meant; `w` is i32 by its first value "
                           f"{pair}: there `w: ti.f32 = ...` makes it f32")
    assert texts[1][0].endswith("`w: ti.f32 = ...` makes it f32")
    assert texts[2][0].endswith(f"`v` is i32 by its first value {pair}: there `ti.Vector([...], ti.f64)` makes it f64")
    assert texts[3][0].endswith(f"`n` is i32 by its first value (line {at + 6}: `n = 0`): there `n: ti.f32 = ...` makes it f32")


def test_wider_floats():
    z = ti.field(ti.f64, N)

    def k():
        w = 0.0
        for t in z:
            w += z[t]
        many = ti.Vector([0.0] * 40)
        many[1] = z[0]
        z[0] = w + many[1]

    texts = said(k)
    assert [text.split(";")[0] for text, _ in texts] == [
        "Atomic update may lose precision: f32 <- f64", "Assign may lose precision: f32 <- f64"]
    assert texts[0][0].endswith("`w: ti.f64 = ...` makes it f64") and "`many` is f32 by its first value" in texts[1][0]


def test_variables_with_a_type_of_their_own():
    z = ti.field(ti.f64, N)

    def k():
        w: ti.f64 = 0
        v = ti.Vector([0, 0], ti.f64)
        for t in z:
            w += z[t]
        v[0] = 0.5
        v += z[0]
        z[0] = w + v[0]

    assert said(k) == []


# -- gradients that are 0 ----------------------------------------------------------


@pytest.fixture
def program():
    """(parameter, array, loss, kernel)."""
    p, loss = (ti.field(ti.f32, (), needs_grad=True, name=name) for name in ("p", "loss"))
    x = ti.field(ti.f32, N, needs_grad=True, name="x")

    @ti.kernel
    def k():
        for i in x:
            loss[None] += (x[i] * p[None]) ** 2

    p[None] = 3
    x.fill(1)
    return p, x, loss, k


def test_gradients_that_are_read_too_early(program):
    p, x, loss, k = program
    with ti.ad.Tape(loss):
        k()
        with pytest.warns(UserWarning, match=r"the gradient of field `p` is 0 inside of the `with` of the `Tape`, which adds gradients "
                                             "at its end: read it after that") as seen:
            assert p.grad[None] == 0
        with pytest.warns(UserWarning, match="gradient of field `x` is 0 inside"):
            x.grad.to_numpy()
    assert seen[0].filename == __file__ and p.grad[None] == 36


def test_parameters_that_the_host_writes_too_late(program):
    p, x, loss, k = program
    with ti.ad.Tape(loss):
        p[None] = 2
        x[1] = 4
        k()
    with pytest.warns(UserWarning, match=r"the gradient of field `p` is 0 because the host has written field `p` inside of the `with` "
                                         r"of the `Tape` \(.*test_warnings.py:\d+\): a gradient is that of what stood there before. Write"):
        assert p.grad[None] == 0
    with pytest.warns(UserWarning, match="gradient of field `x` is 0"):
        assert x.grad[1] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad[0] == 8 and x.grad.to_numpy().tolist() == [8, 0, 8, 8, 8, 8]


@pytest.mark.parametrize("write", [
    lambda x: x.fill(2), lambda x: x.from_numpy(np.full(N, 2, np.float32))], ids=["fill", "from_numpy"])
def test_whole_arrays_that_the_host_writes_too_late(program, write):
    p, x, loss, k = program
    with ti.ad.Tape(loss):
        write(x)
        k()
    with pytest.warns(UserWarning, match="gradient of field `x` is 0 because"):
        x.grad.to_numpy()


def test_gradients_that_are_0_for_other_reasons(program):
    p, x, loss, k = program
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ti.ad.Tape(loss):
            assert p.grad[None] == 0    # nothing is recorded yet
            k()
            p[None] = 0
        assert p.grad[None] == 36
        with ti.ad.Tape(loss):
            k()
        assert x.grad[0] == 0
        with ti.ad.Tape(loss):
            p[None] = 1
            k()
        p.grad.fill(0)
        assert p.grad[None] == 0


# -- arrays without gradients ------------------------------------------------------


@ti.kernel
def squares(x: X, loss: ti.types.ndarray(dtype=ti.f32, ndim=0)):
    for i in x:
        loss[None] += x[i] ** 2


@ti.kernel
def clear(g: X):
    for i in g:
        g[i] = 0


def test_a_tape_without_gradients():
    x, y, loss = ti.ndarray(ti.f32, N), ti.ndarray(ti.f32, N, needs_grad=True), ti.ndarray(ti.f32, (), needs_grad=True)
    with pytest.warns(UserWarning, match=r"the `Tape` gives no gradients: none of the arrays that its kernels read \(`x`\) has one; "
                                         "make them with `needs_grad=True`") as seen:
        with ti.ad.Tape(loss):
            squares(x, loss)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ti.ad.Tape(loss):
            squares(x, loss)
            squares(y, loss)
        with ti.ad.Tape(loss):
            loss[None] = x[0]
            squares(y, loss)


def test_a_gradient_by_hand_that_goes_nowhere():
    x, y, loss = ti.ndarray(ti.f32, N), ti.ndarray(ti.f32, N, needs_grad=True), ti.ndarray(ti.f32, (), needs_grad=True)
    with pytest.warns(UserWarning, match=r"the gradient of kernel `squares` goes nowhere: none of the arrays that it reads \(`x`\) has "
                                         "one; make them with `needs_grad=True`") as seen:
        squares.grad(x, loss)
        squares.grad(x, loss)
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        squares.grad(y, loss)


def test_none_for_a_gradient():
    x = ti.ndarray(ti.f32, N)
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="`g`.* is None, which is no ndarray; `x.grad` is None of an ndarray that is "
                                                           "made without `needs_grad=True`"):
        clear(x.grad)


# -- arguments, and the name of the package ----------------------------------------


@ti.kernel
def scale(x: X, s: ti.f32, n: ti.i32):
    for i in x:
        x[i] *= s * n


@ti.kernel
def corner(x: ti.types.ndarray()):
    x[0, 0] = 1


@pytest.mark.parametrize("call, text", [
    (lambda: scale(np.ones(3), 1.0, 2), "kernel `scale`, .*Expect element type f32 for argument x, but get f64; pass an array of f32 "
                                        r"\(`x.astype\(np.float32\)` of one of NumPy\), or leave `dtype` out of the annotation"),
    (lambda: scale(np.ones((3, 3), np.float32), 1.0, 2), "kernel `scale`, .*argument x - required ndim=1, but 2d ndarray"),
    (lambda: scale(numbers(), 1.0, 2.5), r"kernel `scale`: Argument `n` .*cannot be converted into required type i32: 2.5 is a float; "
                                         r"pass an integer, such as `round\(v\)`, or annotate `n` with a type of floats"),
    (lambda: scale(numbers(), 1.0, "2"), "required type i32: '2' is not one number"),
    (lambda: scale(np.ones(3, np.complex64), 1.0, 2), "kernel `scale`, argument `x`: arrays of dtype complex64 are not supported"),
    (lambda: scale(ti.field(ti.f32, 3), 1.0, 2), "kernel `scale`: .*parameter `x`: a field is passed as `ti.template"),
    (lambda: corner(numbers()), "the array `x` with 1 dimensions is accessed with 2 indices"),
], ids=["dtype", "rank", "number", "text", "kind", "field", "indices"])
def test_arguments_by_the_names_of_kernel_and_parameter(call, text):
    with pytest.raises((TypeError, ti.QuadrantsIndexError), match=text):
        call()


PROGRAM = """
import costate as lang

@lang.func
def f(x):
    return x

def call():
    f(1.0)

def vector():
    lang.Vector(3)

def ranges():
    lang.ndrange((1, 2, 3))

@lang.kernel
def k(x: lang.types.ndarray()):
    pass

def field():
    k(lang.field(lang.f32, 3))
"""


@pytest.mark.parametrize("name, text", [
    ("call", "`@lang.func`"), ("vector", "`Vector.zero(lang.f32, 3)`"), ("ranges", "`lang.ndrange`"), ("field", "`lang.template()`")])
def test_the_package_has_the_name_that_the_program_gives_it(tmp_path, name, text):
    (tmp_path / "program.py").write_text(PROGRAM)
    names = {"__name__": "program"}
    exec(compile(PROGRAM, str(tmp_path / "program.py"), "exec"), names)
    with pytest.raises(ti.errors.Error) as seen:
        names[name]()
    assert text in str(seen.value) and "ti." not in str(seen.value)


def test_numbers_of_the_host_that_math_has_seen_by_the_line_of_the_program(program):
    import math
    p, x, loss, _ = program

    @ti.kernel
    def add(v: ti.f32):
        for i in x:
            loss[None] += v * x[i]

    p[None] = 2
    with ti.ad.Tape(loss):
        v = p[None]
        constant = math.sin(v)
        with pytest.warns(UserWarning, match="is `math.sin` of a number that comes from an element of field `p`") as seen:
            add(constant)
    assert seen[0].filename == __file__


def test_random_numbers_of_python_by_the_line_of_the_kernel():
    import random

    def k(x: X):
        for i in x:
            x[i] = random.random()

    ((text, line),) = said(k, numbers())
    assert line == 2 and "use `ti.random()` for new ones" in text
