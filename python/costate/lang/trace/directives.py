"""Words of the kernel language that compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costate.errors import QuadrantsCompilationError, QuadrantsTypeError
from costate.lang.base.marks import mark
from costate.lang.data.storage import Storage
from costate.lang.trace.arrays import TracedArray, traced
from costate.lang.values import ops
from costate.lang.values.builder import current, require
from costate.lang.values.describe import describe
from costate.lang.values.expr import Expr


def loop_config(*, block_dim: Any = None, serialize: bool = False, parallelize: Any = None,
                block_dim_adaptive: bool = True, bit_vectorize: bool = False, name: Any = None,
                checkpoints: Any = None) -> None:
    """About the loop that follows: `serialize=True` runs it in order; of `checkpoints=k` states of it, at most, its
    gradient runs it again; on GPUs blocks of a parallel one have `block_dim` work items. Others are accepted."""
    hint: dict[str, Any] = {"serialize": serialize}
    if block_dim is not None:
        hint["block_dim"] = _block_size(block_dim)
    if checkpoints is not None:
        hint["checkpoints"] = _number_of_checkpoints(checkpoints)
    require("loop_config").loop_hint = hint


def _number_of_checkpoints(number: Any) -> Any:
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise QuadrantsTypeError(f"`checkpoints` is a number of Python, like 100, not {describe(number)}")
    if int(number) < 1:
        raise QuadrantsTypeError(f"a loop cannot have {int(number)} checkpoints; give a number above 0, or leave "
                                 "`checkpoints` out")
    return int(number)


def _block_size(number: Any) -> int:
    if isinstance(number, Expr):
        raise QuadrantsTypeError("`block_dim` is a value of the kernel, and has to be known while the kernel is compiled; a variable that holds it is "
                                 "assigned by `n = ti.static(...)`")
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise QuadrantsTypeError(f"`block_dim` is a number of Python, like 128, not {describe(number)}")
    if not 1 <= int(number) <= 1024:
        raise QuadrantsTypeError(f"blocks of {int(number)} work items: `block_dim` is a number from 1 to 1024")
    return int(number)


def block_dim(number: Any) -> None:
    """Blocks of the parallel loop that follows have so many work items, on GPUs."""
    require("block_dim").loop_hint = {"block_dim": _block_size(number)}


def block_local(*_: Any) -> None:
    """Accepted: sums into common elements are added up in registers first."""


def _nothing(name: str) -> Callable[..., Any]:
    def function(*_: Any) -> None:
        pass
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Accepted; has no effect."
    return function


parallelize = _nothing("parallelize")
mesh_local = _nothing("mesh_local")
no_activate = _nothing("no_activate")
cache_read_only = _nothing("cache_read_only")


def serialize() -> None:
    """The loop that follows runs in order."""
    require("serialize").loop_hint = {"serialize": True}


def assume_in_range(value: Any, base: Any, low: Any, high: Any) -> Any:
    """value"""
    return value


def loop_unique(value: Any, covers: Any = None) -> Any:
    """value"""
    return value


def static_assert(condition: bool, message: Any = None) -> None:
    """Refuses to compile the kernel unless the condition holds."""
    if not condition:
        raise QuadrantsCompilationError("Static assertion failed"
                                        + (f": {message}" if message else ""))


def static_print(*args: Any, **options: Any) -> None:
    """Prints while the kernel is compiled."""
    builder = current()
    if builder is None or not builder.dry:
        print(*args, **options)


def stop_grad(x: Any) -> Any:
    if current() is None:
        return ops.stop_gradient(x)
    builder = require("stop_grad")
    if isinstance(x, Storage):
        x = traced(builder, x)
    if isinstance(x, TracedArray):
        builder.stopped.append(x)
        return None
    value = x.get() if hasattr(x, "get") and hasattr(x, "set") else x
    return ops.stop_gradient(value)


mark(stop_grad, changes_arrays=False)
