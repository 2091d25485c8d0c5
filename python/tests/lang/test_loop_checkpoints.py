"""Loops whose gradients run them again from checkpoints: the bits are those of a gradient that saves all."""

import math
import os

import numpy as np
import pytest

import costate as ti
from costate import _core

STARTS = np.array([0.3, -0.8, 1.2, 0.05, -0.4, 0.9, 2.0])
COUNTS = np.array([0, 1, 2, 3, 5, 40, 101], dtype=np.int32)
WEIGHTS = np.array([0.3, -0.2, 0.15])
NUMBERS = [2, 3, 7, 1000]


def recurrence(x, w, n, y, k):
    for i in x:
        v = x[i]
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            v = v * ti.sin(v) + w[t % 3] * v + 0.7 * w[0]
        y[i] = v


def branches(x, w, n, y, k):
    for i in x:
        v = x[i]
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            if v > 0.5:
                v = ti.exp(-v) + w[1]
            elif t % 2 == 0:
                v = v * ti.cos(v)
            else:
                v += w[t % 3]
        y[i] = v * v


def stops(x, w, n, y, k):
    for i in x:
        v = x[i]
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            v = v * ti.cos(v) + 0.2 * w[t % 3] + 0.1
            if t > 30 and v > 0.2:
                break
        y[i] = v


def waits(x, w, n, y, k):
    for i in x:
        v = x[i]
        t = 0
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        while t < n[i] and v < 3.0:
            v = 0.9 * v + ti.sin(v) * w[t % 3] + 0.05
            t += 1
        y[i] = v + 0.01 * t * v


def waits_in_waits(x, w, n, y, k):
    for i in x:
        a = ti.Vector([x[i], 0.3, -0.2])
        b = ti.Vector([0.2, 0.1])
        b[n[i] % 2] = x[i]
        t = 0
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        while t < n[i]:
            s, u = 0, a[t % 3]
            while s < t % 5 and u < 2.0:
                u = ti.sin(u) + w[s % 3] * b[s % 2]
                a[s % 3] = 0.5 * a[s % 3] + 0.1 * u
                s += 1
            a[(t + 1) % 3] = 0.7 * u + 0.1 * a[t % 3]
            t += 1
        y[i] = a[0] + 2 * a[1] + 3 * a[2]


def nested(x, w, n, y, k):
    for i in x:
        v = x[i]
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            u = v
            for j in range(t % 6):
                u = ti.sin(u) + w[j % 3]
            v = 0.5 * u + 0.1 * v
        y[i] = v


def twice(x, w, n, y, k):
    for i in x:
        v = x[i]
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            u = v
            if ti.static(k):
                ti.loop_config(checkpoints=3)
            for j in range(9 + t % 4):
                u = ti.sin(u) + w[j % 3]
            v = 0.5 * u + 0.1 * v
        y[i] = v


