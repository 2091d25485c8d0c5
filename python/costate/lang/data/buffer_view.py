"""`BufferView`: a part of an ndarray of one dimension, as an argument of kernels and in them."""

from __future__ import annotations

import operator
from typing import Any

from costate.errors import KnownIndexError
from costate.lang.base import runtime
from costate.lang.data.annotations import NdarrayType
from costate.lang.data.storage import Storage


class BufferViewType:
    """Annotation: a `BufferView` of elements of a type; `BufferView[f32]` makes one."""

    def __init__(self, dtype: Any = None, boundary: str = "unsafe") -> None:
        self.dtype = dtype
        self.ndarray_type = NdarrayType(dtype=dtype, ndim=1, boundary=boundary)

    def __repr__(self) -> Any:
        return f"BufferViewType(dtype={self.dtype})"


def _check(what: str, offset: int, size: int, length: int) -> None:
    if offset < 0 or size < 0 or offset + size > length:
        raise ValueError(f"{what} out of range: offset={offset}, size={size}, of {length} elements")


class BufferView:
    """The elements `offset`, ..., `offset + size - 1` of an ndarray, with indices from 0: `x[8:24]`.

    A parameter is annotated `BufferView` or `BufferView[f32]`.
    """

    def __new__(cls, arr: Any, offset: Any, size: Any) -> Any:
        in_kernel = getattr(arr, "traced_view", None)
        return super().__new__(cls) if in_kernel is None else in_kernel(offset, size)

    def __init__(self, arr: Any, offset: Any, size: Any) -> None:
        if isinstance(arr, BufferView):
            raise TypeError("`BufferView(view, ...)`: use `view.subview(offset, size)`")
        if not isinstance(arr, Storage) or arr.is_field or len(arr.shape) != 1:
            raise TypeError("a `BufferView` is a part of an ndarray of one dimension (1D)")
        if arr.needs_grad:
            raise TypeError("a `BufferView` has no gradients; pass the ndarray itself, and its bounds")
        self._at = arr, operator.index(offset), operator.index(size)   # stays: launches remember views
        _check("a `BufferView`", self.offset, self.size, arr.shape[0])

    def __class_getitem__(cls, dtype: Any) -> BufferViewType:
        return BufferViewType(*dtype) if isinstance(dtype, tuple) else BufferViewType(dtype)

    arr = property(lambda self: self._at[0])
    offset = property(lambda self: self._at[1])
    size = property(lambda self: self._at[2])
    shape = property(lambda self: (self.size,))
    dtype = property(lambda self: self.arr.dtype)

    def subview(self, offset: Any, size: Any) -> BufferView | None:
        """A part of this part."""
        _check("a subview", operator.index(offset), operator.index(size), self.size)
        return BufferView(self.arr, self.offset + offset, size)

    def _at_index(self, key: Any) -> int:
        config = runtime.current_config()
        if config is None or config.arch != runtime.python:   # which runs kernels on the host
            raise TypeError("a `BufferView` has elements in kernels; on the host, a slice `view[a:b]` is a part of it")
        index = operator.index(key)
        if not 0 <= index < self.size:
            raise KnownIndexError(f"index {index} is out of range of a view of {self.size} elements")
        return int(self.offset + index)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.arr[self._at_index(key)] = value

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self.arr[self._at_index(key)]
        start, stop, step = key.indices(self.size)
        if step != 1:
            raise ValueError("a part of a `BufferView` is a slice with step=1")
        return self.subview(start, max(stop - start, 0))

    def get_ndarray(self) -> Any:
        """The ndarray."""
        return self.arr


def view_of(array: Any, key: Any) -> BufferView | None:
    """The part of an ndarray that a slice is."""
    if len(array.shape) != 1:
        raise TypeError(f"a slice is a part of a 1D ndarray, and {array.describe()} has {len(array.shape)} dimensions; pass the whole "
                        "with bounds, or `to_numpy()` of it")
    start, stop, step = key.indices(array.shape[0])
    if step != 1:
        raise ValueError("a part of an ndarray is a slice with step=1")
    return BufferView(array, start, max(stop - start, 0))
