"""`init`, devices and options."""

from __future__ import annotations

import enum
import numbers
import os
import random as _random
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from costate import _core
from costate.errors import NoDevice, QuadrantsRuntimeError
from costate.lang.base import dtypes, environment, inert, profiling, progress
from costate.lang.base import options as option_values
from costate.lang.base.hooks import Hooks
from costate.lang.base.threads import lock

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


class Arch:
    """A kind of device, by its name or by the number that it has in Quadrants."""

    _NUMBERS = dict(x64=0, arm64=1, python=3, cuda=4, metal=5, amdgpu=7, vulkan=8)
    #: `simt.block` and its like: what kernels for GPUs say, in modules that are not known here.
    parts: dict[str, Any] = {}

    def __init__(self, name: str | int) -> None:
        if isinstance(name, numbers.Integral):
            found = [one for one, number in self._NUMBERS.items() if number == name]
            if not found:
                raise ValueError(f"{name} is not the number of a kind of device; these are {self._NUMBERS}")
            name = found[0]
        self.name = str(name)

    @property
    def value(self) -> int:
        """The number that this kind of device has in Quadrants."""
        if self.name not in self._NUMBERS:
            raise ValueError(f"`{self.name}` has no number in Quadrants; use its name")
        return self._NUMBERS[self.name]

    def __int__(self) -> int:
        return self.value

    def __reduce__(self) -> tuple[type[Arch], tuple[str]]:
        return Arch, (self.name,)

    def __repr__(self) -> str:
        return f"Arch.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arch) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __getattr__(self, name: str) -> Any:
        if self.name == "simt" and name in Arch.parts:
            return Arch.parts[name]
        raise AttributeError(f"a device has no attribute `{name}`")


# By kind, the device; None: there are none yet.
_DEVICE: dict[str, str | None] = dict(x64="cpu", arm64="cpu", cuda="cuda", vulkan="vulkan", metal="metal", amdgpu="hip", opengl=None, gles=None,
               dx11=None, simt="simt", python="cpu")
x64, arm64, cuda, vulkan, metal, amdgpu, opengl, gles, dx11, simt, python = map(Arch, _DEVICE)
for _arch in (x64, arm64, cuda, vulkan, metal, amdgpu, opengl, python):
    setattr(Arch, _arch.name, _arch)
cpu = arm64 if os.uname().machine in ("aarch64", "arm64") else x64
gpu = [cuda, amdgpu, metal, vulkan]

_NAMES = {*_DEVICE, "cpu", "gpu"}
#: A kind of device, or several in the order of preference.
Wanted: TypeAlias = "Arch | str | Sequence[Arch | str]"


class Config:
    """The options of `init`. Unused ones are kept as they were given."""

    defaults: dict[str, Any] = dict(
        arch=None, default_fp=dtypes.f32, default_ip=dtypes.i32, default_up=dtypes.u32, debug=False,
        check_out_of_bound=False, fast_math=False, deterministic=False, find_nan=False,
        lanes=0, random_seed=0, cpu_max_num_threads=0, device_memory_GB=None, device_memory_fraction=None,
        offline_cache=True, offline_cache_file_path="", offline_cache_max_size_of_files=0,
        ad_stack_experimental_enabled=None, ad_stack_size=0, tape_budget=None, gradients="checked", progress=None,
        kernel_profiler=False)
    accepted = set(inert.DEFAULTS)

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(self.defaults)
        self.__dict__.update(options)

    if TYPE_CHECKING:
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name in Config.accepted:
            return None
        raise AttributeError(f"`init` has no option `{name}`")

    @classmethod
    def of_environment(cls) -> dict[str, Any]:
        """The options that variables of the environment can give, with their defaults."""
        numbers_ = dict(device_memory_GB=0.0, device_memory_fraction=0.0, ad_stack_experimental_enabled=False,
                        progress=False)
        return {k: v for k, v in {**inert.DEFAULTS, **cls.defaults, **numbers_}.items() if k not in ("arch", "_test_mode")}

    @classmethod
    def names(cls) -> set[str]:
        return cls.accepted | set(cls.defaults)


