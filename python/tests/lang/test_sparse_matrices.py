"""`linalg`: sparse matrices that kernels build, and linear systems, against NumPy."""

import numpy as np
import pytest

import costate as ti


def built(dense, dtype=ti.f64, most=400):
    """The sparse matrix of a dense one; each entry is added in two parts."""
    builder = ti.linalg.SparseMatrixBuilder(*dense.shape, max_num_triplets=most, dtype=dtype)
    kind = np.float64 if dtype is ti.f64 else np.float32

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder(), x: ti.types.ndarray()):
        for i, j in x:
            if x[i, j] != 0:
                A[i, j] += 2 * x[i, j]
                A[i, j] -= x[i, j]

    fill(builder, dense.astype(kind))
    return builder.build()


def sparse(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, m)) < 0.4, rng.integers(1, 9, (n, m)), 0).astype(float)


def definite(n, seed=0):
    a = np.random.default_rng(seed).random((n, n))
    return a @ a.T + n * np.eye(n)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_operations(dtype):
    a, b, c = sparse(5, 7, 1), sparse(5, 7, 2), sparse(7, 4, 3)
    A, B, C = (built(x, dtype) for x in (a, b, c))
    assert A.shape == (5, 7) and (A.n, A.m) == (5, 7)
    for result, wanted in [(A, a), (A + B, a + b), (A - B, a - b), (A * B, a * b), (A * 2, 2 * a), (3.0 * A, 3 * a),
                           (A @ C, a @ c), (A.transpose(), a.T)]:
        np.testing.assert_allclose(result.to_numpy(), wanted)
    A += B
    A -= B
    np.testing.assert_allclose(A.to_numpy(), a)
    x = np.arange(7.0)
    np.testing.assert_allclose(A @ x, a @ x)
    y = ti.ndarray(dtype, 7)
    y.from_numpy(x)
    np.testing.assert_allclose((A @ y).to_numpy(), a @ x)
    f = ti.field(dtype, 7)
    f.from_numpy(x)
    np.testing.assert_allclose(A @ f, a @ x)


def test_entries():
    A = built(np.diag([1.0, 2.0, 3.0]))
    A[0, 2] = 5
    A[1, 1] = 7
    assert [A[0, 0], A[0, 2], A[1, 1], A[2, 0]] == [1, 5, 7, 0]
    with pytest.raises(IndexError):
        A[3, 0]
    assert str(A) == "[1, 0, 5]\n[0, 7, 0]\n[0, 0, 3]"


def test_a_builder_is_empty_after_it_has_built(capsys):
    builder = ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=4)

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder(), v: ti.f32):
        A[0, 1] += v
        for i in range(2):
            A[i, i] += i + 1

    fill(builder, 4)
    builder.print_triplets()
    assert capsys.readouterr().out == "n=2, m=2, num_triplets=3 (max=4)\n[0, 0] = 1\n[0, 1] = 4\n[1, 1] = 2\n"
    assert builder.build().to_numpy().tolist() == [[1, 4], [0, 2]]
    fill(builder, 5)
    assert builder.build().to_numpy().tolist() == [[1, 5], [0, 2]]


def test_what_does_not_fit_is_named():
    builder = ti.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=2)

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder(), n: ti.i32):
        for i in range(n):
            A[i, i] += 1.0

    @ti.kernel
    def read(A: ti.types.sparse_matrix_builder()):
        A[0, 0] = A[1, 1]

    fill(builder, 4)
    with pytest.raises(ti.QuadrantsRuntimeError, match="4 triplets .* room for 2"):
        builder.build()
    builder = ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=9)
    fill(builder, 3)
    with pytest.raises(ti.QuadrantsRuntimeError, match=r"entry \(2, 2\) lies outside"):
        builder.build()
    with pytest.raises(ti.QuadrantsSyntaxError, match="add to it"):
        read(builder)
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="SparseMatrixBuilder"):
        fill(ti.ndarray(ti.f32, 4), 1)
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="f32 or f64"):
        ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=2, dtype=ti.i32)
    with pytest.raises(ti.QuadrantsTypeError, match="one shape and type"):
        built(np.eye(2)) + built(np.eye(3))


