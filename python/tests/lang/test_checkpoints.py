"""Tapes that take snapshots."""

import itertools
import tempfile

import numpy as np
import pytest

import costate as qd
from costate.ad.tape import bytes_of

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def fresh():
    qd.init(arch=qd.cpu, default_fp=qd.f64, cpu_max_num_threads=1)
    yield
    qd.reset()


class Wave:
    """In place, with two buffers."""

    def __init__(self, n=12):
        self.n = n
        self.speed = qd.field(qd.f64, shape=n, needs_grad=True)
        self.u = qd.field(qd.f64, shape=n, needs_grad=True)
        self.v = qd.field(qd.f64, shape=n, needs_grad=True)
        self.loss = qd.field(qd.f64, shape=(), needs_grad=True)

        @qd.kernel
        def step(a: qd.template(), b: qd.template()):
            for i in a:
                bent = a[(i + 1) % n] - 2 * a[i] + a[(i + n - 1) % n]
                b[i] = 2 * a[i] - b[i] + self.speed[i] ** 2 * qd.sin(bent)

        @qd.kernel
        def measure():
            for i in self.u:
                self.loss[None] += self.u[i] * self.u[i]

        self.step, self.measure = step, measure

    def start(self):
        x = np.arange(self.n)
        self.u.from_numpy(np.sin(x))
        self.v.from_numpy(np.sin(x))
        self.speed.from_numpy(0.3 + 0.01 * x)

    def run(self, steps, told=True, during=None, **options):
        self.start()
        with qd.ad.Tape(self.loss, **options) as tape:
            for t in tape.steps(steps) if told else range(steps):
                if t % 2:
                    self.step(self.v, self.u)
                else:
                    self.step(self.u, self.v)
                if during:
                    during(t)
            self.measure()
        self.tape = tape
        return [f.to_numpy() for f in (self.speed.grad, self.u.grad, self.v.grad, self.u, self.v, self.loss)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other))


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("options", [dict(snapshots=1), dict(snapshots=2, on_host=True),
                                     dict(snapshots=2, folder=tempfile.gettempdir()), dict(snapshots=5), dict(budget="4kB"), dict(budget=10000),
                                     dict(snapshots=3, budget=10000)])
def test_gradients_are_those_of_a_tape_that_saves_all(options, told):
    wave = Wave()
    expected = wave.run(50)
    assert same(wave.run(50, told, **options), expected)


@pytest.mark.parametrize("colours", [True, False])
def test_a_kernel_that_overwrites_what_its_gradient_needs(colours):
    """Heat in a plate in one array: by cells of two colours, or by way of another array within each launch."""
    n, steps = 16, 40
    k, u, v = (qd.field(qd.f64, shape=(n, n), needs_grad=True) for _ in range(3))
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.func
    def bend(a: qd.template(), i, j):
        return (a[qd.max(i - 1, 0), j] + a[qd.min(i + 1, n - 1), j] + a[i, qd.max(j - 1, 0)]
                + a[i, qd.min(j + 1, n - 1)] - 4 * a[i, j])

    @qd.kernel
    def relax(colour: qd.i32):
        for i, j in u:
            if (i + j) % 2 == colour:
                u[i, j] = u[i, j] + k[i, j] * (1 + u[i, j] ** 2) * bend(u, i, j)

    @qd.kernel
    def spread():
        for i, j in u:
            v[i, j] = u[i, j]
        for i, j in u:
            u[i, j] = v[i, j] + k[i, j] * (1 + v[i, j] ** 2) * bend(v, i, j)

    @qd.kernel
    def measure():
        for i, j in u:
            loss[None] += u[i, j] ** 2

    def gradients(**options):
        x = np.linspace(0, 1, n)
        u.from_numpy(np.sin(3 * x)[:, None] * np.cos(2 * x))
        k.from_numpy(0.05 + 0.01 * np.sin(7 * x)[:, None] * np.cos(5 * x))
        with qd.ad.Tape(loss, **options) as tape:
            for t in tape.steps(steps):
                if colours:
                    relax(t % 2)
                else:
                    spread()
            measure()
        if "budget" in options:
            assert tape.report().peak_bytes <= 30_000 < 40 * u.to_numpy().nbytes
        return [f.to_numpy() for f in (k.grad, u.grad, u, loss)]

    expected = gradients()
    for options in (dict(snapshots=3), dict(budget="30kB"), dict(snapshots=2, folder=tempfile.gettempdir())):
        assert same(gradients(**options), expected)


