"""Sparse matrices and linear systems: `linalg.SparseMatrixBuilder`, `SparseSolver`, `MatrixFreeCG`, ...

Matrices lie on the host, and what is computed with them is computed there, by NumPy and, where it is installed, SciPy.
Kernels build them.
"""

from __future__ import annotations as _annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from costate.errors import QuadrantsRuntimeError, QuadrantsRuntimeTypeError, QuadrantsTypeError
from costate.lang.base.dtypes import f32
from costate.lang.data.extents import extents
from costate.lang.data.field import field
from costate.lang.data.ndarray import Ndarray, ndarray
from costate.lang.data.storage import Storage
from costate.lang.data.triplets import Triplets
from costate.lang.data.triplets import real as _real

__all__ = ["LinearOperator", "MatrixFreeBICGSTAB", "MatrixFreeCG", "SparseCG", "SparseMatrix", "SparseMatrixBuilder", "SparseSolver"]


class SparseMatrix:
    """A matrix of f32 or f64 that holds the entries which are not 0."""

    def __init__(self, n: Any = None, m: Any = None, sm: Any = None, dtype: Any = f32, storage_format: str = "col_major") -> None:
        if sm is not None:
            n, m, dtype = sm.n, sm.m, sm.dtype
        self.shape = extents((n, n if m is None else m), 1, "number of rows and columns")
        self.n, self.m = self.shape
        self.dtype = _real(dtype, "a sparse matrix")
        self._keys = np.zeros(0, np.int64)          # row * m + column, ascending
        self._values = np.zeros(0, self.dtype.np)
        if sm is not None:
            self._keys, self._values = sm._keys.copy(), sm._values.copy()

    def _of(self, keys: Any, values: Any, shape: Any = None) -> SparseMatrix:
        """A matrix of these entries; what has the same place is added."""
        n, m = shape or self.shape
        made = SparseMatrix(n, m, dtype=self.dtype)
        made._keys, where = np.unique(np.asarray(keys, np.int64), return_inverse=True)
        made._values = np.bincount(where.reshape(-1), values, len(made._keys)).astype(self.dtype.np)
        return made

    @property
    def _places(self) -> Any:
        return np.divmod(self._keys, self.m)

    def to_numpy(self) -> Any:
        """All entries, as an array of NumPy."""
        dense = np.zeros(self.shape, self.dtype.np)
        dense[self._places] = self._values
        return dense

    def build_from_ndarray(self, array: Any) -> None:
        """Takes the entries of an ndarray of f32 that holds row, column and value one after the other."""
        if not isinstance(array, Ndarray):
            raise QuadrantsRuntimeError("a sparse matrix is built from an ndarray")
        numbers = array.to_numpy().reshape(-1)
        if len(numbers) % 3:
            raise QuadrantsRuntimeError(f"triplets are three numbers each: {len(numbers)} is no multiple of 3")
        rows, columns, values = numbers.reshape(-1, 3).T
        self._take(rows.astype(np.int64), columns.astype(np.int64), values)

    def _take(self, rows: Any, columns: Any, values: Any) -> None:
        outside = (rows < 0) | (rows >= self.n) | (columns < 0) | (columns >= self.m)
        if outside.any():
            at = rows[outside][0], columns[outside][0]
            raise QuadrantsRuntimeError(f"the entry ({at[0]}, {at[1]}) lies outside of a matrix of shape {self.shape}")
        made = self._of(rows.astype(np.int64) * self.m + columns, values)
        self._keys, self._values = made._keys, made._values

    def _key(self, index: Any) -> int:
        i, j = index
        if not (0 <= i < self.n and 0 <= j < self.m):
            raise IndexError(f"index ({i}, {j}) is out of range of a matrix of shape {self.shape}")
        return int(int(i) * self.m + int(j))

    def __getitem__(self, index: Any) -> float:
        key = self._key(index)
        at = int(np.searchsorted(self._keys, key))
        return float(self._values[at]) if at < len(self._keys) and self._keys[at] == key else 0.0

    def __setitem__(self, index: Any, value: float) -> None:
        key = self._key(index)
        at = int(np.searchsorted(self._keys, key))
        if at == len(self._keys) or self._keys[at] != key:
            self._keys, self._values = np.insert(self._keys, at, key), np.insert(self._values, at, 0)
        self._values[at] = value

    def _same(self, other: Any) -> None:
        if not isinstance(other, SparseMatrix) or other.shape != self.shape or other.dtype is not self.dtype:
            raise QuadrantsTypeError(f"two sparse matrices of one shape and type are wanted, not {self!r} and {other!r}")

    def _sum(self, other: Any, sign: int) -> SparseMatrix:
        self._same(other)
        return self._of(np.concatenate([self._keys, other._keys]), np.concatenate([self._values, sign * other._values]))

    def __add__(self, other: Any) -> SparseMatrix:
        return self._sum(other, 1)

    def __sub__(self, other: Any) -> SparseMatrix:
        return self._sum(other, -1)

    def __iadd__(self, other: Any) -> SparseMatrix:
        made = self + other
        self._keys, self._values = made._keys, made._values
        return self

    def __isub__(self, other: Any) -> SparseMatrix:
        made = self - other
        self._keys, self._values = made._keys, made._values
        return self

    def __mul__(self, other: Any) -> SparseMatrix:
        """By a number, or entry by entry by another matrix."""
        if isinstance(other, (int, float, np.number)):
            return self._of(self._keys, self._values * float(other))
        self._same(other)
        keys, mine, its = np.intersect1d(self._keys, other._keys, assume_unique=True, return_indices=True)
        return self._of(keys, self._values[mine] * other._values[its])

    __rmul__ = __mul__

    def transpose(self) -> SparseMatrix:
        rows, columns = self._places
        return self._of(columns * self.n + rows, self._values, (self.m, self.n))

    def __matmul__(self, other: Any) -> Any:
        """The product with another matrix, or with a vector: an ndarray of one, else an array of NumPy."""
        if isinstance(other, SparseMatrix):
            return self._product(other)
        vector = _vector(other, self.m)
        rows, columns = self._places
        result = np.bincount(rows, self._values * vector[columns], self.n).astype(self.dtype.np)
        return _as_given(result, other, self.dtype)

    def _product(self, other: SparseMatrix) -> SparseMatrix:
        if self.m != other.n or self.dtype is not other.dtype:
            raise QuadrantsTypeError(f"{self!r} and {other!r} have no product")
        rows, columns = self._places
        first = np.searchsorted(other._keys, np.arange(other.n + 1) * other.m)   # where each row begins
        counts = (first[1:] - first[:-1])[columns]
        mine = np.repeat(np.arange(len(columns)), counts)
        its = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts) + first[columns][mine]
        keys = rows[mine] * other.m + other._keys[its] % other.m
        return self._of(keys, self._values[mine].astype(np.float64) * other._values[its], (self.n, other.m))

    def mmwrite(self, filename: str) -> None:
        """Writes a file of the format Matrix Market."""
        rows, columns = self._places
        order = np.lexsort((rows, columns))
        with open(filename, "w", encoding="utf-8") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n%\n{self.n} {self.m} {len(order)}\n")
            for k in order:
                file.write(f"{rows[k] + 1} {columns[k] + 1} {self._values[k]:.17g}\n")

    def __str__(self) -> str:
        texts = [[f"{one:g}" for one in row] for row in self.to_numpy().tolist()]
        width = max(len(one) for row in texts for one in row)
        return "\n".join(f"[{', '.join(one.rjust(width) for one in row)}]" for row in texts)

    def __repr__(self) -> str:
        return f"<sparse matrix of shape {self.shape} and type {self.dtype} with {len(self._keys)} entries>"