def test_from_an_ndarray(tmp_path):
    triplets = ti.Vector.ndarray(3, ti.f32, 3)
    triplets.from_numpy(np.array([[0, 0, 1], [1, 1, 2], [1, 3, 4]], np.float32))
    A = ti.linalg.SparseMatrix(4, 4)
    A.build_from_ndarray(triplets)
    assert A[1, 3] == 4 and A[2, 2] == 0
    A.mmwrite(str(tmp_path / "a.mtx"))
    assert (tmp_path / "a.mtx").read_text().split("\n")[2:5] == ["4 4 3", "1 1 1", "2 2 2"]


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
@pytest.mark.parametrize("kind", ["LLT", "LDLT", "LU"])
@pytest.mark.parametrize("ordering", ["AMD", "COLAMD"])
def test_solvers(dtype, kind, ordering):
    a, b = definite(10), np.random.default_rng(5).random(10)
    A = built(a, dtype)
    solver = ti.linalg.SparseSolver(dtype=dtype, solver_type=kind, ordering=ordering)
    solver.analyze_pattern(A)
    solver.factorize(A)
    assert solver.info()
    wanted, near = np.linalg.solve(a, b), 1e-4 if dtype is ti.f32 else 1e-12
    np.testing.assert_allclose(solver.solve(b), wanted, rtol=near)
    f = ti.field(dtype, 10)
    f.from_numpy(b)
    np.testing.assert_allclose(solver.solve(f), wanted, rtol=near)


def test_solvers_tell_what_they_cannot():
    solver = ti.linalg.SparseSolver(dtype=ti.f64, solver_type="LLT")
    with pytest.raises(ti.QuadrantsRuntimeError, match="call `compute"):
        solver.solve(np.ones(2))
    solver.compute(built(np.diag([1.0, -1.0])))
    assert not solver.info()
    singular = ti.linalg.SparseSolver(dtype=ti.f64, solver_type="LU")
    singular.compute(built(np.array([[1.0, 1.0], [1.0, 1.0]])))
    assert not singular.info()
    with pytest.raises(ti.QuadrantsRuntimeError, match="LDLT"):
        ti.linalg.SparseSolver(solver_type="QR")
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="square matrix"):
        solver.compute(built(np.ones((2, 3))))


def test_conjugate_gradients():
    a, b = definite(12), np.random.default_rng(5).random(12)
    x, found = ti.linalg.SparseCG(built(a), b, max_iter=50, atol=1e-10).solve()
    assert found
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-8)
    assert not ti.linalg.SparseCG(built(a), b, max_iter=1, atol=1e-10).solve()[1]


@pytest.mark.parametrize("method", ["MatrixFreeCG", "MatrixFreeBICGSTAB"])
@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
def test_systems_without_a_matrix(method, make):
    n = 8
    kind = ti.template() if make is ti.field else ti.types.ndarray(dtype=ti.f64, ndim=2)

    @ti.kernel
    def apply(v: kind, result: kind):
        for i, j in v:
            around = ti.cast(0, ti.f64)
            if i > 0:
                around += v[i - 1, j]
            if i < n - 1:
                around += v[i + 1, j] * (1.0 if ti.static(method == "MatrixFreeCG") else 0.5)
            result[i, j] = 4 * v[i, j] - around

    x, b, result = (make(ti.f64, (n, n)) for _ in range(3))
    b.from_numpy(np.random.default_rng(2).random((n, n)))
    assert getattr(ti.linalg, method)(ti.linalg.LinearOperator(apply), b, x, tol=1e-10)
    apply(x, result)
    np.testing.assert_allclose(result.to_numpy(), b.to_numpy(), atol=1e-9)
    with pytest.raises(ti.QuadrantsRuntimeError, match="one shape and type"):
        getattr(ti.linalg, method)(ti.linalg.LinearOperator(apply), make(ti.f64, (n, 2)), x)


def test_a_sparse_grid():
    grid = ti.sparse.grid({"pos": ti.math.vec2, "mass": ti.f32, "seen": ti.types.vector(20, ti.i32)}, shape=(10, 10))

    @ti.kernel
    def k():
        grid[0, 0].pos = ti.math.vec2(1, 2)
        grid[2, 0].mass = 1

    k()
    assert ti.sparse.usage(grid) == pytest.approx(0.02)
    assert list(grid[0, 0].pos) == [1, 2]
