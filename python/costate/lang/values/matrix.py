"""Vectors and matrices, in kernels and outside."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsIndexError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.callers import in_their_words
from costate.lang.base.hooks import Hook
from costate.lang.base.number import array_of
from costate.lang.values import arith, linalg
from costate.lang.values.describe import describe
from costate.lang.values.expr import Expr, dtype_of, is_number, is_scalar, value_of

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

#: Arrays of vectors and matrices.
make_field: Hook[..., Any] = Hook("field")
make_ndarray: Hook[..., Any] = Hook("ndarray")
make_tensor: Hook[..., Any] = Hook("tensor")

SWIZZLES = ("xyzw", "rgba", "stpq", "uv")


def swizzle_of(name: str) -> list[int] | None:
    """The components that `v.name` means, or None."""
    for letters in SWIZZLES:
        if 0 < len(name) <= 4 and all(c in letters for c in name):
            return [letters.index(c) for c in name]
    return None


def unified(entries: Any) -> Any:
    """Values of the kernel get one type."""
    if any(isinstance(e, Expr) for e in entries):
        dtype = dtype_of(entries[0])
        for e in entries[1:]:
            t = dtype_of(e)
            dtype = dtype if t is dtype else dtypes.promote(dtype, t)
        return [e if isinstance(e, Expr) and e.dtype is dtype else
                (arith._as(e, dtype) if isinstance(e, Expr) or dtype is not dtype_of(e) else e)
                for e in entries]
    return entries


class Matrix:
    """A matrix of n rows and m columns, or a vector of n components.

    `Matrix([[a, b], [c, d]])`, `Vector([a, b, c])`, with an element type `dt`.
    """

    __slots__ = ("entries", "shape", "_given")
    __array_priority__ = 1000
    __array_ufunc__ = None

    entries: Any
    shape: Any
    _given: Any

    def __init__(self, rows: Any, dt: Any = None, ndim: Any = None) -> None:
        if isinstance(rows, Matrix):
            entries, shape = list(rows.entries), rows.shape
        elif isinstance(rows, np.ndarray):
            entries, shape = [e.item() for e in rows.reshape(-1)], rows.shape
        else:
            entries, shape = flatten(rows)
        entries = unified(entries)
        if dt is not None:
            entries = [arith.typed(e, dtypes.cook(dt)) for e in entries]
        self.entries = entries
        self.shape = tuple(shape)
        self._given = None if dt is None else dtypes.cook(dt)

    @classmethod
    def of(cls, entries: Any, shape: Any, given: Any = None) -> Matrix:
        """`given`: the type of numbers, where one was given."""
        m = Matrix.__new__(Matrix)
        m.entries = list(entries)
        m.shape = tuple(shape)
        m._given = given
        return m

    def traced(self) -> Matrix:
        """What a vector of the host is in a kernel."""
        given = getattr(self, "_given", None)
        if given is None or all(isinstance(e, Expr) or dtype_of(e) is given for e in self.entries):
            return self
        return self.like([value_of(e, given) for e in self.entries])

    def like(self, entries: Any) -> Matrix:
        """A matrix of this shape."""
        return Matrix.of(entries, self.shape)

    n = property(lambda self: self.shape[0])
    m = property(lambda self: self.shape[1] if len(self.shape) == 2 else 1)
    ndim = property(lambda self: len(self.shape))

    def get_shape(self) -> Any:
        return self.shape

    @property
    def dtype(self) -> DataType:
        """The element type."""
        dtype = dtype_of(self.entries[0])
        for e in self.entries[1:]:
            dtype = dtype if dtype_of(e) is dtype else dtypes.promote(dtype, dtype_of(e))
        return dtype

    def table(self) -> list[Any]:
        """Rows of entries; a vector is one column."""
        m = self.m
        return [self.entries[i * m:(i + 1) * m] for i in range(self.n)]

    # -- elements ---------------------------------------------------------------

    def __len__(self) -> Any:
        return self.n

    def __iter__(self) -> Any:
        if self.ndim == 1:
            return iter(self.entries)
        return (Matrix.of(row, (self.m,)) for row in self.table())

    def offset(self, index: Any) -> Any:
        """The position of an entry, or None if the index is a value of the kernel."""
        index = index if isinstance(index, (tuple, list)) else (index,)
        if len(index) != self.ndim:
            raise QuadrantsIndexError(f"a {'vector' if self.ndim == 1 else 'matrix'} of shape "
                                      f"{self.shape} takes {self.ndim} indices, not {len(index)}")
        position = 0
        for i, extent in zip(index, self.shape):
            if isinstance(i, Expr):
                return None
            if not is_number(i) or int(i) != i:
                raise QuadrantsIndexError(f"{i!r} is not an index of a vector or matrix")
            if not -extent <= i < extent:
                raise QuadrantsIndexError(f"index {i} is out of range of a vector or matrix of "
                                          f"shape {self.shape}")
            position = position * extent + int(i) % extent
        return position

    def part(self, index: Any) -> tuple[Any, ...]:
        """(indices of entries, shape) of an index that holds slices, or of a row."""
        index = index if isinstance(index, tuple) else (index,)
        index += (slice(None),) * (self.ndim - len(index))
        if len(index) != self.ndim:
            self.offset(index)  # refuses
        choices = [_chosen(extent, i) if isinstance(i, slice) else [i] for i, extent in zip(index, self.shape)]
        shape = [len(c) for c, i in zip(choices, index) if isinstance(i, slice)]
        if 0 in shape:
            raise QuadrantsIndexError(f"a slice of a vector or matrix of shape {self.shape} is empty")
        return list(itertools.product(*choices)), tuple(shape)

    def is_part(self, index: Any) -> bool:
        index = index if isinstance(index, tuple) else (index,)
        return len(index) < self.ndim or any(isinstance(i, slice) for i in index)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Matrix):
            index = tuple(index.entries)
        if self.is_part(index):
            indices, shape = self.part(index)
            return Matrix.of([self[i] for i in indices], shape)
        position = self.offset(index)
        if position is not None:
            return self.entries[position]
        return self._at_run_time(index if isinstance(index, (tuple, list)) else (index,))

    def _at_run_time(self, index: Any) -> Any:
        entries = unified([e if isinstance(e, Expr) else arith._as(e, self.dtype)
                           for e in self.entries])
        return linalg.pick(linalg.is_at(index, self.shape), entries)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.is_part(index):
            positions = [self.offset(i) for i in self.part(index)[0]]
            values = value.entries if isinstance(value, Matrix) else (
                [value] * len(positions) if is_scalar(value) else flatten(value)[0])
            for p, v in zip(positions, values, strict=True):
                self.entries[p] = v
        else:
            positions = [self.offset(index)]
            self.entries[positions[0]] = value
        self._changed(positions)

    def _changed(self, positions: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("entries", "shape"):  # asked for by `copy` and `pickle`
            raise AttributeError(name)
        chosen = swizzle_of(name)
        if chosen is None or len(self.shape) != 1:
            raise AttributeError(f"a {'vector' if len(self.shape) == 1 else 'matrix'} has no "
                                 f"attribute `{name}`")
        if len(chosen) == 1:
            return self[chosen[0]]
        return Matrix.of([self[k] for k in chosen], (len(chosen),))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("entries", "shape") or name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        chosen = swizzle_of(name)
        if chosen is None:
            raise AttributeError(f"a vector has no component `{name}`")
        if len(chosen) == 1:
            self[chosen[0]] = value
        else:
            for k, v in zip(chosen, value, strict=True):
                self[k] = v

    def __bool__(self) -> Any:
        return all(bool(e) for e in self.entries)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> Any:
        return str(self.to_list())

    def to_list(self) -> list[Any]:
        """Nested lists of the entries."""
        return list(self.entries) if self.ndim == 1 else self.table()

    def to_numpy(self, keep_dims: bool = False) -> Any:
        return self.__array__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return array_of(self.entries, np.array(self.to_list(), dtype=dtype))

    # -- operations -------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        return linalg.matmul(self, matrix_of(other))

    def __rmatmul__(self, other: Any) -> Any:
        return linalg.matmul(Matrix(other), self)

    def dot(self, other: Any) -> Any:
        """The inner product of two vectors."""
        return linalg.dot(self, matrix_of(other))

    def cross(self, other: Any) -> Any:
        """The cross product, of 2 or 3 components."""
        return linalg.cross(self, matrix_of(other))

    def outer_product(self, other: Any) -> Any:
        """The matrix of products of components."""
        return linalg.outer(self, matrix_of(other))

    def norm_sqr(self) -> Any:
        """The sum of squares."""
        return linalg.dot_flat(self.entries, self.entries)

    def norm(self, eps: Any = 0) -> Any:
        """sqrt(norm_sqr() + eps); its derivative at 0 is 0."""
        square = self.norm_sqr()
        return linalg.root(arith.add(square, eps) if not is_number(eps) or eps else square)

    def norm_inv(self, eps: Any = 0) -> Any:
        """1 / norm(eps)"""
        square = self.norm_sqr()
        return arith.rsqrt(arith.add(square, eps) if not is_number(eps) or eps else square)

    def normalized(self, eps: Any = 0) -> Any:
        """The vector of length 1 in this direction."""
        return self * arith.truediv(1.0, self.norm(eps))

    def transpose(self) -> Matrix:
        """Rows and columns exchanged."""
        return linalg.transpose(self)

    def determinant(self) -> Any:
        """The determinant of a square matrix, of up to 4 rows."""
        return linalg.determinant(self)

    def inverse(self) -> Matrix:
        """The inverse of a square matrix, of up to 4 rows."""
        return linalg.inverse(self)

    def frobenius_inner(self, other: Any) -> Any:
        """The sum of the products of entries."""
        return linalg.dot_flat(self.entries, other.entries)

    def trace(self) -> Any:
        """The sum of the diagonal of a square matrix."""
        if self.n != self.m:
            raise QuadrantsTypeError(f"expected a square matrix, got shape {(self.n, self.m)}")
        return linalg.total([row[i] for i, row in enumerate(self.table())])

    def sum(self) -> Any:
        """The sum of all entries."""
        return linalg.total(self.entries)

    def max(self) -> Any:
        """The greatest entry."""
        return reduce(arith.greatest, self.entries)

    def min(self) -> Any:
        """The least entry."""
        return reduce(arith.least, self.entries)

    def any(self) -> Any:
        """Whether an entry is not 0."""
        return reduce(arith.logical_or, self.entries, False)

    def all(self) -> Any:
        """Whether no entry is 0."""
        return reduce(arith.logical_and, self.entries, True)

    def cast(self, dtype: Any) -> Any:
        """The entries as a `dtype`."""
        return self.like([arith.cast(e, dtype) for e in self.entries])

    def fill(self, value: Any) -> None:
        """Sets all entries."""
        self.entries = [value] * len(self.entries)
        self._changed(range(len(self.entries)))

    def copy(self) -> Any:
        return Matrix.of(self.entries, self.shape)

    # -- makers -----------------------------------------------------------------

    @staticmethod
    def zero(dt: Any, n: Any, m: Any = None) -> Matrix:
        """A vector or matrix of zeros."""
        return filled(0, dt, n, m)

    @staticmethod
    def one(dt: Any, n: Any, m: Any = None) -> Any:
        """A vector or matrix of ones."""
        return filled(1, dt, n, m)

    @staticmethod
    def unit(n: Any, i: Any, dt: Any = None) -> Matrix:
        """The vector of n components whose component i is 1."""
        dt = dtypes.cook(dt or int)
        return Matrix.of([arith.cast(int(k == i), dt) for k in range(n)], (n,))

    @staticmethod
    def identity(dt: Any, n: Any) -> Matrix:
        """The identity matrix."""
        return Matrix.of([arith.cast(int(i == j), dt) for i in range(n) for j in range(n)], (n, n))

    @staticmethod
    def diag(dim: Any, val: Any) -> Any:
        """The matrix of `dim` rows with `val` on its diagonal."""
        zero = 0 if is_number(val) and isinstance(val, int) else 0.0
        return Matrix.of(unified([val if i == j else zero for i in range(dim) for j in range(dim)]),
                         (dim, dim))

    @staticmethod
    def rows(rows: Any) -> Matrix:
        """The matrix of these rows."""
        return Matrix([list(r) for r in rows])

    @staticmethod
    def cols(cols: Any) -> Matrix:
        """The matrix of these columns."""
        return Matrix.rows(cols).transpose()

    @staticmethod
    def field(n: Any, m: Any, dtype: Any, shape: Any = None, **options: Any) -> Any:
        """A field of matrices; see `costate.field`."""
        return make_field((n, m), dtype, shape, **options)

    @staticmethod
    def tensor(n: Any, m: Any, dtype: Any, shape: Any, **options: Any) -> Any:
        """A `tensor` of matrices."""
        return make_tensor((n, m), dtype, shape, **options)

    @staticmethod
    def ndarray(n: Any, m: Any, dtype: Any, shape: Any, **options: Any) -> Any:
        """An ndarray of matrices; see `costate.ndarray`."""
        return make_ndarray(dtype, shape, (n, m), **options)


def matrix_of(x: Any) -> Matrix:
    """A vector or matrix, or one of a list."""
    return x if isinstance(x, Matrix) else Matrix(x)


class _VectorMaker(type):
    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, Matrix) and instance.ndim == 1


class Vector(Matrix, metaclass=_VectorMaker):
    """A vector: `Vector([a, b, c], dt=None)`."""

    def __new__(cls, entries: Any, dt: Any = None) -> Any:
        if isinstance(entries, int):
            raise QuadrantsTypeError(in_their_words(f"Vector({entries}): give the components, as in "
                                                    "`Vector([0.0] * 3)`, or use `Vector.zero(ti.f32, 3)`"))
        return Matrix(entries, dt)

    @staticmethod
    def field(n: Any, dtype: Any, shape: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """A field of vectors; see `costate.field`."""
        return make_field((n,), dtype, shape, **options)

    @staticmethod
    def tensor(n: Any, dtype: Any, shape: Any, **options: Any) -> Any:  # type: ignore[override]
        """A `tensor` of vectors."""
        return make_tensor((n,), dtype, shape, **options)

    @staticmethod
    def ndarray(n: Any, dtype: Any, shape: Any, **options: Any) -> Any:  # type: ignore[override]
        """An ndarray of vectors; see `costate.ndarray`."""
        return make_ndarray(dtype, shape, (n,), **options)


def filled(value: Any, dt: Any, n: Any, m: Any = None) -> Matrix:
    shape = (n,) if m is None else (n, m)
    count = n * (m or 1)
    return Matrix.of([arith.cast(value, dtypes.cook(dt))] * count, shape)


def _chosen(extent: int, of: slice) -> Any:
    """The indices of a slice."""
    if any(isinstance(bound, Expr) for bound in (of.start, of.stop, of.step)):
        raise QuadrantsIndexError("the bounds of a slice of a vector or matrix are known while the kernel is compiled, as those "
                                  "of `v[0:2]`, or of `ti.static` values")
    return range(extent)[of]


def flatten(rows: Any) -> tuple[Any, ...]:
    if is_scalar(rows):
        raise QuadrantsTypeError(f"{rows!r} is not a list of components")
    rows = list(rows)
    if not rows:
        raise QuadrantsTypeError("a vector or matrix has at least one component")
    if any(isinstance(r, (list, tuple, Matrix, np.ndarray)) for r in rows):
        table = [list(r) for r in rows]
        if len({len(r) for r in table}) != 1:
            raise QuadrantsTypeError("the rows of a matrix have different lengths")
        return [e for row in table for e in row], (len(table), len(table[0]))
    for r in rows:
        if not is_scalar(r):
            raise QuadrantsTypeError(f"{describe(r)} cannot be a component of a vector")
    return [r.item() if isinstance(r, np.generic) else r for r in rows], (len(rows),)


class FieldElement(Matrix):
    """An element of a field or ndarray on the host: changes are written back."""

    __slots__ = ("_write",)

    def __init__(self, entries: Any, shape: Any, write: Any) -> None:
        self.entries = list(entries)
        self.shape = tuple(shape)
        self._write = write

    def __reduce__(self) -> tuple[Any, ...]:  # a copy is a value
        return Matrix.of, (self.entries, self.shape)

    def _changed(self, positions: list[int]) -> None:
        for p in positions:
            self._write(p, self.entries[p])
