"""Shapes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from costate.errors import QuadrantsRuntimeTypeError
from costate.lang.values.matrix import Matrix


def extents(shape: Any, least: int | None = 0, what: str = "extent") -> Any:
    """A shape as a tuple of integers, of Python or NumPy."""
    if shape is None:
        return None
    if isinstance(shape, Matrix):
        shape = shape.entries
    if isinstance(shape, np.ndarray) and shape.ndim == 1:
        shape = shape.tolist()
    return tuple(_extent(n, least, what) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def _extent(n: Any, least: int | None, what: str) -> int:
    try:
        number = None if isinstance(n, (bool, np.bool_)) else operator.index(n)
    except TypeError:
        number = None
    if number is None:
        raise QuadrantsRuntimeTypeError(f"{n!r} is no {what}; a shape is an integer, or a tuple of them")
    if least is not None and number < least:
        raise ValueError(f"{n!r} is no {what}: it is at least {least}")
    return number
