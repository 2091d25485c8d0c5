"""What programs launch, as kernels and on arrays of `Dual`. Values stay small."""

import dataclasses

import costate as ti


class Kernels:
    """The kernels over the fields of a `Real`."""

    def __init__(self, real):
        a, b, v, m, s, loss = real.a, real.b, real.v, real.m, real.s, real.loss

        @ti.kernel
        def store(k: ti.f64):
            for i in a:
                b[i] = ti.sin(a[i]) * k

        @ti.kernel
        def grow(k: ti.f64):
            for i in a:
                a[i] += b[i] * b[i] * k

        @ti.kernel
        def in_place(k: ti.f64):
            for i in a:
                a[i] = ti.sin(a[i] * a[i]) + k

        @ti.kernel
        def vectors(k: ti.f64):
            for i in v:
                v[i] = v[i] * k + ti.Vector([a[i], b[i + 1]]) * v[i].sum()

        @ti.kernel
        def matrices(k: ti.f64):
            for i in m:
                m[i] = ti.sin(m[i] @ m[i]) * k
                v[i] += m[i] @ v[i]

        @ti.kernel
        def structs(k: ti.f64):
            for i in s:
                s[i].q = ti.sin(s[i].q * s[i].p + v[i])
                s[i].p = ti.sin(s[i].p * k) * s[i].q[1]

        @ti.kernel
        def arrays(n: ti.types.ndarray(dtype=ti.f64, ndim=1), k: ti.f64):
            for i in n:
                n[i] = ti.sin(n[i] * a[i]) * k

        @ti.kernel
        def arrays_back(n: ti.types.ndarray(dtype=ti.f64, ndim=1), k: ti.f64):
            for i in n:
                b[i] += n[i] * n[i] * k

        @ti.kernel
        def measure(n: ti.types.ndarray(dtype=ti.f64, ndim=1), k: ti.f64):
            for i in range(2):
                loss[None] += k * a[i] * b[i + 1] + n[i] * n[i + 1] + v[i].dot(v[i])
                loss[None] += m[i][0, 1] * m[i][1, 0] + s[i].p * s[i].q.sum()

        self.all = {"store": store, "grow": grow, "in_place": in_place, "vectors": vectors,
                    "matrices": matrices, "structs": structs,
                    "arrays": lambda k: arrays(real.n, k),
                    "arrays_back": lambda k: arrays_back(real.n, k),
                    "measure": lambda k: measure(real.n, k)}

        @ti.kernel
        def square():
            for i in a:
                b[i] = a[i] * a[i]

        @ti.kernel
        def square_gradient(factor: ti.f64):
            for i in a:
                a.grad[i] += factor * a[i] * b.grad[i]
                b.grad[i] = 0.0
                b[i] = -7.0        # what it writes is put back

        @ti.ad.grad_replaced
        def squared(factor):
            square()

        @ti.ad.grad_for(squared)
        def squared_gradient(factor):
            if factor > 2:
                square_gradient(factor)
                return
            for i in range(3):
                a.grad[i] += factor * a[i] * b.grad[i]
            b.grad.fill(0)
            a.fill(100)

        self.squared = squared

        @ti.kernel
        def total(k: ti.f64) -> ti.f64:
            s = 0.0
            for i in range(3):
                s += a[i] * b[i] * k
            return s

        @ti.kernel
        def around(k: ti.f64):
            s = 0.5
            for i in a:
                s += a[i] * k
            for i in b:
                b[i] = ti.sin(s * b[i])

        @ti.kernel
        def scatter(k: ti.f64):
            for i in range(2):
                if a[i] > 0:
                    real.t[i + 1] += a[i] * k

        @ti.kernel
        def gather(k: ti.f64):
            for i in real.t:
                b[i % 3] += real.t[i] * real.t[i] * k

        @ti.kernel
        def pair(k: ti.f64) -> ti.types.vector(2, ti.f64):
            return ti.Vector([ti.sin(a[0] * k), b[1] * k])

        @ti.kernel
        def toward(target: ti.types.vector(2, ti.f64), k: ti.f64):
            for i in v:
                v[i] += (target - v[i]) * k

        self.pair, self.toward = pair, toward
        self.total, self.all["around"] = total, around
        self.all["scatter"], self.all["gather"] = scatter, gather
        for name in ("numbers", "nested", "lists", "properties"):
            self.all[name] = lambda k, name=name: getattr(real.object, name)(k)
        self.all["of_dataclass"] = lambda k: update(real.parameters, k)


class Part:
    """What an object has besides numbers."""

    def __init__(self, x, c):
        self.x, self.c = x, c


