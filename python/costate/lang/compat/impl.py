"""What tests of Quadrants and Taichi ask of the insides of the package."""

from __future__ import annotations

from typing import Any

from costate.lang.base import declared, runtime
from costate.lang.data.annotations import template
from costate.lang.data.field import field
from costate.lang.data.ndarray import ndarray
from costate.lang.data.ranges import grouped, static
from costate.lang.data.snode import axes, root
from costate.lang.values import builder

_LANGUAGE = {"static": static, "grouped": grouped, "ndarray": ndarray, "field": field, "root": root, "axes": axes,
             "template": template}


def current_cfg() -> Any:
    """The options of `init`."""
    return runtime.runtime().config


class _Program:
    def config(self) -> Any:
        return runtime.runtime().config

    def get_device_caps(self) -> Any:
        return self

    def get(self, _: Any) -> Any:
        return 1

    def synchronize(self) -> None:
        runtime.sync()


class PyQuadrants:
    """What `init` has set up. Programs may replace its methods."""

    @property
    def prog(self) -> Any:
        return _Program()

    @property
    def default_fp(self) -> Any:
        return current_cfg().default_fp

    def get_num_compiled_functions(self) -> int:
        """How many kernels have been compiled since `init`: one for each combination of types and template arguments."""
        return runtime.runtime().compiled

    @property
    def default_ip(self) -> Any:
        return current_cfg().default_ip

    def materialize(self) -> None:
        """Is called after fields were declared, in front of the first use of any."""

    def clear(self) -> None:
        """Is called by `reset`."""

    sync = staticmethod(runtime.sync)


pyquadrants = PyQuadrants()


def get_runtime() -> PyQuadrants:
    """What `init` has set up."""
    return pyquadrants


@declared.before_use.add
def _materialize() -> None:
    pyquadrants.materialize()


@runtime.on_reset.add
def _clear() -> None:
    pyquadrants.clear()


def get_max_shared_memory_bytes(*, is_lowerbound_ok: bool = False) -> int:
    """What the device has for the `SharedArray`s of a block: 0 on the CPU, which has no blocks. `is_lowerbound_ok` changes nothing:
    the number is exact on every device."""
    return runtime.runtime().device.shared_memory


def inside_kernel() -> bool:
    """Whether a kernel is being compiled."""
    return builder.current() is not None


reset = runtime.reset


def default_cfg() -> Any:
    return current_cfg()


def __getattr__(name: Any) -> Any:
    """Taichi has much of its language here."""
    if name in _LANGUAGE:
        return _LANGUAGE[name]
    raise AttributeError(f"`lang.impl` has no `{name}`")


class Lib:
    """`_lib.core`, as far as it is asked for."""

    @property
    def core(self) -> Any:
        return self

    GGUI_AVAILABLE = False
    Arch = runtime.Arch

    @staticmethod
    def arch_name(arch: Any) -> Any:
        return arch.name

    class DeviceCapability:
        """Our devices have numbers of all types."""

        spirv_has_int8 = spirv_has_int16 = spirv_has_int64 = spirv_has_float16 = spirv_has_float64 = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("with_"):
            return lambda: runtime.is_arch_supported(runtime.Arch(name.removeprefix("with_")))
        raise AttributeError(f"`_lib.core` has no `{name}`")
