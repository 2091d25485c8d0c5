"""The programs of cases.py for quadrants, taichi and costate."""

import numpy as np

import cases

qd = None  # the system; fields.py sets it
has_checkpoints = False  # of loops; the same

TABLE = {}


def case(function):
    TABLE[function.__name__.rstrip("_")] = function
    return function


def field(values):
    values = np.asarray(values, dtype=float)
    made = qd.field(qd.f64, shape=values.shape, needs_grad=True)
    made.from_numpy(values)
    return made


def counts(values):
    made = qd.field(qd.i32, shape=(len(values),))
    made.from_numpy(np.asarray(values, dtype=np.int32))
    return made


def number():
    return qd.field(qd.f64, shape=(), needs_grad=True)


def slopes(loss, x, *kernels):
    with qd.ad.Tape(loss=loss):
        for kernel in kernels:
            kernel()
    return x.grad.to_numpy()


@case
def product(given):
    x, n, loss = field(given), counts([3]), number()

    @qd.kernel
    def run():
        for i in n:
            p = 1.0
            for k in range(n[i]):
                p *= x[k]
            loss[None] += p

    return slopes(loss, x, run)


@case
def initialiser(given):
    x, n, loss = field(given), counts([3]), number()

    @qd.kernel
    def run():
        for i in n:
            a = 5.0
            for k in range(n[i]):
                a += x[k]
            loss[None] += a * a

    return slopes(loss, x, run)


@case
def argmax(given):
    x, n, loss = field(given), counts([5]), number()

    @qd.kernel
    def run():
        for i in n:
            best = -1.0
            for k in range(n[i]):
                if x[k] <= best:
                    continue
                best = x[k]
            loss[None] += best * best

    return slopes(loss, x, run)


@case
def quaternions(given):
    x, n, m, loss = field(given), counts(cases.NESTED["iterations"]), counts([3]), number()

    @qd.kernel
    def run():
        for i in m:
            a, b, e, f = 1.0, 0.0, 0.0, 0.0
            for link in range(m[i]):
                for j in range(n[link]):
                    c = qd.cos(x[link])
                    s = qd.sin(x[link]) * 0.6
                    r = qd.sin(x[link]) * 0.8
                    a1 = a * c - b * s - e * r
                    b1 = a * s + b * c - f * r
                    e1 = a * r + e * c + f * s
                    f1 = b * r - e * s + f * c
                    a = a1
                    b = b1
                    e = e1
                    f = f1
            loss[None] += a + 2.0 * b + 3.0 * e + 4.0 * f

    return slopes(loss, x, run)


@case
def norm(given):
    x, n, loss = field(given), counts([3]), number()

    @qd.kernel
    def run():
        for i in n:
            s = 0.0
            for k in range(n[i]):
                s += x[k] * x[k]
            loss[None] += x[0] / qd.sqrt(s)

    return slopes(loss, x, run)


@case
def component(given):
    x, loss = field(given), number()
    y = qd.Vector.field(2, qd.f64, shape=(len(given),), needs_grad=True)

    @qd.kernel
    def run():
        for i in x:
            y[i][0] = x[i] * x[i]
            y[i][1] = 3.0 * x[i]

    @qd.kernel
    def add():
        for i in x:
            loss[None] += y[i][0] * y[i][1]

    return slopes(loss, x, run, add)


@case
def carried(given):
    x, loss = field(given), number()
    stiffness, limit, steps = cases.PLASTICITY
    strain = qd.field(qd.f64, shape=(steps + 1,), needs_grad=True)

    @qd.kernel
    def run():
        qd.loop_config(serialize=True)
        for i in range(steps):
            trial = stiffness * (x[0] * qd.sin(2.0 * np.pi * i / steps) - strain[i])
            step = 0.0
            if qd.abs(trial) > limit:
                step = (qd.abs(trial) - limit) / stiffness
                loss[None] += step
            strain[i + 1] = strain[i] + (step if trial > 0 else -step)

    return slopes(loss, x, run)


@case
def update(given):
    y, x, loss = field(given), field(np.zeros(5)), number()

    @qd.kernel
    def run():
        for i in x:
            for j in range(y.shape[0]):
                x[i] += y[j]

    @qd.kernel
    def add():
        for i in x:
            loss[None] += x[i]

    return slopes(loss, y, run, add)


def iterations_of(length):
    def iterations(given):
        x, n, loss = field(given), counts([length]), number()
        pace = cases.PACE[length]

        @qd.kernel
        def run():
            for i in n:
                v = x[i]
                for k in range(n[i]):
                    v = v + pace * qd.sin(v)
                loss[None] += v

        return slopes(loss, x, run)

    TABLE[f"iterations{length}"] = iterations


