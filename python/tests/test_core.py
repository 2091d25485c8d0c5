"""The module below the package: what C++ offers, and that misuse is an exception."""

import gc
import os
import threading

import numpy as np
import pytest

from costate import _core
from costate._core import DType, Loc, Op

HERE = Loc(__file__, 12, 3)


def sine(trace):
    """y[i] = sin(x[i]) * h"""
    x, y = trace.array(DType.f64, 1), trace.array(DType.f64, 1)
    h = trace.scalar(DType.f64)
    (i,) = trace.begin_range([trace.extent(x, 1, 0, HERE)], HERE)
    value = trace.pure(Op.sin, DType.f64, [trace.load(x, DType.f64, [i], HERE)], HERE)
    trace.store(y, DType.f64, [i], trace.pure(Op.mul, DType.f64, [value, h], HERE), HERE)
    trace.end()


def test_a_kernel_and_its_derivatives(device, trace):
    k = trace("sine", sine)
    values = np.linspace(0, 1, 10)
    x = _core.Array(device, DType.f64, [10], grad=True, dual=True)
    y = _core.Array(device, DType.f64, [10], grad=True, dual=True)
    x.write(values)
    k.launch(x, y, 3)
    assert np.allclose(y.to_numpy(), 3 * np.sin(values))
    y.grad.fill(1)
    k.grad(x, y, 3.0)
    assert np.allclose(x.grad.to_numpy(), 3 * np.cos(values))
    x.dual.fill(2)
    k.jvp(x, y, np.float32(3))
    assert np.allclose(y.dual.to_numpy(), 6 * np.cos(values))
    assert _core.check_gradient(k, x, y, 3.0)
    assert k.name == "sine" and [a.rank for a in k.arguments] == [1, 1, -1]
    assert "costate.kernel" in k.ir() and "sine" in k.report()


def one_range(trace, body):
    x = trace.array(DType.f64, 1)
    (i,) = trace.begin_range([trace.extent(x, 1, 0, HERE)], HERE)
    body(trace, x, i)
    trace.end()


def number(trace, dtype, value=1):
    return trace.constant(dtype, value, HERE)


