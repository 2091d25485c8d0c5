"""Parameters of kernels."""

import dataclasses
import math

import numpy as np
import pytest

import costate as ti


def test_scalars_convert():
    out = ti.field(ti.f64, shape=3)

    @ti.kernel
    def k(a: ti.i32, b: ti.f32, c: bool, d: float, e: int):
        out[0] = a + e
        out[1] = b + d
        out[2] = 1 if c else 0

    k(3, 2, True, 0.5, np.int64(4))
    assert out.to_numpy().tolist() == [7, 2.5, 1]
    k(np.int32(1), np.float32(1.5), False, np.float64(1), 0)
    assert out.to_numpy().tolist() == [1, 2.5, 0]
    with pytest.raises(TypeError, match="cannot be converted into required type i32"):
        k(1.5, 2, True, 0.5, 1)
    with pytest.raises(TypeError, match="missing a required argument"):
        k(1)
    with pytest.raises(TypeError, match="cannot be converted"):
        k("a", 2, True, 0.5, 1)


def test_templates_specialise():
    x, y = ti.field(ti.f32, shape=3), ti.field(ti.i32, shape=(2, 2))

    @ti.kernel
    def fill(f: ti.template(), v: ti.template()):
        for I in ti.grouped(f):
            f[I] = v

    fill(x, 2.5)
    fill(y, 3)
    assert (x.to_numpy() == 2.5).all() and (y.to_numpy() == 3).all()
    fill(x, 4.5)
    assert x[0] == 4.5
    assert len(fill.cache) == 3


def test_vectors_and_matrices():
    out = ti.field(ti.f32, shape=())

    @ti.kernel
    def k(v: ti.types.vector(3, ti.f32), m: ti.types.matrix(2, 2, ti.i32), u: ti.math.vec2):
        out[None] = v.x + v[2] + m[1, 0] + u.y

    k(ti.Vector([1, 2, 3]), ti.Matrix([[1, 2], [10, 4]]), [5, 100])
    assert out[None] == 114
    k(np.array([1, 2, 3.5]), np.array([[1, 2], [10, 4]]), (5, 100))
    assert out[None] == 114.5
    with pytest.raises(TypeError, match="cannot be converted"):
        k(ti.Vector([1, 2]), ti.Matrix([[1, 2], [10, 4]]), [5, 100])


def test_numpy_arrays_go_in_and_out():
    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray(dtype=ti.f32, ndim=2)):
        for i in a:
            a[i] += b[i, 1]

    a, b = np.zeros(3), np.arange(6, dtype=np.float32).reshape(3, 2)
    k(a, b)
    assert a.tolist() == [1, 3, 5]
    strided = np.zeros((3, 2))[:, 0]
    k(strided, b)
    assert strided.tolist() == [1, 3, 5]
    with pytest.raises(TypeError, match="ndim=2"):
        k(a, np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="Expect element type f32"):
        k(a, np.zeros((3, 2)))


def test_ndarray_annotations():
    x = ti.ndarray(ti.f32, shape=3)

    @ti.kernel
    def a(x: ti.types.NDArray[ti.f32, 1]):
        for i in x:
            x[i] = 1

    @ti.kernel
    def b(x: ti.types.NDArray):
        for i in x:
            x[i] += 1

    @ti.kernel
    def c(x: ti.types.ndarray):
        for i in x:
            x[i] += 1

    a(x), b(x), c(x)
    assert x.to_numpy().tolist() == [3, 3, 3]
    with pytest.raises(TypeError, match="a field"):
        a(ti.field(ti.f32, shape=3))
    with pytest.raises(TypeError, match="needs a gradient"):
        @ti.kernel
        def d(x: ti.types.ndarray(needs_grad=True)):
            x[0] = 1
        d(x)


def test_one_array_twice():
    x = ti.ndarray(ti.f32, shape=3, needs_grad=True)
    y = ti.ndarray(ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        for i in a:
            c[i] = a[i] * b[i]

    x.from_numpy(np.array([1, 2, 3], np.float32))
    k(x, x, y)
    y.grad.fill(1)
    k.grad(x, x, y)
    assert y.to_numpy().tolist() == [1, 4, 9] and x.grad.to_numpy().tolist() == [2, 4, 6]
    y.fill(5)
    k(x, y, y)
    assert y.to_numpy().tolist() == [5, 10, 15]


def test_gradients_of_arguments_in_kernels():
    x = ti.ndarray(ti.f32, shape=3, needs_grad=True)
    x.fill(3)
    x.grad.fill(2)

    @ti.kernel
    def descend(x: ti.types.ndarray()):
        for i in x:
            x[i] -= x.grad[i] * 0.5

    descend(x)
    assert x.to_numpy().tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="needs_grad"):
        descend(ti.ndarray(ti.f32, shape=3))


