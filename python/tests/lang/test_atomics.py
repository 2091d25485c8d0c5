"""Atomic operations that many work items make on one element."""

import numpy as np
import pytest

import costate as ti


def test_products_of_many_work_items():
    n = 20000
    odd, x = ti.field(ti.u32, shape=()), ti.field(ti.f32, shape=2)
    odd[None], x[0], x[1] = 1, 1.0, float("nan")

    @ti.kernel
    def multiply():
        for i in range(n):
            ti.atomic_mul(odd[None], 2 * i + 1)
            ti.atomic_mul(x[0], 2.0 if i % 2 == 0 else 0.5)
            ti.atomic_mul(x[1], 2.0)

    multiply()
    product = 1
    for i in range(n):
        product = product * (2 * i + 1) % 2**32
    assert odd[None] == product
    assert x[0] == 1.0 and np.isnan(x[1])


def test_a_product_gives_the_old_element():
    x = ti.Vector.field(2, ti.i32, shape=())
    old = ti.Vector.field(2, ti.i32, shape=())
    x[None] = [3, 0]

    @ti.kernel
    def multiply():
        old[None] = ti.atomic_mul(x[None], ti.Vector([5, 7]))

    multiply()
    assert x[None].to_list() == [15, 0] and old[None].to_list() == [3, 0]


def test_the_gradient_of_a_product_is_refused():
    x = ti.field(ti.f32, shape=(), needs_grad=True)
    y = ti.field(ti.f32, shape=4, needs_grad=True)

    @ti.kernel
    def multiply():
        for i in y:
            ti.atomic_mul(x[None], y[i])

    multiply()
    with pytest.raises(ti.NotDifferentiable):
        multiply.grad()
