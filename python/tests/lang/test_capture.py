"""`capture`: launches that are kept and repeated."""

import gc
import os
import weakref
from fractions import Fraction

import numpy as np
import pytest

import costate as ti

on_gpu = os.environ.get("COSTATE_DEVICE", "cpu") != "cpu"
HERE = os.path.basename(__file__)


@ti.kernel
def square(x: ti.types.ndarray(), y: ti.types.ndarray(), s: ti.f64):
    for i in x:
        y[i] = s * x[i] * x[i]


@ti.kernel
def add(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] += x[i]


def made(values, **options):
    x = ti.ndarray(ti.f64, shape=len(values), **options)
    x.from_numpy(np.array(values, dtype=np.float64))
    return x


@pytest.fixture(autouse=True)
def f64(double):
    pass


def test_replays_do_what_launches_do_with_what_arrays_hold_by_then():
    x, y = made([1, 2, 3]), made([0, 0, 0])
    graph = ti.capture(square, x, y, 2.0)
    assert y.to_numpy().tolist() == [0, 0, 0] and len(graph) == 1
    graph.replay()
    assert y.to_numpy().tolist() == [2, 8, 18]
    x[1] = 10                      # waits on the host
    graph.replay()
    graph.replay()
    assert y.to_numpy().tolist() == [2, 200, 18] and x[1] == 10 and y[1] == 200


def test_a_function_with_gradients_tangents_and_fills():
    x, y = made([1, 2, 3], needs_grad=True, needs_dual=True), made([0, 0, 0], needs_grad=True, needs_dual=True)

    def step():
        square(x, y, 2.0)
        y.grad.fill(1)
        x.grad.fill(0)
        square.grad(x, y, 2.0)
        square.jvp(x, y, 2.0)
    graph = ti.capture(step)
    x.dual.fill(10)
    for values in ([1, 2, 3], [4, 5, 6]):
        x.from_numpy(np.array(values, dtype=np.float64))
        graph.replay()
        assert x.grad.to_numpy().tolist() == [4 * v for v in values]
        assert y.dual.to_numpy().tolist() == [40 * v for v in values]
    report = graph.report().splitlines()
    assert report[0] == "graph: 3 launches, 2 fills"
    assert report[1].startswith("  square (") and HERE in report[1] and "square, gradient" in report[2] and "tangent" in report[3]


def test_the_gradient_of_the_kernel_in_the_graph_reads_back_what_it_stored():
    x, y, z = (ti.field(ti.f64, shape=2, needs_grad=True) for _ in range(3))

    @ti.kernel
    def exponential():
        for i in x:
            y[i] = ti.exp(x[i])
        for i in x:
            z[i] = y[i] * y[i]

    def step():
        exponential()
        z.grad.fill(1)
        exponential.grad()
    graph = ti.capture(step)
    x.fill(0.5)
    for times in (1, 2):
        graph.replay()
        np.testing.assert_allclose(x.grad.to_numpy(), times * 2 * np.exp(1))


def test_arrays_that_are_exchanged_and_other_numbers_are_captured_for_themselves():
    x, y = made([1, 2]), made([0, 0])
    graph = ti.capture(square, x, y, 1.0)
    graph.replay(y, x, s=3.0)
    assert x.to_numpy().tolist() == [0, 0]
    x.fill(2)
    for s in (5.0, 7.0, 5.0):
        graph.replay(x, y, s)
        assert y.to_numpy().tolist() == [4 * s, 4 * s]
    graph.replay()
    assert y.to_numpy().tolist() == [4, 4]
    assert len(graph._others) == 4


def test_numbers_count_by_their_values_whatever_they_are():
    x, y = made([1, 2]), made([0, 0])
    graph = ti.capture(square, x, y, np.float32(1))
    graph.replay(x, y, np.float32(1))
    graph.replay(x, y, Fraction(3))
    graph.replay(x, y, Fraction(3))
    assert y[1] == 12 and len(graph._others) == 2
    torch = pytest.importorskip("torch")
    s = torch.tensor(5.0)
    graph.replay(x, y, s)
    s += 1
    graph.replay(x, y, s)
    assert y[1] == 24


