"""Streams: in which queue of a GPU work stands, and what it waits for.

A device does what it is asked for in one order, in the stream that is in use. So streams of our own have nothing to do, and
those of others are joined: the device waits for what stands there, and they wait for the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from costate.errors import BadArgument, CannotCapture, QuadrantsRuntimeError
from costate.lang.base import runtime
from costate.lang.base.state import state

_chosen: int | None = None    # by `use_stream`; None: that of the device


@runtime.on_reset.add
def _forget() -> None:
    global _chosen
    _chosen = None


def _own_handle(what: str) -> int:
    if runtime.device().name in ("cuda", "hip"):
        raise QuadrantsRuntimeError(f"this {what} stands for the order of the device and has no handle; make a stream with another "
                                    "library, and pass it as `qd.Stream(handle)` or to `qd.use_stream`")
    return 0


class Stream:
    """A stream of somebody else by its handle (a `CUstream` or `cudaStream_t` as an integer; 0 is CUDA's default stream).
    Kernels take it as `qd_stream=`. One of `create_stream` is the order of the device."""

    def __init__(self, handle: int | None = None, *_: Any) -> None:
        self._handle = None if handle is None else int(handle)

    @property
    def handle(self) -> int:
        return _own_handle("stream") if self._handle is None else self._handle

    def synchronize(self) -> None:
        """Waits until all that stands in it is done."""
        with queued(self):
            runtime.sync()

    def destroy(self) -> None:
        """Accepted: streams of others are theirs, and those of the device end with it."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


class Event:
    """A point in a stream that others wait for."""

    @property
    def handle(self) -> int:
        return _own_handle("event")

    def record(self, qd_stream: Stream | None = None) -> None:
        """What the device does from here on comes after what stands in the stream."""
        _join(qd_stream)

    def wait(self, qd_stream: Stream | None = None) -> None:
        """What is put into the stream from here on comes after what the device has been asked for."""
        _join(qd_stream)

    def synchronize(self) -> None:
        """Waits for it."""
        runtime.sync()

    def destroy(self) -> None:
        """Accepted; there is nothing to end."""

    def __enter__(self) -> Event:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


def create_stream() -> Stream:
    """A stream in the order of the device: kernels in several of them run one after the other."""
    return Stream()


def create_event() -> Event:
    """An event for any stream."""
    return Event()


def handle_of(stream: Any) -> int | None:
    """Of a stream of ours, of PyTorch, CuPy or any other library, or of a number; None: that of the device."""
    if stream is None or isinstance(stream, Stream):
        return None if stream is None else stream._handle
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise BadArgument(f"{stream!r} is no stream; pass a `qd.Stream`, a stream of PyTorch or CuPy, or a handle as an "
                          "integer") from None


def _use(handle: int | None) -> None:
    if handle is None:
        runtime.device().use_own_stream()
    else:
        runtime.device().use_stream(handle)


@contextmanager
def queued(stream: Any) -> Iterator[None]:
    """What is launched here stands in a stream."""
    handle = handle_of(stream)
    if handle is None or handle == _chosen or handle == 0 and runtime.shares_memory():
        yield
        return
    if state.capture is not None:
        raise CannotCapture("a graph is replayed in one stream: leave `qd_stream` out, and call `qd.use_stream` before `replay`")
    _use(handle)
    try:
        yield
    finally:
        _use(handle)    # tensors bring the stream of their library, which it waits for
        _use(_chosen)


def _join(stream: Stream | None) -> None:
    with queued(stream):
        pass


class use_stream:
    """From here on, on all threads, or inside of a `with`, work stands in a stream of the caller: after what the caller has put
    there, and after what the device has been asked for. None: in that of the device. The stream must live so long."""

    def __init__(self, stream: Any) -> None:
        global _chosen
        self.before, handle = _chosen, handle_of(stream)
        if handle is not None or _chosen is not None:
            _use(handle)
        _chosen = handle

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        global _chosen
        if _chosen != self.before:
            _chosen = self.before
            _use(_chosen)


@contextmanager
def stream_parallel() -> Iterator[None]:
    """In a kernel: loops that other systems run in streams of their own. Here they run one after the other."""
    yield


graph_parallel = graph_parallel_context = stream_parallel
