"""Every name of Quadrants and Taichi that their tests of derivatives use is there."""

import dataclasses
import importlib
import inspect

import numpy as np
import pytest

import costate as ti

NAMES = """
field ndarray tensor Tensor Backend.FIELD Backend.NDARRAY Vector Vector.field Vector.ndarray Vector.tensor Matrix
Matrix.field Matrix.ndarray Matrix.diag Matrix.identity Matrix.zero Matrix.one Matrix.unit Matrix.rows Matrix.cols
types.ndarray types.NDArray types.vector types.matrix types.struct types.template types.enums.AutodiffMode
types.enums.SNodeGradType f16 f32 f64 i8 i16 i32 i64 u1 u8 u16 u32 u64 float32 int32 math.vec2 math.vec3 math.vec4
math.ivec2 math.uvec3 math.mat2 math.mat3 math.clamp math.mix math.length math.dot math.cross math.normalize math.pi
root.dense root.pointer root.bitmasked root.hash root.dynamic activate deactivate is_active append
length rescale_index deactivate_all_snodes root.place root.lazy_grad root.lazy_dual i j k l ij ijk ijkl axes indices FieldsBuilder Layout.AOS AOS SOA
kernel func pyfunc real_func data_oriented dataclass template Template static ndrange grouped loop_config block_local
cast bit_cast select ifte atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_mul
random randn svd polar_decompose sym_eig solve sin cos tan asin acos atan atan2 sinh cosh tanh exp log sqrt rsqrt
pow min max abs floor ceil round sgn inv rcp popcnt clz ffs raw_div raw_mod static_assert static_print
ad.Tape ad.FwdMode ad.grad_replaced ad.grad_for ad.no_grad ad.clear_all_gradients ad.check_gradient ad.report ad.hvp
stop_grad init reset sync cpu cuda gpu vulkan metal amdgpu x64 arm64 extension.adstack extension.data64
extension.assertion extension.bls is_extension_supported lang.impl.current_cfg lang.impl.get_runtime
QuadrantsAssertionError QuadrantsCompilationError QuadrantsRuntimeError QuadrantsRuntimeTypeError QuadrantsSyntaxError
QuadrantsNameError QuadrantsTypeError QuadrantsIndexError TaichiAssertionError TaichiCompilationError
TaichiRuntimeError TaichiSyntaxError TaichiTypeError TaichiNameError TaichiIndexError TaichiRuntimeTypeError
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_there(name):
    found = ti
    for part in name.split("."):
        found = getattr(found, part)
    if inspect.isfunction(found) or inspect.isclass(found) and found.__module__.startswith("costate"):
        assert found.__doc__, f"{name} has no docstring"


METHODS = """fill to_numpy from_numpy to_torch from_torch copy_from shape dtype grad dual n m snode parent
has_grad has_dual""".split()


@pytest.mark.parametrize("name", METHODS)
def test_arrays_have_the_method(name):
    for array in (ti.field(ti.f32, 3, needs_grad=True, needs_dual=True),
                  ti.ndarray(ti.f32, 3, needs_grad=True, needs_dual=True), ti.Vector.field(3, ti.f32, 3)):
        assert hasattr(array, name)


VECTOR = """x y z xy norm norm_sqr norm_inv normalized dot cross outer_product transpose determinant inverse trace sum
max min any all cast fill to_list to_numpy n m""".split()


@pytest.mark.parametrize("name", VECTOR)
def test_vectors_have_the_method(name):
    assert hasattr(ti.Vector([1, 2, 3]), name)


def test_bases_of_errors():
    assert issubclass(ti.QuadrantsSyntaxError, (ti.QuadrantsCompilationError, SyntaxError))
    assert issubclass(ti.QuadrantsNameError, NameError) and issubclass(ti.QuadrantsTypeError, TypeError)
    assert issubclass(ti.QuadrantsAssertionError, AssertionError)
    assert issubclass(ti.QuadrantsAssertionError, ti.QuadrantsRuntimeError)
    assert issubclass(ti.QuadrantsRuntimeTypeError, TypeError) and issubclass(ti.QuadrantsRuntimeError, RuntimeError)
    for name, cls in ti.errors.BY_CODE.items():
        assert issubclass(cls, ti.Error) and cls.__name__ == name


MODULES = """_lib _lib.core _lib.utils ad._ad lang._ndarray lang._ndrange lang.enums lang.exception lang.impl lang.kernel_impl
lang.matrix lang.misc lang.ops lang.runtime_ops lang.snode lang.util math.mathimpl types.annotations types.enums
types.ndarray_type types.primitive_types""".split()


@pytest.mark.parametrize("name", MODULES)
def test_modules_by_the_names_of_taichi(name):
    import importlib
    assert importlib.import_module(f"costate.{name}")


def test_what_is_in_them():
    from costate.lang.exception import QuadrantsCompilationError, TaichiTypeError
    from costate.lang.misc import is_arch_supported
    from costate.lang.util import has_pytorch
    from costate.types.primitive_types import f32
    assert f32 is ti.f32 and is_arch_supported(ti.cpu) and isinstance(has_pytorch(), bool)
    assert QuadrantsCompilationError is ti.QuadrantsCompilationError and issubclass(TaichiTypeError, TypeError)


def test_options_that_were_not_given():
    assert ti.lang.impl.current_cfg().opt_level is None and ti.lang.impl.current_cfg().debug is False
    with pytest.raises(AttributeError, match="no option `optt`"):
        ti.lang.impl.current_cfg().optt


def test_logging(caplog):
    ti.set_logging_level(ti.INFO)
    ti.info("{} cells", 3)
    ti.debug("not shown")
    assert [r.getMessage() for r in caplog.records] == ["3 cells"]
    assert ti.is_logging_effective("warn") and not ti.is_logging_effective("debug")
    ti.set_logging_level(ti.WARN)


def test_pyfunc():
    @ti.pyfunc
    def twice(x):
        return 2 * x

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        return twice(x)

    assert twice(3) == k(3) == 6


def test_copies_by_the_names_of_kernels():
    kernels = importlib.import_module("costate._kernels")
    x, v, a = ti.field(ti.f32, (2, 3)), ti.Vector.field(3, ti.f32, shape=2), ti.Vector.ndarray(3, ti.f32, 2)
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name, one, options in [("tensor", x, {}), ("matrix", v, {"as_vector": True}), ("ndarray_matrix", a, {})]:
        backwards = f"ext_arr_to_{name}"
        getattr(kernels, backwards)(given, one, **options)
        result = np.zeros_like(given)
        getattr(kernels, f"{name}_to_ext_arr")(one, result, **options)
        np.testing.assert_array_equal(result, given)
    y = ti.field(ti.f32, (2, 3))
    kernels.tensor_to_tensor(y, x)
    np.testing.assert_array_equal(y.to_numpy(), given)


def test_copies_to_pytorch_by_the_names_of_kernels():
    torch = pytest.importorskip("torch")
    kernels = importlib.import_module("costate._kernels")
    x = ti.field(ti.f32, (2, 3))
    x.fill(4)
    result = torch.zeros(2, 3)
    kernels.tensor_to_ext_arr(x, result)
    assert result.sum() == 24
    kernels.ext_arr_to_tensor(result + 1, x)
    assert x[1, 1] == 5
    assert ti.lang.util.to_pytorch_type(ti.f64) is torch.float64
    assert ti.lang.util.to_pytorch_type(ti.u1) is torch.bool


def test_names_that_genesis_uses():
    ti.lang._template_mapper.__builtins__["__debug__"] = False
    logged = ti._logging._get_logging(ti._logging.WARN)
    logged("a warning")
    device = ti.lang.runtime.runtime().device
    shared = ti.lang.impl.get_max_shared_memory_bytes(is_lowerbound_ok=True)
    assert shared == device.shared_memory == ti.lang.impl.get_max_shared_memory_bytes()
    assert shared == 0 if device.name == "cpu" else shared >= 15 << 10


def test_declared_fields_are_materialized_before_their_first_use(monkeypatch):
    """Programs fill then what they have declared."""
    runtime, waiting = ti.lang.impl.PyQuadrants, []

    def materialize(self):
        for field, value in waiting:
            field.fill(value)
        if waiting:
            self.prog.synchronize()
        waiting.clear()

    def declared():
        waiting.append((ti.field(ti.f32, ()), 3))
        return waiting[-1][0]
    monkeypatch.setattr(runtime, "materialize", materialize)
    assert declared()[None] == 3
    x, y = declared(), ti.field(ti.f32, ())

    @ti.kernel
    def copy():
        y[None] = x[None]
    copy()
    assert y[None] == 3 and not waiting
    x = declared()
    ti.field(ti.f32, 2).fill(0)
    assert not waiting and x.to_numpy() == 3


def test_the_runtime_of_impl_is_cleared_by_a_reset(monkeypatch):
    cleared = []
    monkeypatch.setattr(ti.lang.impl.PyQuadrants, "clear", lambda self: cleared.append(self))
    ti.reset()
    assert cleared == [ti.lang.impl.get_runtime()]


def test_tools_of_tests():
    tools = importlib.import_module("costate._test_tools")
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    tools.qd_init_same_arch(debug=True)
    assert ti.cfg.arch == ti.cpu and ti.cfg.debug

    @dataclasses.dataclass
    class Inner:
        x: ti.types.NDArray[ti.f32, 2]

    @dataclasses.dataclass
    class Outer:
        a: ti.types.NDArray[ti.i32, 1]
        t: ti.template
        inner: Inner

    build = importlib.import_module("costate._test_tools.dataclass_test_tools").build_struct
    made = build(Outer)
    assert (made.a.shape, made.t.dtype, made.inner.x.shape) == ((10,), ti.i32, (10, 10))
    load = importlib.import_module("costate._test_tools.load_kernel_string").load_kernel_from_string
    with load("import costate as ti\n@ti.kernel\ndef three() -> ti.i32:\n    return 3\n", "three") as kernel:
        assert kernel() == 3


def test_how_many_kernels_were_compiled():
    @ti.kernel
    def k(x: ti.types.ndarray()):
        x[0] = 1

    count = ti.lang.impl.get_runtime().get_num_compiled_functions
    for array in (ti.ndarray(ti.f32, 2), ti.ndarray(ti.f32, 3), ti.ndarray(ti.i32, 2)):
        k(array)
    assert count() == 2
    ti.init(arch=ti.cpu)
    assert count() == 0
