"""Arrays of other frameworks as arguments of kernels, without copies."""

from __future__ import annotations

from .. import _core, errors
from ..lang import runtime


def device_for(kind: str) -> _core.Device:
    """The device that `init` has chosen, which must use memory of this kind: ``cpu`` or ``cuda``."""
    device = runtime.device()
    own = "cuda" if device.name == "cuda" else "cpu"
    if own != kind:
        raise errors.BadArgument(
            f"memory on `{kind}` was given to kernels that run on `{device.name}`; move it "
            f"with `.to(\"{own}\")`, or choose another device")
    return device
