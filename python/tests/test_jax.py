"""Kernels as functions of JAX: derivatives in any order, transformations, devices, memory."""

import inspect
import os

import numpy as np
import pytest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import costate as qd  # noqa: E402
import costate.jax  # noqa: E402
from costate import _core  # noqa: E402
from several_launches import ANY, kicked, moved  # noqa: E402

DEVICE = os.environ.get("COSTATE_DEVICE") or "cpu"
pytestmark = [pytest.mark.skipif(DEVICE == "vulkan", reason="nobody else uses the memory of Vulkan"),
              pytest.mark.skipif(DEVICE == "cuda" and jax.default_backend() != "gpu", reason="a JAX without CUDA")]
REFUSED = (ValueError, RuntimeError)   # as XLA passes it on


@pytest.fixture(autouse=True)
def fresh():
    jax.config.update("jax_enable_x64", True)
    qd.init(arch=getattr(qd, DEVICE))


@qd.kernel
def cubed(x: ANY, y: ANY):
    for i in qd.grouped(x):
        y[i] = x[i] * x[i] * x[i]


@qd.kernel
def power(x: ANY, n: ANY, h: qd.f64, out: ANY):
    for i in x:
        p = h * h
        k = 0
        while k < n[i]:
            p *= x[i]
            k += 1
        out[None] += p


def moved_by_jax(x, v):
    for _ in range(2):
        f = -jnp.sin(x) * x
        v = v + 0.1 * f * v
        x = x * jnp.cos(v) ** 3
    return x, v, f


def powers(x, h):
    return h * h * (1 + x[1] ** 3 + x[2] ** 2)


def doubles(*values):
    return jnp.array(values, jnp.float64)


def alike(found, wanted):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.fixture
def cube():
    return costate.jax.function(cubed, outputs={1: 0})


@pytest.fixture
def raised():
    f = costate.jax.function(power, outputs={3: ()})
    return lambda x, h: f(x, jnp.array([0, 3, 2]), h)


@pytest.fixture
def move():
    return costate.jax.function(moved, outputs={2: 0}, updates=[0, 1])


@pytest.mark.slow
def test_a_loop_whose_iterations_memory_decides(raised):
    x, h = doubles(0.5, -1, 2), jnp.array(1.5)
    check_grads(jax.jit(raised), (x, h), 2)
    check_grads(lambda x: raised(x, 1.5), (x,), 1)
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            alike(*[jax.jit(outer(inner(f, (0, 1)), (0, 1)))(x, h) for f in (raised, powers)])


@pytest.mark.slow
def test_several_launches_on_arrays_in_place(move):
    x, v = doubles(0.5, -1, 2), doubles(0.2, 0.3, 1)
    alike(*[jax.jit(f)(x, v) for f in (move, moved_by_jax)])
    assert x.tolist() == [0.5, -1, 2]
    check_grads(jax.jit(move), (x, v), 2)
    ours, theirs = [lambda x, v, f=f: sum((a * a).sum() for a in f(x, v)) for f in (move, moved_by_jax)]
    alike(*[jax.jit(jax.hessian(f, (0, 1)))(x, v) for f in (ours, theirs)])
    alike(*[jax.jit(lambda x, v, f=f: jax.jvp(jax.grad(f), (x, v), (v, x)))(x, v) for f in (ours, theirs)])