def inner(x, w, n, y, k):
    for i in x:
        v = x[i]
        for t in range(n[i] // 8):
            u = ti.Vector([v, 0.1, 0.2])
            if ti.static(k):
                ti.loop_config(checkpoints=k)
            for j in range(9 + t % 4):
                u[j % 3] = ti.sin(u[(j + 1) % 3]) + w[j % 3]
            v = 0.5 * u[0] + 0.1 * v * u[2]
        y[i] = v


def arrays(x, w, n, y, k):
    for i in x:
        a = ti.Vector([x[i], 0.2, 0.3, 0.4, 0.5])
        b = ti.Vector([0.1, 0.2, 0.4])
        b[n[i] % 3] = x[i]
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            a[t % 5] = a[(t + 2) % 5] * ti.sin(a[(t + 3) % 5]) + b[t % 3] * w[0]
        b[0] = a[0]
        y[i] = a[0] + 2 * a[1] + 3 * a[2] + 4 * a[3] + a[4] + b[1] * b[0]


def in_branch(x, w, n, y, k):
    for i in x:
        v = x[i]
        if v > 0.0:
            if ti.static(k):
                ti.loop_config(checkpoints=k)
            for t in range(n[i]):
                v = v * ti.sin(v) + w[t % 3]
            v *= 2
        else:
            v = v * v
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(3, n[i], 2):
            v = ti.cos(v) + 0.01 * t * v
        y[i] = v


def many_values(x, w, n, y, k):
    for i in x:
        p = ti.Vector([x[i], 0.5])
        q = ti.Vector([0.0, 1.0])
        if ti.static(k):
            ti.loop_config(checkpoints=k)
        for t in range(n[i]):
            r = p.norm() + 0.5
            q -= 0.05 * p / (r * r * r)
            p += 0.05 * q * (1.0 + w[t % 3])
        y[i] = p[0] * q[1]


KERNELS = [recurrence, branches, stops, waits, waits_in_waits, nested, twice, inner, arrays, in_branch, many_values]


def gradient(body, k, dtype=ti.f64, times=1, **options):
    ti.init(arch=ti.cpu, default_fp=dtype, **options)
    x, y = (ti.field(dtype, shape=len(STARTS), needs_grad=True) for _ in range(2))
    w = ti.field(dtype, shape=3, needs_grad=True)
    n = ti.field(ti.i32, shape=len(STARTS))
    x.from_numpy(STARTS)
    w.from_numpy(WEIGHTS)
    n.from_numpy(times * COUNTS)
    run = ti.kernel(_annotated(body))
    run(x, w, n, y, k)
    y.grad.fill(1)
    run.grad(x, w, n, y, k)
    return y.to_numpy(), x.grad.to_numpy(), w.grad.to_numpy()


def _annotated(body):
    body.__annotations__ = {name: ti.template() for name in "xwnyk"}
    return body


def check_same(one, other):
    """Sums over work items have the bits of their order, which is not fixed."""
    assert np.array_equal(one[0], other[0], equal_nan=True)
    assert np.array_equal(one[1], other[1], equal_nan=True)
    assert np.allclose(one[2], other[2], rtol=1e-4 if one[2].dtype == np.float32 else 1e-12, equal_nan=True)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_bits_are_those_without(body, dtype):
    whole = gradient(body, 0, dtype)
    for k in NUMBERS:
        check_same(gradient(body, k, dtype), whole)


@pytest.mark.parametrize("lanes", [1, 2, 8, 16])
@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_bits_with_lanes(body, lanes, monkeypatch):
    whole = gradient(body, 0)
    monkeypatch.setenv("COSTATE_LANES", str(lanes))
    check_same(gradient(body, 3), whole)


@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_sums_over_work_items_if_deterministic(body):
    whole = gradient(body, 0, deterministic=True)
    for k in NUMBERS:
        for one, other in zip(gradient(body, k, deterministic=True), whole):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_differences(body):
    """Not with ourselves: central differences of the primal in f64."""
    _, found, _ = gradient(body, 3)
    x, y = (ti.field(ti.f64, shape=len(STARTS)) for _ in range(2))
    w, n = ti.field(ti.f64, shape=3), ti.field(ti.i32, shape=len(STARTS))
    w.from_numpy(WEIGHTS)
    n.from_numpy(COUNTS)
    run = ti.kernel(_annotated(body))
    h, sides = 1e-6, []
    for sign in (1, -1):
        x.from_numpy(STARTS + sign * h)
        run(x, w, n, y, 3)
        sides.append(y.to_numpy())
    differences = (sides[0] - sides[1]) / (2 * h)
    short = COUNTS < 50   # long ones may be too sensitive for differences
    assert np.allclose(found[short], differences[short], rtol=1e-5, atol=1e-6)


# -- as much as the budget for tapes asks for --------------------------------------------


@pytest.mark.parametrize("lanes", [0, 1, 4])
@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_budgets(body, lanes):
    whole = gradient(body, 0, times=40)
    for budget in (40_000, "300KB", "1GB"):
        check_same(gradient(body, 0, times=40, tape_budget=budget, lanes=lanes), whole)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_budgets_are_of_all_threads_together(threads):
    for dtype in (ti.f32, ti.f64):
        whole = gradient(recurrence, 0, dtype, times=100, cpu_max_num_threads=threads)
        check_same(gradient(recurrence, 0, dtype, times=100, tape_budget=30_000, cpu_max_num_threads=threads), whole)


def recurrence_gradient(n, kind, **options):
    ti.init(arch=ti.cpu, default_fp=ti.f64, **options)
    x, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(2))

    @ti.kernel
    def count():
        for i in x:
            v = x[i]
            for t in range(n):
                v = v * ti.sin(v) + 0.7
            y[i] = v

    @ti.kernel
    def wait():
        for i in x:
            v, t = x[i], 0
            while t < n and v < 9.0:
                v = v * ti.sin(v) + 0.7
                t += 1
            y[i] = v

    @ti.kernel
    def serial():
        v = x[0]
        ti.loop_config(serialize=True)
        for t in range(n):
            v = v * ti.sin(v) + 0.7
        y[0] = v

    run = {"for": count, "while": wait, "serial": serial}[kind]
    x.fill(0.5)
    run()
    for _ in range(2):   # the second launch remembers what has fitted
        x.grad.fill(0)
        y.grad.fill(1)
        run.grad()
    return x.grad.to_numpy(), run.report()