def test_of_many_different_numbers_the_last_are_kept():
    x, y = made([1, 2]), made([0, 0])
    graph = ti.capture(square, x, y, 1.0)
    for s in range(40):
        graph.replay(x, y, float(s))
        assert y.to_numpy().tolist() == [s, 4 * s]
    assert len(graph._others) == 16


def test_fields_by_their_names_and_single_elements():
    x = ti.field(ti.f64, shape=3)
    n = ti.field(ti.i32, shape=())

    @ti.kernel
    def count():
        for i in x:
            x[i] += n[None]
    graph = ti.capture(count)
    n[None] = 5
    graph.replay()
    n[None] = 7
    graph.replay()
    assert x[2] == 12


def test_it_keeps_what_it_needs_alive_and_no_longer():
    x, y = made([3]), made([0])
    graph = ti.capture(square, x, y, 1.0)
    ended = weakref.ref(x)
    del x
    graph.replay()
    assert y[0] == 9
    del graph
    gc.collect()
    assert ended() is None


def refused(word, body, line=True):
    with pytest.raises(ti.CannotCapture, match=word) as caught:
        ti.capture(body)
    if line:
        assert HERE in str(caught.value) and "^" in str(caught.value), caught.value
    return str(caught.value)


def test_what_the_host_reads_or_writes_is_refused_with_its_line():
    x, y = made([1, 2]), made([0, 0])

    @ti.kernel
    def total() -> ti.f64:
        s = 0.0
        for i in range(2):
            s += x_field[i]
        return s
    x_field = ti.field(ti.f64, shape=2)

    def reads():
        square(x, y, 1.0)
        print(y[0])
    assert "print(y[0])" in refused("host", reads)
    refused("host", lambda: x.to_numpy())
    refused("host", lambda: x.from_numpy(np.zeros(2)))

    def writes():
        x[0] = 3
    assert "x[0] = 3" in refused("host", writes)
    refused("`total` returns a value", total)
    refused("array of NumPy", lambda: square(np.zeros(2), y, 1.0))
    refused("wait for the device", ti.sync)
    x[1] = 2
    assert x.to_numpy().tolist() == [1, 2] and y.to_numpy().tolist() == [0, 0]   # nothing of all that has run


def test_what_the_host_knows_already_is_refused_too():
    x, y = made([1, 2]), made([0, 0])
    assert [x[0] for _ in range(20)][-1] == 1    # by now from a copy
    refused("host", lambda: x[0])

    def writes():
        x[0] = 3
    refused("host", writes)
    assert x[0] == 1


def test_new_arrays_random_numbers_and_tapes_are_refused():
    x, loss = ti.field(ti.f64, shape=2, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def noise():
        for i in x:
            x[i] = ti.random()

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i]

    def record():
        with ti.ad.Tape(loss):
            measure()
    refused("make an? ndarray", lambda: ti.ndarray(ti.f64, shape=2))
    refused("make a field", lambda: ti.field(ti.f64, shape=2))
    assert "`noise` draws random numbers" in refused("random", noise)
    refused("record a `Tape`", record)
    refused("check a gradient", lambda: ti.ad.check_gradient(measure))
    refused("capture another one", lambda: ti.capture(measure))
    with pytest.raises(ti.CannotCapture, match="init"):
        ti.capture(lambda: ti.init(arch=ti.cpu))


def test_a_tape_and_forward_mode_refuse_replays():
    x, loss = ti.field(ti.f64, shape=2, needs_grad=True, needs_dual=True), ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i]
    graph = ti.capture(measure)
    for what in (graph.replay, lambda: ti.capture(measure)):
        with pytest.raises(ti.CannotCapture, match="`Tape`"):
            with ti.ad.Tape(loss):
                what()
        with pytest.raises(ti.CannotCapture, match="FwdMode"):
            with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1]):
                what()
    x.fill(1)
    loss[None] = 0
    graph.replay()
    assert loss[None] == 2


