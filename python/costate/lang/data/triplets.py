"""Triplets (row, column, value) that kernels append: what a sparse matrix is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.errors import QuadrantsRuntimeError, QuadrantsRuntimeTypeError
from costate.lang.base import dtypes
from costate.lang.base.dtypes import i32
from costate.lang.data.annotations import NdarrayType, OrNone
from costate.lang.data.extents import extents
from costate.lang.data.ndarray import ndarray


class sparse_matrix_builder(OrNone):
    """Annotation: a `linalg.SparseMatrixBuilder`, to which `A[i, j] += v` adds."""


def real(dtype: Any, what: str) -> Any:
    """The type of the values of a matrix."""
    dtype = dtypes.cook(dtype)
    if dtype not in (dtypes.f32, dtypes.f64):
        raise QuadrantsRuntimeTypeError(f"{what} is of f32 or f64, not of {dtype}")
    return dtype


class Triplets:
    """Room for `most` of them in arrays of their own."""

    def __init__(self, shape: Any, most: int, dtype: Any) -> None:
        self.shape = extents(shape, 1, "number of rows and columns")
        self.most, self.dtype = extents(most, 1, "number of triplets")[0], real(dtype, "a sparse matrix")
        self.arrays = (ndarray(i32, 1), ndarray(i32, self.most), ndarray(i32, self.most), ndarray(self.dtype, self.most))

    def kinds(self) -> list[NdarrayType]:
        """The annotations of the arrays: how many there are, rows, columns and values."""
        return [NdarrayType(array.dtype, 1) for array in self.arrays]

    def clear(self) -> None:
        self.arrays[0].fill(0)

    def found(self) -> tuple[Any, Any, Any]:
        """Rows, columns and values of what has been appended."""
        count = int(self.arrays[0].to_numpy()[0])
        if count > self.most:
            raise QuadrantsRuntimeError(f"{count} triplets were added to a sparse matrix with room for {self.most}: make the "
                                        "builder with a larger `max_num_triplets`")
        rows, columns, values = (array.to_numpy()[:count] for array in self.arrays[1:])
        order = np.lexsort((columns, rows))
        return rows[order], columns[order], values[order]