@pytest.mark.parametrize("kind", ["for", "while", "serial"])
def test_a_long_loop_within_little(kind):
    whole, _ = recurrence_gradient(300_000, kind)
    least = 50_000 if _core.Device.best().name == "cpu" else 500_000   # of 32 work items
    for budget in (least, 1_000_000, 4_000_000):
        found, report = recurrence_gradient(300_000, kind, tape_budget=budget)
        assert np.array_equal(found, whole)
        if "within the tape budget" in report:
            assert 0 < _largest_tape_of(report) <= 1.001 * budget   # as printed
            state = 16 if kind == "while" else 8   # with how many iterations a segment had
            assert f"as many as the tape budget asks for, of {state} bytes; an iteration saves 16 bytes" in report


@pytest.mark.parametrize("kind", ["for", "while", "serial"])
def test_several_levels(kind):
    """What one level of checkpoints would take 33 kB for, a work item. With `debug` a GPU has no tiles."""
    on_cpu = _core.Device.best().name == "cpu"
    whole, _ = recurrence_gradient(300_000, kind, debug=not on_cpu)
    for budget in (20_000, 4_000, 1_500):
        budget *= 1 if on_cpu or kind == "serial" else 32
        found, report = recurrence_gradient(300_000, kind, tape_budget=budget, debug=not on_cpu)
        assert np.array_equal(found, whole)
        assert 0 < _largest_tape_of(report) <= 1.001 * budget


@pytest.mark.skipif(_core.Device.best().name != "cpu", reason="takes long elsewhere")
def test_ten_million_steps_within_64_kilobytes():
    """Against the tangent by hand, to which each step adds about as much as any other."""
    n, h = 10_000_000, 1e-7
    ti.init(arch=ti.cpu, default_fp=ti.f64, tape_budget="64kB")
    x, w, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(3))
    tangent = ti.field(ti.f64, shape=())

    @ti.kernel
    def run():
        for i in x:
            v = x[i]
            for t in range(n):
                v += h * ti.sin(v * w[0])
            y[i] = v

    @ti.kernel
    def along():
        v, d = x[0], 0.0
        ti.loop_config(serialize=True)
        for t in range(n):
            d += h * ti.cos(v * w[0]) * (d * w[0] + v)
            v += h * ti.sin(v * w[0])
        tangent[None] = d

    x.fill(0.5)
    w.fill(0.8)
    y.grad.fill(1)
    run.grad()
    along()
    assert np.allclose(w.grad.to_numpy(), tangent[None], rtol=1e-9)
    assert 0 < _largest_tape_of(run.report()) <= 64_064


@pytest.mark.parametrize("budget", [2_000, 3_000, 6_000])
@pytest.mark.parametrize("lanes", [1, 4])
def test_levels_of_state_in_private_arrays(budget, lanes):
    whole = gradient(arrays, 0, times=60, lanes=lanes)
    check_same(gradient(arrays, 0, times=60, tape_budget=lanes * budget, lanes=lanes, cpu_max_num_threads=1), whole)


