"""Launches with arguments that were seen before bind nothing again, and give the same."""

import dataclasses
import threading

import numpy as np
import pytest

import costate as ti


@dataclasses.dataclass(frozen=True)
class State:
    x: ti.types.ndarray()
    y: ti.types.ndarray()


@pytest.fixture
def state(double):
    made = State(*[ti.ndarray(ti.f64, (3,), needs_grad=True) for _ in range(2)])
    made.x.from_numpy(np.array([1.0, 2.0, 3.0]))
    return made


@ti.kernel
def total(state: State, factor: ti.f64) -> ti.f64:
    result = 0.0
    for i in range(3):
        state.y[i] = factor * state.x[i]
        result += state.y[i]
    return result


@ti.kernel
def split(state: State, n: ti.i32) -> tuple[ti.i32, ti.types.vector(2, ti.f64)]:
    return n + 1, ti.Vector([state.x[n], state.x[n - 1]])


@ti.kernel
def squared(state: State):
    for i in range(3):
        state.x[i] = state.x[i] * state.x[i]


def test_results(state, bound):
    assert [total(state, 2.0), total(state, 3.0), total(state=state, factor=4.0), total(state, factor=5.0)] == [12, 18, 24, 30]
    state.x.fill(1)
    assert total(state, 2.0) == 6
    assert bound == ["total"]


def test_results_of_several_types(state, bound):
    for n in (1, 2):
        count, vector = split(state, n)
        assert (count, list(vector)) == (n + 1, [n + 1, n])
        assert type(count) is int
    assert bound == ["split"]


def test_gradients_of_the_initial_state(state, bound):
    squared(state)
    for _ in range(2):
        state.x.from_numpy(np.array([1.0, 2.0, 3.0]))
        state.x.grad.fill(1)
        squared.grad(state, initial_state=True)
        np.testing.assert_array_equal(state.x.grad.to_numpy(), [2, 4, 6])
        np.testing.assert_array_equal(state.x.to_numpy(), [1, 2, 3])
    assert bound == ["squared"]


def test_a_gradient_makes_them_known(state, bound):
    for _ in range(2):
        state.x.grad.fill(1)
        squared.grad(state=state, initial_state=True)
    squared(state)
    np.testing.assert_array_equal(state.x.to_numpy(), [1, 4, 9])
    assert bound == ["squared"]


def test_results_of_threads_are_their_own(state):
    found = {}
    others = [State(ti.ndarray(ti.f64, (3,)), ti.ndarray(ti.f64, (3,))) for _ in range(3)]
    for other in others:
        other.x.fill(1)

    def of(other, factor):
        found[factor] = {total(other, float(factor)) for _ in range(50)}
    threads = [threading.Thread(target=of, args=(other, k + 1)) for k, other in enumerate(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1: {3.0}, 2: {6.0}, 3: {9.0}}


def test_results_in_a_tape_keep_their_derivatives(state):
    loss = ti.field(ti.f64, (), needs_grad=True)
    total(state, 1.0)
    for _ in range(2):
        state.x.grad.fill(0)
        with ti.ad.Tape(loss):
            loss[None] = total(state, 2.0) + total(state, 3.0)
        np.testing.assert_array_equal(state.x.grad.to_numpy(), [5, 5, 5])
    assert total(state, 2.0) == 12


@dataclasses.dataclass(frozen=True)
class Mixed:
    state: State
    scale: ti.f64
    other: ti.types.ndarray()


@ti.kernel
def mixed(m: Mixed, more: ti.types.ndarray()) -> ti.f64:
    result = 0.0
    for i in range(3):
        result += m.state.x[i] * m.scale + m.other[i] + more[i]
    return result


def test_members_are_bound_once_and_share_what_is_compiled(state, monkeypatch):
    from costate.lang.launch.arguments import ArrayParameter
    names, before = [], ArrayParameter.bind

    def bind(self, *args):
        names.append(self.name)
        before(self, *args)
    monkeypatch.setattr(ArrayParameter, "bind", bind)
    for k in range(3):
        assert mixed(Mixed(state, 2.0, state.y), np.full(3, float(k))) == 12 + 3 * k
    assert names.count("m.state.x") == 1 and names.count("m.other") == 3
    other = State(ti.ndarray(ti.f64, (3,), needs_grad=True), state.y)
    assert mixed(Mixed(other, 2.0, state.y), np.zeros(3)) == 0
    assert len(mixed.cache) == 1


def test_members_of_numpy_are_read_at_each_launch(state):
    given = np.zeros(3)
    members = Mixed(State(given, state.y), 1.0, state.y)
    assert mixed(members, state.y) == 0
    given[:] = 1
    assert mixed(members, state.y) == 3


def test_members_of_other_types_are_compiled_again(state):
    narrow = State(ti.ndarray(ti.f32, (3,)), ti.ndarray(ti.f32, (3,)))
    for one in (state, narrow, state, narrow):
        mixed(Mixed(one, 1.0, one.y), np.zeros(3))
    assert len(mixed.cache) == 2


def test_members_end_with_init(state):
    mixed(Mixed(state, 1.0, state.y), np.zeros(3))
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    with pytest.raises(ti.QuadrantsRuntimeError, match="made before the last `init`"):
        mixed(Mixed(state, 1.0, state.y), np.zeros(3))
