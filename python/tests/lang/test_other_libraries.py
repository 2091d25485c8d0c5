"""Fields and ndarrays in the hands of other libraries and back: in the same memory, without a copy. Libraries that are not
installed, or not for the device, are left out."""

import gc
import os

import numpy as np
import pytest

import costate as qd
from costate import _core

DEVICE = os.environ.get("COSTATE_DEVICE") or "cpu"
pytestmark = pytest.mark.skipif(DEVICE == "vulkan", reason="nobody else uses the memory of Vulkan")
on_cuda = DEVICE == "cuda"
KINDS = {"field": lambda: qd.field(qd.f32, (2, 3), needs_grad=True), "ndarray": lambda: qd.ndarray(qd.i32, (2, 3)),
         "vectors": lambda: qd.Vector.field(2, qd.f32, (3,), needs_grad=True),
         "matrices": lambda: qd.Matrix.ndarray(2, 3, qd.f16, (4,)), "single": lambda: qd.ndarray(qd.f32, ())}


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=getattr(qd, DEVICE))


class NumPy:
    """What a library does with its arrays."""

    def __init__(self):
        if on_cuda:
            pytest.skip("NumPy has no arrays on GPUs")

    take = staticmethod(np.from_dlpack)
    numbers = staticmethod(np.array)

    def address(self, array):
        return array.__array_interface__["data"][0]

    def write(self, array, value):
        array[...] = value


class PyTorch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if on_cuda and not self.torch.cuda.is_available():
            pytest.skip("a PyTorch without CUDA")
        self.take = self.torch.from_dlpack

    def numbers(self, array):
        return array.cpu().numpy()

    def address(self, array):
        return array.data_ptr()

    def write(self, array, value):
        array.fill_(value)
        if on_cuda:
            self.torch.cuda.synchronize()


class Jax:
    """Its arrays do not change."""

    write = None
    numbers = staticmethod(np.array)

    def __init__(self):
        self.jax = pytest.importorskip("jax")
        if on_cuda and self.jax.default_backend() != "gpu":
            pytest.skip("a JAX without CUDA")
        self.take = self.jax.dlpack.from_dlpack

    def address(self, array):
        return array.unsafe_buffer_pointer()


class CuPy:
    def __init__(self):
        if not on_cuda:
            pytest.skip("CuPy has arrays on GPUs only")
        self.cupy = pytest.importorskip("cupy")
        self.take, self.numbers = self.cupy.from_dlpack, self.cupy.asnumpy

    def address(self, array):
        return array.data.ptr

    def write(self, array, value):
        array.fill(value)
        self.cupy.cuda.runtime.deviceSynchronize()


class CuPyByItsInterface(CuPy):
    def __init__(self):
        super().__init__()
        self.take = self.cupy.asarray


LIBRARIES = {"NumPy": NumPy, "PyTorch": PyTorch, "JAX": Jax, "CuPy": CuPy, "CuPy, by its interface": CuPyByItsInterface}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]()


@pytest.fixture
def copies():
    """How often numbers have gone from one memory to another."""
    def count():
        counts = qd.statistics()
        return counts.uploads, counts.downloads, counts.copies
    return count


def numbered(make):
    x = make()
    whole = x.to_numpy()
    x.from_numpy((np.arange(whole.size) % 5).reshape(whole.shape).astype(whole.dtype))
    return x


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(library, copies, kind):
    x = numbered(KINDS[kind])
    before = copies()
    theirs = library.take(x)
    back = _core.Array.from_dlpack(theirs, device=qd.device())
    assert copies() == before
    assert library.address(theirs) == back.lend()[0] == x.core().lend()[0] and tuple(theirs.shape) == tuple(back.shape)
    assert np.array_equal(library.numbers(theirs), x.to_numpy()) and np.array_equal(back.to_numpy(), x.to_numpy())


@pytest.mark.parametrize("kind", ["field", "vectors"])
def test_gradients_are_shared_too(library, copies, kind):
    x = numbered(KINDS[kind])
    loss = qd.field(qd.f32, (), needs_grad=True)

    @qd.kernel
    def add():
        for i in qd.grouped(x):
            loss[None] += (x[i] * x[i]).sum() if qd.static(kind == "vectors") else x[i] * x[i]

    with qd.ad.Tape(loss):
        add()
    before = copies()
    theirs = library.take(x.grad)
    assert copies() == before
    assert np.array_equal(library.numbers(theirs), 2 * x.to_numpy())


def test_they_see_what_kernels_have_written(library, copies):
    x = qd.field(qd.f32, 1000)

    @qd.kernel
    def fill(start: qd.f32):
        for i in x:
            x[i] = start + i

    fill(1)
    before = copies()
    theirs = library.take(x)
    assert copies() == before
    assert np.array_equal(library.numbers(theirs), 1 + np.arange(1000, dtype=np.float32))


def test_kernels_see_what_they_have_written(library, copies):
    if library.write is None:
        pytest.skip("its arrays do not change")
    x, y = qd.ndarray(qd.f32, 100), qd.ndarray(qd.f32, 100)

    @qd.kernel
    def double(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = 2 * x[i]

    theirs = library.take(x)
    before = copies()
    library.write(theirs, 3)
    double(x, y)
    assert copies() == before
    assert (y.to_numpy() == 6).all()


def test_the_memory_outlives_its_array(library):
    x = numbered(KINDS["ndarray"])
    theirs, expected = library.take(x), x.to_numpy()
    del x
    gc.collect()
    qd.init(arch=getattr(qd, DEVICE))
    assert np.array_equal(library.numbers(theirs), expected)


def test_kernels_take_tensors_where_they_are(copies):
    library = PyTorch()
    place = "cuda" if on_cuda else "cpu"
    x = library.torch.arange(8, dtype=library.torch.float32, device=place)

    @qd.kernel
    def double(x: qd.types.ndarray()):
        for i in x:
            x[i] *= 2

    double(x)
    before, address = copies(), x.data_ptr()
    double(x)
    assert copies() == before and x.data_ptr() == address
    qd.sync()
    assert x.tolist() == [4 * i for i in range(8)]