@pytest.mark.slow
def test_loops_of_jax_around_a_function(move):
    x, v = doubles(0.5, -1, 2), doubles(0.2, 0.3, 1)

    def repeated(f):
        return lambda x, v: jax.lax.scan(lambda state, _: (f(*state)[:2], None), (x, v), None, length=3)[0]
    alike(*[jax.jit(jax.jacrev(repeated(f)))(x, v) for f in (move, moved_by_jax)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_batches(method):
    f = costate.jax.function(cubed, outputs={1: 0}, vmap_method=method)
    x = doubles([0.5, -1, 2], [1, 2, 3])
    for change in (lambda f: jax.grad(lambda x: f(x).sum()), lambda f: jax.jacfwd(jax.jacrev(f)), lambda f: jax.jacrev(jax.jacfwd(f))):
        alike(*[jax.jit(jax.vmap(change(g), in_axes=1))(x) for g in (f, lambda x: x * x * x)])
    alike(*[jax.jit(jax.vmap(jax.vmap(g)))(jnp.stack([x, x + 1])[..., None]) for g in (f, lambda x: x * x * x)])


def test_batches_of_numbers(raised):
    x, h = doubles(0.5, -1, 2), doubles(1, 2)
    alike(*[jax.jit(jax.vmap(jax.grad(f, (0, 1)), in_axes=(None, 0)))(x, h) for f in (raised, powers)])


@pytest.mark.slow
def test_two_devices():
    f = costate.jax.function(kicked, updates=[0])
    devices = jax.devices("cpu")
    if DEVICE == "cuda" or len(devices) < 2:
        pytest.skip("Costate uses one GPU")
    mesh = jax.sharding.Mesh(np.array(devices[:2]), ("i",))

    def whole(f):
        each = jax.shard_map(f, mesh=mesh, in_specs=(P("i"), P("i"), P()), out_specs=P("i"))
        return lambda v, f, h: (each(v, f, h) ** 2).sum()
    v, force, h = doubles(1, 2, 3, 4), doubles(4, 3, 2, 1), jnp.array(0.5)
    ours, theirs = whole(f), whole(lambda v, f, h: v + h * f * v)
    alike(*[jax.jit(jax.value_and_grad(g, (0, 1, 2)))(v, force, h) for g in (ours, theirs)])
    alike(*[jax.jit(jax.hessian(g, (0, 2)))(v, force, h) for g in (ours, theirs)])


def test_nothing_is_copied(cube, move):
    x, v = jnp.ones(1000) * 0.5, jnp.ones(1000) * 0.1
    places = [a.unsafe_buffer_pointer() for a in (x, v)]
    after = jax.jit(move, donate_argnums=(0, 1))(x, v)
    assert [a.unsafe_buffer_pointer() for a in after[:2]] == places
    x = jnp.ones(1000)
    for f in (cube, jax.grad(lambda x: cube(x).sum())):
        text = jax.jit(f).lower(x).compile().as_text()
        assert text.count("custom-call(") == 1 and " copy(%x" not in text and " copy(%ffi" not in text
    device = qd.lang.runtime.device()
    for f, copies in ((jax.jit(cube), 0), (jax.jit(jax.grad(lambda x: cube(x).sum())), 2)):   # what the kernel overwrites, and back
        jax.block_until_ready(f(x))
        before = device.statistics()
        jax.block_until_ready(f(x))
        after = device.statistics()
        assert after.launches > before.launches
        assert [after.uploads, after.downloads, after.copies - copies] == [before.uploads, before.downloads, before.copies]


def test_dtypes_and_shapes():
    for dtype in (np.float32, np.float16):
        x = jnp.array([[1, 2], [3, 4]], dtype)
        f = costate.jax.function(cubed, outputs={1: 0})
        slope = jax.grad(lambda x, f=f: f(x).sum().astype(dtype))(x)
        assert slope.dtype == dtype
        np.testing.assert_allclose(slope, 3 * x * x)
        assert f(x[:0]).shape == (0, 2)

    @qd.kernel
    def spread(x: qd.types.ndarray(dtype=qd.f64, ndim=1), v: qd.types.ndarray(dtype=qd.types.vector(3, qd.f64), ndim=1)):
        for i in x:
            v[i] = x[i] * x[i] * qd.Vector([1.0, 2.0, 3.0])
    f = costate.jax.function(spread, outputs={1: 0})
    x = doubles(1, 2)
    alike(jax.jacrev(f)(x), jax.jacrev(lambda x: (x * x)[:, None] * doubles(1, 2, 3))(x))

    @qd.kernel
    def count(x: ANY, n: qd.types.ndarray(dtype=qd.i32), y: ANY):
        for i in x:
            n[i] = qd.cast(x[i], qd.i32)
            y[i] = x[i] * x[i] * n[i]
    f = costate.jax.function(count, outputs={1: lambda x: x.shape, 2: lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)})
    assert f(x)[0].tolist() == [1, 2] and f(x)[0].dtype == np.int32
    assert jax.grad(lambda x: f(x)[1].sum())(x).tolist() == [2, 8]


@qd.data_oriented
class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    @qd.kernel
    def energy(self, x: ANY, y: ANY):
        for i in x:
            y[None] += 0.5 * self.stiffness * x[i] * x[i]


def test_what_functions_find_elsewhere():
    spring = Spring(3.0)
    f = costate.jax.function(spring.energy, outputs={1: ()})
    assert jax.grad(f)(doubles(1, 2)).tolist() == [3, 6]
    spring.stiffness = 4.0
    with pytest.raises(REFUSED, match="member of an object that has changed"):
        jax.block_until_ready(jax.grad(f)(doubles(1, 2)))
    count = qd.field(qd.i32, shape=())

    @qd.kernel
    def counts(x: ANY, y: ANY):
        for i in x:
            y[i] = x[i]
            count[None] += 1

    @qd.kernel
    def noisy(x: ANY, y: ANY):
        for i in x:
            y[i] = x[i] * qd.random(qd.f64)
    for kernel, text in ((counts, "writes fields"), (noisy, "random numbers")):
        with pytest.raises(REFUSED, match=text):
            jax.block_until_ready(costate.jax.function(kernel, outputs={1: 0})(doubles(1, 2)))


def test_what_is_refused(cube, raised):
    x = doubles(0.5, -1, 2)
    with pytest.raises(_core.BadArgument, match="vmap_method"):
        costate.jax.function(cubed, outputs={1: 0}, vmap_method="all")
    with pytest.raises(_core.BadArgument, match="is under `vmap`"):
        jax.vmap(costate.jax.function(cubed, outputs={1: 0}, vmap_method=None))(x[None])
    with pytest.raises(_core.BadArgument, match="one for all samples"):
        f = costate.jax.function(power, outputs={3: ()}, vmap_method="broadcast_all")
        jax.vmap(lambda h: f(x, jnp.array([0, 3, 2]), h))(x)
    with pytest.raises(_core.NotDifferentiable, match="no third"):
        jax.grad(lambda x: jax.hessian(lambda x: cube(x).sum())(x).sum())(x)
    with pytest.raises(_core.BadArgument, match="complex128"):
        cube(x * 1j)
    with pytest.raises(_core.BadArgument, match="no array of JAX"):
        cube(2.0)
    with pytest.raises(REFUSED, match="writes argument 1"):
        jax.block_until_ready(costate.jax.function(cubed, updates=[0])(x, x + 1))
    with pytest.raises(REFUSED, match="outside of `Tape`"), qd.ad.Tape():
        jax.block_until_ready(cube(x))
    with pytest.raises(TypeError, match="takes 1 arguments"):
        cube(x, x)


@qd.kernel
def doubled_and_stored(x: ANY, y: ANY):
    for i in x:
        y[i] = 2 * x[i]
        x[i] = -7.0


def cubed_and_stored(x, y):
    cubed(x, y)
    doubled_and_stored(x, y)


@pytest.mark.parametrize("kernel", [doubled_and_stored, cubed_and_stored], ids=lambda one: one.__name__)
def test_inputs_of_refused_calls_are_what_they_were(kernel):
    f = costate.jax.function(kernel, outputs={1: 0})
    x = doubles(0.5, -1, 2)
    for call in (f, f, jax.jit(f), jax.grad(lambda x: f(x).sum()), lambda x: jax.jvp(f, (x,), (x,))):
        with pytest.raises(REFUSED, match="writes argument 0"):
            jax.block_until_ready(call(x))
        assert x.tolist() == [0.5, -1, 2]


def test_signatures():
    grow = costate.jax.function(kicked, updates=[0])
    assert str(inspect.signature(grow)) == "(v, f, h)"
    assert str(inspect.signature(costate.jax.function(power, outputs={3: ()}))) == "(x, n, h)"
    assert str(inspect.signature(costate.jax.function(cubed_and_stored, outputs={0: 1}))) == "(y)"
    for options in (dict(donate_argnums=0, static_argnums=2), dict(donate_argnames="v", static_argnames="h")):
        assert jax.jit(grow, **options)(doubles(1, 2), doubles(3, 4), 0.5).tolist() == [2.5, 6]


def test_arguments_that_are_named():
    for updates in (["v"], "v"):
        with pytest.raises(_core.BadArgument, match="'v' is none"):
            costate.jax.function(kicked, updates=updates)
