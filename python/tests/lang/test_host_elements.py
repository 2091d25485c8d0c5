"""Single elements of large arrays, where kernels run in other memory than the host's: what they copy."""

import numpy as np
import pytest

import costate as qd
from costate.lang.base import runtime

KINDS = {"numbers": lambda: qd.field(qd.f32, (300, 300)), "vectors": lambda: qd.Vector.ndarray(3, qd.f64, (200, 200)),
         "matrices": lambda: qd.Matrix.field(2, 2, qd.i32, (200, 200))}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    qd.init(arch=qd.cpu)
    monkeypatch.setattr(runtime, "shares_memory", lambda: False)


def moved(call):
    """What `call` returns, and how many copies come from the device and go there."""
    before = qd.statistics()
    result = call()
    after = qd.statistics()
    return result, after.downloads - before.downloads, after.uploads - before.uploads


def element(x, index):
    return np.asarray(x[index].to_numpy() if x.element_shape else x[index])


@pytest.mark.parametrize("kind", KINDS)
def test_an_element_is_read_alone(kind):
    x = KINDS[kind]()
    numbers = np.arange(x.to_numpy().size).reshape(x.to_numpy().shape).astype(x.dtype.np)
    x.from_numpy(numbers)
    for index in [(7, 11), (-1, 3)]:
        value, down, up = moved(lambda: element(x, index))
        assert np.array_equal(value, numbers[index]) and (down, up) == (1, 0)
    assert x._host is None  # no copy of all


@pytest.mark.parametrize("kind", KINDS)
def test_an_element_is_written_alone(kind):
    x = KINDS[kind]()
    _, down, up = moved(lambda: x.__setitem__((7, -1), 5))
    assert (down, up) == (0, 1) and x._host is None
    expected = np.zeros(x.to_numpy().shape, x.dtype.np)
    expected[7, -1] = 5
    assert np.array_equal(x.to_numpy(), expected)


def test_many_elements_take_few_copies():
    x = qd.field(qd.f32, 90_000)

    @qd.kernel
    def double():
        for i in x:
            x[i] *= 2

    def use():
        for i in range(1000):
            x[i] = i
        double()
        return [x[i] for i in range(1000)]

    values, down, up = moved(use)
    assert values == [2.0 * i for i in range(1000)]
    assert down < 20 and up < 20


def test_reads_and_writes_see_each_other():
    x = qd.field(qd.f64, 50_000)

    @qd.kernel
    def add():
        for i in x:
            x[i] += 1

    for round in range(30):
        x[round] = x[round + 1] + 3
        if round % 3 == 0:
            add()
        assert x[round] == x.to_numpy()[round]
    assert np.isclose(x.to_numpy().sum(), sum(x[i] for i in range(50_000)))


@pytest.mark.filterwarnings("ignore:the gradient of a field is 0 because the host")
def test_a_tape_sees_elements():
    x, loss = qd.field(qd.f64, 20_000, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)

    @qd.kernel
    def add():
        for i in x:
            loss[None] += x[i] * x[i]

    x.fill(1)
    with qd.ad.Tape(loss):
        x[5] = 7
        add()
    assert loss[None] == 20_000 - 1 + 49
    assert x.grad[4] == 2 and x.grad[5] == 0
