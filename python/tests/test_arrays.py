"""Arrays: copies in and out, views, DLPack, and memory of others."""

import gc
import weakref

import numpy as np
import pytest

from costate import _core
from costate._core import Array, DType

NUMPY = {DType.bool: np.bool_, DType.i8: np.int8, DType.i16: np.int16, DType.i32: np.int32,
         DType.i64: np.int64, DType.u8: np.uint8, DType.u16: np.uint16, DType.u32: np.uint32,
         DType.u64: np.uint64, DType.f16: np.float16, DType.f32: np.float32, DType.f64: np.float64}


needs_host = pytest.mark.skipif(_core.Device.best().name not in ("cpu", "simt"), reason="needs memory of the host")


@pytest.mark.parametrize("dtype", NUMPY)
def test_every_dtype_goes_in_and_out(device, dtype):
    x = Array(device, dtype, (2, 3))
    values = np.array([[0, 1, 0], [1, 1, 0]], NUMPY[dtype])
    x.write(values)
    out = x.to_numpy()
    assert out.dtype == values.dtype and (out == values).all()
    room = np.zeros_like(values)
    x.read(room)
    assert (room == values).all()
    x.fill(1)
    assert (x.to_numpy() == 1).all()
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, dtype)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 1, 2, 1, 2, 1, 2, 1)])
def test_shapes(device, shape):
    x = Array(device, DType.f32, shape, grad=True, dual=True)
    values = np.random.default_rng(1).random(shape, np.float32)
    x.write(values)
    assert np.array_equal(x.to_numpy(), values) and x.to_numpy().shape == shape
    assert x.grad.shape == shape and x.dual.shape == shape


def test_strided_data_is_copied_when_written(device):
    x = Array(device, DType.f64, (3, 2))
    base = np.arange(48.0).reshape(6, 8)
    for values in (base[::2, 6:2:-2], base[:2, :3].T, np.broadcast_to(7.0, (3, 2))):
        x.write(values)
        assert np.array_equal(x.to_numpy(), values)
    with pytest.raises(_core.BadArgument, match="not contiguous"):
        x.read(np.empty((2, 3)).T)


def test_data_must_be_alike(device):
    x = Array(device, DType.f32, (2, 3))
    for wrong in (np.zeros((2, 3)), np.zeros((3, 2), np.float32), np.zeros(6, np.float32),
                  np.zeros((2, 3), np.complex64)):
        with pytest.raises(_core.BadArgument, match="f32 of shape .2, 3."):
            x.write(wrong)
    with pytest.raises(TypeError):
        x.write("text")
    readonly = np.zeros((2, 3), np.float32)
    readonly.flags.writeable = False
    x.write(readonly)
    with pytest.raises(TypeError):
        x.read(readonly)


def test_anything_with_the_buffer_protocol(device):
    x = Array(device, DType.u8, (4,))
    x.write(b"abcd")
    room = bytearray(4)
    x.read(room)
    assert room == b"abcd"
    x.write(memoryview(b"efgh"))
    assert bytes(x.to_numpy()) == b"efgh"


def test_numbers_to_fill_with(device):
    x = Array(device, DType.i8, (2,))
    for good in (-128, 127, 3.0, np.int64(5), True, np.float32(2)):
        x.fill(good)
        assert (x.to_numpy() == int(good)).all()
    for wrong in (128, -129, 2**70, -(2**70), 0.5, float("nan"), float("inf"), "1", None, [1]):
        with pytest.raises(_core.BadArgument, match="cannot be filled with"):
            x.fill(wrong)
    y = Array(device, DType.f16, (2,))
    y.fill(0.1)
    assert y.to_numpy()[0] == np.float16(0.1)


def test_wrong_arrays_are_refused(device):
    for shape, text in (((-1,), "negative"), ((1,) * 9, "rank 9"), ((2**40, 2**40), "more bytes")):
        with pytest.raises(_core.BadArgument, match=text):
            Array(device, DType.f64, shape)
    with pytest.raises(_core.OutOfMemory):
        Array(device, DType.f64, (2**45,))
    with pytest.raises(_core.BadArgument, match="gradient"):
        Array(device, DType.i32, (2,), grad=True)
    with pytest.raises(_core.MissingGradient):
        Array(device, DType.f32, (2,)).grad
    with pytest.raises(TypeError):
        Array(device, DType.f64, (2**70,))
    with pytest.raises(TypeError):
        Array(device, DType.f64, (1.5,))
    with pytest.raises(ValueError):  # the exceptions are those of Python, too
        Array(device, DType.f64, (-1,))