MISTAKES = {
    "`add` does not take .f64, f32. to f64": lambda t, x, i: t.pure(
        Op.add, DType.f64, [number(t, DType.f64), number(t, DType.f32)], HERE),
    "`sin` does not take .f64, f64. to f64": lambda t, x, i: t.pure(
        Op.sin, DType.f64, [number(t, DType.f64)] * 2, HERE),
    "`sin` does not take .i32. to i32": lambda t, x, i: t.pure(
        Op.sin, DType.i32, [number(t, DType.i32)], HERE),
    "`lt` does not take .i32, i32. to i32": lambda t, x, i: t.pure(
        Op.lt, DType.i32, [number(t, DType.i32)] * 2, HERE),
    "`and` does not take": lambda t, x, i: t.pure(
        Op.and_, DType.f32, [number(t, DType.f32)] * 2, HERE),
    "an array of rank 1 has 2 indices": lambda t, x, i: t.load(x, DType.f64, [i, i], HERE),
    "an element of type f64 is read as f32": lambda t, x, i: t.load(x, DType.f32, [i], HERE),
    "an index of type i64 is given a value of type i32": lambda t, x, i: t.load(
        x, DType.f64, [number(t, DType.i32)], HERE),
    "an element of type f64 is given a value of type i32": lambda t, x, i: t.store(
        x, DType.f64, [i], number(t, DType.i32), HERE),
    "has no atomic `or`": lambda t, x, i: t.update(
        Op.or_, x, DType.f64, [i], number(t, DType.f64), HERE),
    "a condition of type bool": lambda t, x, i: t.begin_if(number(t, DType.i32), HERE) or t.end(),
    "the bounds and the step": lambda t, x, i: t.begin_for(
        i, i, number(t, DType.i32), HERE) and t.end(),
    "a variable of type i32": lambda t, x, i: t.declare(DType.i32, number(t, DType.f32), HERE),
    "a variable is read as": lambda t, x, i: t.read(
        DType.f32, t.declare(DType.i32, number(t, DType.i32), HERE), HERE),
    "a number does not fit in u8": lambda t, x, i: number(t, DType.u8, 256),
    "a number does not fit in i32": lambda t, x, i: number(t, DType.i32, float("nan")),
    "a number does not fit in i64": lambda t, x, i: number(t, DType.i64, 2**63),
    "a number does not fit in bool": lambda t, x, i: number(t, DType.bool, "text"),
    "a `Local` of 0 elements": lambda t, x, i: t.declare_local(DType.i8, 0, HERE),
    "a `Local` of -5 elements": lambda t, x, i: t.declare_local(DType.i8, -5, HERE),
    "no dimension 3": lambda t, x, i: t.extent(x, 1, 3, HERE),
    "without extents": lambda t, x, i: t.end() or t.begin_range([], HERE),
    "`BREAK` outside a loop": lambda t, x, i: t.jump_break(HERE),
    "`end` of no block": lambda t, x, i: [t.end() for _ in range(3)],
    "left open": lambda t, x, i: t.begin_if(number(t, DType.bool), HERE),
    "innermost block": lambda t, x, i: t.begin_while_body(number(t, DType.bool), HERE),
    "does not belong to the innermost block": lambda t, x, i: t.end_custom([], HERE),
    "`end_fold` does not belong": lambda t, x, i: t.end() or t.end_fold(Op.add, [i], HERE),
    "1 to 3 operands": lambda t, x, i: t.pure(Op.add, DType.i64, [], HERE),
    "at most 8 dimensions": lambda t, x, i: t.load(x, DType.f64, [i] * 9, HERE),
    "an array of rank 9": lambda t, x, i: t.array(DType.f64, 9),
    "a message of more than 4 values": lambda t, x, i: t.check(number(t, DType.bool), "{}" * 5, [i] * 5, HERE),
}



@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_in_a_kernel_are_named(trace, text):
    with pytest.raises(_core.BadKernel, match=text):
        trace("wrong", lambda t: one_range(t, MISTAKES[text]))


def test_a_mistake_names_its_place(trace):
    with pytest.raises(_core.BadKernel, match=r"test_core\.py:12:3: error"):
        trace("wrong", lambda t: one_range(t, lambda t, x, i: t.jump_break(HERE)))


def test_an_empty_kernel(trace):
    with pytest.raises(_core.BadKernel, match="is empty"):
        trace("nothing", lambda t: None)


def test_handles_of_another_kernel(trace):
    kept = []
    trace("one", lambda t: one_range(t, lambda t, x, i: (kept.extend([x, i]), t.store(
        x, DType.f64, [i], number(t, DType.f64), HERE))))
    with pytest.raises(_core.BadKernel, match="an array of another kernel"):
        trace("two", lambda t: one_range(
            t, lambda t, x, i: t.load(kept[0], DType.f64, [i], HERE)))
    with pytest.raises(_core.BadKernel, match="a value of another kernel"):
        trace("two", lambda t: one_range(
            t, lambda t, x, i: t.load(x, DType.f64, [kept[1]], HERE)))


def test_handles_are_told_apart(trace):
    def body(t, x, i):
        for call in (lambda: t.load(i, DType.f64, [i], HERE), lambda: t.load(x, DType.f64, [x], HERE),
                     lambda: t.read(DType.f64, i, HERE), lambda: t.assign(x, i, HERE),
                     lambda: t.load(x, DType.f64, [None], HERE), lambda: t.jump_break(None)):
            with pytest.raises(TypeError):
                call()
        t.store(x, DType.f64, [i], number(t, DType.f64), HERE)

    trace("fine", lambda t: one_range(t, body))


