"""Costate: parallel kernels and their derivatives, with the names of Quadrants and Taichi.

    import costate as qd

    qd.init(arch=qd.gpu)
    x = qd.field(qd.f32, shape=16, needs_grad=True)

    @qd.kernel
    def energy() -> None: ...
"""

from __future__ import annotations as _annotations

import importlib as _importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

import numpy as _np

_flags = _sys.getdlopenflags()
_sys.setdlopenflags(_os.RTLD_LAZY)    # functions of the compiler are looked up when they are called first
try:
    from . import _core
finally:
    _sys.setdlopenflags(_flags)

_core._set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
__version__ = _core.__version__

from costate import errors
from costate.absent import message as _absent
from costate.errors import *  # noqa: F401,F403
from costate.lang.base.runtime import (amdgpu, arm64, cpu, cuda, device, dx11, extension, gles, get_host_arch_list,
                                       gpu, init, is_arch_supported, is_extension_enabled, is_extension_supported,
                                       metal, opengl, python, reset, reset_statistics, simt, statistics, sync, synchronize, vulkan, x64)
from costate.lang.base.streams import (Event, Stream, create_event, create_stream, graph_parallel, graph_parallel_context,
                                       stream_parallel, use_stream)
from costate.lang.base.dtypes import (double, f16, f32, f64, float16, float32, float64, half, i8, i16, i32, i64,
                                      int8, int16, int32, int64, integer_types, real_types, u1, u8, u16, u32, u64,
                                      uint1, uint8, uint16, uint32, uint64)
from costate.lang.values.ops import (FUNCTIONS as _FUNCTIONS, abs, atan2, bit_cast, bit_not, bit_sar, bit_shl,
                                     bit_shr, cast, ceil, clz, ffs, floor, fma, frexp, hypot, ifte, inv, logical_and,
                                     logical_not, logical_or, max, min, one, popcnt, pow, raw_div, raw_mod, rcp,
                                     round, select, sgn, sqrt, stop_gradient, trunc, zero)
from costate.lang.values.matrix import Matrix, Vector
from costate.lang.values import operators as _operators  # noqa: F401  which both kinds of values get
from costate.lang.data.annotations import ref, template
from costate.lang.data.ranges import grouped, ndrange, static
from costate.lang.trace.atomics import (atomic_add, atomic_and, atomic_cas, atomic_exchange, atomic_max, atomic_min,
                                        atomic_mul, atomic_or, atomic_sub, atomic_xor)
from costate.lang.values.random import randn, random
from costate.lang.trace.directives import (assume_in_range, block_dim, block_local, cache_read_only, loop_config,
                                           loop_unique, mesh_local, no_activate, parallelize, serialize,
                                           static_assert, static_print)
from costate.lang.trace.sparse import activate, append, deactivate, is_active, length, rescale_index
from costate.lang.values.decompositions import polar_decompose, solve, svd
from costate.lang.data.field import Field, Layout, MatrixField, ScalarField, VectorField, field
from costate.lang.data.snode import FieldsBuilder, SNode, axes, deactivate_all_snodes, root
from costate.lang.data.ndarray import (Backend, MatrixNdarray, MatrixTensor, Ndarray, ScalarNdarray, Tensor,
                                       VectorNdarray, VectorTensor, ndarray, tensor, wrap)
from costate.lang.data.buffer_view import BufferView
from costate.lang.trace.func import func, pyfunc, real_func
from costate.lang.launch.kernel import Kernel, data_oriented, kernel, pure
from costate.lang.launch.checkpoints import GraphStatus, checkpoint
from costate.lang.syntax.graph_loops import graph_do_while
from costate.lang.launch import copying as _copying  # noqa: F401  which fields get
from costate.lang.compat import (simt_block as _block, simt_grid as _grid, simt_subgroup as _subgroup,
                                 simt_warp as _warp)
from costate.lang.compat.small_funcs import eig, fns as _fns, make_spd, sym_eig, volatile_load
from costate.lang.data.struct import Struct, StructField
from costate.lang.trace.structs import dataclass
from costate.lang.data.axes import *  # noqa: F401,F403
from costate import ad, lang, math, types
from costate.lang.compat import later as _aliases
from costate.ad import stop_grad
if _TYPE_CHECKING:
    from costate.lang.launch.capture import Graph, capture
    from costate.lang.launch.perf_dispatch import perf_dispatch
    from costate._logging import (CRITICAL, DEBUG, ERROR, INFO, TRACE, WARN, critical, debug, error, info,
                                  is_logging_effective, set_logging_level, trace, warn, warning)

from costate.lang.base import runtime as _runtime
from costate.lang.trace.tiles import Tile16x16 as _Tile16x16, Tile32x32 as _Tile32x32, outer
setattr(math, "fns", _fns)
_runtime.Arch.parts.update(block=_block, grid=_grid, subgroup=_subgroup, warp=_warp, Tile16x16=_Tile16x16, Tile32x32=_Tile32x32)
globals().update(_FUNCTIONS)
indices = axes
Template = template
Tape, FwdMode = ad.Tape, ad.FwdMode
clear_all_gradients, grad_replaced, grad_for, no_grad = (ad.clear_all_gradients, ad.grad_replaced,
                                                         ad.grad_for, ad.no_grad)
cache_statistics, clear_cache = _core.cache_statistics, _core.clear_cache
AOS, SOA = Layout.AOS, Layout.SOA
x86_64 = x64


def rgb_to_hex(c: _Any) -> _Any:
    """0xRRGGBB of three numbers between 0 and 1, or arrays of them."""
    r, g, b = (_np.clip(_np.asarray(v) * 255, 0, 255).astype(int) for v in c)
    return (r << 16) + (g << 8) + b


def hex_to_rgb(color: _Any) -> _Any:
    """Three numbers between 0 and 1 of 0xRRGGBB."""
    return ((color >> 16) & 255) / 255, ((color >> 8) & 255) / 255, (color & 255) / 255


#: Of modules that are imported when they are asked for.
_LATER = {**dict.fromkeys(("CRITICAL", "DEBUG", "ERROR", "INFO", "TRACE", "WARN", "critical", "debug", "error", "info",
                           "is_logging_effective", "set_logging_level", "trace", "warn", "warning"), "costate._logging"),
          **dict.fromkeys(("Graph", "capture"), "costate.lang.launch.capture"),
          "perf_dispatch": "costate.lang.launch.perf_dispatch"}
__all__ = [_name for _name in globals() if not _name.startswith("_")] + list(_LATER)


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return getattr(_importlib.import_module(_LATER[name]), name)
    if name == "torch_function":  # imports PyTorch
        from costate.interop.torch import torch_function
        return torch_function
    if name in ("algorithms", "distributed", "graph", "linalg", "profiler", "sparse", "tools"):
        return _importlib.import_module(f"costate.{name}")
    if name == "_logging":
        return _importlib.import_module("costate._logging")
    if name == "cfg":
        return _runtime.current_config()
    raise AttributeError(_absent("costate", name))


_aliases.begin(_sys.modules[__name__], ad, lang, math, types)