@pytest.mark.parametrize("backend", [ti.Backend.FIELD, ti.Backend.NDARRAY])
def test_dataclasses(backend):
    @dataclasses.dataclass(frozen=True)
    class Inner:
        y: ti.Tensor

    @dataclasses.dataclass(frozen=True)
    class State:
        x: ti.Tensor
        inner: Inner
        scale: ti.f32

    x = ti.tensor(ti.f64, shape=(3,), backend=backend, needs_grad=True)
    y = ti.tensor(ti.f64, shape=(), backend=backend, needs_grad=True)

    @ti.func
    def term(s, i):
        return s.x[i] * s.scale

    @ti.kernel
    def k(s: State):
        for i in range(3):
            s.inner.y[None] += term(s, i) ** 2

    x.from_numpy(np.array([1.0, 2, 3]))
    state = State(x, Inner(y), 2.0)
    k(state)
    y.grad[None] = 1
    k.grad(state)
    assert y[None] == 56 and x.grad.to_numpy().tolist() == [8, 16, 24]


def test_dataclasses_with_annotated_members():
    @dataclasses.dataclass(frozen=True)
    class Arrays:
        a: ti.types.ndarray(dtype=ti.f32, ndim=1)
        f: ti.template()
        n: ti.i32

    a, f = ti.ndarray(ti.f32, shape=4), ti.field(ti.f32, shape=4)

    @ti.kernel
    def k(s: Arrays):
        for i in range(s.n):
            s.a[i] = s.f[i] + i

    f.fill(10)
    k(Arrays(a, f, 3))
    assert a.to_numpy().tolist() == [10, 11, 12, 0]


def test_closures_are_captured_at_the_first_launch():
    scale = 2.0
    x = ti.field(ti.f32, shape=())

    @ti.kernel
    def k():
        x[None] = scale

    k()
    scale = 3.0
    k()
    assert x[None] == 2


def test_string_annotations():
    space = {"ti": ti, "__name__": "strings"}
    import linecache
    text = ("from __future__ import annotations\n@ti.kernel\ndef k(a: ti.i32, x: ti.types.ndarray()) "
            "-> ti.i32:\n    x[0] = a\n    return a + 1\n")
    linecache.cache["<strings>"] = (len(text), None, text.splitlines(True), "<strings>")
    exec(compile(text, "<strings>", "exec"), space)
    x = ti.ndarray(ti.i32, shape=1)
    assert space["k"](4, x) == 5 and x[0] == 4


def test_atomics_return_the_old_value():
    n = ti.field(ti.i32, shape=())
    slots = ti.field(ti.i32, shape=100)

    @ti.kernel
    def k():
        for i in range(100):
            slots[ti.atomic_add(n[None], 1)] = i

    k()
    assert n[None] == 100 and sorted(slots.to_numpy().tolist()) == list(range(100))


def test_bit_atomics():
    x = ti.field(ti.i32, shape=3)
    x[1] = 0xff

    @ti.kernel
    def k():
        for i in range(8):
            ti.atomic_or(x[0], 1 << i)
            ti.atomic_and(x[1], ~(1 << i))
            ti.atomic_xor(x[2], 3)
            x[0] |= 256

    k()
    assert x.to_numpy().tolist() == [511, 0, 0]


def test_random_numbers():
    x = ti.field(ti.f32, shape=10000)
    n = ti.field(ti.i32, shape=1000)

    @ti.kernel
    def k():
        for i in x:
            x[i] = ti.random()
        for i in n:
            n[i] = ti.random(ti.i32)

    k()
    a = x.to_numpy()
    assert 0 <= a.min() and a.max() < 1 and abs(a.mean() - 0.5) < 0.02 and abs(a.var() - 1 / 12) < 0.01
    assert n.to_numpy().min() < -2**30 and n.to_numpy().max() > 2**30
    k()
    assert (x.to_numpy() != a).any()
    ti.init(arch=ti.cpu, random_seed=0)


def test_seeds_repeat():
    results = []
    for seed in (1, 1, 2):
        ti.init(arch=ti.cpu, random_seed=seed)

        @ti.kernel
        def k() -> ti.f32:
            return ti.randn() + ti.random()
        results.append((k(), k()))
    assert results[0] == results[1] != results[2] and results[0][0] != results[0][1]
    assert all(math.isfinite(v) for r in results for v in r)


