"""Products, determinants and inverses of small matrices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import QuadrantsTypeError
from costate.lang.base.dtypes import i64, u1
from costate.lang.base.number import of_one
from costate.lang.values import arith
from costate.lang.values.arith import add, mul, sub
from costate.lang.values.builder import require
from costate.lang.values.expr import Expr, handle_of, index_handle, is_number, known_index

if TYPE_CHECKING:
    from costate.lang.values.builder import Builder
    from costate.lang.values.matrix import Matrix

Op = _core.Op


def total(values: list[Any]) -> Any:
    return reduce(add, values)


def dot_flat(a: list[Any], b: list[Any]) -> Any:
    return total([mul(x, y) for x, y in zip(a, b, strict=True)])


def root(square: Any) -> Any:
    """The square root of a sum of squares; its derivative at 0 is 0."""
    if is_number(square):
        return of_one("sqrt", square, math.sqrt(square)) if square else 0.0
    builder = require("a norm")
    dtype = arith.float_type(square)
    if builder.dry:
        return arith.pure(Op.sqrt, dtype, square)

    def half_inverse(result: _core.Value) -> _core.Value:
        zero, half = builder.constant(dtype, 0.0), builder.constant(dtype, 0.5)
        return builder.pure(Op.select, dtype, builder.pure(Op.eq, u1, result, zero), zero,
                            builder.pure(Op.div, dtype, half, result))

    trace, loc = builder.trace, builder.loc
    inner, = trace.begin_custom([handle_of(square, dtype)], loc)
    _, result = trace.begin_partials(builder.pure(Op.sqrt, dtype, inner), 1, loc)
    return Expr(trace.end_custom([half_inverse(result)], loc), dtype)


def position(index: Any, shape: tuple[int, ...]) -> Any:
    """The position of an entry, row-major, of indices that may be values of the kernel."""
    index = checked(index, shape) if len(shape) > 1 else known(index, shape)
    result = index[0]
    for i, extent in zip(index[1:], shape[1:]):
        result = add(mul(result, extent), i)
    return result


def known(index: tuple[Any, ...], shape: tuple[int, ...]) -> list[Any]:
    """Indices of an entry; those that are numbers count from 0."""
    return [known_index(k, extent, lambda: f"a vector or matrix of shape {tuple(shape)}")
            for k, extent in zip(index, shape)]


def checked(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """The same, and debug mode checks those of run time."""
    b, index = require("an index"), known(index, shape)
    return [_checked(b, k, extent) if b.debug else k for k, extent in zip(index, shape)]


@contextmanager
def condition_of_loop(evaluate: Callable[..., Any]) -> Iterator[None]:
    """Around what is evaluated in the condition of a loop, which cannot declare arrays: those of checks stand in front of it."""
    b = require("a condition")
    before, b.zeros = b.zeros, {} if b.debug else None
    if b.debug:
        with b.dry_run():
            evaluate()
        for extent in b.zeros:
            b.zeros[extent] = b.trace.declare_local(i64.core, extent, b.loc)
    try:
        yield
    finally:
        b.zeros = before


def _checked(b: Builder, k: Any, extent: int) -> Any:
    """An index of run time, to which the kernel adds the 0 that stands there in a private array: such accesses are checked."""
    if not isinstance(k, Expr):
        return k
    if b.zeros is not None and b.dry:
        b.zeros[extent] = None   # to be declared in front of the condition
        return k
    zeros = b.trace.declare_local(i64.core, extent, b.loc) if b.zeros is None else b.zeros[extent]
    wide = index_handle(k)
    wide = b.pure(Op.add, i64, wide, b.trace.load_local(i64.core, zeros, wide, b.loc))
    return Expr(wide, i64, wide, 1)


def is_at(index: tuple[Any, ...], shape: tuple[int, ...]) -> list[Any]:
    """For each entry, row-major, whether it is the one at an index of run time."""
    each = [[arith.eq(i, k) for k in range(extent)] for i, extent in zip(checked(index, shape), shape)]
    return [_hold(all_of) for all_of in itertools.product(*each)]


def _hold(conditions: tuple[Any, ...]) -> Any:
    """Whether all of these hold, of which some are known."""
    if any(c is False for c in conditions):
        return False
    asked = [c for c in conditions if c is not True]
    return reduce(arith.bit_and, asked) if asked else True


def pick(chosen: list[Any], values: list[Any]) -> Any:
    """The one of the values that is chosen; 0 if none is."""
    result = arith._as(0, values[0].dtype)
    for condition, value in reversed(list(zip(chosen, values))):
        result = arith.select(condition, value, result)
    return result


def _vectors(what: str, a: Matrix, b: Matrix) -> tuple[Any, ...]:
    if a.ndim != 1 or b.ndim != 1:
        raise QuadrantsTypeError(f"`{what}` is of vectors, not of matrices")
    return a.entries, b.entries


def dot(a: Matrix, b: Matrix) -> Any:
    x, y = _vectors("dot", a, b)
    if len(x) != len(y):
        raise QuadrantsTypeError(f"`dot` of vectors with {len(x)} and {len(y)} components")
    return dot_flat(x, y)


def cross(a: Matrix, b: Matrix) -> Any:
    x, y = _vectors("cross", a, b)
    if len(x) == len(y) == 2:
        return sub(mul(x[0], y[1]), mul(x[1], y[0]))
    if len(x) == len(y) == 3:
        def at(i: int, j: int) -> Any:
            return sub(mul(x[i], y[j]), mul(x[j], y[i]))
        return a.of([at(1, 2), at(2, 0), at(0, 1)], (3,))
    raise QuadrantsTypeError(f"`cross` of vectors with {len(x)} and {len(y)} components: both have "
                             "2 or 3")


def outer(a: Any, b: Any) -> Any:
    x, y = _vectors("outer_product", a, b)
    return a.of([mul(p, q) for p in x for q in y], (len(x), len(y)))


def matmul(a: Matrix, b: Matrix) -> Any:
    if a.ndim == 1 and b.ndim == 1:
        return dot(a, b)
    rows = [a.entries] if a.ndim == 1 else a.table()
    columns = [b.entries] if b.ndim == 1 else [list(c) for c in zip(*b.table())]
    if len(rows[0]) != len(columns[0]):
        raise QuadrantsTypeError(f"`@` of shapes {a.shape} and {b.shape}: the second extent of the "
                                 "left one is not the first extent of the right one")
    entries = [dot_flat(r, c) for r in rows for c in columns]
    if a.ndim == 1 or b.ndim == 1:
        return a.of(entries, (len(entries),))
    return a.of(entries, (len(rows), len(columns)))


def transpose(a: Matrix) -> Matrix:
    if a.ndim == 1:
        return a.of(a.entries, (1, a.n))
    return a.of([e for column in zip(*a.table()) for e in column], (a.m, a.n))


def _square(what: str, a: Matrix) -> list[Any]:
    if a.ndim != 2 or a.n != a.m:
        raise QuadrantsTypeError(f"`{what}` of a matrix of shape {a.shape}: it has as many rows as "
                                 "columns")
    if a.n > 4:
        raise QuadrantsTypeError(f"`{what}` is for matrices of up to 4 rows, not of {a.n}")
    return a.table()


def _minor(t: list[Any], i: int, j: int) -> list[Any]:
    return [[e for k, e in enumerate(row) if k != j] for r, row in enumerate(t) if r != i]


def _determinant(t: list[Any]) -> Any:
    if len(t) == 1:
        return t[0][0]
    if len(t) == 2:
        return sub(mul(t[0][0], t[1][1]), mul(t[0][1], t[1][0]))
    result = None
    for j in range(len(t)):
        term = mul(t[0][j], _determinant(_minor(t, 0, j)))
        result = term if result is None else (sub if j % 2 else add)(result, term)
    return result


def determinant(a: Matrix) -> Any:
    return _determinant(_square("determinant", a))


def inverse(a: Matrix) -> Matrix:
    t = _square("inverse", a)
    n = len(t)
    if n == 1:
        return a.of([arith.truediv(1.0, t[0][0])], (1, 1))
    cofactors = [[_determinant(_minor(t, j, i)) for j in range(n)] for i in range(n)]
    cofactors = [[arith.neg(c) if (i + j) % 2 else c for j, c in enumerate(row)]
                 for i, row in enumerate(cofactors)]
    scale = arith.truediv(1.0, total([mul(t[0][j], cofactors[j][0]) for j in range(n)]))
    return a.of([mul(c, scale) for row in cofactors for c in row], (n, n))
