"""What programs launch, as kernels and on arrays of `Dual`. Values stay small."""

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


MODELS = {f.__name__: f for f in (store, grow, in_place, vectors, matrices, structs, arrays, arrays_back, measure)}
