"""Modules by the names that they have in Quadrants and Taichi: `costate.lang.misc` and others."""

from __future__ import annotations

import platform
import sys
import types
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from costate import _logging, ad, errors, math
from costate import types as types_
from costate._core import __version__
from costate.lang.base import dtypes, enums, runtime, state, streams
from costate.lang.compat import exchange, impl, test_tools
from costate.lang.data import axes, buffer_view, clear, field, ndarray, ranges, snode, struct, triplets
from costate.lang.data import annotations as annotations_
from costate.lang.launch import kernel, perf_dispatch
from costate.lang.syntax import graph_loops
from costate.lang.trace import atomics, calls, func, structs, validation
from costate.lang.values import matrix, ops

_KERNELS = ("Func", "func", "pyfunc", "real_func", "Kernel", "kernel", "data_oriented")
_NDARRAYS = ("Ndarray", "ScalarNdarray", "VectorNdarray", "MatrixNdarray", "ndarray")

# name -> [(module of ours, its names; none: all public ones)]
_MODULES: dict[str, list[Any]] = {
    "_kernels": [(exchange, ())],
    "_lib": [],
    "_lib.utils": [],
    "_snode": [],
    "_snode.fields_builder": [(snode, ("FieldsBuilder",))],
    "_snode.snode_tree": [(snode, ("SNodeTree",))],
    "_tensor": [(ndarray, ("Backend", "tensor"))],
    "_tensor_wrapper": [(ndarray, ("Tensor", "VectorTensor", "MatrixTensor", "wrap"))],
    "_test_tools": [(test_tools, ("qd_init_same_arch",))],
    "_test_tools.dataclass_test_tools": [(test_tools, ("build_struct", "build_obj_tuple_from_type_dict"))],
    "_test_tools.load_kernel_string": [(test_tools, ("load_kernel_from_string", "import_kernel_from_file"))],
    "_test_tools.textwrap2": [(test_tools, ("dedent",))],
    "_test_tools.warnings_helper": [(test_tools, ("warn_once",))],
    "_version": [],
    "ad._ad": [(ad, ())],
    "experimental": [(func, ("real_func",))],
    "lang._dataclass_util": [],
    "lang._exceptions": [(errors, ())],
    "lang._fast_caching": [],
    "lang._kernel_types": [],
    "lang._ndarray": [(ndarray, _NDARRAYS)],
    "lang._ndrange": [(ranges, ("NDRange", "ndrange", "grouped"))],
    "lang._perf_dispatch": [(perf_dispatch, ("perf_dispatch", "PerformanceDispatcher"))],
    "lang._quadrants_callable": [],
    "lang._template_mapper": [],
    "lang.any_array": [(annotations_, ("NdarrayType",))],
    "lang.common_ops": [],
    "lang.enums": [(enums, ()), (field, ("Layout",))],
    "lang.exception": [(errors, ())],
    "lang.graph": [(graph_loops, ("graph_do_while",))],
    "lang.intrinsics": [],
    "lang.kernel_arguments": [(annotations_, ("template", "NdarrayType"))],
    "lang.kernel_impl": [(func, _KERNELS[:4]), (kernel, _KERNELS[4:])],
    "lang.matrix_ops": [(ops, ())],
    "lang.misc": [(runtime, ()), (axes, ()), (_logging, ())],
    "lang.mesh": [],
    "lang.stream": [(streams, ("Stream", "Event"))],
    "lang.runtime_ops": [(runtime, ("sync",))],
    "lang.util": [],
    "math._complex": [(math, ("cmul", "cconj", "cdiv", "csqrt", "cinv", "cpow", "cexp", "clog"))],
    "math.mathimpl": [(math, ())],
    "types.annotations": [(annotations_, ("template",)), (triplets, ("sparse_matrix_builder",))],
    "types.buffer_view_type": [(buffer_view, ("BufferViewType",))],
    "types.ndarray_type": [(annotations_, ("NdarrayType", "NDArray", "ndarray"))],
    "types.primitive_types": [(dtypes, ())],
    "types.compound_types": [(annotations_, ("CompoundType", "vector", "matrix")), (struct, ("struct",))],
    "types.utils": [(types_, ("is_integral", "is_real", "is_signed", "is_tensor"))],
}