def test_a_tape_copies_what_a_replay_overwrites():
    x, y = made([1, 2], needs_grad=True), made([0, 0], needs_grad=True)
    loss = ti.ndarray(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure(y: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in y:
            loss[None] += y[i]

    @ti.kernel
    def clear(x: ti.types.ndarray()):
        for i in x:
            x[i] = 0.0
    graph = ti.capture(clear, x)
    tape = ti.ad.Tape(loss)
    with tape:
        square(x, y, 1.0)
        measure(y, loss)
        tape.suspend()
        graph.replay()
    assert x.grad.to_numpy().tolist() == [2, 4]


def test_a_graph_ends_with_init():
    x = ti.field(ti.f64, shape=2)

    @ti.kernel
    def one():
        x.fill(1)
    graph = ti.capture(one)
    ti.init(arch=ti.cpu)
    with pytest.raises(ti.CannotCapture, match="ends with `init`"):
        graph.replay()


def test_an_error_in_the_function_leaves_nothing_behind():
    x, y = made([1, 2]), made([0, 0])

    def fails():
        add(x, y)
        raise ValueError("of the program")
    with pytest.raises(ValueError, match="of the program"):
        ti.capture(fails)
    add(x, y)
    assert y.to_numpy().tolist() == [1, 2]


def test_debug_mode_checks_replays():
    ti.init(arch=ti.cpu, debug=True, default_fp=ti.f64)
    x, at = ti.field(ti.f64, shape=3), ti.field(ti.i32, shape=())

    @ti.kernel
    def put():
        for i in range(1):
            x[at[None]] = 1.0
    if on_gpu:
        refused("`put` cannot be captured: .*whether a check has failed", put)
        return
    graph = ti.capture(put)
    graph.replay()
    at[None] = 5
    with pytest.raises(ti.OutOfRange):
        graph.replay()


def test_replays_do_what_ordinary_launches_do_and_no_more():
    x, y = made([1, 2]), made([0, 0])

    def step():
        square(x, y, 2.0)
        add(x, y)
        y.fill(3)
    step()
    ti.reset_statistics()
    step()
    once = ti.statistics()
    graph = ti.capture(step)
    ti.reset_statistics()
    for _ in range(10):
        graph.replay()
    seen = ti.statistics()
    assert (seen.launches, seen.fills) == (10 * once.launches, 10 * once.fills)
    assert seen.uploads == seen.downloads == seen.copies == seen.synchronizations == 0


def test_tensors_of_pytorch_are_arguments():
    torch = pytest.importorskip("torch")
    place = "cuda" if ti.lang.runtime.device().name == "cuda" else "cpu"
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, device=place, requires_grad=True)
    y = torch.zeros(2, dtype=torch.float64, device=place, requires_grad=True)
    square(x, y, 2.0)
    with torch.no_grad():
        x += 1

    def step():
        square(x, y, 2.0)
        square.grad(x, y, 2.0)
    graph = ti.capture(step)
    version = y._version
    graph.replay()
    assert y.tolist() == [8, 18] and y._version > version
    with torch.no_grad():
        x.fill_(5)
    y.grad.fill_(1)
    graph.replay()
    assert y.tolist() == [50, 50] and x.grad.tolist() == [20, 20]
    x.grad = None
    y.grad.fill_(1)
    graph.replay()
    assert x.grad.tolist() == [20, 20]
    y.data = torch.zeros(2, dtype=torch.float64, device=place)
    with pytest.raises(ti.CannotCapture, match="other memory"):
        graph.replay()


def test_replays_activate_what_kernels_activate():
    x = ti.field(ti.f64, needs_grad=True)
    ti.root.pointer(ti.i, 64).dense(ti.i, 4).place(x, x.grad)
    at, loss = ti.field(ti.i32, shape=()), ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def put():
        for _ in range(1):
            x[at[None]] = 1.5

    @ti.kernel
    def visit():
        for i in x:
            loss[None] += x[i] * x[i]

    def step():
        put()
        loss.fill(0)
        visit()
        loss.grad.fill(1)
        x.grad.fill(0)
        visit.grad()
    graph = ti.capture(step)
    for k, place in enumerate((3, 17, 200)):
        at[None] = place
        graph.replay()
        assert loss[None] == 2.25 * (k + 1) and x.grad[place] == 3
