"""Copies and pickles of fields, ndarrays, tensors and values."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import costate as ti

MAKERS = {
    "field": lambda: ti.field(ti.f32, (2, 3), needs_grad=True, needs_dual=True),
    "field of vectors": lambda: ti.Vector.field(3, ti.f64, 2, needs_grad=True),
    "field of one column": lambda: ti.Matrix.field(3, 1, ti.f32, 2, needs_grad=True),
    "field with an offset": lambda: ti.field(ti.f16, 4, offset=-2, needs_grad=True),
    "integers": lambda: ti.field(ti.u8, 5),
    "number": lambda: ti.field(ti.f64, (), needs_grad=True),
    "ndarray": lambda: ti.ndarray(ti.f32, (2, 3), needs_grad=True),
    "ndarray of matrices": lambda: ti.Matrix.ndarray(2, 2, ti.i32, 2),
    "bools": lambda: ti.ndarray(ti.u1, 3),
    "tensor": lambda: ti.tensor(ti.f32, (3, 2), backend=ti.Backend.FIELD, layout=(1, 0), needs_grad=True),
}
COPIES = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "copy": copy.copy, "deepcopy": copy.deepcopy}


def _filled(array, start):
    shape = array.to_numpy().shape
    array.from_numpy((np.arange(int(np.prod(shape))).reshape(shape) + start).astype(array.dtype.np))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_copy_has_values_and_gradients_of_its_own(kind, how):
    x = MAKERS[kind]()
    _filled(x, 1)
    if x.needs_grad:
        _filled(x.grad, 100)
    made = COPIES[how](x)
    assert type(made) is type(x) and made is not x
    for name in ("dtype", "shape", "element_shape", "offset", "layout", "needs_grad", "needs_dual"):
        assert getattr(made, name) == getattr(x, name)
    assert (made.to_numpy() == x.to_numpy()).all()
    if x.needs_grad:
        assert (made.grad.to_numpy() == x.grad.to_numpy()).all()
        made.grad.fill(0)
        assert x.grad.to_numpy().any()
    made.fill(0)
    assert x.to_numpy().any()


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_gradient_is_an_array(how):
    x = ti.Vector.field(2, ti.f32, 3, needs_grad=True)
    x.grad.fill(4)
    made = COPIES[how](x.grad)
    assert isinstance(made, ti.Field) and made.to_numpy().shape == (3, 2) and (made.to_numpy() == 4).all()
    made.fill(1)
    assert (x.grad.to_numpy() == 4).all()


def test_copies_work_in_kernels_and_gradients():
    x, y = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.fill(3)
    z = pickle.loads(pickle.dumps(x))

    @ti.kernel
    def squares(a: ti.template()):
        for i in a:
            y[None] += a[i] ** 2

    with ti.ad.Tape(y):
        squares(z)
    assert z.grad.to_numpy().tolist() == [6, 6, 6] and not x.grad.to_numpy().any()


def test_placed_fields_structs_and_objects():
    placed = ti.field(ti.f32)
    ti.root.dense(ti.ij, (2, 2)).place(placed)
    placed[1, 0] = 5
    members = ti.types.struct(a=ti.f32, v=ti.math.vec3).field(shape=2, needs_grad=True)
    members.a.fill(2)
    x = ti.field(ti.f32, 2)
    found = pickle.loads(pickle.dumps({"placed": placed, "members": members, "twice": (x, x)}))
    assert found["placed"][1, 0] == 5 and found["members"].a.to_numpy().tolist() == [2, 2]
    assert found["members"].v.grad is not None and found["twice"][0] is found["twice"][1]
    twice = copy.deepcopy([x, x])
    assert twice[0] is twice[1] and twice[0] is not x


def test_cells_that_come_and_go_are_refused():
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).place(x)
    for make in COPIES.values():
        with pytest.raises(ti.QuadrantsRuntimeError, match="sparse node"):
            make(x)


def test_values_and_types():
    x = ti.Vector.field(2, ti.f32, 2)
    x[1] = [1, 2]
    for value in (x[1], ti.Vector([1, 2])):
        for make in COPIES.values():
            made = make(value)
            made[0] = 7
            assert list(made) == [7, 2] and list(x[1]) == [1, 2]
    for value in (ti.f32, ti.vulkan, ti.types.vector(3, ti.f64), ti.types.vector(), ti.Backend.FIELD):
        made = pickle.loads(pickle.dumps(value))
        assert repr(made) == repr(value)
    assert pickle.loads(pickle.dumps(ti.f32)) is ti.f32 and copy.copy(ti.cpu) == ti.cpu


def test_another_process_reads_it(tmp_path):
    x = ti.ndarray(ti.f32, (2,), needs_grad=True)
    x.from_numpy(np.array([1, 2], np.float32))
    x.grad.fill(3)
    (tmp_path / "x").write_bytes(pickle.dumps(x))
    text = f"import pickle; x = pickle.load(open({str(tmp_path / 'x')!r}, 'rb')); print(x.to_numpy(), x.grad.to_numpy())"
    assert subprocess.check_output([sys.executable, "-c", text], text=True).strip() == "[1. 2.] [3. 3.]"


def test_tensors_are_the_fields_and_ndarrays_themselves():
    x, v = ti.field(ti.f32, 2, needs_grad=True), ti.Vector.ndarray(3, ti.f32, 2)
    m = ti.Matrix.tensor(2, 2, ti.f32, (2,), backend=ti.Backend.FIELD)
    assert ti.wrap(x) is x and ti.Tensor(v) is v and ti.VectorTensor(v) is v and ti.Tensor(ti.wrap(x))._unwrap() is x
    assert isinstance(x, ti.Tensor) and isinstance(v, ti.VectorTensor) and isinstance(m, ti.MatrixTensor)
    assert not isinstance(x, ti.VectorTensor) and not isinstance(v, ti.MatrixTensor)
    for make, given in ((ti.Tensor, np.zeros(2)), (ti.wrap, 3), (ti.VectorTensor, x), (ti.MatrixTensor, v)):
        with pytest.raises(TypeError, match="is for such a field or ndarray"):
            make(given)

    @ti.kernel
    def add(a: ti.Tensor, b: ti.VectorTensor, c: ti.MatrixTensor):
        for i in a:
            a[i] += 1
            b[i] += 2
            c[i] += 3

    add(x, v, m)
    assert (x.to_numpy() == 1).all() and (v.to_numpy() == 2).all() and (m.to_numpy() == 3).all()


@ti.dataclass
class Ball:
    mass: ti.f32
    place: ti.math.vec2

    def weight(self):
        return 10 * self.mass

    @ti.func
    def shifted(self, by):
        return self.place + by

    @staticmethod
    def kinds():
        return 2


@pytest.mark.parametrize("how", COPIES)
def test_structs_with_methods(how):
    balls = Ball.field(shape=2, needs_grad=True)
    balls[1] = Ball(2, [3, 4])
    balls.mass.grad[0] = 7
    made, one = COPIES[how](balls), COPIES[how](Ball(3, [1, 2]))
    balls.mass[1] = 9

    @ti.kernel
    def k() -> ti.f32:
        return made[1].shifted(1.0)[1]

    assert made[1].weight() == 20 and k() == 5 and made.mass.grad[0] == 7
    assert one.weight() == 30 and one.kinds() == 2


def test_structs_of_classes_in_functions_are_copied_and_not_pickled():
    @ti.dataclass
    class Inner:
        a: ti.f32

        def twice(self):
            return 2 * self.a

    x = Inner.field(shape=1)
    x.a.fill(3)
    assert copy.deepcopy(x)[0].twice() == 6
    with pytest.raises(pickle.PicklingError, match="`test_structs_of.*Inner` cannot be pickled: that class is made in a function"):
        pickle.dumps(x)