def _vector(x: Any, size: int) -> Any:
    found = x.to_numpy() if isinstance(x, Storage) else np.asarray(x)
    if found.shape != (size,):
        raise QuadrantsRuntimeTypeError(f"a vector of {size} numbers is wanted, not an array of shape {found.shape}")
    return found


def _as_given(result: Any, given: Any, dtype: Any) -> Any:
    if not isinstance(given, Ndarray):
        return result
    made = ndarray(dtype, len(result))
    made.from_numpy(result)
    return made


class SparseMatrixBuilder(Triplets):
    """What kernels fill: a parameter that is annotated `types.sparse_matrix_builder()`, and `A[i, j] += v`."""

    def __init__(self, num_rows: Any = None, num_cols: Any = None, max_num_triplets: int = 0, dtype: Any = f32,
                 storage_format: str = "col_major") -> None:
        super().__init__((num_rows, num_rows if num_cols is None else num_cols), max_num_triplets, dtype)

    def print_triplets(self) -> None:
        """Prints what has been added."""
        rows, columns, values = self.found()
        print(f"n={self.shape[0]}, m={self.shape[1]}, num_triplets={len(rows)} (max={self.most})")
        for i, j, v in zip(rows, columns, values):
            print(f"[{i}, {j}] = {v:g}")

    def build(self, dtype: Any = None, _format: str = "CSR") -> SparseMatrix:
        """The matrix; what was added to one entry is summed. The builder is empty then."""
        made = SparseMatrix(self.shape[0], self.shape[1], dtype=self.dtype)
        made._take(*self.found())
        self.clear()
        return made


