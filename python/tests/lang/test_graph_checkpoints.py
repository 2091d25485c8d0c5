"""`with ti.checkpoint(label, yield_on=flag)`: kernels that pause, and go on from where they paused."""

import enum

import pytest

import costate as ti


class Stage(enum.IntEnum):
    FIRST = 10
    SECOND = 20
    THIRD = 30


ARRAY, NUMBER = ti.types.ndarray(ti.i32, ndim=1), ti.types.ndarray(ti.i32, ndim=0)


def arrays(count):
    return ti.ndarray(ti.i32, 8), *(ti.ndarray(ti.i32, ()) for _ in range(count))


def test_what_follows_a_pause_is_left_to_resume():
    @ti.kernel(graph=True, checkpoints=True)
    def run(x: ARRAY, flag: NUMBER, never: NUMBER, limit: ti.i32):
        for i in range(1):
            x[0] += 1
        with ti.checkpoint(Stage.FIRST, yield_on=never):
            for i in range(1):
                x[1] += 1
        for i in range(1):
            x[2] += 1
        with ti.checkpoint(Stage.SECOND, yield_on=flag):
            for i in range(1):
                x[3] += 1
                if x[3] < limit:
                    flag[()] = 1
        for i in range(1):
            x[4] += 1
        with ti.checkpoint(cp_id=Stage.THIRD, yield_on=never):
            for i in range(1):
                x[5] += 1
        x[6] += 1

    x, flag, never = arrays(2)
    status = run(x, flag, never, 3)
    assert status.yielded and status.checkpoint is Stage.SECOND
    assert x.to_numpy().tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    rounds = 0
    while status.yielded:
        assert flag[None] == 1      # it belongs to the host
        flag[None] = 0
        status = run.resume(x, flag, never, 3, from_checkpoint=status.checkpoint)
        rounds += 1
    assert rounds == 2 and status == ti.GraphStatus(False, None)
    assert x.to_numpy().tolist() == [1, 1, 1, 3, 1, 1, 1, 0]
    assert not run(x=x, flag=flag, never=never, limit=0).yielded
    assert x.to_numpy().tolist() == [2, 2, 2, 4, 2, 2, 2, 0]


def test_loops_over_counters_go_on_in_the_middle():
    @ti.kernel(graph=True, checkpoints=True)
    def run(x: ARRAY, flag: NUMBER, counter: NUMBER):
        x[7] += 1
        while ti.graph_do_while(counter):
            with ti.checkpoint(0, yield_on=flag):
                for i in range(1):
                    x[0] += 1
            with ti.checkpoint(1, yield_on=flag):
                for i in range(1):
                    x[1] += 1
                    if x[1] == 2:
                        flag[()] = 1
            with ti.checkpoint(2, yield_on=flag):
                for i in range(1):
                    x[2] += 1
            for i in range(1):
                counter[()] -= 1
                x[3] += 1
        for i in range(1):
            x[4] += 1

    x, flag, counter = arrays(2)
    counter.fill(4)
    assert run(x, flag, counter).checkpoint == 1
    assert x.to_numpy().tolist() == [2, 2, 1, 1, 0, 0, 0, 1] and counter[None] == 3
    flag.fill(0)
    assert not run.resume(x, flag, counter, from_checkpoint=1).yielded
    assert x.to_numpy().tolist() == [4, 5, 4, 4, 1, 0, 0, 1] and counter[None] == 0


def test_kernels_of_objects():
    @ti.data_oriented
    class Steps:
        def __init__(self):
            self.x, self.flag = ti.ndarray(ti.i32, 2), ti.ndarray(ti.i32, ())

        @ti.kernel(graph=True, checkpoints=True)
        def run(self, fire: ti.i32):
            with ti.checkpoint(5, yield_on=self.flag):
                self.x[0] += 1
                self.flag[None] = fire
            self.x[1] += 1

    steps = Steps()
    assert steps.run(1) == ti.GraphStatus(True, 5)
    assert steps.run.resume(0, from_checkpoint=5) == ti.GraphStatus(False)
    assert steps.x.to_numpy().tolist() == [2, 1]


def test_outside_of_kernels_it_is_nothing():
    with ti.checkpoint(0, yield_on=None):
        pass

    @ti.kernel(graph=True, checkpoints=True)
    def run(x: ARRAY):
        x[0] += 1

    x, = arrays(0)
    assert not run(x).yielded and x[0] == 1
    with pytest.raises(ti.QuadrantsRuntimeError, match="no checkpoint 3; it has none"):
        run.resume(x, from_checkpoint=3)


def no_option(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(0, yield_on=flag):
        x[0] += 1


def twice(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(0, yield_on=flag):
        x[0] += 1
    with ti.checkpoint(0, yield_on=flag):
        x[0] += 1


def no_label(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(yield_on=flag):
        x[0] += 1


def no_flag(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(0):
        x[0] += 1


def no_number(x: ARRAY, flag: NUMBER):
    with ti.checkpoint("a", yield_on=flag):
        x[0] += 1


def no_parameter(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(0, yield_on=nothing):  # noqa: F821
        x[0] += 1


def nested(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(0, yield_on=flag):
        with ti.checkpoint(1, yield_on=flag):
            x[0] += 1


def in_a_loop(x: ARRAY, flag: NUMBER):
    for i in range(2):
        with ti.checkpoint(0, yield_on=flag):
            x[0] += 1


def with_a_name(x: ARRAY, flag: NUMBER):
    with ti.checkpoint(0, yield_on=flag) as name:
        x[0] += 1


@pytest.mark.parametrize("function, text", [
    (twice, "two checkpoints with the label 0"), (no_label, "missing its argument `cp_id`"), (no_flag, "missing its argument `yield_on`"),
    (no_number, "an integer or an `IntEnum`"), (no_parameter, "parameter of the kernel"), (nested, "in another one"),
    (in_a_loop, "top of a kernel"), (with_a_name, "no `as`")])
def test_what_is_refused(function, text):
    x, flag = arrays(1)
    with pytest.raises(ti.QuadrantsSyntaxError, match=text):
        ti.kernel(function, graph=True, checkpoints=True)(x, flag)
    assert x[0] == 0


def test_what_kernels_without_the_option_refuse():
    x, flag = arrays(1)
    kernel = ti.kernel(no_option, graph=True)
    with pytest.raises(ti.QuadrantsSyntaxError, match="graph=True, checkpoints=True"):
        kernel(x, flag)
    with pytest.raises(ti.QuadrantsSyntaxError, match="with `graph=True`"):
        ti.kernel(checkpoints=True)
    with pytest.raises(ti.QuadrantsRuntimeError, match="no checkpoints to resume from"):
        kernel.resume(x, flag, from_checkpoint=0)
