"""`ti.perf_dispatch`: one name for several functions that do the same, of which the fastest is called."""

import time

import pytest

import costate as ti


def _dispatcher(calls, slow=("a",), compatible=None, **options):
    @ti.perf_dispatch(get_geometry_hash=lambda x: x.shape, **options)
    def work(x: ti.types.ndarray()):
        """What the functions do."""

    @ti.kernel
    def add(x: ti.types.ndarray()):
        for i in x:
            x[i] += 1

    def make(name):
        def run(x):
            calls.append(name)
            add(x)
            if name in slow:
                time.sleep(0.02)
        run.__name__ = name
        return run

    for name in "ab":
        work.register(make(name), is_compatible=(compatible or {}).get(name))
    return work


def test_the_fastest_is_kept_and_each_call_runs_once():
    calls, x = [], ti.ndarray(ti.i32, 4)
    work = _dispatcher(calls)
    for _ in range(10):
        work(x)
    assert sorted(calls[:4]) == ["a", "a", "b", "b"] and calls[4:] == ["b"] * 6 and x[0] == 10
    work(ti.ndarray(ti.i32, 5))    # another geometry
    assert calls[10] == "a" and work.__doc__ == "What the functions do."


def test_what_takes_no_such_arguments_is_not_called():
    calls, x = [], ti.ndarray(ti.i32, 4)
    work = _dispatcher(calls, compatible={"b": lambda x: x.shape[0] > 4})
    for _ in range(5):
        work(x)
    assert set(calls) == {"a"}
    nobody = _dispatcher(calls, compatible={"a": lambda x: False, "b": lambda x: False})
    with pytest.raises(ti.QuadrantsRuntimeError, match="no function that is registered for `work` takes these"):
        nobody(x)


def test_it_is_measured_again():
    calls, slow, x = [], ["a"], ti.ndarray(ti.i32, 4)
    work = _dispatcher(calls, slow, repeat_after_count=3, first_warmup=0)
    for _ in range(5):
        work(x)
    assert calls[2:] == ["b"] * 3
    slow[:] = ["b"]
    for _ in range(4):
        work(x)
    assert calls[-1] == "a"


def test_a_choice_by_the_environment(monkeypatch):
    calls, x = [], ti.ndarray(ti.i32, 4)
    monkeypatch.setenv("QD_PERFDISPATCH_FORCE", "other:b, work:a")
    work = _dispatcher(calls)
    for _ in range(6):
        work(x)
    assert calls == ["a"] * 6
    monkeypatch.setenv("QD_PERFDISPATCH_FORCE", "work")
    with pytest.raises(ValueError, match="dispatcher:function"):
        work(ti.ndarray(ti.i32, 7))


def test_kernels_with_other_parameters_are_refused():
    @ti.perf_dispatch(get_geometry_hash=lambda x: 0, warmup=1, active=1)
    def work(x): ...

    with pytest.raises(ti.QuadrantsSyntaxError, match="has the parameters"):
        @work.register
        @ti.kernel
        def other(y: ti.types.ndarray()):
            y[0] = 1


def test_kernels_in_a_tape():
    @ti.perf_dispatch(get_geometry_hash=lambda x, y: 0)
    def work(x: ti.template(), y: ti.template()): ...

    @work.register
    @ti.kernel
    def forward(x: ti.template(), y: ti.template()):
        for i in x:
            y[None] += x[i] ** 2

    @work.register
    @ti.kernel
    def by_number(x: ti.template(), y: ti.template()):
        for i in range(x.shape[0]):
            y[None] += x[i] * x[i]

    x, y = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.fill(2)
    for _ in range(6):
        y[None] = 0
        with ti.ad.Tape(y):
            work(x, y)
        assert x.grad.to_numpy().tolist() == [4, 4, 4]
