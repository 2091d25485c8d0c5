"""Launches in which only tensors of PyTorch and numbers are others than before bind these alone, and give the same."""

import dataclasses
import os
import typing

import numpy as np
import pytest

import costate as ti

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def in_place():
    """Tensors whose memory the device uses."""
    torch.set_default_device("cuda" if os.environ.get("COSTATE_DEVICE") == "cuda" else "cpu")
    yield
    torch.set_default_device(None)


in_place_only = pytest.mark.skipif(os.environ.get("COSTATE_DEVICE") == "vulkan", reason="Vulkan copies tensors")


@dataclasses.dataclass(frozen=True)
class State:
    x: ti.types.ndarray()


@ti.kernel
def scaled(to: ti.types.ndarray(), state: State, factor: ti.f64) -> ti.f64:
    result = 0.0
    for i in range(to.shape[0]):
        to[i] = factor * state.x[i]
        result += to[i]
    return result


@ti.kernel
def moved(to: ti.types.ndarray(), source: ti.types.ndarray(), state: State):
    for i in range(3):
        to[i] += source[i] * state.x[i]


@pytest.fixture
def state(double):
    made = State(ti.ndarray(ti.f64, (3,)))
    made.x.from_numpy(np.array([1.0, 2.0, 3.0]))
    return made


def zeros(**options):
    return torch.zeros(3, dtype=torch.float64, **options)


@in_place_only
def test_new_tensors_and_numbers(state, bound):
    made = [zeros() for _ in range(4)]
    assert [scaled(to, state, 1.0 + k) for k, to in enumerate(made)] == [6, 12, 18, 24]
    assert [to.tolist() for to in made] == [[k, 2.0 * k, 3.0 * k] for k in (1, 2, 3, 4)]
    state.x.fill(1)
    assert scaled(zeros(), state, 2.0) == 6 and len(bound) == 1


@in_place_only
def test_a_tensor_that_comes_back_is_known(state, bound):
    first, second = zeros(), zeros()
    for _ in range(4):
        scaled(first, state, 1.0)
        scaled(second, state, 1.0)
    assert len(bound) == 2


def test_tensors_of_other_types_are_compiled_again(state):
    scaled(zeros(), state, 1.0)
    halves = torch.zeros(3, dtype=torch.float32)
    assert scaled(halves, state, 0.5) == 3 and halves.tolist() == [0.5, 1.0, 1.5]
    two = torch.zeros(2, dtype=torch.float64)
    assert scaled(two, state, 1.0) == 3 and two.tolist() == [1, 2]


def test_the_same_tensor_twice(state):
    moved(zeros(), zeros(), state)
    both = torch.ones(3, dtype=torch.float64)
    moved(both, both, state)
    assert both.tolist() == [2, 3, 4]


def test_pytorch_knows_what_was_written(state):
    scaled(zeros(), state, 1.0)
    written = zeros()
    version = written._version
    scaled(written, state, 1.0)
    assert written._version > version


def test_errors_name_the_argument(state):
    scaled(zeros(), state, 1.0)
    with pytest.raises(ti.Error, match="not contiguous"):
        scaled(torch.zeros(6, dtype=torch.float64)[::2], state, 1.0)
    with pytest.raises(Exception, match="kernel `scaled`.*`factor`"):
        scaled(zeros(), state, "1")


def test_tensors_over_common_memory_are_refused(state):
    moved(zeros(), zeros(), state)
    memory = torch.ones(5, dtype=torch.float64)
    with pytest.raises(ti.Error, match="memory"):
        moved(memory[:3], memory[1:4], state)


@in_place_only
def test_they_end_with_the_other_arguments(state, bound):
    scaled(zeros(), state, 1.0)
    for k in (2.0, 3.0):
        other = State(ti.ndarray(ti.f64, (3,)))
        other.x.fill(k)
        assert scaled(zeros(), other, 1.0) == 3 * k
        assert scaled(zeros(), other, 1.0) == 3 * k
    assert len(bound) == 3


