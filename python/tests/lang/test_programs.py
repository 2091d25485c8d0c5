"""What whole programs of Taichi and Quadrants rely on."""

import numpy as np
import pytest

import costate as ti


def test_a_tape_begins_with_a_loss_of_0():
    x = ti.field(ti.f32, shape=(), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    x[None] = 3

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    for _ in range(3):
        with ti.ad.Tape(loss):
            square()
        assert (loss[None], x.grad[None]) == (9, 6)


def test_a_tape_begins_with_an_ndarray_of_0():
    x = ti.ndarray(ti.f32, shape=2, needs_grad=True)
    loss = ti.ndarray(ti.f32, shape=1, needs_grad=True)
    x.from_numpy(np.array([1, 2], np.float32))
    loss.fill(100)

    @ti.kernel
    def total(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in x:
            loss[0] += x[i] ** 3

    with ti.ad.Tape(loss):
        total(x, loss)
    assert loss[0] == 9
    assert x.grad.to_numpy().tolist() == [3, 12]


def test_a_field_prints_its_elements():
    x = ti.field(ti.i32, shape=3)
    x.from_numpy(np.arange(3, dtype=np.int32))
    assert str(x) == "[0 1 2]"
    assert str(ti.field(ti.f32)) == "<Field: Definition of this field is incomplete>"


def test_fields_of_structs_by_their_members():
    vec2 = ti.types.vector(2, ti.f32)
    sources = ti.Struct.field({"pos": vec2, "q": ti.f32}, shape=3)

    @ti.kernel
    def place():
        for i in sources:
            sources[i].pos = ti.Vector([i, 2 * i])
            sources[i].q = sources[i].pos.sum()

    place()
    assert sources.q.to_numpy().tolist() == [0, 3, 6]
    assert sources[2].pos.to_list() == [2, 4]
