"""Small programs on which gradients of kernels are known to go wrong.

Each has inputs `x` and the right gradient by them, which comes from a program in
plain Python and differences, or from a formula. Where each comes from: `source`.
"""

import math
from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np


@dataclass
class Case:
    name: str
    title: str
    source: str
    x: object
    value: Optional[Callable] = None  # the loss, of a list of numbers
    gradient: Optional[Callable] = None
    tolerance: float = 1e-6  # of the largest component
    is_counted: bool = True  # among programs on which some system is known to go wrong

    def right(self):
        x = np.asarray(self.x, dtype=float)
        if self.gradient is not None:
            return np.asarray(self.gradient(x), dtype=float)
        return differences(self.value, x)


def differences(value, x):
    """Central differences of order 4."""
    slope = np.zeros(x.size)
    for i in range(x.size):
        h = 1e-5 * (abs(x.flat[i]) or 1.0)

        def at(shift):
            moved = x.copy()
            moved.flat[i] += shift
            return value(moved)

        slope[i] = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    return slope.reshape(x.shape)


def iterations(x, n, body):
    for k in range(n):
        x = body(x, k)
    return x


PACE = {31: 0.01, 147: 0.01, 10000: 3e-4}  # of loops that many iterations long
NESTED = {"angles": [0.3, 0.5, -0.4], "iterations": [2, 0, 3]}
PLASTICITY = (1000.0, 2.0, 60)
RAYS, CELLS = 3, 16
rng = np.random.default_rng(7)
LAYERS = [rng.normal(size=shape) / math.sqrt(shape[1]) for shape in ((32, 2), (32, 32), (3, 32))]
INITIAL = rng.uniform(0.1, 1.0, 100000)
INDEXED = np.arange(1.0, 21.0)
RADIUS = 2


def make_grid(shape, active, colliders):
    """Masses and momenta of cells, few of which hold matter, and centres of colliders."""
    cells = math.prod(shape)
    mass = np.where(rng.random(cells) < active, rng.uniform(0.5, 1.5, cells), 0.0)
    return mass, rng.normal(size=(cells, 3)) * mass[:, None], rng.uniform(-1.0, 1.0, (colliders, 3))


GRIDS = {"grid": "in `range(n[0])`", "grid_constant": "in `range(4)`", "grid_unrolled": "in `static(range(4))`"}
MASS, MOMENTA, CENTRES = (a.astype(np.float32) for a in make_grid((86, 90, 78), 0.008, 4))


def quaternions(x):
    q = (1.0, 0.0, 0.0, 0.0)
    for angle, n in zip(x, NESTED["iterations"]):
        for j in range(n):
            c, s = math.cos(angle), math.sin(angle) * 0.6
            r = math.sin(angle) * 0.8
            a, b, e, f = q  # times (c, s, r, 0)
            q = (a * c - b * s - e * r, a * s + b * c - f * r, a * r + e * c + f * s, b * r - e * s + f * c)
    return q[0] + 2 * q[1] + 3 * q[2] + 4 * q[3]


def plasticity(x):
    stiffness, limit, steps = PLASTICITY
    strain = total = 0.0
    for i in range(steps):
        trial = stiffness * (x[0] * math.sin(2.0 * math.pi * i / steps) - strain)
        step = 0.0
        if abs(trial) > limit:
            step = (abs(trial) - limit) / stiffness
            total += step
        strain += step if trial > 0 else -step
    return total


def perceptron(x):
    h = np.asarray(x, dtype=float)
    for w in LAYERS:
        h = np.tanh(w @ h)
    return float(h @ h)


def vector_of_loop(x):
    a, b = x[0], 1.0
    for k in range(4):
        a, b = a * b, b + 0.1 * a
    return a * b


def early_return(x):
    total = 0.0
    for v, n in zip(x, (3, 3, 2)):
        for k in range(n):
            v = v * v
            if v > 10.0:
                break
        else:
            total += math.sin(v)
    return total


def fixed_point(x):
    v, last = 0.5, 2.0
    while abs(v - last) > 1e-14:
        last, v = v, math.cos(x[0] * v)
    return v


