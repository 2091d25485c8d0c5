"""PyTorch: tensors as arguments, and kernels as functions."""

import copy
import gc
import io

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from costate import _core  # noqa: E402
from costate._core import DType, Op  # noqa: E402
from costate.interop import torch as interop  # noqa: E402
from costate.interop.torch import torch_function  # noqa: E402
from costate.lang import runtime  # noqa: E402

HERE = _core.Loc(__file__, 1)
DEVICE = _core.Device.best().name
MEMORY = "cpu" if DEVICE in ("cpu", "simt") else DEVICE   # tensors elsewhere are copied
PLACE = "cuda" if DEVICE == "cuda" else "cpu"
COPIES = PLACE != MEMORY
array_of = interop.array_for if COPIES else interop.array_of
shares = pytest.mark.skipif(COPIES, reason="Vulkan cannot use memory of others")


def launch(function, *arguments):
    return interop.launcher(function)(*arguments) if COPIES else interop.launch(function, *arguments)


def tensor(*values, dtype=torch.float64, grad=False):
    return torch.tensor(values, dtype=dtype, device=PLACE, requires_grad=grad)


def each(t, array, body):
    (i,) = t.begin_range([t.extent(array, 1, 0, HERE)], HERE)
    body(i)
    t.end()


def square(dtype):
    def body(t):
        x, y = t.array(dtype, 1), t.array(dtype, 1)

        def one(i):
            value = t.load(x, dtype, [i], HERE)
            t.store(y, dtype, [i], t.pure(Op.mul, dtype, [value, value], HERE), HERE)

        each(t, x, one)

    return body


def in_place(t):
    """x[i] = exp(x[i]) * x[i]"""
    x = t.array(DType.f64, 1)

    def one(i):
        value = t.load(x, DType.f64, [i], HERE)
        grown = t.pure(Op.exp, DType.f64, [value], HERE)
        t.store(x, DType.f64, [i], t.pure(Op.mul, DType.f64, [grown, value], HERE), HERE)

    each(t, x, one)


def reloading(t):
    """y = sin(x); z = y * y: the gradient reads y back."""
    x, y, z = (t.array(DType.f64, 1) for _ in range(3))
    each(t, x, lambda i: t.store(y, DType.f64, [i], t.pure(
        Op.sin, DType.f64, [t.load(x, DType.f64, [i], HERE)], HERE), HERE))

    def one(i):
        value = t.load(y, DType.f64, [i], HERE)
        t.store(z, DType.f64, [i], t.pure(Op.mul, DType.f64, [value, value], HERE), HERE)

    each(t, y, one)


def power(t):
    """sum[] += x[i] ** n[i] * h by a loop whose iterations memory decides."""
    x, n, sum_ = t.array(DType.f64, 1), t.array(DType.i64, 1), t.array(DType.f64, 0)
    h = t.scalar(DType.f64)

    def one(i):
        zero, step = t.constant(DType.i64, 0, HERE), t.constant(DType.i64, 1, HERE)
        p = t.declare(DType.f64, h, HERE)
        t.begin_for(zero, t.load(n, DType.i64, [i], HERE), step, HERE)
        t.assign(p, t.pure(Op.mul, DType.f64, [t.read(DType.f64, p, HERE),
                                               t.load(x, DType.f64, [i], HERE)], HERE), HERE)
        t.end()
        t.update(Op.add, sum_, DType.f64, [], t.read(DType.f64, p, HERE), HERE)

    each(t, x, one)


@shares
def test_tensors_are_arguments_without_copies(device, trace):
    k = trace("square", square(DType.f64))
    x, y = tensor(1, 2, 3), tensor(0, 0, 0)
    before = device.statistics()
    launch(k.launch, x, y)
    device.synchronize()
    after = device.statistics()
    assert y.tolist() == [1, 4, 9]
    assert (before.uploads, before.downloads, before.copies) == (
        after.uploads, after.downloads, after.copies)


