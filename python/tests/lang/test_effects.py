"""What is known of a kernel before it is traced, once: variables that loops change, nodes that they activate, random numbers."""

import random

import numpy as np
import pytest

import costate as ti

N = 16


@ti.func
def put_more(total: ti.template(), x):
    ti.atomic_add(total, x)


@ti.func
def put_by_way(total: ti.template(), x):
    put_more(total, x)


@ti.func
def only_reads(total: ti.template(), x):
    return total + x


@ti.dataclass
class Sums:
    first: ti.f64
    second: ti.f64

    @ti.func
    def put(self, x):
        ti.atomic_add(self.first, x)
        ti.atomic_add(self.second, x * x)


def test_a_kernel_with_all_that_has_to_be_known_is_traced_once(capsys):
    x = ti.field(ti.f64)
    ti.root.pointer(ti.i, N).place(x)

    @ti.kernel
    def k() -> ti.f64:
        total = 0.0
        for i in range(N // 2):
            x[2 * i] = ti.random()
        for i in x:
            ti.static_print("traced")
            total += 1 + 0 * x[i]
            x[i] = 1.0
        return total

    assert k() == N // 2
    assert capsys.readouterr().out == "traced\n"


@pytest.mark.parametrize("put", [put_more, put_by_way])
def test_variables_that_functions_change(put):
    @ti.kernel
    def k(start: ti.f64) -> ti.f64:
        total = start
        for i in range(N):
            put(total, i)
        return total

    assert k(3.0) == 3 + N * (N - 1) / 2


def test_variables_that_methods_of_structs_change():
    @ti.kernel
    def k() -> ti.types.vector(2, ti.f64):
        sums = Sums(1.0, 2.0)
        for i in range(N):
            sums.put(ti.cast(i, ti.f64))
        return ti.Vector([sums.first, sums.second])

    assert list(k()) == [1 + sum(range(N)), 2 + sum(i * i for i in range(N))]


def test_a_variable_has_its_value_in_loops_before_the_one_that_changes_it():
    x = ti.field(ti.f64, N)

    @ti.kernel
    def k() -> ti.f64:
        total = 2.0
        total *= 3
        for i in x:
            x[i] = total
        for i in x:
            total += x[i]
        total += 1
        return total

    assert k() == 6 + 6 * N + 1
    np.testing.assert_array_equal(x.to_numpy(), 6)


def test_vectors_of_many_components_that_loops_change():
    @ti.kernel
    def k() -> ti.f64:
        v = ti.Vector([0.0] * 40)
        v[1] = 1.0
        for i in range(40):
            v[i] += i
        return v.sum()

    assert k() == 1 + sum(range(40))


def test_gradients_go_through_variables_that_loops_change():
    x, y = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.linspace(1, 2, N))

    @ti.kernel
    def k():
        total = x[0] * x[0]
        for i in x:
            total += x[i] ** 3
        y[None] = total * total

    with ti.ad.Tape(y):
        k()
    values = np.linspace(1, 2, N)
    total = values[0] ** 2 + (values ** 3).sum()
    expected = 2 * total * 3 * values ** 2
    expected[0] += 2 * total * 2 * values[0]
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-12)


def test_what_a_loop_only_reads_is_no_array():
    """A launch of the kernel has one argument for each array that it uses."""
    x = ti.field(ti.f64, N)

    @ti.kernel
    def k():
        a = 1.0
        a += 1.0
        for i in x:
            x[i] = only_reads(a, i)

    compiled, arguments = k.compiled()
    assert len(arguments) == 1
    k()
    np.testing.assert_array_equal(x.to_numpy(), 2 + np.arange(N))


@ti.func
def drawn():
    return ti.random(ti.f64)


@ti.data_oriented
class Drawing:
    def __init__(self):
        self.x = ti.field(ti.f64, N)
        self.functions = [drawn]

    @property
    def number(self):
        return ti.random(ti.f64)

    @ti.func
    def own(self):
        return drawn()

    @ti.kernel
    def by_method(self):
        for i in self.x:
            self.x[i] = self.own()

    @ti.kernel
    def by_list(self):
        for i in self.x:
            self.x[i] = self.functions[0]()

    @ti.kernel
    def by_property(self):
        for i in self.x:
            self.x[i] = self.number


def plain():
    return ti.random(ti.f64)


@pytest.mark.parametrize("name", ["by_method", "by_list", "by_property"])
def test_random_numbers_by_way_of_objects(name):
    one = Drawing()
    getattr(one, name)()
    found = one.x.to_numpy()
    assert len(set(found)) == N and (0 <= found).all() and (found < 1).all()


def test_random_numbers_by_way_of_a_function_of_python():
    x = ti.field(ti.f64, N)

    @ti.kernel
    def k():
        for i in x:
            x[i] = plain()

    k()
    first = x.to_numpy()
    k()
    assert len({*first, *x.to_numpy()}) == 2 * N


def test_random_numbers_by_way_of_an_operator_are_an_error():
    class Noise:
        def __radd__(self, other):
            return other + ti.random(ti.f64)

    noise, x = Noise(), ti.field(ti.f64, N)

    @ti.kernel
    def k():
        for i in x:
            x[i] = 1.0 + noise

    with pytest.raises(ti.QuadrantsCompilationError, match="draw them in the kernel itself or in a `@ti.func`"):
        k()


def test_numbers_of_python_that_may_draw_leave_launches_as_they_are():
    x = ti.field(ti.f64, N)
    helper = random.Random(3).getrandbits

    def bits():
        return helper(3) % 1

    @ti.kernel
    def k():
        for i in x:
            x[i] += 1 + bits()

    for _ in range(3):
        k()
    np.testing.assert_array_equal(x.to_numpy(), 3)


def test_loops_over_a_sparse_field_that_functions_activate():
    x, y = ti.field(ti.f64), ti.field(ti.f64, ())
    ti.root.pointer(ti.i, 4).dense(ti.i, 4).place(x)

    @ti.func
    def spread(field: ti.template(), i):
        field[(i + 4) % 16] = 1.0

    @ti.kernel
    def start():
        x[0] = 1.0

    @ti.kernel
    def k():
        for i in x:
            spread(x, i)
            y[None] += 1

    start()
    k()
    assert y[None] == 4
    k()
    assert y[None] == 4 + 8


def test_a_kernel_in_which_nothing_is_left_is_launched_without_code():
    flag = False

    @ti.kernel
    def k():
        if ti.static(flag):
            ti.static_print("never")

    k()
    assert k.compiled()[0] is None
