"""Types of parameters, members and elements."""

from __future__ import annotations as _annotations

from typing import Any as _Any

from costate.absent import message
from costate.lang.data.annotations import (CompoundType, NDArray, NdarrayType, matrix, ndarray, ref,
                                           template, vector)
from costate.lang.data.buffer_view import BufferViewType
from costate.lang.data.struct import StructType, struct
from costate.lang.data.triplets import sparse_matrix_builder
from costate.lang.base.dtypes import *  # noqa: F401,F403
from costate.lang.base.dtypes import integer_types as integral_types  # noqa: F401
from costate.types import enums  # noqa: F401

Template = template
for _name in ("Any", "Hook", "convert"):   # of that module, and no types
    globals().pop(_name, None)


def is_integral(dtype: _Any) -> _Any:
    """Whether a type is one of integers."""
    return dtype is int or getattr(dtype, "is_int", False) or getattr(dtype, "is_bool", False)


def is_real(dtype: _Any) -> _Any:
    """Whether a type is one of floats."""
    return dtype is float or getattr(dtype, "is_float", False)


def is_signed(dtype: _Any) -> _Any:
    """Whether an integer type has negative numbers."""
    return dtype is int or getattr(dtype, "kind", "") == "i"


def is_tensor(dtype: _Any) -> bool:  # type: ignore[no-redef]
    """Whether a type is one of vectors or matrices."""
    return isinstance(dtype, CompoundType)


__all__ = ["BufferViewType", "CompoundType", "NDArray", "NdarrayType", "StructType", "matrix", "ndarray",
           "ref", "sparse_matrix_builder", "struct", "template", "vector"]


def __getattr__(name: str) -> None:
    raise AttributeError(message("costate.types", name))
