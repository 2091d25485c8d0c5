"""Numbers of the host as elements and arguments: one rule, whatever they are objects of."""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeTypeError
from costate.lang.base import callers, dtypes

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


def _is(value: object, module: str, name: str) -> bool:
    """Whether this is of a class of a module, which is there if something is of it."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def plain(value: Any) -> Any:
    """The number that an object is, or None: numbers of Python and NumPy, arrays and tensors of one element, fractions."""
    if isinstance(value, (bool, int, float)) or _is(value, "fractions", "Fraction") or _is(value, "decimal", "Decimal"):
        return value
    if isinstance(value, np.generic) or hasattr(value, "item") and hasattr(value, "shape"):
        if math.prod(value.shape) != 1:
            return None
        value = value.item()
        return value if isinstance(value, (bool, int, float)) else None
    if isinstance(value, (str, bytes, complex)):
        return None
    for convert, name in ((operator.index, "__index__"), (float, "__float__")):
        if hasattr(value, name):
            try:
                return convert(value)
            except (TypeError, ValueError):
                return None
    return None


def convert(value: Any, dtype: DataType, what: str) -> float:
    """The number of a `dtype` that a value is; `what` takes it, for messages."""
    number = plain(value)
    if number is None:
        _refuse(value, dtype, what, f"{value!r} is not one number")
    if dtype.is_bool:
        return bool(number)
    return _real(number, dtype, what) if dtype.is_float else _integer(number, dtype, what)


def _integer(number: float, dtype: DataType, what: str) -> int:
    may_be_infinite = isinstance(number, float) or _is(number, "decimal", "Decimal")
    if may_be_infinite and not math.isfinite(number) or number != int(number):
        _refuse(number, dtype, what, f"{number} is not an integer")
    lo, hi = dtypes.value_range(dtype)
    if not lo <= number <= hi:
        _refuse(number, dtype, what, f"{number} is out of range: from {lo} to {hi}")
    return int(number)


def _real(number: Any, dtype: DataType, what: str) -> float:
    try:
        result = float(number)
    except OverflowError:
        result = math.inf
    if number not in (math.inf, -math.inf) and (math.isinf(result) or dtypes.overflows(result, dtype)):
        _refuse(number, dtype, what, f"it is out of range: up to {np.finfo(dtype.np).max}")
    return result


def leaves(values: Any) -> list[Any]:
    """The objects in nested lists, vectors, arrays and tensors, in order."""
    if hasattr(values, "entries"):
        values = values.entries
    elif hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        return [values]
    return [leaf for one in values for leaf in leaves(one)]


def convert_all(values: Any, dtype: DataType, what: str, shape: tuple[Any, ...]) -> np.ndarray[Any, Any] | None:
    """An array of this shape of as many numbers, or of one that is all of them, each by the same rule."""
    found, count = leaves(values), math.prod(shape)
    if len(found) not in (1, count):
        raise QuadrantsRuntimeTypeError(f"{what} has {count} numbers for each element, not {len(found)}")
    numbers = [convert(one, dtype, what) for one in found] * (count // len(found))
    return np.array(numbers, dtype.np).reshape(shape)


def check_array(array: np.ndarray[Any, Any], dtype: DataType, what: str) -> None:
    """Integers that would not have the same value are an error, and fractions that would be lost a warning."""
    if not dtype.is_int or array.dtype.kind not in "iuf" or np.can_cast(array.dtype, dtype.np):
        return
    numbers = array.astype(np.float32) if array.dtype == np.float16 else array
    whole = np.trunc(numbers) if array.dtype.kind == "f" else numbers
    lo, hi = dtypes.value_range(dtype)
    below = whole <= hi if array.dtype.kind != "f" else whole < float(hi + 1)
    inside = (whole >= lo) & below
    if not np.all(inside):
        place, number = _first(numbers, ~inside)
        _refuse(number, dtype, f"{what}, element {place},", f"{number} is out of range: from {lo} to {hi}")
    if array.dtype.kind == "f" and np.any(whole != numbers):
        place, number = _first(numbers, whole != numbers)
        callers.warn(f"Assign may lose precision: {dtype} <- {array.dtype}: element {place} of {what} is {number} and becomes "
                     f"{int(number)}; `astype` says that this is meant")


def _first(array: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Where a condition holds first, and the number there."""
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(found)), found.shape))
    return place, array[place].item()


def fits(number: float | None, dtype: DataType) -> bool:
    """Whether a `dtype` has an integer constant; other numbers are converted."""
    if not dtype.is_int or isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        return True
    lo, hi = dtypes.value_range(dtype)
    return lo <= number <= hi


def _refuse(value: Any, dtype: DataType, what: str, why: str) -> None:
    raise QuadrantsRuntimeTypeError(f"{what} (type={type(value)}) cannot be converted into required type {dtype}: {why}")
