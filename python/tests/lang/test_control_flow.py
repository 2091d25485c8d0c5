"""Loops, branches and functions."""

import numpy as np
import pytest

import costate as ti


def test_ranges_with_start_and_step():
    x = ti.field(ti.i32, shape=12)

    @ti.kernel
    def k(lo: ti.i32, hi: ti.i32, step: ti.i32):
        for i in range(lo, hi, step):
            x[i] += 1
        for i in range(1, 12, 5):
            x[i] += 10
        for i in range(hi, lo):
            x[i] += 100

    k(2, 9, 3)
    assert x.to_numpy().tolist() == [1 * (i in range(2, 9, 3)) + 10 * (i in range(1, 12, 5))
                                     for i in range(12)]


def test_ranges_that_count_down():
    x = ti.field(ti.i32, shape=12)

    @ti.kernel
    def k(lo: ti.i32, hi: ti.i32):
        for i in range(hi, lo, -2):
            x[i] += 1
        for j in range(1):
            for i in range(hi, lo, -3):
                x[i] += 10

    k(2, 9)
    assert x.to_numpy().tolist() == [(i in range(9, 2, -2)) + 10 * (i in range(9, 2, -3))
                                     for i in range(12)]


def test_ndrange():
    x = ti.field(ti.i32, shape=(4, 6))

    @ti.kernel
    def k(m: ti.i32):
        for i, j in ti.ndrange(4, (1, m)):
            x[i, j] = 10 * i + j

    k(5)
    expected = np.fromfunction(lambda i, j: (10 * i + j) * ((j >= 1) & (j < 5)), (4, 6))
    assert (x.to_numpy() == expected).all()


def test_grouped():
    x = ti.field(ti.i32, shape=(4, 6))
    y = ti.field(ti.i32, shape=(4, 6))

    @ti.kernel
    def k():
        for I in ti.grouped(x):
            x[I] = I[0] * 10 + I.y
        for I in ti.grouped(ti.ndrange((1, 3), 5)):
            y[I + ti.Vector([0, 1])] = I.sum()

    k()
    assert (x.to_numpy() == np.fromfunction(lambda i, j: 10 * i + j, (4, 6))).all()
    assert y[1, 1] == 1 and y[2, 5] == 6 and y[3, 3] == 0


def test_struct_for_over_fields_and_ndarrays():
    x = ti.field(ti.f32, shape=(3, 4))
    y = ti.ndarray(ti.f32, shape=5)

    @ti.kernel
    def k(a: ti.types.ndarray(), s: ti.template()):
        for i, j in s:
            s[i, j] = i + j
        for i in a:
            a[i] = i * a.shape[0]

    k(y, x)
    assert x[2, 3] == 5
    assert y.to_numpy().tolist() == [0, 5, 10, 15, 20]


def test_nested_struct_for():
    x = ti.field(ti.i32, shape=(3, 4))
    n = ti.field(ti.i32, shape=())

    @ti.kernel
    def k():
        for t in range(2):
            for i, j in x:
                n[None] += 1

    k()
    assert n[None] == 24


def test_serial_loops_with_break_and_continue():
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        s = 0
        ti.loop_config(serialize=True)
        for i in range(n):
            if i % 2 == 0:
                continue
            if i > 7:
                break
            s += i
        return s

    assert k(100) == 1 + 3 + 5 + 7


def test_break_leaves_all_dimensions_of_ndrange():
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def k():
        for _ in range(1):
            for i, j in ti.ndrange(5, 5):
                if i == 2 and j == 3:
                    break
                x[None] += 1

    k()
    assert x[None] == 13


def test_continue_in_a_parallel_loop():
    x = ti.field(ti.i32, shape=6)

    @ti.kernel
    def k():
        for i in x:
            if i % 3 == 0:
                continue
            x[i] = 1

    k()
    assert x.to_numpy().tolist() == [0, 1, 1, 0, 1, 1]


def test_break_in_a_parallel_loop_is_refused():
    @ti.kernel
    def k():
        for i in range(10):
            if i == 3:
                break

    with pytest.raises(ti.QuadrantsSyntaxError, match="(?s)outermost loop.*serialize"):
        k()


def test_while():
    @ti.kernel
    def collatz(n: ti.i32) -> ti.i32:
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    assert collatz(27) == 111


