"""Gradients of loops whose work items use elements of an array that the loop writes: exact where each
element has one user, else an error that names both lines."""

import numpy as np
import pytest

import costate as ti
from costate import ad

N = 6
pytestmark = pytest.mark.filterwarnings("ignore:iterations of this loop read elements")   # of which `test_warnings.py` is


def fields(*names):
    return [ti.field(ti.f64, shape=N, needs_grad=True) for _ in names]


@ti.func
def before(i: ti.i32) -> ti.i32:
    return ti.max(i - 1, 0)


def by_branch(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            if i == 0:
                out[i] = x[0]
            else:
                out[i] = out[i - 1] + x[i]
    return k


def by_ternary(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            out[i] = x[0] if i == 0 else out[i - 1] + x[i]
    return k


def by_clamp(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            out[i] = out[ti.max(i - 1, 0)] + x[i]
    return k


def by_remainder(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            out[i] = out[(i + 1) % N] * x[i]
    return k


def by_function(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            out[i] = out[before(i)] + x[i]
    return k


def by_inner_loop(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            for t in range(3):
                if i > t:
                    out[i] = out[i - t] + x[i]
    return k


def by_while(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            t = 0
            while t < 2:
                out[i] = out[(i + t) % N] + x[i]
                t += 1
    return k


def by_writing(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            if i > 0:
                out[i - 1] = x[i] * out[i]
    return k


def by_adding(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            if i > 1:
                out[i] = out[i] + out[i - 1] * x[i]
    return k


def by_update(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            if i == 0:
                out[i] = x[i]
            else:
                out[0] += x[i]
    return k


def by_storing_twice(out, x):
    @ti.kernel
    def k():
        for i in range(N):
            if i < 2:
                out[3] = x[i]
    return k


NEIGHBOURS = [by_branch, by_ternary, by_clamp, by_remainder, by_function, by_inner_loop, by_while, by_writing,
              by_adding, by_update, by_storing_twice]


@pytest.mark.parametrize("make", NEIGHBOURS)
@pytest.mark.parametrize("taped", [False, True])
def test_what_another_work_item_writes_has_no_gradient(make, taped):
    out, x = fields("out", "x")
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    k = make(out, x)

    @ti.kernel
    def add():
        for i in out:
            loss[None] += out[i]

    x.fill(0.5)
    with pytest.raises(ti.CannotReplay, match=r"test_gradient_neighbours.py:\d+.*work items? of the range.*"
                                              r"test_gradient_neighbours.py:\d+"):
        if taped:
            with ad.Tape(loss):
                k()
                add()
        else:
            k.grad(initial_state=True)
            x.grad.to_numpy()


def test_nothing_is_refused_where_work_items_do_not_meet():
    out, x = fields("out", "x")

    @ti.kernel
    def halves():
        for i in range(N):
            if i < N // 2:
                out[i] = x[i] * out[i + N // 2]

    out.fill(2.0)
    x.fill(3.0)
    out.grad.fill(1.0)
    halves.grad(initial_state=True)
    assert x.grad.to_numpy().tolist() == [2, 2, 2, 0, 0, 0]
    assert out.grad.to_numpy().tolist() == [0, 0, 0, 4, 4, 4]


@pytest.mark.parametrize("colour", [0, 1])
def test_every_other_element_is_relaxed_in_place(colour):
    out, x = fields("out", "x")

    @ti.kernel
    def relax(colour: ti.i32):
        for i in range(N):
            if i % 2 == colour:
                out[i] = 0.25 * (out[(i + N - 1) % N] + out[(i + 1) % N]) + x[i]

    out.grad.fill(1.0)
    relax.grad(colour, initial_state=True)
    assert x.grad.to_numpy().tolist() == [float(i % 2 == colour) for i in range(N)]
    assert out.grad.to_numpy().tolist() == [0.0 if i % 2 == colour else 1.5 for i in range(N)]


def test_elements_that_memory_tells_are_told_apart():
    @ti.kernel
    def k(at: ti.types.ndarray(), x: ti.types.ndarray(), s: ti.types.ndarray(), y: ti.types.ndarray()):
        for j in range(at.shape[0]):
            i = at[j]
            s[i] = 0.0
            ti.atomic_add(s[i], x[i] * x[i])
            y[i] = ti.sin(s[i])

    x, s, y = (ti.ndarray(ti.f64, (3,), needs_grad=True) for _ in range(3))
    at = ti.ndarray(ti.i32, (3,))
    at.from_numpy(np.array([2, 0, 1], np.int32))
    x.fill(1.0)
    k(at, x, s, y)
    y.grad.fill(1)
    k.grad(at, x, s, y)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * np.cos(1), rtol=1e-14)
    at.from_numpy(np.array([2, 0, 2], np.int32))
    k(at, x, s, y)
    with pytest.raises(ti.CannotReplay, match="another one writes|several work items"):
        k.grad(at, x, s, y)
        x.grad.to_numpy()


def test_components_and_members_are_elements_of_their_own():
    v = ti.Vector.field(2, ti.f64, shape=N, needs_grad=True)
    x, = fields("x")

    @ti.kernel
    def apart():
        for i in range(N):
            if i > 0:
                v[i][0] = v[i - 1][1] * x[i]

    @ti.kernel
    def meeting():
        for i in range(N):
            if i > 0:
                v[i][0] = v[i - 1][0] * x[i]

    v.fill(2.0)
    v.grad.fill(1.0)
    apart.grad(initial_state=True)
    assert x.grad.to_numpy().tolist() == [0, 2, 2, 2, 2, 2]
    with pytest.raises(ti.CannotReplay, match="another one writes"):
        meeting.grad(initial_state=True)
        x.grad.to_numpy()


def test_serial_code_reads_what_it_has_written():
    out, x = fields("out", "x")

    @ti.kernel
    def k():
        for _ in range(1):
            for i in range(N):
                if i == 0:
                    out[i] = x[0]
                else:
                    out[i] = out[i - 1] + x[i]

    out.grad[N - 1] = 1.0
    k.grad(initial_state=True)
    assert x.grad.to_numpy().tolist() == [1.0] * N


def test_products_of_elements_of_ones_own():
    x, y = fields("x", "y")
    old, = fields("old")
    at = ti.field(ti.i32, shape=N)

    @ti.kernel
    def own():
        for i in x:
            old[i] = ti.atomic_mul(x[i], y[i])

    @ti.kernel
    def found():
        for i in x:
            ti.atomic_mul(x[at[i]], y[i])

    x.fill(3.0)
    y.fill(2.0)
    x.grad.fill(1.0)
    old.grad.fill(10.0)
    own.grad(initial_state=True)
    assert x.grad.to_numpy().tolist() == [12.0] * N
    assert y.grad.to_numpy().tolist() == [3.0] * N
    at.from_numpy(np.arange(N, dtype=np.int32)[::-1].copy())
    x.grad.fill(1.0)
    y.grad.fill(0.0)
    found.grad(initial_state=True)
    assert x.grad.to_numpy().tolist() == [2.0] * N
    assert y.grad.to_numpy().tolist() == [3.0] * N
    at.fill(1)
    with pytest.raises(ti.CannotReplay, match=r"test_gradient_neighbours.py:\d+.*`atomic_mul` has no derivative"):
        found.grad(initial_state=True)
        x.grad.to_numpy()


def test_products_of_vectors():
    v = ti.Vector.field(2, ti.f32, shape=N, needs_grad=True)

    @ti.kernel
    def k():
        for i in v:
            ti.atomic_mul(v[i], ti.Vector([2.0, 3.0]))

    v.fill(1.0)
    k()
    assert v[1].to_list() == [2.0, 3.0]
    v.grad.fill(1.0)
    k.grad()
    assert v.grad[2].to_list() == [2.0, 3.0]


def test_a_product_that_work_items_share_is_refused():
    x, y = fields("x", "y")

    @ti.kernel
    def k():
        for i in y:
            ti.atomic_mul(x[0], y[i])

    with pytest.raises(ti.NotDifferentiable, match=r"test_gradient_neighbours.py:\d+.*`atomic_mul` of an element"):
        k.grad()


def test_asking_is_no_search_for_inf(tmp_path):
    import subprocess
    import sys
    program = tmp_path / "program.py"
    program.write_text("""
import costate as ti
ti.init(arch=ti.cpu, deterministic=True)
x, y = (ti.field(ti.f64, shape=3, needs_grad=True) for _ in range(2))
at = ti.field(ti.i32, shape=3)
@ti.kernel
def k():
    for i in range(3):
        y[at[i]] = x[0]
for i in range(3):
    at[i], y.grad[i] = 2 - i, float("inf")
k.grad()
print(x.grad[0])
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.stdout == "inf\n", done.stderr
