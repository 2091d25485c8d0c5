"""Budgets for tapes on any device: bits of a gradient that saves all, within the memory that was granted."""

import math

import numpy as np
import pytest

import costate as ti
from costate import _core

ELEMENTS = 70
STARTS = np.random.default_rng(7).uniform(-1.2, 1.2, ELEMENTS)
COUNTS = np.array([(37 * i) % 61 for i in range(ELEMENTS)], dtype=np.int32)
ON_GPU = _core.Device.best().name != "cpu"
#: A CPU cuts no loop of a few hundred iterations; longer ones are those of test_loop_checkpoints.py.
BUDGETS = [45_000, "150KB", "1MB", "1GB"] if ON_GPU else ["1MB", "1GB"]
on_gpu = pytest.mark.skipif(not ON_GPU, reason="what the tapes of all threads take")


def fixed(x, n, y):
    for i in x:
        v = x[i]
        for t in range(200):
            v = v * ti.sin(v) + 0.3 * v + 0.5
        y[i] = v


def ragged(x, n, y):
    for i in x:
        v = x[i]
        for t in range(3 * n[i]):
            v = v * ti.cos(v) + 0.1 * v + 0.2
        y[i] = v


def branches(x, n, y):
    for i in x:
        v = x[i]
        for t in range(3 * n[i]):
            if v > 0.5:
                v = ti.exp(-v) * ti.sin(3.0 * v)
            elif t % 2 == 0:
                v = v * ti.cos(v)
            else:
                v += 0.3
        y[i] = v * v


def nested(x, n, y):
    for i in x:
        v = x[i]
        for t in range(n[i]):
            u = v
            for j in range(9):
                u = ti.sin(u) + 0.1 * v
            v = 0.5 * u + 0.1 * v
        y[i] = v


def ragged_nest(x, n, y):
    for i in x:
        v = x[i]
        for t in range(n[i]):
            u = v
            for j in range(t % 6):
                u = ti.sin(u) + 0.1 * v
            v = 0.5 * u + 0.1 * v
        y[i] = v