def test_while_true_and_nested_break():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        i = 0
        while True:
            i += 1
            j = 0
            while j < 100:
                j += 1
                if j > i:
                    break
                s += 1
            if i >= 4:
                break
        return s

    assert k() == 1 + 2 + 3 + 4


def test_while_whose_condition_acts():
    drawn = ti.field(ti.i32, ())

    @ti.func
    def taken(x: ti.template(), i):
        x[i] += 1
        return ti.atomic_add(x[i], 1)

    @ti.func
    def is_low():
        return ti.random() < 0.5

    @ti.kernel
    def k(x: ti.types.ndarray(), n: ti.i32):
        for i in range(3):
            r = 0
            while r < 20 and taken(x, i) < n * (i + 1):
                r += 1
                if r % 2:
                    continue
                r += 10
                while taken(x, i) < 4:
                    pass
            x[i + 3] = r
        for i in range(1):
            while is_low():
                drawn[None] += 1

    x, wanted = np.zeros(6, np.int32), []

    def plain(n, i):
        held, r = 0, 0

        def taken():
            nonlocal held
            held += 2
            return held - 1

        while r < 20 and taken() < n * (i + 1):
            r += 1
            if r % 2:
                continue
            r += 10
            while taken() < 4:
                pass
        return held, r

    wanted = [plain(5, i) for i in range(3)]
    k(x, 5)
    assert x.tolist() == [h for h, _ in wanted] + [r for _, r in wanted]
    assert 0 <= drawn[None] < 200


def test_while_whose_condition_changes_a_variable():
    x, y = ti.field(ti.f64, 8, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.func
    def step(v: ti.template()):
        before = v
        v += 1
        return before < 4

    @ti.kernel
    def k():
        for i in x:
            v, r = i, x[i]
            while step(v):
                r *= x[i]
            y[None] += r * v

    x.from_numpy(np.full(8, 2.0))
    with ti.ad.Tape(loss=y):
        k()
    powers, left = [max(4 - i, 0) + 1 for i in range(8)], [max(5, i + 1) for i in range(8)]
    assert y[None] == sum(2.0 ** p * v for p, v in zip(powers, left))
    assert x.grad.to_numpy().tolist() == [p * 2.0 ** (p - 1) * v for p, v in zip(powers, left)]


def test_gradient_of_a_while_whose_condition_acts():
    x, y, count = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True), ti.field(ti.i32, 3)

    @ti.func
    def counted(i):
        return ti.atomic_add(count[i], 1) < i + 1

    @ti.kernel
    def k():
        for i in x:
            v = x[i]
            while counted(i):
                v *= x[i]
            y[None] += v

    x.from_numpy(np.array([2.0, 3.0, 5.0]))
    with ti.ad.Tape(loss=y):
        k()
    assert y[None] == 4 + 27 + 625
    assert x.grad.to_numpy().tolist() == [4, 27, 500]


def test_while_with_a_guarded_load():
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.i32, shape=5)

    @ti.kernel
    def k() -> ti.i32:
        i = 0
        while i < 5 and x[i] != 9:
            i += 1
        return i

    assert k() == 5
    x[3] = 9
    assert k() == 3


def test_a_reduction_into_a_variable_of_the_kernel():
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        s = 0
        for i in range(n):
            s += i
        return s

    assert k(1000) == 499500


def test_loops_after_a_branch_at_the_top_are_serial():
    x = ti.field(ti.i32, shape=10)

    @ti.kernel
    def k(flag: ti.i32):
        if flag:
            last = 0
            for i in range(10):
                last += i
                x[i] = last

    k(0)
    assert x[9] == 0
    k(1)
    assert x[9] == 45


def test_static_loops_and_branches():
    x = ti.field(ti.i32, shape=8)

    @ti.kernel
    def k(n: ti.template(), flag: ti.template()):
        for i in ti.static(range(n)):
            for j in ti.static(range(i)):
                x[i] += j
            if ti.static(flag):
                x[i] += 100
            else:
                x[i] += 200
        for a, b in ti.static(ti.ndrange(2, 2)):
            x[6] += a + b
        for i, v in ti.static(enumerate((5, 6))):
            x[7] += i * v

    k(4, True)
    assert x.to_numpy().tolist() == [100, 100, 101, 103, 0, 0, 4, 6]
    k(1, False)
    assert x[0] == 300


