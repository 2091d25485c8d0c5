"""A loop that saves little, beside Equinox's checkpointed `while_loop` in JAX, on one core.

    python python/benchmarks/peers/checkpoints.py [--venvs DIR] [--device cuda --python PYTHON]

Both take the gradient of the sum of all values of `v = v * sin(v) + 0.7` by the start, of f64, for the same memory:
k numbers for each element, which Equinox keeps as k checkpoints, and Costate as a tape budget. Costate is the one that
this Python imports (PYTHONPATH=build/release/python). Prints a table of milliseconds of the processor; with
`--device cuda`, of the clock on the wall. `--python` has JAX and Equinox already, as is needed for CUDA.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = {"cpu": ((1, 100_000), (1024, 10_000)), "cuda": ((1024, 10_000), (65_536, 4_000))}
DEVICE = os.environ.get("CHECKPOINTS_DEVICE", "cpu")


def least(call, rounds=3):
    clock = time.process_time if DEVICE == "cpu" else time.perf_counter
    call()
    times = []
    for _ in range(rounds):
        start = clock()
        call()
        times.append(clock() - start)
    return 1000 * min(times)


def starts(elements):
    return [0.3 + 0.6 * i / elements for i in range(elements)]


def equinox(elements, steps, kept):
    import jax
    import jax.numpy as jnp
    from equinox.internal import while_loop

    jax.config.update("jax_enable_x64", True)
    x = jnp.array(starts(elements))

    def total(x):
        def body(carried):
            t, v, s = carried
            v = v * jnp.sin(v) + 0.7
            return t + 1, v, s + v

        start = (jnp.int64(0), x, jnp.zeros_like(x))
        return while_loop(lambda carried: carried[0] < steps, body, start, kind="checkpointed", checkpoints=kept)[2].sum()

    primal, gradient = jax.jit(total), jax.jit(jax.grad(total))
    return {"primal": least(lambda: primal(x).block_until_ready()),
            "gradient": least(lambda: gradient(x).block_until_ready()), "value": [float(g) for g in gradient(x)]}


def costate(elements, steps, kept):
    import costate as qd

    numbers = 8 * elements * kept
    qd.init(arch=getattr(qd, DEVICE), default_fp=qd.f64, cpu_max_num_threads=1, tape_budget=numbers, **({"lanes": 1} if elements == 1 else {}))
    x = qd.field(qd.f64, elements, needs_grad=True)
    y = qd.field(qd.f64, elements, needs_grad=True)

    @qd.kernel
    def total():
        for i in x:
            v, s, t = x[i], 0.0, 0
            while t < steps:
                v = v * qd.sin(v) + 0.7
                s += v
                t += 1
            y[i] = s

    for i, start in enumerate(starts(elements)):
        x[i] = start

    def gradient():
        x.grad.fill(0)
        y.grad.fill(1)
        total.grad()
        qd.sync()

    def primal():
        total()
        qd.sync()

    try:
        return {"primal": least(primal), "gradient": least(gradient), "value": list(map(float, x.grad.to_numpy()))}
    except qd.OutOfMemory:
        return {"primal": least(primal), "gradient": None}


def answer(python, system, problem, device):
    environment = dict(os.environ, CHECKPOINTS_DEVICE=device, XLA_FLAGS="--xla_cpu_multi_thread_eigen=false",
                       XLA_PYTHON_CLIENT_PREALLOCATE="false")
    environment["PYTHONPATH"] = os.path.abspath(environment.get("PYTHONPATH", "."))
    done = subprocess.run([python, __file__, "--child", system, *map(str, problem)], env=environment,
                          capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def row(problem, mine, other):
    elements, steps, kept = problem
    if mine["gradient"] is not None:
        worst = max(abs(a - b) / max(abs(a), 1) for a, b in zip(mine["value"], other["value"]))
        assert worst < 1e-9, f"the gradients differ by {worst}"
    shown = ["does not fit" if time is None else f"{time:.3g}"
             for time in (mine["primal"], mine["gradient"], other["primal"], other["gradient"])]
    return f"| {elements:,} | {steps:,} | {8 * elements * kept:,} | {shown[0]} / {shown[1]} | {shown[2]} / {shown[3]} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "costate-peers")
    parser.add_argument("--device", choices=SIZES, default="cpu")
    parser.add_argument("--python")
    parser.add_argument("--child", nargs=4)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    if arguments.child:
        system, *problem = arguments.child
        print(json.dumps({"costate": costate, "equinox": equinox}[system](*map(int, problem))))
        return
    import run
    python, why = (arguments.python, "") if arguments.python else run.python_of("equinox", arguments.venvs)
    if not python:
        raise SystemExit(f"equinox: {why}")
    print("| elements | iterations | bytes | costate | equinox |\n|---|---|---|---|---|")
    for size in SIZES[arguments.device]:
        for kept in (10, 100, 1_000):
            problem = (*size, kept)
            mine, other = (answer(one, system, problem, arguments.device)
                           for one, system in ((sys.executable, "costate"), (python, "equinox")))
            print(row(problem, mine, other), flush=True)


if __name__ == "__main__":
    main()