@ti.data_oriented
class Object:
    """Members that kernels read, which programs replace."""

    def __init__(self, real):
        self.k, self.x, self.y = 1.0, real.a, real.b
        self.parts = [Part(real.a, 0.5), Part(real.b, -1.0)]
        self.part, self.list = self.parts[0], [0.5, 1.0]
        self.slots, self.fields = Slots(1.0), {"x": real.a}
        self.b = real.b

    @ti.kernel
    def numbers(self, k: ti.f64):
        for i in self.y:
            self.y[i] += ti.sin(self.x[i] * self.x[i]) * self.k * k

    @ti.kernel
    def nested(self, k: ti.f64):
        for i in self.part.x:
            self.part.x[i] = ti.sin(self.part.x[i] * self.y[i]) * self.part.c + k

    @ti.kernel
    def lists(self, k: ti.f64):
        for i in self.b:
            self.b[i] += self.fields["x"][i] * self.list[0] * self.list[1] + self.slots.c * k

    @ti.kernel
    def properties(self, k: ti.f64):
        for i in self.b:
            self.b[i] = ti.sin(self.b[i] * self.twice) + k

    @property
    def twice(self):
        return 2 * self.k


class Slots:
    """A member that is no attribute of a dictionary."""

    __slots__ = ("c",)

    def __init__(self, c):
        self.c = c


@dataclasses.dataclass
class Parameters:
    """The members of an argument."""

    x: ti.template()
    y: ti.types.ndarray(dtype=ti.f64, ndim=1)
    k: ti.f64


@ti.kernel
def update(d: Parameters, k: ti.f64):
    for i in d.y:
        d.y[i] += d.x[i] * d.x[i] * d.k * k


def _sin(x):
    return x.sin()


def store(w, k):
    for i in range(3):
        w.b[i] = _sin(w.a[i]) * k


def grow(w, k):
    for i in range(3):
        w.a[i] = w.a[i] + w.b[i] * w.b[i] * k


def in_place(w, k):
    for i in range(3):
        w.a[i] = _sin(w.a[i] * w.a[i]) + k


def vectors(w, k):
    for i in range(2):
        total = w.v[i, 0] + w.v[i, 1]
        w.v[i] = [w.v[i, 0] * k + w.a[i] * total, w.v[i, 1] * k + w.b[i + 1] * total]


def matrices(w, k):
    for i in range(2):
        w.m[i] = [[_sin(e) * k for e in row] for row in w.m[i] @ w.m[i]]
        w.v[i] = w.v[i] + w.m[i] @ w.v[i]


def structs(w, k):
    for i in range(2):
        w.q[i] = [_sin(w.q[i, c] * w.p[i] + w.v[i, c]) for c in range(2)]
        w.p[i] = _sin(w.p[i] * k) * w.q[i, 1]


def arrays(w, k):
    for i in range(3):
        w.n[i] = _sin(w.n[i] * w.a[i]) * k


def arrays_back(w, k):
    for i in range(3):
        w.b[i] = w.b[i] + w.n[i] * w.n[i] * k


def measure(w, k):
    for i in range(2):
        w.loss = w.loss + w.a[i] * w.b[i + 1] * k + w.n[i] * w.n[i + 1]
        w.loss = w.loss + w.v[i, 0] * w.v[i, 0] + w.v[i, 1] * w.v[i, 1]
        w.loss = w.loss + w.m[i, 0, 1] * w.m[i, 1, 0] + w.p[i] * (w.q[i, 0] + w.q[i, 1])


def around(w, k):
    s = 0.5
    for i in range(3):
        s = w.a[i] * k + s
    for i in range(3):
        w.b[i] = _sin(w.b[i] * s)


def scatter(w, k):
    for i in range(2):
        if w.a[i].value > 0:
            w.t[i + 1] = w.t[i + 1] + w.a[i] * k
            w.active.add(i + 1)


def gather(w, k):
    for i in sorted(w.active):
        w.b[i % 3] = w.b[i % 3] + w.t[i] * w.t[i] * k


def numbers(w, k):
    x, y = getattr(w, w.member("x")), getattr(w, w.member("y"))
    for i in range(3):
        y[i] = y[i] + _sin(x[i] * x[i]) * w.member("k") * k


def nested(w, k):
    part = w.member("part")
    name, c = ("a", w.member("part c")) if part == 0 else (w.member("part x"), -1.0)
    x, y = getattr(w, name), getattr(w, w.member("y"))
    for i in range(3):
        x[i] = _sin(x[i] * y[i]) * c + k


def lists(w, k):
    x = getattr(w, w.member("fields"))
    for i in range(3):
        w.b[i] = w.b[i] + x[i] * w.member("list") + w.member("slots") * k


def properties(w, k):
    for i in range(3):
        w.b[i] = _sin(w.b[i] * (2 * w.member("k"))) + k


def of_dataclass(w, k):
    x = getattr(w, w.member("parameter x"))
    for i in range(3):
        w.n[i] = w.n[i] + x[i] * x[i] * w.member("parameter k") * k


MODELS = {f.__name__: f for f in (store, grow, in_place, vectors, matrices, structs, arrays, arrays_back, measure, around,
                                  scatter, gather, numbers, nested, lists, properties, of_dataclass)}
