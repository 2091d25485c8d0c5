"""What the stacks of Quadrants are for: values that loops carry, with bounds, gates and sizes of every kind."""

import math

import numpy as np
import pytest

import costate as ti

CARRIED = {
    "sin": math.cos, "cos": lambda v: -math.sin(v), "tanh": lambda v: 1 - math.tanh(v) ** 2,
    "exp": math.exp, "log": lambda v: 1 / v, "sqrt": lambda v: 0.5 / math.sqrt(v), "rsqrt": lambda v: -0.5 * v ** -1.5,
    "tan": lambda v: 1 / math.cos(v) ** 2, "asin": lambda v: 1 / math.sqrt(1 - v * v),
    "acos": lambda v: -1 / math.sqrt(1 - v * v), "abs": lambda v: math.copysign(1, v),
}
PRIMAL = {"rsqrt": lambda v: v ** -0.5, "abs": abs}


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("op", CARRIED)
def test_unary_functions_in_a_loop(op, n, dtype):
    """y = the sum over the iterations of f(v), v = 0.4 v + 0.3 f(v) / (1 + f(v)^2)."""
    ti.init(arch=ti.cpu, default_fp=dtype)
    f, points = getattr(ti, op), np.array([0.2, 0.35, 0.6])
    x = ti.field(dtype, shape=3, needs_grad=True)
    y = ti.field(dtype, shape=3, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            v, s = x[i], 0.0
            for _ in range(n):
                u = f(v)
                s += u
                v = 0.4 * v + 0.3 * ti.abs(u) / (1 + u * u) + 0.05
            y[i] = s

    x.from_numpy(points)
    k()
    y.grad.fill(1)
    k.grad()
    primal = PRIMAL.get(op) or getattr(math, op)
    for i, at in enumerate(points):
        v, dv, s, ds = at, 1.0, 0.0, 0.0
        for _ in range(n):
            u, du = primal(v), CARRIED[op](v) * dv
            s, ds = s + u, ds + du
            sign = math.copysign(1, u)
            v, dv = (0.4 * v + 0.3 * abs(u) / (1 + u * u) + 0.05,
                     0.4 * dv + 0.3 * sign * du * (1 - u * u) / (1 + u * u) ** 2)
        rel = 1e-4 if dtype is ti.f32 else 1e-11
        assert y[i] == pytest.approx(s, rel=rel)
        assert x.grad[i] == pytest.approx(ds, rel=rel, abs=1e-5)


@pytest.mark.parametrize("n", [1, 4, 33, 1000])
@pytest.mark.parametrize("backend", [ti.Backend.FIELD, ti.Backend.NDARRAY])
def test_linear_sums(n, backend):
    x = ti.tensor(ti.f32, shape=(n,), backend=backend, needs_grad=True)
    y = ti.tensor(ti.f32, shape=(1,), backend=backend, needs_grad=True)

    @ti.kernel
    def k(x: ti.Tensor, y: ti.Tensor):
        for _ in range(1):
            s = 0.0
            for j in range(x.shape[0]):
                s += x[j] * 3
            y[0] = s

    x.fill(1)
    k(x, y)
    y.grad.fill(1)
    k.grad(x, y)
    assert y[0] == 3 * n and (x.grad.to_numpy() == 3).all()


BOUNDS = {
    "n[i]": lambda n, i, s: n[i], "n[i] + 1": lambda n, i, s: n[i] + 1, "n[i] * 2 - 1": lambda n, i, s: n[i] * 2 - 1,
    "n[i] // 2": lambda n, i, s: n[i] // 2, "n[i] % 3": lambda n, i, s: n[i] % 3,
    "ti.max(n[i], 2)": lambda n, i, s: max(n[i], 2), "ti.min(n[i], 2)": lambda n, i, s: min(n[i], 2),
    "n[n[i]]": lambda n, i, s: n[n[i]], "i * i": lambda n, i, s: i * i, "n[i] << 1": lambda n, i, s: n[i] << 1,
    "s": lambda n, i, s: s, "n.shape[0] - i": lambda n, i, s: len(n) - i,
    "ti.cast(ti.sqrt(n[i] * 4.0), ti.i32)": lambda n, i, s: int(math.sqrt(n[i] * 4.0)),
    "ti.select(i > 2, n[i], 1)": lambda n, i, s: n[i] if i > 2 else 1, "n[i] - n[0]": lambda n, i, s: n[i] - n[0],
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_of_every_shape(bound, double):
    import linecache
    text = ("@ti.kernel\ndef k(s: ti.i32):\n    for i in x:\n        v = x[i]\n"
            f"        for j in range({bound}):\n            v = v * v * 0.3 + 0.5 / (1 + j)\n        y[i] = v\n")
    name = f"<bounds {bound}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    x = ti.field(ti.f64, shape=5, needs_grad=True)
    y = ti.field(ti.f64, shape=5, needs_grad=True)
    n = ti.field(ti.i32, shape=5)
    space = {"ti": ti, "x": x, "y": y, "n": n}
    exec(compile(text, name, "exec"), space)
    trips = [1, 2, 0, 3, 4]
    n.from_numpy(np.array(trips, np.int32))
    at = np.linspace(0.1, 0.5, 5)
    x.from_numpy(at)
    space["k"](3)
    y.grad.fill(1)
    space["k"].grad(3)
    for i in range(5):
        v, d = at[i], 1.0
        for j in range(BOUNDS[bound](trips, i, 3)):
            v, d = v * v * 0.3 + 0.5 / (1 + j), 0.6 * v * d
        assert y[i] == pytest.approx(v)
        assert x.grad[i] == pytest.approx(d)


@pytest.mark.parametrize("compare, sign", [(">", 1), (">=", 1), ("<", -1), ("<=", -1), ("!=", 0), ("==", 2)])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64, ti.i32], ids=str)
@pytest.mark.parametrize("fraction", [0.0, 0.1, 1.0])
def test_gates(compare, sign, dtype, fraction):
    import linecache
    text = ("@ti.kernel\ndef k():\n    for i in x:\n"
            f"        if gate[i] {compare} 0:\n            v = x[i]\n            for _ in range(n):\n"
            "                v = ti.sin(v) + 0.5 * v\n            y[i] = v\n")
    name = f"<gates {compare}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    y = ti.field(ti.f32, shape=64, needs_grad=True)
    gate = ti.field(dtype, shape=64)
    space = {"ti": ti, "x": x, "y": y, "gate": gate, "n": 5}
    exec(compile(text, name, "exec"), space)
    on = np.arange(64) < 64 * fraction
    values = {1: on * 1, -1: on * -1, 0: on * 1, 2: 1 - on}[sign] if compare in (">", "<", "!=", "==") else \
        {1: on * 2 - 1, -1: 1 - on * 2}[sign]
    gate.from_numpy(values)
    x.fill(0.3)
    space["k"]()
    y.grad.fill(1)
    space["k"].grad()
    v, d = 0.3, 1.0
    for _ in range(5):
        v, d = math.sin(v) + 0.5 * v, (math.cos(v) + 0.5) * d
    assert x.grad.to_numpy() == pytest.approx(np.where(on, d, 0), rel=1e-4)


