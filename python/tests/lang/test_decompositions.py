"""svd, polar_decompose and sym_eig, with derivatives against differences."""

import numpy as np
import pytest

import costate as ti


def random_matrix(n, seed=3):
    return np.random.default_rng(seed).uniform(-1, 1, (n, n))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", ["svd", "polar_decompose", "sym_eig"])
def test_decompositions(n, name, double):
    a = ti.Matrix.field(n, n, ti.f64, shape=(), needs_grad=True)
    parts = [ti.Matrix.field(n, n, ti.f64, shape=(), needs_grad=True) for _ in range(3)]
    weights = [random_matrix(n, k) for k in range(3)]
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        for _ in range(1):
            if ti.static(name == "svd"):
                u, s, v = ti.svd(a[None])
                parts[0][None], parts[1][None], parts[2][None] = u, s, v
            elif ti.static(name == "polar_decompose"):
                r, s = ti.polar_decompose(a[None])
                parts[0][None], parts[1][None] = r, s
            else:
                values, q = ti.sym_eig(a[None])
                parts[0][None], parts[1][None] = ti.Matrix.cols([values] * n), q

    @ti.kernel
    def weigh():
        for _ in range(1):
            for p in ti.static(range(3)):
                for i, j in ti.static(ti.ndrange(n, n)):
                    loss[None] += parts[p][None][i, j] * weights[p][i, j]

    at = random_matrix(n) + np.eye(n)
    if name == "sym_eig":
        at = at + at.T

    def run(matrix):
        a.from_numpy(matrix)
        loss[None] = 0
        k()
        weigh()
        return loss[None]

    a.from_numpy(at)
    with ti.ad.Tape(loss):
        k()
        weigh()
    found = [p.to_numpy() for p in parts]
    if name == "svd":
        u, s, v = found
        assert u @ s @ v.T == pytest.approx(at)
        assert u @ u.T == pytest.approx(np.eye(n)) and v @ v.T == pytest.approx(np.eye(n))
    elif name == "polar_decompose":
        assert found[0] @ found[1] == pytest.approx(at)
        assert found[0] @ found[0].T == pytest.approx(np.eye(n))
    else:
        assert found[0][:, 0] == pytest.approx(np.linalg.eigvalsh(at))
        assert at @ found[1] == pytest.approx(found[1] * found[0][:, 0])
    slopes = a.grad.to_numpy()
    for index in np.ndindex(n, n):
        e = np.zeros((n, n))
        e[index] = 1e-6
        if name == "sym_eig":
            e = (e + e.T) / 2
        expected = (run(at + e) - run(at - e)) / 2e-6
        assert slopes[index] == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("dt", [ti.f32, ti.f64])
@pytest.mark.parametrize("size", [1e-20, 1, 1e20])
@pytest.mark.parametrize("rows", [[[1, 1, 1]] * 3, [[1, 2, 3], [2, 4, 6], [0, 0, 0]], [[0, 0, 0]] * 3,
                                  [[2, 1, 0], [1, 3, 1], [0, 1, 2]]])
def test_of_any_rank_and_size(rows, size, dt):
    at = np.array(rows, float) * size
    a = ti.Matrix.field(3, 3, dt, shape=())
    u, s, v, r = (ti.Matrix.field(3, 3, dt, shape=()) for _ in range(4))
    values = ti.Vector.field(3, dt, shape=())
    a.from_numpy(at.astype(a.dtype.np) if hasattr(a.dtype, "np") else at)

    @ti.kernel
    def k():
        u[None], s[None], v[None] = ti.svd(a[None], dt)
        r[None] = ti.polar_decompose(a[None], dt)[0]
        values[None] = ti.sym_eig(a[None] + a[None].transpose(), dt)[0]

    k()
    near = dict(rel=1e-5 if dt is ti.f32 else 1e-12, abs=1e-5 if dt is ti.f32 else 1e-12)
    U, S, V, R = (x.to_numpy().astype(float) for x in (u, s, v, r))
    for rotation in (U, V, R):
        assert rotation @ rotation.T == pytest.approx(np.eye(3), **near)
        assert np.linalg.det(rotation) == pytest.approx(1, **near)
    assert U @ (S / size) @ V.T == pytest.approx(at / size, **near)
    assert values.to_numpy() / size == pytest.approx(np.linalg.eigvalsh((at + at.T) / size), **near)


@pytest.mark.parametrize("n", [2, 3])
def test_of_numbers_narrower_than_literals(n, double):
    a, u, s, v, r = (ti.Matrix.field(n, n, ti.f32, shape=()) for _ in range(5))
    values = ti.Vector.field(n, ti.f32, shape=())

    @ti.kernel
    def k():
        u[None], s[None], v[None] = ti.svd(a[None])
        r[None] = ti.polar_decompose(a[None])[0]
        values[None] = ti.sym_eig(a[None] + a[None].transpose())[0]

    at = random_matrix(n)
    a.from_numpy(at.astype(np.float32))
    k()
    U, S, V, R = (x.to_numpy() for x in (u, s, v, r))
    assert U @ S @ V.T == pytest.approx(at, rel=1e-5, abs=1e-6)
    assert R == pytest.approx(U @ V.T, rel=1e-5, abs=1e-6)
    assert values.to_numpy() == pytest.approx(np.linalg.eigvalsh(at + at.T), rel=1e-5, abs=1e-6)


def test_other_sizes_are_refused():
    @ti.kernel
    def k():
        u, s, v = ti.svd(ti.Matrix([[1.0] * 4] * 4))

    with pytest.raises(ti.QuadrantsTypeError, match="2 or 3 rows"):
        k()
