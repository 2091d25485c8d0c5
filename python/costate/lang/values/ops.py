"""Functions of the kernel language: `ti.sin(x)`, `ti.cast(x, ti.f32)`, ...

Each takes numbers, values of a kernel, vectors and matrices (by component). Outside of kernels
they compute with Python numbers.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.lang.base import dtypes
from costate.lang.base.number import Number, depending, of_two
from costate.lang.values import arith
from costate.lang.values.elementwise import elementwise
from costate.lang.values.expr import is_number, is_scalar
from costate.lang.values.matrix import Matrix

Op = _core.Op


def _wrap(function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def apply(*args: Any) -> Any:
        return elementwise(function, *args)
    apply.__doc__ = doc
    apply.__name__ = function.__name__
    return apply


def _unary(op: _core.Op, fold: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    one = arith.unary(op, fold)

    def function(x: Any) -> Any:
        return elementwise(one, x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


# What Python's `math` lacks, or refuses at a pole.
_OF_NUMBERS = {
    "exp2": lambda x: 2.0 ** x,
    "exp10": lambda x: 10.0 ** x,
    "log": lambda x: math.log(x) if x else -math.inf,
    "log2": lambda x: math.log2(x) if x else -math.inf,
    "log10": lambda x: math.log10(x) if x else -math.inf,
    "rsqrt": arith.rsqrt,
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x),
}
FUNCTIONS = {op.name: _unary(op, _OF_NUMBERS.get(op.name) or getattr(math, op.name), op.name, doc)
             for op, operands, doc in _core.functions() if operands == 1}
globals().update(FUNCTIONS)
if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...
sqrt = _unary(Op.sqrt, math.sqrt, "sqrt", "The square root.")


def _rounding(op: _core.Op, fold: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    def one(x: Any) -> Any:
        if is_number(x):
            return float(fold(x))
        return arith.pure(op, x.dtype, x) if x.dtype.is_float else x

    def function(x: Any, dtype: Any = None) -> Any:
        result = elementwise(one, x)
        return result if dtype is None else cast(result, dtype)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


floor = _rounding(Op.floor, math.floor, "floor", "x rounded down, as a `dtype` if one is given.")
ceil = _rounding(Op.ceil, math.ceil, "ceil", "x rounded up, as a `dtype` if one is given.")
round = _rounding(Op.round, lambda x: math.copysign(math.floor(math.fabs(x) + 0.5), x), "round",
                  "The nearest integer, of two the one farther from 0; a `dtype` if one is given.")
trunc = _rounding(Op.trunc, math.trunc, "trunc", "x rounded towards zero.")


def abs(x: Any) -> Any:
    """The absolute value; its derivative at 0 is 0."""
    if not is_scalar(x) and not isinstance(x, (Matrix, list, tuple, np.ndarray)) and hasattr(x, "__abs__"):
        return builtins.abs(x)      # a number of another library
    def one(v: Any) -> Any:
        if is_number(v):
            return v if v >= 0 else -v
        return arith.pure(Op.abs, dtypes.i32 if v.dtype.is_bool else v.dtype, v)
    return elementwise(one, x)


def sgn(x: Any) -> Any:
    """-1, 0 or 1, in the type of x."""
    def one(v: Any) -> Any:
        if is_number(v):
            return type(v)((v > 0) - (v < 0))
        zero, unit = arith._as(0, v.dtype), arith._as(1, v.dtype)
        below = zero if v.dtype.kind in "ub" else arith.pure(Op.neg, v.dtype, unit)
        return arith.select(arith.gt(v, 0), unit, arith.select(arith.lt(v, 0), below, zero))
    return elementwise(one, x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y)."""
    def one(a: Any, b: Any) -> Any:
        if is_number(a) and is_number(b):
            return of_two("arctan2", a, b, math.atan2(a, b))
        return arith.pure(Op.atan2, arith.float_type(a, b), a, b)
    return elementwise(one, y, x)


def pow(base: Any, exponent: Any) -> Any:
    """base ** exponent."""
    return elementwise(arith.power, base, exponent)


def min(*args: Any) -> Any:
    """The least argument, by component; NaN is ignored."""
    return reduce(lambda a, b: elementwise(arith.least, a, b), _flat(args))


def max(*args: Any) -> Any:
    """The greatest argument, by component; NaN is ignored."""
    return reduce(lambda a, b: elementwise(arith.greatest, a, b), _flat(args))