class SparseSolver:
    """Solves A x = b by a factorisation of A: `compute(A)`, then `solve(b)`."""

    def __init__(self, dtype: Any = f32, solver_type: str = "LLT", ordering: str = "AMD") -> None:
        self.dtype = _real(dtype, "a solver")
        if solver_type not in ("LLT", "LDLT", "LU") or ordering not in ("AMD", "COLAMD"):
            raise QuadrantsRuntimeError(f"a solver is \"LLT\", \"LDLT\" or \"LU\" with the ordering \"AMD\" or \"COLAMD\", not "
                                        f"{solver_type!r} with {ordering!r}")
        self.solver_type = solver_type
        self._solve: Callable[[Any], Any] | None = None
        self._size, self._succeeded = 0, False

    def analyze_pattern(self, sparse_matrix: SparseMatrix) -> None:
        """What a factorisation can use of where entries are; `factorize` finds it by itself."""
        self._check(sparse_matrix)

    def _check(self, a: Any) -> None:
        if not isinstance(a, SparseMatrix):
            raise QuadrantsRuntimeTypeError(f"a solver takes a `SparseMatrix`, not a {type(a).__name__}")
        if a.n != a.m or a.dtype is not self.dtype:
            raise QuadrantsRuntimeTypeError(f"a solver of {self.dtype} takes a square matrix of that type, not {a!r}")

    def factorize(self, sparse_matrix: SparseMatrix) -> None:
        self._check(sparse_matrix)
        self._size = sparse_matrix.n
        try:
            self._solve, self._succeeded = self._factors(sparse_matrix), True
        except (np.linalg.LinAlgError, RuntimeError):   # singular, or not definite
            self._solve, self._succeeded = None, False

    def _factors(self, a: SparseMatrix) -> Callable[[Any], Any]:
        if self.solver_type == "LLT":
            dense = a.to_numpy().astype(np.float64)
            lower = np.linalg.cholesky(dense)
            return lambda b: np.linalg.solve(lower.T, np.linalg.solve(lower, b))
        if find_spec("scipy") is None:
            inverse = np.linalg.inv(a.to_numpy().astype(np.float64))
            return lambda b: inverse @ b
        sparse, solvers = import_module("scipy.sparse"), import_module("scipy.sparse.linalg")
        columns = sparse.csc_matrix((a._values.astype(np.float64), a._places), shape=a.shape)
        solve: Callable[[Any], Any] = solvers.splu(columns).solve
        return solve

    def compute(self, sparse_matrix: SparseMatrix) -> None:
        """`analyze_pattern` and `factorize`."""
        self.analyze_pattern(sparse_matrix)
        self.factorize(sparse_matrix)

    def info(self) -> bool:
        """Whether the last step succeeded."""
        return self._succeeded

    def solve(self, b: Any) -> Any:
        """x: an ndarray for one, else an array of NumPy."""
        if self._solve is None:
            raise QuadrantsRuntimeError("there is no factorisation to solve with: call `compute(A)` before, and see `info()`; "
                                        "\"LLT\" is for positive definite matrices")
        result = self._solve(_vector(b, self._size).astype(np.float64)).astype(self.dtype.np)
        return _as_given(result, b, self.dtype)