def test_what_fits_is_not_cut():
    _, report = recurrence_gradient(1000, "for", tape_budget="1MB")
    assert "within the tape budget" not in report


def test_large_gradients_are_measured_first():
    def run(**options):
        ti.init(arch=ti.cpu, default_fp=ti.f64, **options)
        x, y = (ti.field(ti.f64, shape=200_000, needs_grad=True) for _ in range(2))
        loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def iterate():
            for i in x:
                v = x[i]
                for t in range(i % 300):
                    if v > 0.9:
                        v = ti.cos(v)
                    v = v * ti.sin(v) + 0.7
                y[i] = v

        @ti.kernel
        def add():
            for i in y:
                loss[None] += y[i]

        x.from_numpy(np.linspace(0.1, 1, 200_000))
        with ti.ad.Tape(loss):
            iterate()
            add()
        return x.grad.to_numpy()
    whole = run()
    for budget in (20_000, 60_000):
        assert np.array_equal(run(tape_budget=budget), whole)


def test_nests_within_a_budget():
    """An iteration of the outer loop alone does not fit."""
    def run(**options):
        ti.init(arch=ti.cpu, default_fp=ti.f64, **options)
        x, y = (ti.field(ti.f64, shape=2, needs_grad=True) for _ in range(2))
        n = ti.field(ti.i32, shape=())
        n[None] = 500

        @ti.kernel
        def nest():
            for i in x:
                v = x[i]
                for t in range(n[None]):
                    u = v
                    for s in range(n[None] // 2 + t % 7):
                        u = ti.sin(u) + 0.01 * v
                    v = 0.6 * u + 0.5 * ti.cos(v)
                y[i] = v

        x.from_numpy(np.array([0.3, 1.1]))
        nest()
        y.grad.fill(1)
        nest.grad()
        return x.grad.to_numpy()
    whole = run()
    for budget in (20_000, 100_000, 1_000_000):
        assert np.array_equal(run(tape_budget=budget), whole)


def test_state_in_arrays_does_not_fit_and_says_so():
    ti.init(arch=ti.cpu, default_fp=ti.f64, tape_budget=10_000)
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        for i in x:
            for t in range(9000):
                x[i] = ti.sin(x[i])

    @ti.kernel
    def add():
        for i in x:
            loss[None] += x[i]

    x.fill(0.5)
    with pytest.raises(_core.OutOfMemory, match="do not fit into the tape budget"):
        with ti.ad.Tape(loss):
            run()
            add()


@pytest.mark.parametrize("budget", [0, -1, "many", True, "1QB"])
def test_bad_budgets(budget):
    with pytest.raises(TypeError, match="the option `tape_budget` of init is a number of bytes"):
        ti.init(arch=ti.cpu, tape_budget=budget)


def serial_gradient(k, dtype=ti.f64):
    ti.init(arch=ti.cpu, default_fp=dtype)
    x = ti.field(dtype, shape=(), needs_grad=True)
    y = ti.field(dtype, shape=(), needs_grad=True)
    w = ti.field(dtype, shape=3, needs_grad=True)

    @ti.func
    def step(v, t):
        u = v
        for j in range(t % 4):
            u = ti.sin(u) * w[j % 3] + v
        return u * 0.5

    @ti.kernel
    def run():
        v = x[None]
        if ti.static(k):
            ti.loop_config(checkpoints=k, serialize=True)
        else:
            ti.loop_config(serialize=True)
        for t in range(57):
            v = step(v, t) + w[0] * 0.1
        y[None] = v

    x[None] = 0.7
    w.from_numpy(WEIGHTS)
    run()
    y.grad.fill(1)
    run.grad()
    return y.to_numpy(), x.grad.to_numpy(), w.grad.to_numpy()


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
def test_serial_code(dtype):
    whole = serial_gradient(0, dtype)
    for k in NUMBERS:
        for one, other in zip(serial_gradient(k, dtype), whole):
            assert np.array_equal(one, other)


def random_gradient(k):
    ti.init(arch=ti.cpu, default_fp=ti.f64, random_seed=3)
    x, y = (ti.field(ti.f64, shape=4, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def walk():
        for i in x:
            v = x[i]
            if ti.static(k):
                ti.loop_config(checkpoints=k)
            for t in range(60):
                v = v * ti.sin(v + ti.random(ti.f64)) + ti.randn(ti.f64) * v * 0.1
            y[i] = v

    @ti.kernel
    def add():
        for i in y:
            loss[None] += y[i]

    x.from_numpy(STARTS[:4])
    with ti.ad.Tape(loss):
        walk()
        add()
    return y.to_numpy(), x.grad.to_numpy()


def test_random_numbers_repeat():
    whole = random_gradient(0)
    for k in (2, 9):
        for one, other in zip(random_gradient(k), whole):
            assert np.array_equal(one, other)


def test_prints_are_not_repeated(capfd):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(2))

    @ti.kernel
    def run():
        for i in x:
            v = x[i]
            ti.loop_config(checkpoints=2)
            for t in range(4):
                v = v * ti.sin(v)
                print("step", t)
            y[i] = v

    x.fill(1.0)
    run()
    run.grad()
    ti.sync()
    assert capfd.readouterr().out.count("step") == 4


def test_tangents_and_second_derivatives_do_not_mind():
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=2, needs_grad=True, needs_dual=True)
    y = ti.field(ti.f64, shape=2, needs_grad=True, needs_dual=True)

    @ti.kernel
    def run(k: ti.template()):
        for i in x:
            v = x[i]
            if ti.static(k):
                ti.loop_config(checkpoints=k)
            for t in range(20):
                v = v * ti.cos(v) + 0.1
            y[i] = v

    found = []
    for k in (0, 4):
        x.from_numpy(np.array([0.3, 0.9]))
        with ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0]):
            run(k)
        found.append(y.dual.to_numpy())
    assert np.array_equal(*found)


