"""Options that nobody knows and values that nothing means are errors where they stand, but for unknown ones of `init`."""

import warnings

import numpy as np
import pytest

import costate as ti

S = ti.types.struct(a=ti.f32, b=ti.i32)
VECTOR = ti.types.vector(3, ti.f32)

MAKERS = {
    "field": lambda **k: ti.field(ti.f32, **k), "ndarray": lambda **k: ti.ndarray(ti.f32, **k),
    "Vector.field": lambda **k: ti.Vector.field(3, ti.f32, **k), "Matrix.field": lambda **k: ti.Matrix.field(2, 2, ti.f32, **k),
    "Vector.ndarray": lambda **k: ti.Vector.ndarray(3, ti.f32, **k),
    "Matrix.ndarray": lambda **k: ti.Matrix.ndarray(2, 2, ti.f32, **k),
    "struct field": S.field, "struct ndarray": S.ndarray, "Struct.field": lambda **k: ti.Struct.field({"a": ti.f32}, **k),
    "vector type field": VECTOR.field, "vector type ndarray": VECTOR.ndarray,
    "field of vectors": lambda **k: ti.field(VECTOR, **k), "ndarray of vectors": lambda **k: ti.ndarray(VECTOR, **k),
    "ndarray of structs": lambda **k: ti.ndarray(S, **k), "Vector.tensor": lambda **k: ti.Vector.tensor(3, ti.f32, **k),
    "tensor": lambda **k: ti.tensor(ti.f32, **k), "tensor of fields": lambda **k: ti.tensor(ti.f32, backend=ti.Backend.FIELD, **k),
}


@pytest.mark.parametrize("name", MAKERS)
def test_makers_of_arrays(name):
    make = MAKERS[name]
    for option in ({"need_grad": True}, {"backend": "nonsense"}, {"layout": (0, 0)}, {"layout": (1,)}, {"layout": "ij"}):
        with pytest.raises(TypeError):
            make(shape=3, **option)
    for shape in (1.5, "12", True, (2, True), (2, 1.5), [2, "3"], 1j):
        with pytest.raises(TypeError, match="is no extent; a shape is an integer, or a tuple of them"):
            make(shape=shape)
    for shape in (-1, (2, -3)):
        with pytest.raises(ValueError, match="is no extent: it is at least 0"):
            make(shape=shape)
    for shape, expected in ((np.int64(3), (3,)), ((np.int32(2), 3), (2, 3)), (np.array([2, 3]), (2, 3)), ([2, 3], (2, 3)),
                            ((), ()), (0, (0,))):
        assert make(shape=shape).shape == expected
    make(shape=3, needs_grad=True)


@pytest.mark.parametrize("dtype", [ti.i32, ti.u1, int])
@pytest.mark.parametrize("what", ["needs_grad", "needs_dual"])
def test_gradients_of_integers(dtype, what):
    for make in (ti.field, ti.ndarray, ti.tensor, lambda *a, **k: ti.tensor(*a, backend=ti.Backend.FIELD, **k),
                 lambda t, n, **k: ti.Vector.field(2, t, n, **k), lambda t, n, **k: ti.types.struct(b=t).field(shape=n, **k),
                 lambda t, n, **k: ti.types.struct(b=t).ndarray(n, **k)):
        with pytest.raises(ti.QuadrantsRuntimeTypeError, match="is not supported for|no member of struct is of a type that has"):
            make(dtype, 3, **{what: True})


@pytest.mark.parametrize("use", [
    lambda: ti.kernel(unknown=1), lambda: ti.func(unknown=1), lambda: ti.ad.Tape(unknown=1), lambda: ti.types.ndarray(unknown=1),
    lambda: ti.Vector([1, 2], unknown=1), lambda: ti.Matrix([[1]], unknown=1), lambda: ti.root.dense(ti.i, 2, unknown=1),
    lambda: ti.root.dense(ti.i, 1.5), lambda: ti.root.dense(ti.ij, (2, "3")), lambda: ti.types.vector(1.5, ti.f32),
    lambda: ti.types.matrix(True, 2, ti.f32), lambda: ti.field(ti.f32, 3, offset=1.5), lambda: ti.field("q", 3),
    lambda: ti.field(None, 3), lambda: ti.ndarray(None, 3), lambda: ti.ndarray(ti.f32, None),
    lambda: ti.graph.Arg(ti.graph.ArgKind.SCALAR, "a", unknown=1), lambda: ti.tensor(ti.f32, 3, backend="nonsense"),
    lambda: ti.block_dim(unknown=1),
])
def test_other_unknown_options_and_values(use):
    with pytest.raises(TypeError):
        use()


@pytest.mark.parametrize("make", [
    lambda: ti.types.vector(0, ti.f32), lambda: ti.types.vector(-1, ti.f32), lambda: ti.Vector.field(0, ti.f32, 3),
    lambda: ti.root.dense(ti.i, 0), lambda: ti.root.dense(ti.i, -2),
])
def test_numbers_that_are_too_small(make):
    with pytest.raises(ValueError, match="it is at least 1"):
        make()


def test_kernels():
    @ti.kernel
    def configured():
        ti.loop_config(unknown=1)
        for i in range(3):
            pass

    @ti.kernel
    def printed():
        print(1, unknown=1)

    @ti.kernel
    def of_vector():
        x = ti.Vector([1, 2], unknown=1)

    for kernel in (configured, printed, of_vector):
        with pytest.raises(ti.CompilationError, match=r"unexpected keyword argument 'unknown'"):
            kernel()


WRONG = {
    "cpu_max_num_threads": [-1, 1.5, "2", True], "device_memory_GB": [float("nan"), -1, "3", 0],
    "device_memory_fraction": [2, -1], "arch": [3, "nonsense", [ti.cpu, 3], []], "random_seed": ["a", 1.5], "debug": ["yes", 2],
    "default_fp": [ti.i32, "zz", 3], "default_ip": [ti.f32], "default_up": [ti.f32, ti.i32], "ad_stack_size": [-1],
    "offline_cache_max_size_of_files": [-1, "1"], "offline_cache": ["x"], "offline_cache_file_path": [3], "fast_math": ["on"],
    "enable_fallback": ["maybe"],
}


@pytest.mark.parametrize("name,value", [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_values_of_init(name, value):
    with pytest.raises((TypeError, RuntimeError), match=f"option `{name}` of init is .*, not |{name} is an|is not a data type|"
                                                        "default_fp is a float type and default_ip an integer"):
        ti.init(**({"arch": ti.cpu} | {name: value}))


def test_init_takes_numbers_of_numpy_and_warns_of_unknown_options():
    ti.init(arch="cpu", cpu_max_num_threads=np.int64(2), device_memory_GB=0.5, random_seed=np.int32(3), debug=np.bool_(False))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ti.init(arch=ti.cpu, unknown=1)
    assert ["unknown option `unknown` of init is ignored"] == [str(w.message) for w in seen]
