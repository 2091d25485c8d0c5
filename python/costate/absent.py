"""Names of Quadrants and Taichi that are not here, and what to use instead."""

from __future__ import annotations

_WINDOW = ("windows are no part of Costate: write pictures with `costate.tools.imwrite(x, \"a.png\")`, or "
           "show `x.to_numpy()` with matplotlib or another library of windows")

_THREADS = "kernels see work items, not threads: take the index of the loop"

_INSTEAD = {
    "clock_counter": "measure with time.perf_counter() around launches and `sync()`",
    "clock_freq_hz": "measure with time.perf_counter() around launches and `sync()`",
    "global_thread_idx": _THREADS, "mesh_patch_idx": _THREADS,
    "DeviceCapability": "numbers of all types are there on all devices; see `is_extension_supported`",
    "dump_compile_config": "the options of `init` are the attributes of `cfg`",
    "write_vtk": "it needs another library: give `x.to_numpy()` to pyvista or meshio",
    "collect_kernel_profiler_metrics": "no metrics of kernels are kept", "CuptiMetric": "no metrics of kernels are kept",
    "get_predefined_cupti_metrics": "no metrics of kernels are kept",
    "GUI": _WINDOW, "ui": _WINDOW,
    "aot": "kernels are kept in the cache on disk, for all processes",
    "Mesh": "loop over arrays of the indices of neighbours",
    "MeshInstance": "loop over arrays of the indices of neighbours",
    "TriMesh": "loop over arrays of the indices of neighbours",
    "TetMesh": "loop over arrays of the indices of neighbours",
    "Texture": "read the elements of a field, and interpolate between them",
    "Format": "read the elements of a field, and interpolate between them",
    "argpack": "pass a frozen dataclass, or `types.struct`", "ArgPack": "pass a frozen dataclass, or `types.struct`",
    "BitpackedFields": "use fields of integers, and shifts",
    "get_addr": "pass the index instead of an address",
    "imwrite": "it is `tools.imwrite`", "imread": "it is `tools.imread`", "imshow": "it is `tools.imshow`",
    "imresize": "it is `tools.imresize`", "PLYWriter": "it is `tools.PLYWriter`",
    "VideoManager": "it is `tools.VideoManager`",
    "print_profile_info": "it is `profiler.print_kernel_profiler_info`",
}


def message(module: str, name: str) -> str:
    """The text for a name that a module lacks."""
    text = f"module `{module}` has no attribute `{name}`"
    return f"{text}: {_INSTEAD[name]}" if name in _INSTEAD else text
