"""The programs for quadrants, taichi and costate: one source, another import.

    python fields.py SYSTEM launch | first | recurrence | conformance
"""

import importlib
import os
import sys
import time

SYSTEM = sys.argv[1]
begin = time.perf_counter(), time.process_time()
qd = importlib.import_module(SYSTEM)
IMPORT = [time.perf_counter() - begin[0], time.process_time() - begin[1]]

import numpy as np

import common
import field_cases

QUADRANTS = SYSTEM == "quadrants"
field_cases.qd = qd
field_cases.has_checkpoints = SYSTEM == "costate"
# Quadrants reads compiled kernels without their Python source if asked (its guide, "Fastcache").
pure_kernel = qd.kernel(fastcache=True) if QUADRANTS else qd.kernel
Array = qd.types.ndarray


def deep(iterations):
    """Options for loops of so many iterations: Taichi keeps 32 values of a variable unless told otherwise."""
    return {"ad_stack_size": 128 if iterations <= 100 else 1024 if iterations <= 1000 else 2048} if SYSTEM == "taichi" else {}


def start(**options):
    if QUADRANTS:
        options["ad_stack_experimental_enabled"] = True  # loops, its guide says
    if SYSTEM != "costate":
        options.setdefault("log_level", qd.ERROR if hasattr(qd, "ERROR") else "error")
    if common.CACHE:
        options["offline_cache_file_path"] = common.CACHE
    options.setdefault("default_fp", qd.f64)
    device = os.environ.get("COSTATE_DEVICE", "cpu") if SYSTEM == "costate" else "cpu"
    if device == "cpu":
        options["cpu_max_num_threads"] = 2
    qd.init(arch=getattr(qd, device), **options)


# Launches.

@pure_kernel
def touch(a: Array(dtype=qd.f32, ndim=1), b: Array(dtype=qd.f32, ndim=1), c: Array(dtype=qd.f32, ndim=1),
          d: Array(dtype=qd.f32, ndim=1)):
    a[0] = b[0]


def launch():
    start()
    arrays = [qd.ndarray(qd.f32, shape=(16,)) for _ in range(4)]
    return {"call": common.per_call(lambda: touch(*arrays), qd.sync)}


# A recurrence of as many iterations as the item says.

def recurrences(dtype):
    @pure_kernel
    def decay(x: Array(dtype=dtype, ndim=1), n: Array(dtype=qd.i32, ndim=1), y: Array(dtype=dtype, ndim=1)):
        for i in range(x.shape[0]):
            v = x[i]
            for k in range(n[i]):
                v = v * 0.95 + 0.01
            y[i] = v

    @pure_kernel
    def swing(x: Array(dtype=dtype, ndim=1), n: Array(dtype=qd.i32, ndim=1), y: Array(dtype=dtype, ndim=1)):
        for i in range(x.shape[0]):
            v = x[i]
            for k in range(n[i]):
                v = v * qd.sin(v)
            y[i] = v

    @pure_kernel
    def hover(x: Array(dtype=dtype, ndim=1), n: Array(dtype=qd.i32, ndim=1), y: Array(dtype=dtype, ndim=1)):
        for i in range(x.shape[0]):
            v = x[i]
            for k in range(n[i]):
                v = v * qd.sin(v) + 0.7
            y[i] = v

    return {"decay": decay, "swing": swing, "hover": hover}


def arrays_of(dtype, x, n):
    items = len(x)
    a, y = (qd.ndarray(dtype, shape=(items,), needs_grad=True) for _ in range(2))
    iterations = qd.ndarray(qd.i32, shape=(items,))
    a.from_numpy(x)
    iterations.from_numpy(n)
    return a, iterations, y


def first():
    begin = common.clock()
    start(default_fp=qd.f32, **deep(100))
    x, n = common.inputs(100, np.float32)
    a, iterations, y = arrays_of(qd.f32, x, n)
    swing = recurrences(qd.f32)["swing"]
    swing(a, iterations, y)
    qd.sync()
    primal = common.since(begin)
    y.grad.fill(1.0)
    swing.grad(a, iterations, y)
    qd.sync()
    return {"import": IMPORT, "primal": primal, "gradient": common.since(begin)}


def recurrence():
    # Quadrants and Taichi compile with `fast_math` unless told otherwise; Costate does not.
    is_ours, ways = SYSTEM == "costate", {"": {}}
    if is_ours or common.BOTH_MATHS:
        ways["`fast_math`" if is_ours else "`fast_math=False`"] = {"fast_math": is_ours}
    rows = []
    for name, dtype in (("f32", np.float32), ("f64", np.float64)):
        for way, options in ways.items():
            for lengths in common.CHOSEN:
                x, n = common.inputs(common.ITEMS, dtype, lengths)
                start(default_fp=getattr(qd, name), **deep(n.max()), **options)
                rows += [dict(row, dtype=name, way=way, lengths=lengths) for row in bodies_of(getattr(qd, name), x, n)]
    return rows


def bodies_of(kind, x, n):
    a, iterations, y = arrays_of(kind, x, n)
    for body, kernel in recurrences(kind).items():
        def gradient():
            y.grad.fill(1.0)
            kernel.grad(a, iterations, y)
            qd.sync()

        def primal():
            kernel(a, iterations, y)
            qd.sync()

        primal()
        a.grad.fill(0.0)
        gradient()
        verdict = common.check_recurrence(body, x, n, a.grad.to_numpy())
        yield {"body": body, "verdict": verdict, "primal": common.least(primal),
               "gradient": common.least(gradient)}


# Conformance.

def conformance():
    ways = {"": {}}
    if SYSTEM == "taichi":
        ways["with `ad_stack_size=16384`"] = {"ad_stack_size": 16384}
    return common.conformance(field_cases.TABLE, start, ways)


if __name__ == "__main__":
    common.main(SYSTEM, qd.__version__, launch, first, recurrence, conformance)