def test_exchange_and_compare():
    x = ti.field(ti.i32, shape=3)

    @ti.kernel
    def k() -> ti.i32:
        old = ti.atomic_exchange(x[0], 7)
        a = ti.atomic_cas(x[0], 7, 8)
        b = ti.atomic_cas(x[0], 7, 9)
        return old * 100 + a * 10 + b

    x[0] = 1
    assert k() == 178 and x[0] == 8


def test_parts_of_numbers():
    @ti.kernel
    def k(v: ti.f32) -> tuple[ti.f32, ti.i32]:
        m, e = ti.frexp(v)
        return m + ti.zero(m), e * ti.one(e)

    for v in (1.0, 0.75, -6.5, 1e-3, 3e8, 0.5, 0.0):
        assert k(v) == pytest.approx(math.frexp(np.float32(v)))


def test_options_of_decorators():
    @ti.func(is_real_function=False)
    def f(a):
        return a + 1

    @ti.kernel(fastcache=True, pure=True)
    def k() -> ti.i32:
        return f(1)

    assert k() == 2


def test_dataclasses_that_change_and_have_methods():
    @dataclasses.dataclass
    class State:
        x: ti.Tensor
        n: ti.i32

        @ti.func
        def add(self, i, v):
            self.x[i] += v * self.n

    @ti.kernel
    def k(s: State):
        for i in range(2):
            s.add(i, 10)

    x, y = ti.ndarray(ti.f32, 2), ti.ndarray(ti.f32, 2)
    state = State(x, 1)
    k(state)
    k(state)
    state.x, state.n = y, 3
    k(state)
    assert x.to_numpy().tolist() == [20, 20] and y.to_numpy().tolist() == [30, 30]


def test_a_copy_of_an_ndarray_is_one_of_its_own():
    import copy
    x = ti.ndarray(ti.f32, shape=3, needs_grad=True)
    x.fill(2)
    for y in (copy.copy(x), copy.deepcopy(x)):
        y[1] = 5
        assert x[1] == 2 and y[0] == 2 and y.grad is not None


@pytest.mark.skipif(not ti.lang.runtime.shares_memory(), reason="memory of the host")
def test_to_numpy_without_a_copy():
    x = ti.field(ti.f32, shape=(2, 3))
    view = x.to_numpy(copy=False)
    view[1, 1] = 4
    assert x[1, 1] == 4 and x.to_numpy()[1, 1] == 4


@ti.dataclass
class Particle:
    x: ti.types.vector(2, ti.f64)
    mass: ti.f64
    iterations: ti.i32

    @ti.func
    def energy(self):
        return self.mass * self.x.norm_sqr()


def test_ndarrays_of_structs(double):
    particles = ti.ndarray(Particle, shape=3, needs_grad=True)
    loss = ti.ndarray(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def start(p: ti.types.ndarray()):
        for i in p:
            p[i] = Particle(x=[i, i], mass=2.0, iterations=i)

    @ti.kernel
    def run(p: ti.types.ndarray(dtype=Particle, ndim=1), out: ti.types.ndarray()):
        for i in p:
            v = p[i].mass
            for _ in range(p[i].iterations):
                v *= p[i].x[0]
            out[None] += p[i].energy() + v
            p[i].iterations += 1

    start(particles)
    assert particles[2].mass == 2 and particles.x[2][1] == 2
    with ti.ad.Tape(loss):
        run(particles, loss)
    assert particles.mass.grad.to_numpy().tolist() == [1, 2 + 1, 8 + 4]
    assert particles.x.grad.to_numpy().tolist() == [[0, 0], [4 + 2, 4], [8 + 8, 8]]
    assert particles.iterations.to_numpy().tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="ndarray of structs with the members x, mass, iterations"):
        run(loss, loss)


def test_templates_tell_numbers_apart():
    @ti.kernel
    def inverse(a: ti.template()) -> ti.f64:
        return 1 / ti.cast(a, ti.f64)

    @ti.kernel
    def halved(a: ti.template()) -> ti.f64:
        return 7 / (a * 2) if ti.static(isinstance(a, float)) else 7 // (a * 2)

    for _ in range(2):
        assert inverse(0.0) == np.inf and inverse(-0.0) == -np.inf
        assert inverse(np.float32(-0.0)) == -np.inf and inverse(np.float32(0)) == np.inf
        assert halved(1) == 3 and halved(1.0) == 3.5 and halved(True) == 3


