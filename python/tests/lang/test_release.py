"""What the user drops is released: at once, without a search for cycles."""

import copy
import dataclasses
import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import costate as ti
from costate import _core

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@ti.kernel
def double(x: ti.template()):
    for i in x:
        x[i] = x[i] * 2


@ti.kernel
def squares(x: ti.template(), y: ti.template()):
    for i in x:
        y[None] += x[i] * x[i]


@ti.kernel
def increase(x: ti.types.ndarray()):
    for i in x:
        x[i] += 1


def field(n=8):
    return ti.field(ti.f32, n, needs_grad=True)


def loss():
    return ti.field(ti.f32, (), needs_grad=True)


def a_template_argument():
    x = field()
    double(x)
    double(x)
    return x


def the_gradient_of_a_template_argument():
    x = field()
    double(x.grad)
    x.grad[0] = 1
    return x, x.grad


def a_placed_field():
    x = ti.field(ti.f32)
    node = ti.root.dense(ti.i, 8)
    node.place(x)
    double(x)
    return x, node


def a_sparse_field():
    x = ti.field(ti.f32)
    node = ti.root.pointer(ti.i, 4)
    node.dense(ti.i, 4).place(x)
    x[3] = 1
    double(x)
    return x, node, node.state()


def a_kernel_of_a_function():
    x, y = field(), loss()

    @ti.func
    def square(a):
        return a * a

    @ti.kernel
    def sum_up() -> ti.f32:
        s = 0.0
        for i in x:
            s += square(x[i])
            y[None] += x[i]
        return s
    sum_up()
    with ti.ad.Tape(y):
        sum_up()
    sum_up.grad()
    return sum_up, square, x, y


@ti.data_oriented
class Body:
    def __init__(self):
        self.x, self.y, self.z, self.n = field(), loss(), ti.ndarray(ti.f32, 8), 3

    @ti.func
    def at(self, i):
        return self.x[i] * self.n

    @ti.kernel
    def sum_up(self):
        for i in self.x:
            self.y[None] += self.at(i) + self.z[i]

    def run(self):
        with ti.ad.Tape(self.y):
            self.sum_up()
        self.sum_up()
        self.sum_up.grad()


def an_object():
    body = Body()
    body.run()
    return body, body.x, body.z


def an_object_as_a_template():
    @ti.kernel
    def fill(body: ti.template()):
        for i in body.x:
            body.x[i] = body.n
    body = Body()
    fill(body)
    return body, body.x, fill


def an_ndarray():
    x = ti.ndarray(ti.f32, 8, needs_grad=True)
    increase(x)
    increase(x)
    increase.grad(x)
    return x


def an_array_of_numpy():
    x = np.zeros(8, np.float32)
    increase(x)
    return x


Pair = ti.types.struct(a=ti.f32, b=ti.types.vector(3, ti.f32))


@ti.kernel
def set_pairs(x: ti.template()):
    for i in x:
        x[i].a = x[i].b[0]


@ti.kernel
def set_all(x: ti.types.ndarray()):
    for i in x.a:
        x[i].a = 1.0


def structs():
    x, y = Pair.field(shape=8, needs_grad=True), Pair.ndarray(8)
    set_pairs(x)
    set_all(y)
    return x, x.a, x.b, y, y.a


@dataclasses.dataclass(frozen=True)
class Arguments:
    x: ti.types.ndarray()
    y: ti.Tensor
    n: ti.i32


@ti.kernel
def of_dataclass(a: Arguments):
    for i in a.x:
        a.x[i] = a.n + a.y[i]


def a_dataclass():
    a = Arguments(ti.ndarray(ti.f32, 8), field(), 3)
    of_dataclass(a)
    of_dataclass(a)
    return a, a.x, a.y


def tapes():
    x, y = field(), loss()
    with ti.ad.Tape(y) as tape:
        squares(x, y)
        squares(x, y)
    with ti.ad.Tape(y, grad_check=[]) as other:
        squares(x, y)
    return tape, other, x, y


