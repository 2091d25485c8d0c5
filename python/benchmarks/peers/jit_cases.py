"""The programs of cases.py for drjit.

Not called `drjit_cases`, since `dr.syntax` refuses modules whose name begins with `drjit`. Work items are the elements of an
array. `max_iterations` is what the guide asks for in reverse mode: -1 for loops that only add up, a bound for others. `exclude`
keeps arrays that are gathered from out of the state of a loop, since reverse mode fails for those in it.
"""

import drjit as dr
import numpy as np
from drjit.llvm.ad import Array2f64, Array3f, Bool, Float, Float64, Int, Quaternion4f64

import cases

TABLE, REWRITTEN = {}, {}
LACKS = {name: f"loops have no `{word}`" for name, word in
         (("argmax", "continue"), ("return", "return"), ("do", "break"), ("break", "break"), ("continue", "continue"),
          ("renderer", "break"))}


def case(function):
    TABLE[function.__name__.rstrip("_")] = function
    return function


def rewritten(function):
    """A case whose program is rearranged to avoid what the system lacks."""
    REWRITTEN[function.__name__.rstrip("_").removesuffix("_rewritten")] = function
    return function


def floats(values, kind=Float64):
    made = kind(np.asarray(values, dtype=float).ravel())
    dr.enable_grad(made)
    return made


def counts(values):
    return Int(np.asarray(values, dtype=np.int32))


def slopes(x, loss):
    dr.backward(dr.sum(loss))
    return dr.grad(x).numpy()


def simple(name, iterations, table=TABLE):
    """A case whose program takes x and the trip counts; an item per number."""
    def register(program):
        def run(given):
            x, n = floats(given), counts(iterations(given) if callable(iterations) else iterations)
            return slopes(x, program(x, n))
        table[name] = run
        return program
    return register


@simple("product", [3])
@dr.syntax
def product(x, n):
    p, k = Float64(1), Int(0)
    while dr.hint(k < n, max_iterations=3, exclude=[x]):
        p *= dr.gather(Float64, x, k)
        k += 1
    return p


@simple("initialiser", [3])
@dr.syntax
def initialiser(x, n):
    a, k = Float64(5), Int(0)
    while dr.hint(k < n, max_iterations=-1, exclude=[x]):
        a += dr.gather(Float64, x, k)
        k += 1
    return a * a


@simple("argmax", [5], REWRITTEN)
@dr.syntax
def argmax(x, n):
    best, k = Float64(-1), Int(0)
    while dr.hint(k < n, max_iterations=5, exclude=[x]):
        v = dr.gather(Float64, x, k)
        if v > best:
            best = Float64(v)
        k += 1
    return best * best


@dr.syntax
def chain(x, n, m):
    q, link = Quaternion4f64(0, 0, 0, 1), Int(0)
    while dr.hint(link < m, max_iterations=3, exclude=[x, n]):
        angle, count, j = dr.gather(Float64, x, link), dr.gather(Int, n, link), Int(0)
        while dr.hint(j < count, max_iterations=3, exclude=[x, n]):
            s = dr.sin(angle)
            q = q * Quaternion4f64(s * 0.6, s * 0.8, 0, dr.cos(angle))
            j += 1
        link += 1
    return q.w + 2 * q.x + 3 * q.y + 4 * q.z


@case
def quaternions(given):
    x = floats(given)
    return slopes(x, chain(x, counts(cases.NESTED["iterations"]), counts([3])))


@simple("norm", [3])
@dr.syntax
def norm(x, n):
    s, k = Float64(0), Int(0)
    while dr.hint(k < n, max_iterations=-1, exclude=[x]):
        s += dr.square(dr.gather(Float64, x, k))
        k += 1
    return dr.gather(Float64, x, 0) / dr.sqrt(s)


@case
def component(given):
    x, y = floats(given), dr.zeros(Array2f64, len(given))
    y.x = x * x
    y.y = 3 * x
    return slopes(x, y.x * y.y)


@dr.syntax
def plasticity(x, strain, steps):
    i, loss = Int(0), Float64(0)
    while dr.hint(i < steps, max_iterations=60, exclude=[strain]):
        before = dr.gather(Float64, strain, i)
        trial = 1000 * (x * dr.sin(2 * dr.pi * Float64(i) / 60) - before)
        step = Float64(0)
        if dr.abs(trial) > 2:
            step = (dr.abs(trial) - 2) / 1000
        loss += step
        dr.scatter(strain, before + dr.select(trial > 0, step, -step), i + 1)
        i += 1
    return loss


