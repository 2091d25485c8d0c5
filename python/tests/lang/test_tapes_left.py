"""Tapes whose `with` has no end, or a bad one, do not reach those that follow."""

import gc
import threading

import pytest

import costate as qd


@pytest.fixture
def parts():
    x = qd.field(qd.f32, shape=4, needs_grad=True)
    loss = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def total():
        for i in x:
            loss[None] += x[i] * x[i]
    x.fill(3)
    return x, loss, total


def check(x, loss, total):
    with qd.ad.Tape(loss):
        total()
    assert x.grad.to_numpy().tolist() == [6, 6, 6, 6]


def test_a_tape_that_is_dropped(parts):
    _, loss, total = parts
    for _ in range(3):
        tape = qd.ad.Tape(loss)
        tape.__enter__()
        total()
        del tape
        gc.collect()
        check(*parts)


def test_a_tape_that_is_held_until_init(parts):
    _, loss, total = parts
    tape = qd.ad.Tape(loss)
    tape.__enter__()
    total()
    qd.reset()
    qd.init(arch=qd.cpu)
    x = qd.field(qd.f32, shape=4, needs_grad=True)
    loss = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def again():
        for i in x:
            loss[None] += x[i] * x[i]
    x.fill(3)
    check(x, loss, again)
    assert not tape.recording


def test_a_tape_that_is_held_is_around_those_that_follow(parts):
    _, loss, _ = parts
    tape = qd.ad.Tape(loss)
    tape.__enter__()
    with pytest.raises(RuntimeError, match="inside of another"):
        qd.ad.Tape(loss).__enter__()
    tape.__exit__(ValueError, None, None)
    check(*parts)


def test_a_tape_that_cannot_begin(parts, monkeypatch):
    _, loss, _ = parts
    with monkeypatch.context() as patch:
        patch.setattr(qd.ad.Tape, "resume", lambda tape: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            qd.ad.Tape(loss).__enter__()
    check(*parts)


def test_forward_mode_that_is_dropped(parts):
    x = qd.field(qd.f32, shape=(), needs_dual=True)
    y = qd.field(qd.f32, shape=(), needs_dual=True)
    mode = qd.ad.FwdMode(loss=y, param=x)
    mode.__enter__()
    del mode
    gc.collect()
    check(*parts)


def test_a_generator_that_is_dropped(parts):
    _, loss, total = parts

    def steps():
        with qd.ad.Tape(loss):
            total()
            yield
    one = steps()
    next(one)
    del one
    gc.collect()
    check(*parts)


def run(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_tape_that_another_thread_leaves(parts):
    x, loss, total = parts
    tape = qd.ad.Tape(loss)
    tape.__enter__()
    total()
    run(lambda: tape.__exit__(None, None, None))
    assert x.grad.to_numpy().tolist() == [6, 6, 6, 6]
    total()
    assert len(tape.calls) == 1
    check(*parts)


def test_a_tape_that_is_left_inside_of_one_of_another_thread(parts):
    x, loss, total = parts
    y = qd.field(qd.f32, shape=(), needs_grad=True)
    other = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def square():
        other[None] += y[None] ** 2
    y[None] = 5
    tape = qd.ad.Tape(loss)
    run(lambda: (tape.__enter__(), total()))
    with qd.ad.Tape(other):
        tape.__exit__(None, None, None)
        square()
    assert y.grad[None] == 10
    assert x.grad.to_numpy().tolist() == [6, 6, 6, 6]


def test_forward_mode_that_another_thread_leaves(parts):
    x = qd.field(qd.f32, shape=(), needs_dual=True)
    mode = qd.ad.FwdMode(loss=qd.field(qd.f32, shape=(), needs_dual=True), param=x)
    mode.__enter__()
    run(lambda: mode.__exit__(None, None, None))
    check(*parts)