@pytest.mark.skipif(os.environ.get("COSTATE_DEVICE", "cpu") == "cuda", reason="reports of GPUs do not tell their tapes")
def test_one_checkpoint_saves_all_and_many_save_little():
    def tape_bytes(k):
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        x, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(2))

        @ti.kernel
        def run():
            for i in x:
                v = x[i]
                if ti.static(k):
                    ti.loop_config(checkpoints=k)
                for t in range(100000):
                    v = v * ti.sin(v) + 0.7
                y[i] = v

        run.grad()
        return _largest_tape(run)
    whole = tape_bytes(0)
    assert whole >= 1_600_000
    assert tape_bytes(1) == whole
    assert tape_bytes(300) <= whole / 20


def test_loops_of_debug_kernels_are_cut():
    """They have no tiles on a GPU."""
    def tape_bytes(k):
        ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
        x, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(2))

        @ti.kernel
        def run():
            for i in x:
                v = x[i]
                if ti.static(k):
                    ti.loop_config(checkpoints=k)
                for t in range(2000):
                    if v > 0.5:
                        v = ti.sin(v)
                    v = v * v + 0.3
                y[i] = v

        run.grad()
        return _largest_tape(run)
    assert tape_bytes(40) <= tape_bytes(0) / 8


def test_report_tells_which_loops_stay_whole():
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = (ti.field(ti.f64, shape=1, needs_grad=True) for _ in range(2))

    @ti.kernel
    def run():
        for i in x:
            v = x[i]
            ti.loop_config(checkpoints=3)
            for s in range(9):
                ti.loop_config(checkpoints=4)
                for t in range(20):
                    if v > 0.5:
                        v = ti.sin(v)
                    v = v * v + 0.3
            y[i] = v

    run.grad()
    stays = os.environ.get("COSTATE_DEVICE", "cpu") != "cpu"
    assert ("saves all iterations: on a GPU `checkpoints` holds in one loop of a nest" in run.report()) == stays
    assert "runs again from at most 4 checkpoints" in run.report()
    assert ("runs again from at most 3 checkpoints" in run.report()) == (not stays)


def _largest_tape(kernel):
    return _largest_tape_of(kernel.report())


