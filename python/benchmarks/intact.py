"""What it costs to find out whether memory is as a gradient by hand needs it: python python/benchmarks/intact.py

Milliseconds of the processor: of the kernel, of its gradient that does not ask, and of the check, as a part of that gradient.
"""

import time

import numpy as np

import costate as qd

WIDTH, LEVELS = 20_000, 30


@qd.kernel
def links(q: qd.types.ndarray(), parent: qd.types.ndarray(), x: qd.types.ndarray()):
    for b in range(q.shape[1]):
        for i in range(1, q.shape[0]):
            s, c, p = qd.sin(q[i, b]), qd.cos(q[i, b]), parent[i]
            u, v = x[p, b][0], x[p, b][1]
            x[i, b][0] = c * u - s * v + 0.1
            x[i, b][1] = s * u + c * v


@qd.kernel
def products(q: qd.types.ndarray(), parent: qd.types.ndarray(), x: qd.types.ndarray()):
    for b in range(q.shape[1]):
        for i in range(1, q.shape[0]):
            x[i, b] = x[parent[i], b] * q[i, b]


@qd.kernel
def springs(x: qd.types.ndarray(), f: qd.types.ndarray(), e: qd.types.ndarray()):
    for i in range(x.shape[0] - 1):
        f[i] = qd.exp(-x[i]) * qd.sin(x[i + 1] - x[i])
    for i in range(x.shape[0] - 1):
        e[i] = qd.sqrt(1 + f[i] * f[i]) * qd.cos(f[i])


def milliseconds(launch, *arrays):
    best = float("inf")
    for _ in range(15):
        start = time.process_time()
        launch(*arrays)
        best = min(best, time.process_time() - start)
    return 1000 * best


def floats(*shape, components=0):
    array = qd.Vector.ndarray(components, qd.f64, shape, needs_grad=True) if components else qd.ndarray(qd.f64, shape, needs_grad=True)
    array.from_numpy(np.random.default_rng(1).uniform(0.5, 1, (*shape, components) if components else shape))
    return array


def measure(name, kernel, written, *arrays):
    unchecked = qd.kernel(gradients="unchecked")(kernel.function)
    primal = milliseconds(kernel, *arrays)
    written.from_numpy(written.to_numpy())         # nothing is certain any more
    gradient, both = (milliseconds(one, *arrays) for one in (unchecked.grad, kernel.grad))
    print(f"{name:10} kernel {primal:6.2f}  gradient {gradient:6.2f}  check {both - gradient:6.2f}  {(both - gradient) / gradient:.2f}")


def main():
    qd.init(arch=qd.cpu, default_fp=qd.f64, cpu_max_num_threads=1)
    parent = qd.ndarray(qd.i32, (LEVELS,))
    parent.from_numpy(np.maximum(np.arange(LEVELS) - 1 - np.arange(LEVELS) % 2, 0).astype(np.int32))
    for name, kernel, components in (("links", links, 2), ("products", products, 0)):
        x = floats(LEVELS, WIDTH, components=components)
        measure(name, kernel, x, floats(LEVELS, WIDTH), parent, x)
    x, f, e = (floats(LEVELS * WIDTH) for _ in range(3))
    measure("springs", springs, f, x, f, e)


if __name__ == "__main__":
    main()
