"""Halos, sums and parts: values, gradients, tangents."""

import numpy as np
import pytest
from ranks import in_threads, values

import costate as qd
from costate import distributed


def numbered(group, shape, axis, width, kind=None, **options):
    """A field whose own elements tell which they are in the whole domain; others are -1."""
    x = (kind or qd.field)(qd.f64, shape, **options)
    whole = np.arange(np.prod(shape) * group.size(), dtype=np.float64)
    n = shape[axis] - 2 * width
    whole_shape = list(shape)
    whole_shape[axis] = n * group.size()
    whole = np.moveaxis(whole[:np.prod(whole_shape)].reshape(whole_shape), axis, 0)
    mine = np.full(np.moveaxis(np.empty(shape), axis, 0).shape, -1.0)
    mine[width:-width] = whole[group.rank() * n:(group.rank() + 1) * n]
    x.from_numpy(np.ascontiguousarray(np.moveaxis(mine, 0, axis)))
    padded = np.concatenate([whole[-width:], whole, whole[:width]])
    return x, np.moveaxis(padded[group.rank() * n:(group.rank() + 1) * n + 2 * width], 0, axis)


@pytest.mark.parametrize("shape, axis", [((9, 4), 0), ((4, 9), 1), ((3, 9, 2), 1), ((2, 3, 9), -1)])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_values_of_halos(shape, axis, width):
    def run(group, periodic):
        x, expected = numbered(group, shape, axis % len(shape), width, qd.ndarray)
        distributed.Halo(x, axis, width, periodic, group)()
        found, expected = np.moveaxis(x.to_numpy(), axis, 0), np.moveaxis(expected, axis, 0).copy()
        if not periodic and group.rank() == 0:
            expected[:width] = -1
        if not periodic and group.rank() == group.size() - 1:
            expected[-width:] = -1
        np.testing.assert_array_equal(found, expected)
    for size in (1, 2, 3, 4):
        for periodic in (False, True):
            values(in_threads(size, run, periodic))


def test_halos_of_two_axes_fill_corners():
    def run(group):
        x = qd.field(qd.f64, (6, 6))
        x.fill(group.rank() + 1)
        distributed.Halo(x, 0, periodic=True, group=group)()
        distributed.Halo(x, 1, periodic=True, group=group)()
        return x.to_numpy()
    first, second = values(in_threads(2, run))
    assert first[0, 2] == first[2, 0] == 2 and first[0, 0] == 1      # what the neighbour had as its halo
    assert second[-1, -1] == 2


@pytest.mark.parametrize("layout", [qd.AOS, qd.SOA])
def test_elements_are_vectors(layout):
    def run(group):
        x = qd.Vector.field(2, qd.f32, (6, 3), needs_grad=True, layout=layout)
        x.fill(group.rank())
        halo = distributed.Halo(x, 1, periodic=True, group=group)
        halo()
        x.grad.fill(1)
        halo.grad()
        return x.to_numpy(), x.grad.to_numpy()
    (first, grad), (second, _) = values(in_threads(2, run))
    assert first[:, 0].tolist() == [[1, 1]] * 6 and second[:, 2].tolist() == [[0, 0]] * 6 and first[2, 1, 1] == 0
    assert grad[:, 0].max() == 0 and grad[:, 1].min() == grad[:, 1].max() == 3


@pytest.mark.parametrize("dtype", [qd.f16, qd.f32, qd.i32, qd.u8, qd.i64])
def test_types_of_elements(dtype):
    def run(group):
        x = qd.field(dtype, 5)
        x.fill(3 + group.rank())
        distributed.Halo(x, group=group)()
        distributed.all_reduce(x, group)
        return x.to_numpy()
    first, second = values(in_threads(2, run))
    assert first.tolist() == second.tolist() == [6, 7, 7, 7, 8]


