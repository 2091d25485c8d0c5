"""Spellings of Quadrants and Taichi: what their users write is understood as there."""

import numpy as np
import pytest

import costate as ti


@pytest.mark.parametrize("which", ["grad", "dual"])
def test_lazy_companions_of_fields_with_a_shape(which):
    x, v, n = ti.field(ti.f32, 3), ti.Vector.field(2, ti.f64, (2, 2)), ti.field(ti.i32, 3)
    used, other = ti.field(ti.f32, 2), ti.field(ti.f32)
    used.fill(1)
    builder = ti.FieldsBuilder()
    builder.dense(ti.i, 3).place(other)
    getattr(ti.root, f"lazy_{which}")()
    assert getattr(x, which).to_numpy().tolist() == [0, 0, 0]
    assert getattr(v, which).to_numpy().shape == (2, 2, 2) and getattr(n, which) is None
    assert not getattr(used, f"has_{which}") and not getattr(other, f"has_{which}")
    later = ti.field(ti.f32, 3)
    assert not getattr(later, f"has_{which}")()


def test_a_gradient_of_a_lazy_field_is_right():
    x, y = ti.field(ti.f32, 3), ti.field(ti.f32, ())
    ti.root.lazy_grad()
    x.from_numpy(np.array([1, 2, 3], np.float32))

    @ti.kernel
    def squares():
        for i in x:
            y[None] += x[i] ** 2

    with ti.ad.Tape(y):
        squares()
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


@pytest.mark.parametrize("make", [ti.field, ti.ndarray, ti.tensor])
def test_has_grad_is_read_and_called(make):
    x, y = make(ti.f32, (3,), needs_grad=True), make(ti.f32, (3,))
    assert x.has_grad() is True and x.has_grad and y.has_grad() is False and not y.has_grad
    assert not x.has_dual() and repr(x.has_grad) == "True"


def test_the_configuration_has_attributes():
    ti.init(arch=ti.cpu, debug=True, default_fp=ti.f64, random_seed=7)
    assert (ti.cfg.arch, ti.cfg.debug, ti.cfg.default_fp, ti.cfg.random_seed) == (ti.cpu, True, ti.f64, 7)
    assert ti._lib.core.Arch(int(ti.cfg.arch)) == ti.cpu and int(ti.vulkan) == 8 and ti.cuda.value == 4
    ti.reset()
    assert ti.cfg is None
    with pytest.raises(ValueError, match="99 is not the number"):
        ti._lib.core.Arch(99)


def test_extensions_of_the_device():
    assert ti.is_extension_enabled(ti.extension.adstack) and not ti.is_extension_enabled(ti.extension.mesh)
    ti.init(arch=ti.cpu, ad_stack_experimental_enabled=False)
    assert not ti.is_extension_enabled(ti.extension.adstack) and ti.is_extension_enabled(ti.extension.data64)


VARIABLES = [("QD_DEBUG", "1", "debug", True), ("QD_DEBUG", "false", "debug", False), ("TI_FAST_MATH", "1", "fast_math", True),
             ("QD_OFFLINE_CACHE_FILE_PATH", "/tmp/somewhere", "offline_cache_file_path", "/tmp/somewhere"),
             ("TI_OFFLINE_CACHE_FILE_PATH", "7", "offline_cache_file_path", "7"),
             ("QD_DEVICE_MEMORY_GB", "0.5", "device_memory_GB", 0.5), ("QD_RANDOM_SEED", "3", "random_seed", 3),
             ("QD_CPU_MAX_NUM_THREADS", "2", "cpu_max_num_threads", 2), ("QD_DEFAULT_FP", "64", "default_fp", ti.f64),
             ("QD_DEFAULT_FP", "f64", "default_fp", ti.f64), ("TI_DEFAULT_IP", "64", "default_ip", ti.i64),
             ("QD_OFFLINE_CACHE", "0", "offline_cache", False), ("QD_OFFLINE_CACHE", "", "offline_cache", True),
             ("QD_OPT_LEVEL", "2", "opt_level", 2), ("QD_LOG_LEVEL", "warn", "log_level", "warn"),
             ("QD_OFFLINE_CACHE_CLEANING_FACTOR", "0.5", "offline_cache_cleaning_factor", 0.5)]


