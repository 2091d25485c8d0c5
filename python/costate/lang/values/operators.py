"""Python's operators on values of a kernel, vectors and matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from costate.lang.values import arith, ops
from costate.lang.values.elementwise import elementwise
from costate.lang.values.expr import NUMBERS, Expr
from costate.lang.values.matrix import Matrix

TABLE = {
    "add": arith.add, "sub": arith.sub, "mul": arith.mul, "truediv": arith.truediv,
    "floordiv": arith.floordiv, "mod": arith.mod, "pow": arith.power, "and": arith.bit_and,
    "or": arith.bit_or, "xor": arith.bit_xor, "lshift": arith.shl, "rshift": arith.shr,
}
COMPARISONS = {"lt": arith.lt, "le": arith.le, "gt": arith.gt, "ge": arith.ge, "eq": arith.eq,
               "ne": arith.ne}
UNARY = {"neg": arith.neg, "pos": arith.pos, "invert": arith.invert, "abs": ops.abs}


def _understood(x: int) -> bool:
    return isinstance(x, (Expr, Matrix, list, tuple, *NUMBERS)) or type(x) is np.ndarray


def _binary(function: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if not _understood(other):
            return NotImplemented
        return elementwise(function, other, self) if swapped else elementwise(function, self, other)
    return method


def install(cls: type[Any]) -> None:
    for name, function in TABLE.items():
        setattr(cls, f"__{name}__", _binary(function, False))
        setattr(cls, f"__r{name}__", _binary(function, True))
    for name, function in COMPARISONS.items():
        setattr(cls, f"__{name}__", _binary(function, False))
    for name, unary in UNARY.items():
        setattr(cls, f"__{name}__", lambda self, f=unary: elementwise(f, self))


install(Expr)
install(Matrix)
