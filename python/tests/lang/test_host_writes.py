"""What the host writes is a constant to derivatives: the elements that it writes, and no others."""

import gc

import numpy as np
import pytest

import costate as ti
from costate.lang import runtime


@pytest.fixture(params=["shared", "apart"])
def memory(request, monkeypatch, double):
    """Also as on a device with memory of its own, where the host writes into a copy."""
    if request.param == "apart":
        monkeypatch.setattr(runtime, "shares_memory", lambda: False)
    return request.param


@pytest.fixture
def squares(memory):
    x, y = (ti.field(ti.f64, 3, needs_grad=True, needs_dual=True) for _ in range(2))
    v = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def add():
        for i in y:
            loss[None] += y[i]
        for i in v:
            loss[None] += v[i].dot(v[i])

    x.from_numpy(np.array([1.0, 2, 3]))
    v.fill(1)
    return x, y, v, loss, square, add


def test_elements_before_between_and_after_launches(squares):
    x, y, _, loss, square, add = squares
    with ti.ad.Tape(loss):
        x[0] = 7
        square()
        y[1] = 5
        assert y[0] == 49
        add()
        x[2] = 100
    assert x.grad.to_numpy().tolist() == [0, 0, 6]
    with ti.ad.Tape(loss):
        square()
        add()
        loss[None] = 3
    assert x.grad.to_numpy().tolist() == [0, 0, 0]


def test_augmented_writes_in_a_loop(squares):
    x, _, _, loss, square, add = squares
    with ti.ad.Tape(loss):
        for _ in range(3):
            x[0] += 1
            square()
            add()
    assert x[0] == 4
    assert x.grad.to_numpy().tolist() == [18, 12, 18]     # of x[0], which the host has read and added to


def test_components(squares):
    _, _, v, loss, _, add = squares
    with ti.ad.Tape(loss):
        v[0][1] = 5
        v[-1].x = 4
        add()
    assert loss[None] == 1 + 25 + 16 + 1
    assert v.grad.to_numpy().tolist() == [[2, 0], [0, 2]]


def test_a_component_leaves_the_others_as_they_are(memory):
    v = ti.Vector.field(3, ti.f64, shape=1)
    element = v[0]
    v.fill(7)
    element[1] = 2
    element.xz = [5, 6]
    assert v.to_numpy().tolist() == [[5, 2, 6]]


def test_members_of_structs(memory):
    s = ti.types.struct(p=ti.f64, q=ti.types.vector(2, ti.f64)).field(shape=2, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def add():
        for i in s:
            loss[None] += s[i].p * s[i].q.sum()

    s.p.fill(2)
    s.q.fill(3)
    with ti.ad.Tape(loss):
        s[0].q[1] = 10
        s[1].p = 5
        add()
    assert s.p.grad.to_numpy().tolist() == [13, 0]
    assert s.q.grad.to_numpy().tolist() == [[2, 0], [5, 5]]


def test_sparse_fields(memory):
    x, loss = ti.field(ti.f64), ti.field(ti.f64, (), needs_grad=True)
    ti.root.pointer(ti.i, 2).dense(ti.i, 2).place(x, x.grad)

    @ti.kernel
    def add():
        for i in x:
            loss[None] += x[i] * x[i]

    x[0], x[1] = 3, 4
    with ti.ad.Tape(loss):
        x[-4] = 5
        add()
        ti.deactivate_all_snodes()
        add()
    assert x.grad.to_numpy().tolist() == [0, 8, 0, 0]


@pytest.mark.parametrize("write", ["element", "fill", "from_numpy", "component"])
def test_forward_mode_takes_them_for_constants(squares, write):
    x, y, v, loss, square, add = squares
    with ti.ad.FwdMode(loss=loss, param=[x, v], seed=[1] * 7):
        square()
        if write == "element":
            y[0] = 1
        elif write == "fill":
            y.fill(1)
        elif write == "from_numpy":
            y.from_numpy(np.ones(3))
        else:
            v[0].y = 2
        add()
    assert loss.dual[None] == {"element": 10, "component": 12 + 6}.get(write, 0) + 8 * (write != "component")


def test_tangents_of_the_user_stay(squares):
    x, y, _, loss, square, add = squares
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1]):
        square()
        y[0] = 1
        y.dual[0] = 50
        add()
    assert loss.dual[None] == 50 + 4 + 6


def test_each_costs_as_much_as_it_writes(memory):
    n = 2000
    x, loss = ti.field(ti.f64, n, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def add():
        for i in x:
            loss[None] += x[i] * x[i]

    x.fill(1)
    with ti.ad.Tape(loss) as tape:
        add()
        for i in range(0, n, 2):
            x[i] = i
        assert len(tape.core) == 1 + n // 2
        assert tape.core.report().bytes == 8 * n // 2
        add()
    assert x.grad.to_numpy().tolist() == [2, 4] * (n // 2)


def test_pointers_are_refused(squares):
    x, _, _, loss, square, add = squares
    if not runtime.shares_memory():
        pytest.skip("there are none")
    with ti.ad.Tape(loss):
        square()
        with pytest.raises(ti.errors.BadArgument, match="through a pointer; use `x.i. = v`, `fill` or `from_numpy`"):
            x.to_numpy(copy=False)
        add()
    view = x.to_numpy(copy=False)
    with pytest.raises(ti.errors.CannotReplay, match="`x` of kernel `square`.*written outside of the recording"):
        with ti.ad.Tape(loss):
            square()
            view[0] = 5
            square()
            add()


NOBODY = "no launch inside of the `with` writes the loss of the `Tape`, so all gradients are 0"


@pytest.mark.parametrize("options", [{}, {"clear_gradients": False}])
def test_a_loss_that_no_launch_writes(squares, options):
    x, y, _, loss, square, add = squares

    @ti.kernel
    def look():
        for i in y:
            y[i] += loss[None]

    @ti.ad.no_grad
    def hidden():
        square()
        add()

    def host():
        square()
        loss[None] = y[0]

    with ti.ad.Tape(loss, **options):
        host()
    assert x.grad.to_numpy().tolist() == [2, 0, 0]
    for body in (square, look, hidden, lambda: loss.fill(1), lambda: None):
        x.grad.fill(0)
        with pytest.warns(UserWarning, match=NOBODY):
            with ti.ad.Tape(loss, **options):
                body()
        assert x.grad.to_numpy().tolist() == [0, 0, 0] and loss.grad[None] == 1
    with pytest.raises(ZeroDivisionError):
        with ti.ad.Tape(loss, **options):
            1 / 0


def test_tapes_that_are_never_left_end_with_their_object(squares):
    x, _, _, loss, square, add = squares

    def run():
        with ti.ad.Tape(loss):
            square()
            add()
        assert x.grad.to_numpy().tolist() == [2, 4, 6]

    ti.ad.Tape(loss).__enter__()
    run()
    ti.ad.FwdMode(loss, x, [1, 1, 1]).__enter__()
    run()

    def halves():
        with ti.ad.Tape(loss):
            square()
            yield

    half = halves()
    next(half)
    del half
    gc.collect()
    run()


def test_init_ends_a_recording_that_is_left_open():
    loss = ti.field(ti.f32, (), needs_grad=True)
    tape = ti.ad.Tape(loss)
    tape.__enter__()
    ti.init(arch=ti.cpu)
    loss, x = (ti.field(ti.f32, (), needs_grad=True) for _ in range(2))

    @ti.kernel
    def k():
        loss[None] += 2 * x[None]

    with ti.ad.Tape(loss):
        k()
    assert x.grad[None] == 2