def long_nest(x, n, y):
    for i in x:
        v = x[i]
        for t in range(n[i] // 8):
            u = v
            for j in range(60 + t % 7):
                u = u + 0.62 + 0.1 * ti.sin(3.0 * u + v)
            v = 0.5 * u + 0.1 * v
        y[i] = v


def waits(x, n, y):
    for i in x:
        v, t = x[i], 0
        while t < 3 * n[i] and v < 3.0:
            v = 0.9 * v + ti.sin(v) * 0.2 + 0.05
            t += 1
        y[i] = v + 0.01 * t * v


def arrays(x, n, y):
    for i in x:
        a = ti.Vector([x[i], 0.2, 0.3, 0.4, 0.5])
        for t in range(2 * n[i]):
            a[t % 5] = a[(t + 2) % 5] * ti.sin(a[(t + 3) % 5]) + 0.1 * a[t % 5]
        y[i] = a[0] + 2 * a[1] + 3 * a[2] + 4 * a[3] + a[4]


def two_ranges(x, n, y):
    for i in x:
        v = x[i]
        for t in range(100):
            v = v * ti.sin(v) + 0.4
        y[i] = v
    for i in x:
        v = x[i]
        for t in range(n[i]):
            v = ti.cos(v) + 0.1 * v
        y[i] += v


def several_loops(x, n, y):
    for i in x:
        v = x[i]
        for t in range(150):
            v = v + 0.62 + 0.1 * ti.sin(3.0 * v)
        w = v
        for t in range(2 * n[i]):
            w = w + 0.3 + 0.1 * ti.sin(v)
        for t in range(40):
            v = v + 0.1 * ti.sin(v + w)
        y[i] = v + w


def serial(x, n, y):
    ti.loop_config(serialize=True)
    for i in range(5):
        v = x[i]
        for t in range(100 * (i + 1)):
            v = v * ti.sin(v) + 0.3 * v + 0.5
        y[i] = v


def serial_carried(x, n, y):
    v = x[0]
    ti.loop_config(serialize=True)
    for t in range(600):
        v = v * ti.sin(v) + 0.3 * x[1] + 0.5
    y[0] = v


def serial_around_ranges(x, n, y):
    ti.loop_config(serialize=True)
    for s in range(3):
        for i in range(20):
            v = x[i] * (1 + s)
            for t in range(50 + 10 * s):
                v = v * ti.sin(v) + 0.4
            y[i] += v


def searches(x, n, y):
    for i in x:
        v = x[i]
        for t in range(n[i] // 4):
            u, s = v, 0
            while u * u < 4.0 + t % 3 and s < 40:
                u = 1.05 * u + 0.1 * ti.cos(u) + 0.05
                s += 1
            v = 0.3 * ti.sin(u) + 0.2 * v
        y[i] = v


def open_nest(x, n, y):
    for i in x:
        v, t = x[i], 0
        while t < n[i] and v < 3.0:
            u = v
            if t % 3 != 1:
                for j in range(n[i] % (t + 5)):
                    u = ti.sin(u) + 0.1 * v
            s = 0
            while u < 0.9 and s < 20:
                for j in range(s % 3):
                    u = 0.9 * u + 0.1 * ti.cos(u)
                u += 0.1 * ti.cos(v)
                s += 1
            v = 0.5 * u + 0.1 * v
            t += 1
        y[i] = v


def breaks(x, n, y):
    for i in x:
        v = x[i]
        for t in range(4 * n[i]):
            v = 0.98 * v + 0.05 * ti.sin(v) + 0.02
            if v > 2.0:
                break
            for j in range(t % 5):
                if v > 1.0 + 0.1 * j:
                    break
                v += 0.01 * ti.cos(3.0 * v)
        y[i] = v


def state_of_searches(x, n, y):
    for i in x:
        a = ti.Vector([x[i], 0.2, 0.3])
        b = ti.Vector([0.4, 0.5 * x[i]])
        for t in range(n[i]):
            for j in range(t % 7):
                a[j % 3] = a[(j + 1) % 3] * ti.sin(a[(t + 2) % 3]) + 0.1 * b[t % 2]
        y[i] = a[0] + 2 * a[1] + 3 * a[2]


def searches_of_results(x, n, y):
    for i in range(35):
        y[i] = 1.5 + ti.sin(x[i])
    for i in range(35):
        v, t = 0.1 * x[i + 35], 0
        while v < y[i] and t < 2 * n[i]:
            v = 1.01 * v + 0.02 * ti.cos(v)
            t += 1
        y[i + 35] = v * x[i]


def serial_searches(x, n, y):
    v = x[0]
    ti.loop_config(serialize=True)
    for t in range(90):
        u, s = v, 0
        while u < 1.5 and s < t % 11:
            u = u * ti.cos(u) + 0.5 * x[1]
            s += 1
        v = 0.5 * u + 0.1
    y[0] = v


KERNELS = [fixed, ragged, branches, nested, ragged_nest, long_nest, waits, arrays, two_ranges, several_loops, serial,
           serial_carried, serial_around_ranges, searches, open_nest, breaks, state_of_searches, searches_of_results,
           serial_searches]
#: Loops that are cut as they run have one level.
LEAST = {breaks: 90_000, state_of_searches: 90_000}


def annotated(body):
    body.__annotations__ = {name: ti.template() for name in "xny"}
    return body


def prepare(body, dtype, tape_budget=None, **options):
    ti.init(arch=ti.cpu, default_fp=dtype, **({"tape_budget": tape_budget} if tape_budget else {}), **options)
    x, y = (ti.field(dtype, shape=ELEMENTS, needs_grad=True, needs_dual=True) for _ in range(2))
    n = ti.field(ti.i32, shape=ELEMENTS)
    x.from_numpy(STARTS)
    n.from_numpy(COUNTS)
    return ti.kernel(annotated(body)), x, n, y


def gradient(body, dtype=ti.f64, launches=2, **options):
    """Of the last of several launches: those after the first keep what it has counted."""
    run, x, n, y = prepare(body, dtype, **options)
    run(x, n, y)
    for _ in range(launches):
        x.grad.fill(0)
        y.grad.fill(1)
        run.grad(x, n, y)
    return x.grad.to_numpy(), run.report()


def bytes_of(report, what):
    for line in report.splitlines():
        if what in line:
            number, unit = line.split(":")[1].split()[:2]
            return float(number) * {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    return 0


def number_of(budget):
    return int(budget) if isinstance(budget, int) else int(budget[:-2]) * {"KB": 10**3, "MB": 10**6, "GB": 10**9}[budget[-2:]]


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"deterministic": True}], ids=["plain", "debug", "deterministic"])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_bits(body, dtype, options):
    """Debug kernels have no tiles on a GPU."""
    whole, _ = gradient(body, dtype, **options)
    assert np.any(whole != 0)
    for budget in BUDGETS:
        if number_of(budget) < LEAST.get(body, 0):
            continue
        found, report = gradient(body, dtype, tape_budget=budget, **options)
        assert np.array_equal(found, whole), budget
        if ON_GPU:
            assert bytes_of(report, "all tapes of the last launch") <= 1.001 * number_of(budget)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("body", KERNELS, ids=lambda body: body.__name__)
