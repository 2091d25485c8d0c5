"""Costate: parallel kernels and their derivatives, with the names of Quadrants and Taichi.

    import costate as qd

    qd.init(arch=qd.gpu)
    x = qd.field(qd.f32, shape=16, needs_grad=True)

    @qd.kernel
    def energy() -> None: ...
"""

import importlib as _importlib
import os as _os

import numpy as _np

from . import _core

_core._set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
__version__ = _core.__version__

from costate import errors
from costate.errors import *  # noqa: F401,F403
from costate.lang.runtime import (amdgpu, arm64, cpu, cuda, device, dx11, extension, gles, get_host_arch_list, gpu,
                                  init, is_arch_supported, is_extension_enabled, is_extension_supported, metal, opengl,
                                  python, reset, simt, statistics, sync, synchronize, vulkan, x64)
from costate.lang.dtypes import (double, f16, f32, f64, float16, float32, float64, half, i8, i16, i32,
                                 i64, int8, int16, int32, int64, integer_types, real_types, u1, u8,
                                 u16, u32, u64, uint1, uint8, uint16, uint32, uint64)
from costate.lang.ops import (FUNCTIONS as _FUNCTIONS, abs, atan2, bit_cast, bit_not, bit_sar, bit_shl, bit_shr, cast,
                              ceil, clz, ffs, floor, fma, frexp, hypot, ifte, inv, logical_and, logical_not,
                              logical_or, max, min, one, popcnt, pow, raw_div, raw_mod, rcp, round, select, sgn,
                              sqrt, stop_gradient, trunc, zero)
from costate.lang.matrix import Matrix, Vector
from costate.lang.annotations import template
from costate.lang.calls import grouped, ndrange, static
from costate.lang.atomics import (atomic_add, atomic_and, atomic_cas, atomic_exchange, atomic_max, atomic_min, atomic_mul,
                                  atomic_or, atomic_sub, atomic_xor)
from costate.lang.random import randn, random
from costate.lang.directives import (assume_in_range, block_dim, block_local, cache_read_only, loop_config,
                                     loop_unique, mesh_local, no_activate, parallelize, serialize,
                                     static_assert, static_print)
from costate.lang.sparse import activate, append, deactivate, is_active, length, rescale_index
from costate.lang.decompositions import eig, polar_decompose, solve, svd, sym_eig
from costate.lang.field import Field, Layout, MatrixField, ScalarField, VectorField, field
from costate.lang.snode import FieldsBuilder, SNode, axes, deactivate_all_snodes, root
from costate.lang.ndarray import (Backend, MatrixNdarray, MatrixTensor, Ndarray, ScalarNdarray, Tensor,
                                  VectorNdarray, VectorTensor, ndarray, tensor, wrap)
from costate.lang.buffer_view import BufferView
from costate.lang.func import func, pyfunc, real_func
from costate.lang.kernel import Kernel, data_oriented, kernel, pure
from costate.lang.graph_loops import graph_do_while
from costate.lang.perf_dispatch import perf_dispatch
from costate.lang.small_funcs import make_spd, volatile_load
from costate.lang.struct import Struct, StructField, dataclass
from costate.lang.axes import *  # noqa: F401,F403
from costate import ad, aliases, lang, math, types
from costate.ad import stop_grad
from costate._logging import (CRITICAL, DEBUG, ERROR, INFO, TRACE, WARN, critical, debug, error, info,
                              is_logging_effective, set_logging_level, trace, warn, warning)

from costate.lang import impl as _impl
from costate.lang import runtime as _runtime
lang.impl = _impl
globals().update(_FUNCTIONS)
indices = axes
Template = template
Tape, FwdMode = ad.Tape, ad.FwdMode
clear_all_gradients, grad_replaced, grad_for, no_grad = (ad.clear_all_gradients, ad.grad_replaced,
                                                         ad.grad_for, ad.no_grad)
AOS, SOA = Layout.AOS, Layout.SOA
x86_64 = x64
aliases.install()


def rgb_to_hex(c):
    """0xRRGGBB of three numbers between 0 and 1, or arrays of them."""
    r, g, b = (_np.clip(_np.asarray(v) * 255, 0, 255).astype(int) for v in c)
    return (r << 16) + (g << 8) + b


def hex_to_rgb(color):
    """Three numbers between 0 and 1 of 0xRRGGBB."""
    return ((color >> 16) & 255) / 255, ((color >> 8) & 255) / 255, (color & 255) / 255


def __getattr__(name):
    if name == "torch_function":  # imports PyTorch
        from costate.interop.torch import torch_function
        return torch_function
    if name in ("algorithms", "graph", "profiler", "tools"):
        return _importlib.import_module(f"costate.{name}")
    if name == "cfg":
        return _runtime.current_config()
    from costate.absent import message
    raise AttributeError(message("costate", name))
