"""The derivative of every operation, reverse and forward, against differences."""

import math

import numpy as np
import pytest

import costate as ti
from derivatives import in_both_modes

UNARY = {
    "sin": (math.sin, math.cos), "cos": (math.cos, lambda v: -math.sin(v)),
    "tan": (math.tan, lambda v: 1 / math.cos(v) ** 2),
    "tanh": (math.tanh, lambda v: 1 - math.tanh(v) ** 2),
    "sinh": (math.sinh, math.cosh), "cosh": (math.cosh, math.sinh),
    "asin": (math.asin, lambda v: 1 / math.sqrt(1 - v * v)),
    "acos": (math.acos, lambda v: -1 / math.sqrt(1 - v * v)),
    "atan": (math.atan, lambda v: 1 / (1 + v * v)),
    "exp": (math.exp, math.exp), "log": (math.log, lambda v: 1 / v),
    "sqrt": (math.sqrt, lambda v: 0.5 / math.sqrt(v)),
    "rsqrt": (lambda v: v ** -0.5, lambda v: -0.5 * v ** -1.5),
    "exp2": (lambda v: 2 ** v, lambda v: 2 ** v * math.log(2)),
    "log2": (math.log2, lambda v: 1 / (v * math.log(2))),
    "abs": (abs, lambda v: math.copysign(1, v)),
    "floor": (math.floor, lambda v: 0), "ceil": (math.ceil, lambda v: 0),
    "round": (round, lambda v: 0), "sgn": (lambda v: math.copysign(1, v), lambda v: 0),
    "inv": (lambda v: 1 / v, lambda v: -1 / v ** 2),
    "erf": (math.erf, lambda v: 2 / math.sqrt(math.pi) * math.exp(-v * v)),
}
POINTS = np.array([0.13, 0.37, 0.71, 0.93])


def both_modes(function, points, dtype=ti.f64):
    """(values, reverse, forward) of a `ti.func` at points."""
    n = len(points)
    x = ti.field(dtype, shape=n, needs_grad=True, needs_dual=True)
    y = ti.field(dtype, shape=n, needs_grad=True, needs_dual=True)

    @ti.kernel
    def k():
        for i in x:
            y[i] = function(x[i])

    x.from_numpy(np.asarray(points))
    return in_both_modes(k, x, y)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name, double):
    own = getattr(ti, name)

    @ti.func
    def f(v):
        return own(v)

    value, reverse, forward = both_modes(f, POINTS)
    expected, slope = UNARY[name]
    assert value == pytest.approx([expected(v) for v in POINTS], rel=1e-12, abs=1e-12)
    assert reverse == pytest.approx([slope(v) for v in POINTS], rel=1e-11, abs=1e-11)
    assert forward == pytest.approx(reverse, rel=1e-12)


BINARY = {
    "v * v + 2 * v": lambda v: 2 * v + 2, "v / (v + 1)": lambda v: 1 / (v + 1) ** 2,
    "2 / v": lambda v: -2 / v ** 2, "v ** 3": lambda v: 3 * v * v, "v ** -2": lambda v: -2 * v ** -3,
    "v ** 0.5": lambda v: 0.5 * v ** -0.5, "2 ** v": lambda v: 2 ** v * math.log(2),
    "v ** v": lambda v: v ** v * (math.log(v) + 1), "ti.atan2(v, 2.0)": lambda v: 2 / (4 + v * v),
    "ti.atan2(2.0, v)": lambda v: -2 / (4 + v * v), "ti.min(v, 0.5)": lambda v: float(v < 0.5),
    "ti.max(v, 0.5)": lambda v: float(v > 0.5), "max(v, 0.5, 0.2)": lambda v: float(v > 0.5),
    "v % 0.3": lambda v: 1.0, "v // 0.3": lambda v: 0.0, "-v": lambda v: -1.0, "v - 3 * v": lambda v: -2.0,
    "ti.select(v > 0.5, v * v, v)": lambda v: 2 * v if v > 0.5 else 1,
    "v * v if v > 0.5 else v": lambda v: 2 * v if v > 0.5 else 1,
    "ti.cast(ti.cast(v, ti.f32), ti.f64) * 2": lambda v: 2.0, "ti.cast(v * 10, ti.i32) * v": lambda v: int(v * 10),
    "ti.hypot(v, 2.0)": lambda v: v / math.hypot(v, 2), "ti.math.mix(v, 3.0, v)": lambda v: 1 - 2 * v + 3,
    "ti.math.clamp(v, 0.3, 0.8)": lambda v: float(0.3 < v < 0.8),
    "ti.math.smoothstep(0.0, 1.0, v)": lambda v: 6 * v - 6 * v * v,
    "ti.pow(v, 2.5)": lambda v: 2.5 * v ** 1.5, "ti.fma(v, v, v)": lambda v: 2 * v + 1,
    "ti.stop_gradient(v) * v": lambda v: v, "abs(v - 0.5)": lambda v: math.copysign(1, v - 0.5),
    "ti.sin(ti.cos(v) * ti.exp(v))": lambda v: math.cos(math.cos(v) * math.exp(v)) * math.exp(v) * (math.cos(v) - math.sin(v)),
}