def _flat(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args


@dtypes.convert.given
def cast(x: Any, dtype: Any) -> Any:
    """x as a `dtype`: floats truncate and saturate, integers wrap."""
    if not dtypes.is_dtype(dtype):
        dtype = dtypes.cook(dtype)
    return elementwise(lambda v: arith.cast(v, dtype), x)


def bit_cast(x: Any, dtype: Any) -> Any:
    """The number of type `dtype` with the bits of x."""
    return elementwise(lambda v: arith.bit_cast(v, dtype), x)


def clamp(x: Any, lo: Any, hi: Any) -> Any:
    """x, but not below lo and not above hi."""
    return elementwise(arith.clamp, x, lo, hi)


def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, b elsewhere; evaluates both."""
    return elementwise(arith.select, condition, a, b)


def ifte(condition: Any, a: Any, b: Any) -> Any:
    """The same as `select`."""
    return select(condition, a, b)


def isnan(x: Any) -> Any:
    """Whether x is NaN."""
    return elementwise(lambda v: math.isnan(v) if is_number(v) else arith.ne(v, v), x)


def isinf(x: Any) -> Any:
    """Whether x is inf or -inf."""
    return elementwise(lambda v: math.isinf(v) if is_number(v)
                       else arith.eq(abs(v), math.inf), x)


def isfinite(x: Any) -> Any:
    """Whether x is neither inf nor NaN."""
    return elementwise(lambda v: math.isfinite(v) if is_number(v)
                       else arith.lt(abs(v), math.inf), x)


def popcnt(x: Any) -> Any:
    """How many bits are 1."""
    return elementwise(lambda v: bin(int(v) & (2**64 - 1)).count("1") if is_number(v)
                       else cast(arith.pure(Op.popcnt, v.dtype, v), dtypes.i32), x)


def clz(x: Any) -> Any:
    """How many bits are above the highest 1."""
    return elementwise(lambda v: 32 - int(v).bit_length() if is_number(v)
                       else cast(arith.pure(Op.clz, v.dtype, v), dtypes.i32), x)


def ffs(x: Any) -> Any:
    """The place of the lowest 1, counted from 1, or 0."""
    def one(v: Any) -> Any:
        if is_number(v):
            return (int(v) & -int(v)).bit_length()
        up_to = arith.bit_xor(v, arith.invert(arith.neg(v)))   # v - 1, also of an unsigned 0
        return arith.select(arith.eq(v, 0), 0, popcnt(up_to))
    return elementwise(one, x)


def inv(x: Any) -> Any:
    """1 / x"""
    return elementwise(lambda v: arith.truediv(1.0, v), x)


rcp = inv


def logical_and(a: Any, b: Any) -> Any:
    """Whether both hold; evaluates both."""
    return elementwise(arith.logical_and, a, b)


def logical_or(a: Any, b: Any) -> Any:
    """Whether one of both holds; evaluates both."""
    return elementwise(arith.logical_or, a, b)


logical_not = _wrap(arith.logical_not, "Whether x is false.")
add = _wrap(arith.add, "a + b")
sub = _wrap(arith.sub, "a - b")
mul = _wrap(arith.mul, "a * b")
div = _wrap(arith.truediv, "a / b")
truediv = div
mod = _wrap(arith.mod, "The remainder with the sign of b.")
floordiv = _wrap(arith.floordiv, "a / b rounded down.")
raw_div = _wrap(arith.raw_div, "a / b; of integers rounded towards zero.")
raw_mod = _wrap(arith.raw_mod, "The remainder with the sign of a.")
bit_and = _wrap(arith.bit_and, "a & b")
bit_or = _wrap(arith.bit_or, "a | b")
bit_xor = _wrap(arith.bit_xor, "a ^ b")
bit_not = _wrap(arith.invert, "~a")
bit_shl = _wrap(arith.shl, "a << b")
bit_sar = _wrap(arith.shr, "a >> b, with copies of the sign")
bit_shr = _wrap(arith.bit_shr, "a >> b, with zeros")
neg = _wrap(arith.neg, "-a")
cmp_lt, cmp_le, cmp_gt, cmp_ge, cmp_eq, cmp_ne = (
    _wrap(getattr(arith, n), n) for n in ("lt", "le", "gt", "ge", "eq", "ne"))


def one(x: Any) -> Any:
    """1 in the type and shape of x."""
    return elementwise(lambda v: type(v)(1) if is_number(v) else arith._as(1, v.dtype), x)


def zero(x: Any) -> Any:
    """0 in the type and shape of x."""
    return elementwise(lambda v: type(v)(0) if is_number(v) else arith._as(0, v.dtype), x)


def frexp(x: Any) -> tuple[Any, ...]:
    """(mantissa, exponent) with x == mantissa * 2 ** exponent and 0.5 <= abs(mantissa) < 1."""
    if is_number(x):
        mantissa, exponent = math.frexp(x)
        return depending(mantissa, (x, lambda: math.ldexp(1.0, -exponent))), exponent
    fixed = stop_gradient(x)
    none = arith.eq(fixed, 0)
    size = arith.select(none, 1.0, abs(fixed))
    exponent = cast(floor(FUNCTIONS["log2"](size)), dtypes.i32)
    scale = arith.pure(Op.exp2, x.dtype, exponent)
    exponent = arith.add(exponent, arith.select(arith.ge(size, arith.mul(scale, 2.0)), 2,
                                                arith.select(arith.lt(size, scale), 0, 1)))
    mantissa = arith.mul(x, arith.pure(Op.exp2, x.dtype, arith.neg(exponent)))
    return arith.select(none, x, mantissa), arith.select(none, 0, exponent)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""
    return elementwise(lambda x, y, z: x * y + z if all(map(is_number, (x, y, z)))
                       else arith.pure(Op.fma, arith.float_type(x, y, z), x, y, z), a, b, c)


def hypot(a: Any, b: Any) -> Any:
    """sqrt(a * a + b * b) without overflow."""
    return elementwise(lambda x, y: of_two("hypot", x, y, math.hypot(x, y)) if is_number(x) and is_number(y)
                       else arith.pure(Op.hypot, arith.float_type(x, y), x, y), a, b)


def stop_gradient(x: Any) -> Any:
    """x, and a constant to every derivative."""
    def one(v: Any) -> Any:
        if is_number(v) or not v.dtype.is_float:
            return Number(v) if isinstance(v, float) else v
        return arith.pure(Op.stop_gradient, v.dtype, v)
    return elementwise(one, x)