for length in cases.PACE:
    iterations_of(length)


@case
def perceptron(given):
    w = [field(layer) for layer in cases.LAYERS]
    h = [field(given)] + [field(np.zeros(len(layer))) for layer in cases.LAYERS]
    loss = number()
    sizes = [counts(layer.shape) for layer in cases.LAYERS]

    @qd.kernel
    def layer(n: qd.template(), w: qd.template(), a: qd.template(), b: qd.template()):
        for one in range(1):
            for o in range(n[0]):
                total = 0.0
                for i in range(n[1]):
                    total += w[o, i] * a[i]
                b[o] = qd.tanh(total)

    @qd.kernel
    def add():
        for i in range(3):
            loss[None] += h[3][i] * h[3][i]

    def layers():
        for k in range(3):
            layer(sizes[k], w[k], h[k], h[k + 1])

    return slopes(loss, h[0], layers, add)


@case
def vector(given):
    x, n, loss = field(given), counts([4]), number()

    @qd.func
    def spin(a, iterations):
        p = qd.Vector([a, 1.0])
        for k in range(iterations):
            p = qd.Vector([p[0] * p[1], p[1] + 0.1 * p[0]])
        return p

    @qd.kernel
    def run():
        for i in n:
            p = spin(x[i], n[i])
            loss[None] += p[0] * p[1]

    return slopes(loss, x, run)


@case
def negative(given):
    x, lo, hi, loss = field(given), counts([-3]), counts([4]), number()

    @qd.kernel
    def run():
        for i in lo:
            v = x[i]
            for k in range(lo[i], hi[i]):
                v = v + 0.1 * k * qd.sin(v)
            loss[None] += x[i] + v * v

    return slopes(loss, x, run)


@case
def return_(given):
    x, n, loss = field(given), counts([3, 3, 2]), number()

    @qd.kernel
    def run():
        for i in x:
            v = x[i]
            for k in range(n[i]):
                v = v * v
                if v > 10.0:
                    return
            loss[None] += qd.sin(v)

    return slopes(loss, x, run)


@case
def do(given):
    x, n, loss = field(given), counts([3]), number()

    @qd.kernel
    def run():
        for i in n:
            v = x[i] + 1.0
            k = 0
            while True:
                v = v * qd.sin(v)
                k += 1
                if k >= n[i]:
                    break
            loss[None] += v

    return slopes(loss, x, run)


@case
def break_(given):
    x, n, loss = field(given), counts([5]), number()

    @qd.kernel
    def run():
        for i in n:
            u = 0.0
            for k in range(n[i]):
                if k == 3:
                    break
                u += x[i]
            loss[None] += u

    return slopes(loss, x, run)


@case
def continue_(given):
    x, n, loss = field(given), counts([5]), number()

    @qd.kernel
    def run():
        for i in n:
            u = 1.0
            for k in range(n[i]):
                if k == 1:
                    continue
                u *= x[i]
            loss[None] += u

    return slopes(loss, x, run)


@case
def counter(given):
    x, n, loss = field(given), counts([5]), number()

    @qd.kernel
    def run():
        for i in n:
            u = 1.0
            k = 0
            while k < n[i]:
                u *= x[i]
                k += 1
            loss[None] += u

    return slopes(loss, x, run)


@case
def squares(given):
    x, n, loss = field(given), counts([3]), number()

    @qd.kernel
    def run():
        for i in n:
            v = x[i]
            for k in range(n[i]):
                v = v * v
            loss[None] += v

    return slopes(loss, x, run)


@case
def fixed(given):
    x, loss = field(given), number()

    @qd.kernel
    def run():
        for i in x:
            v = 0.5
            last = 2.0
            while qd.abs(v - last) > 1e-14:
                last = v
                v = qd.cos(x[i] * v)
            loss[None] += v

    return slopes(loss, x, run)


