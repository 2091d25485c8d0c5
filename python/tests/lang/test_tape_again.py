"""Launches under a Tape with arguments that were seen before."""

import math
import re
import threading

import costate as ti
import pytest
from costate import _core
from costate.lang.kernel import Kernel


@pytest.fixture
def looked_at(monkeypatch):
    """How often arguments were looked at."""
    count, real = [0], Kernel.specialise

    def specialise(self, args, *more, **options):
        count[0] += 1
        return real(self, args, *more, **options)
    monkeypatch.setattr(Kernel, "specialise", specialise)
    return count


def fields(*shapes):
    return [ti.field(ti.f64, shape=shape, needs_grad=True) for shape in shapes]


def sines(x, loss):
    """A kernel that takes sines in place, and one that adds them up."""
    @ti.kernel
    def step():
        for i in x:
            x[i] = ti.sin(x[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    return step, total


def test_are_looked_at_once(looked_at):
    u, w, loss = fields(4, 4, ())

    @ti.kernel
    def step(a: ti.template(), b: ti.template(), by: ti.f64):
        for i in a:
            b[i] = a[i] * a[i] * by

    @ti.kernel
    def total(a: ti.template()):
        for i in a:
            loss[None] += a[i]

    for _ in range(2):
        u.fill(1.1)
        looked_at[0] = 0
        with ti.ad.Tape(loss) as tape:
            for k in range(10):
                step(u, w, 0.9)
                step(w, u, 1 + k / 100)
            total(u)
        assert looked_at[0] <= 6
        assert len(tape.calls) == 21 and tape.calls[3] == (step, (w, u, 1.01))
        value, slope = 1.1, 1.0
        for k in range(10):
            for by in (0.9, 1 + k / 100):
                slope *= 2 * by * value
                value *= by * value
        assert u.to_numpy() == pytest.approx(value)
        assert u.grad.to_numpy() == pytest.approx(slope)


def test_of_a_class(looked_at):
    @ti.data_oriented
    class Decay:
        def __init__(self):
            self.x, self.loss = fields(3, ())

        @ti.kernel
        def step(self, by: ti.f64):
            for i in self.x:
                self.x[i] = self.x[i] * ti.sin(self.x[i]) * by

        @ti.kernel
        def total(self):
            for i in self.x:
                self.loss[None] += self.x[i]

    decay = Decay()
    decay.x.fill(0.7)
    with ti.ad.Tape(decay.loss) as tape:
        for _ in range(6):
            decay.step(1.5)
        decay.total()
    assert looked_at[0] <= 4
    assert all(args[0] is decay for _, args in tape.calls)
    value, slope = 0.7, 1.0
    for _ in range(6):
        slope *= 1.5 * (math.sin(value) + value * math.cos(value))
        value *= 1.5 * math.sin(value)
    assert decay.x.grad.to_numpy() == pytest.approx(slope)


def test_wrong_numbers_are_refused_as_at_first():
    x, loss = fields(3, ())

    @ti.kernel
    def step(by: ti.i32):
        for i in x:
            x[i] = x[i] * x[i] * by

    x.fill(1)
    with pytest.raises(Exception, match="Argument `by`"):
        with ti.ad.Tape(loss):
            step(2)
            step(2)
            step(1.5)


def test_a_field_that_another_thread_has_used_is_begun_with_again(looked_at):
    x, loss = fields(3, ())
    step, total = sines(x, loss)

    def use():
        x.grad.fill(5)
    x.fill(0.3)
    with ti.ad.Tape(loss):
        for _ in range(3):
            step()
        before = looked_at[0]
        step()
        assert looked_at[0] == before
        other = threading.Thread(target=use)
        other.start()
        other.join()
        step()
        assert looked_at[0] == before + 1
        total()
    value, slope = 0.3, 1.0
    for _ in range(5):
        slope *= math.cos(value)
        value = math.sin(value)
    assert x.grad.to_numpy() == pytest.approx(slope)


def test_a_check_of_gradients_knows_all_launches():
    x, loss = fields(2, ())
    step, total = sines(x, loss)

    x.fill(0.4)
    with ti.ad.Tape(loss, grad_check=[x]) as tape:
        for _ in range(4):
            step()
        total()
    assert len(tape.calls) == 5


def test_of_a_function_with_a_gradient_of_its_own(looked_at):
    x, loss = fields(3, ())

    @ti.kernel
    def step(by: ti.f64):
        for i in x:
            x[i] = x[i] * by

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    @ti.ad.grad_replaced
    def steps():
        for _ in range(10):
            step(0.5)

    @ti.ad.grad_for(steps)
    def steps_grad():
        x.grad.from_numpy(x.grad.to_numpy() * 0.5**10)

    x.fill(1)
    for _ in range(2):
        looked_at[0] = 0
        with ti.ad.Tape(loss) as tape:
            steps()
            total()
        assert looked_at[0] <= 3
        assert [function for function, _ in tape.calls] == [steps, total]
        assert x.grad.to_numpy() == pytest.approx(0.5**10)


def outcome(program):
    """What a program with tensors of PyTorch computes, or why not."""
    import torch
    u, w = (torch.full((3,), value, dtype=torch.float64, requires_grad=True) for value in (0.5, 0.7))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step(a: ti.types.ndarray(), b: ti.types.ndarray(), by: ti.f64):
        for i in a:
            b[i] = ti.sin(a[i]) * by

    @ti.kernel
    def total(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i]

    try:
        with torch.no_grad(), ti.ad.Tape(loss):
            program(step, u, w)
            total(u)
    except ti.QuadrantsRuntimeError as error:
        return re.sub(r"py:\d+", "", str(error))    # who counts is a place, too
    return u.tolist(), u.grad.tolist(), w.tolist()


def plain_steps(step, u, w):
    for k in range(4):
        step(u, w, 1.1)
        step(w, u, 1 + k / 10)


def torch_writes_between(step, u, w):
    for _ in range(3):
        step(u, w, 1.1)
        step(w, u, 0.9)
        w.mul_(2)


def torch_writes_what_is_needed(step, u, w):
    for _ in range(3):
        step(u, w, 1.1)
        step(w, u, 0.9)
        u.add_(1)


def gradients_are_put_anew(step, u, w):
    for _ in range(3):
        step(u, w, 1.1)
        step(w, u, 0.9)
        u.grad = None


@pytest.mark.parametrize("program", [plain_steps, torch_writes_between, torch_writes_what_is_needed,
                                     gradients_are_put_anew])
def test_of_tensors(program, looked_at, monkeypatch):
    pytest.importorskip("torch")
    count = looked_at[0]
    again = outcome(program)
    count = looked_at[0] - count
    monkeypatch.setattr("costate.ad.state.only_tape", lambda: None)
    before = looked_at[0]
    assert again == outcome(program)
    if program is plain_steps and _core.Device.best().name in ("cpu", "simt"):  # else they are copied
        assert count <= 6 < looked_at[0] - before
