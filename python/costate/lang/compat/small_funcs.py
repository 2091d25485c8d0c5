"""Names of Quadrants that are funcs: decompositions of matrices of more rows, and a few others."""

from costate.lang.base import dtypes
from costate.lang.base.dtypes import i32, u32
from costate.lang.data.annotations import template
from costate.lang.data.ranges import grouped, static
from costate.lang.launch.kernel import kernel
from costate.lang.trace.func import func
from costate.lang.values.decompositions import small_sym_eig, type_of
from costate.lang.values.matrix import Matrix
from costate.lang.values.ops import cast, select, sqrt
from costate.lang.values.ops import max as maximum

SWEEPS, MOST_ROWS = 12, 12
IN_MEMORY = 6   # rows of a matrix that lies in memory, and may be indexed at run time for nothing


@func
def _rotate(a: template(), v: template(), n: template(), p, q):
    """A rotation of rows and columns p and q after which a[p, q] is 0. It is a smooth function of a[p, q] where the values
    differ, so that it has its derivative also where that is 0 before."""
    difference, off = a[q, q] - a[p, p], a[p, q]
    sign = select(difference >= 0, 1, -1)
    both = sign * difference + sqrt(difference * difference + 4 * off * off)
    t = off * 0
    if both > 0:
        t = 2 * off * sign / both
    c = 1 / sqrt(t * t + 1)
    s = t * c
    for k in range(n):
        x, y = a[k, p], a[k, q]
        a[k, p] = c * x - s * y
        a[k, q] = s * x + c * y
    for k in range(n):
        x, y = a[p, k], a[q, k]
        a[p, k] = c * x - s * y
        a[q, k] = s * x + c * y
        x, y = v[k, p], v[k, q]
        v[k, p] = c * x - s * y
        v[k, q] = s * x + c * y


@func
def _sort(a: template(), v: template(), n: template()):
    """Puts the columns of v in the order of the diagonal of a."""
    for i in range(n):
        for j in range(i + 1, n):
            if a[j, j] < a[i, i]:
                x = a[i, i]
                a[i, i] = a[j, j]
                a[j, j] = x
                for k in range(n):
                    y = v[k, i]
                    v[k, i] = v[k, j]
                    v[k, j] = y


@func
def _large_sym_eig(A: template(), dtype: template(), n: template()):
    size = static(max(n, IN_MEMORY))
    a = Matrix.zero(dtype, size, size)
    v = Matrix.zero(dtype, size, size)
    for i, j in static([(i, j) for i in range(n) for j in range(n)]):
        a[i, j] = (cast(A[i, j], dtype) + cast(A[j, i], dtype)) / 2
    for i in static(range(n)):
        v[i, i] = 1
    sweep = 0
    while sweep < SWEEPS:
        for p in range(n):
            for q in range(p + 1, n):
                _rotate(a, v, n, p, q)
        sweep += 1
    once = 0
    while once < 1:
        _sort(a, v, n)
        once += 1
    return Matrix([a[i, i] for i in range(n)]), Matrix([[v[i, j] for j in range(n)] for i in range(n)])


@func
def sym_eig(A: template(), dt: template() = None):
    """(values, vectors) of a symmetric matrix of 2 to 12 rows: ascending, and columns in the same order."""
    dtype = type_of(A, "sym_eig", dt, 2, MOST_ROWS)
    if static(A.shape[0] <= 3):
        values, vectors = small_sym_eig(A, dtype)
        return values, vectors
    else:
        values, vectors = _large_sym_eig(A, dtype, A.shape[0])
        return values, vectors


@func
def make_spd(A: template(), dt: template() = None):
    """The nearest positive semi-definite matrix to a symmetric one: its eigenvalues are at least 0."""
    values, vectors = sym_eig(A, dt)
    scaled = vectors
    for i, j in static([(i, j) for i in range(A.shape[0]) for j in range(A.shape[0])]):
        scaled[i, j] = vectors[i, j] * maximum(values[j], 0)
    return scaled @ vectors.transpose()


@func
def _real_vector(a, b, c, d, other, first: template()):
    """A vector that [[a, b], [c, d]] multiplies by one of its values; `other` is the other one. If all are, an axis."""
    x, y = a - other, c
    if b * b + (d - other) * (d - other) > x * x + y * y:
        x, y = b, d - other
    size = sqrt(x * x + y * y)
    if size == 0:
        x, y, size = select(first, 1, 0), select(first, 0, 1), 1
    return x / size, y / size


@func
def eig(A: template(), dt: template() = None):
    """(values, vectors) of a matrix of 2 rows, with real and imaginary parts: a row for each value, and a column for each
    vector, (real, imaginary) of its first component above those of its second."""
    dtype = type_of(A, "eig", dt, 2, 2)
    a, b, c, d = cast(A[0, 0], dtype), cast(A[0, 1], dtype), cast(A[1, 0], dtype), cast(A[1, 1], dtype)
    half, gap = (a + d) / 2, (a - d) * (a - d) / 4 + b * c
    values = Matrix.zero(dtype, 2, 2)
    vectors = Matrix.zero(dtype, 4, 2)
    if gap >= 0:
        s = sqrt(gap)
        values[0, 0], values[1, 0] = half + s, half - s
        vectors[0, 0], vectors[2, 0] = _real_vector(a, b, c, d, half - s, True)
        vectors[0, 1], vectors[2, 1] = _real_vector(a, b, c, d, half + s, False)
    else:
        s = sqrt(-gap)
        size = sqrt((a - half) * (a - half) + s * s + c * c)
        for k in static(range(2)):
            sign = static(1 - 2 * k)
            values[k, 0], values[k, 1] = half, sign * s
            vectors[0, k], vectors[1, k], vectors[2, k] = (a - half) / size, sign * s / size, c / size
    return values, vectors


@func
def fns(mask, base, offset):
    """The bit of a u32 that is the `offset`-th one set from `base` on, upwards or, of a negative offset, downwards; of 0 whether
    that at `base` is. 0xFFFFFFFF if there is none."""
    found = u32(0xFFFFFFFF)
    step = select(offset < 0, -1, 1)
    left = maximum(abs(offset), 1)
    at = cast(base, i32)
    while 0 <= at and at < 32 and left > 0:
        if (cast(mask, u32) >> at) & 1:
            left -= 1
            if left == 0:
                found = cast(at, u32)
        at = select(offset == 0, 32, at + step)
    return found


@func
def volatile_load(x):
    """The value of an element, read where it stands, as all elements are."""
    return x


@kernel
def active(x: template()) -> i32:
    """How many elements of a sparse field are active."""
    count = 0
    for _ in grouped(x):
        count += 1
    return count
