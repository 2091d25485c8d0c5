"""How other libraries see the memory of an array: DLPack, and the array interfaces of NumPy and of Numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.lang.base import runtime
from costate.lang.base.explain import in_python

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

_CPU = 1  # of DLPack's kinds of devices


class SharedMemory:
    """For arrays with `to_numpy()` and `_brought()`: the array of the core, once it has what the host has written."""

    __slots__ = ()
    shape: Any
    element_shape: tuple[int, ...]
    dtype: DataType

    def core(self) -> _core.Array:
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError

    def to_numpy(self, dtype: Any = None, copy: bool = True) -> Any:
        raise NotImplementedError

    def _brought(self) -> _core.Array:
        raise NotImplementedError

    def _blocks(self) -> Any:
        """The blocks in which a field of a large sparse node lies, or None."""
        return None

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[Any, int] | None = None, copy: bool | None = None) -> Any:
        """The memory, for `from_dlpack` of other libraries, after all that the device was asked to do. On CUDA that is what
        `stream` waits for: 1 or None is CUDA's default stream, 2 that of the thread, -1 none, any other its handle; the
        host does not wait. While it is in use the array counts as written by others at any time. `copy=True` and
        `dl_device=(1, 0)`, the host, give copies. BufferError for the memory of Vulkan, and where only a copy would do
        but `copy=False`."""
        wishes: dict[str, Any] = {} if max_version is None else {"max_version": max_version}
        if self._blocks() is not None:
            if copy is False:
                raise BufferError(f"{self.describe()} is sparse: without `copy=False` others get a copy")
            return self.to_numpy().__dlpack__(**wishes)
        wanted = None if dl_device is None else tuple(map(int, dl_device))
        elsewhere = wanted is not None and wanted != self.__dlpack_device__()
        if elsewhere and wanted != (_CPU, 0):
            raise BufferError(f"{self.describe()} is on `{runtime.device().name}`; it goes to the host, and to no other device")
        if elsewhere and copy is False:
            raise BufferError(f"{self.describe()} is on `{runtime.device().name}`: without `copy=False` the host gets a copy")
        if elsewhere or copy and self.__dlpack_device__()[0] == _CPU:
            return self.to_numpy().__dlpack__(**wishes)
        with in_python():
            return (self._copy() if copy else self._brought()).__dlpack__(stream=stream, **wishes)

    def _copy(self) -> _core.Array:
        array = self.core()
        copy = _core.Array(array.device, array.dtype, array.shape, scratch=True)
        copy.write(self.to_numpy())
        return copy

    def __dlpack_device__(self) -> tuple[int, int]:
        if self._blocks() is not None:
            return _CPU, 0
        return self.core().__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A copy; with `copy=False` the memory itself, read-only, or ValueError."""
        if copy is not False:
            return self.to_numpy(dtype)
        if not runtime.shares_memory():
            raise ValueError(f"the memory of {self.describe()} is on the device; leave `copy=False` out")
        if self._blocks() is not None:
            raise ValueError(f"{self.describe()} is sparse, and no array; leave `copy=False` out")
        view = self._brought().numpy()
        if dtype is not None and np.dtype(dtype) != view.dtype:
            raise ValueError(f"{self.describe()} has elements of {view.dtype}; leave `copy=False` out for others")
        return view

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The memory, read-only, where it is the host's: `numpy.asarray(x)` copies nothing, and sees what kernels write."""
        if not runtime.shares_memory():
            raise AttributeError("__array_interface__: the memory is on the device")
        if self._blocks() is not None:
            raise AttributeError("__array_interface__: the field is sparse")
        view = self._brought().numpy()
        place: dict[str, Any] = view.__array_interface__
        self._keep(place["data"][0], view)
        return place

    def _keep(self, address: int, holder: Any) -> None:
        """Others hold the object when they use its memory, which goes on after `init` then."""
        self.__dict__.setdefault("_lent", {})[address] = holder

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory, on CUDA, after all that the device was asked to do: some who read it look for no stream, and so the host
        waits. From here on the array counts as written by others at any time, for nobody tells when they are done."""
        if runtime.device().name != "cuda":
            raise AttributeError("__cuda_array_interface__: the memory is not that of CUDA")
        if self._blocks() is not None:
            raise AttributeError("__cuda_array_interface__: the field is sparse")
        address, holder = self._brought().lend()
        self._keep(address, holder)
        shape = (*self.shape, *self.element_shape)
        return {"shape": shape, "typestr": np.dtype(self.dtype.np).str, "data": (address, False), "strides": None,
                "version": 3, "stream": None}

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the memory of the array, for whoever takes it: the host waits."""
        runtime.sync()
        return self.__dlpack__(stream=-1)
