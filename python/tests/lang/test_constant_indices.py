"""Indices that are known when a kernel is compiled: negative ones count from the end, others outside are errors."""

import numpy as np
import pytest

import costate as ti


def field(shape=5, **options):
    x = ti.field(ti.f32, shape, **options)
    x.from_numpy(np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape))
    return x


def test_fields():
    x, m, s = field(), field((2, 3)), ti.types.struct(p=ti.f32, q=ti.math.vec2).field(shape=3)
    s[2].p, s[2].q = 9, [7, 8]

    @ti.kernel
    def k() -> ti.types.vector(8, ti.f32):
        j = -1
        total = 0.0
        for i in ti.static(range(-2, 0)):
            total += x[i]
        return ti.Vector([x[-1], x[-5], m[-1, -3], m[ti.Vector([-2, -1])], x[j], total, s[-1].p, s[-1].q[-2]])

    assert k().to_list() == [5, 1, 4, 3, 5, 9, 9, 7]


def test_writes():
    x, v = field(), ti.Vector.field(3, ti.f32, 2)

    @ti.kernel
    def k(j: ti.template()):
        x[-1] = 50.0
        x[-2] += 1.0
        ti.atomic_add(x[j], 2.0)
        v[-1][-1] = 3.0
        v[0][-2] += 4.0
        v[-2, 0] = 5.0

    k(-3)
    assert x.to_numpy().tolist() == [1, 2, 5, 5, 50]
    assert v.to_numpy().tolist() == [[5, 4, 0], [0, 0, 3]]


@pytest.mark.parametrize("make", [np.copy, lambda a: (lambda x: (x.from_numpy(a), x)[1])(ti.ndarray(ti.f32, 5))])
def test_arrays_of_any_extent(make):
    @ti.kernel
    def k(x: ti.types.ndarray()) -> ti.f32:
        x[-5] = 10.0
        return x[-1] + x.shape[-1] + x[0]

    assert k(make(np.arange(5, dtype=np.float32))) == 4 + 5 + 10


def test_gradients():
    x = ti.field(ti.f64, 4, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.arange(4.0))

    @ti.kernel
    def k():
        y[None] = x[-1] ** 2 + 3 * x[-4]

    k()
    y.grad[None] = 1
    k.grad()
    assert x.grad.to_numpy().tolist() == [3, 0, 0, 6]


def test_local_vectors_and_matrices():
    m = ti.Matrix.field(2, 2, ti.f32, 1)
    m[0] = [[1, 2], [3, 4]]

    @ti.kernel
    def k(i: ti.i32) -> ti.types.vector(6, ti.f32):
        a = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        b = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        b[i, -1] += 5.0
        big = ti.Vector([0.0] * 40)
        big[-1] = 6.0
        return ti.Vector([a[-1, -2], a[i, -1], a[-2, i], m[0][i, -1], b[1, -1], big[39]])

    assert k(1).to_list() == [3, 4, 2, 4, 9, 6]


def test_outside():
    x, v = field(), ti.Matrix.field(2, 2, ti.f32, 2)
    a = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
    @ti.kernel
    def beyond():
        x[5] = 1.0

    @ti.kernel
    def below() -> ti.f32:
        return x[-6]

    @ti.kernel
    def component(i: ti.i32) -> ti.f32:
        return v[0][i, 2]

    @ti.kernel
    def part(i: ti.i32) -> ti.f32:
        return v[0, i, -3]

    @ti.kernel
    def local(i: ti.i32) -> ti.f32:
        return a[i, 5]

    for kernel, args, text in ((beyond, (), r"index 5 is out of range of a field of shape \(5,\)"),
                               (below, (), "index -6 is out of range of a field"),
                               (component, (0,), r"index 2 is out of range of a vector or matrix of shape \(2, 2\)"),
                               (part, (0,), r"index -3 is out of range of a field of shape \(2, 2, 2\)"),
                               (local, (0,), "index 5 is out of range of a vector or matrix")):
        with pytest.raises(ti.QuadrantsIndexError, match=text):
            kernel(*args)


def test_arrays_without_elements_are_not_looked_at():
    x = ti.field(ti.f32, 0)

    @ti.kernel
    def k():
        for i in x:
            x[0] += 1.0

    k()


def test_offsets_make_negative_indices_legal():
    x, y = field(4, offset=-2), field((2, 2), offset=(3, 0))

    @ti.kernel
    def k() -> ti.types.vector(3, ti.f32):
        return ti.Vector([x[-2], x[1], y[4, 1]])

    @ti.kernel
    def below() -> ti.f32:
        return x[-3]

    @ti.kernel
    def beyond() -> ti.f32:
        return y[5, 0]

    assert k().to_list() == [1, 4, 4]
    for kernel in (below, beyond):
        with pytest.raises(ti.QuadrantsIndexError, match="whose indices begin at"):
            kernel()
    for read in (lambda: x[-3], lambda: x[2], lambda: y[2, 0], lambda: y[3, -1]):
        with pytest.raises(IndexError, match="whose indices begin at"):
            read()


def test_clamped_arrays():
    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.f32, ndim=1, boundary="clamp"), j: ti.i32) -> ti.types.vector(4, ti.f32):
        return ti.Vector([x[7], x[-1], x[j], x[1]])

    @ti.kernel
    def blurred(x: ti.types.ndarray(ndim=2, boundary="clamp"), y: ti.types.ndarray()):
        for i, j in y:
            y[i, j] = x[i - 1, j] + x[i + 1, j + 9]

    a = np.arange(1, 6, dtype=np.float32)
    assert k(a, -7).to_list() == [5, 1, 1, 2] and k(a, 70).to_list() == [5, 1, 5, 2]
    x, y = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    blurred(x, y)
    rows, columns = np.arange(2)[:, None], np.arange(3)
    assert np.array_equal(y, x[np.maximum(rows - 1, 0), columns] + x[np.minimum(rows + 1, 1), 2])


def test_boundaries_are_known():
    assert ti.types.ndarray(boundary="unsafe").boundary == "unsafe"
    with pytest.raises(ti.CompilationError, match='`boundary` of `types.ndarray` is "unsafe" or "clamp", not \'wrap\''):
        ti.types.ndarray(boundary="wrap")


@pytest.mark.parametrize("given", [{"ndim": 1.5}, {"ndim": -1}, {"ndim": "2"}, {"element_dim": 3}, {"ndim": True}])
def test_counts_of_the_annotation(given):
    with pytest.raises(ti.CompilationError, match=f"`{next(iter(given))}` of `types.ndarray` is an integer, "):
        ti.types.ndarray(**given)
    assert ti.types.ndarray(ndim=np.int64(2), element_dim=2).ndim == 2


def test_components_of_clamped_arrays():
    @ti.kernel
    def k(x: ti.types.ndarray(boundary="clamp"), i: ti.i32, j: ti.i32) -> ti.f32:
        return x[1][i, j]

    @ti.kernel
    def component(x: ti.types.ndarray(boundary="clamp"), i: ti.i32) -> ti.f32:
        return x[1][i]

    x, v = ti.Matrix.ndarray(2, 2, ti.f32, 3), ti.Vector.ndarray(3, ti.f32, 3)
    x.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 2, 2))
    v.from_numpy(np.arange(9, dtype=np.float32).reshape(3, 3))
    assert [k(x, i, j) for i, j in ((0, 1), (-1, 0), (2, 0), (1, 2))] == [5, 4, 7, 7]    # all four are of x[1]
    assert [component(v, i) for i in (-5, 1, 9)] == [3, 4, 5]
