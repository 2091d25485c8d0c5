"""Decompositions of matrices of 2 and 3 rows, as in include/costate/decompositions.h.

What an iteration finds is a constant to derivatives; these are attached in closed form.
"""

from functools import reduce

from costate.errors import QuadrantsTypeError
from costate.lang import arith, dtypes, ops
from costate.lang.builder import require
from costate.lang.expr import value_of
from costate.lang.jacobi import (attach, bounded, change, constant, divided, jacobi_eig, jacobi_svd, keep_away,
                                 matmul, size_of, transposed)
from costate.lang.matrix import Matrix

_add, _sub, _mul, _div, _neg = arith.add, arith.sub, arith.mul, arith.truediv, arith.neg


def _table(a, what, dt=None):
    if not isinstance(a, Matrix) or a.ndim != 2 or a.n != a.m or a.n not in (2, 3):
        shape = a.shape if isinstance(a, Matrix) else type(a).__name__
        raise QuadrantsTypeError(f"`{what}` is of matrices with 2 or 3 rows and columns, not of "
                                 f"{shape}")
    dtype = dtypes.cook(dt) if dt is not None else a.dtype
    if not dtype.is_float or dtype is dtypes.f16:
        dtype = dtypes.defaults.fp
    return [[value_of(e, dtype) for e in row] for row in a.table()]


def _made(rows):
    return Matrix.of([e for row in rows for e in row], (len(rows), len(rows[0])))


def _rotation(angle):
    c, s = ops.cos(angle), ops.sin(angle)
    return [[c, _neg(s)], [s, c]]


class _Halves:
    """Rows of [a b; c d] as parts that a rotation keeps apart."""

    def __init__(self, m):
        def half(x):
            return _mul(0.5, x)
        self.e, self.f = half(_add(m[0][0], m[1][1])), half(_sub(m[0][0], m[1][1]))
        self.g, self.h = half(_add(m[1][0], m[0][1])), half(_sub(m[1][0], m[0][1]))

    def away(self, x, y):
        total = _add(ops.hypot(constant(self.e), constant(self.h)),
                     ops.hypot(constant(self.f), constant(self.g)))
        size = arith.select(arith.eq(total, 0), 1.0, total)
        return keep_away(x, y, size)


def _function(what, a, found, differential):
    """`found` as a function of `a`, given its differential, to the second order."""
    b = require(what)
    b.trace.limit_order(2, what, b.loc)

    def half(value, like):
        return attach(value, _mul(0.5, like))
    e = [[change(x) for x in row] for row in a]
    whole = differential(a, e, found)
    middle = [[half(x, w) for x, w in zip(r, s)] for r, s in zip(found, whole)]
    between = [[half(x, x) for x in row] for row in a]
    step = differential(between, e, middle)
    return [[attach(x, s) for x, s in zip(r, t)] for r, t in zip(found, step)]


