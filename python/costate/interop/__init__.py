"""Arrays of other frameworks as arguments of kernels, without copies."""

from __future__ import annotations

from .. import _core, errors

from costate.lang.base import runtime


def memory_kind() -> str:
    """Whose memory kernels use: that of the host, ``cpu``, or that of a device."""
    return "cpu" if runtime.shares_memory() else runtime.device().name


def device_for(kind: str) -> _core.Device:
    """The device that `init` has chosen, which must use memory of this kind: ``cpu`` or ``cuda``."""
    device: _core.Device = runtime.device()
    own = memory_kind()
    if own == kind:
        return device
    way = (f"move it with `.to(\"{own}\")`, or choose another device" if own in ("cpu", "cuda") else
           "that device uses its own memory only: pass tensors to kernels of `@kernel` or to `torch_function`, which copy them")
    raise errors.BadArgument(f"memory on `{kind}` was given to kernels that run on `{device.name}`; {way}")
