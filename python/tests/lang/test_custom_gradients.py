"""`grad_replaced`: the gradient of the user finds arrays as its function left them."""

import numpy as np
import pytest

import costate as ti
from costate.lang import runtime


@pytest.fixture(params=["shared", "apart"])
def fields(request, monkeypatch, double):
    if request.param == "apart":
        monkeypatch.setattr(runtime, "shares_memory", lambda: False)
    x, y = (ti.field(ti.f64, 3, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def add():
        for i in y:
            loss[None] += y[i]

    x.from_numpy(np.array([1.0, 2, 3]))
    return x, y, loss, square, add


def replaced(function, gradient):
    made = ti.ad.grad_replaced(function)
    ti.ad.grad_for(made)(gradient)
    return made


def by_host(x):
    x[1] = 10


@pytest.mark.parametrize("write", [by_host, lambda x: x.fill(10), lambda x: x.from_numpy(np.full(3, 10.0))])
def test_what_the_host_overwrites_later(fields, write):
    x, y, loss, square, add = fields
    f = replaced(lambda: square(), lambda: square.grad())
    with ti.ad.Tape(loss):
        f()
        write(x)
        add()
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    assert x[1] == 10


def test_what_a_kernel_overwrites_later_and_calls_one_after_another(fields):
    x, y, loss, square, add = fields

    @ti.kernel
    def grow():
        for i in x:
            x[i] = 2 * x[i]

    def gradient(step):
        seen.append((step, x[0], x.to_numpy()[1], y[2]))
        square.grad()

    seen = []
    f = replaced(lambda step: square(), gradient)
    with ti.ad.Tape(loss):
        for step in range(3):
            f(step)
            add()
            grow()
    assert seen == [(2, 4, 8, 144), (1, 2, 4, 36), (0, 1, 2, 9)]
    assert x.grad.to_numpy().tolist() == [2 + 8 + 32, 4 + 16 + 64, 6 + 24 + 96]
    assert x.to_numpy().tolist() == [8, 16, 24]


def test_a_solver_that_is_called_twice(double):
    """x * x = a by Newton's method; the gradient is 1 / (2 x)."""
    a, x, loss = (ti.field(ti.f64, (), needs_grad=True) for _ in range(3))

    @ti.kernel
    def iterate():
        x[None] = 0.5 * (x[None] + a[None] / x[None])

    @ti.kernel
    def add():
        loss[None] += x[None] * x[None] * x[None]

    @ti.kernel
    def next_a():
        a[None] = 3 * a[None]

    def solve():
        x[None] = 1
        for _ in range(50):
            iterate()
            if abs(x[None] ** 2 - a[None]) < 1e-14:
                break

    def gradient():
        a.grad[None] += x.grad[None] / (2 * x[None])
        x.grad[None] = 0

    root = replaced(solve, gradient)
    a[None] = 2
    with ti.ad.Tape(loss):
        root()
        add()
        next_a()
        root()
        add()
    assert a.grad[None] == pytest.approx(1.5 * 2 ** 0.5 + 1.5 * 3 * 6 ** 0.5, rel=1e-10)


def test_what_the_gradient_writes_is_put_back(fields):
    x, y, loss, square, add = fields
    scratch = ti.field(ti.f64, 3)

    def gradient():
        square.grad()
        x.fill(77)
        square()
        scratch.fill(5)   # is no part of the recording

    f = replaced(lambda: square(), gradient)
    with ti.ad.Tape(loss):
        f()
        add()
        f()
        add()
    assert x.grad.to_numpy().tolist() == [4, 8, 12]
    assert x.to_numpy().tolist() == [1, 2, 3] and y.to_numpy().tolist() == [1, 4, 9]
    assert scratch[0] == 5


def test_other_arrays_are_as_they_were_or_an_error(fields):
    x, y, loss, square, add = fields
    w, tangents = (ti.field(ti.f64, 3) for _ in range(2))

    @ti.kernel
    def apply():
        for i in x:
            tangents[i] = w[i] * y.grad[i]

    @ti.kernel
    def spread():
        for i in x:
            x.grad[i] += tangents[i]

    def gradient():
        apply()
        spread()

    f = replaced(lambda: square(), gradient)
    w.fill(3)
    with ti.ad.Tape(loss):
        f()
        add()
        f()
        add()
    assert x.grad.to_numpy().tolist() == [9, 9, 9]   # `y.grad` is left as it is
    with pytest.raises(ti.errors.CannotReplay, match="the gradient of function `<lambda>`.*which has been written since"):
        with ti.ad.Tape(loss):
            f()
            w[0] = 4
            add()


def test_functions_call_functions_and_themselves(fields):
    x, y, loss, square, add = fields
    depth = []

    def forward(n):
        if n:
            f(n - 1)
        else:
            square()

    def gradient(n):
        depth.append(n)
        with ti.ad.Tape(clear_gradients=False):
            inner()

    inner = replaced(lambda: square(), lambda: square.grad())
    f = replaced(forward, gradient)
    with ti.ad.Tape(loss):
        f(3)
        x.fill(9)
        add()
    assert depth == [3]
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_random_numbers_of_each_call(double):
    x, y, loss = (ti.field(ti.f64, (), needs_grad=True) for _ in range(3))

    @ti.kernel
    def noise():
        y[None] = x[None] * ti.random(ti.f64)

    @ti.kernel
    def add():
        loss[None] += y[None]

    x[None], factors = 1, []
    f = replaced(lambda: noise(), lambda: noise.grad())
    with ti.ad.Tape(loss):
        for _ in range(3):
            f()
            factors.append(y[None])
            add()
    assert len(set(factors)) == 3
    assert x.grad[None] == pytest.approx(sum(factors))


def test_a_function_that_fails_is_no_step(fields):
    x, y, loss, square, add = fields

    def fails():
        x[0] = 5
        raise KeyError("of the user")

    f = replaced(fails, lambda: None)
    with pytest.raises(ti.errors.CannotReplay, match="written outside of the recording"):
        with ti.ad.Tape(loss):
            square()
            with pytest.raises(KeyError):
                f()
            square()
            add()
    g = replaced(lambda: square(), lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        with ti.ad.Tape(loss):
            g()
            add()


def test_values_and_results_pass(fields):
    x, y, loss, square, add = fields

    @ti.ad.no_grad
    def look(k):
        x.fill(3)
        return k + 1

    @ti.ad.grad_replaced
    def f(k):
        square()
        return y[2] * k

    @ti.ad.grad_for(f)
    def gradient(k):
        square.grad()

    with ti.ad.Tape(loss):
        assert f(2) == 18
        assert look(4) == 5    # the adjoint of what it overwrites passes by
        add()
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_arrays_of_torch(double):
    torch = pytest.importorskip("torch")
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def add(y: ti.types.ndarray()):
        for i in y:
            loss[None] += y[i]

    f = replaced(lambda x, y: square(x, y), lambda x, y: square.grad(x, y))
    x = torch.tensor([1.0, 2, 3], dtype=torch.float64, requires_grad=True)
    y = torch.zeros(3, dtype=torch.float64, requires_grad=True)

    def run(write):
        x.grad = y.grad = None
        with ti.ad.Tape(loss):
            f(x, y)
            with torch.no_grad():
                write()
            add(y)

    run(lambda: None)
    assert x.grad.tolist() == [2, 4, 6]
    with pytest.raises(ti.errors.CannotReplay, match="has been overwritten since"):
        run(lambda: x.mul_(2))


def test_arrays_of_numpy_among_the_arguments(fields):
    x, y, loss, square, add = fields
    seen, total = [], np.zeros(1)

    def gradient(factors, total, scale):
        seen.append((factors.tolist(), scale["by"].tolist()))
        for i in range(3):
            x.grad[i] += factors[i] * y.grad[i]
        total += factors.sum()    # has not been overwritten

    f = replaced(lambda factors, total, scale: square(), gradient)
    factors, scale = np.array([1.0, 2, 3]), np.ones(1)
    with ti.ad.Tape(loss):
        f(factors, total, scale={"by": scale})
        factors *= 10
        f(factors, total, scale={"by": scale})
        scale[:] = 9
        factors[:] = 0
        add()
    assert seen == [([10, 20, 30], [1]), ([1, 2, 3], [1])]
    assert factors.tolist() == [0, 0, 0] and scale.tolist() == [9] and total.tolist() == [66]
    assert x.grad.to_numpy().tolist() == [11, 22, 33]


def test_kernels_with_memory_of_their_own(fields):
    """What a gradient launches may be launched later in the program too."""
    x, y, loss, square, add = fields

    @ti.kernel
    def total() -> ti.f64:
        found = 0.0
        for i in y:
            found += y[i]
        return found

    def gradient():
        seen.append(total())
        square.grad()

    seen = []
    f = replaced(lambda: square(), gradient)
    with ti.ad.Tape(loss):
        f()
        seen.append(total())
        y.fill(1)
        seen.append(total())
        add()
    assert seen == [14, 3, 14]


@pytest.mark.parametrize("options", [{}, {"clear_gradients": False}])
def test_a_tape_inside_of_a_gradient_leaves_those_of_the_tape_around_it(double, options):
    x, y, z, inner, loss = (ti.field(ti.f64, (), needs_grad=True) for _ in range(5))

    @ti.kernel
    def square():
        y[None] = x[None] * x[None]

    @ti.kernel
    def cube():
        inner[None] += z[None] ** 3

    @ti.kernel
    def add():
        loss[None] += 5 * y[None] + 7 * x[None]

    @ti.ad.grad_replaced
    def function():
        square()

    @ti.ad.grad_for(function)
    def gradient():
        z[None] = x[None]
        z.grad[None] = 0
        with ti.ad.Tape(inner, **options):
            cube()
        x.grad[None] += z.grad[None] * y.grad[None]
    x[None] = 2
    for _ in range(2):
        with ti.ad.Tape(loss):
            function()
            add()
        assert x.grad[None] == 5 * 12 + 7
    with ti.ad.Tape(loss):
        add()
    assert x.grad[None] == 7


@pytest.mark.parametrize("given", [lambda x: x[0], lambda x: 2 * x[0], lambda x: [1.0, x[0]], lambda x: ti.Vector([x[0], 1.0])])
def test_numbers_with_derivatives_do_not_go_in(fields, given):
    x, y, loss, square, add = fields
    f = replaced(lambda _: square(), lambda _: square.grad())
    with pytest.raises(ti.errors.NotDifferentiable, match="element of a field is an argument of `.*`, which has a gradient of its own.*float"):
        with ti.ad.Tape(loss):
            f(given(x))
    with ti.ad.Tape(loss):
        f(float(x[0]))
        add()
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    f(x[0])
