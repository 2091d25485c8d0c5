"""A function of several launches on arrays in place, one of them with a `while`."""

import costate as qd

ANY = qd.types.ndarray()


@qd.kernel
def pulled(x: ANY, f: ANY):
    for i in x:
        f[i] = -qd.sin(x[i]) * x[i]


@qd.kernel
def kicked(v: ANY, f: ANY, h: qd.f64):
    for i in v:
        v[i] = v[i] + h * f[i] * v[i]


@qd.kernel
def drifted(x: ANY, v: ANY):
    for i in x:
        s = x[i]
        k = 0
        while k < 3:
            s = s * qd.cos(v[i])
            k += 1
        x[i] = s


def moved(x, v, f):
    for _ in range(2):
        pulled(x, f)
        kicked(v, f, 0.1)
        drifted(x, v)
