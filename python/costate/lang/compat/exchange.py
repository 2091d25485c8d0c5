"""`_kernels`: copies between fields or ndarrays and arrays of others, by the names that Genesis calls."""

from __future__ import annotations

from typing import Any

from costate.lang.base import dtypes


def _out(source: Any, array: Any) -> None:
    if dtypes.is_tensor(array):
        array.copy_(source.to_torch(device=array.device).reshape(array.shape))
    else:
        array[...] = source.to_numpy().reshape(array.shape)


def _in(array: Any, target: Any) -> None:
    shape = (*target.shape, *target.element_shape)
    if dtypes.is_tensor(array):
        target.from_torch(array.reshape(shape))
    else:
        target.from_numpy(array.reshape(shape))


def tensor_to_ext_arr(tensor: Any, arr: Any) -> None:
    """The elements of a field go to an array of NumPy or PyTorch."""
    _out(tensor, arr)


def matrix_to_ext_arr(mat: Any, arr: Any, as_vector: Any = True) -> None:
    _out(mat, arr)


def ndarray_to_ext_arr(ndarray: Any, arr: Any) -> None:
    _out(ndarray, arr)


def ndarray_matrix_to_ext_arr(ndarray: Any, arr: Any, layout_is_aos: Any = True, as_vector: Any = True) -> None:
    _out(ndarray, arr)


def ext_arr_to_tensor(arr: Any, tensor: Any) -> None:
    """The elements of an array of NumPy or PyTorch go to a field."""
    _in(arr, tensor)


def ext_arr_to_matrix(arr: Any, mat: Any, as_vector: Any = True) -> None:
    _in(arr, mat)


def ext_arr_to_ndarray(arr: Any, ndarray: Any) -> None:
    _in(arr, ndarray)


def ext_arr_to_ndarray_matrix(arr: Any, ndarray: Any, layout_is_aos: Any = True, as_vector: Any = True) -> None:
    _in(arr, ndarray)


def tensor_to_tensor(tensor: Any, other: Any) -> None:
    """The elements of `other` go to `tensor`."""
    tensor.copy_from(other)


ndarray_to_ndarray = tensor_to_tensor


def fill_field(field: Any, val: Any) -> None:
    field.fill(val)


fill_ndarray = fill_ndarray_matrix = fill_field
