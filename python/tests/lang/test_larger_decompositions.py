"""sym_eig and make_spd of 4 to 12 rows, and eig, against NumPy and differences."""

import numpy as np
import pytest

import costate as ti


def symmetric(n, seed=1):
    a = np.random.default_rng(seed).uniform(-1, 1, (n, n))
    return a + a.T


@pytest.mark.parametrize("n", [4, 5, 6, 9, 12])
@pytest.mark.parametrize("dt", [ti.f32, ti.f64])
@pytest.mark.parametrize("kind", ["random", "diagonal", "identity", "definite"])
def test_values_and_vectors(n, dt, kind):
    given = {"random": symmetric(n), "diagonal": np.diag(np.arange(n, 0, -1.0)), "identity": np.eye(n),
             "definite": symmetric(n) @ symmetric(n)}[kind]
    a, q, spd = (ti.Matrix.field(n, n, dt, shape=2) for _ in range(3))
    w = ti.Vector.field(n, dt, shape=2)
    a.from_numpy(np.stack([given, -given]))

    @ti.kernel
    def k():
        for i in a:
            w[i], q[i] = ti.sym_eig(a[i], dt)
            spd[i] = ti.make_spd(a[i], dt)

    k()
    near = 1e-4 if dt is ti.f32 else 1e-11
    for i, matrix in enumerate((given, -given)):
        values, vectors = w.to_numpy()[i], q.to_numpy()[i]
        np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=near * n)
        np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, matrix, atol=near * n)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=near * n)
        exact, basis = np.linalg.eigh(matrix)
        np.testing.assert_allclose(spd.to_numpy()[i], basis @ np.diag(np.maximum(exact, 0)) @ basis.T, atol=near * n)


def test_at_the_top_of_a_kernel(double):
    result = ti.Vector.field(5, ti.f64, shape=())
    given = symmetric(5)
    a = ti.Matrix.field(5, 5, ti.f64, shape=())
    a.from_numpy(given)

    @ti.kernel
    def k():
        values, _ = ti.sym_eig(a[None])
        result[None] = values

    k()
    np.testing.assert_allclose(result.to_numpy(), np.linalg.eigvalsh(given), atol=1e-11)


@pytest.mark.parametrize("n", [4, 6])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("what", ["values", "spd"])
def test_gradients_are_those_of_differences(n, diagonal, what, double):
    given = np.diag(np.arange(n) - 1.5) if diagonal else symmetric(n, 5)
    weights = symmetric(n, 7)
    a = ti.Matrix.field(n, n, ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        for _ in range(1):
            if ti.static(what == "spd"):
                m = ti.make_spd(a[None])
                for i, j in ti.static(ti.ndrange(n, n)):
                    loss[None] += m[i, j] * weights[i, j]
            else:
                w, q = ti.sym_eig(a[None])
                for i in ti.static(range(n)):
                    loss[None] += w[i] * weights[i, 0]

    def value(matrix):
        w, q = np.linalg.eigh((matrix + matrix.T) / 2)
        if what == "values":
            return w @ weights[:, 0]
        return np.sum(weights * (q @ np.diag(np.maximum(w, 0)) @ q.T))

    a.from_numpy(given)
    with ti.ad.Tape(loss):
        k()
    assert loss[None] == pytest.approx(value(given))
    eps = 1e-6
    expected = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        step = np.zeros((n, n))
        step[i, j] = eps
        expected[i, j] = (value(given + step) - value(given - step)) / (2 * eps)
    np.testing.assert_allclose(a.grad.to_numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("matrix", [[[0, 1], [-1, 0]], [[2, 1], [0, 3]], [[1, 2], [3, 4]], [[2, 0], [0, 2]], [[3, 0], [1, 5]],
                                    [[1, 1], [0, 1]], [[-1, -5], [2, 0.5]]])
def test_eig_of_two_rows(matrix, double):
    given = np.array(matrix, dtype=float)

    @ti.kernel
    def k(w: ti.types.ndarray(), v: ti.types.ndarray()):
        for _ in range(1):
            values, vectors = ti.eig(ti.Matrix(matrix))
            for i, j in ti.static(ti.ndrange(2, 2)):
                w[i, j] = values[i, j]
            for i, j in ti.static(ti.ndrange(4, 2)):
                v[i, j] = vectors[i, j]

    w, v = np.zeros((2, 2)), np.zeros((4, 2))
    k(w, v)
    values, vectors = w[:, 0] + 1j * w[:, 1], v[0::2] + 1j * v[1::2]
    np.testing.assert_allclose(given @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(np.linalg.eigvals(given)), atol=1e-12)


@pytest.mark.parametrize("name, n", [("sym_eig", 13), ("eig", 3), ("svd", 4), ("polar_decompose", 4)])
def test_other_sizes_are_named(name, n):
    function = getattr(ti, name)

    @ti.kernel
    def k():
        for _ in range(1):
            _ = function(ti.Matrix.identity(ti.f32, n))

    with pytest.raises(ti.QuadrantsTypeError, match=f"`{name}` is of matrices with 2 .*rows"):
        k()


def test_the_bit_that_is_the_nth_one_set():
    @ti.kernel
    def k(mask: ti.u32, base: ti.u32, offset: ti.i32) -> ti.u32:
        return ti.math.fns(mask, base, offset)

    none = 0xFFFFFFFF
    for mask, base, offset, wanted in [(0b10110, 0, 1, 1), (0b10110, 0, 2, 2), (0b10110, 4, -2, 2), (0b10110, 1, 0, 1),
                                       (0b10110, 0, 0, none), (0b10110, 0, 9, none), (1 << 31, 0, 1, 31), (0, 5, 1, none)]:
        assert k(mask, base, offset) == wanted