def test_tangents_agree(body, debug):
    """Not with ourselves: forward mode saves nothing."""
    found, _ = gradient(body, tape_budget=LEAST.get(body, BUDGETS[0]), debug=debug)
    run, x, n, y = prepare(body, ti.f64)
    for k in (0, 1, 4, 13):
        seed = np.zeros(ELEMENTS)
        seed[k] = 1
        y.fill(0)
        with ti.ad.FwdMode(loss=y, param=x, seed=seed.tolist()):
            run(x, n, y)
        assert math.isclose(y.dual.to_numpy().sum(), found[k], rel_tol=1e-9, abs_tol=1e-9), k


@on_gpu
@pytest.mark.parametrize("debug", [False, True])
def test_a_closed_form(debug):
    """v = 0.999 v + t: the derivative by the start is a power."""
    ti.init(arch=ti.cpu, default_fp=ti.f64, tape_budget=40_000, debug=debug)
    x, y = (ti.field(ti.f64, shape=3, needs_grad=True) for _ in range(2))

    @ti.kernel
    def run():
        for i in x:
            v = x[i]
            for t in range(2000):
                v = ti.sqrt(v * v * 0.998)
            y[i] = v

    x.fill(2.0)
    run()
    y.grad.fill(1)
    run.grad()
    assert np.allclose(x.grad.to_numpy(), math.sqrt(0.998) ** 2000, rtol=1e-11)


@on_gpu
def test_what_is_cut_says_so():
    _, report = gradient(fixed, debug=True, tape_budget=60_000)
    assert "within the tape budget" in report
    assert "runs again from checkpoints, as many as the tape budget asks for" in report


@on_gpu
def test_work_items_run_in_batches_first():
    """400 bytes and more for each of 70 work items do not fit at a time, those of 32 do: nothing is cut."""
    _, report = gradient(fixed, debug=True, tape_budget=200_000)
    assert "within the tape budget" not in report
    assert 0 < bytes_of(report, "all tapes of the last launch") <= 200_000


@on_gpu
def test_too_little_is_an_error_with_numbers():
    run, x, n, y = prepare(fixed, ti.f64, debug=True, tape_budget=1000)
    run(x, n, y)
    y.grad.fill(1)
    x.grad.fill(0)
    with pytest.raises(_core.OutOfMemory, match=r"test_tape_budgets.py:\d+.*do not fit into the tape budget of 1000 bytes: "
                                                r"32 work items of the range need .* KiB"):
        run.grad(x, n, y)
    assert not np.any(x.grad.to_numpy()) and np.all(y.grad.to_numpy() == 1)   # nothing has changed


