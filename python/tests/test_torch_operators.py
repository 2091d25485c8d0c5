"""Functions of kernels as operators of PyTorch: in `torch.compile`, `torch.export`, `torch.func` and graphs of CUDA."""

import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import costate as qd  # noqa: E402
from costate import _core  # noqa: E402
from several_launches import ANY, moved  # noqa: E402

DEVICE = os.environ.get("COSTATE_DEVICE") or "cpu"
PLACE = "cuda" if DEVICE == "cuda" else "cpu"
func = torch.func


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=getattr(qd, DEVICE))
    torch.compiler.reset()


def doubles(*values, grad=False):
    return torch.tensor(values, dtype=torch.float64, device=PLACE, requires_grad=grad)


@qd.kernel
def cubed(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = x[i] * x[i] * x[i]


@qd.kernel
def grown(x: qd.types.ndarray()):
    for i in x:
        x[i] = qd.exp(x[i]) * x[i]


@qd.kernel
def power(x: qd.types.ndarray(), n: qd.types.ndarray(), h: qd.f64, out: qd.types.ndarray()):
    for i in x:
        p = h * h
        k = 0
        while k < n[i]:
            p *= x[i]
            k += 1
        out[None] += p


@qd.kernel
def bent(x: qd.types.ndarray(), axis: qd.types.vector(2, qd.f64), y: qd.types.ndarray()):
    for i in x:
        y[i] = x[i] * x[i] * axis[0] + axis[1] * axis[1] * x[i]


N = torch.tensor([0, 3, 2], device=PLACE)
CUBED, GROWN, POWER, BENT = "cubed", "grown", "power", "bent"


def powers(x, h):
    return h * h * (1 + x[1] ** 3 + x[2] ** 2)


#: (our function, the same of PyTorch alone)
CASES = {CUBED: (lambda: qd.torch_function(cubed, outputs={1: 0}), lambda x: x ** 3),
         GROWN: (lambda: qd.torch_function(grown, updates=[0]), lambda x: torch.exp(x) * x),
         POWER: (lambda: (lambda f: lambda x: f(x, N, 1.5))(qd.torch_function(power, outputs={3: ()})), lambda x: powers(x, 1.5)),
         BENT: (lambda: (lambda f: lambda x: f(x, [0.5, 2]))(qd.torch_function(bent, outputs={2: 0})),
                  lambda x: x * x * 0.5 + 4 * x)}


@pytest.fixture(params=CASES)
def pair(request):
    ours, theirs = CASES[request.param]
    return ours(), theirs


def total(f):
    return lambda x: f(x).sum()


def alike(f, g, *inputs):
    found, wanted = f(*inputs), g(*inputs)
    for a, b in zip(found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,)):
        assert torch.allclose(a, b, rtol=1e-12), (a, b)


def test_operators_pass_the_checks_of_torch():
    x, n = doubles(0.5, -1, 2, grad=True), N
    for kernel, options, inputs in ((cubed, dict(outputs={1: 0}), (x,)), (grown, dict(updates=[0]), (x,)),
                                    (power, dict(outputs={3: ()}), (x, n, 1.5)), (bent, dict(outputs={2: 0}), (x, [0.5, 2.0]))):
        operator = qd.torch_function(kernel, **options).operator
        assert set(torch.library.opcheck(operator, inputs).values()) == {"SUCCESS"}
        c = operator(*inputs).detach()
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        derivatives = {"gradient": (c, [t.is_floating_point() for t in tensors]), "tangent": [t.detach() for t in tensors]}
        for name, others in derivatives.items():
            other = getattr(getattr(torch.ops.costate, f"{operator._opname}_{name}"), "default")
            assert set(torch.library.opcheck(other, (*inputs, *others)).values()) == {"SUCCESS"}