@case
def renderer(given):
    x, loss = field(given), number()

    @qd.kernel
    def run():
        for ray in range(cases.RAYS):
            clear = 1.0
            light = 0.0
            s = 0
            while s < 4 * cases.CELLS:
                part = 1.0 - qd.exp(-x[s // 4] * 0.1 * (ray + 1))
                light += clear * part * (0.5 + 0.01 * s)
                clear *= 1.0 - part
                if clear < 0.05:
                    break
                s += 1
            loss[None] += light * light

    return slopes(loss, x, run)


@case
def many(given):
    x, n, loss = field(given), counts([100] * len(given)), number()

    @qd.kernel
    def run():
        for i in x:
            v = x[i]
            for k in range(n[i]):
                v = 0.95 * v + 0.05 * qd.sin(v)
            loss[None] += v

    return slopes(loss, x, run)


@case
def guard(given):
    x, loss = field(given), number()

    @qd.kernel
    def run():
        for i in x:
            loss[None] += qd.select(x[i] > 0.0, qd.log(x[i]), 0.0)

    return slopes(loss, x, run)


@case
def bound(given):
    x, n, loss = field(given), counts([5]), number()

    @qd.kernel
    def run():
        for i in n:
            v = x[i]
            for k in range(n[i]):
                v = v * qd.sin(v)
            loss[None] += v

    def shorten():
        n[0] = 2

    return slopes(loss, x, run, shorten)


@case
def zero(given):
    x, n, loss = field(given), counts([0, 3, 0, 5]), number()

    @qd.kernel
    def run():
        for i in n:
            v = x[i]
            for k in range(n[i]):
                v = v * qd.sin(v)
            loss[None] += v

    return slopes(loss, x, run)


@case
def minimum(given):
    x, n, loss = field(given), counts([3]), number()

    @qd.kernel
    def run():
        for i in n:
            least = 100.0
            for k in range(n[i]):
                if x[k] < least:
                    least = x[k]
            loss[None] += least * least

    return slopes(loss, x, run)


@case
def carry(given):
    x, n, loss = field(given), counts([1000]), number()

    @qd.kernel
    def run():
        for i in n:
            c = 0.0
            for k in range(n[i]):
                c = c + x[0] * (x[1] + x[2])
            loss[None] += c

    return slopes(loss, x, run)


@case
def indexed(given):
    x, y, n, loss = field(given), field(cases.INDEXED), counts([len(cases.INDEXED)]), number()

    @qd.kernel
    def run():
        for i in n:
            a = x[0] + x[1]
            state = a
            total = 0.0
            if qd.static(has_checkpoints):
                qd.loop_config(checkpoints=4)
            for k in range(n[i]):
                state = a * state + 0.1
                total += y[k] * state
            loss[None] += total

    return slopes(loss, x, run)


@case
def window(given):
    x, loss = field(given), number()

    @qd.kernel
    def run(radius: qd.i32):
        for p in x:
            total = 0.0
            for i in range(2 * radius + 1):
                q = qd.min(qd.max(p + i - radius, 0), x.shape[0] - 1)
                total += x[q]
            loss[None] += total * total

    return slopes(loss, x, lambda: run(cases.RADIUS))


def grid_of(given, iterations):
    """The operation with the loop that `iterations` names: the bodies are the same."""
    mass, n, four = qd.field(qd.f32, shape=len(cases.MASS)), counts([len(given)]), len(given)
    before, after = (qd.Vector.field(3, qd.f32, shape=len(cases.MASS), needs_grad=True) for _ in range(2))
    centres = qd.Vector.field(3, qd.f32, shape=four, needs_grad=True)
    loss = qd.field(qd.f32, shape=(), needs_grad=True)
    for made, values in (mass, cases.MASS), (before, cases.MOMENTA), (centres, np.asarray(given, dtype=np.float32)):
        made.from_numpy(values)

    @qd.kernel
    def counted():
        for i in mass:
            if mass[i] > 0:
                v = before[i] / mass[i]
                for j in range(n[0]):
                    d = v - centres[j]
                    r = qd.sqrt(d.dot(d) + 1e-6)
                    v = v + 0.1 * d / (1 + r * r) - 0.01 * v * r
                after[i] = v

    @qd.kernel
    def constant():
        for i in mass:
            if mass[i] > 0:
                v = before[i] / mass[i]
                for j in range(four):
                    d = v - centres[j]
                    r = qd.sqrt(d.dot(d) + 1e-6)
                    v = v + 0.1 * d / (1 + r * r) - 0.01 * v * r
                after[i] = v

    @qd.kernel
    def unrolled():
        for i in mass:
            if mass[i] > 0:
                v = before[i] / mass[i]
                for j in qd.static(range(four)):
                    d = v - centres[j]
                    r = qd.sqrt(d.dot(d) + 1e-6)
                    v = v + 0.1 * d / (1 + r * r) - 0.01 * v * r
                after[i] = v

    @qd.kernel
    def add():
        for i in after:
            loss[None] += after[i][0] + after[i][1] + after[i][2]

    kernels = {"counted": counted, "constant": constant, "unrolled": unrolled}
    return slopes(loss, centres, kernels[iterations], add)


@case
def grid(given):
    return grid_of(given, "counted")


@case
def grid_constant(given):
    return grid_of(given, "constant")


@case
def grid_unrolled(given):
    return grid_of(given, "unrolled")
