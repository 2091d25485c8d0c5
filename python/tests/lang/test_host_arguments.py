"""Arrays of NumPy as arguments: what cannot be written back, or has memory in common, is refused where it is written."""

import numpy as np
import pytest

import costate as ti

host_only = pytest.mark.skipif("not __import__('costate').lang.runtime.shares_memory()")


@ti.kernel
def increment(x: ti.types.ndarray()):
    for i in ti.grouped(x):
        x[i] += 1


@ti.kernel
def both(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        x[i] += 1
    for i in y:
        y[i] += 1


@ti.kernel
def copy(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        x[i] = y[i]


@ti.kernel
def total(x: ti.types.ndarray(), y: ti.types.ndarray()) -> ti.f64:
    s = 0.0
    for i in x:
        s += x[i] + y[i]
    return s


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("make", [
    lambda tmp: read_only(np.zeros(4)),
    lambda tmp: np.broadcast_to(np.zeros(1), 4),
    lambda tmp: np.frombuffer(bytes(32)),
    lambda tmp: np.memmap(tmp, np.float64, "r", shape=4),
    lambda tmp: np.lib.stride_tricks.sliding_window_view(np.zeros(5), 2),
    lambda tmp: read_only(np.zeros((4, 4)))[::2, ::2],
])
def test_results_in_arrays_that_cannot_be_written(tmp_path, make):
    np.zeros(4).tofile(tmp_path / "memory")
    with pytest.raises(ti.BadArgument, match="kernel `increment`: `x` is an array of NumPy that cannot be written, and the "
                                             "kernel writes it; pass `np.array"):
        increment(make(tmp_path / "memory"))


def test_arrays_that_cannot_be_written_are_read():
    x, y = read_only(np.arange(4.0)), np.broadcast_to(np.float64(2), 4)
    assert total(x, y) == 14
    z = np.zeros(4)
    copy(z, y)
    assert z.tolist() == [2] * 4


def test_a_view_that_cannot_be_written_follows_its_base():
    base, z = np.zeros(4), ti.ndarray(ti.f64, 4)
    view = read_only(base[:])
    for value in (1, 2):
        base[:] = value
        copy(z, view)
        assert z.to_numpy().tolist() == [value] * 4


def test_elements_in_one_place():
    base = np.zeros(3)
    with pytest.raises(ti.BadArgument, match="`x` is an array of NumPy whose elements share memory with each other"):
        increment(np.lib.stride_tricks.as_strided(base, (3,), (0,)))
    with pytest.raises(ti.BadArgument, match="share memory with each other"):
        increment(np.lib.stride_tricks.as_strided(base, (2, 2), (8, 8)))


@pytest.mark.parametrize("view", [lambda a: a[::2], lambda a: a[::-1], lambda a: a.T, lambda a: a[1:, ::3], lambda a: a[:0]])
def test_views_with_gaps_are_written(view):
    a = np.zeros((5, 4))
    expected = a.copy()
    view(expected)[...] += 1
    increment(view(a))
    assert np.array_equal(a, expected)


def test_one_array_as_two_arguments():
    a = np.zeros(3)
    both(a, a)
    assert a.tolist() == [2] * 3
    assert total(a, a) == 12
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def one():
        loss[None] += 1.0

    with ti.ad.Tape(loss):
        both(a, a)
        one()
    assert a.tolist() == [4] * 3


def test_one_array_as_two_arguments_of_other_elements():
    @ti.kernel
    def mixed(x: ti.types.ndarray(dtype=ti.math.vec2, ndim=1), y: ti.types.ndarray(dtype=ti.f32, ndim=2)) -> ti.f32:
        return x[1].y + y[0, 1]

    a = np.array([[1, 2], [3, 4]], np.float32)
    assert mixed(a, a) == 6


@pytest.mark.parametrize("views", [
    lambda a: (a[:4], a[2:]), lambda a: (a, a[:]), lambda a: (a[::2], a[2:5]), lambda a: (a[::-1], a), lambda a: (a, a[5:]),
    lambda a: (a[::2], a.reshape(2, 3)[:, 0]),
])
def test_overlapping_views(views):
    a = np.arange(6.0)
    with pytest.raises(ti.BadArgument, match="kernel `both`: `.` and `.` have memory in common, and it is written; pass two"):
        both(*views(a))
    assert a.tolist() == list(range(6))
    x, y = views(a)
    assert total(x, np.resize(y, x.shape)) is not None


def test_reads_may_overlap():
    a = np.arange(6.0)
    assert total(a[:4], a[2:]) == 6 + 14
    assert total(a[::2], a[:3]) == 6 + 3


def test_views_beside_each_other():
    a = np.zeros(6)
    both(a[::2], a[1::2])
    both(a[:3], a[3:])
    assert a.tolist() == [2] * 6


@host_only
@pytest.mark.parametrize("view", [lambda v: v, lambda v: v[1:]])
def test_an_array_and_a_view_of_its_memory(view):
    x, f = ti.ndarray(ti.f64, 3), ti.field(ti.f64, 3)
    with pytest.raises(ti.BadArgument, match="`x` and `y` have memory in common"):
        both(x, view(x.to_numpy(copy=False)))
    with pytest.raises(ti.BadArgument, match="`y` and `x` have memory in common|`x` and `y` have memory in common"):
        both(view(x.to_numpy(copy=False)), x)

    @ti.kernel
    def into_field(y: ti.types.ndarray()):
        for i in y:
            f[i] += 1
            y[i] += 1

    with pytest.raises(ti.BadArgument, match="`f` and `y` have memory in common|`y` and `f` have memory in common"):
        into_field(view(f.to_numpy(copy=False)))
    assert f.to_numpy().tolist() == x.to_numpy().tolist() == [0] * 3
    into_field(np.zeros(3))
    assert f.to_numpy().tolist() == [1] * 3


def test_a_tensor_over_an_array():
    torch = pytest.importorskip("torch")
    a = np.zeros(4)
    with pytest.raises(ti.BadArgument, match="have memory in common"):
        both(a, torch.from_numpy(a))
    with pytest.raises(ti.BadArgument, match="have memory in common"):
        copy(torch.from_numpy(a)[2:], a[1:3])
    copy(torch.from_numpy(a)[2:], np.ones(2))
    assert a.tolist() == [0, 0, 1, 1]


@host_only
def test_a_tensor_over_a_field():
    torch = pytest.importorskip("torch")
    x = ti.ndarray(ti.f64, 3)
    with pytest.raises(ti.BadArgument, match="have memory in common"):
        both(x, torch.from_dlpack(x))
    with pytest.raises(ti.BadArgument):
        both(torch.from_dlpack(x), x.to_numpy(copy=False))


def test_members_of_a_dataclass():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Pair:
        x: ti.types.ndarray()
        y: ti.types.ndarray()

    @ti.kernel
    def change(p: Pair):
        for i in p.x:
            p.x[i] += p.y[i]

    a = np.ones(4)
    with pytest.raises(ti.BadArgument, match="`p.x` and `p.y` have memory in common"):
        change(Pair(a[:3], a[1:]))
    with pytest.raises(ti.BadArgument, match="`p.x` is an array of NumPy that cannot be written"):
        change(Pair(read_only(np.ones(2)), np.ones(2)))