@needs_host
def test_views_share_the_memory(device):
    x = Array(device, DType.f64, (3,))
    view = x.numpy()
    with pytest.raises(ValueError):
        view[0] = 1
    version = x.version
    room = x.numpy(writable=True)
    room[:] = (1, 2, 3)
    assert x.version > version
    assert x.to_numpy().tolist() == [1, 2, 3] and view.tolist() == [1, 2, 3]
    del x
    gc.collect()
    assert view.tolist() == [1, 2, 3]


@needs_host
def test_a_tape_refuses_views_to_write(device):
    x = Array(device, DType.f64, (3,))
    with _core.Tape().record():
        x.numpy()
        with pytest.raises(_core.BadArgument, match="Tape"):
            x.numpy(writable=True)


@needs_host
def test_dlpack_out(device):
    x = Array(device, DType.f32, (2, 2))
    x.fill(3)
    other = np.from_dlpack(x)
    x.fill(4)
    assert (other == 4).all() and x.__dlpack_device__() == (1, 0)
    assert (np.from_dlpack(x, copy=True) == 4).all()


@needs_host
@pytest.mark.parametrize("dtype", NUMPY)
def test_dlpack_in(device, dtype):
    values = np.zeros((2, 3), NUMPY[dtype])
    uploads = device.statistics().uploads
    x = Array.from_dlpack(values)
    x.fill(1)
    assert (values == 1).all() and x.dtype == dtype and x.shape == (2, 3)
    assert device.statistics().uploads == uploads


@pytest.mark.skipif(not _core.Device.best().name.startswith("vulkan"), reason="other devices share theirs")
def test_memory_that_only_its_device_uses(device):
    x = Array(device, DType.f64, (3,))
    with pytest.raises(_core.BadArgument, match="to_numpy"):
        x.numpy()
    for wrong in (np.from_dlpack, lambda x: x.__dlpack__()):
        with pytest.raises(BufferError):
            wrong(x)
    with pytest.raises(_core.BadArgument, match="copy it"):
        Array.from_dlpack(np.zeros(3))


@needs_host
def test_memory_of_others_lives_as_long_as_its_array(device):
    class Owner(np.ndarray):
        pass

    values = np.zeros(3).view(Owner)
    gone = weakref.ref(values)
    x = Array.from_dlpack(values, grad=True)
    del values
    gc.collect()
    x.fill(2)
    assert x.to_numpy().tolist() == [2, 2, 2] and x.has_grad and gone() is not None
    del x
    gc.collect()
    assert gone() is None


@needs_host
def test_memory_that_cannot_be_adopted(device):
    with pytest.raises(_core.BadArgument, match="contiguous"):
        Array.from_dlpack(np.zeros((4, 4)).T[1:])
    with pytest.raises(_core.BadArgument, match="elements"):
        Array.from_dlpack(np.zeros(3, np.complex128))
    with pytest.raises(_core.BadArgument, match="protocol"):
        Array.from_dlpack([1.0])
    with pytest.raises(_core.BadArgument, match="multiple"):
        Array.adopt(device, DType.f64, (1,), 12, None)
    with pytest.raises(_core.BadArgument, match="null"):
        Array.adopt(device, DType.f64, (1,), 0, None)


@needs_host
def test_gradients_do_not_trust_strangers(device, trace):
    def body(t):
        here = _core.Loc(__file__, 1)
        x, y, z = (t.array(DType.f64, 1) for _ in range(3))
        for read, written, op in ((x, y, _core.Op.sin), (y, z, _core.Op.exp)):
            (i,) = t.begin_range([t.extent(x, 1, 0, here)], here)
            value = t.load(read, DType.f64, [i], here)
            t.store(written, DType.f64, [i], t.pure(op, DType.f64, [value], here), here)
            t.end()

    k = trace("reload", body)
    memory = [np.ones(3) for _ in range(3)]
    strange = [Array.from_dlpack(m, grad=True) for m in memory]
    k.launch(*strange)
    k.grad(*strange)
    memory[1][0] = 5
    with pytest.raises(_core.CannotReplay, match="others"):
        k.grad(*strange)
    k.grad(*strange, initial_state=True)
    known = [Array.from_dlpack(m, grad=True, announced=True) for m in memory]
    k.launch(*known)
    k.grad(*known)
    k.launch(*known)
    memory[1][0] = 5
    known[1].written_outside()
    with pytest.raises(_core.CannotReplay):
        k.grad(*known)
