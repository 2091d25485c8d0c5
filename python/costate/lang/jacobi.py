"""Jacobi iterations for matrices of 3 rows, and what attaches derivatives to their results."""

from costate import _core
from costate.lang import arith, linalg, ops
from costate.lang.builder import require
from costate.lang.dtypes import f32, i64, u32, u64
from costate.lang.expr import Expr, handle_of
from costate.lang.places import Variable

Op = _core.Op
_add, _sub, _mul, _div, _neg = arith.add, arith.sub, arith.mul, arith.truediv, arith.neg
EPSILON = {"f32": 2.0 ** -23, "f64": 2.0 ** -52}


def attach(value, like):
    """`value`, with the derivative of `like`."""
    b = require("a derivative")
    dtype = value.dtype
    first = b.trace.begin_custom([value.handle, handle_of(like, dtype)], b.loc)
    b.trace.begin_partials(first[0], 2, b.loc)
    zero, one = b.constant(dtype, 0), b.constant(dtype, 1)
    return Expr(b.trace.end_custom([zero, one], b.loc), dtype)


def change(like):
    """0, with the derivative of `like`."""
    return attach(arith._as(0, like.dtype), like)


def constant(x):
    return ops.stop_gradient(x)


def matmul(a, b):
    columns = transposed(b)
    return [[linalg.dot_flat(row, column) for column in columns] for row in a]


def transposed(a):
    return [list(column) for column in zip(*a)]


def nearby(value, near):
    """A constant: `value`, and in derivatives `near(gap)`, with a gap for each order."""
    b = require("a derivative")
    epsilon = EPSILON[value.dtype.name]
    gaps = [arith._as(near(arith._as(g, value.dtype)), value.dtype)
            for g in (epsilon ** 0.5, epsilon ** (1 / 3))]
    return Expr(b.pure(Op.by_order, value.dtype, value.handle, *[g.handle for g in gaps]),
                value.dtype)


def bounded(x, scale):
    """1 / x, bounded where |x| is in the order of the rounding of `scale`."""
    least = _mul(8 * EPSILON[x.dtype.name], scale)
    square = _add(_mul(x, x), _mul(least, least))
    none = arith.eq(square, 0)
    return arith.select(none, 0.0, _div(x, arith.select(none, 1.0, square)))


def keep_away(x, y, scale):
    """`x`, in derivatives with a distance from 0 where (x, y) is short."""
    at = constant(x)
    far = ops.hypot(at, constant(y))
    none = Expr(require("").constant(x.dtype, -0.0), x.dtype)

    def near(gap):
        step = _mul(gap, scale)
        return arith.select(arith.gt(step, far),
                            arith.select(arith.lt(at, 0), _neg(step), step), none)
    return _add(x, nearby(none, near))


class Working:
    """A 3x3 matrix of variables."""

    def __init__(self, rows):
        self.cells = [[Variable(x) for x in row] for row in rows]

    def __call__(self, i, j):
        return self.cells[i][j].get()

    def all(self):
        return [[c.get() for c in row] for row in self.cells]

    def rotate_columns(self, p, q, c, s):
        for row in self.cells:
            a, b = row[p].get(), row[q].get()
            row[p].set(_sub(_mul(c, a), _mul(s, b)))
            row[q].set(_add(_mul(s, a), _mul(c, b)))

    def rotate_rows(self, p, q, c, s):
        for k in range(3):
            a, b = self(p, k), self(q, k)
            self.cells[p][k].set(_sub(_mul(c, a), _mul(s, b)))
            self.cells[q][k].set(_add(_mul(s, a), _mul(c, b)))


def rotation_for(a, b, c):
    """Cosine and sine of the rotation that makes [a b; b c] diagonal."""
    done = arith.eq(b, 0)
    two_b = arith.select(done, 2.0, _add(b, b))
    z = _div(_sub(c, a), two_b)
    t = _div(1.0, _add(ops.abs(z), ops.sqrt(_add(1.0, _mul(z, z)))))
    t = arith.select(done, 0.0, arith.select(arith.lt(z, 0), _neg(t), t))
    cosine = _div(1.0, ops.sqrt(_add(1.0, _mul(t, t))))
    return cosine, _mul(t, cosine)


def sweep(dtype, rotate):
    b = require("an iteration")
    sweeps = 6 if dtype is f32 else 8
    bounds = [b.constant(i64, k) for k in (0, sweeps, 1)]
    b.trace.begin_for(*bounds, b.loc)
    with b.nested():
        for p, q in ((0, 1), (0, 2), (1, 2)):
            rotate(p, q)
    b.trace.end()


def exchange_columns(due, m, i, j):
    for row in m:
        a, b = row[i], row[j]
        row[i], row[j] = arith.select(due, b, a), arith.select(due, _neg(a), b)


def exchange(due, values, i, j):
    a, b = values[i], values[j]
    values[i], values[j] = arith.select(due, b, a), arith.select(due, a, b)