@on_gpu
def test_the_budget_of_a_kernel_counts():
    whole, _ = gradient(fixed, debug=True)
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    x, y = (ti.field(ti.f64, shape=ELEMENTS, needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, shape=ELEMENTS)
    x.from_numpy(STARTS)
    reports = []
    for budget in ("60KB", "1GB", "60KB"):
        run = ti.kernel(tape_budget=budget)(annotated(fixed))
        run(x, n, y)
        x.grad.fill(0)
        y.grad.fill(1)
        run.grad(x, n, y)
        assert np.array_equal(x.grad.to_numpy(), whole)
        reports.append(run.report())
    assert ["within the tape budget" in report for report in reports] == [True, False, True]


@on_gpu
def test_kernels_that_print_are_measured(capfd):
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    x, y = (ti.field(ti.f64, shape=3, needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, shape=3)
    n.fill(2)

    @ti.kernel
    def run():
        for i in x:
            v = x[i]
            for t in range(n[i]):
                if n[i] * 2000000000 < t:
                    v = v * v
                v = v * ti.sin(v)
            y[i] = v

    x.fill(0.5)
    y.grad.fill(1)
    run.grad(initial_state=True)
    ti.sync()
    assert "overflow detected" in capfd.readouterr().out


@on_gpu
def test_counts_that_change_are_counted_again():
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True, tape_budget=60_000)
    x, y = (ti.field(ti.f64, shape=ELEMENTS, needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, shape=ELEMENTS)
    x.from_numpy(STARTS)
    run = ti.kernel(annotated(ragged))

    def launch(counts):
        n.from_numpy(counts)
        run(x, n, y)
        x.grad.fill(0)
        y.grad.fill(1)
        run.grad(x, n, y)
        return x.grad.to_numpy()

    found = [launch(k * COUNTS) for k in (1, 3, 2, 1)]
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    x, y = (ti.field(ti.f64, shape=ELEMENTS, needs_grad=True) for _ in range(2))
    n = ti.field(ti.i32, shape=ELEMENTS)
    x.from_numpy(STARTS)
    run = ti.kernel(annotated(ragged))
    for k, one in zip((1, 3, 2, 1), found):
        assert np.array_equal(one, launch(k * COUNTS)), k


@pytest.mark.parametrize("kind", ["serial", "around", "in_nest"])
@pytest.mark.parametrize("checkpoints", [2, 7, 50])
def test_serial_loops_with_checkpoints(kind, checkpoints):
    def run_with(k):
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        x, y = (ti.field(ti.f64, shape=8, needs_grad=True) for _ in range(2))
        n = ti.field(ti.i32, shape=())
        n[None] = 60
        x.from_numpy(STARTS[:8])

        @ti.kernel
        def run():
            v = x[0]
            if ti.static(kind == "serial"):
                if ti.static(k):
                    ti.loop_config(serialize=True, checkpoints=k)
                else:
                    ti.loop_config(serialize=True)
                for t in range(n[None]):
                    v = v * ti.sin(v) + 0.4 * x[1]
                y[0] = v
            elif ti.static(kind == "around"):
                ti.loop_config(serialize=True)
                for s in range(3):
                    w = x[s]
                    if ti.static(k):
                        ti.loop_config(checkpoints=k)
                    for t in range(n[None] + s):
                        w = w * ti.sin(w) + 0.4
                    for i in x:
                        y[i] += w * x[i]
            else:
                if ti.static(k):
                    ti.loop_config(serialize=True, checkpoints=k)
                else:
                    ti.loop_config(serialize=True)
                for s in range(9):
                    u = v
                    for t in range(s % 4):
                        u = ti.sin(u) * x[2] + v
                    v = 0.5 * u
                y[0] = v

        run()
        y.grad.fill(1)
        run.grad()
        return x.grad.to_numpy()
    assert np.array_equal(run_with(checkpoints), run_with(0))


def test_copies_of_arrays_come_to_the_code_that_saves_less():
    """It asks for them in another order: that of its own loads."""
    def found(budget):
        ti.init(tape_budget=budget)
        array = ti.types.ndarray()

        @ti.kernel
        def k(x: array, y: array, out: array):
            ti.loop_config(serialize=True)
            for _ in range(1):
                a = 1.0
                while a > 0.01:
                    for j in range(3):
                        out[0] += ti.sin(x[j] * a) * ti.exp(x[j])
                    a = a * 0.5
            for i in range(4):
                y[i] = y[i] * y[i] * y[i]
            for i in range(4):
                x[i] = 0.0

        x, y, out = (ti.ndarray(ti.f64, n, needs_grad=True) for n in (4, 4, 1))
        x.from_numpy(STARTS[:4])
        y.from_numpy(STARTS[4:8])
        for each in (x, y, out):
            each.grad.fill(1.0)
        k.grad(x, y, out, initial_state=True)
        return x.grad.to_numpy(), y.grad.to_numpy()

    v, w = STARTS[:3], STARTS[4:8]
    a, slopes = 1.0, np.zeros(3)
    while a > 0.01:
        slopes += np.exp(v) * (np.sin(v * a) + a * np.cos(v * a))
        a *= 0.5
    for budget in ("1MB", 300, 200, 160, 100):
        try:
            dx, dy = found(budget)
        except ti.OutOfMemory:
            assert budget == 100
            continue
        np.testing.assert_allclose(dx, [*slopes, 0.0], rtol=1e-12)
        np.testing.assert_allclose(dy, 3 * w * w, rtol=1e-12)
