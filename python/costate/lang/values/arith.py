"""Arithmetic on scalars of a kernel; Python numbers are folded."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.errors import QuadrantsTypeError
from costate.lang.base import dtypes, scalars
from costate.lang.base.dtypes import i32, i64, u1
from costate.lang.base.number import Number, of_one, of_two, plain, refuse_constant
from costate.lang.values.builder import current, require
from costate.lang.values.expr import Expr, dtype_of, handle_of, is_number

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.values.builder import Builder

Op = _core.Op


def pure(op: _core.Op, dtype: DataType, *operands: Any) -> Any:
    """`op` on scalars, converted to `dtype`."""
    b = require("arithmetic on values")
    return Expr(b.pure(op, dtype, *[handle_of(x, dtype) for x in operands]), dtype)


def _both_wide(a: Any, b: Any) -> list[Any] | None:
    """Handles with 64 bits for index arithmetic, or None."""
    for x in (a, b):
        if isinstance(x, Expr):
            if x.wide is None and x.dtype not in (i32, i64):
                return None
        elif isinstance(x, float) or not -2**31 <= x < 2**31:
            return None
    if not any(isinstance(x, Expr) and x.wide is not None for x in (a, b)):
        return None
    return [x.wide if isinstance(x, Expr) and x.wide is not None else handle_of(x, i64)
            for x in (a, b)]


def _ring(op: _core.Op, a: Any, b: Any) -> Any:
    dtype = dtypes.promote(dtype_of(a), dtype_of(b))
    if dtype is i32 and (wide := _both_wide(a, b)):
        result = require("arithmetic").pure(op, i64, *wide)
        exact = op is not Op.mul and all(not isinstance(x, Expr) or x.exact == 2 for x in (a, b))
        own = pure(op, i32, a, b).handle if require("arithmetic").debug else None  # which tells of an overflow
        return Expr(own, i32, result, 2 * exact)
    return pure(op, dtype, a, b)


def add(a: Any, b: Any) -> Any:
    return a + b if is_number(a) and is_number(b) else _ring(Op.add, a, b)


def sub(a: Any, b: Any) -> Any:
    return a - b if is_number(a) and is_number(b) else _ring(Op.sub, a, b)


def mul(a: Any, b: Any) -> Any:
    return a * b if is_number(a) and is_number(b) else _ring(Op.mul, a, b)


def neg(a: Any) -> Any:
    if is_number(a):
        return -a
    dtype = i32 if a.dtype.is_bool else a.dtype
    if a.wide is not None and dtype is i32:
        return sub(_as(0, i32), a)
    return pure(Op.neg, dtype, a)


def pos(a: Any) -> Any:
    return a


def truediv(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return a / b
    return pure(Op.div, dtypes.true_quotient(dtype_of(a), dtype_of(b)), a, b)


def _needs_correction(rest: Any, b: Any) -> Any:
    """Whether a remainder other than 0 has not the sign of the divisor."""
    return bit_and(ne(rest, 0), ne(lt(rest, 0), lt(b, 0)))


def _as(x: Any, dtype: DataType) -> Any:
    return Expr(handle_of(x, dtype), dtype)


def floordiv(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return a // b
    dtype = dtypes.promote(dtype_of(a), dtype_of(b))
    a, divisor = _as(a, dtype), _as(b, dtype)
    if dtype.is_float:
        return floor(pure(Op.div, dtype, a, divisor))
    quotient = pure(Op.div, dtype, a, divisor)
    if dtype.kind == "u":
        return quotient
    rest = pure(Op.rem, dtype, a, divisor)
    corrects = (bit_and(ne(rest, 0), lt(rest, 0)) if is_number(b) and b > 0
            else _needs_correction(rest, divisor))
    return select(corrects, _as(sub(quotient, 1), dtype), quotient)


def mod(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return a % b
    dtype = dtypes.promote(dtype_of(a), dtype_of(b))
    a, divisor = _as(a, dtype), _as(b, dtype)
    rest = pure(Op.rem, dtype, a, divisor)
    if dtype.kind == "u":
        return rest
    corrects = lt(rest, 0) if is_number(b) and b > 0 else _needs_correction(rest, divisor)
    return select(corrects, _as(add(rest, divisor), dtype), rest)


def raw_div(a: Any, b: Any) -> Any:
    """Integers: the quotient as in C."""
    if is_number(a) and is_number(b) and b:
        if dtypes.promote(dtype_of(a), dtype_of(b)).is_float:
            return a / b
        return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))
    dtype = dtypes.promote(dtype_of(a), dtype_of(b))
    return pure(Op.div, dtype, a, b)


def raw_mod(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b) and b:
        return a - b * raw_div(a, b) if dtypes.promote(dtype_of(a), dtype_of(b)).is_int else of_two("fmod", a, b, math.fmod(a, b))
    dtype = dtypes.promote(dtype_of(a), dtype_of(b))
    return pure(Op.rem, dtype, a, b)


def _power_of_constant(a: Any, n: Any, dtype: DataType) -> Any:
    """`a ** n` by squaring, for a natural number."""
    result: Any = None
    square = _as(a, dtype)
    while n:
        if n & 1:
            result = square if result is None else pure(Op.mul, dtype, result, square)
        n >>= 1
        if n:
            square = pure(Op.mul, dtype, square, square)
    return result


def power(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return a ** b
    dtype = dtypes.promote(dtype_of(a), dtype_of(b))
    whole = is_number(b) and (isinstance(b, int) or float(b).is_integer()) and abs(b) <= 64
    if whole and isinstance(a, Expr) and dtype_of(a).is_int and isinstance(b, int):
        dtype = dtype_of(a)
    if whole and (dtype.is_float or b >= 0):
        if b == 0:
            return _as(1, dtype)
        positive = _power_of_constant(a, abs(int(b)), dtype)
        return positive if b > 0 else pure(Op.div, dtype, 1, positive)
    if dtype.is_float:
        return pure(Op.pow, dtype, a, b)
    if is_number(b):
        raise QuadrantsTypeError(f"an integer to the power of {b}: make the base or the exponent a "
                                 "float, as in `ti.cast(x, ti.f32) ** -1`")
    return _integer_power(a, b, dtype)


def _of_positive_exponent(builder: Builder, base: Any, exponent: Any, dtype: DataType, exponent_type: DataType) -> tuple[Any, Any]:
    """Base and exponent of the same power. 1 / base is 1, -1, or rounded to 0."""
    inverse = builder.constant(dtype, 0)
    for unit in (1, -1) if dtype.kind == "i" else (1,):
        inverse = builder.pure(Op.select, dtype, builder.pure(Op.eq, u1, base, builder.constant(dtype, unit)), base, inverse)
    is_negative = builder.pure(Op.lt, u1, exponent, builder.constant(exponent_type, 0))
    return (builder.pure(Op.select, dtype, is_negative, inverse, base),
            builder.pure(Op.select, exponent_type, is_negative, builder.pure(Op.neg, exponent_type, exponent), exponent))


def _integer_power(a: Any, b: Any, dtype: DataType) -> Any:
    builder = require("a power")
    t, loc = builder.trace, builder.loc
    core = dtype.core
    exponent_type = dtype_of(b)
    if exponent_type.is_bool:
        exponent_type = i32
    zero, one = builder.constant(exponent_type, 0), builder.constant(exponent_type, 1)
    base, exponent = handle_of(a, dtype), handle_of(b, exponent_type)
    if exponent_type.kind == "i":
        base, exponent = _of_positive_exponent(builder, base, exponent, dtype, exponent_type)
    result = t.declare(core, builder.constant(dtype, 1), loc)
    square = t.declare(core, base, loc)
    rest = t.declare(exponent_type.core, exponent, loc)
    t.begin_while(loc)
    more = builder.pure(Op.gt, u1, t.read(exponent_type.core, rest, loc), zero)
    t.begin_while_body(more, loc)
    odd = builder.pure(Op.and_, exponent_type, t.read(exponent_type.core, rest, loc), one)
    factor = builder.pure(Op.select, dtype, builder.pure(Op.ne, u1, odd, zero),
                          t.read(core, square, loc), builder.constant(dtype, 1))
    t.assign(result, builder.pure(Op.mul, dtype, t.read(core, result, loc), factor), loc)
    s = t.read(core, square, loc)
    is_last = builder.pure(Op.eq, u1, t.read(exponent_type.core, rest, loc), one)   # whose square may overflow
    other = builder.pure(Op.select, dtype, is_last, builder.constant(dtype, 1), s)
    t.assign(square, builder.pure(Op.mul, dtype, s, other), loc)
    t.assign(rest, builder.pure(Op.shr, exponent_type, t.read(exponent_type.core, rest, loc), one),
             loc)
    t.end()
    return Expr(t.read(core, result, loc), dtype)


def _bits(op: _core.Op, fold: Callable[..., Any], what: str) -> Callable[..., Any]:
    def apply(a: Expr, b: Any) -> Any:
        if is_number(a) and is_number(b):
            return fold(a, b)
        ta, tb = dtype_of(a), dtype_of(b)
        if ta.is_float or tb.is_float:
            raise QuadrantsTypeError(f"unsupported operand types for `{what}`: {ta} and {tb}; "
                                     "bits are those of integers: convert with `ti.cast(x, ti.i32)`"
                                     " or `ti.bit_cast`")
        dtype = u1 if ta.is_bool and tb.is_bool else dtypes.promote(ta, tb)
        return pure(op, dtype, a, b)
    return apply


bit_and = _bits(Op.and_, operator.and_, "&")
bit_or = _bits(Op.or_, operator.or_, "|")
bit_xor = _bits(Op.xor, operator.xor, "^")


def _shift(op: _core.Op, fold: Callable[..., Any], what: str) -> Callable[..., Any]:
    def apply(a: Any, b: Any) -> Any:
        if is_number(a) and is_number(b):
            return fold(a, b)
        ta = dtype_of(a)
        if ta.is_float or dtype_of(b).is_float:
            raise QuadrantsTypeError(f"unsupported operand types for `{what}`: {ta} and "
                                     f"{dtype_of(b)}; both are integers")
        return pure(op, ta if ta.is_int else i32, a, b)
    return apply


shl = _shift(Op.shl, operator.lshift, "<<")
shr = _shift(Op.shr, operator.rshift, ">>")


def bit_shr(a: Any, b: Any) -> Any:
    """A shift to the right that fills with zeros."""
    dtype = dtype_of(a)
    unsigned = dtypes.by_name("u" + dtype.name[1:])
    if is_number(a) and is_number(b):
        return (int(a) & (2**dtype.bits - 1)) >> b
    return _as(pure(Op.shr, unsigned, a, b), dtype)


def invert(a: Any) -> Any:
    if is_number(a):
        return ~a
    if a.dtype.is_float:
        raise QuadrantsTypeError(f"unsupported operand type for `~`: {a.dtype}")
    return pure(Op.not_, a.dtype, a)


def logical_not(a: Any) -> Any:
    if is_number(a):
        return not a
    return pure(Op.not_, u1, a)


def logical_and(a: Any, b: Any) -> Any:
    return bool(a and b) if is_number(a) and is_number(b) else pure(Op.and_, u1, a, b)


def logical_or(a: Any, b: Any) -> Any:
    return bool(a or b) if is_number(a) and is_number(b) else pure(Op.or_, u1, a, b)


def _comparison(op: _core.Op, fold: Callable[..., Any]) -> Callable[..., Any]:
    def apply(a: Any, b: Any) -> Any:
        if is_number(a) and is_number(b):
            return fold(a, b)
        builder = require("a comparison")
        ta, tb = dtype_of(a), dtype_of(b)
        dtype = u1 if ta.is_bool and tb.is_bool else dtypes.promote(ta, tb)
        if dtype is i32 and all(not isinstance(x, Expr) or x.exact for x in (a, b)):
            dtype = i64
        if dtype is u1 and op not in (Op.eq, Op.ne):
            dtype = i32
        return Expr(builder.pure(op, u1, handle_of(a, dtype), handle_of(b, dtype)), u1)
    return apply


lt = _comparison(Op.lt, operator.lt)
le = _comparison(Op.le, operator.le)
gt = _comparison(Op.gt, operator.gt)
ge = _comparison(Op.ge, operator.ge)
eq = _comparison(Op.eq, operator.eq)
ne = _comparison(Op.ne, operator.ne)


def select(condition: Any, a: Any, b: Any) -> Any:
    if is_number(condition):
        return a if condition else b
    ta, tb = dtype_of(a), dtype_of(b)
    dtype = ta if ta is tb else dtypes.promote(ta, tb)
    builder = require("select")
    return Expr(builder.pure(Op.select, dtype, handle_of(condition, u1), handle_of(a, dtype),
                             handle_of(b, dtype)), dtype)


def least(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return min(a, b)
    return pure(Op.min, dtypes.promote(dtype_of(a), dtype_of(b)), a, b)


def greatest(a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return max(a, b)
    return pure(Op.max, dtypes.promote(dtype_of(a), dtype_of(b)), a, b)


def clamp(x: Any, lo: Any, hi: Any) -> Any:
    if is_number(x) and is_number(lo) and is_number(hi):
        return min(hi, max(lo, x))
    dtype = dtypes.promote(dtypes.promote(dtype_of(x), dtype_of(lo)), dtype_of(hi))
    return pure(Op.clamp, dtype, x, lo, hi)


def whole(x: Any, dtype: DataType) -> Any:
    """x, without its fraction if `dtype` is one of integers, so that converting it wraps."""
    if not dtype.is_int or not dtype_of(x).is_float:
        return x
    if is_number(x):
        return int(x) if math.isfinite(x) else x
    if dtype.kind != "u":
        return x
    if dtype.bits < 64:
        return cast(x, i64)
    return select(lt(x, 0), neg(cast(neg(x), dtype)), cast(x, dtype))


def limited(op: str, x: Any, dtype: DataType) -> Any:
    """x as the right side of `min` or `max` with a `dtype`: as near as one comes, and NaN is no side."""
    given = dtype_of(x)
    if dtype.is_float or given.is_bool or dtypes.promote(dtype, given) is dtype:
        return x
    if given.is_float:
        return select(ne(x, x), math.inf if op == "min" else -math.inf, x)
    lo, hi = dtypes.value_range(dtype)
    if is_number(x):
        return clamp(int(x), lo, hi)
    least_given, most_given = dtypes.value_range(given)
    return pure(Op.clamp, given, x, max(lo, least_given), min(hi, most_given))


def float_type(*values: Any) -> DataType:
    """The float type in which a function of `values` is computed."""
    dtype = dtype_of(values[0])
    for x in values[1:]:
        dtype = dtypes.promote(dtype, dtype_of(x))
    return dtype if dtype.is_float else dtypes.defaults.fp


def unary(op: _core.Op, fold: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one number: `fold` is that of Python."""
    def apply(x: Any) -> Any:
        if is_number(x):
            try:
                value = fold(plain(x))
            except ValueError:
                value = math.nan
            except (OverflowError, ZeroDivisionError):
                value = math.inf
            return of_one(op.name, x, value) if type(x) is Number else value
        return pure(op, float_type(x), x)
    return apply


