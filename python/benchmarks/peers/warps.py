"""The programs for warp-lang.

    python warps.py launch | first | recurrence | conformance
"""

import time

begin = time.perf_counter(), time.process_time()
import warp as wp

IMPORT = [time.perf_counter() - begin[0], time.process_time() - begin[1]]

import numpy as np

import common
import warp_cases

wp.config.quiet = True
wp.config.log_level = wp.LOG_ERROR if hasattr(wp, "LOG_ERROR") else 40
if common.CACHE:
    wp.config.kernel_cache_dir = common.CACHE
Ints = wp.array(dtype=wp.int32)


def start(**options):
    wp.init()
    wp.set_device("cpu")


# Launches.

@wp.kernel(module="unique", enable_backward=False)
def touch(a: wp.array(dtype=wp.float32), b: wp.array(dtype=wp.float32), c: wp.array(dtype=wp.float32),
          d: wp.array(dtype=wp.float32)):
    a[0] = b[0]


def launch():
    start()
    arrays = [wp.zeros(16, dtype=wp.float32) for _ in range(4)]
    call = common.per_call(lambda: wp.launch(touch, dim=1, inputs=arrays), wp.synchronize)
    recorded = wp.launch(touch, dim=1, inputs=arrays, record_cmd=True)
    return {"call": call, "recorded": common.per_call(recorded.launch, wp.synchronize)}


# A recurrence of as many iterations as the item says: as it is written, and with every value of the
# loop in an array, as the guide advises where the loop is not replayed.

def recurrences(kind):
    @wp.kernel(module="unique")
    def decay(x: wp.array(dtype=kind), n: Ints, y: wp.array(dtype=kind)):
        i = wp.tid()
        v = x[i]
        for k in range(n[i]):
            v = v * kind(0.95) + kind(0.01)
        y[i] = v

    @wp.kernel(module="unique")
    def swing(x: wp.array(dtype=kind), n: Ints, y: wp.array(dtype=kind)):
        i = wp.tid()
        v = x[i]
        for k in range(n[i]):
            v = v * wp.sin(v)
        y[i] = v

    @wp.kernel(module="unique")
    def decay_kept(x: wp.array(dtype=kind), n: Ints, y: wp.array(dtype=kind), s: wp.array2d(dtype=kind)):
        i = wp.tid()
        s[i, 0] = x[i]
        for k in range(n[i]):
            s[i, k + 1] = s[i, k] * kind(0.95) + kind(0.01)
        y[i] = s[i, n[i]]

    @wp.kernel(module="unique")
    def swing_kept(x: wp.array(dtype=kind), n: Ints, y: wp.array(dtype=kind), s: wp.array2d(dtype=kind)):
        i = wp.tid()
        s[i, 0] = x[i]
        for k in range(n[i]):
            s[i, k + 1] = s[i, k] * wp.sin(s[i, k])
        y[i] = s[i, n[i]]

    @wp.kernel(module="unique")
    def hover(x: wp.array(dtype=kind), n: Ints, y: wp.array(dtype=kind)):
        i = wp.tid()
        v = x[i]
        for k in range(n[i]):
            v = v * wp.sin(v) + kind(0.7)
        y[i] = v

    @wp.kernel(module="unique")
    def hover_kept(x: wp.array(dtype=kind), n: Ints, y: wp.array(dtype=kind), s: wp.array2d(dtype=kind)):
        i = wp.tid()
        s[i, 0] = x[i]
        for k in range(n[i]):
            s[i, k + 1] = s[i, k] * wp.sin(s[i, k]) + kind(0.7)
        y[i] = s[i, n[i]]

    return {"decay": (decay, decay_kept), "swing": (swing, swing_kept), "hover": (hover, hover_kept)}


def arrays_of(kind, x, n):
    items = len(x)
    return (wp.array(x, dtype=kind, requires_grad=True), wp.array(n, dtype=wp.int32),
            wp.zeros(items, dtype=kind, requires_grad=True))


def adjoint(kernel, arrays):
    """The gradient launch alone; `wp.Tape` adds some work of the host to it."""
    wp.launch(kernel, dim=arrays[0].shape[0], inputs=arrays, outputs=[],
              adj_inputs=[a.grad for a in arrays], adj_outputs=[], adjoint=True)


def first():
    begin = common.clock()
    start()
    x, n = common.inputs(100, np.float32)
    arrays = arrays_of(wp.float32, x, n)
    swing = recurrences(wp.float32)["swing"][0]
    wp.launch(swing, dim=100, inputs=list(arrays))
    wp.synchronize()
    primal = common.since(begin)
    arrays[2].grad.fill_(1.0)
    adjoint(swing, list(arrays))
    wp.synchronize()
    return {"import": IMPORT, "primal": primal, "gradient": common.since(begin)}


def recurrence():
    start()
    rows = []
    for name, kind, dtype in (("f32", wp.float32, np.float32), ("f64", wp.float64, np.float64)):
        for lengths in common.CHOSEN:
            rows += [dict(row, dtype=name, lengths=lengths) for row in bodies_of(kind, dtype, lengths)]
    return rows


def bodies_of(kind, dtype, lengths):
    x, n = common.inputs(common.ITEMS, dtype, lengths)
    for body, kernels in recurrences(kind).items():
        for way, kernel in zip(("", "values in an array"), kernels):
            arrays = list(arrays_of(kind, x, n))
            if way:
                arrays.append(wp.zeros((len(x), int(n.max()) + 1), dtype=kind, requires_grad=True))

            def primal():
                wp.launch(kernel, dim=len(x), inputs=arrays)
                wp.synchronize()

            def gradient():
                arrays[2].grad.fill_(1.0)
                if way:
                    arrays[3].grad.zero_()
                adjoint(kernel, arrays)
                wp.synchronize()

            primal()
            gradient()
            verdict = common.check_recurrence(body, x, n, arrays[0].grad.numpy())
            yield {"body": body, "way": way, "verdict": verdict,
                   "primal": common.least(primal), "gradient": common.least(gradient)}


# Conformance.

def conformance():
    return common.conformance(warp_cases.TABLE, start, {"": {}})


if __name__ == "__main__":
    common.main("warp-lang", wp.__version__, launch, first, recurrence, conformance)