def test_gradients_in_a_tape_of_new_tensors(state):
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def squares(x: ti.types.ndarray(), state: State):
        for i in range(3):
            loss[None] += state.x[i] * x[i] ** 2

    squares(zeros(), state)
    squares(zeros(requires_grad=True), state)
    for k in (1.0, 2.0):
        x = torch.full((3,), k, dtype=torch.float64, requires_grad=True)
        with ti.ad.Tape(loss):
            squares(x, state)
        assert x.grad.tolist() == [2 * k, 4 * k, 6 * k]
        squares(zeros(requires_grad=True), state)


triple, mutable = ti.types.vector(3, ti.f64), ti.types.struct(a=ti.f64)


@dataclasses.dataclass(frozen=True)
class Factor:
    x: ti.types.ndarray()
    by: ti.f64


@ti.kernel
def first_of(to: ti.types.ndarray(), v: triple):
    for i in to:
        to[i] = v[0]


@ti.kernel
def member_of(to: ti.types.ndarray(), s: mutable):
    for i in to:
        to[i] = s.a


@ti.kernel
def factor_of(to: ti.types.ndarray(), f: Factor):
    for i in to:
        to[i] = f.by


@ti.kernel
def given_or_0(to: ti.types.ndarray(), v: typing.Optional[ti.f64]):
    for i in to:
        to[i] = 0.0 if ti.static(v is None) else v


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("kernel, made", [
    (first_of, lambda: np.zeros(3)), (first_of, lambda: torch.zeros(3, dtype=torch.float64)), (first_of, lambda: [0.0] * 3),
    (member_of, lambda: mutable(a=0.0)), (factor_of, lambda: Factor(torch.ones(2, dtype=torch.float64), np.zeros(()))),
    (factor_of, lambda: Factor(torch.ones(2, dtype=torch.float64), torch.zeros((), dtype=torch.float64)))])
def test_numbers_of_objects_that_change(kernel, made, is_new):
    """They are those of this launch, also if the object is that of an earlier one."""
    given, to = made(), torch.zeros(2, dtype=torch.float64)
    for value in (1.0, 2.0, 3.0, 4.0):
        if kernel is first_of:
            given[0] = value
        elif kernel is member_of:
            given.a = value
        else:
            given.by[...] = value
        if is_new:
            to = torch.zeros(2, dtype=torch.float64)
        kernel(to, given)
        assert to.tolist() == [value, value]


def test_other_vectors_of_the_same_type():
    for v in [torch.full((3,), q, dtype=torch.float64) for q in (1.0, 2.0, 3.0)]:
        to = torch.zeros(2, dtype=torch.float64)
        first_of(to, v)
        assert to.tolist() == [v[0], v[0]]


def test_numbers_that_may_be_left_out():
    to = torch.zeros(2, dtype=torch.float64)
    for value in [float(k) for k in range(50)] + [None]:
        given_or_0(to, None if value is None else value + 0.5)
        assert to.tolist() == 2 * [0 if value is None else value + 0.5]


def test_recorded_vectors_that_change():
    loss, x = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(2))

    @ti.kernel
    def add(v: triple):
        loss[None] += x[None] * x[None] * v[0]

    x[None], v = 1, np.array([1.0, 0, 0])
    with ti.ad.Tape(loss):
        for _ in range(4):
            add(v)
            v *= 2
    assert (loss[None], x.grad[None]) == (15, 30)


@pytest.mark.parametrize("where", [None, "cpu"])
def test_tensors_whose_dtype_changes(where):
    @ti.kernel
    def set_to_2(to: ti.types.ndarray()) -> ti.i32:
        first = ti.cast(to[0], ti.i32)
        for i in to:
            to[i] = 2
        return first

    to = torch.zeros(3, device=where)
    set_to_2(to)
    to.data = to.data.view(torch.int32)
    for first in (1 << 30, 2):
        assert set_to_2(to) == first and to.tolist() == [2, 2, 2]