class Runtime:
    """What `init` has set up."""

    def __init__(self, config: Config, device: _core.Device | None = None) -> None:
        self.config = config
        self.opened = device
        self.shared: bool | None = None
        self.compiled = 0     # kernels, of all types and template arguments

    @property
    def device(self) -> _core.Device:
        if self.opened is None:
            with lock:
                if self.opened is None:
                    self.opened = open_device(self.config)
                    _core.set_default_device(self.opened)
        return self.opened

    def kernel_options(self, own: dict[str, Any]) -> _core.KernelOptions:
        """Those of `init`, and of a kernel what it says itself."""
        c = self.config
        all_of_them = dict(debug=c.debug or c.check_out_of_bound, deterministic=c.deterministic, fast_math=c.fast_math,
                           find_nan=c.find_nan, lanes=c.lanes, tape_budget=c.tape_budget, gradients=c.gradients)
        all_of_them.update(own)
        gradients = getattr(_core.Gradients, str(all_of_them.pop("gradients") or "checked").capitalize())
        lanes, budget = int(all_of_them.pop("lanes")), option_values.bytes_in(all_of_them.pop("tape_budget"))
        return _core.KernelOptions(**{name: bool(value) for name, value in all_of_them.items()}, lanes=lanes,
                                   tape_budget=budget, gradients=gradients)


def device_options(config: Config) -> dict[str, Any]:
    """Those of `init` that are the device's."""
    options: dict[str, Any] = {}
    if config.cpu_max_num_threads:
        options["threads"] = int(config.cpu_max_num_threads)
    if config.device_memory_GB:
        options["memory_limit"] = int(config.device_memory_GB * (1 << 30))
    if config.tape_budget and config.arch is not None and _DEVICE[config.arch.name] != "cpu":
        options["tape_budget"] = option_values.bytes_in(config.tape_budget)
    return options


def open_device(config: Config) -> _core.Device:
    """The CPU, unless COSTATE_DEVICE names another one."""
    options = device_options(config)
    if config.arch is None or _DEVICE[config.arch.name] == "cpu":
        if os.environ.get("COSTATE_DEVICE") and not options:
            return _core.Device.best()
    return _core.Device.open(_device_name(config.arch or cpu) or "cpu", **options)


_runtime: Runtime | None = None


def runtime() -> Runtime:
    """The current runtime; `init()` with its defaults if there is none."""
    return _runtime or _first()


def _first() -> Runtime:
    with lock:
        if _runtime is None:
            _configure(None, None, None, True, {})
        assert _runtime is not None
        return _runtime


def current_config() -> Config | None:
    """The options of `init`, or None before it."""
    return _runtime.config if _runtime is not None else None


def device() -> _core.Device:
    """The device of `init`; safe to use from several threads."""
    return runtime().device


def statistics() -> _core.Statistics:
    """What the device has done: launches, copies and others."""
    return device().statistics()


def reset_statistics() -> None:
    """Counts from 0 on."""
    device().reset_statistics()


def shares_memory() -> bool:
    """Whether kernels run in the memory of the host."""
    r = runtime()
    if r.shared is None:
        r.shared = r.device.name in ("cpu", "simt")
    return r.shared


def arch_of(name: str) -> Arch:
    return cpu if name == "cpu" else Arch(name)


def _device_name(arch: Arch) -> str | None:
    """Of the device of this kind that the environment chooses; None: there are none."""
    name = _DEVICE.get(arch.name)
    if name == "vulkan":
        chosen = os.environ.get("COSTATE_DEVICE", "")
        number = os.environ.get("QD_VISIBLE_DEVICE", os.environ.get("TI_VISIBLE_DEVICE"))
        return chosen if chosen.startswith("vulkan:") else f"vulkan:{number}" if number else "vulkan"
    return name


