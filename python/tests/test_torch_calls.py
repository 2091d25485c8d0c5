"""Functions of PyTorch that are called again: such calls know what the first one has found, and tell when that does not hold."""

import contextlib
import os
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import costate as qd  # noqa: E402
from costate.interop import kept_calls, memory_kind  # noqa: E402

DEVICE = os.environ.get("COSTATE_DEVICE") or "cpu"
PLACE = "cuda" if DEVICE == "cuda" else "cpu"


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=getattr(qd, DEVICE))


@pytest.fixture
def calls(monkeypatch):
    """[how many calls were like one before, how many gradients of these were]"""
    counts = [0, 0]

    def counting(k, function):
        def counted(*arguments):
            found = function(*arguments)
            counts[k] += found is not None
            return found
        return counted
    monkeypatch.setattr(kept_calls.KeptCall, "__call__", counting(0, kept_calls.KeptCall.__call__))
    monkeypatch.setattr(kept_calls.KeptCall, "gradient", counting(1, kept_calls.KeptCall.gradient))
    return counts


def are_kept():
    return kept_calls.EXCHANGE is not None and memory_kind() == PLACE


def expect(calls, primal, gradients):
    assert calls == ([primal, gradients] if are_kept() else [0, 0])


def doubles(*values, grad=True):
    return torch.tensor(values, dtype=torch.float64, device=PLACE, requires_grad=grad)


@qd.kernel
def mixed(x: qd.types.ndarray(), w: qd.types.ndarray(), h: qd.f64, y: qd.types.ndarray(), total: qd.types.ndarray()):
    for i in x:
        y[i] = qd.sin(x[i]) * w[i] + h
        total[None] += x[i] * x[i]


def mixed_by_torch(x, w, h):
    return torch.sin(x) * w + h, (x * x).sum()


