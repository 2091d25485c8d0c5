"""How far long work has come: bars on a terminal, and none elsewhere unless they are asked for."""

import os
import pty
import re
import subprocess
import sys
import threading

import pytest

import costate as ti
from costate.lang.base import progress

pytestmark = pytest.mark.host

PROGRAM = """
import sys
import costate as ti
from costate.lang.base import progress
progress.DELAY = {delay}
ti.init(arch=ti.cpu, default_fp=ti.f64, offline_cache=False{options})
x = ti.field(ti.f64, shape=8, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)

@ti.kernel
def halve():
    for i in x:
        x[i] = 0.5 * x[i]

@ti.kernel
def measure():
    for i in x:
        loss[None] += x[i] * x[i]

with ti.ad.Tape(loss, snapshots=3{tape}) as tape:
    for _ in tape.steps(50):
        halve()
    measure()
print("done", x.grad[0])
"""


@pytest.fixture
def run(tmp_path):
    """What a program prints on a terminal of 80 columns, or in a pipe, and there as errors."""
    def process(terminal=False, tqdm=True, delay=0, options="", tape=""):
        script = tmp_path / "program.py"
        script.write_text(PROGRAM.format(delay=delay, options=options, tape=tape))
        environment = dict(os.environ)
        if not tqdm:
            (tmp_path / "tqdm.py").write_text("raise ImportError")
            environment["PYTHONPATH"] = f"{tmp_path}:{environment.get('PYTHONPATH', '')}"
        if not terminal:
            done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout, done.stderr
        master, slave = pty.openpty()
        subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=slave, check=True)
        child = subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, stderr=slave, text=True)
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 65536):
                shown += part
        except OSError:     # the end of a terminal
            pass
        out = child.communicate()[0]
        assert child.returncode == 0, shown
        return out, shown.decode()
    return process


@pytest.mark.parametrize("tqdm", [True, False])
def test_a_terminal_sees_what_is_compiled_and_how_much_is_reversed(run, tqdm):
    out, shown = run(terminal=True, tqdm=tqdm)
    assert out.startswith("done")
    assert re.search(r"compiling kernels: \d+ done.*halve", shown), shown
    assert "51 of 51 steps" in shown
    last = shown.rstrip("\r\n").split("\r")[-1]
    assert last.lstrip("\x1b[K").startswith("backward"), repr(last)   # the line of kernels has vanished


def test_short_work_shows_nothing_on_a_terminal(run):
    assert run(terminal=True, delay=60)[1] == ""


def test_a_pipe_gets_nothing(run):
    assert run()[1] == ""


@pytest.mark.parametrize("how", [dict(options=", progress=True"), dict(tape=", progress=True")])
def test_a_pipe_gets_what_is_asked_for(run, how):
    shown = run(delay=60, **how)[1]
    assert "51 of 51 steps" in shown
    assert ("compiling kernels" in shown) == ("options" in how)


def test_a_terminal_may_be_left_alone(run):
    assert run(terminal=True, options=", progress=False")[1] == ""


def test_a_tape_may_say_something_else_than_init(run):
    shown = run(options=", progress=True", tape=", progress=False")[1]
    assert "compiling kernels" in shown and "steps" not in shown


def test_the_option_is_a_truth_value():
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="`progress`"):
        ti.init(arch=ti.cpu, progress="yes")


def test_a_bar_ends_with_an_error(capsys):
    with pytest.raises(ValueError):
        with progress.bar("work", "pieces", True) as bar:
            bar(1, 3)
            raise ValueError
    assert capsys.readouterr().err.endswith("\n")


def test_a_long_compilation_shows_itself_while_it_lasts(monkeypatch):
    shown = threading.Event()
    watch = progress.Compilations()
    monkeypatch.setattr(progress, "DELAY", 0.01)
    monkeypatch.setattr(progress, "is_wanted", lambda option=None: True)
    monkeypatch.setattr(watch, "_show", shown.set)
    watch("long", True)
    assert shown.wait(10)
    watch("long", False)
    assert watch.count == 1 and not watch.running and watch.timer is None
