"""Arrays of other frameworks as arguments of kernels, without copies."""

from __future__ import annotations

from .. import _core
from ..lang import runtime

#: The device that `init` has chosen: of the arrays that are made here.
current_device = runtime.device


def device_for(kind: str) -> _core.Device:
    """The current device, which must use memory of this kind: ``cpu`` or ``cuda``."""
    device = current_device()
    own = "cuda" if device.name == "cuda" else "cpu"
    if own != kind:
        raise _core.BadArgument(
            f"memory on `{kind}` was given to kernels that run on `{device.name}`; move it "
            f"with `.to(\"{own}\")`, or choose another device")
    return device