def keep_apart(values, least, scale):
    """In derivatives three ascending values keep distances from each other."""
    size = arith.select(arith.eq(scale, 0), 1.0, scale)

    def above(x, floor):
        return arith.select(arith.gt(floor, x), floor, x)
    found = list(values)
    values[1] = nearby(found[1], lambda gap: above(found[1], _add(least, _mul(gap, size))))

    def third(gap):
        step = _mul(gap, size)
        return above(found[2], _add(above(found[1], _add(least, step)), step))
    values[2] = nearby(found[2], third)


def _unit(dtype):
    return [[arith._as(float(i == j), dtype) for j in range(3)] for i in range(3)]


def jacobi_eig(given):
    """Eigenvalues, ascending, in the first row, and below them the eigenvectors as columns."""
    dtype = given[0][0].dtype
    a, v = Working([[constant(x) for x in row] for row in given]), Working(_unit(dtype))

    def rotate(p, q):
        c, s = rotation_for(a(p, p), a(p, q), a(q, q))
        a.rotate_columns(p, q, c, s)
        a.rotate_rows(p, q, c, s)
        v.rotate_columns(p, q, c, s)
    sweep(dtype, rotate)
    q, values = v.all(), [a(0, 0), a(1, 1), a(2, 2)]
    for i, j in ((0, 1), (1, 2), (0, 1)):
        due = arith.gt(values[i], values[j])
        exchange_columns(due, q, i, j)
        exchange(due, values, i, j)
    keep_apart(values, values[0], _add(ops.abs(values[0]), ops.abs(values[2])))
    return [values, *q]


def _orthonormal(v, others):
    """`v` without its part along `others`, of length 1; along another direction where that part is most of it.

    Columns of Jacobi's iteration are perpendicular, but for what rounding leaves of zeros.
    """
    whole = _mul(0.25, linalg.dot_flat(v, v))
    for other in others:
        part = linalg.dot_flat(v, other)
        v = [_sub(x, _mul(part, o)) for x, o in zip(v, other)]
    square = linalg.dot_flat(v, v)
    none = arith.eq(arith.select(arith.gt(whole, square), 0.0, square), 0)
    spare = [1.0, 0.0, 0.0]
    if others:
        o = others[0]
        upright = arith.gt(ops.abs(o[0]), 0.6)
        spare = [arith.select(upright, o[1], 0.0), arith.select(upright, _neg(o[0]), o[2]),
                 arith.select(upright, 0.0, _neg(o[1]))]
        length = ops.sqrt(linalg.dot_flat(spare, spare))
        spare = [_div(x, length) for x in spare]
    length = ops.sqrt(arith.select(none, 1.0, square))
    return [arith.select(none, s, _div(x, length)) for x, s in zip(v, spare)]


def size_of(m):
    """The power of 2 at or below the largest number of `m`, 1 if that is 0: a constant."""
    dtype = m[0][0].dtype
    largest = arith._as(0, dtype)
    for x in (constant(x) for row in m for x in row):
        largest = arith.select(arith.gt(ops.abs(x), largest), ops.abs(x), largest)
    kind, exponent = (u32, 0x7F800000) if dtype is f32 else (u64, 0x7FF0000000000000)
    power = arith.bit_cast(arith.bit_and(arith.bit_cast(largest, kind), arith._as(exponent, kind)), dtype)
    return arith.select(arith.eq(power, 0), 1.0, power)


def divided(m, size):
    return [[_div(x, size) for x in row] for row in m]


def jacobi_svd(given):
    """u, the singular values and v, one below the other."""
    dtype = given[0][0].dtype
    b, w = Working([[constant(x) for x in row] for row in given]), Working(_unit(dtype))

    def product(p, q):
        return linalg.dot_flat([b(k, p) for k in range(3)], [b(k, q) for k in range(3)])

    def rotate(p, q):
        c, s = rotation_for(product(p, p), product(p, q), product(q, q))
        b.rotate_columns(p, q, c, s)
        w.rotate_columns(p, q, c, s)
    sweep(dtype, rotate)
    squares = [product(k, k) for k in range(3)]
    columns, v = b.all(), w.all()
    for i, j in ((0, 1), (1, 2), (0, 1)):
        due = arith.gt(squares[j], squares[i])
        exchange_columns(due, columns, i, j)
        exchange_columns(due, v, i, j)
        exchange(due, squares, i, j)
    c = transposed(columns)
    first = _orthonormal(c[0], [])
    second = _orthonormal(c[1], [first])
    third = [_sub(_mul(first[i], second[j]), _mul(first[j], second[i]))
             for i, j in ((1, 2), (2, 0), (0, 1))]
    u = transposed([first, second, third])
    sigma = matmul(transposed(u), columns)
    rising = [sigma[2][2], sigma[1][1], sigma[0][0]]
    keep_apart(rising, ops.abs(rising[0]), rising[2])
    return [*u, [rising[2], rising[1], rising[0]], *v]


