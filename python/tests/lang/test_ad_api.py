"""Tape, FwdMode, gradients of one's own, checks."""

import numpy as np
import pytest

import costate as ti


@pytest.fixture
def square():
    x = ti.field(ti.f32, shape=4, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def k():
        for i in x:
            loss[None] += x[i] ** 2

    x.from_numpy(np.array([1, 2, 3, 4], np.float32))
    return x, loss, k


def test_tape(square):
    x, loss, k = square
    for _ in range(2):
        loss[None] = 0
        with ti.ad.Tape(loss=loss) as tape:
            k()
        assert loss[None] == 30
        assert x.grad.to_numpy().tolist() == [2, 4, 6, 8]
        assert loss.grad[None] == 1
    assert len(tape.calls) == 1


def test_tape_that_keeps_gradients(square):
    x, loss, k = square
    for iteration in (1, 2):
        loss[None] = 0
        with ti.ad.Tape(loss, clear_gradients=False):
            k()
        assert x.grad.to_numpy().tolist() == [2 * iteration, 4 * iteration, 6 * iteration, 8 * iteration]


def test_tape_is_exact_where_arrays_are_overwritten():
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.from_numpy(np.array([1.1, 1.2, 1.3]))
    with ti.ad.Tape(loss):
        for _ in range(3):
            step()
        total()
    assert x.grad.to_numpy() == pytest.approx(8 * np.array([1.1, 1.2, 1.3]) ** 7)


def test_tape_with_ndarrays():
    x = ti.ndarray(ti.f32, shape=3, needs_grad=True)
    y = ti.ndarray(ti.f32, shape=3, needs_grad=True)
    loss = ti.ndarray(ti.f32, shape=1, needs_grad=True)

    @ti.kernel
    def a(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] += x[i] * x[i]

    @ti.kernel
    def b(y: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in y:
            loss[0] += y[i]

    x.fill(3)
    for iteration in (1, 2):
        with ti.ad.Tape(loss):
            a(x, y)
            b(y, loss)
        assert x.grad.to_numpy().tolist() == [6 * iteration] * 3


def test_host_writes_inside_of_a_tape(square):
    x, loss, k = square
    with ti.ad.Tape(loss):
        x[0] = 10
        k()
    assert x.grad.to_numpy().tolist() == [0, 4, 6, 8]   # a constant is no parameter


def test_losses_that_a_tape_refuses(square):
    with pytest.raises(RuntimeError, match="0-D field"):
        ti.ad.Tape(ti.field(ti.f32, shape=3, needs_grad=True))
    with pytest.raises(RuntimeError, match="not allocated"):
        ti.ad.Tape(ti.field(ti.f32, shape=()))
    with pytest.raises(RuntimeError, match="only one element"):
        ti.ad.Tape(ti.ndarray(ti.f32, shape=3, needs_grad=True))
    _, loss, k = square
    tape = ti.ad.Tape(loss)
    with tape:
        k()
        with pytest.raises(RuntimeError, match="inside of another"):
            ti.ad.Tape(loss).__enter__()
    with pytest.raises(RuntimeError, match="only once"):
        with tape:
            pass


def test_an_exception_inside_of_a_tape_leaves_it(square):
    x, loss, k = square
    with pytest.raises(ZeroDivisionError):
        with ti.ad.Tape(loss):
            k()
            1 / 0
    with ti.ad.Tape(loss):
        k()


def test_forward_mode(square):
    x, loss, k = square
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0, 2]):
        k()
    assert loss.dual[None] == 2 + 16


def test_forward_mode_of_several_losses():
    x = ti.field(ti.f64, shape=(), needs_dual=True)
    a = ti.field(ti.f64, shape=(), needs_dual=True)
    b = ti.field(ti.f64, shape=2, needs_dual=True)

    @ti.kernel
    def k():
        a[None] += ti.sin(x[None])
        for i in range(2):
            b[i] = x[None] * (i + 1)

    x[None] = 0.3
    with ti.ad.FwdMode(loss=[a, b], param=x):
        k()
    assert a.dual[None] == pytest.approx(np.cos(0.3))
    assert b.dual.to_numpy().tolist() == [1, 2]


def test_forward_mode_keeps_tangents(square):
    x, loss, k = square
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1, 1]):
        k()
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1, 1], clear_gradients=False):
        k()
    assert loss.dual[None] == 40


