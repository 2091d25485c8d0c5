"""What a program spends its time on: launches, compilations, copies and waits, as a table and as a picture.

The functions with `kernel_profiler` in their names are those of Quadrants and Taichi, after `init(kernel_profiler=True)`.
"""

from __future__ import annotations as _annotations

import os as _os
from types import TracebackType as _TracebackType
from typing import Any as _Any

from costate import _core
from costate.absent import message as _message
from costate.lang.base import profiling as _profiling
from costate.lang.base import runtime as _runtime

ProfileEntry = _core.ProfileEntry
span = _profiling.span


class Profile:
    """Times what all threads and devices do, until `end` or the end of `with`. Without one nothing is timed.

    `file`: for a picture, which ui.perfetto.dev and chrome://tracing show. `BadFile` if it cannot be written.
    """

    def __init__(self, file: str | _os.PathLike[str] | None = None) -> None:
        self._core = _core.Profile(_os.fspath(file) if file is not None else "")

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: _TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Nothing more is timed, and the file is complete."""
        self._core.end()

    def entries(self) -> list[ProfileEntry]:
        """What there is so far, by kind and name, the longest first; waits for GPUs."""
        return self._core.entries()

    def report(self) -> str:
        """The same as a table."""
        return self._core.report()


class KernelProfilerQueryResult:
    """Times of a kernel, in milliseconds."""

    def __init__(self, entries: list[ProfileEntry]) -> None:
        self.counter = sum(one.count for one in entries)
        self.min = 1e3 * min((one.least for one in entries), default=0.0)
        self.max = 1e3 * max((one.most for one in entries), default=0.0)
        self.avg = 1e3 * sum(one.seconds for one in entries) / max(self.counter, 1)


def _kept() -> _core.Profile:
    if _profiling.kept is None:
        raise RuntimeError("no times are kept: call `init(kernel_profiler=True)` before, or use `with profiler.Profile():`")
    return _profiling.kept


def _kernels() -> list[ProfileEntry]:
    return [one for one in _kept().entries() if one.kind == "launch"]


def print_kernel_profiler_info(mode: _Any = "count") -> None:
    """Prints what has been timed since `init(kernel_profiler=True)`."""
    print(_kept().report(), end="")


def query_kernel_profiler_info(name: str) -> KernelProfilerQueryResult:
    """Times of the launches of a kernel, without its gradients."""
    return KernelProfilerQueryResult([one for one in _kernels() if one.name == name])


def get_kernel_profiler_total_time() -> float:
    """Seconds that launches took."""
    return sum(one.seconds for one in _kernels())


def clear_kernel_profiler_info() -> None:
    """Forgets what has been timed."""
    _kept()
    _profiling.keep(True)


def print_scoped_profiler_info() -> None:
    """Prints the same as `print_kernel_profiler_info`, where the spans of the program stand as `work`."""
    print_kernel_profiler_info()


def print_memory_profiler_info() -> None:
    """Prints what memory arrays and tapes take."""
    device = _runtime.device()
    print(f"{device.current_bytes} bytes, at most {device.peak_bytes} of {device.memory_limit}")


def _nothing(*_: _Any, **__: _Any) -> None:
    """Accepted; has no effect."""


clear_scoped_profiler_info = set_kernel_profiler_toolkit = set_kernel_profiler_metrics = _nothing


def __getattr__(name: _Any) -> None:
    raise AttributeError(_message("costate.profiler", name))