def test_traces_end_in_order():
    outer = _core.Trace("outer", HERE)
    inner = _core.Trace("inner", HERE)
    with pytest.raises(_core.BadKernel, match="`outer` is not what this thread traces"):
        outer.array(DType.f64, 1)
    seen = []

    def other():
        try:
            inner.array(DType.f64, 1)
        except _core.BadKernel as error:
            seen.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "another thread" in seen[0]
    inner.abandon()
    sine(outer)
    assert outer.finish().name == "outer"
    with pytest.raises(_core.BadKernel, match="has ended"):
        outer.array(DType.f64, 1)
    outer.abandon()


def test_traces_may_be_dropped_anywhere(trace):
    first, second = _core.Trace("first", HERE), _core.Trace("second", HERE)
    del first
    gc.collect()
    second.array(DType.f64, 1)
    holder = [second]
    del second
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    assert trace("sine", sine).name == "sine"


def test_arguments_that_do_not_fit(device, trace):
    k = trace("sine", sine)
    x, y = (_core.Array(device, DType.f64, (4,)) for _ in range(2))
    single = _core.Array(device, DType.f32, (4,))
    for arguments, text in [((x, y), "takes 3 arguments"), ((x, y, 1, 2), "takes 3 arguments"),
                            ((x, single, 1), "f32 array of rank 1"), ((x, y, y), "given an array"),
                            ((1, y, 1), "given the number 1"), ((x, x, 1), "same array"),
                            ((x, y, "a"), "'a'"), ((x, y, None), "None"), ((x, y, 2**70), "64 bits"),
                            ((x, y, 1j), "1j")]:
        with pytest.raises(_core.BadArgument, match=text):
            k.launch(*arguments)
    with pytest.raises(_core.BadArgument):
        k(x, _core.Array(_core.Device.open("cpu"), DType.f64, (4,)), 1)
    with pytest.raises(_core.MissingGradient):
        k.grad(x, y, 1)
    with pytest.raises(TypeError):
        k.launch(x, y, h=1)
    with pytest.raises(_core.BadArgument):
        k.launch(x, y, 1, initial_state=True)


def test_objects_that_were_never_made(device, trace):
    k = trace("sine", sine)
    empty = _core.Array.__new__(_core.Array)
    with pytest.raises(_core.BadArgument):
        k.launch(empty, empty, 1)
    with pytest.raises(_core.BadArgument):
        _core.Kernel.__new__(_core.Kernel).launch()
    with pytest.raises(TypeError), pytest.warns(RuntimeWarning, match="uninitialized"):
        empty.fill(1)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_process(device, trace):
    if device.name == "cuda":
        pytest.skip("CUDA does not survive a fork")
    k = trace("sine", sine)
    x, y = (_core.Array(device, DType.f64, (100_000,)) for _ in range(2))
    x.fill(1)
    k.launch(x, y, 1)
    child = os.fork()
    if not child:
        try:
            k.launch(x, y, 2)
            os._exit(not np.allclose(y.to_numpy(), 2 * np.sin(1)))
        except _core.NoDevice:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (2 if device.name.startswith("vulkan") else 0)


def test_scalars_must_be_exact(device, trace):
    def body(t):
        out = t.array(DType.i8, 1)
        value = t.scalar(DType.i8)
        (i,) = t.begin_range([t.extent(out, 1, 0, HERE)], HERE)
        t.store(out, DType.i8, [i], value, HERE)
        t.end()

    k = trace("keep", body)
    x = _core.Array(device, DType.i8, (1,))
    for good in (127, -128, 3.0, True, np.uint64(5), np.bool_(True)):
        k.launch(x, good)
        assert x.to_numpy()[0] == good
    for wrong in (128, -129, 0.5, float("nan"), float("inf"), np.int32(300)):
        with pytest.raises(_core.BadArgument, match="does not have"):
            k.launch(x, wrong)