def test_derivatives_of_operators():
    x = doubles(0.5, -1, 2, grad=True)
    for f in (qd.torch_function(cubed, outputs={1: 0}), qd.torch_function(grown, updates=[0])):
        assert torch.autograd.gradcheck(f.operator, (x,), check_forward_ad=True, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(f.operator, (x,), check_fwd_over_rev=True, check_rev_over_rev=True)
        assert torch.autograd.gradgradcheck(f, (x,))


def test_transformations(pair):
    ours, theirs = map(total, pair)
    x = doubles(0.5, -1, 2)
    several = doubles([0.5, -1, 2], [1, 2, 3], [0, 0, 1])
    for change in (func.grad, func.hessian, lambda f: func.jacrev(func.jacrev(f)), lambda f: func.jacrev(func.jacfwd(f)),
                   lambda f: func.grad(lambda x: (func.grad(f)(x) * x).sum()), lambda f: lambda x: func.jvp(f, (x,), (x,))):
        alike(change(ours), change(theirs), x)
    alike(func.vmap(func.grad(ours)), func.vmap(func.grad(theirs)), several)
    alike(func.vmap(func.hessian(ours), in_dims=1), func.vmap(func.hessian(theirs), in_dims=1), several)
    alike(func.grad(lambda x: func.vmap(ours)(x).sum()), func.grad(lambda x: func.vmap(theirs)(x).sum()), several)
    alike(func.vmap(func.vmap(ours)), func.vmap(func.vmap(theirs)), torch.stack([several, 2 * several]))


def test_numbers_that_are_tensors():
    f = qd.torch_function(power, outputs={3: ()})
    x, h = doubles(0.5, -1, 2), doubles(1.5)[0]

    def ours(x, h):
        return f(x, N, h=h)
    alike(func.grad(ours, argnums=(0, 1)), func.grad(powers, argnums=(0, 1)), x, h)
    for inner, outer in ((func.grad, func.grad), (func.grad, func.jacfwd), (func.jacfwd, func.grad)):
        mixed = [outer(lambda x, h, f=f: inner(f)(x, h).sum(), argnums=(0, 1)) for f in (ours, powers)]
        alike(*mixed, x, h)
    alike(func.vmap(func.grad(ours, argnums=1), in_dims=(None, 0)), func.vmap(func.grad(powers, argnums=1), in_dims=(None, 0)),
          x, doubles(1, 2))


@pytest.mark.slow
def test_compilation(pair):
    ours, theirs = map(total, pair)
    x = doubles(0.5, -1, 2, grad=True)
    several = doubles([0.5, -1, 2], [1, 2, 3])
    compiled = torch.compile(lambda x: torch.sin(ours(2 * x)), fullgraph=True)

    def plain(x):
        return torch.sin(theirs(2 * x))
    alike(compiled, plain, x)
    alike(*[lambda x, f=f: torch.autograd.grad(f(x), x) for f in (compiled, plain)], x)
    alike(torch.compile(func.vmap(func.grad(ours)), fullgraph=True), func.vmap(func.grad(theirs)), several)
    alike(torch.compile(func.hessian(ours), fullgraph=True), func.hessian(theirs), x.detach())


@pytest.mark.slow
def test_compilation_of_calls_by_name_with_numbers_and_several_shapes():
    f = qd.torch_function(power, outputs={3: ()})
    compiled = torch.compile(lambda x, h: f(n=N, h=h, x=x), fullgraph=True)
    x = doubles(0.5, -1, 2)
    for h in (2.0, 3.0, doubles(1.5)[0]):
        assert torch.allclose(compiled(x, h), powers(x, h))
    g = torch.compile(qd.torch_function(cubed, outputs={1: 0}), fullgraph=True, dynamic=True)
    for count in (2, 3, 7):
        values = torch.arange(count, dtype=torch.float64, device=PLACE)
        assert torch.equal(g(values), values ** 3)
    assert torch.equal(g(values[::2]), values[::2] ** 3)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    f = qd.torch_function(cubed, outputs={1: 0}, name=f"tests::cubed_{strict}")

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x) + 1
    x = doubles(0.5, -1, 2)
    program = torch.export.export(Module(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2)}}, strict=strict)
    assert f"tests.cubed_{strict}" in str(program.graph)
    for values in (x, doubles(1, 2, 3, 4)):
        assert torch.equal(program.module()(values), values ** 3 + 1)


