"""On GPUs, sizes of tapes that follow from memory are kept: whoever writes it, gradients are right."""

import os

import numpy as np
import pytest

import costate as qd

DEVICE = os.environ.get("COSTATE_DEVICE") or "cpu"
SIZE = 8


@qd.kernel
def circles(x: qd.types.ndarray(), n: qd.types.ndarray(), y: qd.types.ndarray()):
    v = x[0]
    qd.loop_config(serialize=True)
    for _ in range(n[0]):
        v = v + 0.62 + 0.1 * qd.sin(3.0 * v)
    for i in range(SIZE):
        y[i] = v * x[i]


@qd.kernel
def put(n: qd.types.ndarray(), count: qd.i32):
    for i in range(SIZE):
        n[i] = count


def expected(start, count):
    v, slope = start[0], 1.0
    for _ in range(count):
        v, slope = v + 0.62 + 0.1 * np.sin(3 * v), slope * (1 + 0.3 * np.cos(3 * v))
    gradient = np.full(SIZE, v)
    gradient[0] += slope * start.sum()
    return gradient


def full(count):
    return np.full(SIZE, count, np.int32)


def by_element(n, count):
    n[0] = count


def by_fill(n, count):
    n.fill(count)


def by_numpy(n, count):
    n.from_numpy(full(count))


def by_another_array(n, count):
    other = qd.ndarray(qd.i32, SIZE)
    other.from_numpy(full(count))
    n.copy_from(other)


def by_graph(n, count):
    qd.capture(lambda: put(n, count)).replay()


def by_tensor(n, count):
    torch = pytest.importorskip("torch")
    if DEVICE == "vulkan":
        pytest.skip("nobody else uses the memory of Vulkan")
    tensor = torch.from_dlpack(n)
    gradient(n)
    tensor[:] = count


def by_lost_tensor(n, count):
    by_tensor(n, count)
    gradient(n)


WAYS = [by_element, by_fill, by_numpy, by_another_array, put, by_graph, by_tensor, by_lost_tensor]
START = 0.2 + np.arange(SIZE) / 10


def gradient(n):
    x, y = (qd.ndarray(qd.f64, SIZE, needs_grad=True) for _ in range(2))
    x.from_numpy(START)
    y.grad.fill(1)
    circles(x, n, y)
    circles.grad(x, n, y)
    return x.grad.to_numpy()


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=getattr(qd, DEVICE), default_fp=qd.f64)


@pytest.mark.parametrize("write", WAYS)
def test_whoever_writes_the_counts(write):
    n = qd.ndarray(qd.i32, SIZE)
    for count in (1, 3000, 2, 20000):
        write(n, count)
        for _ in range(2):
            np.testing.assert_allclose(gradient(n), expected(START, count), rtol=1e-9)


def test_arrays_where_others_have_been():
    for count in (1, 3000, 2, 20000):
        n = qd.ndarray(qd.i32, SIZE)
        n.fill(count)
        np.testing.assert_allclose(gradient(n), expected(START, count), rtol=1e-9)
        del n


@pytest.mark.parametrize("first, then", [(20000, 1), (1, 20000)])
def test_recordings_put_counts_back(first, then):
    x, y, z = (qd.ndarray(qd.f64, SIZE, needs_grad=True) for _ in range(3))
    loss = qd.ndarray(qd.f64, (), needs_grad=True)
    n = qd.ndarray(qd.i32, SIZE)
    x.from_numpy(START)
    n.fill(first)

    @qd.kernel
    def add(y: qd.types.ndarray(), z: qd.types.ndarray(), loss: qd.types.ndarray()):
        for i in range(SIZE):
            loss[None] += y[i] + z[i]

    with qd.ad.Tape(loss):
        circles(x, n, y)
        put(n, then)
        circles(x, n, z)
        n[0] = 5
        add(y, z, loss)
    both = expected(START, first) + expected(START, then)
    np.testing.assert_allclose(x.grad.to_numpy(), both, rtol=1e-9)
    np.testing.assert_allclose(gradient(n), expected(START, 5), rtol=1e-9)