def _wanted(arch: Wanted) -> list[tuple[Arch, str | None]]:
    """The requested kinds of device in order, each with the name of its device."""
    if arch is gpu or arch == "gpu":
        named = _device_name(vulkan)
        return [(cuda, "cuda"), (amdgpu, "hip"), (vulkan, named if named and ":" in named else "gpu")]
    if isinstance(arch, Arch):
        return [(arch, _device_name(arch))]
    if not isinstance(arch, str):
        return [one for part in arch for one in _wanted(part)]
    kind, _, which = arch.partition(":")
    return [(arch_of(kind), arch if which else _device_name(arch_of(kind)))]


def _chosen_arch(arch: Wanted | None, config: Config, enable_fallback: bool) -> tuple[Arch, _core.Device | None]:
    """The first of the requested kinds of device that is here."""
    if arch is None:
        return cpu, None
    wanted, reasons = _wanted(arch), list[str]()
    for kind, name in wanted:
        if name == "cpu":
            return kind, None
        try:
            if name is None:
                raise NoDevice(f"there are no devices of the kind `{kind.name}` yet")
            return kind, _core.Device.open(name, **device_options(config))
        except NoDevice as error:
            reasons.append(str(error))
    kinds, why = [kind for kind, _ in wanted], "; ".join(dict.fromkeys(reasons))
    if not enable_fallback:
        raise NoDevice(f"none of {[kind.name for kind in kinds]} is here: {why}; use arch=cpu, or enable_fallback=True")
    warnings.warn(f"Arch={kinds} is not supported, falling back to {cpu}: {why}", stacklevel=4)
    return cpu, None


def init(arch: Wanted | None = None, default_fp: DataType | type | None = None, default_ip: DataType | type | None = None,
         enable_fallback: bool = True, **options: Any) -> None:
    """Chooses the device and the options of all kernels, and forgets what was before.

    `arch`: `cpu`, `gpu`, `cuda`, `amdgpu` (by HIP), `vulkan`, `metal`, or a list of them in order of
    preference; what is not there falls back to the CPU with a warning, or is `NoDevice` with
    `enable_fallback=False`. One of several devices of Vulkan is named by "vulkan:1" or "vulkan:part of
    its name", or by the environment variable QD_VISIBLE_DEVICE=1. `gpu` is CUDA, else HIP, else a GPU
    of Vulkan, and no driver of it for the CPU.
    `default_fp`, `default_ip`: the types of literals. `debug`: checks indices, assertions and
    races. `random_seed`, `cpu_max_num_threads`, `device_memory_GB`, `deterministic`, `fast_math`,
    `find_nan`. `lanes`: how many work items a CPU runs as lanes of a vector, 0 for what pays.
    `tape_budget`: how much memory the tapes of a gradient may take, in bytes or as "64MB"; loops run
    again what does not fit. `gradients="unchecked"`: `k.grad` takes memory as it is, where it would compare.
    `ad_stack_size=N` refuses gradients of loops that need more than N iterations of their
    values. `offline_cache=False` compiles everything; `offline_cache_file_path` and
    `offline_cache_max_size_of_files` (bytes) set where compiled kernels are kept and how much of
    them. `progress`: True shows how long work goes on, False never does; without, on a terminal only.
    `kernel_profiler`: keeps times for `profiler.print_kernel_profiler_info()`. Other options of Quadrants and Taichi are accepted and have no effect.
    """
    option_values.check({**options, "enable_fallback": enable_fallback})
    option_values.check_arch(arch, _NAMES)
    with lock:
        reset()
        known = Config.names()
        for name in [n for n in options if n not in known]:
            warnings.warn(f"unknown option `{name}` of init is ignored", stacklevel=2)
            del options[name]
        _configure(arch, default_fp, default_ip, enable_fallback, options)