def test_bounds_that_change_after_the_launch_of_a_recording(double):
    """Silently wrong in Quadrants (an xfail of its tests)."""
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    n = ti.field(ti.i32, shape=())

    @ti.kernel
    def k():
        for _ in range(1):
            v = x[None]
            for _ in range(n[None]):
                v *= 2.0
            loss[None] += v

    @ti.kernel
    def more():
        n[None] += 2

    x[None], n[None] = 1, 3
    with ti.ad.Tape(loss):
        k()
        more()
        k()
        n[None] = 0
    assert loss[None] == 8 + 32 and x.grad[None] == 40


def test_many_work_items_and_block_sizes():
    x = ti.field(ti.f32, shape=65700, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        ti.loop_config(block_dim=192)
        for i in x:
            v = x[i]
            for _ in range(3):
                v = v * v
            loss[None] += v

    x.fill(1)
    k()
    loss.grad[None] = 1
    k.grad()
    assert loss[None] == 65700 and (x.grad.to_numpy() == 8).all()


def test_conditions_that_the_branch_changes(double):
    """The condition is what it was before the branch ran."""
    x = ti.field(ti.f64, shape=4, needs_grad=True)
    y = ti.field(ti.f64, shape=4, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            v = x[i]
            for _ in range(6):
                if v > 1.0:
                    v = v * 0.5 - 0.1
                else:
                    v = v * v + 0.9
            y[i] = v

    at = np.array([0.3, 0.8, 1.4, 3.0])
    x.from_numpy(at)
    k()
    y.grad.fill(1)
    k.grad()
    for i in range(4):
        v, d = at[i], 1.0
        for _ in range(6):
            v, d = (v * 0.5 - 0.1, 0.5 * d) if v > 1 else (v * v + 0.9, 2 * v * d)
        assert x.grad[i] == pytest.approx(d)


@pytest.mark.parametrize("dtype", [ti.i8, ti.i16, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.f16], ids=str)
def test_carried_values_of_other_types(dtype):
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    y = ti.field(ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            c = ti.cast(1, dtype)
            v = x[i]
            for j in range(4):
                v = v * ti.cast(c, ti.f32)
                c = ti.cast(c + 1, dtype)
            y[i] = v

    x.fill(1)
    k()
    y.grad.fill(1)
    k.grad()
    assert (y.to_numpy() == 24).all() and (x.grad.to_numpy() == 24).all()


def test_cholesky_and_solve(double):
    """Triangular loops with a size of run time, in place in a work array, under a `Tape`."""
    n = 5
    a = ti.field(ti.f64, shape=(n, n), needs_grad=True)
    work = ti.field(ti.f64, shape=(n, n), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def factor(m: ti.i32):
        for _ in range(1):
            for i in range(m):
                for j in range(i + 1):
                    s = a[i, j]
                    for k in range(j):
                        s -= work[i, k] * work[j, k]
                    if i == j:
                        work[i, j] = ti.sqrt(s)
                    else:
                        work[i, j] = s / work[j, j]

    @ti.kernel
    def logdet(m: ti.i32):
        for i in range(m):
            loss[None] += 2 * ti.log(work[i, i])

    random = np.random.default_rng(0).normal(size=(n, n))
    matrix = random @ random.T + n * np.eye(n)
    a.from_numpy(matrix)
    with ti.ad.Tape(loss):
        factor(n)
        logdet(n)
    assert loss[None] == pytest.approx(np.linalg.slogdet(matrix)[1])
    inverse = np.linalg.inv(matrix)
    expected = np.tril(2 * inverse) - np.diag(np.diag(inverse))
    assert a.grad.to_numpy() == pytest.approx(expected)
