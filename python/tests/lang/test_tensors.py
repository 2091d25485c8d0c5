"""PyTorch tensors as arguments of kernels; after test_ad_ndarray_torch of Quadrants."""

import warnings

import numpy as np
import pytest

import costate as ti

torch = pytest.importorskip("torch")

from costate import _core  # noqa: E402
from costate.interop import copies, tensors  # noqa: E402

PLACE = "cuda" if _core.Device.best().name == "cuda" else "cpu"


def torch_op(output_shapes):
    """A differentiable function of PyTorch of a kernel, as in the tests of Taichi."""
    def decorate(f):
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                outputs = tuple(torch.zeros(s, dtype=inputs[0].dtype, requires_grad=True)
                                for s in output_shapes)
                ctx.save_for_backward(*inputs, *outputs)
                f(*inputs, *outputs)
                return outputs

            @staticmethod
            def backward(ctx, *slopes):
                saved = ctx.saved_tensors
                inputs, outputs = saved[:-len(slopes)], saved[-len(slopes):]
                for o, g in zip(outputs, slopes):
                    o._grad = g.contiguous().clone()
                for x in inputs:
                    x.grad = torch.zeros_like(x)
                f.grad(*inputs, *outputs)
                gradients = tuple(x.grad for x in inputs)
                for x in inputs:
                    x.grad = None
                return gradients
        return Op.apply
    return decorate


@pytest.mark.parametrize("op", ["sin", "cos", "tanh", "sqrt"])
def test_gradcheck(op, double):
    function = getattr(ti, op)

    @torch_op(output_shapes=[(4,)])
    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            v = x[i]
            for _ in range(i + 1):
                v = function(v) + x[i]
            y[i] = v

    x = torch.tensor([0.2, 0.5, 0.8, 1.1], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: k(x)[0], (x,))


def test_tensors_share_their_memory():
    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.f32, ndim=2)):
        for i, j in x:
            x[i, j] += i + j

    x = torch.ones(2, 3)
    k(x)
    assert x.tolist() == [[1, 2, 3], [2, 3, 4]]


def test_tape_with_tensors():
    x = torch.full((3,), 2.0, requires_grad=True)
    loss = torch.zeros(1, requires_grad=True)

    @ti.kernel
    def k(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in x:
            loss[0] += x[i] ** 3

    with ti.ad.Tape(loss=loss):
        k(x, loss)
    assert x.grad.tolist() == [12, 12, 12]
    with pytest.raises(RuntimeError, match="one element"):
        ti.ad.Tape(x)
    with pytest.raises(RuntimeError, match="requires_grad"):
        ti.ad.Tape(torch.zeros(1))


def test_gradients_that_are_not_wanted():
    @ti.kernel
    def k(x: ti.types.ndarray(needs_grad=False), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * 2

    x = torch.ones(3, requires_grad=True)
    y = torch.zeros(3)
    k(x, y)
    assert y.tolist() == [2, 2, 2] and x.grad.tolist() == [0, 0, 0]


def test_strided_tensors_are_refused():
    @ti.kernel
    def k(x: ti.types.ndarray()):
        x[0] = 1

    with pytest.raises(ValueError, match="contiguous"):
        k(torch.zeros(4, 2)[:, 0])


def test_fields_and_tensors():
    x = ti.field(ti.f32, shape=(2, 3))
    x.from_torch(torch.arange(6).reshape(2, 3))
    assert x.to_torch().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.to_torch(device="cpu").dtype == torch.float32
    y = ti.ndarray(ti.i32, shape=2)
    y.from_torch(torch.tensor([3, 4]))
    assert y.to_numpy().tolist() == [3, 4]


def test_vectors_in_tensors():
    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.math.vec3, ndim=1)) -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i].norm_sqr()
        return s

    assert k(torch.ones(4, 3)) == 12
    assert k(np.ones((2, 3), np.float32)) == 6


def test_a_kernel_as_a_function_of_torch():
    from costate.interop.torch import torch_function

    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.f64, ndim=1), n: ti.i32, y: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = ti.sin(v) + 0.5 * v
            y[i] = v

    f = torch_function(k, outputs={2: 0})
    x = torch.tensor([0.3, 1.2, -2.0], dtype=torch.double, device=PLACE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: f(x, 5), (x,))


@pytest.fixture(params=[PLACE, "elsewhere"])
def place(request, monkeypatch):
    """Where kernels find the memory of tensors: on the device, or elsewhere, so that they are copied."""
    if request.param == "elsewhere":
        monkeypatch.setattr(tensors, "memory_kind", lambda: "elsewhere")
    return PLACE


@ti.kernel
def squares(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] = 2 * x[i] ** 2


@ti.kernel
def norm(y: ti.types.ndarray(), s: ti.types.ndarray()):
    for i in y:
        s[0] += y[i] ** 2


def test_gradients_are_added_to_those_of_tensors(place):
    x = torch.arange(4.0, device=place).requires_grad_()
    y = torch.zeros(4, device=place, requires_grad=True)
    squares(x, y)
    assert y.tolist() == [0, 2, 8, 18] and isinstance(x._costate, copies.Copied) == (tensors.memory_kind() != place)
    for iteration in (1, 2):
        y.grad = torch.ones_like(y)
        squares.grad(x, y)
        assert x.grad.tolist() == [0, 4 * iteration, 8 * iteration, 12 * iteration]
    with torch.no_grad():
        x += 1
    squares(x, y)
    assert y.tolist() == [2, 8, 18, 32]


