"""Arrays of NumPy as arguments: copied before a launch, and back after it, if nothing is lost by that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.errors import BadArgument
from costate.lang.base import runtime

if TYPE_CHECKING:
    from costate.lang.launch.arguments import Values
    from costate.lang.launch.specialisation import Specialisation

MOST_WORK = 1000   # of NumPy, to tell whether arrays with gaps have an element in common


def check(found: Specialisation, values: Values, args: list[Any]) -> None:
    """Refuses what the kernel writes where it cannot be written, or where another argument has the same memory."""
    hosts = values.hosts
    for k in found.written:
        known = hosts.get(id(args[k]))
        if known and not known[1].flags.carray:
            _check_writable(found, k, known[1])
    if values.tensors or values.outside or any(host.base is not None for _, host in hosts.values()):
        _check_apart(found, values, args)   # else each owns its memory


def _check_apart(found: Specialisation, values: Values, args: list[Any]) -> None:
    hosts = [values.hosts.get(id(a), _NO_HOST)[1] for a in args]
    for k in found.written:
        for j, other in enumerate(hosts):
            if j == k or other is None and hosts[k] is None:
                continue    # the launch itself knows
            if _in_common(_memory_of(args[k], hosts[k], values), _memory_of(args[j], other, values)):
                _refuse(found, f"{_name(found, k)} and {_name(found, j)} have memory in common, and it is written; pass two "
                               "arrays")


_NO_HOST = None, None


def _memory_of(argument: object, host: np.ndarray[Any, Any] | None, values: Values) -> np.ndarray[Any, Any] | None:
    """The elements of an array on the host, or None."""
    if host is not None:
        return host
    for tensor in values.tensors.values():
        if argument is tensor:
            return tensor.detach().numpy() if tensor.device.type == "cpu" else None
    if not isinstance(argument, _core.Array):
        return None
    return argument.numpy() if runtime.shares_memory() else None


def _in_common(one: Any, other: Any) -> bool:
    if one is None or other is None or not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _check_writable(found: Specialisation, k: int, array: np.ndarray[Any, Any]) -> None:
    if not array.flags.writeable:
        _refuse(found, f"{_name(found, k)} is an array of NumPy that cannot be written, and the kernel writes it; pass "
                       "`np.array(x)`, a copy")
    if not array.flags.c_contiguous and _repeats(array):
        _refuse(found, f"{_name(found, k)} is an array of NumPy whose elements share memory with each other, and the kernel "
                       "writes it; pass `np.array(x)`, a copy")


def _repeats(array: np.ndarray[Any, Any]) -> bool:
    """Whether elements of an array may lie in the same place."""
    reach = array.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def _name(found: Specialisation, k: int) -> str:
    return f"`{found.names[k] or 'an argument'}`"


def _refuse(found: Specialisation, text: str) -> None:
    raise BadArgument(f"kernel `{found.name}`: {text}")
