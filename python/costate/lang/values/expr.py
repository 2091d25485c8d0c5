"""Scalar values of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.errors import KnownIndexError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.number import refuse_constant
from costate.lang.values.builder import require

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

Op = _core.Op
NUMBERS = (int, float, np.integer, np.floating, np.bool_)


class Expr:
    """A value that exists when the kernel runs.

    `wide` is the same integer with 64 bits, for addresses: where no addition or product overflows.
    Such a value may have no handle of its own until one is asked for. `exact`: the two are equal
    in any case; 2: so are sums with it (it is an index). `number` is what it is, if that is known.
    """

    __slots__ = ("_handle", "dtype", "wide", "exact", "number")
    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(self, handle: _core.Value | None, dtype: DataType, wide: _core.Value | None = None, exact: int = 0) -> None:
        self._handle = handle
        self.dtype = dtype
        self.wide = wide
        self.exact = exact
        self.number: Any = None

    @property
    def handle(self) -> _core.Value:
        if self._handle is None:
            assert self.wide is not None
            return require("this").pure(Op.cast, self.dtype, self.wide)
        return self._handle

    def as_type(self, dtype: DataType) -> _core.Value:
        """The handle of this value as a `dtype`."""
        if dtype is self.dtype:
            return self.handle
        b = require("a conversion")
        if self.wide is not None and self.exact:
            return self.wide if dtype is dtypes.i64 else b.pure(Op.cast, dtype, self.wide)
        if dtype.is_bool:
            zero = b.constant(self.dtype, 0)
            return b.pure(Op.ne, dtypes.u1, self.handle, zero)
        return b.pure(Op.cast, dtype, self.handle)

    def __bool__(self) -> None:
        raise QuadrantsTypeError(
            "a value of the kernel decides something while the kernel is compiled; use it in "
            "`if`, `while` or `ti.select` of the kernel itself or of a `@ti.func`, which a plain function of "
            "Python is not, or make it a `ti.static` value")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{self.dtype} value of a kernel>"

    def __index__(self) -> None:
        raise QuadrantsTypeError("a value of the kernel where a number is needed while the kernel "
                                 "is compiled")


def are_integers(*values: object) -> bool:
    """Whether these are integers, not all of them bools."""
    if not all(is_scalar(v) for v in values):
        return False
    types = [dtype_of(v) for v in values]
    return not any(t.is_float for t in types) and not all(t.is_bool for t in types)


def is_number(x: object) -> bool:
    return isinstance(x, NUMBERS)


def is_scalar(x: object) -> bool:
    return isinstance(x, (Expr, *NUMBERS))


def dtype_of(x: Any) -> DataType:
    return x.dtype if isinstance(x, Expr) else dtypes.of_number(x)


def handle_of(x: Any, dtype: DataType) -> _core.Value:
    """The handle of a scalar, number or value, as a `dtype`."""
    if isinstance(x, Expr):
        return x.as_type(dtype)
    b = require("this")
    refuse_constant(x, "is a constant of a kernel that is compiled")
    if not dtype.is_float:
        return b.constant(dtype, dtypes.convert_number(x, dtype))
    if dtypes.overflows(float(x), dtype):
        b.warn(f"{x} is out of the range of {dtype}, and becomes infinite; use a value of f64")
    return b.constant(dtype, float(x))


def index_handle(x: Any) -> _core.Value:
    """The handle of an index, 64 bits."""
    if isinstance(x, Expr):
        if not (x.dtype.is_int or x.dtype.is_bool):
            raise QuadrantsTypeError(f"an index is {x.dtype}; indices are integers: use `int(x)` "
                                     "or `ti.cast(x, ti.i32)`")
        return x.wide if x.wide is not None else x.as_type(dtypes.i64)
    if isinstance(x, (float, np.floating)) or not is_number(x):
        raise QuadrantsTypeError(f"an index is {x!r}; indices are integers")
    return require("this").constant(dtypes.i64, int(x))


def value_of(x: Any, dtype: DataType | None = None) -> Expr:
    """An Expr for a scalar."""
    if isinstance(x, Expr) and (dtype is None or dtype is x.dtype):
        return x
    dtype = dtype or dtype_of(x)
    made = Expr(handle_of(x, dtype), dtype)
    made.number = x if isinstance(x, int) else None
    return made


def known_index(k: Any, extent: Any, text: Any) -> Any:
    """An index as one from 0, where it is a number: those below 0 count from the end. Without elements nothing is."""
    number = k.number if isinstance(k, Expr) else k
    if number is None or not extent or isinstance(number, (float, np.floating)):
        return k
    if not -extent <= number < extent:
        raise KnownIndexError(f"index {number} is out of range of {text()}")
    return int(number) % extent


def index_value(handle: _core.Value, dtype: DataType = dtypes.i32) -> Expr:
    """The value of a loop index or extent, whose handle has 64 bits."""
    if dtype is dtypes.i64:
        return Expr(handle, dtype, handle, 2)
    return Expr(None, dtype, handle, 2)


def condition_handle(x: Any) -> _core.Value:
    """The handle of a condition."""
    if not is_scalar(x):
        raise QuadrantsTypeError(f"a condition is {x!r}; conditions are scalars")
    return handle_of(x, dtypes.u1)
