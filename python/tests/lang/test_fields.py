"""Fields, ndarrays, and how they are placed."""

import copy
import pickle

import numpy as np
import pytest

import costate as ti


def test_elements_of_scalar_fields():
    x = ti.field(ti.f32, shape=(2, 3))
    x[1, 2] = 5
    x[0, 0] = 2.5
    assert x[1, 2] == 5 and x[0, 0] == 2.5 and x[0, 1] == 0
    assert x.shape == (2, 3) and x.dtype == ti.f32
    y = ti.field(ti.i32, shape=())
    y[None] = 7
    assert y[None] == 7 and y.shape == ()
    y[None] += 1
    assert y[()] == 8
    with pytest.raises(IndexError):
        x[2, 0]
    with pytest.raises(IndexError):
        x[0]


def test_elements_of_vector_and_matrix_fields():
    v = ti.Vector.field(3, ti.f32, shape=4)
    m = ti.Matrix.field(2, 3, ti.f64, shape=(2, 2))
    v[1] = [1, 2, 3]
    v[2] = ti.Vector([4, 5, 6])
    v[2][0] = 9
    v[3].y = 8
    m[0, 1] = [[1, 2, 3], [4, 5, 6]]
    m[0, 1][1, 2] = 7
    assert list(v[1]) == [1, 2, 3] and v[2].x == 9 and v[3][1] == 8
    assert m[0, 1][1, 2] == 7 and m[0, 1].to_list()[0] == [1, 2, 3]
    assert v.n == 3 and m.n == 2 and m.m == 3
    assert v.to_numpy().shape == (4, 3) and m.to_numpy().shape == (2, 2, 2, 3)


def test_host_and_kernels_see_the_same():
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2

    for i in range(4):
        x[i] = i
    double()
    assert [x[i] for i in range(4)] == [0, 2, 4, 6]
    x[1] += 5
    double()
    assert x[1] == 14
    x.fill(3)
    x[0] = 1
    double()
    assert x.to_numpy().tolist() == [2, 6, 6, 6]


def test_numpy():
    x = ti.field(ti.f32, shape=(3, 2))
    a = np.arange(6).reshape(3, 2)
    x.from_numpy(a)
    assert (x.to_numpy() == a).all() and x.to_numpy().dtype == np.float32
    assert x.to_numpy(dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError):
        x.from_numpy(np.zeros((2, 3)))
    y = ti.field(ti.f32, shape=(3, 2))
    y.copy_from(x)
    assert (y.to_numpy() == a).all()
    v = ti.Vector.field(2, ti.i32, shape=3)
    v.from_numpy(a.astype(np.int32))
    v.fill(4)
    assert (v.to_numpy() == 4).all()
    v.fill([1, 2])
    assert (v.to_numpy() == [1, 2]).all()


@pytest.mark.parametrize("dtype", [ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.f16, ti.f32,
                                   ti.f64, ti.u1], ids=str)
def test_every_type(dtype):
    x = ti.field(dtype, shape=3)
    y = ti.ndarray(dtype, shape=3)

    @ti.kernel
    def k(a: ti.types.ndarray()):
        for i in x:
            x[i] = 1
            a[i] = x[i]

    k(y)
    assert (x.to_numpy() == 1).all() and (y.to_numpy() == 1).all()
    assert x.to_numpy().dtype == dtype.np


def test_placing():
    x, y = ti.field(ti.f32), ti.field(ti.i32)
    v = ti.Vector.field(2, ti.f64)
    loss = ti.field(ti.f32)
    ti.root.dense(ti.i, 4).dense(ti.j, 3).place(x, y)
    ti.root.dense(ti.ij, (2, 5)).place(v)
    ti.root.place(loss)
    assert x.shape == y.shape == (4, 3) and v.shape == (2, 5) and loss.shape == ()
    z = ti.field(ti.f32)
    ti.root.dense(ti.i, 4).dense(ti.i, 8).place(z)
    assert z.shape == (32,)
    t = ti.field(ti.f32)
    ti.root.dense(ti.l, 3).place(t)
    assert t.shape == (3,)
    with pytest.raises(RuntimeError, match="no allocation"):
        ti.field(ti.f32).to_numpy()
    with pytest.raises(RuntimeError, match="already"):
        ti.root.dense(ti.i, 3).place(x)


def test_placed_and_lazy_gradients():
    x, y, z, n = ti.field(ti.f32), ti.field(ti.f32), ti.field(ti.f32), ti.field(ti.i32)
    ti.root.dense(ti.i, 4).place(x, x.grad)
    ti.root.dense(ti.i, 4).place(y)
    assert x.grad.to_numpy().tolist() == [0] * 4
    with pytest.raises(RuntimeError, match="needs_grad"):
        y.grad.to_numpy()
    ti.root.dense(ti.i, 2).place(z, n)
    ti.root.lazy_grad()
    ti.root.lazy_dual()
    assert z.grad.shape == (2,) and z.dual.to_numpy().tolist() == [0, 0]
    assert n.grad is None