def test_subclasses_of_tensors_and_arrays():
    torch = pytest.importorskip("torch")

    class Tensor(torch.Tensor):
        pass

    class Array(np.ndarray):
        pass

    @ti.kernel
    def k(x: ti.types.ndarray()):
        for i in range(x.shape[0]):
            x[i] = i

    for x in (torch.zeros(3).as_subclass(Tensor), torch.nn.Buffer(torch.zeros(3)), np.zeros(3, np.float32).view(Array)):
        for _ in range(2):
            k(x)
        assert x.tolist() == [0, 1, 2]


def test_gradients_of_subclasses_of_tensors():
    torch = pytest.importorskip("torch")

    class Tensor(torch.Tensor):
        pass

    x, loss = (torch.ones(n).as_subclass(Tensor).requires_grad_() for n in (3, 1))

    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(3):
            y[0] += x[i] * x[i] * i

    with ti.ad.Tape(loss):
        k(x, loss)
    assert x.grad.tolist() == [0, 2, 4]


def test_arrays_that_are_more_than_their_memory():
    torch = pytest.importorskip("torch")

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise AssertionError

    class Quantity(np.ndarray):
        def __array_ufunc__(self, *args, **options):
            raise AssertionError

    @ti.kernel
    def k(x: ti.types.ndarray()):
        for i in range(3):
            x[i] = i

    plain = np.zeros(3, np.float32)
    for x in (np.ma.masked_array(plain, [0, 1, 0]), plain.view(Quantity), Wrapper(torch.zeros(3))):
        with pytest.raises(ti.QuadrantsRuntimeError, match=f"a {type(x).__name__}, w.*pass a plain"):
            k(x)


def test_keywords_launch_as_positions_do():
    seen = []

    @ti.kernel
    def k(x: ti.types.ndarray(), n: ti.i32, flag: ti.template() = True):
        for i in range(x.shape[0]):
            x[i] = n if ti.static(flag) else -n

    x = ti.ndarray(ti.i32, 2)
    for call in (lambda: k(n=3, x=x), lambda: k(x, n=4), lambda: k(x, flag=False, n=5), lambda: k(n=6, flag=True, x=x)) * 2:
        call()
        seen.append(x[1])
    assert seen == [3, 4, -5, 6] * 2
    for wrong in (lambda: k(x, 3, True, n=3), lambda: k(x, m=3), lambda: k(x, n=3, m=3)):
        with pytest.raises(ti.QuadrantsSyntaxError, match="`k\\(\\)`"):
            wrong()


def test_arrays_of_numpy_have_elements_of_their_own_type():
    @ti.kernel
    def fill(x: ti.types.ndarray(dtype=ti.math.mat2)):
        for i in x:
            for j, k in ti.ndrange(2, 2):
                x[i][j, k] = i + j + k

    numbers = np.zeros((2, 2, 2), np.int32)
    fill(numbers)
    assert numbers.tolist() == [[[0, 1], [1, 2]], [[1, 2], [2, 3]]]
    with pytest.raises(TypeError, match="Expect element type f32"):
        fill(ti.Matrix.ndarray(2, 2, ti.i32, 2))


def test_types_of_elements_are_named():
    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.types.vector(2, ti.i32))):
        pass

    with pytest.raises(ValueError, match=r"required element type: VectorType\[2, i32\], but MatrixType\[2,3, i32\] is provided"):
        k(ti.Matrix.ndarray(2, 3, ti.i32, 4))


def test_elements_of_ndarrays_in_funcs_are_checked():
    @ti.func
    def first(x: ti.types.ndarray(dtype=ti.math.vec2)):
        x[0] = [1, 2]

    @ti.kernel
    def k(x: ti.types.ndarray()):
        first(x)

    with pytest.raises(ti.QuadrantsTypeError, match=r"Invalid value for argument x of `first` - required elements of shape \(2,\)"):
        k(ti.Vector.ndarray(3, ti.f32, 4))


@pytest.mark.host
def test_a_kernel_without_arrays_runs_on_the_device_of_init():
    @ti.kernel
    def count(n: ti.i32):
        for i in range(n):
            print(i)

    for name in ("cpu", "simt"):
        ti.reset()
        ti.init(arch=getattr(ti, name))
        before = ti.statistics().launches
        count(2)
        assert ti.statistics().launches == before + 1, name
    ti.reset()
    ti.init(arch=ti.cpu)
    ti.capture(count, 2)   # its graph is one of this device