def test_a_tape_over_tensors(place):
    x = torch.full((3,), 2.0, device=place, requires_grad=True)
    y = torch.zeros(3, device=place, requires_grad=True)
    s = torch.zeros(1, device=place, requires_grad=True)
    for iteration in range(2):
        x.grad = y.grad = None
        with ti.ad.Tape(s):
            squares(x, y)
            norm(y, s)
        assert s.item() == 192 and x.grad.tolist() == [128] * 3 and s.grad.item() == 1


def test_gradcheck_of_copied_tensors(double, monkeypatch):
    monkeypatch.setattr(tensors, "memory_kind", lambda: "elsewhere")
    function = torch_op(output_shapes=[(3,)])(squares)
    x = torch.tensor([0.3, 1.2, -2.0], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: function(x)[0], (x,))


def test_launches_with_tensors_that_change_under_them(place):
    x, y = torch.ones(3, device=place, requires_grad=True), torch.zeros(3, device=place, requires_grad=True)
    for _ in range(3):
        squares(x, y)
    x.data = torch.full((3,), 2.0, device=place)
    squares(x, y)
    assert y.tolist() == [8, 8, 8]
    y.grad = torch.ones_like(y)
    squares.grad(x, y)
    assert x.grad.tolist() == [8, 8, 8]
    x.grad = None
    y.grad = torch.full_like(y, 2)
    squares.grad(x, y)
    squares.grad(x, y)
    assert x.grad.tolist() == [16, 16, 16]   # the first has cleared the gradient of y
    y.grad = torch.ones_like(y)
    squares.grad(x, y)
    assert x.grad.tolist() == [24, 24, 24]
    x.requires_grad_(False)
    x += 1
    squares(x, y)
    assert y.tolist() == [18, 18, 18]


def test_autograd_sees_what_repeated_launches_write(place):
    x = torch.ones(3, device=place)
    y = torch.zeros(3, device=place)
    for _ in range(3):
        squares(x, y)
    w = torch.ones(3, device=place, requires_grad=True)
    product = (w * y).sum()
    squares(x, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


@ti.kernel
def step(g: ti.types.ndarray(), p: ti.types.ndarray()):
    for i in p:
        p[i] -= g[i] / 2
        g[i] = 0


@ti.kernel
def add_squares(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] += x[i] ** 2


@ti.kernel
def thrice(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] = 3 * x[i]


@ti.kernel
def total(x: ti.types.ndarray(), s: ti.types.ndarray()):
    for i in x:
        s[0] += x[i]


@ti.kernel
def products(x: ti.types.ndarray(), w: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] += x[i] * w[i]


def test_a_gradient_as_an_argument_beside_its_tensor(place):
    p = torch.ones(3, device=place, requires_grad=True)
    p.grad = torch.full((3,), 2.0, device=place)
    step(p.grad, p)
    assert p.tolist() == [0, 0, 0] and p.grad.tolist() == [0, 0, 0]


def test_tensors_of_inference_mode_are_written_outside_of_it(place):
    with torch.inference_mode():
        x = torch.ones(3, device=place)
    thrice(x, x)
    thrice(x, x)
    assert x.tolist() == [9, 9, 9]


def test_strided_tensors_are_refused_that_were_none(place):
    @ti.kernel
    def k(x: ti.types.ndarray(ndim=2)):
        for i, j in x:
            x[i, j] += 1

    x = torch.zeros(2, 2, device=place)
    k(x)
    x.t_()
    with pytest.raises(ValueError, match="contiguous"):
        k(x)


def test_other_memory_under_a_tape_adds_to_the_same_gradient(place):
    x, y = (torch.full((2,), v, device=place, requires_grad=True) for v in (1.0, 0.0))
    s = torch.zeros(1, device=place, requires_grad=True)
    x.grad = torch.full((2,), 100.0, device=place)
    with ti.ad.Tape(s):
        add_squares(x, y)
        x.data = torch.full((2,), 3.0, device=place)
        add_squares(x, y)
        total(y, s)
    assert x.grad.tolist() == [108, 108]
    x.grad = None
    y.data.zero_()
    with ti.ad.Tape(s):
        add_squares(x, y)
        total(y, s)
    assert x.grad.tolist() == [6, 6]


def test_results_of_pytorch_are_one_argument_of_a_tape(place):
    p = torch.ones(2, device=place, requires_grad=True)
    x, y = p * 2, torch.zeros(2, device=place, requires_grad=True) * 1
    s = torch.zeros(1, device=place, requires_grad=True) * 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ti.ad.Tape(s):
            add_squares(x, y)
            add_squares(x, y)
            total(y, s)
            total(y, s)
    assert s.tolist() == [32] and x._grad.tolist() == [16, 16]


@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("part", [slice(None), slice(1)])
def test_results_that_pytorch_overwrites_under_a_tape(place, value, part):
    x, y = (torch.full((2,), v, device=place, requires_grad=True) for v in (value, 0.0))
    s = torch.zeros(1, device=place, requires_grad=True)
    with pytest.raises(RuntimeError, match="written"):
        with ti.ad.Tape(s):
            thrice(x, y)
            with torch.no_grad():
                y[part] = 0
            total(y, s)


def test_tensors_with_the_same_gradient(place):
    x, w, y = (torch.full((2,), v, device=place, requires_grad=True) for v in (3.0, 4.0, 0.0))
    x.grad = w.grad = torch.zeros(2, device=place)
    y.grad = torch.ones(2, device=place)
    with pytest.raises(ValueError, match="in common"):
        products.grad(x, w, y)
    assert x.grad.tolist() == [0, 0]
    for _ in range(2):
        y.data.zero_()
        s = torch.zeros(1, device=place, requires_grad=True)
        if isinstance(x._costate, copies.Copied):   # which may have the sum of both
            x.grad.zero_()
            with ti.ad.Tape(s):
                products(x, w, y)
                total(y, s)
            assert x.grad.tolist() == [7, 7]
