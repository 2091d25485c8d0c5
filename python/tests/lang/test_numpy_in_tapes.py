"""Arrays of NumPy that are arguments of several launches under a Tape, and that the host writes between them."""

import numpy as np
import pytest

import costate as ti


@pytest.fixture
def parts(double):
    x = ti.field(ti.f64, 4, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square(a: ti.types.ndarray()):
        for i in x:
            a[i] = x[i] * x[i]

    @ti.kernel
    def add(a: ti.types.ndarray()):
        for i in x:
            loss[None] += a[i] * a[i] * x[i]
    x.from_numpy(np.arange(1.0, 5.0))
    return x, loss, square, add


def test_constants_that_change(parts):
    x, loss, _, add = parts
    a = np.arange(4.0)
    with ti.ad.Tape(loss):
        add(a)
        a[1] = 5
        add(a)
        a[:] = 0
        add(a)
    assert x.grad.to_numpy().tolist() == [0, 26, 8, 18]


def test_an_element_leaves_the_others_as_a_launch_wrote_them(parts):
    x, loss, square, add = parts
    a = np.zeros(4)
    with pytest.raises(ti.errors.MissingGradient, match="`a` of kernel `add`"), ti.ad.Tape(loss):
        square(a)
        a[0] = 3
        add(a)


def test_all_elements_are_constants(parts):
    x, loss, square, add = parts
    a = np.zeros(4)
    with ti.ad.Tape(loss):
        square(a)
        a += 1
        add(a)
    assert x.grad.to_numpy().tolist() == (a * a).tolist()


def test_shapes(parts):
    x, loss, _, _ = parts

    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray(), m: ti.types.ndarray()):
        for i in range(1):
            loss[None] += a[()] * x[0] + b[1, 0] * x[1] + m[1, 0] * x[2]
            b[0, 0] = 9.0
    a, b, m = np.array(2.0), np.ones((2, 2)), np.ones((4, 2), np.float32)[::2]
    with ti.ad.Tape(loss):
        k(a, b, m)
        a[()], b[1, 0], m[1, 0] = 3, 5, 7
        k(a, b, m)
    assert x.grad.to_numpy().tolist() == [5, 6, 8, 0] and b.tolist() == [[9, 1], [5, 1]]