def test_gradients_are_those_of_the_tensors(device, trace):
    k = trace("square", square(DType.f64))
    x, y = tensor(1, 2, 3, grad=True), tensor(0, 0, 0, grad=True)
    launch(k.launch, x, y)
    assert x.grad.tolist() == [0, 0, 0]
    y.grad.fill_(1)
    launch(k.grad, x, y)
    assert x.grad.tolist() == [2, 4, 6] and y.grad.tolist() == [0, 0, 0]
    x.grad = None
    y.grad = torch.ones_like(y)
    launch(k.grad, x, y)
    assert x.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int8,
                                   torch.int16, torch.int32, torch.int64, torch.uint8,
                                   torch.uint16, torch.uint32, torch.uint64])
def test_dtypes(device, trace, dtype):
    from costate.interop.tensors import DTYPES

    k = trace("square", square(DTYPES[dtype]))
    x, y = tensor(1, 2, 3, dtype=dtype), tensor(0, 0, 0, dtype=dtype)
    launch(k.launch, x, y)
    assert y.tolist() == [1, 4, 9]


def test_writes_of_both_sides_are_seen_by_the_other(device, trace):
    k = trace("reloading", reloading)
    x, y, z = tensor(1, grad=True), tensor(0, grad=True), tensor(0, grad=True)
    version = y._version
    launch(k.launch, x, y, z)
    assert y._version > version and z._version > 0 and x._version == 0
    launch(k.grad, x, y, z)
    launch(k.launch, x, y, z)
    with torch.no_grad():
        y[0] = 5
    with pytest.raises(_core.CannotReplay):
        launch(k.grad, x, y, z)
    launch(k.launch, x, y, z)
    y.detach().mul_(2)  # shares memory and version
    with pytest.raises(_core.CannotReplay):
        launch(k.grad, x, y, z)


def test_autograd_notices_what_a_kernel_overwrites(device, trace):
    k = trace("square", square(DType.f64))
    x, w = tensor(1, 2), tensor(3, 4, grad=True)
    product = (w * x).sum()
    launch(k.launch, tensor(5, 6), x)
    with pytest.raises(RuntimeError, match="inplace"):
        product.backward()


@shares
def test_a_tape_over_tensors(device, trace):
    k = trace("square", square(DType.f64))
    x, y, z = (tensor(2, 3, grad=True) for _ in range(3))
    tape = _core.Tape()
    with tape.record():
        launch(k.launch, x, y)
        launch(k.launch, y, z)
    tape.backward(array_of(z))
    assert x.grad.tolist() == [4 * 8, 4 * 27]


def test_tensors_that_kernels_cannot_use(device, trace):
    for wrong, text in [(tensor(1, 2, 3)[::2], "contiguous"), (torch.zeros(2, 2, device=PLACE).T, "contiguous"),
                        (tensor(1, dtype=torch.bfloat16), "bfloat16"),
                        (tensor(1, dtype=torch.complex64), "complex64"),
                        (tensor(1, grad=True) * 2, "torch_function"),
                        (tensor(1, dtype=torch.float16, grad=True), "float32"),
                        (tensor(1, 2).to_sparse(), "sparse"),
                        (torch.zeros(1, device="meta"), "meta")]:
        with pytest.raises(_core.BadArgument, match=text):
            array_of(wrong)


