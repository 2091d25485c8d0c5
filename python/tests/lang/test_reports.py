"""Reports, statistics, the cache, and options of single kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

import costate as ti

on_gpu = os.environ.get("COSTATE_DEVICE", "cpu") != "cpu"


@ti.kernel
def power(x: ti.types.ndarray(), y: ti.types.ndarray(), n: ti.i32):
    for i in x:
        v = x[i]
        for _ in range(n):
            v = v * ti.sin(v)
        y[i] = v


def arrays(dtype, **options):
    return [ti.ndarray(dtype, shape=3, **options) for _ in range(2)]


def test_a_report_of_a_gradient_needs_no_launch():
    x, y = arrays(ti.f64, needs_grad=True, needs_dual=True)
    x.fill(0.5)
    assert "gradient" not in power.report(x, y, 3)
    ti.reset_statistics()
    report = power.report(x, y, 3, mode="gradient")
    assert "gradient with respect to arguments 1, 2" in report and "saves each time" in report
    assert "tangent" not in report and "tangent with respect to" in power.report(x, y, 3, mode="tangent")
    assert ti.statistics().launches == 0 and y.to_numpy().tolist() == [0, 0, 0]
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match="no mode 'grad'"):
        power.report(x, y, 3, mode="grad")


def test_without_arguments_it_is_about_all_that_has_been_launched():
    assert power.report() == "kernel `power` has not been launched\n"
    for dtype in (ti.f32, ti.f64):
        power(*arrays(dtype), 3)
    report = power.report()
    assert report.count("kernel `power`") == 2 and "f32 array of rank 1" in report and "f64 array of rank 1" in report
    assert ti.ad.report(power) == report


def test_reports_of_gradients_that_read_back_and_of_nothing():
    x, y = (ti.field(ti.f64, shape=2, needs_grad=True) for _ in range(2))

    @ti.kernel
    def twice():
        for i in x:
            y[i] = ti.exp(x[i])
        for i in x:
            x[i] = y[i] * y[i]

    @ti.kernel
    def nothing():
        pass
    assert "gradient with respect" in twice.report(mode="gradient")
    assert nothing.report(mode="gradient") == "kernel `nothing` does nothing\n"


def test_a_report_under_a_tape_is_no_part_of_it():
    x, loss = ti.field(ti.f64, shape=2, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] * x[i]
    x.fill(3)
    with ti.ad.Tape(loss):
        measure()
        assert "gradient with respect" in measure.report(mode="gradient")
    assert x.grad.to_numpy().tolist() == [6, 6]


def test_statistics_say_what_has_been_done():
    x, y = arrays(ti.f64)
    power(x, y, 1)
    ti.reset_statistics()
    power(x, y, 1)
    x.fill(1)
    y.to_numpy()
    assert str(ti.statistics()).startswith("1 launches, 0 uploads, 1 downloads, 0 copies, 1 fills")


CACHED = """
import costate as ti
ti.init(arch=ti.cpu, offline_cache_file_path={folder!r})
@ti.kernel
def one(x: ti.types.ndarray()):
    for i in x:
        x[i] = 1
one(ti.ndarray(ti.f32, shape=2))
seen = ti.cache_statistics()
print(seen.compiled, seen.loaded, seen.bytes > 0, seen.folder)
print(seen)
if {clear}:
    ti.clear_cache()
    print(ti.cache_statistics().bytes)
"""


def test_the_cache_tells_and_is_cleared(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COSTATE_CACHE")}

    def run(clear):
        script = tmp_path / "program.py"
        script.write_text(CACHED.format(folder=str(tmp_path / "cache"), clear=clear))
        return subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True).stdout.split("\n")
    assert run(False)[0] == f"1 0 True {tmp_path}/cache"
    again = run(True)
    assert again[0] == f"0 1 True {tmp_path}/cache"
    assert again[1].startswith("1 loaded, 0 compiled; ") and again[1].endswith(f" bytes in {tmp_path}/cache")
    assert again[2] == "0"
    assert run(False)[0].startswith("1 0")


def test_a_kernel_has_options_of_its_own():
    x = ti.field(ti.f64, shape=3)
    at = ti.field(ti.i32, shape=())

    @ti.kernel(debug=True)
    def checked():
        for i in range(1):
            x[at[None]] = 1.0

    @ti.kernel(find_nan=True)
    def finite():
        for i in x:
            x[i] = x[i] / x[i]
    checked()
    at[None] = 7
    with pytest.raises(ti.OutOfRange):
        checked()
    x.fill(0)
    with pytest.raises(ti.NotFinite):
        finite()
        ti.sync()


def test_it_may_be_without_what_init_says():
    ti.init(arch=ti.cpu, find_nan=True)
    x = ti.field(ti.f32, shape=3)

    @ti.kernel(find_nan=False)
    def nan():
        for i in x:
            x[i] = x[i] / x[i]
    nan()
    ti.sync()
    assert np.isnan(x[0])


@pytest.mark.skipif(on_gpu, reason="there the budget is that of the device")
def test_a_kernel_has_a_budget_for_its_tapes():
    def size(**options):
        x, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(2))

        @ti.kernel(lanes=1, **options)
        def iterate():
            for i in x:
                v = x[i]
                for t in range(100_000):
                    v = v * ti.sin(v) + 0.7
                y[i] = v
        x.fill(0.5)
        iterate()
        y.grad.fill(1)
        iterate.grad()
        return x.grad[0], "runs again from checkpoints" in iterate.report()
    plain, cut = size(), size(tape_budget="64KiB")
    assert plain[0] == cut[0] and (plain[1], cut[1]) == (False, True)


@pytest.mark.parametrize("option", [dict(lanes=3), dict(tape_budget="many"), dict(debug=2)])
def test_options_of_kernels_are_checked(option):
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match=f"`{next(iter(option))}` of kernel `one`"):
        @ti.kernel(**option)
        def one():
            pass