@pytest.mark.parametrize("name, text, option, value", VARIABLES)
def test_variables_of_the_environment_have_the_type_of_the_option(monkeypatch, name, text, option, value):
    monkeypatch.setenv(name, text)
    ti.init(arch=ti.cpu)
    assert getattr(ti.cfg, option) == value and type(getattr(ti.cfg, option)) is type(value)


@pytest.mark.parametrize("name, text", [("QD_DEBUG", "perhaps"), ("QD_RANDOM_SEED", "1.5"), ("TI_DEVICE_MEMORY_GB", "much"),
                                        ("QD_DEFAULT_FP", "8"), ("QD_ARCH", "abacus")])
def test_nonsense_in_the_environment_is_named(monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    with pytest.raises(ti.QuadrantsRuntimeError, match=f"the environment variable {name} is '{text}'"):
        ti.init()


def test_what_init_is_given_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("QD_DEBUG", "1")
    monkeypatch.setenv("QD_ARCH", "simt")
    with pytest.warns(UserWarning, match="QD_DEBUG=1 has no effect") as warned:
        ti.init(arch=ti.cpu, debug=False)
    assert ti.cfg.debug is False and ti.cfg.arch == ti.cpu and any("QD_ARCH=simt" in str(w.message) for w in warned)
    ti.init()
    assert ti.cfg.debug is True and ti.cfg.arch == ti.simt
    monkeypatch.delenv("QD_ARCH")
    monkeypatch.setenv("TI_ARCH", "simt")
    ti.init(arch=ti.cpu, debug=False)
    assert ti.cfg.arch == ti.simt


@pytest.mark.parametrize("extents, shape", [((4,), (4, 4)), (4, (4, 4)), (np.int64(4), (4, 4)), (np.array([4, 5]), (4, 5)),
                                            ([np.int32(4), 5], (4, 5)), (np.array(4), (4, 4))])
def test_extents_of_nodes(extents, shape):
    x = ti.field(ti.f32)
    ti.root.dense(ti.ij, extents).place(x)
    assert x.shape == shape and all(type(n) is int for n in x.shape)


@pytest.mark.parametrize("axes, extents", [(ti.i, (4, 5)), (ti.ijk, (4, 5)), (ti.ij, 4.5), (ti.ij, "45")])
def test_extents_that_are_none(axes, extents):
    with pytest.raises(ti.QuadrantsRuntimeError, match="axes and|is no extent"):
        ti.root.dense(axes, extents)


def test_integers_of_numpy_are_integers():
    three, two = np.int64(3), np.uint8(2)
    assert ti.field(ti.f32, np.array([3, 2])).shape == ti.ndarray(ti.f32, (three, two)).shape == (3, 2)
    assert ti.Vector.field(three, ti.f32, two).to_numpy().shape == (2, 3)
    assert ti.Matrix.ndarray(three, two, ti.f32, two).to_numpy().shape == (2, 3, 2)
    assert ti.types.vector(three, ti.f32)(1).shape == (3,) and ti.types.matrix(two, three, ti.i32).shape == (2, 3)
    assert ti.Vector.zero(ti.f32, three).shape == (3,) and ti.Matrix.identity(ti.f32, two).shape == (2, 2)
    x = ti.field(ti.i32, (three, two), offset=(np.int32(0), np.int8(0)))
    x[np.int32(1), two - 1] = np.float32(2)
    y = ti.field(ti.i32, ())

    @ti.kernel
    def sums(n: ti.template(), m: ti.i32) -> ti.i32:
        total = 0
        for k in ti.static(range(n)):
            for l in range(three):
                for p, q in ti.ndrange(two, (np.int16(0), m)):
                    total += k * x[np.int64(1), two - 1]
        return total

    assert sums(three, np.int64(2)) == sums(np.int32(3), two) == 3 * 3 * 4 * 2
    ti.init(arch=ti.cpu, random_seed=np.int64(5), cpu_max_num_threads=np.int32(1), debug=np.bool_(True))
    assert ti.cfg.random_seed == 5


def test_fields_of_one_column_are_copied_as_vectors():
    x, y = ti.Matrix.field(3, 1, ti.f32, 2, needs_grad=True), ti.Matrix.ndarray(3, 1, ti.f32, 2)
    assert x.to_numpy().shape == x.grad.to_numpy().shape == (2, 3) and y.to_numpy().shape == (2, 3, 1)
    assert x.to_numpy(keep_dims=True).shape == x.grad.to_numpy(keep_dims=True).shape == (2, 3, 1)
    assert ti.Vector.field(3, ti.f32, 2).to_numpy(keep_dims=True).shape == (2, 3, 1)
    assert ti.Matrix.field(1, 3, ti.f32, 2).to_numpy().shape == (2, 1, 3)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for given in (values, values[..., None]):
        x.fill(0)
        x.from_numpy(given)
        assert x.to_numpy().tolist() == values.tolist() and x[1][2, 0] == 5
    y.copy_from(x)
    assert y.to_numpy()[..., 0].tolist() == values.tolist()
    with pytest.raises(ValueError):
        x.from_numpy(np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("dtype, array", [
    (lambda: ti.types.vector(), lambda: ti.Vector.ndarray(3, ti.f32, 2)),
    (lambda: ti.types.vector(dtype=ti.f32), lambda: ti.Vector.ndarray(4, ti.f32, 2)),
    (lambda: ti.types.matrix(), lambda: ti.Matrix.ndarray(3, 2, ti.i32, 2)),
    (lambda: ti.types.vector(), lambda: np.zeros((2, 3), np.float32))])
def test_elements_of_any_size(dtype, array):
    @ti.kernel
    def add(x: ti.types.ndarray(dtype=dtype(), ndim=1)):
        for i in x:
            x[i] += 1

    x = array()
    add(x)
    assert (np.asarray(x) == 1).all()
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="one of numbers is provided"):
        add(ti.ndarray(ti.f32, 2))


def test_types_without_sizes_are_refused_where_a_size_is_needed():
    for use in (lambda: ti.types.vector()(1, 2), lambda: ti.types.matrix().field(shape=2), lambda: ti.field(ti.types.vector(), 2),
                lambda: ti.ndarray(ti.types.matrix(), 2), lambda: ti.types.matrix(3)):
        with pytest.raises(ti.QuadrantsTypeError, match="without a size|or neither"):
            use()


def test_gradients_under_no_grad_do_nothing():
    x = ti.field(ti.f32, 2, needs_grad=True)

    @ti.ad.no_grad
    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i]

    @ti.ad.no_grad
    def twice(n):
        double()

    x.grad.fill(1)
    assert twice.grad(3) is None and double.grad() is None and x.grad.to_numpy().tolist() == [1, 1]


def test_plain_methods_of_dataclasses():
    @ti.dataclass
    class Ball:
        radius: ti.f32
        at: ti.math.vec3

        def area(self):
            return self.radius * 2

        def grow(self, by=1):
            self.radius += by
            self.at = self.at * 2

        @ti.func
        def both(self):
            return self.radius + self.area()

        @staticmethod
        def kind(x):
            return x + 1

        @property
        def half(self):
            return self.radius / 2

    ball = Ball(radius=3, at=ti.Vector([1.0, 2.0, 3.0]))
    ball.grow(by=2)
    assert ball.radius == 5 and list(ball.at) == [2, 4, 6] and ball.area() == 10 and ball.kind(2) == 3 and ball.half == 2.5
    balls = Ball.field(shape=2)
    balls[1].radius = 3
    balls[1].grow()
    assert balls.radius.to_numpy().tolist() == [0, 4] and balls[1].area() == 8 and balls[1].half == 2

    @ti.kernel
    def inside() -> ti.f32:
        b = Ball(radius=2, at=ti.math.vec3(0))
        b.grow()
        return b.both() + b.area()

    assert inside() == 3 + 6 + 6
