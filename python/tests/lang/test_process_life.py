"""Forks, threads and memory that end, and the end of the process: each program runs on its own."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest

pytestmark = [pytest.mark.host, pytest.mark.slow]

HEAD = """
import os, sys, threading, time, resource
import costate as qd, numpy as np
qd.init(arch=getattr(qd, os.environ.get("COSTATE_DEVICE") or "cpu"), default_fp=qd.f64, cpu_max_num_threads=4)
N = 20000
x = qd.field(qd.f64, N, needs_grad=True)
loss = qd.field(qd.f64, (), needs_grad=True)

@qd.kernel
def k():
    for i in x:
        loss[None] += qd.sin(x[i])

@qd.kernel
def other(s: qd.f64):
    for i in x:
        loss[None] += s * x[i] * x[i]

def right(kernel=None, expected=None):
    x.from_numpy(np.linspace(0, 1, N))
    loss[None] = 0
    with qd.ad.Tape(loss):
        k() if kernel is None else kernel()
    g = np.cos(np.linspace(0, 1, N)) if expected is None else expected
    return np.abs(x.grad.to_numpy() - g).max() < 1e-12
"""


def run(program, *, cache=None, seconds=120):
    environment = dict(os.environ, COSTATE_CACHE="1" if cache else "0")
    if cache:
        environment["COSTATE_CACHE_DIR"] = str(cache)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(HEAD + textwrap.dedent(program))
        file.flush()
        os.chmod(file.name, 0o644)
        return subprocess.run([sys.executable, file.name], env=environment, capture_output=True, text=True,
                              timeout=seconds)


def ends_well(program, output="", **options):
    done = run(program, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert output in done.stdout
    return done


on_host = pytest.mark.skipif(os.environ.get("COSTATE_DEVICE", "cpu") not in ("", "cpu", "simt"),
                             reason="drivers of GPUs do not survive a fork, and launches there run to their end")


@on_host
@pytest.mark.parametrize("work", ["k()", "other(1.0)", "x.from_numpy(np.ones(N))",
                                  "qd.kernel(other.function)(2.0)"])
def test_children_of_a_fork_work_while_another_thread_does(work):
    ends_well(f"""
    k()
    stop = False
    def loop():
        while not stop:
            {work}
    thread = threading.Thread(target=loop)
    thread.start()
    for i in range(25):
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if right() and right(lambda: other(1.0), 2 * np.linspace(0, 1, N)) else 3)
            except BaseException as error:
                print(error, flush=True)
                os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stop = True
    thread.join()
    """)


@on_host
def test_forks_of_forks_and_pools_of_processes():
    ends_well("""
    import multiprocessing
    assert right()
    def work(seed):
        return bool(right())
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert all(pool.map(work, range(6)))
    pid = os.fork()
    if pid == 0:
        assert right()
        inner = os.fork()
        if inner == 0:
            sys.exit(0 if right() else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert right()
    """)


@on_host
def test_a_fork_in_the_middle_of_a_long_launch_is_told():
    ends_well("""
    @qd.kernel
    def long(n: qd.i64):
        qd.loop_config(serialize=True)
        for i in range(n):
            x[0] = qd.sin(x[0]) + 1.0
    long(1)
    thread = threading.Thread(target=long, args=(400_000_000,), daemon=True)
    thread.start()
    time.sleep(0.3)
    pid = os.fork()
    if pid == 0:
        try:
            k()
        except qd.QuadrantsRuntimeError as error:
            os._exit(0 if "forked while another thread" in str(error) else 3)
        os._exit(4)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(code)
    """)


def test_threads_that_cannot_be_made_are_done_without():
    ends_well("""
    import costate.lang.visitor  # the other user may not be able to read it
    if os.geteuid() == 0:
        os.setuid(23456)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    assert right()
    """)


@pytest.mark.parametrize("megabytes", [1, 6, 12, 20, 40, 80])
@pytest.mark.parametrize("warm", [False, True])
def test_after_memory_has_ended_the_next_launch_works(megabytes, warm):
    done = run(f"""
    if {warm}:
        k()
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    free = resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_AS, (used + {megabytes} * 1000000, free))
    try:
        assert right()
    except MemoryError:
        pass
    resource.setrlimit(resource.RLIMIT_AS, (free, free))
    assert right()
    print("works")
    """)
    ended = "cannot allocate memory for thread-local data" in done.stderr  # glibc's end
    assert done.returncode == 0 and "works" in done.stdout or ended, done.stdout + done.stderr


@pytest.mark.parametrize("work", ["k()", "x.to_numpy()", "right()", "x[0] = 2.0",
                                  "qd.kernel(other.function)(2.0)"])
def test_daemon_threads_do_not_disturb_the_end(work):
    done = ends_well(f"""
    k()
    def loop():
        while True:
            {work}
    threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.2)
    """)
    assert "terminate" not in done.stderr and "FATAL" not in done.stderr


@pytest.mark.parametrize("work", ["qd.kernel(other.function)(2.0)", "k()"])
def test_the_end_keeps_status_output_and_functions(work):
    done = run(f"""
    import atexit
    @atexit.register
    def save():
        k()
        print(right(), end=" ")
    def loop():
        while True:
            {work}
            time.sleep(0.002)
    threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.3)
    print("said", end=" ")
    sys.exit(7)
    """)
    assert done.returncode == 7 and done.stdout.split() == ["said", "True"], done.stdout + done.stderr


@pytest.mark.parametrize("delay", [0.05, 0.1, 0.2, 0.3])
def test_daemon_threads_may_have_just_begun(delay):
    ends_well(f"""
    for work in [right, k, lambda: other(1.0)]:
        threading.Thread(target=work, daemon=True).start()
    time.sleep({delay})
    """)


@on_host
def test_work_that_takes_too_long_ends_with_the_process():
    begin = time.monotonic()
    done = run("""
    @qd.kernel
    def long(n: qd.i64):
        qd.loop_config(serialize=True)
        for i in range(n):
            x[0] = qd.sin(x[0]) + 1.0
    long(1)
    threading.Thread(target=long, args=(1 << 60,), daemon=True).start()
    time.sleep(0.3)
    print("said", end="")
    sys.exit(7)
    """)
    assert done.returncode == 7 and done.stdout == "said", done.stdout + done.stderr
    assert time.monotonic() - begin < 60


def test_a_process_killed_while_it_fills_the_cache_leaves_it_usable(tmp_path):
    program = HEAD + "assert right(); assert right(lambda: other(1.0), 2 * np.linspace(0, 1, N))\n"
    environment = dict(os.environ, COSTATE_CACHE="1", COSTATE_CACHE_DIR=str(tmp_path / "cache"))
    file = tmp_path / "program.py"
    file.write_text(program)
    for iteration in range(6):
        victim = subprocess.Popen([sys.executable, str(file)], env=environment)
        time.sleep(0.6 + 0.15 * iteration)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    ends_well("assert right(); assert right(lambda: other(1.0), 2 * np.linspace(0, 1, N))", cache=tmp_path / "cache")