def test_fields_builder():
    builder = ti.FieldsBuilder()
    x = ti.field(ti.f32)
    builder.dense(ti.i, 5).place(x)
    builder.lazy_grad()
    tree = builder.finalize()
    x[2] = 3
    x.grad[1] = 4
    assert x[2] == 3 and x.grad[1] == 4
    with pytest.raises(RuntimeError, match="finalized"):
        builder.dense(ti.i, 5)
    tree.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        x[2]
    with pytest.raises(RuntimeError):
        tree.destroy()


def test_ndarrays():
    x = ti.ndarray(ti.f32, shape=(2, 3))
    v = ti.Vector.ndarray(3, ti.f32, shape=2)
    m = ti.Matrix.ndarray(2, 2, ti.f32, shape=(3,))
    w = ti.ndarray(ti.math.vec2, shape=4)
    x[1, 2] = 4
    v[0] = [1, 2, 3]
    m[2] = [[1, 2], [3, 4]]

    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.f32, ndim=2), v: ti.types.ndarray(), m: ti.types.ndarray(),
          w: ti.types.ndarray(dtype=ti.math.vec2, ndim=1)):
        for i, j in x:
            x[i, j] += 1
        for i in v:
            v[i] = v[i] * 2 + m[2][1, 0]
        for i in w:
            w[i] = ti.math.vec2(i, v[0].y)

    k(x, v, m, w)
    assert x[1, 2] == 5 and list(v[0]) == [5, 7, 9] and list(w[3]) == [3, 7]
    assert x.grad is None and v.shape == (2,) and v.element_shape == (3,)


def test_compound_types():
    vec = ti.types.vector(3, ti.f32)
    mat = ti.types.matrix(2, 2, ti.i32)
    x, y = vec.field(shape=2), mat.ndarray(shape=3)
    assert x.n == 3 and y.element_shape == (2, 2)
    assert vec(1.5).to_list() == [1.5, 1.5, 1.5]
    assert mat([[1, 2], [3, 4.5]]).to_list() == [[1, 2], [3, 4]]
    assert ti.math.vec4(ti.Vector([1, 2]), 3, 4).to_list() == [1, 2, 3, 4]
    assert ti.math.ivec2(1, 2.5).to_list() == [1, 2]


def test_tensors():
    for backend in (ti.Backend.FIELD, ti.Backend.NDARRAY):
        x = ti.tensor(ti.f32, shape=(3,), backend=backend, needs_grad=True)
        assert isinstance(x, ti.Tensor) and x.grad.shape == (3,)
    assert isinstance(ti.tensor(ti.f32, shape=3), ti.ScalarNdarray)
    assert isinstance(ti.tensor(ti.f32, shape=3, backend=ti.Backend.FIELD), ti.ScalarField)
    assert ti.Vector.tensor(3, ti.f32, shape=4).element_shape == (3,)
    assert ti.Matrix.tensor(2, 2, ti.f32, shape=4, backend=ti.Backend.FIELD).m == 2
    assert x.has_grad and not x.has_dual and ti.tensor(ti.f32, (2, 3), layout=(1, 0)).layout == (1, 0)


def test_vectors_in_python():
    v = ti.Vector([1.0, 2.0, 2.0])
    assert v.norm() == 3 and v.norm_sqr() == 9 and v.sum() == 5 and (v + 1).x == 2
    assert v.dot(ti.Vector([1, 0, 1])) == 3 and v.cross(ti.Vector([1, 0, 0])).to_list() == [0, 2, -2]
    assert (2 * v).to_list() == [2, 4, 4] and (v @ v) == 9 and v.xz.to_list() == [1, 2]
    m = ti.Matrix([[1, 2], [3, 4]])
    assert (m @ ti.Vector([1, 1])).to_list() == [3, 7] and m.determinant() == -2
    assert (m @ m.inverse()).to_numpy() == pytest.approx(np.eye(2))
    assert m.transpose().to_list() == [[1, 3], [2, 4]] and m.trace() == 5 and m.max() == 4
    assert ti.Matrix.identity(ti.f32, 2).to_list() == [[1, 0], [0, 1]]
    assert ti.Vector.unit(3, 1).to_list() == [0, 1, 0] and ti.Vector.zero(ti.i32, 2).to_list() == [0, 0]
    assert ti.Matrix.rows([v, v]).shape == (2, 3) and ti.Matrix.cols([v, v]).shape == (3, 2)
    assert ti.math.length(v) == 3 and m[0, :].to_list() == [1, 2] and m[:, 1].to_list() == [2, 4]


