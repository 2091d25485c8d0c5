"""The programs of cases.py for warp-lang."""

import numpy as np
import warp as wp

import cases

alone = wp.kernel(module="unique")  # so that a kernel is compiled alone
f64, vec2 = wp.float64, wp.vec2d
Floats, Ints = wp.array(dtype=wp.float64), wp.array(dtype=wp.int32)

TABLE = {}


def case(function):
    TABLE[function.__name__.rstrip("_")] = function
    return function


def floats(values):
    return wp.array(np.asarray(values, dtype=float), dtype=f64, requires_grad=True)


def counts(values):
    return wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32)


def slopes(x, loss, *launches):
    tape = wp.Tape()
    with tape:
        for kernel, dim, inputs in launches:
            wp.launch(kernel, dim=dim, inputs=inputs)
    tape.backward(loss)
    return x.grad.numpy()


def simple(name, iterations):
    """A case whose kernel takes x, the trip counts, and the loss; an item per number."""
    def register(kernel):
        def run(given):
            x, n, loss = floats(given), counts(iterations(given) if callable(iterations) else iterations), floats([0])
            return slopes(x, loss, (kernel, n.shape[0], [x, n, loss]))
        TABLE[name] = run
        return kernel
    return register


@simple("product", [3])
@alone
def product(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    p = f64(1.0)
    for k in range(n[i]):
        p *= x[k]
    wp.atomic_add(loss, 0, p)


@simple("initialiser", [3])
@alone
def initialiser(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    a = f64(5.0)
    for k in range(n[i]):
        a += x[k]
    wp.atomic_add(loss, 0, a * a)


@simple("argmax", [5])
@alone
def argmax(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    best = f64(-1.0)
    for k in range(n[i]):
        if x[k] <= best:
            continue
        best = x[k]
    wp.atomic_add(loss, 0, best * best)


@alone
def quaternions_kernel(x: Floats, n: Ints, m: Ints, loss: Floats):
    i = wp.tid()
    q = wp.quatd(f64(0.0), f64(0.0), f64(0.0), f64(1.0))
    for link in range(m[i]):
        for j in range(n[link]):
            s = wp.sin(x[link])
            q = q * wp.quatd(s * f64(0.6), s * f64(0.8), f64(0.0), wp.cos(x[link]))
    wp.atomic_add(loss, 0, q[3] + f64(2.0) * q[0] + f64(3.0) * q[1] + f64(4.0) * q[2])


@case
def quaternions(given):
    x, n, m, loss = floats(given), counts(cases.NESTED["iterations"]), counts([3]), floats([0])
    return slopes(x, loss, (quaternions_kernel, 1, [x, n, m, loss]))


@simple("norm", [3])
@alone
def norm(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    s = f64(0.0)
    for k in range(n[i]):
        s += x[k] * x[k]
    wp.atomic_add(loss, 0, x[0] / wp.sqrt(s))


@alone
def component_kernel(x: Floats, y: wp.array(dtype=vec2)):
    i = wp.tid()
    y[i].x = x[i] * x[i]
    y[i].y = f64(3.0) * x[i]


@alone
def component_sum(y: wp.array(dtype=vec2), loss: Floats):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i].x * y[i].y)


@case
def component(given):
    x, loss, y = floats(given), floats([0]), wp.zeros(len(given), dtype=vec2, requires_grad=True)
    return slopes(x, loss, (component_kernel, len(given), [x, y]), (component_sum, len(given), [y, loss]))


@alone
def carried_kernel(x: Floats, strain: Floats, n: Ints, loss: Floats):
    for i in range(n[0]):
        trial = f64(1000.0) * (x[0] * wp.sin(f64(2.0) * f64(wp.pi) * f64(i) / f64(n[0])) - strain[i])
        step = f64(0.0)
        if wp.abs(trial) > f64(2.0):
            step = (wp.abs(trial) - f64(2.0)) / f64(1000.0)
            loss[0] += step
        if trial > f64(0.0):
            strain[i + 1] = strain[i] + step
        else:
            strain[i + 1] = strain[i] - step


@case
def carried(given):
    steps = cases.PLASTICITY[2]
    x, strain, n, loss = floats(given), floats(np.zeros(steps + 1)), counts([steps]), floats([0])
    return slopes(x, loss, (carried_kernel, 1, [x, strain, n, loss]))


@alone
def update_kernel(x: Floats, y: Floats):
    i = wp.tid()
    for j in range(y.shape[0]):
        x[i] += y[j]


@alone
def add(x: Floats, loss: Floats):
    wp.atomic_add(loss, 0, x[wp.tid()])


@case
def update(given):
    y, x, loss = floats(given), floats(np.zeros(5)), floats([0])
    return slopes(y, loss, (update_kernel, 5, [x, y]), (add, 5, [x, loss]))


@alone
def iterations(x: Floats, n: Ints, pace: wp.float64, loss: Floats):
    i = wp.tid()
    v = x[i]
    for k in range(n[i]):
        v = v + pace * wp.sin(v)
    wp.atomic_add(loss, 0, v)


def iterations_of(length):
    def run(given):
        x, n, loss = floats(given), counts([length]), floats([0])
        return slopes(x, loss, (iterations, 1, [x, n, cases.PACE[length], loss]))

    TABLE[f"iterations{length}"] = run


for length in cases.PACE:
    iterations_of(length)


@alone
def layer(n: Ints, w: wp.array2d(dtype=wp.float64), a: Floats, b: Floats):
    for o in range(n[0]):
        total = f64(0.0)
        for i in range(n[1]):
            total += w[o, i] * a[i]
        b[o] = wp.tanh(total)


@alone
def add_squares(h: Floats, loss: Floats):
    i = wp.tid()
    wp.atomic_add(loss, 0, h[i] * h[i])


@case
def perceptron(given):
    h = [floats(given)] + [floats(np.zeros(len(layer))) for layer in cases.LAYERS]
    loss = floats([0])
    launches = [(layer, 1, [counts(w.shape), floats(w), h[k], h[k + 1]]) for k, w in enumerate(cases.LAYERS)]
    return slopes(h[0], loss, *launches, (add_squares, 3, [h[3], loss]))


@wp.func
def spin(a: wp.float64, iterations: wp.int32):
    p = wp.vec2d(a, f64(1.0))
    for k in range(iterations):
        p = wp.vec2d(p[0] * p[1], p[1] + f64(0.1) * p[0])
    return p


@simple("vector", [4])
@alone
def vector(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    p = spin(x[i], n[i])
    wp.atomic_add(loss, 0, p[0] * p[1])


@simple("negative", [4])
@alone
def negative(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = x[i]
    for k in range(-3, n[i]):
        v = v + f64(0.1) * f64(k) * wp.sin(v)
    wp.atomic_add(loss, 0, x[i] + v * v)


@simple("return", [3, 3, 2])
@alone
def return_(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = x[i]
    for k in range(n[i]):
        v = v * v
        if v > f64(10.0):
            return
    wp.atomic_add(loss, 0, wp.sin(v))


@simple("do", [3])
@alone
def do(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = x[i] + f64(1.0)
    k = int(0)
    while True:
        v = v * wp.sin(v)
        k += 1
        if k >= n[i]:
            break
    wp.atomic_add(loss, 0, v)


@simple("break", [5])
@alone
def break_(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    u = f64(0.0)
    for k in range(n[i]):
        if k == 3:
            break
        u += x[i]
    wp.atomic_add(loss, 0, u)


@simple("continue", [5])
@alone
def continue_(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    u = f64(1.0)
    for k in range(n[i]):
        if k == 1:
            continue
        u *= x[i]
    wp.atomic_add(loss, 0, u)


@simple("counter", [5])
@alone
def counter(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    u = f64(1.0)
    k = int(0)
    while k < n[i]:
        u *= x[i]
        k += 1
    wp.atomic_add(loss, 0, u)


@simple("squares", [3])
@alone
def squares(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = x[i]
    for k in range(n[i]):
        v = v * v
    wp.atomic_add(loss, 0, v)


@simple("fixed", [0])
@alone
def fixed(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = f64(0.5)
    last = f64(2.0)
    while wp.abs(v - last) > f64(1e-14):
        last = v
        v = wp.cos(x[i] * v)
    wp.atomic_add(loss, 0, v)


@simple("renderer", [0] * cases.RAYS)
@alone
def renderer(x: Floats, n: Ints, loss: Floats):
    ray = wp.tid()
    clear = f64(1.0)
    light = f64(0.0)
    s = int(0)
    while s < 64:
        part = f64(1.0) - wp.exp(-x[s // 4] * f64(0.1) * f64(ray + 1))
        light += clear * part * (f64(0.5) + f64(0.01) * f64(s))
        clear *= f64(1.0) - part
        if clear < f64(0.05):
            break
        s += 1
    wp.atomic_add(loss, 0, light * light)


@simple("many", lambda given: [100] * len(given))
@alone
def many(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = x[i]
    for k in range(n[i]):
        v = f64(0.95) * v + f64(0.05) * wp.sin(v)
    wp.atomic_add(loss, 0, v)


@simple("guard", lambda given: [0] * len(given))
@alone
def guard(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.where(x[i] > f64(0.0), wp.log(x[i]), f64(0.0)))


@simple("zero", [0, 3, 0, 5])
@alone
def zero(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    v = x[i]
    for k in range(n[i]):
        v = v * wp.sin(v)
    wp.atomic_add(loss, 0, v)


@case
def bound(given):
    x, n, loss = floats(given), counts([5]), floats([0])
    tape = wp.Tape()
    with tape:
        wp.launch(zero, dim=1, inputs=[x, n, loss])
    n.fill_(2)
    tape.backward(loss)
    return x.grad.numpy()


@simple("minimum", [3])
@alone
def minimum(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    least = f64(100.0)
    for k in range(n[i]):
        if x[k] < least:
            least = x[k]
    wp.atomic_add(loss, 0, least * least)


@simple("carry", [1000])
@alone
def carry(x: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    c = f64(0.0)
    for k in range(n[i]):
        c = c + x[0] * (x[1] + x[2])
    wp.atomic_add(loss, 0, c)


@alone
def indexed_kernel(x: Floats, y: Floats, n: Ints, loss: Floats):
    i = wp.tid()
    a = x[0] + x[1]
    state = a
    total = f64(0.0)
    for k in range(n[i]):
        state = a * state + f64(0.1)
        total += y[k] * state
    wp.atomic_add(loss, 0, total)


@case
def indexed(given):
    x, y, n, loss = floats(given), floats(cases.INDEXED), counts([len(cases.INDEXED)]), floats([0])
    return slopes(x, loss, (indexed_kernel, 1, [x, y, n, loss]))


@alone
def window_kernel(x: Floats, radius: wp.int32, loss: Floats):
    p = wp.tid()
    total = f64(0.0)
    for i in range(2 * radius + 1):
        total += x[wp.clamp(p + i - radius, 0, x.shape[0] - 1)]
    wp.atomic_add(loss, 0, total * total)


@case
def window(given):
    x, loss = floats(given), floats([0])
    return slopes(x, loss, (window_kernel, len(given), [x, cases.RADIUS, loss]))


Vectors = wp.array(dtype=wp.vec3)


@alone
def collide(mass: wp.array(dtype=wp.float32), before: Vectors, centres: Vectors, n: Ints, after: Vectors):
    i = wp.tid()
    if mass[i] > 0.0:
        v = before[i] / mass[i]
        for j in range(n[0]):
            d = v - centres[j]
            r = wp.sqrt(wp.dot(d, d) + 1e-6)
            v = v + 0.1 * d / (1.0 + r * r) - 0.01 * v * r
        after[i] = v


@alone
def collide_four(mass: wp.array(dtype=wp.float32), before: Vectors, centres: Vectors, n: Ints, after: Vectors):
    i = wp.tid()
    if mass[i] > 0.0:
        v = before[i] / mass[i]
        for j in range(4):
            d = v - centres[j]
            r = wp.sqrt(wp.dot(d, d) + 1e-6)
            v = v + 0.1 * d / (1.0 + r * r) - 0.01 * v * r
        after[i] = v


@alone
def add_components(v: Vectors, loss: wp.array(dtype=wp.float32)):
    i = wp.tid()
    wp.atomic_add(loss, 0, v[i][0] + v[i][1] + v[i][2])


def grid_of(given, kernel):
    cells = len(cases.MASS)
    mass = wp.array(cases.MASS, dtype=wp.float32)
    before, centres = (wp.array(values, dtype=wp.vec3, requires_grad=True) for values in (cases.MOMENTA, given))
    after, loss = wp.zeros(cells, dtype=wp.vec3, requires_grad=True), wp.zeros(1, dtype=wp.float32, requires_grad=True)
    return slopes(centres, loss, (kernel, cells, [mass, before, centres, counts([len(given)]), after]),
                  (add_components, cells, [after, loss]))


@case
def grid(given):
    return grid_of(given, collide)


@case
def grid_constant(given):  # unrolled, as Warp does with a constant
    return grid_of(given, collide_four)


@case
def grid_unrolled(given):
    return grid_of(given, collide_four)