rsqrt = unary(Op.rsqrt, lambda x: 1 / math.sqrt(x))


def floor(a: Any) -> Any:
    if is_number(a):
        return float(math.floor(a))
    return pure(Op.floor, a.dtype, a) if a.dtype.is_float else a


def cast(a: Any, dtype: DataType) -> Any:
    dtype = dtypes.cook(dtype)
    if is_number(a):
        if current() is None:
            return dtypes.convert_number(a, dtype)
        return Expr(handle_of(dtypes.convert_number(a, dtype), dtype), dtype)
    if dtype is a.dtype:
        return a
    if dtype is i64 and a.dtype is i32 and a.exact:
        return Expr(a.wide, dtype, a.wide, a.exact)
    return Expr(a.as_type(dtype), dtype)


def typed(a: Any, dtype: DataType) -> Any:
    """`a` as a member or component of a `dtype`; integer constants have its bits."""
    if is_number(a) and not scalars.fits(a, dtype):
        raise QuadrantsTypeError(f"{a} is out of the range of {dtype}; use `ti.cast(x, ti.{dtype})` for its lowest bits")
    return cast(a, dtype)


def bit_cast(a: Any, dtype: DataType) -> Any:
    dtype = dtypes.cook(dtype)
    if is_number(a):
        refuse_constant(a, "is taken for its bits")
        return np.array([a], dtype_of(a).np).view(dtype.np)[0].item()
    if dtype.bits != a.dtype.bits:
        raise QuadrantsTypeError(f"bit_cast from {a.dtype} to {dtype}: they have not the same "
                                 "number of bits")
    return Expr(require("bit_cast").pure(Op.bit_cast, dtype, a.handle), dtype)