def test_jumps_of_static_loops():
    def by_python(n):
        s = 0
        for i in range(6):
            if i == 1:
                continue
            for j in range(5):
                if j > i:
                    break
                s += 1
            for m in range(n):
                if m == 2:
                    break
                if i == 2:
                    continue
                s += 100
            if i == 4:
                break
            s += 1000
        return s

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        s = 0
        for i in ti.static(range(6)):
            if ti.static(i == 1):
                continue
            for j in ti.static(range(5)):
                if ti.static(j > i):
                    break
                s += 1
            ti.loop_config(serialize=True)
            for m in range(n):
                if m == 2:
                    break
                if ti.static(i == 2):
                    continue
                s += 100
            if ti.static(i == 4):
                break
            s += 1000
        return s

    for n in (1, 3):
        assert k(n) == by_python(n)

    @ti.kernel
    def too_late(n: ti.i32):
        for i in ti.static(range(6)):
            if n > i:
                break

    with pytest.raises(ti.QuadrantsSyntaxError, match="`break` statement is in a non-static `if`"):
        too_late(1)


def test_a_loop_that_is_static_or_not():
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def k(unrolled: ti.template(), n: ti.i32):
        for _ in range(1):
            for i in (range(n) if ti.static(not unrolled) else ti.static(range(3))):
                x[None] += i

    k(True, 100)
    assert x[None] == 3
    k(False, 5)
    assert x[None] == 13


def test_functions():
    @ti.func
    def square(v):
        return v * v

    @ti.func
    def both(a, b: ti.f32):
        a += 1
        return square(a), b * 2

    @ti.func
    def count_down(n: ti.template()):
        r = 0
        if ti.static(n > 0):
            r = n + count_down(n - 1)
        return r

    @ti.kernel
    def k(a: ti.i32) -> ti.f32:
        p, q = both(a, 3)
        return p + q + a + count_down(4)

    assert k(2) == 9 + 6 + 2 + 10


def test_functions_by_reference():
    x = ti.Vector.field(2, ti.f32, shape=3)

    @ti.func
    def bump(v: ti.template(), by):
        v += by

    @ti.func
    def fill(f: ti.template()):
        for i in f:
            f[i] = ti.Vector([i, 2 * i])

    @ti.kernel
    def k() -> ti.f32:
        fill(x)
        a = 1.0
        bump(a, 2)
        bump(x[1], ti.Vector([10.0, 20.0]))
        return a

    assert k() == 3
    assert list(x[1]) == [11, 22]


def test_scopes():
    @ti.kernel
    def hidden():
        if 1 > ti.random():
            y = 1
        print(y)

    with pytest.raises(ti.QuadrantsNameError, match='Name "y" is not defined here: it is of a block that has ended; give `y` a value before that block, or, if it is the variable of a loop'):
        hidden()

    @ti.kernel
    def shadows() -> ti.i32:
        r = 0
        for i in range(1):
            for j in range(2):
                v = j
                r += v
            for j in range(2):
                v = j + 0.5
                r += ti.cast(v * 2, ti.i32)
        return r

    assert shadows() == 1 + 1 + 3


def test_loop_variables_may_change():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for _ in range(1):
            for i in range(3):
                i += 10
                s += i
        return s

    assert k() == 33


def test_classes():
    @ti.data_oriented
    class Counter:
        def __init__(self, n):
            self.n = n
            self.x = ti.field(ti.i32, shape=n)
            self.step = 2

        @ti.func
        def twice(self, v):
            return v * self.step

        @ti.kernel
        def run(self, by: ti.i32) -> ti.i32:
            for i in self.x:
                self.x[i] += self.twice(by)
            return self.n

        @property
        def total(self):
            return self.x.to_numpy().sum()

    a, b = Counter(3), Counter(5)
    assert a.run(1) == 3 and b.run(2) == 5
    a.run(1)
    assert a.total == 12 and b.total == 20


def test_subscripts_in_many_dimensions():
    x = ti.field(ti.i32, shape=(2, 3, 2, 2, 2))

    @ti.kernel
    def k():
        for i, j, a, b, c in x:
            x[i, j, a, b, c] = (((i * 3 + j) * 2 + a) * 2 + b) * 2 + c

    k()
    assert (x.to_numpy().reshape(-1) == np.arange(48)).all()