def alike(function, reference, *inputs):
    """Values and gradients."""
    sides = []
    for one in (function, reference):
        given = [x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x for x in inputs]
        found = one(*given)
        found = found if isinstance(found, tuple) else (found,)
        loss = sum((k + 2) * (y * y).sum() for k, y in enumerate(found))
        sides.append([*found, *torch.autograd.grad(loss, [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad])])
    for ours, theirs in zip(*sides):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_calls_with_other_values_shapes_and_numbers(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    for size, h in ((3, 0.5), (3, -1.5), (7, 2.0), (1, 0.25), (0, 1.0)):
        alike(f, mixed_by_torch, torch.rand(size, dtype=torch.float64, device=PLACE).requires_grad_(),
              torch.rand(size, dtype=torch.float64, device=PLACE).requires_grad_(size != 7), h)
    expect(calls, 4, 4)
    alike(f, mixed_by_torch, doubles(1.0, 2.0), torch.nn.Parameter(doubles(0.5, -1.0)), 3.0)
    assert f(doubles(1.0), doubles(2.0), h=0.0)[0].requires_grad
    expect(calls, 6, 5)


def test_calls_that_are_not_that_simple(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    x, w = doubles(1.0, 2.0, 3.0), doubles(0.5, -1.0, 2.0)
    alike(f, mixed_by_torch, x, w, 1.0)
    gaps = torch.arange(6, dtype=torch.float64, device=PLACE)[::2]
    negative = torch.complex(gaps, gaps).conj().imag
    assert negative.is_neg()
    for given in (gaps, negative):
        torch.testing.assert_close(f(given, w, 1.0), mixed_by_torch(given, w, 1.0))
    torch.testing.assert_close(f(x, w, 1), mixed_by_torch(x, w, 1))            # an integer
    torch.testing.assert_close(f(x, w, doubles(1.0).sum()), mixed_by_torch(x, w, 1.0))    # a tensor as a number
    expect(calls, 0, 0)
    with pytest.raises(qd.QuadrantsRuntimeTypeError):
        f(x.reshape(3, 1).repeat(1, 2), w, "one")


def test_other_dtypes_have_kept_calls_of_their_own(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    for _ in range(2):
        for dtype in (torch.float64, torch.float32):
            x = torch.tensor([1.0, 2.0], dtype=dtype, device=PLACE, requires_grad=True)
            y, total = f(x, x.detach(), 0.0)
            assert y.dtype == total.dtype == dtype and float(total.detach()) == 5
            assert torch.autograd.grad(total, x)[0].tolist() == [2, 4]
    expect(calls, 2, 2)


def test_without_gradients(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    x = doubles(1.0, 2.0)
    for around in (contextlib.nullcontext, torch.no_grad, torch.inference_mode):
        with around():
            y, total = f(x.detach() if around is contextlib.nullcontext else x, x.detach(), 0.0)
        assert not y.requires_grad and float(total) == 5
    expect(calls, 2, 0)


def test_second_derivatives_and_forward_mode_of_kept_calls(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    x, w = doubles(1.0, 2.0, 3.0), doubles(0.5, -1.0, 2.0)
    f(x, w, 1.0)
    assert torch.autograd.gradcheck(f, (x, w, 1.0), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (x, w, 1.0))
    y, _ = f(x, w, 1.0)
    first, = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(first.sum(), x)[0], -torch.sin(x) * w)


def test_what_autograd_notices(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    x, w = doubles(1.0, 2.0), doubles(0.5, -1.0)
    f(x, w, 1.0)
    v = w * 1
    y, total = f(x, v, 1.0)
    (y.sum() + total).backward(retain_graph=True)
    (y.sum() + total).backward(retain_graph=True)
    torch.testing.assert_close(x.grad, 2 * (torch.cos(x) * w + 2 * x))
    with torch.no_grad():
        v.fill_(7)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or len(packed) - 1, lambda k: packed[k]):
        total = f(x, w, 1.0)[1]
    torch.testing.assert_close(torch.autograd.grad(total, x)[0], 2 * x)
    assert packed


@qd.kernel
def overwriting(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
    for i in x:
        for _ in range(n):
            x[i] = x[i] * x[i]
        y[i] = x[i] + 1


def test_updates_and_gradients_that_need_what_was_before(calls):
    f = qd.torch_function(overwriting, outputs={2: 0}, updates=[0])

    def by_torch(x, n):
        for _ in range(n):
            x = x * x
        return x, x + 1
    for n in (2, 3, 2):
        alike(f, by_torch, doubles(1.1, -0.5), n)
    expect(calls, 2, 2)
    x = doubles(1.5, grad=False)
    assert f(x, 1)[0].tolist() == [2.25] and x.tolist() == [1.5]


@qd.kernel
def counted(x: qd.types.ndarray(), y: qd.types.ndarray(), of_each: qd.types.ndarray(dtype=qd.i32)):
    for i in x:
        y[i] = x[i] * 2
        of_each[i] = i


def test_results_that_are_integers_and_made_by_functions(calls):
    f = qd.torch_function(counted, outputs={1: 0, 2: lambda x: x.shape})
    for size in (2, 3):
        x = torch.ones(size, dtype=torch.float64, device=PLACE, requires_grad=True)
        y, numbers = f(x)
        assert numbers.tolist() == list(range(size)) and not numbers.requires_grad
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2] * size
    assert calls == [0, 0]    # what functions make is kept for the gradient of each call
    starts = iter([2, 3, 4])
    g = qd.torch_function(counted, outputs={1: lambda x: torch.zeros(2, next(starts), dtype=torch.float64, device=PLACE)[:, 0], 2: 0})
    for _ in range(3):
        assert g(doubles(1.0, 2.0))[0].tolist() == [2, 4]


@qd.data_oriented
class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @qd.kernel
    def times(self, x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * self.factor


def test_members_that_change(calls):
    scaled = Scaled(2.0)
    f = qd.torch_function(scaled.times, outputs={1: 0})
    x = doubles(1.0, 3.0)
    assert [f(x).tolist() for _ in range(2)] == [[2, 6]] * 2
    y = f(x)
    scaled.factor = 5.0
    with pytest.raises(qd.CannotReplay, match="member of an object"):
        y.sum().backward()
    for _ in range(2):
        y = f(x)
        assert y.tolist() == [5, 15] and torch.autograd.grad(y.sum(), x)[0].tolist() == [5, 5]


def test_vectors_of_other_sizes():
    @qd.kernel
    def lengths(x: qd.types.ndarray(element_dim=1), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i].norm_sqr()
    f = qd.torch_function(lengths, outputs={1: lambda x: x.shape[:1]})
    for _ in range(2):
        for size in (2, 3):
            alike(f, lambda x: (x * x).sum(1), torch.rand(4, size, dtype=torch.float64, device=PLACE).requires_grad_())


@qd.kernel
def squared(x: qd.types.ndarray(), total: qd.types.ndarray()):
    for i in x:
        total[None] += x[i] * x[i]


def test_what_goes_on_around_a_call(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    x, w = doubles(1.0, 2.0), doubles(0.5, -1.0)
    f(x, w, 1.0)
    start, loss = qd.ndarray(qd.f64, shape=1, needs_grad=True), qd.ndarray(qd.f64, shape=(), needs_grad=True)
    with qd.ad.Tape(loss):
        assert float(f(x, w, 1.0)[1].detach()) == 5
        squared(start, loss)
    torch.testing.assert_close(torch.func.grad(lambda x: f(x, w, 1.0)[1])(x.detach()), 2 * x.detach())
    expect(calls, 0, 0)
    qd.init(arch=getattr(qd, DEVICE))
    alike(f, mixed_by_torch, x, w, 1.0)
    expect(calls, 0, 0)
    alike(f, mixed_by_torch, x, w, 1.0)
    expect(calls, 1, 1)


def test_errors_are_those_of_the_first_call(calls):
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    x = doubles(1.0, 2.0)
    f(x, x, 1.0)
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match="complex|elements|dtype|cannot be"):
        f(x, "two", 1.0)
    with pytest.raises(TypeError, match="missing"):
        f(x, x)
    with pytest.raises(qd.BadArgument, match="sparse"):
        f(x.detach().to_sparse(), x, 1.0)


def test_threads_have_calls_of_their_own():
    f = qd.torch_function(mixed, outputs={3: 0, 4: ()})
    f(doubles(1.0), doubles(1.0), 1.0)
    failed = []

    def work(k):
        for n in range(50):
            x = torch.full((k + 1,), float(n), dtype=torch.float64, device=PLACE, requires_grad=True)
            if torch.autograd.grad(f(x, x, 1.0)[1], x)[0].tolist() != [2.0 * n] * (k + 1):
                failed.append((k, n))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed


@qd.kernel
def square(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]


def kept_square():
    f = qd.torch_function(square, outputs={1: 0})
    f(torch.ones(3, device=PLACE))
    return f


def test_a_trace_holds_the_kernel():
    traced = torch.jit.trace(kept_square(), torch.ones(3, device=PLACE), check_trace=False)
    assert traced(torch.tensor([1.0, 2, 3], device=PLACE)).tolist() == [1, 4, 9]


def test_a_saved_tensor_that_comes_back_lazily_negative_is_not_read_as_it_is():
    f = kept_square()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: torch._neg_view(-t)):
        x = torch.tensor([2.0], device=PLACE, requires_grad=True)
        y = f(x)
    try:
        y.backward()
    except qd.errors.BadArgument:
        return
    assert x.grad.tolist() == [4]


def test_gradients_of_nothing_are_let_go_of():
    import gc
    f = kept_square()

    def run():
        for _ in range(20):
            x = torch.zeros(0, device=PLACE, requires_grad=True)
            f(x).sum().backward()
        gc.collect()
        return sum(type(o) is torch.Tensor for o in gc.get_objects())
    before = run()
    assert run() <= before + 2


@qd.kernel
def cubed(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = x[i] * x[i] * x[i]


def test_calls_of_many_shapes_and_their_gradients_in_any_order(calls):
    function = qd.torch_function(cubed, outputs={1: 0})
    counts = [*range(1, 20), 5, 0, 20_000]         # small ones, and one that is large
    inputs = [torch.rand(n, dtype=torch.float64, device=PLACE, requires_grad=True) for n in counts]
    results = [function(x) for x in inputs]
    for x, y in reversed(list(zip(inputs, results))):
        cotangent = torch.rand_like(y)
        before = cotangent.clone()
        (found,) = torch.autograd.grad(y, x, cotangent)
        assert torch.allclose(found, 3 * x * x * cotangent) and torch.equal(cotangent, before)
    expect(calls, len(counts) - 1, len(counts) - 1)


def test_cotangents_that_are_one_number_seen_many_times(calls):
    function = qd.torch_function(cubed, outputs={1: 0})
    x = doubles(1, 2, 3)
    for _ in range(3):
        (found,) = torch.autograd.grad(function(x).sum(), x)
        assert torch.allclose(found, 3 * x * x)
    expect(calls, 2, 2)


def test_calls_of_several_threads_at_once(calls):
    function = qd.torch_function(cubed, outputs={1: 0})
    function(doubles(0, 0))
    wrong = []

    def use(k):
        x = doubles(*[float(k)] * 300)
        for _ in range(200):
            y = function(x)
            (found,) = torch.autograd.grad(y, x, torch.ones_like(y))
            if not (torch.equal(y, x * x * x) and torch.allclose(found, 3 * x * x)):
                wrong.append(k)
    threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_that_fails_leaves_the_next_ones_alone():
    @qd.kernel
    def chosen(n: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            assert n[i] < 2
            y[i] = x[n[i]] * x[n[i]]

    qd.init(arch=getattr(qd, DEVICE), debug=True)
    function, x = qd.torch_function(chosen, outputs={2: 0}), doubles(3, 4)
    for _ in range(2):
        for index, is_right in ((1, True), (7, False), (0, True)):
            n = torch.tensor([index], dtype=torch.int32, device=PLACE)
            if is_right:
                assert function(n, x).item() == x[index].item()**2
            else:
                with pytest.raises((AssertionError, qd.errors.Error)):
                    function(n, x)


@qd.kernel
def squared_twice(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
    for i in x:
        y[i] = x[i] * x[i]
    for i in x:
        z[i] = y[i] * y[i]


@pytest.mark.skipif(DEVICE != "cpu" or not are_kept(), reason="elsewhere results are saved")
def test_results_that_gradients_do_not_need_may_be_overwritten(calls):
    function, x = qd.torch_function(cubed, outputs={1: 0}), doubles(1, 2)
    for _ in range(2):
        torch.autograd.grad(function(x).sum(), x)
    for shape in (2, 3):                           # one that the gradient knows, and one that it does not
        x = torch.rand(shape, dtype=torch.float64, device=PLACE, requires_grad=True)
        y = function(x)
        y.mul_(2)
        (found,) = torch.autograd.grad(y.sum(), x)
        assert torch.allclose(found, 6 * x * x)
    expect(calls, 3, 3)


def test_results_that_gradients_need_may_not_be_overwritten():
    function, x = qd.torch_function(squared_twice, outputs={1: 0, 2: 0}), doubles(1, 2)
    for _ in range(3):
        (found,) = torch.autograd.grad(function(x)[1].sum(), x)
        assert torch.allclose(found, 4 * x**3)
    y, z = function(x)
    y.mul_(7)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(z.sum(), x)


@qd.kernel
def product_and_square(x: qd.types.ndarray(), w: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
    for i in range(1):
        y[i] = 2.0
    for i in x:
        z[i] = y[i] * x[i] + w[i] * w[i]


@pytest.mark.parametrize("makes", ["the start", "zeros"])
def test_results_that_one_gradient_needs_and_another_one_does_not(makes):
    """By `w` none are needed; by `x` what y holds, of which one element only is written."""
    start = torch.ones(3, dtype=torch.float64, device=PLACE)
    function = qd.torch_function(product_and_square, outputs={2: (lambda x, w: start) if makes == "the start" else 0, 3: 0})

    def random(requires_grad):
        return torch.rand(3, dtype=torch.float64, device=PLACE, requires_grad=requires_grad)
    for _ in range(3):
        w = random(True)
        assert torch.allclose(torch.autograd.grad(function(random(False), w)[1].sum(), w)[0], 2 * w)
    for _ in range(3):
        start.fill_(1)
        x = random(True)
        y, z = function(x, random(False))
        start.fill_(5)
        assert torch.equal(torch.autograd.grad(z.sum(), x)[0], y)


@qd.kernel
def multiply_in_place(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = y[i] * x[i]


def test_starts_are_those_of_the_call():
    """Also where the gradient runs the kernel again from them."""
    start = torch.ones(3, dtype=torch.float64, device=PLACE)
    function = qd.torch_function(multiply_in_place, outputs={1: lambda x: start})
    for _ in range(3):
        start.fill_(1)
        x = torch.rand(3, dtype=torch.float64, device=PLACE, requires_grad=True)
        y = function(x)
        start.fill_(5)
        found, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        assert torch.allclose(found, 2 * x)
        assert torch.allclose(torch.autograd.grad(found.sum(), x)[0], torch.full_like(x, 2))


@qd.kernel
def stores(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = 2 * x[i]
        x[i] = -7.0


@qd.kernel
def updates(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = 2 * x[i]
        x[i] += 1.0


@qd.kernel
def fetches(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = qd.atomic_add(x[0], 1.0)


@qd.kernel
def exchanges(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = qd.atomic_exchange(x[0], 5.0)


@qd.kernel
def compares(n: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in n:
        y[i] = qd.atomic_cas(n[0], 1, 2)


@qd.kernel
def doubled(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = 2 * x[i]


def doubled_then_stored(x, y):
    doubled(x, y)
    stores(x, y)


def core_of(kernel, dtype):
    return kernel.compiled(*(qd.ndarray(dtype, 3) for _ in range(2)))[0]


@pytest.mark.parametrize("kernel", [stores, updates, fetches, exchanges, compares, doubled_then_stored], ids=lambda one: one.__name__)
def test_inputs_of_refused_calls_are_what_they_were(kernel):
    """Also what autograd has kept of them before."""
    of_ints = kernel is compares
    kernels = [kernel] if kernel is doubled_then_stored else [kernel, core_of(kernel, qd.i32 if of_ints else qd.f64)]
    for one in kernels:
        function = qd.torch_function(one, outputs={1: 0})
        x = torch.ones(3, dtype=torch.int32, device=PLACE) if of_ints else doubles(1, 2, 3)
        before, loss = x.detach().clone(), (x * x).sum()
        for call in (function, function, function.operator, torch.compile(function, backend="eager")):
            with pytest.raises(qd.errors.BadArgument, match="writes argument 0"):
                call(x)
            assert torch.equal(x, before) and x._version == 0
        if not of_ints:
            assert torch.equal(torch.autograd.grad(loss, x)[0], 2 * before)


def test_inputs_that_a_later_call_would_write():
    many = []
    function = qd.torch_function(lambda x, y: stores(x, y) if many else doubled(x, y), outputs={1: 0})
    x = doubles(1, 2, 3)
    assert function(x).tolist() == [2, 4, 6]
    many.append(1)
    with pytest.raises(qd.errors.BadArgument, match="writes argument 0"):
        function(x)
    assert x.tolist() == [1, 2, 3]


def test_inputs_and_results_without_elements():
    """Which are at the same address."""
    for one in (doubled, lambda x, y: doubled(x, y)):
        assert qd.torch_function(one, outputs={1: 0})(doubles()).shape == (0,)


@pytest.mark.skipif(memory_kind() != PLACE, reason="copies of tensors are written")
def test_autograd_knows_of_inputs_that_were_written():
    """By a launch that nobody could look at before."""
    core = core_of(stores, qd.f64)
    function = qd.torch_function(lambda x, y: core.launch(x, y), outputs={1: 0})
    x = doubles(1, 2, 3)
    loss = (x * x).sum()
    with pytest.raises(qd.errors.BadArgument, match="writes argument 0"):
        function(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, x)
