"""The programs for drjit, whose LLVM backend needs a libLLVM.so of LLVM 15 or newer.

    python drjits.py launch | first | recurrence | conformance

Where it does not find that library, DRJIT_LIBLLVM_PATH names it.
"""

import time

begin = time.perf_counter(), time.process_time()
import drjit as dr

IMPORT = [time.perf_counter() - begin[0], time.process_time() - begin[1]]

import numpy as np
from drjit.llvm.ad import Float32, Float64, Int

import common
import jit_cases


def start(symbolic=True):
    if not dr.has_backend(dr.JitBackend.LLVM):
        raise RuntimeError("no libLLVM.so of LLVM 15 or newer")
    dr.set_thread_count(2)
    for flag in (dr.JitFlag.SymbolicLoops, dr.JitFlag.SymbolicConditionals):
        dr.set_flag(flag, symbolic)


# Launches: traced for each call, and recorded once, which `dr.freeze` is for.

def touch(a, b, c, d):
    dr.scatter(a, dr.gather(Float32, b, 0), 0)
    return a


def launch():
    start()
    arrays = [Float32(np.zeros(16, dtype=np.float32)) for _ in range(4)]
    frozen = dr.freeze(touch)
    return {"call": common.per_call(lambda: dr.eval(touch(*arrays)), dr.sync_thread),
            "recorded": common.per_call(lambda: dr.eval(frozen(*arrays)), dr.sync_thread)}


# A recurrence of as many iterations as the item says, `most` at most.

BODIES = {"decay": lambda v: v * 0.95 + 0.01, "swing": lambda v: v * dr.sin(v), "hover": lambda v: v * dr.sin(v) + 0.7}


@dr.syntax
def iterate(body, x, n, most):
    v, k = type(x)(x), Int(0)
    while dr.hint(k < n, max_iterations=most):
        v = BODIES[body](v)
        k += 1
    return v


def slope(body, x, n, most):
    x = dr.detach(x)
    dr.enable_grad(x)
    dr.backward(iterate(body, x, n, most))
    return dr.grad(x)


def ready(array):
    dr.eval(array)
    dr.sync_thread()
    return array


def first():
    begin = common.clock()
    start()
    x, n = common.inputs(100, np.float32)
    arrays = Float32(x), Int(n), 100
    ready(iterate("swing", *arrays))
    primal = common.since(begin)
    ready(slope("swing", *arrays))
    return {"import": IMPORT, "primal": primal, "gradient": common.since(begin)}


def recurrence():
    start()
    rows = []
    for name, kind, dtype in (("f32", Float32, np.float32), ("f64", Float64, np.float64)):
        for lengths in common.CHOSEN:
            rows += [dict(row, dtype=name, lengths=lengths) for row in bodies_of(kind, dtype, lengths)]
    return rows


def bodies_of(kind, dtype, lengths):
    x, n = common.inputs(common.ITEMS, dtype, lengths)
    arrays = kind(x), Int(n), int(n.max())
    for body in BODIES:
        def gradient():
            return ready(slope(body, *arrays))

        verdict = common.check_recurrence(body, x, n, gradient().numpy())
        yield {"body": body, "way": "", "verdict": verdict,
               "primal": common.least(lambda: ready(iterate(body, *arrays))), "gradient": common.least(gradient)}


# Conformance.

def conformance():
    rows = common.conformance(jit_cases.TABLE, start, {"": {}, "in evaluated mode": {"symbolic": False}})
    for row in rows:
        if row["verdict"] == "cannot":
            row["text"] = jit_cases.LACKS[row["case"]]
    others = common.conformance(jit_cases.REWRITTEN, start, {"if rewritten": {}})
    return rows + [row for row in others if row["case"] in jit_cases.REWRITTEN]


if __name__ == "__main__":
    common.main("drjit", dr.__version__, launch, first, recurrence, conformance)