def test_structs():
    Particle = ti.types.struct(pos=ti.math.vec2, mass=ti.f32)
    p = Particle.field(shape=3, needs_grad=True)

    @ti.dataclass
    class Ball:
        r: ti.f32

        @ti.func
        def area(self):
            return 3.0 * self.r * self.r

    balls = Ball.field(shape=2)

    @ti.kernel
    def k() -> ti.f32:
        for i in p:
            p[i].pos = ti.math.vec2(i, 2 * i)
            p[i].mass = p[i].pos.y + 1
        for i in balls:
            b = Ball(r=2.0)
            b.r += 1
            balls[i] = b
        return balls[0].area()

    assert k() == 27
    assert p[2].mass == 5 and list(p[1].pos) == [1, 2] and p.mass[2] == 5
    p[0].mass = 9
    assert p.mass[0] == 9 and p.to_numpy()["mass"].tolist() == [9, 3, 5]


def test_reset_forgets():
    x = ti.field(ti.f32, shape=3)
    ti.init(arch=ti.cpu)
    with pytest.raises(RuntimeError, match="init"):
        x.to_numpy()


def test_structs_on_the_host():
    @ti.dataclass
    class Ball:
        mass: ti.f32
        at: ti.math.vec2

        @ti.pyfunc
        def weight(self):
            return 2 * self.mass

    balls, others = (Ball.field(shape=2, needs_grad=True, needs_dual=True) for _ in range(2))
    balls[1].mass = 4
    assert balls[1].weight() == 8 and not hasattr(balls[1], "charge")
    others.copy_from(balls)
    assert others[1].mass == 4
    balls.grad.fill(1)
    balls.dual.fill(2)
    assert balls.grad[1].at[0] == 1 and balls.dual.mass[0] == 2
    assert dict(Ball(mass=1, at=[1, 2]).items)["mass"] == 1


def test_copies_of_values():
    x = ti.Vector.field(2, ti.f32, shape=2)
    x[0] = [1, 2]
    ball = ti.types.struct(mass=ti.i32, at=ti.math.vec2)(mass=3, at=[1, 2])
    for v in (ti.Vector([1.0, 2]), ti.Matrix([[1, 2], [3, 4]]), ti.math.vec3(1, 2, 3)):
        assert copy.deepcopy(v).to_list() == pickle.loads(pickle.dumps(v)).to_list() == v.to_list()
    assert copy.deepcopy(x[0]).to_list() == [1, 2] and pickle.loads(pickle.dumps(ball)).at.y == 2


def test_orders_and_indices():
    ti.Vector.field(2, ti.f32, shape=(3, 4), order="ji")
    assert ti.Vector.field(2, ti.f32, shape=3).to_numpy(keep_dims=True).shape == (3, 2, 1)
    for wrong in ({"shape": (4, 3), "order": "ik"}, {"shape": (4, 3), "order": "ii"}, {"order": "ij"}):
        with pytest.raises(RuntimeError, match="order"):
            ti.field(ti.f32, **wrong)
    x = ti.field(ti.i32, shape=(2, 2), offset=(-1, 0))
    for I in ti.grouped(x):
        x[I] = I[0] * 10 + I[1]
    assert x.to_numpy().tolist() == [[-10, -9], [0, 1]]


def test_gradients_come_before_the_first_use():
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 3).place(x)
    x[0] = 1
    ti.root.dense(ti.i, 3).place(y)
    ti.root.lazy_grad()
    y.grad[1] = 2
    with pytest.raises(RuntimeError, match="before its first use"):
        x.grad[1] = 2
    loss = ti.field(ti.f32, shape=())
    loss[None] = 1
    ti.root.lazy_grad()
    with pytest.raises(RuntimeError, match="needs_grad"), ti.ad.Tape(loss):
        pass


def test_indices_of_fields_with_a_shape_are_rescaled():
    fine, coarse = ti.field(ti.i32, shape=(16, 8)), ti.field(ti.i32, shape=(4, 8))

    @ti.kernel
    def k() -> ti.types.vector(4, ti.i32):
        a = ti.rescale_index(fine, coarse, ti.Vector([9, 5]))
        b = ti.rescale_index(coarse, fine, ti.Vector([2, 5]))
        return ti.Vector([a[0], a[1], b[0], b[1]])

    assert list(k()) == [2, 5, 8, 5]


def test_rows_of_numpy_are_vectors():
    v = ti.Vector.field(3, ti.i32, shape=2)
    v.from_numpy(np.arange(6).reshape(2, 1, 3))
    assert v.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_trace_is_of_square_matrices():
    with pytest.raises(ti.QuadrantsCompilationError, match=r"expected a square matrix, got shape \(3, 2\)"):
        ti.Matrix([[1, 2], [3, 4], [5, 6]]).trace()
