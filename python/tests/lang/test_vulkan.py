"""`init(arch=vulkan)`: on Mesa's driver for the CPU, where there is no GPU."""

import warnings

import numpy as np
import pytest

import costate as ti
from costate import _core


def device_or_reason():
    try:
        return _core.Device.open("vulkan"), ""
    except ti.NoDevice as error:
        return None, str(error)


DEVICE, REASON = device_or_reason()
needs_vulkan = pytest.mark.skipif(DEVICE is None, reason=REASON)


@pytest.fixture(autouse=True)
def chosen_here(monkeypatch):
    for name in ("COSTATE_DEVICE", "QD_VISIBLE_DEVICE", "TI_VISIBLE_DEVICE", "QD_ARCH", "TI_ARCH"):
        monkeypatch.delenv(name, raising=False)


def opened(arch, **options):
    """What `init` chooses, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ti.init(arch=arch, **options)
    return ti.lang.impl.current_cfg().arch, ti.lang.runtime.device().name, [str(w.message) for w in caught]


@needs_vulkan
def test_the_first_that_is_there():
    assert opened(ti.vulkan) == (ti.vulkan, "vulkan", [])
    assert opened("vulkan") == (ti.vulkan, "vulkan", [])
    assert opened([ti.metal, ti.vulkan, ti.cpu]) == (ti.vulkan, "vulkan", [])
    assert opened([ti.cpu, ti.vulkan]) == (ti.cpu, "cpu", [])
    assert ti.lang.runtime.is_arch_supported(ti.vulkan)


@needs_vulkan
def test_one_of_several(monkeypatch):
    assert opened("vulkan:0") == (ti.vulkan, "vulkan:0", [])
    monkeypatch.setenv("QD_VISIBLE_DEVICE", "0")
    assert opened(ti.vulkan) == (ti.vulkan, "vulkan:0", [])
    assert opened("vulkan") == (ti.vulkan, "vulkan:0", [])
    monkeypatch.setenv("QD_VISIBLE_DEVICE", "999")
    arch, name, (said,) = opened(ti.vulkan)
    assert (arch, name) == (ti.cpu, "cpu") and "falling back" in said and "999" in said
    with pytest.raises(ti.NoDevice, match="999"):
        ti.init(arch=ti.vulkan, enable_fallback=False)


def test_a_gpu_is_none_that_the_cpu_plays():
    for arch in (ti.gpu, "gpu"):
        kind, name, said = opened(arch)
        assert name in ("cuda", "vulkan") and not said or (
            kind == ti.cpu and len(said) == 1 and "NVIDIA" in said[0] and "Vulkan" in said[0])


@needs_vulkan
def test_options_are_those_of_the_device():
    opened(ti.vulkan, device_memory_GB=0.25)
    assert ti.lang.runtime.device().memory_limit == 1 << 28
    with pytest.raises(ti.OutOfMemory):
        ti.ndarray(ti.f32, shape=1 << 28)


@needs_vulkan
def test_a_program(capfd):
    ti.init(arch=ti.vulkan, debug=True)
    x = ti.field(ti.f32, shape=8, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    counts = ti.ndarray(ti.i32, shape=2)

    @ti.kernel
    def power(n: ti.i32):
        for i in x:
            p = 1.0
            for _ in range(n + i % 2):
                p *= x[i]
            loss[None] += p

    @ti.kernel
    def count(c: ti.types.ndarray(), a: ti.types.ndarray()):
        for i in a:
            ti.atomic_add(c[0], 1)
            ti.atomic_max(c[1], a[i])
            if i == 3:
                print("third", a[i])
            assert a[i] < 100, f"element {i} is {a[i]}"

    x.from_numpy(np.full(8, 2, np.float32))
    with ti.ad.Tape(loss):
        power(3)
    assert loss[None] == 4 * 8 + 4 * 16 and x.grad.to_numpy().tolist() == [12, 32] * 4
    numbers = np.arange(10, dtype=np.int32)
    count(counts, numbers)
    ti.sync()
    assert counts.to_numpy().tolist() == [10, 9]
    assert "third 3" in capfd.readouterr().out
    numbers[7] = 1000
    with pytest.raises(AssertionError, match="element 7 is 1000"):
        count(counts, numbers)
        ti.sync()


@needs_vulkan
def test_tensors_are_copied():
    torch = pytest.importorskip("torch")
    ti.init(arch=ti.vulkan)

    @ti.kernel
    def squares(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def add_up(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in x:
            loss[0] += x[i]

    x, y = (torch.full((3,), 2.0, requires_grad=True) for _ in range(2))
    loss = torch.zeros(1, requires_grad=True)
    for _ in range(2):
        x.grad = None
        with torch.no_grad():
            loss.zero_()
        with ti.ad.Tape(loss):
            squares(x, y)
            add_up(y, loss)
        assert loss.item() == 12 and x.grad.tolist() == [4, 4, 4]
    rows = torch.zeros(2, 3)
    with pytest.raises(ti.MissingGradient), ti.ad.Tape(loss):
        squares(x, rows[0])
        add_up(rows[0], loss)
    with pytest.raises(ti.CannotReplay, match="parts of the same memory"), ti.ad.Tape(loss):
        squares(x, rows[0])
        add_up(rows.reshape(6), loss)
    for wrong in (lambda: squares(rows[0], rows[0]), lambda: squares(rows[0, :2], rows[0, 1:])):
        with pytest.raises(ti.BadArgument, match="memory in common"):
            wrong()
    squares(rows[0], rows[1])
    total = ti.torch_function(squares, outputs={1: 0})
    x.grad = None
    total(x).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]
    with pytest.raises(BufferError):
        ti.field(ti.f32, shape=3).to_torch(copy=False)