# Modules of ours that have another name.
_MOVED = {"ad.clear": clear, "ad.enums": enums, "ad.state": state, "ad.validation": validation}


def _of_rooms() -> Iterator[Any]:
    """The modules of the layers of `lang`, by their last names."""
    for name, module in list(sys.modules.items()):
        parts = name.split(".")
        if parts[:2] == ["costate", "lang"] and len(parts) == 4 and parts[2] in _ROOMS:
            yield f"lang.{parts[3]}", module


_ROOMS = ("base", "syntax", "analysis", "values", "data", "trace", "launch", "compat")


def has_pytorch() -> bool:
    """Whether PyTorch can be imported."""
    return find_spec("torch") is not None


def to_pytorch_type(dtype: Any) -> Any:
    """The type of PyTorch for one of ours."""
    torch = import_module("torch")
    dtype = dtypes.cook(dtype)
    found = getattr(torch, "bool" if dtype.is_bool else np.dtype(dtype.np).name, None)
    if found is None:
        raise errors.QuadrantsRuntimeError(f"PyTorch has no type {dtype}")
    return found


def _fill(module: Any, source: Any, names: Any) -> None:
    for name in names or [n for n in vars(source) if not n.startswith("_")]:
        if hasattr(source, name):
            setattr(module, name, getattr(source, name))


def _at_large(name: str) -> Any:
    """A name of the package, for those who look for it in one of its modules."""
    package = sys.modules["costate"]
    if name in vars(package) and not isinstance(vars(package)[name], types.ModuleType):
        return vars(package)[name]
    raise AttributeError(f"a module of `costate` has no attribute `{name}`")


def _make(name: str, parts: Any) -> Any:
    module = types.ModuleType(f"costate.{name}", "Names of modules of `costate`, where Taichi has them.")
    vars(module)["__getattr__"] = _at_large
    for source, names in parts:
        _fill(module, source, names)
    sys.modules[module.__name__] = module
    parent, _, last = module.__name__.rpartition(".")
    if not hasattr(sys.modules[parent], last):
        setattr(sys.modules[parent], last, module)
    return module


def _name(name: str, module: Any) -> None:
    """Gives a module another name."""
    parent, _, last = f"costate.{name}".rpartition(".")
    if f"costate.{name}" not in sys.modules:
        sys.modules[f"costate.{name}"] = module
        setattr(sys.modules[parent], last, module)


def install() -> None:
    """Makes the modules."""
    for name, module in (*_MOVED.items(), *_of_rooms()):
        _name(name, module)
    made: dict[str, Any] = {name: _make(name, parts) for name, parts in _MODULES.items()}
    lib: Any = impl.Lib()
    made["_lib"].core = sys.modules["costate._lib.core"] = lib
    made["_lib.utils"].get_os_name = platform.system
    made["_version"].__version__ = __version__
    made["lang._template_mapper"].__builtins__ = {}
    made["lang._fast_caching"].FIELD_METADATA_CACHE_VALUE = "add_value_to_cache_key"
    made["lang._quadrants_callable"].QuadrantsCallable = kernel.Kernel
    made["lang._quadrants_callable"].BoundQuadrantsCallable = kernel.BoundKernel
    _fill(matrix, field, ("MatrixField", "VectorField"))
    _fill(calls, ranges, ())
    _fill(struct, structs, ("dataclass",))
    _fill(ops, atomics, [n for n in vars(atomics) if n.startswith("atomic_")])
    made["lang.misc"].__getattr__ = partial(getattr, sys.modules["costate"])    # `info` and the like
    util = made["lang.util"]
    util.to_taichi_type = util.to_quadrants_type = dtypes.cook
    util.has_pytorch, util.has_paddle = has_pytorch, lambda: False
    util.to_pytorch_type = util.dtype_to_torch_dtype = to_pytorch_type
    util.cook_dtype, util.to_numpy_type = dtypes.cook, lambda dtype: dtypes.cook(dtype).np
    util.is_data_oriented = lambda x: getattr(x, "_data_oriented", False)
