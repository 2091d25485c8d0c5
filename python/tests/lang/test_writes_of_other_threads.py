"""Host writes that wait for a launch, where the host has copies of arrays, as for a GPU."""

import threading
import time

import numpy as np
import pytest

import costate as ti
from costate.lang import runtime, storage


@pytest.fixture(autouse=True)
def copies(monkeypatch):
    ti.init(default_fp=ti.f64)
    monkeypatch.setattr(runtime, "shares_memory", lambda: False)
    yield
    ti.reset()


def in_thread(function):
    errors = []

    def run():
        try:
            function()
        except Exception as error:  # noqa: BLE001
            errors.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert errors == []


def scalars(count):
    return [ti.field(ti.f64, (), needs_grad=True) for _ in range(count)]


def customs(x, y, inside=None, backwards=None):
    """y += 3 x, with a gradient of its own; what else happens in both."""
    @ti.kernel
    def triple():
        y[None] += 3 * x[None]

    @ti.kernel
    def pull():
        x.grad[None] += 3 * y.grad[None]

    @ti.ad.grad_replaced
    def function():
        if inside:
            in_thread(inside)
        triple()

    @ti.ad.grad_for(function)
    def gradient():
        if backwards:
            in_thread(backwards)
        pull()
    return function


@pytest.mark.parametrize("where", ["before", "inside", "backwards"])
def test_writes_of_another_thread_are_no_part_of_a_custom_gradient(where):
    x, y, other = scalars(3)
    x[None] = 2

    def write():
        other[None] = 7
        other.grad[None] = 5
    function = customs(x, y, write if where == "inside" else None, write if where == "backwards" else None)
    with ti.ad.Tape(y):
        if where == "before":
            in_thread(write)
        function()
        ti.sync()
    assert x.grad[None] == 3 and y[None] == 6
    assert other.to_numpy() == 7 and other[None] == 7
    assert other.grad.to_numpy() == 5


def test_what_a_gradient_writes_waits_for_no_other_thread():
    x, y = scalars(2)
    x[None] = 2
    mine, his = ti.field(ti.f64, ()), ti.field(ti.f64, ())

    @ti.kernel
    def k():
        mine[None] += his[None]

    @ti.ad.grad_replaced
    def function():
        y.copy_from(x)

    @ti.ad.grad_for(function)
    def gradient():
        x[None] = 100
        x.grad[None] += 4 * y.grad[None]
        in_thread(k)
    with ti.ad.Tape(y):
        function()
    assert x.grad[None] == 4 and x[None] == 2


def test_what_a_function_writes_is_its_own():
    """Also if another thread launches before it ends."""
    x, y = scalars(2)
    x[None] = 2
    mine = ti.field(ti.f64, ())

    @ti.kernel
    def k():
        mine[None] += 1

    @ti.kernel
    def add():
        y[None] += x[None] ** 2

    @ti.ad.grad_replaced
    def function():
        x[None] = 5
        in_thread(k)

    @ti.ad.grad_for(function)
    def gradient():
        x.grad.fill(0)
    with ti.ad.Tape(y):
        add()
        function()
        add()
    assert y[None] == 29 and x.grad[None] == 4


@pytest.mark.parametrize("then", ["read", "from_numpy"])
def test_threads_wait_for_a_write_that_another_one_brings(monkeypatch, then):
    x, other = ti.field(ti.f64, 2), ti.field(ti.f64, ())
    x.fill(0)
    bring = storage.Storage._flush
    begun = threading.Event()

    def slow(self):
        if self is x:
            begun.set()
            time.sleep(0.2)
        bring(self)
    monkeypatch.setattr(storage.Storage, "_flush", slow)

    @ti.kernel
    def k():
        other[None] += 1

    x[0] = 5
    thread = threading.Thread(target=k)
    thread.start()
    begun.wait()
    if then == "read":
        assert x.to_numpy().tolist() == [5, 0]
    else:
        x.from_numpy(np.array([1.0, 2.0]))
    thread.join()
    assert x.to_numpy().tolist() == ([5, 0] if then == "read" else [1, 2])