def _arch_of_environment(arch: Wanted | None) -> Wanted | None:
    """What QD_ARCH names if no `arch` is given, else `arch`; TI_ARCH goes first."""
    name, text = environment.variable("arch")
    if not text:
        return arch
    if text.partition(":")[0] not in _NAMES:
        raise QuadrantsRuntimeError(f"the environment variable {name} is {text!r}, which is no kind of device; use cpu, "
                                    "gpu, cuda, amdgpu, vulkan, metal, simt or python")
    if arch is None or name.startswith("TI_"):
        return text
    warnings.warn(f"the environment variable {name}={text} has no effect: `init` is given `arch`", stacklevel=4)
    return arch


def _configure(arch: Wanted | None, default_fp: DataType | type | None, default_ip: DataType | type | None, enable_fallback: bool,
               options: dict[str, Any]) -> None:
    global _runtime
    options = {k: v for k, v in dict(options, default_fp=default_fp, default_ip=default_ip).items() if v is not None}
    options = environment.options(Config.of_environment(), options)
    option_values.check(options)
    wanted = _arch_of_environment(arch)
    config = Config(**options)
    config.arch, opened = _chosen_arch(wanted, config, enable_fallback)
    dtypes.defaults.fp = config.default_fp = dtypes.cook(config.default_fp)
    dtypes.defaults.ip = config.default_ip = dtypes.cook(config.default_ip)
    if not dtypes.defaults.fp.is_float or not dtypes.defaults.ip.is_int:
        raise QuadrantsRuntimeError("default_fp is a float type and default_ip an integer type")
    dtypes.defaults.given_up = up = dtypes.cook(options["default_up"]) if options.get("default_up") else None
    if up is not None and up.kind != "u":
        raise QuadrantsRuntimeError("default_up is an unsigned integer type")
    limit = int(config.offline_cache_max_size_of_files)
    _core.use_cache(enabled=bool(config.offline_cache),
                    folder=os.path.expanduser(str(config.offline_cache_file_path)),
                    **({"limit": limit} if limit else {}))
    progress.watch(config.progress)
    profiling.keep(config.kernel_profiler)
    profiling.keep_for_environment()
    _core.set_default_device(opened)
    _runtime = Runtime(config, opened)
    on_init()


#: What happens after `init`, and when all is forgotten.
on_init, on_reset = Hooks(), Hooks()
#: What happens in front of `sync`.
before_sync = Hooks()

generation = 0


def reset() -> None:
    """Forgets fields, ndarrays, compiled kernels and options."""
    global _runtime, generation
    with lock:
        generation += 1
        on_reset()
        _core.set_default_device(None)
        _runtime = None
        dtypes.defaults.fp, dtypes.defaults.ip, dtypes.defaults.given_up = dtypes.f32, dtypes.i32, None


def sync() -> None:
    """Waits until all launches are done."""
    current = _runtime
    if current is not None and current.opened is not None:
        before_sync()
        current.opened.synchronize()


synchronize = sync


def new_seed() -> int:
    return _random.SystemRandom().getrandbits(31)


class Extension(enum.Enum):
    """Abilities of devices, by the names of Taichi and Quadrants."""

    sparse, quant, mesh, quant_basic, data64, adstack, bls, assertion, extfunc, dynamic_index = range(
        10)


extension = Extension


def is_extension_enabled(ext: Extension) -> bool:
    """Whether kernels may use `ext` on the device of `init`."""
    config = runtime().config
    if ext == Extension.adstack and config.ad_stack_experimental_enabled is False:
        return False
    return is_extension_supported(config.arch, ext)


def is_extension_supported(arch: Arch, ext: Extension) -> bool:
    """Whether kernels on `arch` may use `ext`."""
    return ext in (Extension.sparse, Extension.adstack, Extension.data64, Extension.assertion, Extension.bls,
                   Extension.dynamic_index)


def get_host_arch_list() -> list[Arch]:
    """The kinds of CPU."""
    return [cpu]


def is_arch_supported(arch: Arch, use_gles: bool = False) -> bool:
    """Whether there is such a device here."""
    name = _device_name(arch)
    if name is None:
        return False
    try:
        _core.Device.open(name)
        return True
    except NoDevice:
        return False