@case
def carried(given):
    steps = cases.PLASTICITY[2]
    x = floats(given)
    return slopes(x, plasticity(x, floats(np.zeros(steps + 1)), counts([steps])))


@dr.syntax
def add_all(x, y, n):
    j = Int(0)
    while dr.hint(j < n, max_iterations=3, exclude=[y]):
        x += dr.gather(Float64, y, j)
        j += 1
    return x


@case
def update(given):
    y, x = floats(given), floats(np.zeros(5))
    return slopes(y, add_all(x, y, counts([len(given)])))


@dr.syntax
def iterations(x, n, pace, most):
    v, k = Float64(x), Int(0)
    while dr.hint(k < n, max_iterations=most):
        v = v + pace * dr.sin(v)
        k += 1
    return v


def iterations_of(length):
    def run(given):
        x = floats(given)
        return slopes(x, iterations(x, counts([length]), cases.PACE[length], length))

    TABLE[f"iterations{length}"] = run


for length in cases.PACE:
    iterations_of(length)


@dr.syntax
def layer(n, m, w, a, b):
    o = Int(0)
    while dr.hint(o < n, max_iterations=32, exclude=[w, a, b]):
        total, i = Float64(0), Int(0)
        while dr.hint(i < m, max_iterations=-1, exclude=[w, a, b]):
            total += dr.gather(Float64, w, o * m + i) * dr.gather(Float64, a, i)
            i += 1
        dr.scatter(b, dr.tanh(total), o)
        o += 1
    return b


@case
def perceptron(given):
    x = h = floats(given)
    for w in cases.LAYERS:
        h = layer(counts([w.shape[0]]), counts([w.shape[1]]), floats(w), h, floats(np.zeros(len(w))))
    return slopes(x, h * h)


@dr.syntax
def spin(a, n):
    p, k = Array2f64(a, 1), Int(0)
    while dr.hint(k < n, max_iterations=4):
        p = Array2f64(p.x * p.y, p.y + 0.1 * p.x)
        k += 1
    return p


@simple("vector", [4])
def vector(x, n):
    p = spin(x, n)
    return p.x * p.y


@simple("negative", [4])
@dr.syntax
def negative(x, n):
    v, k = Float64(x), Int(-3)
    while dr.hint(k < n, max_iterations=7):
        v = v + 0.1 * Float64(k) * dr.sin(v)
        k += 1
    return x + v * v


@simple("return", [3, 3, 2], REWRITTEN)
@dr.syntax
def return_(x, n):
    v, k = Float64(x), Int(0)
    while dr.hint((k < n) & (v <= 10), max_iterations=3):
        v = v * v
        k += 1
    return dr.select(v > 10, 0, dr.sin(v))


@simple("do", [3], REWRITTEN)
@dr.syntax
def do(x, n):
    v, k, active = x + 1, Int(0), Bool(True)
    while dr.hint(active, max_iterations=3):
        v = v * dr.sin(v)
        k += 1
        active = k < n
    return v


@simple("break", [5], REWRITTEN)
@dr.syntax
def break_(x, n):
    u, k = Float64(0), Int(0)
    while dr.hint((k < n) & (k != 3), max_iterations=-1):
        u += x
        k += 1
    return u


@simple("continue", [5], REWRITTEN)
@dr.syntax
def continue_(x, n):
    u, k = Float64(1), Int(0)
    while dr.hint(k < n, max_iterations=5):
        if k != 1:
            u *= x
        k += 1
    return u


@simple("counter", [5])
@dr.syntax
def counter(x, n):
    u, k = Float64(1), Int(0)
    while dr.hint(k < n, max_iterations=5):
        u *= x
        k += 1
    return u


@simple("squares", [3])
@dr.syntax
def squares(x, n):
    v, k = Float64(x), Int(0)
    while dr.hint(k < n, max_iterations=3):
        v = v * v
        k += 1
    return v


@simple("fixed", [0])
@dr.syntax
def fixed(x, n):
    v, last = Float64(0.5), Float64(2)
    while dr.hint(dr.abs(v - last) > 1e-14, max_iterations=1000):
        last = Float64(v)
        v = dr.cos(x * v)
    return v


