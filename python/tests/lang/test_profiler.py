"""What a program spends: the table, and the file of trace events."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import costate as ti
from costate import profiler


@pytest.fixture(params=["cpu", "simt"])
def program(request, monkeypatch):
    """A loop and its gradient on a device; returns its name."""
    monkeypatch.delenv("COSTATE_DEVICE", raising=False)
    ti.init(arch=request.param, default_fp=ti.f64, offline_cache=False)
    x = ti.field(ti.f64, shape=64, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] + 0.1 * ti.sin(x[i])

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] * x[i]

    def run():
        x.fill(0.5)
        with profiler.span("forwards \"and\" back"), ti.ad.Tape(loss):
            for _ in range(3):
                step()
            measure()
        ti.sync()
        return x.grad.to_numpy()
    run.device = request.param
    return run


def events_of(path):
    """What the format asks for, of all events; returns them by row, in the order of their begins."""
    rows = defaultdict(list)
    for event in json.loads(Path(path).read_text()):
        assert event["ph"] in ("X", "M") and isinstance(event["name"], str)
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0 and isinstance(event["args"], dict)
            rows[event["pid"], event["tid"]].append(event)
    for row in rows.values():
        row.sort(key=lambda event: (event["ts"], -event["dur"]))
    return rows


def end(event):
    return round(event["ts"] + event["dur"], 3)


def check_nesting(row):
    """Spans of a row contain each other or are apart."""
    around = []
    for event in row:
        while around and end(around[-1]) <= event["ts"]:
            around.pop()
        assert not around or end(event) <= end(around[-1]), (around[-1], event)
        around.append(event)


def test_the_file_has_rows_of_spans_in_each_other(program, tmp_path):
    with profiler.Profile(tmp_path / "steps.json"):
        program()
    rows = events_of(tmp_path / "steps.json")
    for row in rows.values():
        check_nesting(row)
    assert len(rows) == (1 if program.device == "cpu" else 2)
    host = rows[1, 1]
    step = [event for event in host if event["cat"] == "launch" and event["name"] == "step"]
    assert len(step) == 3
    assert step[0]["args"]["source"].split(":")[-2].endswith("test_profiler.py")
    (span,) = [event for event in host if event["name"] == "forwards \"and\" back"]
    assert all(span["ts"] <= event["ts"] and end(event) <= end(span) for event in step)
    (back,) = [event for event in host if event["name"] == "backward"]
    assert sum(back["ts"] <= event["ts"] <= end(back) for event in host if event["name"] == "gradient of step"
               and event["cat"] == "launch") == 3
    assert {"compile step", "compile gradient of step", "trace step", "fill", "download"} <= {e["name"] for e in host}


def test_parts_of_launches_have_their_lines(program, tmp_path):
    with profiler.Profile(tmp_path / "steps.json"):
        program()
    kind = "range" if program.device == "cpu" else "device"
    parts = {event["args"].get("source", "") for row in events_of(tmp_path / "steps.json").values() for event in row
             if event["cat"] == kind and event["name"] == "step"}
    lines = Path(__file__).read_text().splitlines()
    assert {lines[int(part.split(":")[-1]) - 1].strip() for part in parts} == {"for i in x:"}


def test_without_a_profile_nothing_changes(program):
    with profiler.Profile():
        timed = program()
    assert (program() == timed).all()


def test_the_table_names_the_longest_first(program):
    with profiler.Profile() as profile:
        program()
    entries = profile.entries()
    assert [one.seconds for one in entries] == sorted((one.seconds for one in entries), reverse=True)
    assert all(one.least <= one.seconds / one.count <= one.most for one in entries)
    assert "gradient of step (" in profile.report() and "test_profiler.py:" in profile.report()


def test_a_file_that_cannot_be_written_is_named():
    with pytest.raises(ti.BadFile, match="nowhere/steps.json"):
        profiler.Profile("nowhere/steps.json")


def test_the_functions_of_quadrants_read_the_profile_of_init(capfd):
    with pytest.raises(RuntimeError, match="kernel_profiler=True"):
        profiler.print_kernel_profiler_info()
    ti.init(arch=ti.cpu, kernel_profiler=True)
    x = ti.field(ti.f32, shape=8)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    for _ in range(5):
        fill()
    found = profiler.query_kernel_profiler_info("fill")
    assert found.counter == 5 and 0 < found.min <= found.avg <= found.max
    assert profiler.get_kernel_profiler_total_time() >= 1e-3 * 5 * found.min
    profiler.print_kernel_profiler_info()
    assert " fill (" in capfd.readouterr().out
    profiler.clear_kernel_profiler_info()
    assert profiler.query_kernel_profiler_info("fill").counter == 0
    profiler.print_memory_profiler_info()
    assert "bytes" in capfd.readouterr().out


def test_the_environment_names_a_file_for_a_whole_program(tmp_path):
    program = "import costate as ti\nti.init(arch=ti.cpu)\nx = ti.field(ti.f32, shape=8)\nx.fill(1)\nprint(x[3])\n"
    (tmp_path / "program.py").write_text(program)
    subprocess.run([sys.executable, tmp_path / "program.py"], check=True,
                   env=dict(os.environ, COSTATE_PROFILE=str(tmp_path / "all.json")))
    assert events_of(tmp_path / "all.json")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes of that kind")
def test_a_fork_leaves_the_file_to_its_parent(tmp_path):
    file = tmp_path / "steps.json"
    with profiler.Profile(file) as profile:
        with profiler.span("before"):
            pass
        child = os.fork()
        if child == 0:
            with profiler.span("of the child"):
                pass
            profile.end()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with profiler.span("after"):
            pass
    (row,) = events_of(file).values()
    assert [event["name"] for event in row] == ["before", "after"]
