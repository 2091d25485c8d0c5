"""`ti.profiler`, whose names are here; no times are kept."""

from __future__ import annotations as _annotations

from typing import Any as _Any

from costate.absent import message


def _note() -> None:
    print("Costate keeps no times of kernels: measure with time.perf_counter() around launches and "
          "`sync()`; `kernel.report(...)` says what a gradient computes and saves")


def print_kernel_profiler_info(mode: _Any = "count") -> None:
    """Says how to measure instead."""
    _note()


def print_scoped_profiler_info() -> None:
    """Says how to measure instead."""
    _note()


def print_memory_profiler_info() -> None:
    """Says how to measure instead."""
    _note()


def _nothing(*_: _Any, **__: _Any) -> None:
    """Accepted; has no effect."""


clear_kernel_profiler_info = clear_scoped_profiler_info = _nothing
set_kernel_profiler_toolkit = set_kernel_profiler_metrics = _nothing


def _refuse(*_: _Any, **__: _Any) -> None:
    raise RuntimeError("Costate keeps no times of kernels: measure with time.perf_counter() around "
                       "launches and `sync()`")


query_kernel_profiler_info = get_kernel_profiler_total_time = _refuse


def __getattr__(name: _Any) -> None:
    raise AttributeError(message("costate.profiler", name))
