"""`torch_function` takes what a direct call takes: elements that are vectors and matrices, names, methods."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import costate as ti  # noqa: E402

DOUBLES = torch.float64


@pytest.fixture(autouse=True)
def fresh():
    ti.init(default_fp=ti.f64)
    yield
    ti.reset()


def doubles(*shape):
    torch.manual_seed(1)
    return torch.rand(*shape, dtype=DOUBLES, requires_grad=True)


def checks(function, *inputs):
    """Against differences: the gradient, that of the gradient, and forward mode."""
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.fixture
def spread():
    @ti.kernel
    def spread(x: ti.types.ndarray(dtype=ti.f64, ndim=1), v: ti.types.ndarray(dtype=ti.types.vector(3, ti.f64), ndim=1)):
        for i in x:
            v[i] = x[i] * x[i] * ti.Vector([1.0, 2.0, 3.0])

    return spread


@pytest.mark.parametrize("shape", [0, (2,), (2, 3), lambda x: (x.shape[0],), lambda x: (x.shape[0], 3),
                                   lambda x: torch.zeros(2, 3, dtype=DOUBLES)])
def test_outputs_of_vectors(spread, shape):
    function = ti.torch_function(spread, outputs={1: shape})
    assert function(torch.tensor([1.0, 2.0], dtype=DOUBLES)).tolist() == [[1, 2, 3], [4, 8, 12]]
    checks(function, doubles(2))


@pytest.mark.parametrize("shape", [(2, 2), (2, 3, 3), ()])
def test_shapes_that_do_not_fit(spread, shape):
    with pytest.raises(ti.errors.BadArgument, match=r"`spread` has 1 dimensions of elements of shape \(3,\)"):
        ti.torch_function(spread, outputs={1: shape})(doubles(2))


@pytest.mark.parametrize("shape", [0, (2,), lambda x: (x.shape[0],)])
def test_inputs_of_vectors(shape):
    @ti.kernel
    def length(x: ti.types.ndarray(dtype=ti.types.vector(3, ti.f64), ndim=1), d: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            d[i] = x[i].norm()

    function = ti.torch_function(length, outputs={1: shape})
    checks(function, doubles(2, 3))
    checks(lambda x: function(x.T), doubles(3, 2))  # is not contiguous
    with pytest.raises(TypeError, match=r"`x` has shape \(3, 2\), whose last extents are not \(3,\)"):
        function(doubles(3, 2))


def test_matrices_of_some_of_which_the_gradient_is_wanted():
    matrix = ti.types.matrix(2, 2, ti.f64)

    @ti.kernel
    def product(a: ti.types.ndarray(dtype=matrix), b: ti.types.ndarray(dtype=matrix), c: ti.types.ndarray(dtype=matrix)):
        for i in ti.grouped(a):
            c[i] = a[i] @ b[i]

    function = ti.torch_function(product, outputs={2: 0})
    a, b = doubles(3, 2, 2), doubles(3, 2, 2)
    assert torch.allclose(function(a, b), a @ b)
    checks(function, a, b)
    checks(lambda x: function(a.detach(), x), b)
    checks(lambda x: function(x, b.detach()), a)


def test_updates_of_vectors_that_the_kernel_overwrites():
    @ti.kernel
    def grow(x: ti.types.ndarray(dtype=ti.types.vector(2, ti.f64), ndim=1), k: ti.f64):
        for i in x:
            x[i] = x[i] * x[i].sum() * k

    function = ti.torch_function(grow, updates=[0])
    checks(lambda x: function(x, 2.0), doubles(3, 2))
    assert function(doubles(3, 2), k=torch.tensor(2.0)).shape == (3, 2)
    checks(function, doubles(3, 2), doubles(1)[0])
    k = torch.tensor([2.0], requires_grad=True)     # of another type and shape
    function(doubles(3, 2), k).sum().backward()
    assert k.grad.shape == (1,) and k.grad.dtype == torch.float32
    with pytest.raises(ti.errors.BadArgument, match="is argument 1 .*f64 of shape"):
        function(doubles(3, 2), doubles(2))
    with pytest.raises(TypeError, match="takes 2 arguments .1 given."):
        function(doubles(3, 2))
    with pytest.raises(ti.errors.BadArgument, match="no array argument 1"):
        ti.torch_function(grow, outputs={1: ()})


def test_the_dtype_of_an_output_is_that_of_the_parameter():
    @ti.kernel
    def real(n: ti.types.ndarray(dtype=ti.i32, ndim=1), y: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in n:
            y[i] = n[i] / 2

    assert ti.torch_function(real, outputs={1: 0})(torch.tensor([3, 4], dtype=torch.int32)).tolist() == [1.5, 2]


def test_methods_and_arrays_that_need_gradients():
    @ti.data_oriented
    class Scene:
        def __init__(self):
            self.factor = 3.0

        @ti.kernel
        def scaled(self, x: ti.types.ndarray(dtype=ti.f64, ndim=1, needs_grad=True), w: ti.types.vector(2, ti.f64),
                   y: ti.types.ndarray(dtype=ti.f64, ndim=1)):
            for i in x:
                y[i] = x[i] * x[i] * self.factor * w[1]

    function = ti.torch_function(Scene().scaled, outputs={2: 0})
    checks(lambda x: function(x, ti.Vector([1.0, 2.0])), doubles(3))
    assert function(doubles(3), torch.tensor([1.0, 2.0])).shape == (3,)
    checks(function, doubles(3), doubles(2))
    checks(lambda w: function(doubles(3).detach(), w), doubles(2))
    with pytest.raises(ti.BadArgument, match="is argument 1 .*f64 of shape .2,."):
        function(doubles(3), doubles(3))


def test_numpy_arrays_are_written_and_structs_are_refused():
    @ti.kernel
    def both(x: ti.types.ndarray(dtype=ti.f64, ndim=1), n: ti.types.ndarray(), y: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            y[i] = 2 * x[i]
            n[i] = 7.0

    seen = np.zeros(2)
    x = doubles(2)
    ti.torch_function(both, outputs={2: 0})(x, seen).sum().backward()
    assert seen.tolist() == [7, 7] and x.grad.tolist() == [2, 2]

    pair = ti.types.struct(p=ti.f64, q=ti.f64)

    @ti.kernel
    def first(s: ti.types.ndarray(dtype=pair, ndim=1), d: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in s:
            d[i] = s[i].p

    with pytest.raises(TypeError, match="`s` .*Tensor.* is not an ndarray of structs with the members p, q"):
        ti.torch_function(first, outputs={1: (2,)})(doubles(2, 2))


def test_outputs_like_arguments_of_vectors_of_any_size():
    @ti.kernel
    def scaled(x: ti.types.ndarray(element_dim=1), o: ti.types.ndarray(element_dim=1)):
        for i in o:
            o[i] = x[i] * x[i].norm()

    checks(ti.torch_function(scaled, outputs={1: 0}), doubles(2, 3))


def test_numpy_arrays_of_which_something_would_be_lost():
    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray(), z: ti.types.ndarray(), o: ti.types.ndarray()):
        for i in x:
            y[i] += z[i]
            o[i] = x[i]

    function, x, memory = ti.torch_function(k, outputs={3: 0}), torch.ones(3, dtype=DOUBLES), np.zeros(4)
    with pytest.raises(ti.BadArgument, match="`y` is an array of NumPy that cannot be written"):
        function(x, np.broadcast_to(np.zeros(1), 3), memory)
    with pytest.raises(ti.BadArgument, match="`y` and `z` have memory in common"):
        function(x, memory[1:], memory[:3])
    assert function(x, memory[:3], np.broadcast_to(np.ones(1), 3)).tolist() == [1, 1, 1] and memory.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("primitives", [True, False])
def test_members_that_change_before_the_derivative(primitives):
    @ti.data_oriented(template_primitives=primitives)
    class Scaled:
        def __init__(self):
            self.factor = 2.0

        @ti.kernel
        def k(self, x: ti.types.ndarray(), o: ti.types.ndarray()):
            for i in x:
                o[i] = x[i] * x[i] * self.factor

    owner, x = Scaled(), doubles(3)
    function = ti.torch_function(owner.k, outputs={1: 0})
    for owner.factor in (2.0, 3.0):
        (slope,) = torch.autograd.grad(function(x).sum(), x)
        assert torch.allclose(slope, 2 * owner.factor * x)
    result = function(x).sum()
    owner.factor = 4.0
    with pytest.raises(ti.CannotReplay, match="a member of an object that kernel `k` reads has changed"):
        result.backward()
    owner.factor = 3.0
    assert torch.allclose(torch.autograd.grad(function(x).sum(), x)[0], 6 * x)


def test_tensors_as_numbers_under_a_tape():
    x, loss = ti.field(ti.f32, 3), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def k(a: ti.f32, v: ti.types.vector(2, ti.f32)):
        for i in x:
            loss[None] += a * a * x[i] * v[1]

    x.fill(2)
    a, v = torch.tensor(3.0, requires_grad=True), torch.tensor([1.0, 0.5], requires_grad=True)
    v.grad = torch.ones(2)
    with ti.ad.Tape(loss):
        k(a, v)
        k(a, v.detach())
    assert a.grad.item() == 36 and v.grad.tolist() == [1, 55]
    a.grad = v.grad = None
    loss.grad.fill(1)
    k.grad(a, v)
    assert a.grad.item() == 18 and v.grad.tolist() == [0, 54]
    found = k.grad(a.detach(), v.detach(), scalars=True)
    assert found["a"] == 18 and found["v"].to_list() == [0, 54]


def test_numbers_of_the_host_in_tensors_are_refused():
    x, loss = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    with pytest.raises(ti.errors.NotDifferentiable, match="tensor of PyTorch"):
        with ti.ad.Tape(loss):
            torch.ones(3) * x[0]
    assert (torch.ones(3) * x[0]).tolist() == [0, 0, 0]


def test_tensors_that_kernels_have_written_as_numbers():
    x, loss = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def write(t: ti.types.ndarray()):
        for i in range(1):
            t[0] = x[0] * x[1]

    @ti.kernel
    def k(a: ti.f32):
        for i in x:
            loss[None] += a * x[i]
    x.fill(2)
    t = torch.zeros(1, requires_grad=True)
    with ti.ad.Tape(loss):
        write(t)
        k(t)
    assert x.grad.to_numpy().tolist() == [4 + 12, 4 + 12, 4]
    for use in (lambda: k(t[0]), lambda: k.grad(t * 2)):
        with pytest.raises(ti.errors.BadArgument, match="passed as a number is the result of other operations"):
            with ti.ad.Tape(loss):
                use()
