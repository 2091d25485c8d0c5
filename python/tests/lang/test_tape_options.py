"""What a `Tape` may be asked besides its gradients."""

import numpy as np
import pytest

import costate as ti


@pytest.fixture
def fields(double):
    return (ti.field(ti.f64, shape=3, needs_grad=True), ti.field(ti.f64, shape=3, needs_grad=True),
            ti.field(ti.f64, shape=(), needs_grad=True))


def kernels(x, y, loss):
    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def clear():
        for i in x:
            x[i] = 0.0

    @ti.kernel
    def measure():
        for i in y:
            loss[None] += y[i]
    return square, clear, measure


def test_it_counts_what_it_has_recorded(fields):
    square, clear, measure = kernels(*fields)
    with ti.ad.Tape(fields[2]) as tape:
        assert tape and len(tape) == 0
        square()
        measure()
        assert len(tape) == 2
    assert tape


def test_an_array_may_be_copied_or_never(fields):
    x, _, loss = fields
    square, clear, measure = kernels(*fields)
    x.fill(3)
    with ti.ad.Tape(loss) as tape:
        square()
        clear()
        measure()
        report = tape.report()
        assert [one.bytes for one in report.copies] == [24]
        assert "1 copies" in str(report) or "1 copy" in str(report), report
    assert x.grad.to_numpy().tolist() == [6, 6, 6]
    x.fill(3)
    with pytest.raises(ti.CannotReplay):
        with ti.ad.Tape(loss) as tape:
            tape.never_copy(x)
            square()
            clear()
            measure()
    with pytest.raises(ti.BadArgument, match="snapshots"):
        with ti.ad.Tape(loss, snapshots=2) as tape:
            tape.never_copy(x)


def test_all_or_nothing_is_asked_for(fields):
    x, _, loss = fields
    square, _, measure = kernels(*fields)
    x.fill(2)
    with ti.ad.Tape(loss, all_or_nothing=True):
        square()
        measure()
    np.testing.assert_array_equal(x.grad.to_numpy(), [4, 4, 4])