@pytest.mark.parametrize("expression", BINARY)
def test_expressions(expression, double):
    import linecache
    text = f"@ti.func\ndef f(v):\n    return {expression}\n"
    name = f"<ad {expression}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"ti": ti}
    exec(compile(text, name, "exec"), space)
    _, reverse, forward = both_modes(space["f"], POINTS)
    assert reverse == pytest.approx([BINARY[expression](v) for v in POINTS], rel=1e-7, abs=1e-12)
    assert forward == pytest.approx(reverse, rel=1e-10, abs=1e-14)


VECTORS = {
    "v.norm()": 2, "v.norm_sqr()": 2, "v.normalized().x": 3, "v.dot(w)": 3, "v.cross(w).z": 3,
    "v.outer_product(w)[1, 2]": 3, "(m @ v).sum()": 3, "m.determinant()": 1, "m.inverse()[0, 2]": 1,
    "m.trace()": 1, "(m @ m.transpose())[1, 0]": 1, "v.max() * v.min()": 1, "v.sum()": 1,
    "ti.math.length(v - w)": 2, "ti.math.reflect(v, w.normalized()).y": 2, "v.xy.norm()": 1,
    "ti.Vector([v.x, v.y * v.z]).norm_sqr()": 2, "v.norm_inv()": 1, "(v * w + 2.0).y": 1,
    "ti.Matrix.diag(3, v.x).determinant()": 1, "ti.math.dot(v, m[1, :])": 1, "v[ti.cast(v.x, ti.i32)]": 1,
    "ti.Matrix.cols([v, w, v * w]).determinant()": 1, "ti.math.cross(v, w).norm()": 1,
}


@pytest.mark.parametrize("expression", VECTORS)
def test_vectors_and_matrices(expression, double):
    """Against central differences."""
    import linecache
    text = ("@ti.func\ndef f(v, m):\n    w = ti.Vector([0.3, -0.7, 1.1])\n"
            f"    return {expression}\n")
    name = f"<ad {expression}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"ti": ti}
    exec(compile(text, name, "exec"), space)
    f = space["f"]
    v = ti.Vector.field(3, ti.f64, shape=(), needs_grad=True)
    m = ti.Matrix.field(3, 3, ti.f64, shape=(), needs_grad=True)
    y = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        y[None] = f(v[None], m[None])

    random = np.random.default_rng(1)
    at_v, at_m = random.uniform(0.2, 1.6, 3), random.uniform(-1, 1, (3, 3)) + 2 * np.eye(3)

    def value():
        k()
        return y[None]

    v.from_numpy(at_v)
    m.from_numpy(at_m)
    k()
    y.grad[None] = 1
    k.grad()
    for field, at, found in ((v, at_v, v.grad.to_numpy()), (m, at_m, m.grad.to_numpy())):
        for index in np.ndindex(at.shape):
            sides = []
            for sign in (1, -1):
                moved = at.copy()
                moved[index] += sign * 1e-6
                field.from_numpy(moved)
                sides.append(value())
            field.from_numpy(at)
            assert found[index] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_f16_has_gradients():
    x = ti.field(ti.f16, shape=3, needs_grad=True)
    y = ti.field(ti.f16, shape=3, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            y[i] = x[i] * x[i]

    x.from_numpy(np.array([1, 2, 3], np.float16))
    k()
    y.grad.fill(1)
    k.grad()
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_random_numbers_are_constants_of_the_gradient():
    x = ti.field(ti.f32, shape=100, needs_grad=True)
    y = ti.field(ti.f32, shape=100, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            y[i] = x[i] * ti.random()

    x.fill(1)
    k()
    y.grad.fill(1)
    k.grad()
    assert (x.grad.to_numpy() == y.to_numpy()).all()
    assert len(set(y.to_numpy().tolist())) > 95


@pytest.mark.parametrize("op, ends, slope", [
    ("atomic_add", 6.0, [1, 1, 1]), ("atomic_sub", -6.0, [-1, -1, -1]),
    ("atomic_max", 3.0, [0, 0, 1]), ("atomic_min", 0.0, [0, 0, 0]),
])
def test_atomics(op, ends, slope):
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    y = ti.field(ti.f32, shape=(), needs_grad=True)
    update = getattr(ti, op)

    @ti.kernel
    def k():
        for i in x:
            update(y[None], x[i])

    x.from_numpy(np.array([1, 2, 3], np.float32))
    k()
    assert y[None] == ends
    y.grad[None] = 1
    k.grad()
    assert x.grad.to_numpy().tolist() == slope