def _largest_tape_of(report):
    for line in report.splitlines():
        if "largest tape" in line:
            number, unit = line.split(":")[1].split()[:2]
            return float(number) * {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[unit]
    return 0


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("number, error", [
    (0, "a loop cannot have 0 checkpoints"), (-3, "a loop cannot have -3 checkpoints"),
    (2.5, "is a number of Python"), (True, "is a number of Python"), ("4", "is a number of Python")])
def test_bad_numbers(number, error):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def run():
        for i in x:
            ti.loop_config(checkpoints=number)
            for t in range(4):
                x[i] += t

    with pytest.raises(ti.QuadrantsCompilationError, match=error):
        run()


def test_not_of_parallel_and_unrolled_loops():
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def parallel():
        ti.loop_config(checkpoints=4)
        for i in x:
            x[i] += 1

    @ti.kernel
    def unrolled():
        for i in x:
            ti.loop_config(checkpoints=4)
            for t in ti.static(range(4)):
                x[i] += t

    @ti.kernel
    def once():
        for i in x:
            ti.loop_config(checkpoints=4)
            for j in ti.grouped(single):
                x[i] += 1

    single = ti.field(ti.f32, shape=())
    with pytest.raises(ti.QuadrantsCompilationError, match="a loop of one iteration has no checkpoints"):
        once()
    with pytest.raises(ti.QuadrantsCompilationError, match="a parallel loop has no checkpoints"):
        parallel()
    with pytest.raises(ti.QuadrantsCompilationError, match="an unrolled loop has no checkpoints"):
        unrolled()


def test_state_in_an_array_is_refused():
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        for i in x:
            ti.loop_config(checkpoints=4)
            for t in range(9):
                x[i] = ti.sin(x[i])

    @ti.kernel
    def add():
        for i in x:
            loss[None] += x[i]

    with pytest.raises(_core.Error, match="cannot run again from checkpoints: it overwrites elements of an array"):
        with ti.ad.Tape(loss):
            run()
            add()


@pytest.mark.skipif(_core.Device.best().name != "cpu", reason="tapes of threads")
@pytest.mark.parametrize("lanes", [None, 1])
@pytest.mark.parametrize("count", [5, 20, 33, 400, 512, 513])
def test_few_iterations_fit_where_many_do(count, lanes):
    """Of lanes, records of a few hundred iterations are larger than the budget, but no iteration is."""
    ti.init(arch=ti.cpu, default_fp=ti.f64, tape_budget=400, cpu_max_num_threads=1)
    x, y = (ti.field(ti.f64, 7, needs_grad=True) for _ in range(2))

    @ti.kernel(lanes=lanes)
    def run():
        for i in x:
            v = x[i]
            for _ in range(count):
                v = v + 0.01 * ti.sin(v)
            y[i] = v

    slopes = []
    for k in range(7):
        v, slope = 0.1 * k, 1.0
        for _ in range(count):
            v, slope = v + 0.01 * math.sin(v), slope * (1 + 0.01 * math.cos(v))
        slopes.append(slope)
    for k in range(7):
        x[k] = 0.1 * k
    y.grad.fill(1.0)
    run.grad()
    assert x.grad.to_numpy().tolist() == pytest.approx(slopes, rel=1e-12)
    assert 0 < _largest_tape(run) <= 400


@pytest.mark.skipif(_core.Device.best().name != "cpu", reason="tapes of threads")
def test_few_iterations_of_large_values_are_divided():
    ti.init(arch=ti.cpu, default_fp=ti.f64, tape_budget=20_000, cpu_max_num_threads=1)
    x, y = (ti.field(ti.f64, 2, needs_grad=True) for _ in range(2))

    @ti.kernel
    def run():
        for i in x:
            m = ti.Matrix([[x[i] * (a + 1) + 0.1 * b for a in range(6)] for b in range(6)])
            for _ in range(32):
                m = 0.05 * (m @ m) + m.transpose() * ti.sin(m[0, 1])
            y[i] = m[2, 3]

    x.fill(0.4)
    y.grad.fill(1.0)
    run.grad()
    assert 0 < _largest_tape(run) <= 20_000