@pytest.mark.filterwarnings("ignore:the gradient of a field is 0 because the host")
def test_host_writes_and_functions_run_again_or_are_kept():
    wave = Wave()
    seen = []

    @qd.ad.no_grad
    def look():
        seen.append(wave.u[0])

    def during(t):
        if t % 5 == 0:
            wave.u[t % wave.n] = 0.5 * t
        if t % 7 == 0:
            wave.v.fill(0.25)
        if t % 9 == 0:
            look()

    expected = wave.run(40, during=during)
    count = len(seen)
    assert same(wave.run(40, during=during, snapshots=3), expected)
    assert len(seen) == 2 * count


def test_arrays_of_numpy_that_steps_read_are_no_part_of_states():
    n, steps = 1000, 60
    u, k = (qd.field(qd.f64, shape=n, needs_grad=True) for _ in range(2))
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def drive(f: qd.types.ndarray(qd.f64, ndim=1)):
        for i in range(n):
            u[i] = qd.sin(u[i]) + k[i] * f[i]

    @qd.kernel
    def measure():
        for i in u:
            loss[None] += u[i] ** 2

    def gradient(**options):
        u.fill(0.3), k.fill(0.2), k.grad.fill(0), loss.fill(0)
        with qd.ad.Tape(loss, **options) as tape:
            for t in tape.steps(steps):
                drive(np.linspace(0, 1, n) + 0.1 * t)
            measure()
        return k.grad.to_numpy(), tape.report().peak_bytes

    expected, everything = gradient()
    found, peak = gradient(snapshots=4)
    assert same([found], [expected])
    assert peak <= (4 + 2) * 8 * n + 100 < everything
    found, peak = gradient(budget=40_000)
    assert same([found], [expected]) and peak <= 40_000


def test_a_gradient_of_the_user_sees_what_its_function_left():
    wave = Wave()

    @qd.ad.grad_replaced
    def scaled():
        wave.step(wave.u, wave.v)

    @qd.ad.grad_for(scaled)
    def scaled_gradient():
        wave.step.grad(wave.u, wave.v)

    def during(t):
        if t % 6 == 0:
            scaled()

    expected = wave.run(20, during=during)
    assert same(wave.run(20, during=during, snapshots=2), expected)
    kept = wave.tape.report().kept
    assert len(kept) == 4 and "scaled" in kept[0].entry and kept[0].bytes > 0


def noisy(**options):
    """A gradient through random numbers."""
    qd.init(arch=qd.cpu, default_fp=qd.f64, random_seed=3, cpu_max_num_threads=1)
    x = qd.field(qd.f64, shape=4, needs_grad=True)
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def noise():
        for i in x:
            x[i] = x[i] * (0.5 + qd.random(qd.f64)) + qd.sin(x[i])

    @qd.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2

    x.fill(1)
    with qd.ad.Tape(loss, **options):
        for _ in range(15):
            noise()
        measure()
    return [f.to_numpy() for f in (x, x.grad, loss)]


def test_random_numbers_are_the_same_again():
    assert same(noisy(snapshots=2), noisy())


def test_launches_are_counted():
    wave = Wave()
    wave.run(2)
    before = qd.statistics().primal_launches
    wave.run(200, snapshots=8)
    assert qd.statistics().primal_launches - before <= 1.05 * 597 + 2    # 3 * 200 - binomial(11, 2) and the loss


def test_the_plan_is_told_before_anything_runs():
    wave = Wave()
    with qd.ad.Tape(wave.loss, snapshots=16) as tape:
        tape.steps(2048)
        assert tape.report().steps_again == 7052 - 2047
        assert "steps      2048, of which `backward` runs 5005 again" in str(tape.report())
        wave.measure()
    assert tape.report().steps == 2048


