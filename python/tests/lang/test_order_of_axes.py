"""`ndrange(..., axes=...)`: the order in which indices come."""

import numpy as np
import pytest

import costate as ti

WANTED = [(i, j) for j in range(1, 4) for i in range(2)]


@pytest.mark.parametrize("kind", ["serial", "unrolled", "grouped"])
def test_the_first_axis_is_the_outermost_loop(kind):
    seen, count = ti.Vector.field(2, ti.i32, shape=6), ti.field(ti.i32, ())

    @ti.kernel
    def k():
        ti.loop_config(serialize=True)
        for _ in range(1):
            if ti.static(kind == "serial"):
                for i, j in ti.ndrange(2, (1, 4), axes=(1, 0)):
                    seen[count[None]] = [i, j]
                    count[None] += 1
            elif ti.static(kind == "unrolled"):
                for i, j in ti.static(ti.ndrange(2, (1, 4), axes=(1, 0))):
                    seen[count[None]] = [i, j]
                    count[None] += 1
            else:
                for I in ti.grouped(ti.ndrange(2, (1, 4), axes=(1, 0))):
                    seen[count[None]] = I
                    count[None] += 1

    k()
    assert list(map(tuple, seen.to_numpy().tolist())) == WANTED


def test_parallel_loops_see_all_indices():
    x = ti.field(ti.i32, (2, 4, 3))

    @ti.kernel
    def k(n: ti.i32):
        for i, j, l in ti.ndrange(2, (1, n), 3, axes=(2, 0, 1)):
            x[i, j, l] += 100 * i + 10 * j + l

    k(4)
    i, j, l = np.indices((2, 4, 3))
    np.testing.assert_array_equal(x.to_numpy(), np.where(j > 0, 100 * i + 10 * j + l, 0))
    assert list(ti.ndrange(2, (1, 4), axes=(1, 0))) == WANTED


def test_other_axes_are_errors():
    for axes, kind in [((0, 0), ti.QuadrantsSyntaxError), ((0, 1, 2), ti.QuadrantsSyntaxError), (("a", 1), ti.QuadrantsTypeError),
                       (1, ti.QuadrantsTypeError)]:
        with pytest.raises(kind, match="`axes`"):
            ti.ndrange(3, 3, axes=axes)
