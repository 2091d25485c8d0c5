"""Parameters that may be None, unpacked vectors, references, and components as fields."""

import dataclasses

import numpy as np
import pytest

import costate as ti


def test_arrays_and_templates_may_be_none():
    @ti.kernel
    def k(y: ti.types.NDArray[ti.f32, 1], x: ti.types.NDArray[ti.f32, 1] | None, t: ti.template() | None, f: ti.Tensor | None):
        for i in y:
            y[i] = 0
            if ti.static(x is not None):
                y[i] += x[i]
            if ti.static(t is not None):
                y[i] += t[i] * 10
            if ti.static(f is not None):
                y[i] += f[i] * 100

    y, x, t, f = ti.ndarray(ti.f32, 2), ti.ndarray(ti.f32, 2), ti.field(ti.f32, 2), ti.tensor(ti.f32, 2)
    for one in (x, t, f):
        one.fill(1)
    for given, wanted in [((None, None, None), 0), ((x, None, None), 1), ((None, t, None), 10), ((x, t, f), 111),
                          ((None, None, f), 100), ((x, None, None), 1)]:
        k(y, *given)
        assert y.to_numpy().tolist() == [wanted] * 2
    with pytest.raises(ti.QuadrantsRuntimeTypeError):
        k(y, ti.ndarray(ti.f32, (2, 2)), None, None)


def test_members_and_funcs_may_have_none():
    @dataclasses.dataclass(frozen=True)
    class Options:
        x: ti.types.ndarray() | None = None

    @ti.func
    def first(x: ti.types.NDArray[ti.f32, 1] | None):
        result = -1.0
        if ti.static(x is not None):
            result = x[0]
        return result

    @ti.kernel
    def k(options: Options) -> ti.f32:
        return first(options.x)

    x = ti.ndarray(ti.f32, 1)
    x.fill(3)
    assert [k(Options()), k(Options(x)), k(Options())] == [-1, 3, -1]


def test_unpacked_members_of_structs():
    @ti.dataclass
    class Tile:
        r: ti.types.vector(4, ti.f32, unpacked=True)
        s: ti.f32

    @ti.kernel
    def k() -> ti.f32:
        t = Tile()
        t.s = 0.5
        for i in ti.static(range(4)):
            t.r[i] += i
        return t.r[3] + t.r[1] + t.s

    assert k() == 4.5


def test_unpacked_vectors_are_members_only():
    kind = ti.types.vector(2, ti.f32, unpacked=True)
    for use in (lambda: kind(1, 2), lambda: kind.field(shape=2), lambda: kind.ndarray(shape=2)):
        with pytest.raises(ti.QuadrantsSyntaxError, match="leave `unpacked` out"):
            use()
    with pytest.raises(ti.QuadrantsSyntaxError, match="`unpacked` for members"):
        @ti.kernel
        def k(v: kind):
            pass
    with pytest.raises(ti.QuadrantsSyntaxError, match="choose another name"):
        @ti.dataclass
        class Tile:
            r: kind
            _r1: ti.f32


def test_references_change_the_variable_of_the_caller():
    @ti.func
    def count(n: ti.ref(ti.i32)):
        n += 1

    @ti.kernel
    def k() -> ti.i32:
        n = 3
        count(n)
        count(n)
        return n

    assert k() == 5


def test_funcs_for_the_top_level():
    x = ti.field(ti.i32, 4)

    @ti.func(requires_top_level=True)
    def add(n: ti.i32):
        for i in range(n):
            x[i] += 1

    @ti.kernel
    def good(n: ti.i32):
        add(n)
        for _ in ti.static(range(2)):
            add(n)

    @ti.kernel
    def in_a_branch(n: ti.i32):
        if n > 2:
            add(n)

    @ti.kernel
    def in_a_loop(n: ti.i32):
        for _ in range(2):
            add(n)

    left = ti.field(ti.i32, ())

    @ti.kernel
    def in_a_graph(n: ti.i32):
        while ti.graph_do_while(left):
            add(n)
            left[None] -= 1

    good(4)
    assert x.to_numpy().tolist() == [3] * 4
    for k in (in_a_branch, in_a_loop):
        with pytest.raises(ti.QuadrantsSyntaxError, match="top of a kernel"):
            k(4)
    left[None] = 2
    in_a_graph(4)
    assert x.to_numpy().tolist() == [5] * 4


def test_components_as_fields():
    x = ti.Vector.field(3, ti.f64, shape=4, needs_grad=True)
    m = ti.Matrix.field(2, 2, ti.f32, shape=(2, 2))
    x.from_numpy(np.arange(12.0).reshape(4, 3))
    y = x.get_scalar_field(1)
    assert (y[2], y.shape, y.dtype) == (7, (4,), ti.f64)
    y[2] = 9
    assert list(x[2]) == [6, 9, 8]
    assert y.to_numpy().tolist() == [1, 4, 9, 10]
    m.get_scalar_field(0, 1).fill(5)
    assert m.to_numpy()[1, 1].tolist() == [[0, 5], [0, 0]]
    assert x.ndim == 1 and m.ndim == 2
    with pytest.raises(IndexError, match="none at"):
        x.get_scalar_field(3)
    with pytest.raises(ValueError):
        y.from_numpy(np.zeros(3))


def test_components_as_fields_in_kernels():
    x = ti.Vector.field(3, ti.f64, shape=4, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.arange(12.0).reshape(4, 3))
    y = x.get_scalar_field(1)

    @ti.kernel
    def double(z: ti.template()):
        for i in z:
            z[i] *= 2

    @ti.kernel
    def energy():
        for i in y:
            loss[None] += y[i] ** 2

    double(x.get_scalar_field(0))
    double(x.get_scalar_field(2))
    assert x.to_numpy().tolist() == [[0, 1, 4], [6, 4, 10], [12, 7, 16], [18, 10, 22]]
    with ti.ad.Tape(loss):
        energy()
    assert x.grad.to_numpy()[:, 1].tolist() == [2, 8, 14, 20]
    assert y.grad.to_numpy().tolist() == [2, 8, 14, 20]


def test_a_host_write_of_a_component_leaves_the_gradients_of_the_others():
    x = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i][0] * x[i][1]

    x.fill(3)
    with ti.ad.Tape(loss):
        x.get_scalar_field(0).fill(2)
        energy()
    assert x.grad.to_numpy().tolist() == [[0, 2], [0, 2]]


def test_components_are_placed():
    v, other = ti.Vector.field(3, ti.i32), ti.field(ti.f32)
    x, y, z = (v.get_scalar_field(k) for k in range(3))
    ti.root.dense(ti.i, 8).place(x, y, other, z)

    @ti.kernel
    def k():
        for i in range(8):
            for j in range(3):
                v[i][j] = i * j

    k()
    assert v.shape == (8,) and v[5].to_list() == [0, 5, 10] and other.shape == (8,)


def test_components_of_one_field_have_one_shape():
    v = ti.Vector.field(2, ti.i32)
    ti.root.dense(ti.i, 8).place(v.get_scalar_field(0))
    with pytest.raises(ti.QuadrantsRuntimeError, match="one array of shape"):
        ti.root.dense(ti.i, 4).place(v.get_scalar_field(1))
