"""Launches in graphs of CUDA that PyTorch captures, and views that PyTorch keeps: on an NVIDIA GPU only."""

import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import costate as qd  # noqa: E402

pytestmark = pytest.mark.skipif(os.environ.get("COSTATE_DEVICE") != "cuda", reason="graphs of CUDA are those of NVIDIA GPUs")


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=qd.cuda)
    torch.manual_seed(0)


def doubles(*shape):
    return torch.rand(*shape, dtype=torch.float64, device="cuda")


@qd.kernel
def waves(x: qd.types.ndarray(), w: qd.types.ndarray(), y: qd.types.ndarray(), total: qd.types.ndarray()):
    for i in x:
        y[i] = qd.sin(x[i]) * w[i]
        total[None] += x[i] * x[i]


@qd.kernel
def powers(x: qd.types.ndarray(), n: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        value = x[i]
        for _ in range(n[i]):
            value = qd.sin(value) + x[i] * value
        y[i] = value


@qd.kernel
def grow(x: qd.types.ndarray()):
    for i in x:
        x[i] = x[i] * x[i] + 1


def captured(call, warm_ups=3):
    """(the graph, what `call` returns in it), as the manual of PyTorch does it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_ups):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    return graph, found


def test_launches_are_replayed():
    x, y = doubles(1000), torch.zeros(1000, dtype=torch.float64, device="cuda")
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    w = doubles(1000)
    graph, _ = captured(lambda: waves(x, w, y, total))
    for _ in range(3):
        x.copy_(doubles(1000))
        total.zero_()
        graph.replay()
        torch.testing.assert_close(y, torch.sin(x) * w)
        torch.testing.assert_close(total, (x * x).sum())


@pytest.mark.parametrize("warm_ups", [1, 3])
def test_functions_and_their_gradients_are_replayed(warm_ups):
    f = qd.torch_function(waves, outputs={2: 0, 3: ()})
    x, w = doubles(5000).requires_grad_(), doubles(5000).requires_grad_()

    def step():
        y, total = f(x, w)
        return torch.autograd.grad(y.sum() + total, (x, w))
    graph, found = captured(step, warm_ups)
    for _ in range(3):
        with torch.no_grad():
            x.copy_(doubles(5000))
            w.copy_(doubles(5000))
        graph.replay()
        torch.testing.assert_close(found[0], (torch.cos(x) * w + 2 * x).detach())
        torch.testing.assert_close(found[1], torch.sin(x).detach())


def test_gradients_from_what_was_before_are_replayed():
    f = qd.torch_function(grow, updates=[0])
    x = doubles(300).requires_grad_()
    graph, found = captured(lambda: torch.autograd.grad(f(f(x)).sum(), x)[0])
    for _ in range(2):
        with torch.no_grad():
            x.copy_(doubles(300))
        graph.replay()
        torch.testing.assert_close(found, (4 * x * (x * x + 1)).detach())


def test_graphs_run_beside_other_launches():
    """Each has scratch memory of its own."""
    f = qd.torch_function(waves, outputs={2: 0, 3: ()})
    x, w = doubles(100_000), doubles(100_000)
    graph, (y, total) = captured(lambda: f(x, w))
    side = torch.cuda.Stream()
    for _ in range(20):
        total.zero_()
        y.zero_()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            graph.replay()
        other = f(w, x)
        torch.cuda.synchronize()
        torch.testing.assert_close(other[1], (w * w).sum())
        torch.testing.assert_close(total, (x * x).sum())


def test_loops_of_unknown_length_are_replayed_after_a_first_launch():
    f = qd.torch_function(powers, outputs={2: 0})
    x, n = doubles(4000).requires_grad_(), torch.randint(0, 20, (4000,), dtype=torch.int32, device="cuda")
    expected, = torch.autograd.grad(f(x, n).sum(), x)
    graph, found = captured(lambda: torch.autograd.grad(f(x, n).sum(), x)[0])
    for _ in range(2):
        graph.replay()
        torch.testing.assert_close(found, expected)


def test_memory_is_that_of_the_graph():
    f = qd.torch_function(grow, updates=[0])
    x = doubles(1 << 12).requires_grad_()
    for _ in range(3):
        graph, found = captured(lambda: torch.autograd.grad(f(x).sum(), x)[0])
        others = [doubles(1 << 12) for _ in range(4)]      # would overwrite what is given back too early
        f(others[0].requires_grad_()).sum().backward()
        graph.replay()
        torch.testing.assert_close(found, 2 * x.detach())
        del graph, found


def test_graphed_callables_and_training_steps():
    f = qd.torch_function(waves, outputs={2: 0, 3: ()})

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(doubles(64))

        def forward(self, x):
            y, total = f(x, self.w)
            return y * total
    layer, example = Layer(), doubles(64).requires_grad_()
    graphed = torch.cuda.make_graphed_callables(layer, (example,))
    x = doubles(64).requires_grad_()
    graphed(x).sum().backward()
    w = layer.w.detach()
    expected = torch.autograd.grad((torch.sin(x) * w * (x * x).sum()).sum(), x)[0]
    torch.testing.assert_close(x.grad, expected)


def test_what_cannot_be_captured_is_named():
    checked = qd.kernel(grow.function, debug=True)
    x = doubles(10)
    checked(x)
    before = x.clone()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(qd.CannotCapture, match="kernel `grow` cannot be captured: the host needs"):
        with torch.cuda.graph(graph):
            checked(x)
    torch.testing.assert_close(x, before)
    field = qd.field(qd.f64, shape=10)
    with pytest.raises(qd.CannotCapture, match="send data"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            grow(x)
            field.to_numpy()
    checked(x)
    torch.testing.assert_close(x, before * before + 1)


def test_gradients_that_look_at_memory_know_that_graphs_write_it():
    @qd.kernel
    def fill(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i]
            y[i] = y[i] * x[i]
    x, y = doubles(10).requires_grad_(), torch.zeros(10, dtype=torch.float64, device="cuda", requires_grad=True)
    graph, _ = captured(lambda: fill(x, y))
    with torch.no_grad():
        x.add_(1)
    graph.replay()
    y.grad.fill_(1)
    fill.grad(x, y)
    torch.testing.assert_close(x.grad, 3 * (x * x).detach())


def test_kept_views_are_in_one_order_with_launches():
    """PyTorch asks once, and never again."""
    u = qd.field(qd.f64, shape=1 << 22)
    view = torch.from_dlpack(u)

    @qd.kernel
    def advance():
        for i in u:
            for _ in range(20):
                u[i] = qd.sin(u[i]) + 1e-3
    expected = doubles(1 << 22)
    view.copy_(expected)
    for _ in range(20):
        advance()
        for _ in range(20):
            expected = torch.sin(expected) + 1e-3
        seen = view * 1          # after the launch
        view.mul_(0.5)           # before the next one
        torch.testing.assert_close(seen, expected, rtol=1e-9, atol=0)
        expected = expected * 0.5
