"""Threads with fields, kernels and recordings: each gets what a program of its own would."""

import collections
import sys
import threading

import numpy as np
import pytest

import costate as ti

COUNT = 4


@pytest.fixture(autouse=True)
def shaken(double):
    """Threads alternate as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work, count=COUNT):
    """What `work(number)` returns in each of several threads that start at once."""
    results, failures, start = [None] * count, [], threading.Barrier(count)

    def call(number):
        try:
            start.wait()
            results[number] = work(number)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failures:
        raise failures[0]
    return results


@ti.kernel
def squares(x: ti.template(), y: ti.template(), c: ti.f64):
    for i in x:
        y[None] += c * x[i] * x[i]


@ti.kernel
def total(x: ti.template()) -> ti.f64:
    s = 0.0
    for i in x:
        s += x[i]
    return s


@ti.kernel
def squared_sum(x: ti.template(), y: ti.template()):
    s = 0.0
    for i in x:
        s += x[i]
    y[None] += s * s


@ti.kernel
def noise(x: ti.template(), y: ti.template(), drawn: ti.template()):
    for i in x:
        drawn[i] = ti.random(ti.f64)
        y[None] += drawn[i] * x[i]


def pair(n=20, **options):
    return ti.field(ti.f64, n, needs_grad=True, **options), ti.field(ti.f64, (), needs_grad=True, **options)


def filled(x, start):
    values = np.arange(start, start + x.shape[0], dtype=float)
    x.from_numpy(values)
    return values


@pytest.mark.parametrize("made_here", [False, True])
def test_tapes(made_here):
    given = [pair() for _ in range(COUNT)]

    def work(number):
        x, y = pair() if made_here else given[number]
        values = filled(x, number)
        for _ in range(100):
            with ti.ad.Tape(y):
                squares(x, y, number + 1.0)
            assert (x.grad.to_numpy() == 2 * (number + 1) * values).all()
    together(work)


def test_tapes_with_kernels_of_their_own():
    def work(number):
        x, y = pair()

        @ti.kernel
        def weigh():
            for i in x:
                y[None] += x[i] * number
        for _ in range(50):
            with ti.ad.Tape(y):
                weigh()
            assert (x.grad.to_numpy() == number).all()
    together(work)


def test_a_tape_clears_what_another_thread_has_left():
    x, y = pair()
    x.fill(1)
    x.grad.fill(5)
    ended, goes_on = threading.Event(), threading.Event()

    def work():
        squares(x, y, 1)
        ended.set()
        goes_on.wait()
    thread = threading.Thread(target=work)
    thread.start()
    ended.wait()
    with ti.ad.Tape(y):
        squares(x, y, 1)
    goes_on.set()
    thread.join()
    assert (x.grad.to_numpy() == 2).all()
    unused, _ = pair()
    unused.grad.fill(5)
    with ti.ad.Tape(y):
        squares(x, y, 1)
    assert (unused.grad.to_numpy() == 0).all()


def test_forward_mode():
    given = [pair(needs_dual=True) for _ in range(COUNT)]

    def work(number):
        x, y = given[number]
        values = filled(x, number)
        for _ in range(50):
            with ti.ad.FwdMode(y, x, seed=[1.0] * x.shape[0]):
                squares(x, y, 1)
            assert y.dual[None] == 2 * values.sum()
    together(work)


def test_launches_are_recorded_by_the_thread_that_makes_them():
    x, y = pair()
    values = filled(x, 1)
    others = pair()
    with ti.ad.Tape(y):
        squares(x, y, 1)
        together(lambda number: squares(*others, 1) if number == 0 else None)
        together(lambda number: squares(*pair(), 1))
    assert (x.grad.to_numpy() == 2 * values).all()
    assert (others[0].grad.to_numpy() == 0).all()


def test_host_writes_in_tapes():
    def work(number):
        x, y = pair()
        values = filled(x, number)
        for _ in range(20):
            with ti.ad.Tape(y):
                squares(x, y, 1)
                x[3] = number
                squares(x, y, 2)
            expected = 6 * values
            expected[3] = 2 * values[3]
            assert (x.grad.to_numpy() == expected).all()
            x[3] = values[3]
    together(work)


def test_what_one_kernel_returns():
    given = [pair()[0] for _ in range(COUNT)]

    def work(number):
        values = filled(given[number], 10 * number)
        for _ in range(200):
            assert total(given[number]) == values.sum()
    together(work)


def test_one_kernel_with_one_array_in_all_threads():
    values = ti.ndarray(ti.f64, 20)
    values.from_numpy(np.arange(20.0))

    @ti.kernel
    def scaled(x: ti.types.ndarray(), c: ti.f64) -> ti.f64:
        s = 0.0
        for i in x:
            s += c * x[i]
        return s
    together(lambda number: [scaled(values, number) == 190 * number or pytest.fail() for _ in range(200)])


def test_variables_that_loops_share():
    given = [pair() for _ in range(COUNT)]

    def work(number):
        x, y = given[number]
        values = filled(x, number)
        for _ in range(50):
            y.fill(0)
            x.grad.fill(0)
            squared_sum(x, y)
            y.grad[None] = 1
            squared_sum.grad(x, y)
            assert y[None] == values.sum() ** 2 and (x.grad.to_numpy() == 2 * values.sum()).all()
    together(work)


def test_random_numbers_of_the_last_launch():
    given = [(*pair(), pair()[0]) for _ in range(COUNT)]

    def work(number):
        x, y, drawn = given[number]
        for _ in range(50):
            x.grad.fill(0)
            y.grad.fill(1)
            noise(x, y, drawn)
            noise.grad(x, y, drawn)
            assert (x.grad.to_numpy() == drawn.to_numpy()).all()
    together(work)


def test_first_use_makes_one_device():
    @ti.kernel
    def copy(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] + 1
    for _ in range(20):
        ti.init(arch=ti.cpu)
        made = together(lambda number: ti.ndarray(ti.f32, 5))
        for x, y in zip(made, made[1:]):
            copy(x, y)
        assert made[-1][0] == COUNT - 1


def test_first_use_of_one_field():
    for _ in range(20):
        x = ti.field(ti.f64, 10, needs_grad=True)
        arrays = together(lambda number: (x.core(), x.grad.core(), x.grad))
        assert len({id(one) for one, _, _ in arrays}) == len({id(one) for _, one, _ in arrays}) == 1
        assert len({id(one) for _, _, one in arrays}) == 1


def test_one_kernel_is_compiled_once():
    x, y = pair()
    x.fill(1)

    @ti.kernel
    def count():
        for i in x:
            y[None] += x[i]
    together(lambda number: count())
    assert len(count.cache) == 1 and y[None] == COUNT * 20


def test_fields_are_made_while_tapes_begin():
    x, y = pair()
    ends = threading.Event()

    def work(number):
        if number == 0:
            for _ in range(100):
                with ti.ad.Tape(y):
                    squares(x, y, 1)
            ends.set()
        while not ends.is_set():
            ti.field(ti.f64, 1, needs_grad=True)
    together(work)


def test_init_while_others_work():
    ends, wrong, named = threading.Event(), [], collections.Counter()

    def work(number):
        if number == 0:
            for _ in range(10):
                ends.wait(0.1)
                ti.init(arch=ti.cpu, default_fp=ti.f64)
            ends.set()
        while not ends.is_set():
            try:
                x, y = pair()
                values = filled(x, number)
                with ti.ad.Tape(y):
                    squares(x, y, 1)
                if (x.grad.to_numpy() != 2 * values).any() or total(x) != values.sum():
                    wrong.append(number)
            except ti.errors.QuadrantsRuntimeError as error:
                named[str(error)] += 1
    together(work)
    assert not wrong
    assert all("was made before the last `init` or `reset`" in text for text in named), named


def test_arrays_of_before():
    x, y = ti.field(ti.f32, 3, needs_grad=True), ti.ndarray(ti.f32, 3)
    x.grad.fill(1)
    ti.init(arch=ti.cpu)
    for use in (x.to_numpy, y.to_numpy, lambda: total(x), lambda: x.grad[0], lambda: y.fill(1)):
        with pytest.raises(ti.errors.QuadrantsRuntimeError, match="made before the last `init` or `reset`; make it again"):
            use()