def renderer(x):
    total = 0.0
    for ray in range(RAYS):
        clear, light = 1.0, 0.0
        for s in range(4 * CELLS):
            part = 1.0 - math.exp(-x[s // 4] * 0.1 * (ray + 1))
            light += clear * part * (0.5 + 0.01 * s)
            clear *= 1.0 - part
            if clear < 0.05:
                break
        total += light * light
    return total


def many(x):
    v, slope = x.copy(), np.ones_like(x)
    for k in range(100):
        slope *= 0.95 + 0.05 * np.cos(v)
        v = 0.95 * v + 0.05 * np.sin(v)
    return slope


def running_minimum(x):
    least = 100.0
    for v in x:
        if v < least:
            least = v
    return least * least


def indexed(x):
    a = state = float(x[0] + x[1])
    total = 0.0
    for y in INDEXED:
        state = a * state + 0.1
        total += y * state
    return total


def window(x):
    widths = range(-RADIUS, RADIUS + 1)
    return sum(sum(x[min(max(p + i, 0), len(x) - 1)] for i in widths) ** 2 for p in range(len(x)))


def grid(x):
    on = MASS > 0
    v = MOMENTA[on].astype(float) / MASS[on, None]
    for centre in x.reshape(-1, 3):
        d = v - centre
        r = np.sqrt((d * d).sum(axis=1, keepdims=True) + 1e-6)
        v = v + 0.1 * d / (1 + r * r) - 0.01 * v * r
    return float(v.sum())


def swing(v, n):
    return iterations(v, n, lambda v, k: v * math.sin(v))


CASES = [
    Case("product", "product of array elements in a loop", "Warp's guide, dynamic loops",
         [2, 2, 2], lambda x: x[0] * x[1] * x[2]),
    Case("initialiser", "a sum that starts at 5, squared after the loop", "warp#1694, #1740",
         [1, 2, 3], lambda x: (5 + sum(x)) ** 2),
    Case("argmax", "largest element, `continue` for the others", "warp#1552",
         [1, 3, 2, 5, 4], lambda x: max(x) ** 2),
    Case("quaternions", "chain of quaternions, two nested loops", "warp#1293",
         NESTED["angles"], quaternions),
    Case("norm", "length by a loop, then a division by it", "Warp's guide, dynamic loops",
         [3, 4, 12], lambda x: x[0] / math.sqrt(sum(v * v for v in x))),
    Case("component", "components of array elements, assigned one by one", "warp#248",
         [1.5, 2], lambda x: sum(v * v * 3 * v for v in x)),
    Case("carried", "array element read and written from one iteration to the next", "taichi#8802",
         [0.0045], plasticity),
    Case("update", "`x[i] += y[j]` in a loop over `y`", "taichi#8356",
         [1, 2, 3], gradient=lambda x: [5, 5, 5]),
    *[Case(f"iterations{n}", f"a loop of {n:,} iterations", "taichi#8027",
           [0.7], lambda x, n=n: iterations(x[0], n, lambda v, k: v + PACE[n] * math.sin(v)))
      for n in PACE],
    Case("perceptron", "layers 2-32-32-3 as nested loops", "slang#13000", [0.3, -0.7], perceptron),
    Case("vector", "a function that returns a vector after a loop", "slangpy#1055",
         [0.7], vector_of_loop),
    Case("negative", "a loop that starts below 0", "slangpy#1051",
         [0.7], lambda x: x[0] + iterations(x[0], 7, lambda v, k: v + 0.1 * (k - 3) * math.sin(v)) ** 2),
    Case("return", "`return` inside the loop, statements after it", "slang#6394",
         [1.1, 3, 1.2], early_return),
    Case("do", "`while True` with a `break` at the end", "slang#2914",
         [0.7], lambda x: swing(x[0] + 1, 3)),
    Case("break", "`break`", "clad#851", [2], lambda x: 3 * x[0]),
    Case("continue", "`continue`", "clad#710", [2], lambda x: x[0] ** 4),
    Case("counter", "`while` with a counter of its own", "clad#1436", [2], lambda x: x[0] ** 5),
    Case("squares", "repeated squares, as often as the data says", "Dr.Jit's guide, loops",
         [1.1], lambda x: x[0] ** 8),
    Case("fixed", "a fixed point by `while`", "jax#2469", [0.9], fixed_point),
    Case("renderer", "volume renderer: `while` with `break`", "Enzyme, discussion 1083",
         [0.5 + 0.1 * i for i in range(CELLS)], renderer),
    Case("many", "100,000 work items of 100 iterations", "Enzyme#2871", INITIAL, gradient=many),
    Case("guard", "`select(x > 0, log(x), 0)` at 0", "jax#347", [0, 4], gradient=lambda x: [0, 0.25]),
    Case("bound", "bound array changed between launch and gradient", "Quadrants' guide, autodiff",
         [1.3], lambda x: swing(x[0], 5)),
    Case("zero", "no iterations for some work items", "-", [1.1, 1.3, 1.7, 2.0],
         lambda x: sum(swing(v, n) for v, n in zip(x, (0, 3, 0, 5)))),
    Case("minimum", "running minimum by `if`", "Enzyme#2002", [3, 1.5, 2], running_minimum),
    Case("carry", "`c + x * (y + z)`, 1,000 iterations", "jax#3186",
         [2, 3, 4], gradient=lambda x: [1000 * (x[1] + x[2]), 1000 * x[0], 1000 * x[0]]),
    Case("indexed", "a checkpointed loop that reads an array by its index", "Reactant#3119", [0.4, 0.5], indexed),
    Case("window", "a window as wide as an argument says", "slangpy#1167", [1, 3, 2, 5, 4, 6], window),
    *[Case(name, f"603,720 cells of a grid, 0.8 % active, 4 colliders {loop}, f32", "-", CENTRES, grid, tolerance=1e-4,
           is_counted=name != "grid_unrolled") for name, loop in GRIDS.items()],
]


def judge(case, found):
    """`right`, or `wrong` and what was found; and the largest difference."""
    right = case.right().ravel()
    found = np.asarray(found, dtype=float).ravel()
    scale = max(1e-300, float(np.abs(right).max()))
    error = float(np.abs(found - right).max()) if found.shape == right.shape else math.inf
    if error <= case.tolerance * scale:
        return "right", "", error
    head = lambda a: "[" + " ".join(f"{v:.6g}" for v in a[:4]) + (" ..." if a.size > 4 else "") + "]"
    return "wrong", f"{head(found)} instead of {head(right)}", error