def test_several_launches_with_a_tape(device, trace):
    k = trace("sine", sine)
    x, y, z = (_core.Array(device, DType.f64, (3,), grad=True) for _ in range(3))
    values = np.array([0.1, 0.2, 0.3])
    x.write(values)
    tape = _core.Tape()
    with tape.record():
        k(x, y, 2)
        k(y, z, 3)
        y.fill(0)
    assert len(tape) == 3
    z.grad.fill(1)
    tape.backward()
    expected = 3 * np.cos(2 * np.sin(values)) * 2 * np.cos(values)
    assert np.allclose(x.grad.to_numpy(), expected)
    assert tape.report().copies and "entries" in str(tape.report())
    with pytest.raises(_core.BadArgument):
        with tape.record(), _core.Tape().record():
            pass


def test_code_of_the_user_in_a_tape(device):
    x, y = (_core.Array(device, DType.f64, (2,), grad=True) for _ in range(2))
    calls = []
    launch = _core.CustomLaunch(name="double", reads=[x], writes=[y],
                                primal=lambda: y.write(2 * x.to_numpy()),
                                gradient=lambda: (calls.append(1), x.grad.write(
                                    x.grad.to_numpy() + 2 * y.grad.to_numpy()), y.grad.fill(0)))
    tape = _core.Tape()
    x.fill(3)
    with tape.record():
        launch()
    tape.backward(y)
    assert calls == [1] and x.grad.to_numpy().tolist() == [2, 2]

    def fails():
        raise KeyError("mine")

    launch = _core.CustomLaunch(name="fails", reads=[x], writes=[y], primal=fails, gradient=fails)
    with pytest.raises(KeyError, match="mine"):
        launch()


def test_a_graph(device, trace):
    k = trace("sine", sine)
    x, y = (_core.Array(device, DType.f64, (2,)) for _ in range(2))
    x.fill(1)
    k(x, y, 1)
    graph = device.capture(lambda: k(x, y, 2))
    graph.replay()
    assert np.allclose(y.to_numpy(), 2 * np.sin(1)) and len(graph) == 1
    with pytest.raises(_core.CannotCapture):
        device.capture(lambda: x.to_numpy())


def test_launches_from_several_threads(device, trace):
    k = trace("sine", sine)
    arrays = [[_core.Array(device, DType.f64, (100,)) for _ in range(2)] for _ in range(4)]

    def work(x, y):
        x.fill(1)
        for _ in range(50):
            k.launch(x, y, 1)

    threads = [threading.Thread(target=work, args=pair) for pair in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.allclose(y.to_numpy(), np.sin(1)) for _, y in arrays)


def test_devices():
    with pytest.raises(_core.NoDevice, match="no device `toaster`"):
        _core.Device.open("toaster")
    small = _core.Device.open("cpu", threads=1, memory_limit=1 << 20)
    assert small.threads == 1 and small.memory_limit == 1 << 20
    with pytest.raises(MemoryError):
        _core.Array(small, DType.f64, (1 << 20,))
    with pytest.raises(_core.BadArgument):
        small.use_stream(1)
    for stream in (None, -1, 1, 2, 1 << 40):
        small.let_wait(stream)
    for stream in (0, -2):
        with pytest.raises(_core.BadArgument, match="no stream that could wait; pass 1"):
            small.let_wait(stream)
    x = _core.Array(small, DType.f64, (10,))
    assert small.current_bytes > 0 and x.device == small and hash(x.device) == hash(small)
    small.reset_statistics()
    x.fill(1)
    assert small.statistics().fills == 1
    del small
    gc.collect()
    assert x.to_numpy()[0] == 1


def test_debug_kernels_say_what_is_wrong(device, trace):
    def body(t):
        x = t.array(DType.f64, 1)
        (i,) = t.begin_range([t.extent(x, 1, 0, HERE)], HERE)
        far = t.pure(Op.add, DType.i64, [i, number(t, DType.i64, 5)], HERE)
        t.store(x, DType.f64, [far], number(t, DType.f64), HERE)
        t.end()

    k = trace("far", body, debug=True)
    with pytest.raises(IndexError, match=r"test_core\.py:12"):
        k.launch(_core.Array(device, DType.f64, (3,)))
        device.synchronize()