def test_what_is_refused():
    f = qd.torch_function(cubed, outputs={1: 0}, vmap_method=None)
    x = doubles(0.5, -1)
    with pytest.raises(_core.BadArgument, match="kernel `cubed` is under `vmap`"):
        func.vmap(f)(torch.stack([x, x]))
    third = func.grad(lambda x: func.grad(lambda x: func.grad(total(f))(x).sum())(x).sum())
    with pytest.raises(_core.NotDifferentiable, match="no third"):
        third(x)
    with pytest.raises(_core.NotDifferentiable, match="no tangent"):
        func.jvp(lambda x: func.jvp(f, (x,), (x,))[1], (x,), (x,))
    for name in ("square", "a::b::c", "a::1b"):
        with pytest.raises(_core.BadArgument, match="mine::cubed"):
            qd.torch_function(cubed, outputs={1: 0}, name=name)
    qd.torch_function(cubed, outputs={1: 0}, name="tests::twice")
    with pytest.raises(_core.BadArgument, match="choose another `name`"):
        qd.torch_function(cubed, outputs={1: 0}, name="tests::twice")
    with pytest.raises(_core.BadArgument, match="vmap_method"):
        qd.torch_function(cubed, outputs={1: 0}, vmap_method="all")


def test_what_operators_cannot_see():
    scale = qd.field(qd.f64, shape=())
    count = qd.field(qd.i32, shape=())

    @qd.kernel
    def scaled(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i] * scale[None]

    @qd.kernel
    def counts(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i]
            count[None] += 1

    @qd.kernel
    def noisy(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * qd.random(qd.f64)
    x = doubles(1, 2)
    scale[None] = 3
    f = total(qd.torch_function(scaled, outputs={1: 0}))
    assert func.grad(f)(x).tolist() == [6, 12]
    scale[None] = 4
    with pytest.raises(_core.CannotReplay, match="has changed since the first call"):
        func.grad(f)(x)
    for kernel, text in ((counts, "writes fields"), (noisy, "random")):
        with pytest.raises(_core.CannotReplay, match=text):
            func.grad(total(qd.torch_function(kernel, outputs={1: 0})))(x)


@qd.data_oriented
class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    @qd.kernel
    def energy(self, x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[None] += 0.5 * self.stiffness * x[i] * x[i]


def test_methods():
    spring = Spring(3.0)
    f = qd.torch_function(spring.energy, outputs={1: ()})
    x = doubles(1, 2)
    assert func.grad(f)(x).tolist() == [3, 6]
    spring.stiffness = 4.0
    with pytest.raises(_core.CannotReplay, match="member of an object"):
        func.grad(f)(x)


def moved_by_torch(x, v):
    for _ in range(2):
        f = -torch.sin(x) * x
        v = v + 0.1 * f * v
        x = x * torch.cos(v) ** 3
    return x, v, f


@pytest.mark.parametrize("options", [{}, {"steps": 1, "snapshots": 2}], ids=["all", "snapshots"])
def test_functions_of_several_launches(options):
    f = qd.torch_function(moved, outputs={2: 0}, updates=[0, 1], **options)
    x, v = doubles(0.5, -1, 2, grad=True), doubles(0.2, 0.3, 1, grad=True)
    alike(f, moved_by_torch, x, v)
    assert torch.autograd.gradcheck(f, (x, v), check_forward_ad=True)
    assert x.tolist() == [0.5, -1, 2]
    if not options:
        assert torch.autograd.gradgradcheck(f, (x, v))
        assert set(torch.library.opcheck(f.operator, (x, v)).values()) == {"SUCCESS"}
        ours, theirs = [lambda x, v, g=g: sum((a * a).sum() for a in g(x, v)) for g in (f, moved_by_torch)]
        for row, wanted in zip(*[func.hessian(g, argnums=(0, 1))(x.detach(), v.detach()) for g in (ours, theirs)]):
            assert all(torch.allclose(a, b) for a, b in zip(row, wanted))


def test_what_functions_of_several_launches_cannot_do():
    scratch = qd.field(qd.f64, shape=3)
    scale = qd.field(qd.f64, shape=())

    @qd.kernel
    def stored(x: ANY):
        for i in x:
            scratch[i] = x[i]

    @qd.kernel
    def scaled(x: ANY):
        for i in x:
            x[i] = x[i] * scale[None]

    @qd.kernel
    def counted(x: ANY) -> qd.f64:
        return x[0]

    @qd.kernel
    def drawn(x: ANY):
        for i in x:
            x[i] = x[i] * qd.random(qd.f64)
    x = doubles(0.5, -1, 2, grad=True)
    for kernel, text in ((stored, "no argument of the function"), (counted, "returns a value"), (drawn, "random numbers")):
        with pytest.raises(_core.NotDifferentiable, match=text):
            qd.torch_function(lambda x, kernel=kernel: kernel(x), updates=[0])(x)
    scale[None] = 2
    f = qd.torch_function(lambda x: scaled(x), updates=[0])
    y = f(x)
    scale[None] = 3
    with pytest.raises(_core.CannotReplay, match="changed since the first call"):
        y.sum().backward()
    with qd.ad.Tape(), pytest.raises(_core.BadArgument, match="inside of a `Tape`"):
        f(x)


@pytest.mark.parametrize("dim", [0, 1])
def test_batches_of_no_samples(dim):
    f = qd.torch_function(cubed, outputs={1: 0})
    x = torch.zeros((0, 3) if dim == 0 else (3, 0), dtype=torch.float64, device=PLACE)
    assert func.vmap(f, in_dims=dim)(x).shape == (0, 3)
    assert func.vmap(func.grad(total(f)), in_dims=dim)(x).shape == (0, 3)
    assert func.vmap(func.hessian(total(f)), in_dims=dim)(x).shape == (0, 3, 3)
    assert func.vmap(func.vmap(f, in_dims=dim))(torch.stack([x, x])).shape == (2, 0, 3)


def grown_by_torch(x):
    return torch.exp(x) * x


@qd.kernel
def squares_and_numbers(x: qd.types.ndarray(), h: qd.f64, y: qd.types.ndarray(), n: qd.types.ndarray(qd.i32, 1)):
    for i in x:
        y[i] = x[i] * x[i] * h
        n[i] = i


SQUARES = qd.torch_function(squares_and_numbers, outputs={2: 0, 3: 0})
BATCHED = {
    "one": (qd.torch_function(cubed, outputs={1: 0}), lambda x: x ** 3),
    "in place": (qd.torch_function(grown, updates=[0]), grown_by_torch),
    "several launches": (qd.torch_function(lambda x: (grown(x), grown(x))[0], updates=[0]), lambda x: grown_by_torch(grown_by_torch(x))),
    "a number": (lambda x: SQUARES(x, 2.0)[0], lambda x: 2 * x * x),
    "a number that is a tensor": (lambda x: SQUARES(x, x[0])[0], lambda x: x * x * x[0]),
}


@pytest.mark.parametrize("which", BATCHED)
def test_derivatives_of_several_at_once(which):
    x = doubles(0.5, -1, 2, grad=True)
    autograd = torch.autograd.functional

    def weighted(f):
        return lambda x: (f(x) * doubles(1, 2, 3)).sum()
    ways = [lambda f: torch.autograd.grad(f(x), x, torch.eye(3, dtype=torch.float64, device=PLACE), is_grads_batched=True)[0],
            lambda f: autograd.jacobian(f, x, vectorize=True),
            lambda f: autograd.jacobian(f, x, vectorize=True, strategy="forward-mode"),
            lambda f: autograd.hessian(weighted(f), x, vectorize=True)]
    f, by_torch = BATCHED[which]
    for way in 2 * ways:
        torch.testing.assert_close(way(f), way(by_torch), rtol=1e-12, atol=1e-12)