def test_forward_mode_of_ndarrays():
    x = ti.ndarray(ti.f64, shape=2, needs_dual=True)
    y = ti.ndarray(ti.f64, shape=2, needs_dual=True)

    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 3

    x.from_numpy(np.array([1.0, 2]))
    with ti.ad.FwdMode(loss=y, param=x, seed=[1, 1]):
        k(x, y)
    assert y.dual.to_numpy().tolist() == [3, 12]


def test_seeds_that_forward_mode_refuses(square):
    x, loss, k = square
    with pytest.raises(RuntimeError, match="seed"):
        with ti.ad.FwdMode(loss=loss, param=x):
            k()
    with pytest.raises(RuntimeError, match="[Dd]ual"):
        with ti.ad.FwdMode(loss=ti.field(ti.f32, shape=()), param=x, seed=[1] * 4):
            k()


def test_grad_replaced(square):
    x, loss, k = square

    @ti.ad.grad_replaced
    def twice(scale):
        k()

    @ti.ad.grad_for(twice)
    def twice_grad(scale):
        k.grad()
        for i in range(4):
            x.grad[i] *= scale

    with ti.ad.Tape(loss):
        twice(10)
    assert x.grad.to_numpy().tolist() == [20, 40, 60, 80]


def test_grad_replaced_methods():
    @ti.data_oriented
    class A:
        def __init__(self):
            self.x = ti.field(ti.f32, shape=3, needs_grad=True)
            self.loss = ti.field(ti.f32, shape=(), needs_grad=True)

        @ti.kernel
        def inner(self, mul: ti.f32):
            for i in self.x:
                ti.atomic_add(self.loss[None], self.x[i] * mul)

        @ti.ad.grad_replaced
        def forward(self, mul):
            self.inner(mul)
            self.inner(mul)

        @ti.ad.grad_for(forward)
        def backward(self, mul):
            self.inner.grad(mul)

    a = A()
    with ti.ad.Tape(a.loss):
        a.forward(4)
    assert a.x.grad.to_numpy().tolist() == [4, 4, 4]


def test_mistakes_with_grad_for():
    with pytest.raises(RuntimeError, match="grad_replaced"):
        @ti.ad.grad_for(lambda: None)
        def g():
            pass

    @ti.ad.grad_replaced
    def f():
        pass

    @ti.ad.grad_for(f)
    def first():
        pass

    with pytest.raises(RuntimeError, match="already"):
        @ti.ad.grad_for(f)
        def second():
            pass


