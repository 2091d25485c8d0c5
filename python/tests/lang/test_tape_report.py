"""What a report says of tapes that are counted or measured on a GPU, and why."""

import os

import numpy as np

import costate as ti

COUNTED = "its tape is counted before it runs, because "
MEASURED = "its tape is measured by a run of the forward sweep, because "
on_gpu = os.environ.get("COSTATE_DEVICE", "cpu") != "cpu"


def reported(body):
    """The report of the gradient of a loop of n[i] iterations of `body`."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = (ti.field(ti.f64, shape=3, needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, shape=3)
    n.from_numpy(np.array([4, 0, 9], dtype=np.int32))

    @ti.kernel
    def run():
        for i in x:
            body(x, n, y, i)

    run.grad(initial_state=True)
    return run.report()


@ti.func
def plain(x, n, y, i):
    v = x[i]
    for t in range(n[i]):
        v = v * ti.sin(v) + 0.3
    y[i] = v


@ti.func
def small_array(x, n, y, i):
    v = x[i]
    last = ti.Vector([0.0, 0.0, 0.0])
    for t in range(n[i]):
        v = v * ti.sin(v) + 0.3 + 0.1 * last[t % 3]
        last[(t + 1) % 3] = ti.cos(v)
    y[i] = v


@ti.func
def in_place(x, n, y, i):
    for t in range(n[i]):
        y[i] = y[i] * ti.sin(y[i]) + x[i]


@ti.func
def own_count(x, n, y, i):
    for _ in range(2):
        for t in range(n[i]):
            y[i] = y[i] * ti.sin(y[i]) + x[i]
        n[i] += 1


def test_what_is_counted_has_a_reason():
    for body in (plain, small_array):
        assert COUNTED not in reported(body) and MEASURED not in reported(body)
    overwrites = "it overwrites elements that it has read"
    assert (COUNTED + overwrites + "\n" in reported(in_place)) == on_gpu


def test_what_is_measured_has_a_reason():
    assert MEASURED not in reported(in_place)
    assert (MEASURED + "it overwrites elements that it has read, and what its iterations follow from "
            "is overwritten" in reported(own_count)) == on_gpu
