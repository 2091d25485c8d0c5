"""Atomic operations on elements of arrays; on local variables they are plain operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costate.errors import QuadrantsSyntaxError
from costate.lang.base.marks import mark
from costate.lang.trace.places import is_shared
from costate.lang.values import ops
from costate.lang.values.describe import describe


def _atomic(name: str, op: str) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        if is_shared(x):
            return x.fetch(op, _read(y))
        if hasattr(x, "update"):
            return x.update(op, _read(y))
        raise QuadrantsSyntaxError(f"cannot use a non-writable target as the first operand of `{name}`: it changes a variable or an "
                                   f"element of an array, not {describe(x)}")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"x becomes {name.split('_')[1]} of x and y, atomically; returns the old x."
    return mark(function, by_reference=True)


def _read(y: Any) -> Any:
    return y.get() if hasattr(y, "get") and hasattr(y, "set") else y


atomic_add = _atomic("atomic_add", "add")
atomic_sub = _atomic("atomic_sub", "sub")
atomic_min = _atomic("atomic_min", "min")
atomic_max = _atomic("atomic_max", "max")
atomic_and = _atomic("atomic_and", "and")
atomic_or = _atomic("atomic_or", "or")
atomic_xor = _atomic("atomic_xor", "xor")


def atomic_exchange(x: Any, y: Any) -> Any:
    """x becomes y, atomically; returns the old x."""
    return x.exchange(_read(y))


def atomic_cas(x: Any, expected: Any, desired: Any) -> Any:
    """x becomes `desired` if it is `expected`, atomically; returns the old x."""
    return x.compare_exchange(_read(expected), _read(desired))


for _function in (atomic_exchange, atomic_cas):
    mark(_function, by_reference=True)


def atomic_mul(x: Any, y: Any) -> Any:
    """x becomes x * y, atomically; returns the old x. Has a derivative where x is an element that
    no other work item uses."""
    if is_shared(x):
        return x.fetch("mul", _read(y))
    old = x.get()
    x.set(ops.mul(old, _read(y)))
    return old


mark(atomic_mul, by_reference=True)