def test_customized_between_kernels():
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    y = ti.field(ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def first():
        y[None] = x[None] * 3

    @ti.kernel
    def last():
        loss[None] = y[None] ** 2

    @ti.ad.grad_replaced
    def middle():
        y[None] = y[None] + 1

    @ti.ad.grad_for(middle)
    def middle_grad():
        y.grad[None] = 2 * y.grad[None]

    x[None] = 2
    with ti.ad.Tape(loss):
        first()
        middle()
        last()
    assert loss[None] == 49
    assert x.grad[None] == 2 * 7 * 2 * 3


def test_no_grad(square):
    x, loss, k = square

    @ti.ad.no_grad
    def hidden():
        k()

    with ti.ad.Tape(loss):
        k()
        hidden()
    assert x.grad.to_numpy().tolist() == [2, 4, 6, 8]

    @ti.ad.no_grad
    @ti.kernel
    def quiet():
        for i in x:
            loss[None] += x[i]

    with ti.ad.Tape(loss):
        quiet()
        k()
    assert x.grad.to_numpy().tolist() == [2, 4, 6, 8]


def test_stop_grad():
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            loss[None] += x[i]
        for i in x:
            ti.stop_grad(x)
            loss[None] += x[i] ** 2
        for i in x:
            loss[None] += 10 * x[i]

    with ti.ad.Tape(loss):
        k()
    assert x.grad.to_numpy().tolist() == [11, 11, 11]


def test_clear_all_gradients(square):
    x, loss, k = square
    x.grad.fill(1)
    x.grad[2] = 5
    loss.grad[None] = 3
    ti.ad.clear_all_gradients()
    assert x.grad.to_numpy().tolist() == [0] * 4 and loss.grad[None] == 0


def test_gradients_inside_of_kernels(square):
    x, loss, k = square

    @ti.kernel
    def descend():
        for i in x:
            x[i] -= 0.25 * x.grad[i]

    with ti.ad.Tape(loss):
        k()
    descend()
    assert x.to_numpy().tolist() == [0.5, 1, 1.5, 2]


def test_hessian_vector_products():
    x = ti.field(ti.f64, shape=3, needs_grad=True, needs_dual=True)
    f = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def rosenbrock():
        for i in range(2):
            a, b = 1.0 - x[i], x[i + 1] - x[i] * x[i]
            f[None] += a * a + 100.0 * b * b

    x.fill(1)
    x.dual.from_numpy(np.array([1.0, 0, -1]))
    f.grad[None] = 1
    ti.ad.hvp(rosenbrock)
    assert x.grad.dual.to_numpy().tolist() == [802, 0, -200]


def test_check_gradient_and_report(square):
    x, loss, k = square
    check = ti.ad.check_gradient(k)
    assert check and "k" in str(check)
    assert check.array == "`x`" and " of `x`\n" in str(check)
    assert "k" in ti.ad.report(k)


def test_grad_check():
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    y = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        y[None] = ti.sin(x[None]) * x[None]

    x[None] = 0.7
    with ti.ad.Tape(loss=y, grad_check=[x]):
        k()
    assert x.grad[None] == pytest.approx(np.cos(0.7) * 0.7 + np.sin(0.7))


def test_validation_finds_what_is_overwritten():
    ti.init(arch=ti.cpu, debug=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    b = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def bad():
        loss[None] = loss[None] * b[None]
        b[None] += 100

    @ti.kernel
    def good():
        loss[None] += b[None]

    b[None] = 10
    with pytest.raises(ti.QuadrantsAssertionError, match="global data access rule"):
        with ti.ad.Tape(loss, validation=True):
            bad()
    with ti.ad.Tape(loss, validation=True):
        good()
    ti.lang.runtime.runtime().config.debug = False
    with pytest.warns(UserWarning, match=r"autodiff valid check will not work. Please specify `ti.init\(debug=True\)`"):
        with ti.ad.Tape(loss, validation=True):
            good()


def test_missing_gradients_are_named():
    x = ti.field(ti.f32, shape=3)
    with pytest.raises(RuntimeError, match="needs_grad"):
        x.grad[0]
    with pytest.raises(RuntimeError, match="needs_grad"):
        ti.field(ti.i32, shape=3, needs_grad=True)
    with pytest.raises(RuntimeError, match="needs_grad"):
        ti.ndarray(ti.i32, shape=3, needs_grad=True)
    with pytest.raises(TypeError, match="not supported for ndarray with `needs_grad=True`"):
        ti.tensor(ti.i32, shape=3, needs_grad=True)


def test_a_gradient_of_nothing_is_a_warning():
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def k(a: ti.f32):
        for i in x:
            x[i] += a

    for _ in range(2):
        with pytest.warns(UserWarning, match="kernel `k` .*no argument has a gradient; make the arrays .*`needs_grad=True`") as found:
            k.grad(1)
        assert found[0].filename == __file__
        k(1)    # from now on arguments are known
    assert x.to_numpy().tolist() == [2, 2, 2]
    with pytest.raises(ti.MissingGradient):
        k.grad(1, scalars=True)


def test_an_overwrite_by_one_kernel_is_refused_by_hand():
    x = ti.field(ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            for j in range(3):
                x[i] = x[i] * x[i]

    k()
    with pytest.raises(ti.CannotReplay, match="test_ad_api.py"):
        k.grad()


def test_gradients_of_kernels_that_were_never_launched_start_from_what_arrays_hold():
    x = ti.field(ti.f64, shape=3, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            for _ in range(3):
                x[i] = x[i] * x[i]

    for start in (1.5, 1.25):
        x.fill(start)
        x.grad.fill(1)
        k.grad()
        np.testing.assert_allclose(x.grad.to_numpy(), 8 * start**7)
    k()
    with pytest.raises(ti.CannotReplay):
        k.grad()


def test_refusals_have_the_words_of_quadrants():
    x, y = (ti.field(ti.f32, shape=4, needs_grad=True) for _ in range(2))

    @ti.kernel
    def adds_gradients():
        for i in x:
            y[i] += x.grad[i]

    @ti.kernel
    def reads_neighbours():
        for i in range(1, 4):
            x[i] = x[i - 1] * 2

    for kernel, words in ((adds_gradients, "Cannot automatically differentiate through a grad tensor"),
                          (reads_neighbours, "Cross-iteration read-after-write")):
        kernel()
        with pytest.raises(ti.QuadrantsCompilationError, match=words):
            kernel.grad()


def test_missing_gradients_have_the_words_of_quadrants():
    x, y = ti.field(ti.f32, shape=()), ti.ndarray(ti.f32, shape=1)

    @ti.kernel
    def k(x: ti.template()):
        print(x.grad[None])

    with pytest.raises(ti.QuadrantsCompilationError, match="Gradient x.grad has not been placed, check whether `needs_grad=True`"):
        k(x)
    for loss, what in ((x, "use qd.field(..., needs_grad=True) for all fields"), (y, "set needs_grad=True for all ndarrays")):
        with pytest.raises(RuntimeError) as error:
            ti.ad.Tape(loss)
        assert f"please {what} that are required by autodiff" in str(error.value)


def test_ad_stack_size_is_a_cap_that_raises():
    ti.init(arch=ti.cpu, ad_stack_size=32)
    x = ti.field(ti.f32, shape=4, needs_grad=True)
    y = ti.field(ti.f32, shape=4, needs_grad=True)

    @ti.kernel
    def k(n: ti.i32, m: ti.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                for _ in range(m):
                    v = ti.sin(v)
            y[i] = v

    for n, m, fits in ((30, 1, True), (100, 1, False), (6, 6, False), (5, 5, True), (1, 200, False), (2, 2, True)):
        k(n, m)
        if fits:
            k.grad(n, m)
        else:
            with pytest.raises(ti.QuadrantsAssertionError, match=r"[Oo]verflow.*\d+ iterations"):
                k.grad(n, m)


def test_ad_stack_size_is_about_values_that_loops_carry():
    ti.init(arch=ti.cpu, ad_stack_size=16)
    x = ti.field(ti.f32, shape=4, needs_grad=True)
    y = ti.field(ti.f32, shape=4, needs_grad=True)

    @ti.func
    def grow(v: ti.template(), n):
        for _ in range(n):
            v = ti.sin(v)

    @ti.kernel
    def k(n: ti.i32, m: ti.i32):
        for i in x:
            for j in range(n):
                v = x[i] * j
                for _ in range(m):
                    v = ti.sin(v)
                y[i] += v

    @ti.kernel
    def by_reference(n: ti.i32):
        for i in x:
            v = x[i]
            grow(v, n)
            y[i] += v

    for kernel, args, fits in ((k, (100, 16), True), (k, (1, 17), False), (k, (100, 0), True), (by_reference, (16,), True),
                               (by_reference, (17,), False)):
        kernel(*args)
        if fits:
            kernel.grad(*args)
        else:
            with pytest.raises(ti.QuadrantsAssertionError, match="that carries values takes 17 iterations"):
                kernel.grad(*args)


def test_loops_are_refused_where_the_user_switched_them_off():
    ti.init(arch=ti.cpu, ad_stack_experimental_enabled=False)
    x = ti.field(ti.f32, shape=4, needs_grad=True)

    @ti.kernel
    def k(n: ti.i32):
        for i in x:
            for _ in range(n):
                x[i] += 1

    k(3)
    with pytest.raises(ti.QuadrantsCompilationError, match="Cannot use non static range in Backwards mode"):
        k.grad(3)


def test_nested_launches_of_a_captured_lambda():
    """The style of the tests of Taichi."""
    def check(f, slope):
        x, y = ti.field(ti.f32), ti.field(ti.f32)
        ti.root.dense(ti.i, 1).place(x, x.grad, y, y.grad)

        @ti.kernel
        def func():
            for i in x:
                y[i] = f(x[i])

        y.grad[0] = 1
        x[0] = 0.234
        func()
        func.grad()
        assert y[0] == pytest.approx(f(0.234), rel=1e-5)
        assert x.grad[0] == pytest.approx(slope, rel=1e-4)

    check(lambda x: 0.4 * x * x - 3, 0.8 * 0.234)
    check(lambda x: (x - 3) * (x - 1), 2 * 0.234 - 4)
    check(lambda x: ti.tanh(x), 1 - np.tanh(0.234) ** 2)
    check(lambda x: 1.5 ** x, 1.5 ** 0.234 * np.log(1.5))


def test_validation_leaves_out_what_has_its_own_gradient():
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.f32, shape=(), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def bad():
        loss[None] = x[None] * 2
        x[None] += 1

    @ti.kernel
    def good():
        loss[None] += x[None]

    @ti.ad.grad_replaced
    def f():
        bad()

    @ti.ad.grad_for(f)
    def f_grad():
        pass

    NONE, VALIDATION = ti.ad.AutodiffMode.NONE, ti.ad.AutodiffMode.VALIDATION
    with ti.ad.Tape(loss, validation=True) as tape:
        f()
        good()
        assert tape.modes == [NONE, NONE] and tape.calls[1][0].autodiff_mode == VALIDATION
    assert tape.calls[1][0].autodiff_mode == NONE
    assert x.snode.ptr.has_adjoint_checkbit()
    assert not ti.field(ti.f32, shape=()).snode.ptr.has_adjoint_checkbit()
    assert x.grad.snode.ptr.get_snode_grad_type() == ti.types.enums.SNodeGradType.ADJOINT


@pytest.mark.parametrize("make", [lambda: ti.field(ti.f64, 3, needs_grad=True, needs_dual=True),
                                  lambda: ti.ndarray(ti.f64, 3, needs_grad=True, needs_dual=True)])
def test_copies_have_derivatives(make, double):
    x, y, loss = make(), make(), ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def squares(y: ti.template()):
        for i in y:
            loss[None] += y[i] ** 2

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    y.fill(7)
    with ti.ad.Tape(loss):
        y.copy_from(x)
        squares(y)
    assert loss[None] == 14 and x.grad.to_numpy().tolist() == [2, 4, 6]
    loss[None] = 0
    with ti.ad.FwdMode(loss, x, seed=[1, 0, 1]):
        y.copy_from(x)
        squares(y)
    assert loss.dual[None] == 8


def test_a_kernel_under_a_tape_may_clear_gradients():
    x, y = (ti.field(ti.f32, shape=3, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def clear():
        for i in y:
            y[i] = 0
            y.grad[i] = 0

    @ti.kernel
    def square():
        for i in x:
            y[i] += x[i] ** 2

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    x.fill(3)
    for _ in range(2):
        with ti.ad.Tape(loss):
            clear()
            square()
            total()
        assert loss[None] == 27 and x.grad.to_numpy().tolist() == [6, 6, 6]


def test_grad_check_of_ndarrays():
    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in a:
            b[i] += a[i] ** 2
            loss[None] += a[i] ** 3

    @ti.kernel
    def total(b: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in b:
            loss[None] += b[i] ** 2

    a, b = (ti.ndarray(ti.f64, 3, needs_grad=True) for _ in range(2))
    loss = ti.ndarray(ti.f64, (), needs_grad=True)
    a.from_numpy(np.array([0.5, 1, 2]))
    with ti.ad.Tape(loss, grad_check=[a]):
        k(a, b, loss)
        total(b, loss)
    assert a.grad.to_numpy() == pytest.approx(np.array([0.75 + 0.5, 3 + 4, 12 + 32]))
    assert b.to_numpy() == pytest.approx(np.array([0.25, 1, 4])) and loss[None] == pytest.approx(9.125 + 17.0625)


@pytest.mark.skipif(not ti.lang.runtime.shares_memory(), reason="views are of the memory of the host")
def test_views_of_fields_under_a_tape():
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    view = x.to_numpy(copy=False)

    @ti.kernel
    def cubes():
        for i in x:
            loss[None] += x[i] ** 3

    for value in (1, 2):
        view[:] = value
        with ti.ad.Tape(loss):
            cubes()
            view[:] = 7
        assert x.grad.to_numpy().tolist() == [3 * value**2] * 3 and view[0] == 7


def test_values_in_arrays_of_numpy_under_a_tape():
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.fill(2)

    @ti.kernel
    def squares(t: ti.types.ndarray()):
        for i in x:
            t[i] = x[i] ** 2

    @ti.kernel
    def total(t: ti.types.ndarray()):
        for I in ti.grouped(t):
            loss[None] += t[I]

    @ti.kernel
    def weighted(t: ti.types.ndarray()):
        for i in x:
            loss[None] += t[i] * x[i]

    t = np.zeros((2, 3))
    with pytest.raises(ti.MissingGradient), ti.ad.Tape(loss):
        squares(t[0])
        total(t[0])
    with pytest.raises(ti.CannotReplay, match="parts of the same memory"), ti.ad.Tape(loss):
        squares(t[0])
        total(t)
    with ti.ad.Tape(loss):
        squares(t[0])
        t[0] = 1
        weighted(t[0])
        t[0] *= 3
        weighted(t[0])
    assert x.grad.to_numpy().tolist() == [4, 4, 4]