@dr.syntax
def ray(x, number):
    clear, light, s = Float64(1), Float64(0), Int(0)
    while dr.hint((s < 64) & (clear >= 0.05), max_iterations=64, exclude=[x]):
        part = 1 - dr.exp(-dr.gather(Float64, x, s // 4) * 0.1 * number)
        light += clear * part * (0.5 + 0.01 * Float64(s))
        clear *= 1 - part
        s += 1
    return light * light


@rewritten
def renderer_rewritten(given):
    x = floats(given)
    return slopes(x, ray(x, Float64(np.arange(1.0, cases.RAYS + 1))))


@simple("many", lambda given: [100] * len(given))
@dr.syntax
def many(x, n):
    v, k = Float64(x), Int(0)
    while dr.hint(k < n, max_iterations=100):
        v = 0.95 * v + 0.05 * dr.sin(v)
        k += 1
    return v


@simple("guard", [0])
def guard(x, n):
    return dr.select(x > 0, dr.log(x), 0)


@simple("zero", [0, 3, 0, 5])
@dr.syntax
def zero(x, n):
    v, k = Float64(x), Int(0)
    while dr.hint(k < n, max_iterations=5):
        v = v * dr.sin(v)
        k += 1
    return v


@case
def bound(given):
    x, n = floats(given), counts([5])
    loss = zero(x, n)
    dr.eval(loss)
    dr.scatter(n, Int(2), Int(0))
    return slopes(x, loss)


@simple("minimum", [3])
@dr.syntax
def minimum(x, n):
    least, k = Float64(100), Int(0)
    while dr.hint(k < n, max_iterations=3, exclude=[x]):
        v = dr.gather(Float64, x, k)
        if v < least:
            least = Float64(v)
        k += 1
    return least * least


@simple("carry", [1000])
@dr.syntax
def carry(x, n):
    c, k = Float64(0), Int(0)
    while dr.hint(k < n, max_iterations=-1, exclude=[x]):
        c += dr.gather(Float64, x, 0) * (dr.gather(Float64, x, 1) + dr.gather(Float64, x, 2))
        k += 1
    return c


@dr.syntax
def weighted(x, y, n):
    a = dr.gather(Float64, x, 0) + dr.gather(Float64, x, 1)
    state, total, k = Float64(a), Float64(0), Int(0)
    while dr.hint(k < n, max_iterations=20, exclude=[x, y]):
        state = a * state + 0.1
        total += dr.gather(Float64, y, k) * state
        k += 1
    return total


@case
def indexed(given):
    x = floats(given)
    return slopes(x, weighted(x, floats(cases.INDEXED), counts([len(cases.INDEXED)])))


@dr.syntax
def windows(x, p, last, radius):
    total, i = Float64(0), Int(0)
    while dr.hint(i < 2 * radius + 1, max_iterations=-1, exclude=[x]):
        total += dr.gather(Float64, x, dr.clip(p + i - radius, 0, last))
        i += 1
    return total * total


@case
def window(given):
    x = floats(given)
    return slopes(x, windows(x, dr.arange(Int, len(given)), len(given) - 1, counts([cases.RADIUS])))


def pushed(v, centre):
    d = v - centre
    r = dr.sqrt(dr.dot(d, d) + 1e-6)
    return v + 0.1 * d / (1 + r * r) - 0.01 * v * r


@dr.syntax
def collide(mass, before, centres, n):
    after = dr.zeros(Array3f, dr.width(mass))
    if dr.hint(mass > 0, exclude=[centres]):
        v, j = before / mass, Int(0)
        while dr.hint(j < n, max_iterations=4, exclude=[centres]):
            v = pushed(v, dr.gather(Array3f, centres, j))
            j += 1
        after = v
    return after


@dr.syntax
def collide_unrolled(mass, before, centres, n):
    after = dr.zeros(Array3f, dr.width(mass))
    if dr.hint(mass > 0, exclude=[centres]):
        v = before / mass
        for j in range(n):
            v = pushed(v, dr.gather(Array3f, centres, j))
        after = v
    return after


def grid_of(given, program, n):
    centres = floats(given, Float)
    after = program(Float(cases.MASS), Array3f(cases.MOMENTA.T), centres, n)
    return slopes(centres, after.x + after.y + after.z)


@case
def grid(given):
    return grid_of(given, collide, counts([len(given)]))


@case
def grid_constant(given):
    return grid_of(given, collide, 4)


@case
def grid_unrolled(given):
    return grid_of(given, collide_unrolled, 4)