def test_progress_is_told():
    told = []
    Wave().run(20, snapshots=3, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (21, 21) and told == sorted(told)


def test_a_bar_shows_progress(capsys):
    Wave().run(5, snapshots=3, progress=True)
    assert "6 of 6 steps" in capsys.readouterr().err


def test_len_of_steps():
    tape = qd.ad.Tape(snapshots=2)
    assert len(tape.steps(7)) == 7
    assert list(qd.ad.Tape().steps(3)) == [0, 1, 2]


@pytest.mark.parametrize("text, size", [("2GB", 2 * 10 ** 9), ("512 MiB", 512 << 20), ("1.5g", 3 << 29), (77, 77),
                                        ("10kb", 10000)])
def test_budgets(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("options, text", [(dict(snapshots=0), "0 snapshots"), (dict(snapshots=True), "True snapshots"),
                                           (dict(budget="much"), "'much'"), (dict(budget=0), "budget of 0"),
                                           (dict(budget="3 XB"), "'3 XB'"), (dict(on_host=True), "takes none"),
                                           (dict(folder="/tmp"), "takes none"),
                                           (dict(snapshots=1, folder="/no/such"), "/no/such, which is no folder")])
def test_options_that_make_no_sense(options, text):
    with pytest.raises(qd.errors.BadArgument, match=text):
        qd.ad.Tape(**options)


def test_a_budget_that_is_too_small_names_what_is_needed():
    with pytest.raises(qd.errors.OutOfMemory, match="needs at least .* for one snapshot"):
        Wave().run(5, budget=100)


@pytest.mark.parametrize("marks", ["steps", "step", "steps but the last", "none"])
def test_a_budget_holds(marks):
    """Whatever steps write: what the last one adds, and what several of them take at once, which one alone does not."""
    n, steps = 1000, 24
    x, y = (qd.field(qd.f64, shape=n, needs_grad=True) for _ in range(2))
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def direct():
        for i in x:
            y[i] = qd.cos(x[i])

    @qd.kernel
    def move():
        for i in x:
            x[i] = x[i] + 0.1 * qd.sin(x[i]) * y[i]

    @qd.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2

    def gradient(**options):
        x.from_numpy(np.sin(np.arange(n)))
        with qd.ad.Tape(loss, **options) as tape:
            told = {"steps": steps, "steps but the last": steps - 1}.get(marks, 0)
            marked = tape.steps(told) if told else ()
            for t, _ in zip(range(steps), itertools.chain(marked, itertools.repeat(None))):
                if marks == "step":
                    tape.step()
                direct()
                move()
            measure()
        return [f.to_numpy() for f in (x.grad, x, y, loss)], tape.report().peak_bytes

    expected, _ = gradient()
    fit = 0
    for states in np.arange(2.0, 26.0, 0.75):
        budget = int(states * 8 * n)
        try:
            found, peak = gradient(budget=budget)
        except qd.errors.OutOfMemory:
            continue
        assert same(found, expected) and peak <= budget, (states, peak / 8 / n)
        fit += 1
    assert fit > 20


def test_a_function_of_pytorch_of_many_launches():
    torch = pytest.importorskip("torch")

    @qd.kernel
    def relax(k: qd.types.ndarray(), u: qd.types.ndarray()):
        for i in range(u.shape[0]):
            u[i] = u[i] + k[i] * qd.sin(u[i])

    def gradients(**options):
        function = qd.torch_function(relax, updates=[1], **options)
        k = torch.full((5,), 0.1, dtype=torch.float64, requires_grad=True)
        u = torch.linspace(0, 1, 5, dtype=torch.float64).requires_grad_()
        v = u
        for _ in range(1 if options else 30):
            v = function(k, v)
        (v * v).sum().backward()
        return v.detach(), u.grad, k.grad

    expected = gradients()
    for options in (dict(steps=30), dict(steps=30, snapshots=3), dict(steps=30, budget="1kB"),
                    dict(steps=30, snapshots=3, on_host=True), dict(steps=30, snapshots=3, folder=tempfile.gettempdir())):
        for one, other in zip(gradients(**options), expected):
            torch.testing.assert_close(one, other, rtol=1e-13, atol=0)


def test_a_function_of_pytorch_needs_the_number_of_launches():
    pytest.importorskip("torch")

    @qd.kernel
    def relax(u: qd.types.ndarray()):
        for i in range(u.shape[0]):
            u[i] = u[i] * 2

    for options in (dict(snapshots=3), dict(steps=0), dict(on_host=True)):
        with pytest.raises(qd.errors.BadArgument, match="give `steps`"):
            qd.torch_function(relax, updates=[0], **options)


def test_an_array_that_is_indexed_by_time_costs_nothing():
    steps, n = 30, 8
    u = qd.field(qd.f64, shape=(steps + 1, n), needs_grad=True)
    c = qd.field(qd.f64, shape=n, needs_grad=True)
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def step(t: qd.i32):
        for i in range(n):
            u[t + 1, i] = u[t, i] + c[i] * qd.sin(u[t, (i + 1) % n] - u[t, i])

    @qd.kernel
    def measure():
        for i in range(n):
            loss[None] += u[steps, i] ** 2

    def gradients(**options):
        start = np.zeros((steps + 1, n))
        start[0] = np.sin(np.arange(n))
        u.from_numpy(start)
        c.fill(0.3)
        before = qd.statistics().primal_launches
        with qd.ad.Tape(loss, **options) as tape:
            for t in tape.steps(steps):
                step(t)
            measure()
        assert tape.report().peak_bytes == 0
        assert qd.statistics().primal_launches - before == steps + 1
        return [f.to_numpy() for f in (c.grad, u.grad, u, loss)]

    expected = gradients()
    for options in (dict(snapshots=1), dict(budget=100)):
        assert same(gradients(**options), expected)
