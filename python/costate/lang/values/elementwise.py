"""Functions of numbers, by component of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.errors import QuadrantsTypeError
from costate.lang.values.describe import describe
from costate.lang.values.expr import is_scalar
from costate.lang.values.matrix import Matrix


def elementwise(function: Any, *args: Any) -> Any:
    """`function` by component where an argument is a vector or matrix."""
    if all(is_scalar(a) for a in args):
        return function(*args)
    like: Any = next((a for a in args if isinstance(a, Matrix)), None)
    if like is None:
        like = next((a for a in args if isinstance(a, (list, tuple, np.ndarray))), None)
        if like is None:
            bad = next(a for a in args if not is_scalar(a))
            raise QuadrantsTypeError(f"unsupported operand type: {describe(bad)} is not a number, vector or matrix")
        like = Matrix(like)
    columns = []
    for a in args:
        if isinstance(a, (list, tuple, np.ndarray)):
            a = Matrix(a)
        if isinstance(a, Matrix):
            if a.shape != like.shape:
                raise QuadrantsTypeError(f"vectors or matrices of shapes {like.shape} and "
                                         f"{a.shape} do not go together")
            columns.append(a.entries)
        elif is_scalar(a):
            columns.append([a] * len(like.entries))
        else:
            raise QuadrantsTypeError(f"unsupported operand type: {describe(a)} is not a number, vector or matrix")
    return like.like([function(*row) for row in zip(*columns)])
