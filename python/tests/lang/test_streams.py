"""Streams and events: whatever stream a launch is given, work is done in one order."""

import os
import types

import numpy as np
import pytest

import costate as ti
from costate.lang.base import streams


@ti.kernel
def double(x: ti.types.ndarray(), s: ti.f64 = 2.0):
    for i in x:
        x[i] *= s


@pytest.fixture
def x():
    made = ti.ndarray(ti.f64, shape=3, needs_grad=True, needs_dual=True)
    made.fill(1)
    return made


@pytest.fixture
def asked(monkeypatch):
    """What a device of CUDA would be asked for."""
    made = []
    device = types.SimpleNamespace(name="cuda", use_stream=made.append, use_own_stream=lambda: made.append("own"),
                                   synchronize=lambda: made.append("waits"))
    monkeypatch.setattr(streams.runtime, "device", lambda: device)
    monkeypatch.setattr(streams.runtime, "shares_memory", lambda: False)
    monkeypatch.setattr(streams.runtime, "sync", device.synchronize)
    yield made
    streams._forget()


def test_streams_and_events_of_the_device(x):
    with ti.create_stream() as one, ti.create_event() as event:
        other = ti.create_stream()
        double(x, qd_stream=one)
        event.record(one)
        event.wait(other)
        event.wait()
        double(x, s=3.0, qd_stream=other)
        other.synchronize()
        event.synchronize()
        other.destroy()
        other.destroy()
        if ti.lang.runtime.device().name != "cuda":
            assert (one.handle, event.handle) == (0, 0)
    assert x.to_numpy().tolist() == [6, 6, 6]
    double(x, 2.0, qd_stream=None)
    assert x[0] == 12


def test_derivatives_and_tapes_take_streams(x):
    loss = ti.ndarray(ti.f64, shape=(), needs_grad=True)
    s = ti.create_stream()

    @ti.kernel
    def measure(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] * x[i]
    with ti.ad.Tape(loss):
        double(x, 2.0, qd_stream=s)
        measure(x, loss, qd_stream=s)
    assert x.grad.to_numpy().tolist() == [8, 8, 8]
    x.grad.fill(1)
    double.grad(x, 2.0, qd_stream=s)
    assert x.grad.to_numpy().tolist() == [2, 2, 2]
    x.dual.fill(1)
    double.jvp(x, 2.0, qd_stream=s)
    assert x.dual.to_numpy().tolist() == [2, 2, 2]


def test_a_launch_in_a_stream_of_others_is_surrounded_by_it(asked):
    with streams.queued(ti.Stream(77)):
        asked.append("launch")
    assert asked == [77, "launch", 77, "own"]
    asked.clear()
    ti.Stream(77).synchronize()
    assert asked == [77, "waits", 77, "own"]
    asked.clear()
    with streams.queued(ti.create_stream()):
        pass
    assert asked == []
    with streams.queued(ti.Stream(0)):     # CUDA's default stream
        asked.append("launch")
    assert asked == [0, "launch", 0, "own"]


def test_events_join_streams_with_the_device(asked):
    event = ti.create_event()
    event.record(ti.Stream(5))
    assert asked == [5, 5, "own"]
    event.wait(ti.Stream(6))
    event.wait()
    assert asked[3:] == [6, 6, "own"]


def test_use_stream_lasts_or_ends_with_its_block(asked):
    ti.use_stream(5)
    with ti.use_stream(ti.Stream(6)):
        with streams.queued(7):
            pass
    assert asked == [5, 6, 7, 7, 6, 5]
    ti.use_stream(None)
    assert asked[6:] == ["own"]


@pytest.mark.parametrize("stream", [types.SimpleNamespace(cuda_stream=9), types.SimpleNamespace(ptr=9), np.int64(9), 9,
                                    type("Other", (), {"__cuda_stream__": lambda self: (0, 9)})()])
def test_streams_of_other_libraries(stream):
    assert streams.handle_of(stream) == 9


def test_what_is_no_stream_is_refused(x, asked):
    with pytest.raises(ti.BadArgument, match="'fast' is no stream"):
        ti.use_stream("fast")
    with pytest.raises(ti.QuadrantsRuntimeError, match="has no handle"):
        ti.create_stream().handle


@pytest.mark.skipif(os.environ.get("COSTATE_DEVICE") == "cuda", reason="CUDA does not check what is said to be a stream")
def test_streams_of_others_are_those_of_cuda(x):
    with pytest.raises(ti.BadArgument, match="cuda"):
        double(x, 2.0, qd_stream=ti.Stream(77))
    with pytest.raises(ti.BadArgument, match="cuda"):
        ti.use_stream(77)
    double(x, 2.0)
    assert x[0] == 2


def test_a_graph_takes_no_stream(x):
    with pytest.raises(ti.CannotCapture, match="use_stream"):
        ti.capture(lambda: double(x, 2.0, qd_stream=ti.Stream(77)))
    graph = ti.capture(lambda: double(x, 2.0, qd_stream=ti.create_stream()))
    graph.replay()
    assert x[0] == 2


def test_blocks_of_streams_in_kernels_run_in_their_order(x):
    y = ti.field(ti.f64, shape=3, needs_grad=True)

    @ti.kernel
    def several(x: ti.types.ndarray()):
        with ti.stream_parallel():
            for i in x:
                x[i] += 1.0
            for i in x:
                x[i] *= 2.0
        with ti.stream_parallel():
            for i in y:
                y[i] = 7.0
        with ti.graph_parallel_context():
            with ti.graph_parallel():
                for i in y:
                    y[i] += 1.0
            with ti.graph.parallel():
                for i in x:
                    x[i] += 1.0
    several(x)
    assert x.to_numpy().tolist() == [5, 5, 5] and y.to_numpy().tolist() == [8, 8, 8]
    with ti.stream_parallel():     # on the host
        several(x)


def test_other_blocks_are_refused_as_ever():
    @ti.kernel
    def opens():
        with open("file"):
            pass
    with pytest.raises(ti.CompilationError, match="`with` is not supported"):
        opens()
