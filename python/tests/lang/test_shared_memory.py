"""The memory of fields and ndarrays in the hands of other libraries: without copies where it is the host's."""

import gc
import os

import numpy as np
import pytest

import costate as qd
from costate import _core

DEVICE = os.environ.get("COSTATE_DEVICE") or "cpu"
on_host = pytest.mark.skipif(DEVICE not in ("cpu", "simt"), reason="the memory is on the device")
on_device = pytest.mark.skipif(DEVICE in ("cpu", "simt"), reason="the memory is the host's")
on_cuda = pytest.mark.skipif(DEVICE != "cuda", reason="for CUDA")
KINDS = {"field": lambda: qd.field(qd.f32, (2, 3)), "ndarray": lambda: qd.ndarray(qd.i64, (2, 3)),
         "vectors": lambda: qd.Vector.field(2, qd.f64, (3,)), "matrices": lambda: qd.Matrix.ndarray(2, 3, qd.f16, (4,)),
         "bool": lambda: qd.field(qd.u1, (5,)), "empty": lambda: qd.ndarray(qd.f64, (0, 2)),
         "single": lambda: qd.ndarray(qd.u8, ())}


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=getattr(qd, DEVICE))


def numbered(make):
    x = make()
    whole = x.to_numpy()
    x.from_numpy((np.arange(whole.size) % 2).reshape(whole.shape).astype(whole.dtype))
    return x


@on_host
@pytest.mark.parametrize("kind", KINDS)
def test_numpy_sees_the_memory(kind):
    x = numbered(KINDS[kind])
    downloads = qd.statistics().downloads
    view = np.asarray(x)
    shared = np.from_dlpack(x)
    assert qd.statistics().downloads == downloads
    assert view.dtype == shared.dtype == x.to_numpy().dtype and view.shape == shared.shape == x.to_numpy().shape
    assert np.array_equal(view, x.to_numpy()) and np.array_equal(shared, x.to_numpy())
    if view.size:
        assert np.shares_memory(view, shared) and not view.flags.writeable


@on_host
def test_a_view_sees_what_kernels_write_and_a_copy_does_not():
    x = qd.field(qd.f64, 3)

    @qd.kernel
    def fill():
        for i in x:
            x[i] = i + 1

    view, copy, also = np.asarray(x), np.array(x), x.__array__()
    bare = np.asarray(x, copy=False)
    fill()
    qd.sync()
    assert view.tolist() == bare.tolist() == [1, 2, 3]
    assert copy.tolist() == also.tolist() == [0, 0, 0]
    with pytest.raises(ValueError):
        view[0] = 1
    with pytest.raises(ValueError, match="float64"):
        x.__array__(np.float32, copy=False)
    assert x.__array__(np.float32).dtype == np.float32


@on_host
def test_a_view_outlives_its_array():
    x = numbered(KINDS["ndarray"])
    view = np.asarray(x)
    expected = x.to_numpy()
    del x
    gc.collect()
    qd.init(arch=getattr(qd, DEVICE))
    assert np.array_equal(view, expected)


@on_host
def test_gradients_go_on_beside_views():
    x, loss = qd.field(qd.f64, 3, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)

    @qd.kernel
    def double():
        for i in x:
            x[i] = x[i] * x[i]

    @qd.kernel
    def add():
        for i in x:
            loss[None] += x[i]

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    view = np.asarray(x)
    with qd.ad.Tape(loss):
        double()
        double()
        add()
    assert np.asarray(x.grad).tolist() == [4, 32, 108]
    assert view.tolist() == x.to_numpy().tolist()


@pytest.mark.skipif(DEVICE == "vulkan", reason="nobody else uses the memory of Vulkan")
def test_dlpack_is_versioned_and_goes_to_the_host():
    x = numbered(KINDS["field"])
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.to_dlpack())
    host = np.from_dlpack(x, device="cpu")
    copy = np.from_dlpack(x, device="cpu", copy=True)
    x.fill(7)
    assert copy.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert host.tolist() == (x.to_numpy().tolist() if DEVICE in ("cpu", "simt") else copy.tolist())
    with pytest.raises(BufferError, match="no other device"):
        x.__dlpack__(dl_device=(8, 0))


@on_device
def test_memory_of_a_device_is_no_memory_of_the_host():
    x = numbered(KINDS["field"])
    assert not hasattr(x, "__array_interface__")
    assert np.asarray(x).tolist() == x.to_numpy().tolist()
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(x, copy=False)


@pytest.mark.skipif(DEVICE == "cuda", reason="CUDA has it")
def test_only_cuda_has_its_interface():
    assert not hasattr(qd.field(qd.f32, 3), "__cuda_array_interface__")


@on_cuda
def test_the_stream_of_a_consumer_waits_and_the_host_does_not():
    x = numbered(KINDS["field"])

    @qd.kernel
    def fill():
        for i, j in x:
            x[i, j] = i + j

    fill()
    waits = qd.statistics().synchronizations
    for wishes in ({}, {"stream": None}, {"stream": 1}, {"stream": 2}, {"stream": -1}):
        assert "dltensor" in repr(x.__dlpack__(**wishes))
    assert qd.statistics().synchronizations == waits
    for stream in (0, -2):
        with pytest.raises(qd.BadArgument, match="no stream that could wait"):
            x.__dlpack__(stream=stream)
    with pytest.raises(qd.BadArgument, match="an integer or None"):
        x.__dlpack__(stream="fast")
    x.to_dlpack()
    assert qd.statistics().synchronizations > waits


@on_cuda
def test_streams_of_pytorch_wait():
    torch = pytest.importorskip("torch")
    x = qd.field(qd.f32, 1 << 22)

    @qd.kernel
    def grow(v: qd.f32):
        for i in x:
            for _ in range(2000):
                x[i] = x[i] * 0.5 + v

    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        x.fill(0)
        grow(stream.cuda_stream % 7 + 1)
        with torch.cuda.stream(stream):
            seen = torch.from_dlpack(x).clone()
            assert torch.all(seen == seen[0]) and abs(float(seen[0]) - 2 * (stream.cuda_stream % 7 + 1)) < 1e-3


@on_cuda
def test_cuda_array_interface():
    x = numbered(KINDS["vectors"])
    place = x.__cuda_array_interface__
    assert place["shape"] == (3, 2) and place["typestr"] == "<f8" and place["version"] == 3
    other = _core.Array.adopt(_core.Device.best(), _core.DType.f64, place["shape"], place["data"][0], x)
    assert np.array_equal(other.to_numpy(), x.to_numpy())
    other.fill(3)
    _core.Device.best().synchronize()
    assert (x.to_numpy() == 3).all()


@pytest.mark.skipif(DEVICE == "vulkan", reason="nobody else uses the memory of Vulkan")
def test_torch_sees_the_memory():
    torch = pytest.importorskip("torch")
    if DEVICE == "cuda" and not torch.cuda.is_available():
        pytest.skip("a PyTorch without CUDA")
    x = numbered(KINDS["field"])
    tensor = torch.from_dlpack(x)
    x.fill(4)
    qd.sync()
    assert (tensor == 4).all()
    assert (torch.as_tensor(x) == 4).all()
