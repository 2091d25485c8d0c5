"""What goes wrong is an error of that name on all ranks."""

import time

import pytest
from ranks import in_threads

import costate as qd
from costate import distributed


def expect(results, kind, *parts):
    for one in results:
        assert isinstance(one, kind), one
        for part in parts:
            assert part in str(one)


def test_shapes_that_differ():
    def run(group):
        distributed.Halo(qd.field(qd.f64, (8, 4 + group.rank() // 2)), group=group)
    expect(in_threads(3, run), qd.BadArgument, "rank 2 asks for a halo of width 1 along axis 0", "(8, 5)", "(8, 4)",
           "test_errors_of_ranks.py:")


def test_dtypes_and_gradients_that_differ():
    def run(group):
        distributed.all_reduce(qd.field(qd.f64 if group.rank() else qd.f32, ()), group)
    expect(in_threads(2, run), qd.BadArgument, "rank 1 asks for a sum of an array of f64", "f32")

    def run_gradients(group):
        distributed.all_reduce(qd.field(qd.f64, (), needs_grad=bool(group.rank())), group)
    expect(in_threads(2, run_gradients), qd.BadArgument, "with gradients")


def test_calls_that_differ():
    def run(group):
        x = qd.field(qd.f64, 8)
        if group.rank():
            distributed.all_reduce(x, group)
        else:
            distributed.Halo(x, group=group)
    expect(in_threads(2, run), qd.BadArgument, "rank 1 asks for a sum", "rank 0 asks for a halo")


def test_a_halo_that_is_wider_than_a_part():
    def run(group):
        distributed.Halo(qd.field(qd.f64, 6 + 3 - group.rank()), width=3, group=group)
    expect(in_threads(2, run), qd.BadArgument, "rank 1 asks for a halo of width 3", "a part of 2 slices")


@pytest.mark.parametrize("options, text", [(dict(axis=2), "no such axis"), (dict(axis=-3), "no such axis"),
                                           (dict(width=0), "a width from 1 on")])
def test_options_of_halos(options, text):
    expect(in_threads(2, lambda group: distributed.Halo(qd.field(qd.f64, (8, 8)), group=group, **options)), qd.BadArgument, text)


def test_parts_that_are_not_the_whole():
    def run(group):
        whole = qd.field(qd.f64, (7, 2)) if group.rank() == 1 else None
        distributed.scatter(whole, qd.field(qd.f64, (4, 2)), 1, group)
    expect(in_threads(2, run), qd.BadArgument, "rank 1", "the parts of all ranks make up an array of shape (8, 2)")

    def run_none(group):
        distributed.gather(qd.field(qd.f64, 4), None, 5, group)
    expect(in_threads(2, run_none), qd.BadArgument, "there are 2 ranks")


def test_a_rank_that_leaves():
    def run(group):
        x = qd.field(qd.f64, 8)
        halo = distributed.Halo(x, periodic=True, group=group)
        for t in range(5):
            if group.rank() == 1 and t == 2:
                del halo, group
                raise ZeroDivisionError
            halo()
    start = time.time()
    results = in_threads(3, run)
    assert isinstance(results[1], ZeroDivisionError)
    expect([results[0], results[2]], qd.RankLost, "has left")
    assert time.time() - start < 15


def test_a_rank_that_does_not_answer():
    def run(group):
        halo = distributed.Halo(qd.field(qd.f64, 8), group=group)
        if group.rank() == 0:
            halo()
        else:
            time.sleep(1)
    results = in_threads(2, run, timeout=0.3)
    expect(results[:1], qd.RankLost, "rank 1 has not answered within 300 ms")


def test_a_rank_that_leaves_while_gradients_are_computed():
    def run(group):
        u, loss = qd.field(qd.f64, 8, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)
        halo = distributed.Halo(u, periodic=True, group=group)
        tape = qd.ad.Tape(loss)
        with tape:
            halo()
            if group.rank() == 1:
                tape.core.clear()
                raise ZeroDivisionError
            measure(u, loss)
    results = in_threads(2, run)
    expect(results[:1], qd.RankLost, "has left")


@qd.kernel
def measure(u: qd.template(), loss: qd.template()):
    for i in u:
        loss[None] += u[i] * u[i]


def alone():
    return distributed.in_process(1)[0]


def test_what_has_no_halo():
    with pytest.raises(qd.BadArgument, match="fields and ndarrays, not of int"):
        distributed.Halo([1, 2], group=alone())
    with pytest.raises(qd.BadArgument, match="of no array"):
        distributed.Halo([], group=alone())
    sparse = qd.field(qd.f64)
    qd.root.pointer(qd.i, 4).dense(qd.i, 4).place(sparse)
    with pytest.raises(qd.BadArgument, match="sparse"):
        distributed.Halo(sparse, group=alone())
    with pytest.raises(qd.BadArgument, match="truth values|at least one"):
        distributed.all_reduce(qd.field(qd.u1, 4), alone())


def test_places_where_ranks_do_not_meet():
    x = qd.field(qd.f64, 8)
    halo = distributed.Halo(x, periodic=True, group=alone())
    with pytest.raises(qd.CannotCapture, match="`all_reduce`"):
        qd.capture(distributed.all_reduce, x, alone())
    with pytest.raises(qd.CannotCapture, match="not finished there"):
        qd.capture(halo.start)
    with pytest.raises(qd.BadArgument, match="finished without a start"):
        halo.finish()
    halo.start()
    with pytest.raises(qd.BadArgument, match="started twice"):
        halo.start()
    qd.init()
    with pytest.raises(qd.QuadrantsRuntimeError, match="before the last `init`"):
        halo()
