"""`while ti.graph_do_while(counter)`: loops that the kernel itself ends."""

import pytest

import costate as ti


@pytest.mark.parametrize("spelling", ["graph_do_while", "graph.do_while"])
@pytest.mark.parametrize("iterations, wanted", [(5, 5), (1, 1)])
def test_the_body_runs_until_the_counter_is_0(spelling, iterations, wanted):
    if spelling == "graph_do_while":
        @ti.kernel(gpu_graph=True)
        def run(x: ti.types.ndarray(ti.i32, ndim=1), counter: ti.types.ndarray(ti.i32, ndim=0)):
            while ti.graph_do_while(counter):
                for i in range(x.shape[0]):
                    x[i] = x[i] + 1
                for _ in range(1):
                    counter[()] = counter[()] - 1
    else:
        @ti.kernel(graph=True)
        def run(x: ti.types.ndarray(ti.i32, ndim=1), counter: ti.types.ndarray(ti.i32, ndim=0)):
            while ti.graph.do_while(counter):
                for i in range(x.shape[0]):
                    x[i] = x[i] + 1
                for _ in range(1):
                    counter[()] = counter[()] - 1

    x, counter = ti.ndarray(ti.i32, 4), ti.ndarray(ti.i32, ())
    counter.fill(iterations)
    run(x, counter)
    assert x.to_numpy().tolist() == [wanted] * 4 and counter[None] == 0


def test_loops_in_loops():
    inner, outer, count = (ti.field(ti.i32, ()) for _ in range(3))

    @ti.kernel
    def run(a: ti.template(), b: ti.template()):
        for _ in range(1):
            b[None] = 3
        while ti.graph_do_while(b):
            for _ in range(1):
                a[None] = 2
            while ti.graph_do_while(a):
                for _ in range(1):
                    count[None] += 1
                    a[None] -= 1
            for _ in range(1):
                b[None] -= 1

    run(inner, outer)
    assert count[None] == 6


def test_elsewhere_it_is_refused():
    x = ti.field(ti.i32, ())

    @ti.kernel
    def wrong():
        if ti.graph_do_while(x):
            x[None] = 1

    with pytest.raises(ti.QuadrantsSyntaxError, match="is the condition of a `while` in a kernel"):
        wrong()


def test_loops_inside_run_in_parallel():
    n = 1000
    x, counter, total = ti.field(ti.i32, n), ti.field(ti.i32, ()), ti.field(ti.i32, ())

    @ti.kernel
    def run():
        while ti.graph_do_while(counter):
            for i in range(n):
                x[i] += i
                total[None] += 1
            for _ in range(1):
                counter[None] -= 1

    counter[None] = 7
    run()
    assert x.to_numpy().tolist() == [7 * i for i in range(n)] and total[None] == 7 * n
    assert run.has_graph_ranges


def test_gradients_are_those_of_serial_loops():
    n = 4
    x, loss = ti.field(ti.f64, n, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    y, time, counter = ti.field(ti.f64, (9, n), needs_grad=True), ti.field(ti.i32, ()), ti.field(ti.i32, ())

    @ti.kernel
    def run():
        for i in range(n):
            y[0, i] = x[i]
        while ti.graph_do_while(counter):
            for i in range(n):
                y[time[None] + 1, i] = y[time[None], i] * x[i]
            for _ in range(1):
                time[None] += 1
                counter[None] -= 1

    @ti.kernel
    def total():
        for i in range(n):
            loss[None] += y[3, i]

    for i in range(n):
        x[i] = i + 1
    counter[None], time[None] = 3, 0
    run()
    plain = y.to_numpy()
    loss[None], counter[None], time[None] = 0, 3, 0
    with ti.ad.Tape(loss):
        run()
        total()
    assert (y.to_numpy() == plain).all()
    assert x.grad.to_numpy().tolist() == [4.0 * (i + 1)**3 for i in range(n)]


class Unknown:
    """Calls of it might do anything."""

    def __call__(self):
        return 3


def test_loops_inside_run_in_parallel_unless_they_draw():
    x, counter, some = ti.field(ti.i32, 4), ti.field(ti.i32, ()), Unknown()

    @ti.kernel
    def run(c: ti.template(), draws: ti.template()):
        while ti.graph_do_while(c):
            for i in x:
                x[i] += ti.static(some())
                if ti.static(draws):
                    x[i] += ti.cast(ti.random() * 1000, ti.i32)
            for _ in range(1):
                c[None] -= 1

    for draws in False, True:
        counter[None] = 2
        run(counter, draws)
    assert counter[None] == 0 and len(set(x.to_numpy().tolist())) > 1
    assert [found.has_graph_ranges for found in run._primal.cache.values()] == [True, False]