def test_tensors_may_be_copied_pickled_and_dropped(device, trace):
    k = trace("square", square(DType.f64))
    x, y = tensor(1, 2), tensor(0, 0)
    launch(k.launch, x, y)
    other = copy.deepcopy(x)
    other[0] = 7
    launch(k.launch, other, y)
    assert y.tolist() == [49, 4] and x.tolist() == [1, 2]
    model = torch.nn.Parameter(tensor(1, 2))
    array_of(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert torch.load(file, weights_only=False).tolist() == [1, 2]
    array = array_of(tensor(4, 5))
    gc.collect()
    assert array.to_numpy().tolist() == [4, 5]


def test_a_tensor_that_becomes_another_one(device, trace):
    x = tensor(1, 2)
    first = array_of(x)
    assert array_of(x).same_as(first)
    x.set_(tensor(3, 4, 5))
    assert array_of(x).shape == (3,)
    x.requires_grad_()
    assert array_of(x).has_grad


def test_no_cycles_keep_tensors_alive(device):
    import weakref

    x = tensor(1, 2, grad=True)
    array_of(x)
    gone = weakref.ref(x)
    gc.disable()
    try:
        del x
        assert gone() is None
    finally:
        gc.enable()


def test_inference_tensors(device, trace):
    k = trace("square", square(DType.f64))
    with torch.inference_mode():
        x, y = tensor(1, 2), tensor(0, 0)
        launch(k.launch, x, y)
        launch(k.launch, x, y)
        assert y.tolist() == [1, 4]


def test_a_kernel_is_a_function(device, trace):
    f = torch_function(trace("square", square(DType.f64)), outputs={1: 0})
    x = tensor(0.5, 2, 3, grad=True)
    (f(f(x)).sum() * 2).backward()
    assert torch.allclose(x.grad, 8 * x.detach() ** 3)
    assert torch.autograd.gradcheck(f, (x,))
    assert not f(x.detach()).requires_grad


def test_a_loop_whose_iterations_memory_decides(device, trace):
    f = torch_function(trace("power", power), outputs={2: ()})
    x, n = tensor(0.5, 2, 3, grad=True), tensor(0, 3, 2, dtype=torch.int64)
    assert torch.autograd.gradcheck(lambda x: f(x, n, 2.0), (x,))
    assert f(x, n, 2).item() == 2 * (1 + 8 + 9)
    with pytest.raises(_core.BadArgument, match="scalar"):
        f(x, n, tensor(2.0, grad=True)[0])
    with pytest.raises(TypeError, match="3 arguments"):
        f(x)


def test_what_a_kernel_updates(device, trace):
    f = torch_function(trace("in_place", in_place), updates=[0])
    x = tensor(0.5, -1, grad=True)
    assert torch.autograd.gradcheck(lambda x: f(f(x) * 0.5), (x,))
    assert x.tolist() == [0.5, -1]


def test_gradients_that_read_results_back(device, trace):
    f = torch_function(trace("reloading", reloading), outputs={1: 0, 2: 0})
    x = tensor(0.5, -1, grad=True)
    assert torch.autograd.gradcheck(f, (x,))
    assert torch.autograd.gradcheck(lambda x: f(x)[1], (x,))


def test_half_precision_and_strided_inputs(device, trace):
    f = torch_function(trace("square", square(DType.f16)), outputs={1: 0})
    x = tensor(1, 2, 3, 4, dtype=torch.float16, grad=True)
    f(x[::2]).sum().backward()
    assert x.grad.tolist() == [2, 0, 6, 0] and x.grad.dtype == torch.float16


def test_functions_that_cannot_be(device, trace):
    k = trace("square", square(DType.f64))
    with pytest.raises(_core.BadArgument, match="no output"):
        torch_function(k)
    with pytest.raises(_core.BadArgument, match="'x' is none"):
        torch_function(k, updates=["x"])
    with pytest.raises(_core.BadArgument, match="no array argument 7"):
        torch_function(k, outputs={7: 0})
    with pytest.raises(_core.BadArgument, match="writes argument 1"):
        torch_function(k, updates=[0])(tensor(1), tensor(0))
    x = tensor(1, grad=True)
    f = torch_function(k, outputs={1: 0})
    y = x * 1
    z = f(y)
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        z.sum().backward()


def test_a_loss_falls(device, trace):
    f = torch_function(trace("square", square(DType.f64)), outputs={1: 0})
    x = torch.nn.Parameter(tensor(3, 5))
    optimizer = torch.optim.Adam([x], lr=0.1)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = ((f(x) - 4) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.slow
def test_it_does_not_matter_who_is_imported_first():
    import subprocess
    import sys

    for modules in ("torch, costate", "costate, torch"):
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)


def test_kernels_of_the_language(device):
    import costate as qd

    @qd.kernel
    def power(x: qd.types.ndarray(), n: qd.types.ndarray(), out: qd.types.ndarray(), h: qd.f64):
        for i in x:
            p = h
            for _ in range(n[i]):
                p *= x[i]
            out[None] += p

    f = qd.torch_function(power, outputs={2: ()})
    x, n = tensor(0.5, 2, 3, grad=True), tensor(0, 3, 2, dtype=torch.int64)
    assert f(x, n, 2).item() == 2 * (1 + 8 + 9)
    assert torch.autograd.gradcheck(lambda x: f(x, n, 2.0), (x,))
    single = x.detach().float().requires_grad_()
    f(single, n, 1.0).backward()
    assert torch.allclose(single.grad, torch.tensor([0.0, 12, 6], device=PLACE))
    qd.init(arch=qd.cpu if PLACE == "cpu" else qd.cuda)  # another device
    assert f(x, n, 1).item() == 18


def test_second_derivatives(device, trace):
    x = tensor(0.5, -1, grad=True)
    for f in (torch_function(trace("square", square(DType.f64)), outputs={1: 0}),
              torch_function(trace("in_place", in_place), updates=[0]),
              torch_function(trace("reloading", reloading), outputs={1: 0, 2: 0})):
        assert torch.autograd.gradgradcheck(f, (x,))
    f = torch_function(trace("power", power), outputs={2: ()})
    n = tensor(0, 4, dtype=torch.int64)
    hessian = torch.autograd.functional.hessian(lambda x: f(x, n, 1.0), x.detach())
    assert torch.allclose(hessian, torch.diag(tensor(0, 12)))
    (slope,) = torch.autograd.grad(f(x, n, 1.0), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        curvature.sum().backward()


def test_forward_mode(device, trace):
    x = tensor(0.5, -1, grad=True)
    for f in (torch_function(trace("square", square(DType.f64)), outputs={1: 0}),
              torch_function(trace("in_place", in_place), updates=[0]),
              torch_function(trace("reloading", reloading), outputs={1: 0, 2: 0})):
        assert torch.autograd.gradcheck(f, (x,), check_forward_ad=True)
    f = torch_function(trace("power", power), outputs={2: ()})
    n = tensor(0, 4, dtype=torch.int64)
    _, slope = torch.autograd.functional.jvp(lambda x: f(x, n, 1.0), x.detach(), tensor(1, 1))
    assert slope.item() == -4
    import torch.autograd.forward_ad as forward
    with forward.dual_level():
        y = f(forward.make_dual(x.detach(), tensor(1, 1)), n, 1.0)
        assert forward.unpack_dual(y).tangent.item() == -4


def test_forward_mode_of_a_kernel_that_writes_fields(device):
    import costate as qd
    count = qd.field(qd.i32, shape=())

    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = 2 * x[i]
            count[None] += 1

    import torch.autograd.forward_ad as forward
    f = qd.torch_function(k, outputs={1: 0})
    with forward.dual_level(), pytest.raises(_core.NotDifferentiable, match="writes fields"):
        f(forward.make_dual(tensor(1.0, 2.0), tensor(1, 1)))


def test_fields_beside_tensors(device):
    import costate as qd

    scale = qd.field(qd.f64, shape=())

    @qd.kernel
    def scaled(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i] * scale[None]

    f = qd.torch_function(scaled, outputs={1: 0})
    x = tensor(1, 2, grad=True)
    scale[None] = 3
    f(x).sum().backward()
    assert x.grad.tolist() == [6, 12]
    y = f(x)
    scale[None] = 4
    with pytest.raises(_core.CannotReplay, match="field"):
        y.sum().backward()


def test_random_numbers_are_those_of_the_call(device):
    import costate as qd

    @qd.kernel
    def noisy(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * qd.random(qd.f64)

    f = qd.torch_function(noisy, outputs={1: 0})
    x = tensor(1, 1, 1, grad=True)
    first, second = f(x), f(x)
    assert (first != second).any()
    (slope,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(slope, first)
    (slope,) = torch.autograd.grad(second.sum(), x)
    assert torch.allclose(slope, second)


def test_a_parameter_that_takes_no_gradient_leaves_one_of_zeros():
    import costate as ti

    @ti.kernel
    def weighted(w: ti.types.ndarray(needs_grad=False), x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = w[i] * x[i]

    w, x, y = (tensor(1.0, 2.0, grad=True) for _ in range(3))
    weighted(w, x, y)
    assert w.grad.tolist() == [0, 0]
    y.grad.fill_(1)
    weighted.grad(w, x, y)
    assert w.grad.tolist() == [0, 0] and x.grad.tolist() == [1, 2]



def test_a_gradient_that_is_not_contiguous_is_replaced():
    import costate as ti
    @ti.kernel
    def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i, j in x:
            y[i, j] = x[i, j] * x[i, j]

    x, y = (torch.full((2, 2), 3.0, requires_grad=True) for _ in range(2))
    square(x, y)
    grad = torch.tensor([[1.0, 2], [3, 4]])
    for given in (grad.clone(), grad.t(), torch.ones(()).expand(2, 2)):
        x.grad, y.grad = None, given
        expected = 6 * given
        square.grad(x, y)
        assert x.grad.equal(expected)
    kept = torch.tensor([[1.0, 2], [3, 4]])
    y.grad, x.grad = kept, None
    square.grad(x, y)
    kept.copy_(grad)
    y.grad, x.grad = kept.t(), None  # the same memory
    square.grad(x, y)
    assert x.grad.equal(6 * grad.t())


def test_what_torch_does_under_a_tape():
    import costate as ti
    copies = MEMORY != "cpu"

    @ti.kernel
    def squares(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def total(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for I in ti.grouped(x):
            loss[0] += x[I] * x[I]

    def fresh():
        return torch.ones(3, requires_grad=True), torch.zeros(1, requires_grad=True)

    x, loss = fresh()
    try:
        with ti.ad.Tape(loss):
            total(x, loss)
            with torch.no_grad():
                x.mul_(3)
        assert copies and x.grad.tolist() == [2, 2, 2]
    except ti.CannotReplay:  # the value that the gradient needs is gone
        assert not copies

    x, loss = fresh()
    with ti.ad.Tape(loss):
        total(x, loss)
        x.grad, loss.grad = None, None  # as `optimizer.zero_grad()` does
        total(x, loss)
        x.grad = torch.full((3,), 10.0)
    assert x.grad.tolist() == [14, 14, 14]

    x, loss = fresh()
    states = torch.zeros(2, 3)
    with pytest.raises(ti.MissingGradient), ti.ad.Tape(loss):
        squares(x, states[0])
        total(states[0], loss)
    with pytest.raises(ti.CannotReplay, match="parts of the same memory"), ti.ad.Tape(loss):
        squares(x, states[0])
        total(states, loss)
    x.grad = loss.grad = None
    with ti.ad.Tape(loss):
        total(states[0], loss)
        total(states.reshape(6)[1:4], loss)
        total(x.detach(), loss)
        total(x, loss)
    assert x.grad.tolist() == [2, 2, 2]


def test_gradients_of_what_a_tape_adds_to_begin_at_zero():
    import costate as ti

    @ti.kernel
    def add_squares(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] += x[i] * x[i]

    @ti.kernel
    def total(y: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in y:
            loss[0] += y[i]

    x, y, loss = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(3):
        x.grad = None
        with torch.no_grad():
            y.zero_()
        with ti.ad.Tape(loss):
            add_squares(x, y)
            total(y, loss)
        assert x.grad.tolist() == [2, 2, 2] and loss.item() == 3


@pytest.mark.skipif(not runtime.shares_memory(), reason="views are of the memory of the host")
def test_a_view_of_a_field_beside_the_field():
    import costate as ti
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def move():
        for i in x:
            x[i] += 1.0

    @ti.kernel
    def total(t: ti.types.ndarray()):
        for i in t:
            loss[None] += t[i]

    view = torch.from_dlpack(x)
    with pytest.raises(ti.CannotReplay, match="parts of the same memory"), ti.ad.Tape(loss):
        move()
        total(view)