def forward_mode():
    x, y = (ti.field(ti.f32, shape, needs_dual=True) for shape in (8, ()))
    with ti.ad.FwdMode(y, x, seed=[1] * 8) as mode:
        squares(x, y)
    return mode, x, y


def a_graph():
    builder, given = ti.graph.GraphBuilder(), ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "x", ti.f32, 1)
    builder.dispatch(increase, given)
    made, x = builder.compile(), ti.ndarray(ti.f32, 8)
    made.run({"x": x})
    return made, x


def a_function_as_a_template():
    @ti.func
    def square(a):
        return a * a

    @ti.kernel
    def apply(x: ti.template(), f: ti.template()):
        for i in x:
            x[i] = f(x[i])
    x = field()
    apply(x, square)
    return x, square, apply


def a_branch_that_sparse_fields_have():
    x = ti.field(ti.f32)
    node = ti.root.dynamic(ti.i, 8)
    node.place(x)

    @ti.kernel
    def grow():
        for i in range(4):
            x.append(1.0)
        for i in x:
            x[i] += 1
    grow()
    return x, node, grow


def a_vector_as_a_template():
    @ti.kernel
    def scale(x: ti.template(), v: ti.template()):
        for i in x:
            x[i] = v[0]
    x = field()
    for _ in range(3):
        scale(x, ti.Vector([1.0, 2.0]))
    v = ti.Vector([1.0, 2.0])
    scale(x, v)
    assert len(scale.cache) == 1
    v[0] = 5.0
    scale(x, v)
    assert x[0] == 5 and len(scale.cache) == 2
    return x, scale


def the_gradient_of_structs():
    @ti.kernel
    def clear(x: ti.template()):
        for i in x.a:
            x.a[i] = 0
    x = Pair.field(shape=8, needs_grad=True)
    for _ in range(3):
        clear(x.grad)
    assert len(clear.cache) == 1
    return x, clear, x.a


def a_method_as_a_template():
    @ti.kernel
    def apply(x: ti.template(), f: ti.template()):
        for i in x:
            x[i] = f(i)
    x, body = field(), Body()
    for _ in range(3):
        apply(x, body.at)
    assert len(apply.cache) == 1
    return x, body, apply


CASES = [a_template_argument, the_gradient_of_a_template_argument, a_placed_field, a_sparse_field, a_kernel_of_a_function,
         an_object, an_object_as_a_template, an_ndarray, an_array_of_numpy, structs, a_dataclass, tapes, forward_mode, a_graph,
         a_function_as_a_template, a_branch_that_sparse_fields_have, a_vector_as_a_template, the_gradient_of_structs,
         a_method_as_a_template]


def references(case):
    made = case()
    return [(type(one).__name__, weakref.ref(one)) for one in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_released(case):
    assert [name for name, one in references(case) if one() is not None] == []


def test_what_the_host_has_written_is_no_reason_to_stay():
    device = ti.lang.runtime.device()
    x = field(1 << 18)
    x[0] = x.grad[1] = 1
    used = device.current_bytes
    del x
    assert used - device.current_bytes >= 2 * 4 << 18


@pytest.mark.parametrize("work", [lambda g: None, double], ids=["nothing", "launch"])
def test_what_the_host_has_written_is_there_for_others(work):
    x = field()
    gradient = x.grad
    x[3], gradient[2] = 5, 7
    del x
    work(gradient)
    array = gradient._strong
    assert array.to_numpy().tolist() == [0, 0, 0, 5, 0, 0, 0, 0]
    assert gradient[2] == (7 if work is not double else 14)


def test_replaced_members_are_released():
    body, references = Body(), []
    for _ in range(3):
        body.x = field()
        body.sum_up()
        references.append(weakref.ref(body.x))
    assert [one() is None for one in references] == [True, True, False]


def test_validation_releases_fields():
    ti.init(arch=ti.cpu, debug=True)

    def case():
        x, y = field(), loss()
        with ti.ad.Tape(y, validation=True):
            squares(x, y)
        return x, y
    test_released(case)


def test_functions_of_torch():
    torch = pytest.importorskip("torch")

    @ti.kernel
    def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i]

    def case():
        function = ti.torch_function(square, outputs={1: 0})
        x = torch.ones(8, requires_grad=True)
        function(x).sum().backward()
        y, z = torch.ones(8), torch.zeros(8)
        square(y, z)
        return function, x, y, z
    test_released(case)


