"""Types of parameters, members and elements."""

from costate.lang.annotations import (CompoundType, NDArray, NdarrayType, matrix, ndarray,
                                      sparse_matrix_builder, template, vector)
from costate.lang.dtypes import *  # noqa: F401,F403
from costate.lang.dtypes import integer_types as integral_types  # noqa: F401
from costate.lang.struct import StructType, struct

__all__ = ["CompoundType", "NDArray", "NdarrayType", "StructType", "matrix", "ndarray",
           "sparse_matrix_builder", "struct", "template", "vector"]