def test_an_empty_kernel():
    @ti.kernel
    def k():
        pass

    k()


def test_keyword_arguments_and_defaults():
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def k(a: ti.i32, b: ti.i32 = 5):
        x[None] = a * 10 + b

    k(1)
    assert x[None] == 15
    k(b=2, a=3)
    assert x[None] == 32


def test_ranges_without_work_items():
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def k(n: ti.i32, m: ti.i32):
        for i in range(n):
            x[None] += 1
        for i, j in ti.ndrange(n, m):
            x[None] += 1
        for i in range(5, n, 3):
            x[None] += 1
        for _ in range(1):
            for i, j in ti.ndrange(n, m):
                if x[None] > 100:
                    break
                x[None] += 1

    for n, m in ((-3, 2), (2, -3), (-3, -2), (0, 0)):
        x[None] = 0
        k(n, m)
        assert x[None] == max(n, 0)


def test_gradient_of_a_loop_that_names_its_condition():
    x, y = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.5, 2.0, 3.0]))

    @ti.kernel
    def k():
        for i in x:
            v = x[i]
            while (w := v * v) < 100.0:
                y[None] += w
                v = w

    with ti.ad.Tape(y):
        k()
    powers = {1.5: (2, 4, 8), 2.0: (2, 4), 3.0: (2, 4)}
    assert x.grad.to_numpy() == pytest.approx([sum(n * v**(n - 1) for n in found) for v, found in powers.items()])


def test_gradient_of_sides_of_which_one_has_a_loop():
    """Neighbouring work items take different sides; on GPUs what they save lies in one tape."""
    x, y = ti.field(ti.f64, 32, needs_grad=True), ti.field(ti.f64, 32, needs_grad=True)
    v = np.linspace(0.5, 1.5, 32)
    x.from_numpy(v)
    y.grad.fill(1)

    @ti.kernel
    def k():
        for i in x:
            u, a = 0.3 * x[i], x[i]
            for t in range(2):
                if i % 3 == 2:
                    for _ in range(3):
                        u = ti.sin(u)
                else:
                    a = 0.8 * u * x[i]
            y[i] = u + a

    k()
    k.grad()
    u, slope = 0.3 * v, np.full(32, 0.3)
    for _ in range(6):
        u, slope = np.sin(u), slope * np.cos(u)
    expected = np.where(np.arange(32) % 3 == 2, slope + 1, 0.3 + 0.48 * v)
    assert x.grad.to_numpy() == pytest.approx(expected)


def test_a_condition_that_reads_a_vector_at_an_index_behind_another():
    y = ti.field(ti.i32, ())

    @ti.kernel(debug=True)
    def k():
        for _ in range(1):
            a, t = ti.Vector([0.1, 0.2, 0.9, 0.99]), 0
            while t < 5 and a[t % 4] < 0.97:
                t += 1
            y[None] = t

    k()
    assert y[None] == 3


@pytest.mark.parametrize("chosen", [True, False])
def test_break_in_a_loop_of_a_branch_that_is_known(chosen):
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        count = 0
        if chosen:
            for i in range(n):
                if i == 4:
                    break
                count += 1
        else:
            for i in range(n):
                if i == 6:
                    break
                count += 1
        return count

    assert k(100) == (4 if chosen else 6)


def test_chains_call_only_what_is_needed():
    calls = ti.field(ti.i32, shape=())

    @ti.func
    def given(x):
        calls[None] += 1
        return x

    @ti.kernel
    def one(z: ti.i32) -> ti.i32:
        r = 0
        if 0 < z < given(10):
            r = 1
        return r

    @ti.kernel
    def three(z: ti.i32) -> ti.i32:
        r = 0
        if 0 < given(z) < given(10) < given(5) + 10:
            r = 1
        return r

    def outcome(kernel, z):
        calls[None] = 0
        return kernel(z), calls[None]

    assert [outcome(one, z) for z in (0, 5, 10)] == [(0, 0), (1, 1), (0, 1)]
    assert [outcome(three, z) for z in (0, 5, 10)] == [(0, 1), (1, 3), (0, 2)]
