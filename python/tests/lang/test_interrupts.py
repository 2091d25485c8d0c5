"""Ctrl-C ends a launch that runs; each program runs on its own."""

import os
import subprocess
import sys
import tempfile
import textwrap

import pytest

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.skipif(os.environ.get("COSTATE_DEVICE", "cpu") not in ("", "cpu", "simt"),
                                 reason="launches on GPUs run to their end")]

HEAD = """
import os, signal, sys, threading, time
import costate as qd, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may have been told to ignore it
OPTIONS = {options}
qd.init(arch=getattr(qd, os.environ.get("COSTATE_DEVICE") or "cpu"), default_fp=qd.f64, cpu_max_num_threads=4, **OPTIONS)
N = 5000
x = qd.field(qd.f64, N, needs_grad=True)
loss = qd.field(qd.f64, (), needs_grad=True)
go = qd.field(qd.i32, ())

@qd.kernel
def square():
    for i in x:
        loss[None] += x[i] * x[i]

def right():
    x.from_numpy(np.linspace(0, 1, N))
    loss[None] = 0
    with qd.ad.Tape(loss):
        square()
    return np.abs(x.grad.to_numpy() - 2 * np.linspace(0, 1, N)).max() < 1e-12

def interrupted(kernel, *args, after=0.5, raises=KeyboardInterrupt):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.time()
    try:
        kernel(*args)
    except raises as error:
        assert time.time() - start < after + 20, "late"
        return str(error)
    raise AssertionError("ran to its end")
"""


def ends_well(program, options="{}"):
    environment = dict(os.environ, COSTATE_CACHE="0")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(HEAD.replace("{options}", options) + textwrap.dedent(program))
        file.flush()
        done = subprocess.run([sys.executable, file.name], env=environment, capture_output=True, text=True,
                              timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


LOOPS = {
    "serial": """
        while True:
            go[None] += 1
    """,
    "in_one_work_item": """
        for i in x:
            while x[i] >= 0.0 and i == 7:
                x[i] += 1.0
    """,
    "in_all_work_items": """
        for i in x:
            while True:
                x[i] = qd.sin(x[i]) + 1.0
    """,
    "in_a_function": """
        for i in x:
            for_ever(i)
    """,
    "counted": """
        for i in x:
            for j in range(1 << 40):
                x[i] = x[i] * 0.5 + 1.0
    """,
}


@pytest.mark.parametrize("options", ["{}", "{'debug': True}", "{'deterministic': True}", "{'find_nan': True}"])
@pytest.mark.parametrize("loop", LOOPS)
def test_ctrl_c_leaves_a_loop_without_end(loop, options):
    ends_well(f"""
    @qd.func
    def for_ever(i: qd.i32):
        while x[i] > -1.0:
            x[i] += 1.0

    @qd.kernel
    def k():{textwrap.indent(LOOPS[loop], "    ")}
    assert right()
    text = interrupted(k)
    assert "kernel `k" in text and "not usable" in text, text
    assert right()
    interrupted(k)
    assert right()
    """, options)


def test_ctrl_c_ends_a_range_between_chunks():
    ends_well("""
    @qd.kernel
    def k():
        for i in range(1 << 40):
            loss[None] += qd.sin(1.0 * i)
    interrupted(k)
    assert right()
    """)


def test_ctrl_c_in_a_gradient_and_in_a_recording():
    ends_well("""
    @qd.kernel
    def k(iterations: qd.i32):
        for i in x:
            v = x[i]
            for j in range(iterations):
                v = qd.sin(v) + 0.1
            loss[None] += v
    k(2)
    k.grad(2)
    def recorded():
        with qd.ad.Tape(loss):
            k(100_000_000)
    interrupted(recorded)
    assert right()
    """)


def test_handlers_of_the_program_decide():
    ends_well("""
    @qd.kernel
    def k():
        while True:
            go[None] += 1
    def handler(*_):
        raise TimeoutError("of the program")
    signal.signal(signal.SIGINT, handler)
    assert interrupted(k, raises=TimeoutError) == "of the program"
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        k()
    except TimeoutError:
        pass
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted(k, after=1.5)
    assert seen
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert right()
    """)
