"""Decompositions of matrices of 2 and 3 rows: those of include/costate/decompositions.h."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.values import arith
from costate.lang.values.builder import require
from costate.lang.values.expr import Expr, value_of
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


def type_of(a: Any, what: str, dt: DataType | None, least: int = 2, most: int = 3) -> DataType:
    """The type of what is computed of a matrix that has between `least` and `most` rows, and as many columns."""
    shape = getattr(a, "shape", type(a).__name__)
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[0] != shape[1] or not least <= shape[0] <= most:
        rows = str(least) if most == least else f"{least} {'or' if most == least + 1 else 'to'} {most}"
        raise QuadrantsTypeError(f"`{what}` is of matrices with {rows} rows and columns, not of "
                                 f"{shape}")
    dtype = dtypes.cook(dt) if dt is not None else a.dtype
    return dtype if dtype.is_float and dtype is not dtypes.f16 else dtypes.defaults.fp


def _decomposed(a: Matrix, what: str, dt: DataType | None, *shapes: Any) -> list[Any]:
    """The results of the method `what` of the trace: a vector or matrix for each letter of `shapes`."""
    dtype = type_of(a, what, dt)
    b = require(what)
    entries = [value_of(e, dtype).handle for row in a.table() for e in row]
    sizes = [a.n if len(shape) == 1 else a.n * a.n for shape in shapes]
    found = getattr(b.trace, what)(dtype.core, entries, b.loc) or [0] * sum(sizes)
    values = iter([Expr(handle, dtype) for handle in found])
    return [Matrix.of([next(values) for _ in range(size)], (a.n,) * len(shape)) for size, shape in zip(sizes, shapes)]


def svd(A: Any, dt: Any = None) -> tuple[Any, ...]:
    """(U, sigma, V) with A == U @ sigma @ V.transpose(): sigma is a diagonal matrix.

    U and V are rotations, and the values descend; the last one has the sign of the determinant.
    """
    u, sigma, v = _decomposed(A, "svd", dt, "nn", "n", "nn")
    zero = arith._as(0, sigma.dtype)
    diagonal = [sigma[i] if i == j else zero for i in range(A.n) for j in range(A.n)]
    return u, Matrix.of(diagonal, (A.n, A.n)), v


def polar_decompose(A: Any, dt: Any = None) -> tuple[Any, ...]:
    """(R, S) with A == R @ S: a rotation and a symmetric matrix."""
    return tuple(_decomposed(A, "polar_decompose", dt, "nn", "nn"))


def small_sym_eig(A: Any, dt: Any = None) -> tuple[Any, ...]:
    """(values, vectors) of a symmetric matrix of 2 or 3 rows: ascending, and columns in the same order."""
    return tuple(_decomposed(A, "sym_eig", dt, "n", "nn"))


def solve(A: Any, b: Any, dt: Any = None) -> Any:
    """x with A @ x == b, of up to 4 rows."""
    return A.inverse() @ b