def _svd_differential(_, e, found):
    u, s, v = found[:3], found[3], found[4:]
    p = matmul(matmul(transposed(u), e), v)
    scale = ops.abs(s[0])
    zero = _sub(s[0], s[0])
    x = [[zero] * 3 for _ in range(3)]
    y = [[zero] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(i + 1, 3):
            total = _mul(_add(p[i][j], p[j][i]), bounded(_sub(s[j], s[i]), scale))
            rest = _mul(_sub(p[i][j], p[j][i]), bounded(_add(s[j], s[i]), scale))
            x[i][j] = _mul(0.5, _add(total, rest))
            y[i][j] = _mul(0.5, _sub(total, rest))
            x[j][i], y[j][i] = _neg(x[i][j]), _neg(y[i][j])
    return [*matmul(u, x), [p[0][0], p[1][1], p[2][2]], *matmul(v, y)]


def _svd2(m):
    parts = _Halves(m)
    e, f = parts.away(parts.e, parts.h), parts.away(parts.f, parts.g)
    q, r = ops.hypot(e, parts.h), ops.hypot(f, parts.g)
    a1, a2 = ops.atan2(parts.g, f), ops.atan2(parts.h, e)
    return (_rotation(_mul(0.5, _add(a2, a1))), [_add(q, r), _sub(q, r)],
            _rotation(_mul(0.5, _sub(a1, a2))))


def svd(A, dt=None):
    """(U, sigma, V) with A == U @ sigma @ V.transpose(): sigma is a diagonal matrix.

    U and V are rotations, and the values descend; the last one has the sign of the determinant.
    """
    m = _table(A, "svd", dt)
    if len(m) == 2:
        u, sigma, v = _svd2(m)
    else:
        size = size_of(m)
        m = divided(m, size)
        found = _function("svd", m, jacobi_svd(m), _svd_differential)
        u, sigma, v = found[:3], [_mul(x, size) for x in found[3]], found[4:]
    n = len(m)
    diagonal = [[sigma[i] if i == j else arith._as(0, sigma[0].dtype) for j in range(n)]
                for i in range(n)]
    return _made(u), _made(diagonal), _made(v)


def _polar_differential(a, e, r):
    back = transposed(r)
    s, m = matmul(back, a), matmul(back, e)
    trace = reduce(_add, [s[i][i] for i in range(3)])

    def even(i, j):
        return _mul(0.5, _add(s[i][j], s[j][i]))
    k = _made([[_sub(trace, even(i, i)) if i == j else _neg(even(i, j)) for j in range(3)]
               for i in range(3)])
    from costate.lang import linalg
    t = k.table()
    adjugate = [[linalg._determinant(linalg._minor(t, j, i)) for j in range(3)] for i in range(3)]
    adjugate = [[_neg(c) if (i + j) % 2 else c for j, c in enumerate(row)]
                for i, row in enumerate(adjugate)]
    determinant = reduce(_add, [_mul(t[0][j], adjugate[j][0]) for j in range(3)])
    none = arith.eq(determinant, 0)
    scale = arith.select(none, 0.0, _div(1.0, arith.select(none, 1.0, determinant)))
    w = [[_sub(m[2][1], m[1][2])], [_sub(m[0][2], m[2][0])], [_sub(m[1][0], m[0][1])]]
    x, y, z = (_mul(row[0], scale) for row in matmul(adjugate, w))
    zero = _sub(x, x)
    return matmul(r, [[zero, _neg(z), y], [z, zero, _neg(x)], [_neg(y), x, zero]])


def polar_decompose(A, dt=None):
    """(R, S) with A == R @ S: a rotation and a symmetric matrix."""
    m = _table(A, "polar_decompose", dt)
    if len(m) == 2:
        parts = _Halves(m)
        r = _rotation(ops.atan2(parts.h, parts.e))
    else:
        unit = divided(m, size_of(m))
        found = jacobi_svd(unit)
        rotation = matmul(found[:3], transposed(found[4:]))
        r = _function("polar_decompose", unit, rotation, _polar_differential)
    s = matmul(transposed(r), m)
    n = len(m)
    return _made(r), _made([[s[i][j] if i == j else _mul(0.5, _add(s[i][j], s[j][i]))
                             for j in range(n)] for i in range(n)])


def _eig_differential(_, e, found):
    values, q = found[0], found[1:]
    p = matmul(matmul(transposed(q), e), q)
    scale = _add(ops.abs(values[0]), ops.abs(values[2]))
    zero = _sub(scale, scale)
    x = [[zero if i == j else _mul(p[i][j], bounded(_sub(values[j], values[i]), scale))
          for j in range(3)] for i in range(3)]
    return [[p[0][0], p[1][1], p[2][2]], *matmul(q, x)]


def sym_eig(A, dt=None):
    """(values, vectors) of a symmetric matrix: ascending, and columns in the same order."""
    given = _table(A, "sym_eig", dt)
    n = len(given)
    m = [[given[i][j] if i == j else _mul(0.5, _add(given[i][j], given[j][i])) for j in range(n)]
         for i in range(n)]
    if n == 2:
        parts = _Halves(m)
        f = parts.away(parts.f, parts.g)
        r = ops.hypot(f, parts.g)
        angle = _mul(0.5, ops.atan2(parts.g, f))
        c, s = ops.cos(angle), ops.sin(angle)
        return (Matrix.of([_sub(parts.e, r), _add(parts.e, r)], (2,)),
                _made([[s, c], [_neg(c), s]]))
    size = size_of(m)
    m = divided(m, size)
    found = _function("sym_eig", m, jacobi_eig(m), _eig_differential)
    return Matrix.of([_mul(x, size) for x in found[0]], (3,)), _made(found[1:])


def solve(A, b, dt=None):
    """x with A @ x == b, of up to 4 rows."""
    return A.inverse() @ b


def eig(A, dt=None):
    raise QuadrantsTypeError("`eig` has complex results, which are not supported; of symmetric "
                             "matrices use `sym_eig`")