@qd.kernel
def bend(u: qd.types.ndarray(), v: qd.types.ndarray()):
    for i in range(1, u.shape[0] - 1):
        v[i] = u[i] * (u[i - 1] - 2 * u[i] + u[i + 1])


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_graph_repeats_exchanges(in_parts):
    def run(group):
        u, v = (qd.ndarray(qd.f64, 8, needs_grad=True) for _ in range(2))
        halo = distributed.Halo(u, periodic=True, group=group)

        def there():
            (halo.start(), halo.finish()) if in_parts else halo()
            bend(u, v)
            v.grad.fill(1)

        def there_and_back():
            there()
            bend.grad(u, v)
            (halo.finish_grad(), halo.start_grad()) if in_parts else halo.grad()
        graph = qd.capture(there_and_back)
        for factor in (1, 2):
            u.from_numpy(factor * np.sin(np.arange(8) + 10 * group.rank()))
            with qd.ad.Tape(None):
                there()
            expected = v.to_numpy(), u.grad.to_numpy()
            u.grad.fill(0)
            graph.replay()
            np.testing.assert_array_equal(v.to_numpy(), expected[0])
            np.testing.assert_array_equal(u.grad.to_numpy(), expected[1])
            u.grad.fill(0)
    values(in_threads(3, run))


def test_halos_of_several_arrays_are_one_exchange():
    def run(group):
        u, v = qd.ndarray(qd.f64, (8, 2), needs_grad=True), qd.ndarray(qd.i32, (6, 2))
        u.fill(group.rank())
        v.fill(10 + group.rank())
        halo = distributed.Halo([u, v], width=2, periodic=True, group=group)
        halo()
        u.grad.fill(1)
        halo.grad()
        return u.to_numpy()[:, 0].tolist(), v.to_numpy()[:, 1].tolist(), u.grad.to_numpy()[:, 0].tolist()
    first, second = values(in_threads(2, run))
    assert first == ([1, 1, 0, 0, 0, 0, 1, 1], [11, 11, 10, 10, 11, 11], [0, 0, 2, 2, 2, 2, 0, 0])
    assert second == ([0, 0, 1, 1, 1, 1, 0, 0], [10, 10, 11, 11, 10, 10], [0, 0, 2, 2, 2, 2, 0, 0])


def test_sums_and_their_adjoints():
    def run(group, options):
        x, loss = qd.field(qd.f64, 3, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)
        x.from_numpy(np.array([1.0, 2, 3]) * (group.rank() + 1))
        with qd.ad.Tape(loss):
            distributed.all_reduce(x, group, **options)
            weigh(x, loss, group.rank() + 1)
        return x.to_numpy(), x.grad.to_numpy()
    for ordered in (False, True):
        for x, grad in values(in_threads(3, run, dict(ordered=ordered))):
            assert x.tolist() == [6, 12, 18]
            assert grad.tolist() == [2 * 6 * 6, 2 * 6 * 12, 2 * 6 * 18]
    for rank, (_, grad) in enumerate(values(in_threads(3, run, dict(replicated=True)))):
        assert grad.tolist() == [2 * (rank + 1) * one for one in (6, 12, 18)]


@qd.kernel
def weigh(x: qd.template(), loss: qd.template(), by: qd.f64):
    for i in x:
        loss[None] += by * x[i] * x[i]


def test_sums_in_the_order_of_ranks():
    numbers = [1e16, 1.0, -1e16, 1.0]

    def run(group):
        x = qd.field(qd.f64, ())
        x.fill(numbers[group.rank()])
        distributed.all_reduce(x, group, ordered=True)
        return float(x[None])
    assert values(in_threads(4, run)) == [((1e16 + 1.0) - 1e16) + 1.0] * 4


def test_parts_of_different_extents():
    def run(group):
        part = qd.field(qd.f64, (2 + group.rank(), 2), needs_grad=True)
        whole = qd.field(qd.f64, (9, 2), needs_grad=True) if group.rank() == 1 else None
        loss = qd.field(qd.f64, (), needs_grad=True)
        if whole is not None:
            whole.from_numpy(np.arange(18.0).reshape(9, 2))
        with qd.ad.Tape(None if whole is None else loss):
            distributed.scatter(whole, part, 1, group)
            double(part)
            distributed.gather(part, whole, 1, group)
            if whole is not None:
                add(whole, loss)
        return part.to_numpy(), whole.to_numpy() if whole else None, whole.grad.to_numpy() if whole else None
    parts = values(in_threads(3, run))
    start = np.arange(18.0).reshape(9, 2)
    np.testing.assert_array_equal(np.concatenate([one[0] for one in parts]), 2 * start)
    np.testing.assert_array_equal(parts[1][1], 2 * start)
    np.testing.assert_array_equal(parts[1][2], 8 * start)