def test_templates_without_weak_references_do_not_pile_up():
    @ti.kernel
    def fill(x: ti.template(), options: ti.template()):
        for i in x:
            x[i] = options["value"]
    x = field()
    for n in range(80):
        fill(x, {"value": n})
        assert x[0] == n
    assert len(fill.cache) <= 64


def test_a_new_object_at_the_same_address():
    for n in range(1, 200):
        x = ti.field(ti.f32, n)
        x.fill(1)
        double(x)
        double(x)
        assert x.to_numpy().tolist() == [4] * n
        del x


def test_a_gradient_lives_on_alone():
    x = field()
    gradient = x.grad
    x.fill(3)
    double(gradient)
    del x
    gradient.fill(2)
    double(gradient)
    assert gradient[0] == 4 and gradient.shape == (8,) and "gradient" in repr(gradient)
    kept = weakref.ref(gradient)
    ti.ad.clear_all_gradients()
    assert gradient[0] == 0
    del gradient
    gc.collect()
    assert kept() is None


def test_reset_releases_kernels_and_memory():
    device = ti.lang.runtime.device()
    before = device.current_bytes
    x, body = field(1 << 20), Body()
    double(x)
    body.run()
    assert device.current_bytes - before > 8 << 20
    ti.reset()
    assert len(double.cache) == 0 and device.current_bytes - before < 1 << 16    # what a GPU keeps for launches


@pytest.mark.parametrize("copied", [copy.copy, lambda body: copy.deepcopy(Plain(body))], ids=["copy", "deepcopy"])
def test_copies_of_objects_after_launches(copied):
    body = Body()
    body.z.fill(1)
    for _ in range(3):
        body.sum_up()
    body.y.fill(0)
    other = copied(body)
    other.y = loss()
    for _ in range(3):
        other.sum_up()
    assert body.y[None] == 0 and other.y[None] == 24


class Plain(Body):
    """One whose members a deep copy can copy."""

    def __init__(self, body):
        self.__dict__.update(body.__dict__)
        self.x = self.y = self.z = None

    def __deepcopy__(self, memo):
        made = object.__new__(Plain)
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        made.x, made.z = field(), ti.ndarray(ti.f32, 8)
        made.z.fill(1)
        return made


def test_a_custom_launch_that_its_functions_refer_to():
    x = _core.Array(ti.lang.runtime.device(), _core.DType.f32, (3,))

    class Owner:
        def make(self):
            self.launch = _core.CustomLaunch(name="mine", writes=[x], primal=lambda: self, gradient=lambda: self)
    owner = Owner()
    owner.make()
    owner.launch()
    kept = weakref.ref(owner)
    del owner
    gc.collect()
    assert kept() is None


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import costate as ti
import test_release as cases
def size():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
ti.init(arch=ti.cpu)
n = 1 << 18
def memory():
    x = cases.field(n)
    x.grad.fill(1)
    cases.double(x)
def launches():
    for _ in range(500):
        cases.squares(x, y)
        cases.squares.grad(x, y)
def options():
    ti.init(arch=ti.cpu)
    cases.an_object()
def kernels():
    cases.a_kernel_of_a_function()
    cases.an_object()
x, y = cases.field(), cases.loss()
for function, rounds in ((memory, 60), (launches, 20), (kernels, 40), (options, 40)):
    for _ in range(15):
        function()
    before = size()
    for _ in range(rounds):
        function()
    print(function.__name__, size() - before)
"""


def test_memory_of_the_process_stays():
    program = PROGRAM.format(folder=os.path.dirname(__file__))
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    grown = dict(line.split() for line in found.stdout.splitlines())
    assert len(grown) == 4 and all(float(more) < 6 for more in grown.values()), grown