class SparseCG:
    """Solves A x = b, A symmetric and positive definite, by conjugate gradients."""

    def __init__(self, A: SparseMatrix, b: Any, x0: Any = None, max_iter: int = 50, atol: float = 1e-6) -> None:
        self.A, self.b, self.max_iter, self.atol = A, b, max_iter, atol
        self.x0 = np.zeros(A.n) if x0 is None else _vector(x0, A.n)

    def solve(self) -> tuple[Any, bool]:
        """(x, whether the residual is below `atol`)."""
        b = _vector(self.b, self.A.n).astype(np.float64)
        x, found = _conjugate_gradients(self._times, b, self.x0.astype(np.float64), self.atol, self.max_iter)
        return _as_given(x.astype(self.A.dtype.np), self.b, self.A.dtype), found

    def _times(self, x: Any) -> Any:
        rows, columns = self.A._places
        return np.bincount(rows, self.A._values * x[columns], self.A.n)


class LinearOperator:
    """A matrix that is a kernel of two fields, x and A x."""

    def __init__(self, matvec_kernel: Any) -> None:
        self._matvec = matvec_kernel

    def matvec(self, x: Any, Ax: Any) -> None:
        """Ax becomes A x."""
        if x.shape != Ax.shape:
            raise QuadrantsRuntimeError(f"an operator takes two fields of one shape, not {x.shape} and {Ax.shape}")
        self._matvec(x, Ax)


def _conjugate_gradients(times: Any, b: Any, x: Any, tol: float, most: int, report: Any = None) -> tuple[Any, bool]:
    r = b - times(x)
    p, square = r, np.vdot(r, r)
    for k in range(most):
        if np.sqrt(square) < tol:
            return x, True
        q = times(p)
        alpha = square / np.vdot(p, q)
        x, r = x + alpha * p, r - alpha * q
        square, before = np.vdot(r, r), square
        p = r + square / before * p
        if report:
            report(k, np.sqrt(square))
    return x, bool(np.sqrt(square) < tol)


def _stabilised_gradients(times: Any, b: Any, x: Any, tol: float, most: int, report: Any = None) -> tuple[Any, bool]:
    r = b - times(x)
    shadow, p, v = r, np.zeros_like(r), np.zeros_like(r)
    rho = alpha = omega = 1.0
    for k in range(most):
        if np.linalg.norm(r) < tol:
            return x, True
        rho, before = np.vdot(shadow, r), rho
        p = r + rho / before * alpha / omega * (p - omega * v)
        v = times(p)
        alpha = rho / np.vdot(shadow, v)
        s = r - alpha * v
        t = times(s)
        square = np.vdot(t, t)
        omega = np.vdot(t, s) / square if square else 0.0
        x, r = x + alpha * p + omega * s, s - omega * t
        if report:
            report(k, np.linalg.norm(r))
        if omega == 0:
            break
    return x, bool(np.linalg.norm(r) < tol)


def _matrix_free(method: Any, A: Any, b: Any, x: Any, tol: float, maxiter: int, quiet: bool) -> bool:
    if b.shape != x.shape or b.dtype is not x.dtype:
        raise QuadrantsRuntimeError(f"b and x have one shape and type, not {b.shape} of {b.dtype} and {x.shape} of {x.dtype}")
    _real(b.dtype, "a linear system")
    given, result = (_like(x) for _ in range(2))

    def times(values: Any) -> Any:
        given.from_numpy(values.astype(x.dtype.np))
        A.matvec(given, result)
        return result.to_numpy().astype(np.float64).reshape(-1).reshape(values.shape)

    report = None if quiet else lambda k, size: print(f"iteration {k + 1}: residual {size:g}")
    start = x.to_numpy().astype(np.float64)
    found, succeeded = method(times, b.to_numpy().astype(np.float64), start, tol, maxiter, report)
    x.from_numpy(found.astype(x.dtype.np))
    return bool(succeeded)


def _like(x: Any) -> Any:
    return ndarray(x.dtype, x.shape) if isinstance(x, Ndarray) else field(x.dtype, x.shape)


def MatrixFreeCG(A: LinearOperator, b: Any, x: Any, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True) -> bool:
    """Solves A x = b by conjugate gradients from what x holds; whether the residual is below `tol` then."""
    return _matrix_free(_conjugate_gradients, A, b, x, tol, maxiter, quiet)


def MatrixFreeBICGSTAB(A: LinearOperator, b: Any, x: Any, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True) -> bool:
    """The same for matrices that need not be symmetric, by stabilised bi-conjugate gradients."""
    return _matrix_free(_stabilised_gradients, A, b, x, tol, maxiter, quiet)