@qd.kernel
def double(x: qd.template()):
    for I in qd.grouped(x):
        x[I] = 2 * x[I]


@qd.kernel
def add(x: qd.template(), loss: qd.template()):
    for I in qd.grouped(x):
        loss[None] += x[I] * x[I]


def test_gradients_are_those_of_differences():
    """All ranks take the steps of the check, for it launches everything several times."""
    def run(group):
        u, loss = qd.field(qd.f64, 8, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)
        u.from_numpy(np.linspace(0.1, 0.9, 8))
        halo = distributed.Halo(u, periodic=True, group=group)

        def step():
            halo()
            neighbours(u, loss)
            distributed.all_reduce(loss, group, replicated=True)
        with qd.ad.Tape(loss):
            step()
        found = u.grad.to_numpy()
        differences = np.zeros(8)
        for owner in range(group.size()):
            for i in range(1, 7):
                both = []
                for sign in (1, -1):
                    u.from_numpy(np.linspace(0.1, 0.9, 8))
                    if group.rank() == owner:
                        u[i] += sign * 1e-5
                    loss.fill(0)
                    step()
                    both.append(float(loss[None]))
                if group.rank() == owner:
                    differences[i] = (both[0] - both[1]) / 2e-5
        np.testing.assert_allclose(found, differences, rtol=1e-8, atol=1e-9)
    values(in_threads(3, run))


@qd.kernel
def neighbours(u: qd.template(), loss: qd.template()):
    for i in range(1, 7):
        loss[None] += u[i] * u[i - 1] * u[i + 1] * u[i + 1]


def test_checkpoints_keep_what_others_sent():
    """Ranks may take different numbers of snapshots: what runs again asks nobody."""
    def run(group, several):
        u, v = (qd.field(qd.f64, 10, needs_grad=True) for _ in range(2))
        loss = qd.field(qd.f64, (), needs_grad=True)
        u.from_numpy(np.linspace(0.1, 0.5, 10) + group.rank())
        halos = [distributed.Halo(one, periodic=True, group=group) for one in (u, v)]
        with qd.ad.Tape(loss, snapshots=2 + group.rank() if several else None) as tape:
            for t in tape.steps(9):
                halos[t % 2]()
                advance(*((u, v) if t % 2 == 0 else (v, u)))
            neighbours_of(v, loss)
        assert several == (tape.report().steps_again > 0)
        return u.grad.to_numpy()
    for plain, kept in zip(values(in_threads(2, run, False)), values(in_threads(2, run, True))):
        np.testing.assert_array_equal(plain, kept)


@qd.kernel
def advance(u: qd.template(), v: qd.template()):
    for i in range(1, 9):
        v[i] = u[i] + 0.1 * qd.sin(u[i - 1]) * u[i + 1]


@qd.kernel
def neighbours_of(u: qd.template(), loss: qd.template()):
    for i in range(1, 9):
        loss[None] += u[i] * u[i]


def test_functions_with_a_gradient_of_their_own():
    """Their launches and exchanges are no entries; their gradients exchange adjoints."""
    def run(group):
        u, loss = qd.field(qd.f64, 8, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)
        u.fill(1 + group.rank())
        halo = distributed.Halo(u, periodic=True, group=group)

        @qd.ad.grad_replaced
        def fill():
            halo()

        @qd.ad.grad_for(fill)
        def fill_back():
            halo.grad()
        with qd.ad.Tape(loss):
            fill()
            add(u, loss)
        return u.to_numpy(), u.grad.to_numpy()
    (first, grad), _ = values(in_threads(2, run))
    assert first.tolist() == [2, 1, 1, 1, 1, 1, 1, 2]
    assert grad.tolist() == [0, 4, 2, 2, 2, 2, 4, 0]


def test_sums_of_gradients():
    def run(group):
        w = qd.field(qd.f64, 2, needs_grad=True)
        w.grad.fill(group.rank() + 1)
        distributed.sum_gradients([w], group, ordered=True)
        torch = pytest.importorskip("torch")
        t = torch.ones(3, requires_grad=True)
        t.grad = torch.full((3,), float(group.rank()))
        distributed.sum_gradients(t, group)
        return w.grad.to_numpy().tolist(), t.grad.tolist()
    if qd.device().name != "vulkan":
        assert values(in_threads(3, run)) == [([6, 6], [3, 3, 3])] * 3
