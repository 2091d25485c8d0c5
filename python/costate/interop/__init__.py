"""Arrays of other frameworks as arguments of kernels, without copies."""

from __future__ import annotations

from typing import Callable

from .. import _core

#: Gives the device of arrays that are made here; `init` may set another function.
current_device: Callable[[], _core.Device] = _core.Device.best


def device_for(kind: str) -> _core.Device:
    """The current device, which must use memory of this kind: ``cpu`` or ``cuda``."""
    device = current_device()
    own = "cuda" if device.name == "cuda" else "cpu"
    if own != kind:
        raise _core.BadArgument(
            f"memory on `{kind}` was given to kernels that run on `{device.name}`; move it "
            f"with `.to(\"{own}\")`, or choose another device")
    return device
