"""Random programs of launches, host writes, replaced members and gradients of the user, against plain Python; more: python -m
steps."""

import threading

import pytest

import costate
from costate.lang import runtime
from steps.compare import compare, program, values_by_threads
from steps.world import Real

pytestmark = pytest.mark.slow


@pytest.fixture
def real():
    costate.init(default_fp=costate.f64)
    yield Real()
    costate.reset()


@pytest.fixture(params=[True, False], ids=["shared memory", "copies on the host"])
def memory(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(runtime, "shares_memory", lambda: False)


def check(real, seeds, how=compare):
    for seed in seeds:
        assert how(real, seed) == "", f"seed {seed}: {program(seed)[1]}"


def test_derivatives_are_those_of_plain_python(real):
    check(real, range(1, 251))


def test_the_same_where_the_host_has_copies_of_arrays(real, monkeypatch):
    monkeypatch.setattr(runtime, "shares_memory", lambda: False)
    check(real, range(1001, 1151))


def test_other_threads_write(real, memory):
    check(real, range(2001, 2061), lambda *args: compare(*args, threads=True))


def test_threads_share_the_steps(real, memory):
    check(real, range(3001, 3061), values_by_threads)


def test_threads_with_worlds_of_their_own(real, memory):
    errors = []

    def run(number):
        try:
            check(Real(), range(4001 + 40 * number, 4041 + 40 * number))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
