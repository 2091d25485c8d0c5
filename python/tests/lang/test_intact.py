"""Gradients by hand of kernels whose memory is intact, though nothing proves it; and what looks like that and is not."""

import numpy as np
import pytest

import costate as qd
from costate.errors import CannotReplay
from fixed_points import compare


@pytest.fixture(autouse=True)
def library():
    qd.init(arch=qd.cpu, default_fp=qd.f64)
    yield
    qd.reset()


def floats(*values):
    array = qd.ndarray(qd.f64, (len(values),), needs_grad=True)
    array.from_numpy(np.array(values, float))
    return array


def integers(*values):
    array = qd.ndarray(qd.i32, (len(values),))
    array.from_numpy(np.array(values, np.int32))
    return array


@qd.kernel
def compose(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
    for i in range(2):
        y[i] = qd.sin(x[i])
    for i in range(2):
        z[i] = y[i] * y[i]


def test_another_kernel_has_written_the_same_values():
    x, y, z = floats(1, 1), floats(0, 0), floats(0, 0)
    compose(x, y, z)
    y.from_numpy(y.to_numpy())
    z.grad.fill(1)
    compose.grad(x, y, z)
    assert np.allclose(x.grad.to_numpy(), np.sin(2))


def test_other_values_are_an_error_that_says_so():
    x, y, z = floats(1, 1), floats(0, 0), floats(0, 0)
    compose(x, y, z)
    computed = y[1]
    y[1] = np.nextafter(computed, 2)
    z.grad.fill(1)
    with pytest.raises(CannotReplay, match="(?s)was written since the kernel last ran.*another value here"
                       rf".*element 1 of `y` is {y[1]}, not {computed}"):
        compose.grad(x, y, z)
    assert x.grad.to_numpy().tolist() == [0, 0] and z.grad.to_numpy().tolist() == [1, 1]


def test_what_nobody_reads_may_be_anything():
    @qd.kernel
    def some(n: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in range(3):
            y[i] = qd.sin(x[i])
        for i in range(3):
            if n[i] > 0:
                z[i] = y[i] * y[i]

    n, x, y, z = integers(1, 0, 1), floats(1, 1, 1), floats(0, 0, 0), floats(0, 0, 0)
    some(n, x, y, z)
    computed = y[2]
    y[1] = 7
    z.grad.fill(1)
    some.grad(n, x, y, z)
    assert np.allclose(x.grad.to_numpy(), np.sin(2) * np.array([1, 0, 1]))
    y[2] = 7
    with pytest.raises(CannotReplay, match=rf"element 2 of `y` is 7, not {computed}"):
        some.grad(n, x, y, z)


def test_inputs_that_have_changed_are_an_error():
    x, y, z = floats(1, 1), floats(0, 0), floats(0, 0)
    compose(x, y, z)
    x[0] = 2
    with pytest.raises(CannotReplay):
        compose.grad(x, y, z)


@qd.kernel
def tree(q: qd.types.ndarray(), parent: qd.types.ndarray(), x: qd.types.ndarray()):
    for b in range(1):
        for i in range(1, 4):
            x[i] = x[parent[i]] * q[i]


def grown():
    q, parent, x = floats(2, 3, 5, 7), integers(0, 0, 1, 1), floats(1, 0, 0, 0)
    tree(q, parent, x)
    x.grad[2] = x.grad[3] = 1
    return q, parent, x


def test_a_tree():
    q, parent, x = grown()
    tree.grad(q, parent, x)
    assert q.grad.to_numpy().tolist() == [0, 12, 3, 3]
    assert x.grad.to_numpy().tolist() == [36, 0, 0, 0]


def test_a_tree_in_each_work_item():
    @qd.kernel
    def trees(q: qd.types.ndarray(), parent: qd.types.ndarray(), x: qd.types.ndarray()):
        for b in range(x.shape[1]):
            for i in range(1, 4):
                x[i, b] = x[parent[i], b] * q[i]

    q, parent = floats(2, 3, 5, 7), integers(0, 0, 1, 1)
    x = qd.ndarray(qd.f64, (4, 3), needs_grad=True)
    for b in range(3):
        x[0, b] = b
    trees(q, parent, x)
    for b in range(3):
        x.grad[2, b] = 1
    trees.grad(q, parent, x)
    assert q.grad.to_numpy().tolist() == [0, 15, 9, 0]


@qd.kernel
def forest(start: qd.types.ndarray(), parent: qd.types.ndarray(), q: qd.types.ndarray(), x: qd.types.ndarray()):
    for k in range(start.shape[0] - 1):
        for i in range(start[k], start[k + 1]):
            if parent[i] == -1:
                x[i] = 2 * q[i]
            else:
                x[i] = x[parent[i]]
            for _ in range(2):
                x[i] += q[i] * q[i]


@qd.kernel
def squared_forest(start: qd.types.ndarray(), parent: qd.types.ndarray(), q: qd.types.ndarray(), x: qd.types.ndarray()):
    for k in range(start.shape[0] - 1):
        for i in range(start[k], start[k + 1]):
            x[i] = 0.0
            if parent[i] != -1:
                x[i] = x[parent[i]] * x[parent[i]]
            x[i] += q[i]


def planted(*parents):
    q = floats(1, 2, 3, 4, 5)
    x = qd.ndarray(qd.f64, (5,), needs_grad=True)
    return integers(0, 2, 5), integers(*parents), q, x


def test_additions_to_trees_of_work_items():
    """Elements by indices from memory: each work item has its own, but not the same one in all lines."""
    start, parent, q, x = planted(-1, 0, -1, 2, 3)
    forest(start, parent, q, x)
    assert x.to_numpy().tolist() == [4, 12, 24, 56, 106]
    x.grad.fill(1)
    forest.grad(start, parent, q, x)
    assert q.grad.to_numpy().tolist() == [12, 8, 42, 32, 20]


def test_additions_to_trees_whose_values_are_needed():
    start, parent, q, x = planted(-1, 0, -1, 2, 3)
    squared_forest(start, parent, q, x)
    assert x.to_numpy().tolist() == [1, 3, 3, 13, 174]
    x.grad[1] = x.grad[4] = 1
    squared_forest.grad(start, parent, q, x)
    assert q.grad.to_numpy().tolist() == [2, 1, 2 * 3 * 2 * 13, 2 * 13, 1]


def test_additions_to_trees_of_others_are_an_error():
    start, parent, q, x = planted(-1, 0, -1, 1, 3)
    forest(start, parent, q, x)
    x.grad.fill(1)
    with pytest.raises(qd.CannotReplay, match="one work item of the range uses the element that another one writes"):
        forest.grad(start, parent, q, x)
    assert not q.grad.to_numpy().any()


def test_additions_to_trees_that_steer():
    """What is read passes no derivative on; who writes it is asked all the same."""
    @qd.kernel
    def steered(at: qd.types.ndarray(), q: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(q.shape[0]):
            if x[at[i]] > 2:
                y[i] += q[i]
            x[i] += q[i]

    q, x, y = floats(1, 2, 3, 4), floats(3, 0, 3, 0), floats(0, 0, 0, 0)
    steered(integers(1, 0, 3, 2), q, x, y)
    y.grad.fill(1)
    with pytest.raises(qd.CannotReplay):
        steered.grad(integers(1, 0, 3, 2), q, x, y)
    assert not q.grad.to_numpy().any()


@pytest.mark.parametrize("at, keeps_apart", [((0, 1, 2, 3), True), ((0, 0, 1, 2), False)])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_additions_to_one_element_each_that_steer(at, keeps_apart, is_recorded):
    """By one index; several work items may have it."""
    @qd.kernel
    def steered(at: qd.types.ndarray(), q: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(q.shape[0]):
            j = at[i]
            x[j] += q[i]
            if x[j] > 2:
                y[i] += q[i] * q[i]

    n, q, x, y = integers(*at), floats(1, 2, 3, 4), floats(0, 0, 0, 0), floats(0, 0, 0, 0)

    def gradient():
        if is_recorded:
            with qd.ad.Tape():
                steered(n, q, x, y)
                y.grad.fill(1)
        else:
            steered(n, q, x, y)
            y.grad.fill(1)
            steered.grad(n, q, x, y)
    if keeps_apart:
        gradient()
        assert q.grad.to_numpy().tolist() == [0, 0, 6, 8]
    else:
        with pytest.raises(qd.CannotReplay):
            gradient()
        assert not q.grad.to_numpy().any()


def plain(*values):
    array = qd.ndarray(qd.f64, (len(values),), needs_grad=False)
    array.from_numpy(np.array(values, float))
    return array


@qd.kernel
def stores_and_steers(at: qd.types.ndarray(), q: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in range(q.shape[0]):
        if x[at[i]] < 2:
            y[i] += q[i] * q[i]
        x[i] = 3


@pytest.mark.parametrize("make", [floats, plain, integers])
@pytest.mark.parametrize("at, keeps_apart", [((0, 1, 2, 3), True), ((0, 0, 1, 2), False)])
def test_elements_that_are_stored_and_steer(make, at, keeps_apart):
    """Whether the array has a derivative or not: what others see in it is left to chance."""
    n, q, x, y = integers(*at), floats(1, 2, 3, 4), make(0, 0, 0, 0), floats(0, 0, 0, 0)

    def gradient():
        with qd.ad.Tape():
            stores_and_steers(n, q, x, y)
            y.grad.fill(1)
    if keeps_apart:
        gradient()
        assert q.grad.to_numpy().tolist() == [2, 4, 6, 8]
    else:
        with pytest.raises(qd.CannotReplay, match="one work item of the range uses the element"):
            gradient()
        assert not q.grad.to_numpy().any()


@pytest.mark.parametrize("make", [floats, plain, integers])
@pytest.mark.parametrize("reads_otherwise", [False, True])
def test_marks_that_the_launch_has_left_are_not_what_it_found(make, reads_otherwise):
    """Work items that find an element marked do nothing, but they were not marked then."""
    @qd.kernel
    def visit(at: qd.types.ndarray(), q: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(q.shape[0]):
            if x[at[i]] < 1:
                y[i] += q[i] * q[i]
            if qd.static(reads_otherwise):
                y[i] += x[at[i]]
            x[at[i]] = 3

    n, q, x, y = integers(3, 2, 1, 0), floats(1, 2, 3, 4), make(0, 0, 0, 0), floats(0, 0, 0, 0)
    visit(n, q, x, y)
    y.grad.fill(1)
    with pytest.raises(qd.CannotReplay, match="overwritten"):
        visit.grad(n, q, x, y)
    assert not q.grad.to_numpy().any()


@qd.kernel
def levels(q: qd.types.ndarray(), parent: qd.types.ndarray(), x: qd.types.ndarray()):
    qd.loop_config(serialize=True)
    for level in range(1, 3):
        for k in range(2):
            i = 2 * level + k
            x[i] = x[parent[i]] * q[i]


def grown_by_levels():
    q, parent, x = floats(0, 0, 2, 3, 5, 7), integers(0, 0, 0, 1, 3, 3), floats(1, 1, 0, 0, 0, 0)
    levels(q, parent, x)
    x.grad[4] = x.grad[5] = 1
    return q, parent, x


def test_a_tree_by_levels():
    q, parent, x = grown_by_levels()
    levels.grad(q, parent, x)
    assert q.grad.to_numpy().tolist() == [0, 0, 0, 12, 3, 3]
    assert x.grad.to_numpy().tolist() == [0, 36, 0, 0, 0, 0]
    x[1] = 2
    with pytest.raises(CannotReplay, match="(?s)overwritten before the kernel ends.*another value here.*element 3 of `x` is 3, not 6"):
        levels.grad(q, parent, x)


def test_iterations_that_read_what_they_overwrite_are_an_error():
    @qd.kernel
    def steps(x: qd.types.ndarray()):
        qd.loop_config(serialize=True)
        for t in range(2):
            for i in range(x.shape[0]):
                x[i] = qd.min(x[i], 1.0) * x[i]

    x = floats(0, 1, 3)
    for _ in range(2):                             # 1 is a fixed point
        steps(x)
        x.grad.fill(1)
        with pytest.raises(CannotReplay, match="reads this element before it writes it: element 0 of `x`"):
            steps.grad(x)


def test_a_tree_whose_root_has_changed_is_an_error():
    q, parent, x = grown()
    x[0] = 2
    with pytest.raises(CannotReplay, match="(?s)overwritten before the kernel ends.*another value here"):
        tree.grad(q, parent, x)


def test_parents_that_come_later_are_an_error():
    q, parent, x = floats(2, 3, 5, 7), integers(0, 2, 1, 1), floats(1, 0, 0, 0)
    tree(q, parent, x)
    with pytest.raises(CannotReplay, match="reads this element before it writes it"):
        tree.grad(q, parent, x)


def test_sums_that_are_read_afterwards():
    @qd.kernel
    def total(x: qd.types.ndarray(), s: qd.types.ndarray(), y: qd.types.ndarray()):
        for b in range(1):
            s[0] = 0.0
        for i in range(x.shape[0]):
            s[0] += x[i]
        for i in range(x.shape[0]):
            y[i] = qd.sin(s[0])

    n = 100_000
    x, s, y = floats(*np.linspace(0, 1e-5, n)), floats(0), floats(*np.zeros(n))
    total(x, s, y)
    s.from_numpy(s.to_numpy())
    y.grad[7] = 1
    total.grad(x, s, y)
    assert np.allclose(x.grad.to_numpy(), np.cos(s[0]))


def test_additions_to_elements_found_in_memory():
    @qd.kernel
    def add(at: qd.types.ndarray(), x: qd.types.ndarray(), s: qd.types.ndarray(), y: qd.types.ndarray()):
        for j in range(at.shape[0]):
            i = at[j]
            s[i] = 0.0
            for k in range(3):
                qd.atomic_add(s[i], x[i] * x[i])
            y[i] = qd.sin(s[i])

    at, x, s, y = integers(1, 0), floats(1, 1), floats(0, 0), floats(0, 0)
    add(at, x, s, y)
    s.from_numpy(s.to_numpy())
    y.grad.fill(1)
    add.grad(at, x, s, y)
    assert np.allclose(x.grad.to_numpy(), 6 * np.cos(3))


# Kernels of one element, from where they ran, and the derivative of that launch: what each leaves is a fixed point of it, with
# another derivative. A gradient by hand must not be that one.

@qd.kernel
def minimum(x: qd.types.ndarray()):
    for b in range(1):
        x[0] = qd.min(x[0], 1.0)


@qd.kernel
def square(x: qd.types.ndarray()):
    for b in range(1):
        x[0] = x[0] * x[0]


@qd.kernel
def absolute(x: qd.types.ndarray()):
    for b in range(1):
        x[0] = qd.abs(x[0])


@qd.kernel
def projection(x: qd.types.ndarray()):
    for b in range(1):
        x[0] = x[0] / qd.sqrt(x[0] * x[0])


@qd.kernel
def branch(x: qd.types.ndarray()):
    for b in range(1):
        if x[0] > 1.0:
            x[0] = 1.0


@qd.kernel
def branch_on_another(x: qd.types.ndarray(), y: qd.types.ndarray(), n: qd.types.ndarray()):
    for b in range(1):
        y[n[0]] = x[0]
        if y[n[1]] > 1.0:
            x[0] = 1.0
        y[0] = 3.0


@qd.kernel
def while_loop(x: qd.types.ndarray()):
    for b in range(1):
        while x[0] > 1.0:
            x[0] = x[0] * 0.5


@qd.kernel
def elsewhere(x: qd.types.ndarray(), n: qd.types.ndarray()):
    for b in range(1):
        x[n[0]] = x[0] * x[0]
        n[0] = 1


@pytest.mark.parametrize("kernel, start", [
    (minimum, [5.0]), (square, [-1.0]), (square, [0.0]), (absolute, [-2.0]), (projection, [-3.0]),
    (branch, [5.0]), (while_loop, [5.0])])
def test_fixed_points_with_another_derivative(kernel, start):
    x = floats(*start)
    for _ in range(2):    # the second launch changes nothing
        kernel(x)
        x.grad.fill(1)
        with pytest.raises(CannotReplay):
            kernel.grad(x)
        assert x.grad[0] == 1


def test_a_branch_on_another_element():
    x, y, n = floats(5), floats(0), integers(0, 0)
    branch_on_another(x, y, n)
    branch_on_another(x, y, n)
    with pytest.raises(CannotReplay, match="which elements the kernel uses"):
        branch_on_another.grad(x, y, n)


def test_an_index_that_has_become_another():
    x, n = floats(1, 7), integers(0)
    elsewhere(x, n)
    elsewhere(x, n)
    with pytest.raises(CannotReplay):
        elsewhere.grad(x, n)


def test_an_index_that_leads_nowhere_any_more():
    @qd.kernel
    def lead(x: qd.types.ndarray(), y: qd.types.ndarray(), n: qd.types.ndarray()):
        for b in range(1):
            y[n[0]] = x[0] * x[0]
            n[0] = -1_000_000_000
        for i in range(2):
            x[1] += y[1] * y[1]

    x, y, n = floats(2, 0), floats(0, 0), integers(1)
    lead(x, y, n)
    y.from_numpy(y.to_numpy())
    with pytest.raises(CannotReplay):
        lead.grad(x, y, n)


def test_additions_that_the_gradient_makes_again_begin_with_what_was_there():
    @qd.kernel
    def again(x: qd.types.ndarray(), y: qd.types.ndarray(), w: qd.types.ndarray()):
        for i in range(1):
            x[i] = 2.0
        for i in range(1):
            x[i] += w[i]
            for _ in range(2):
                x[i] = y[i] * x[i]

    x, y, w = floats(0), floats(1), floats(0)
    again(x, y, w)                                 # 2, as it was before the addition
    x.grad.fill(1)
    again.grad(x, y, w)
    assert y.grad[0] == 4
    y[0], w[0] = -1, -1                            # 2, 1, -1, 1
    again(x, y, w)
    x.grad.fill(1)
    with pytest.raises(CannotReplay):
        again.grad(x, y, w)


def test_accumulators_that_are_needed_are_an_error():
    @qd.kernel
    def accumulate(x: qd.types.ndarray(), s: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(2):
            s[i] = s[i] + x[i]
            y[i] = qd.sin(s[i])

    x, s, y = floats(1, 2), floats(0, 0), floats(0, 0)
    accumulate(x, s, y)
    s.from_numpy(s.to_numpy())
    y.grad.fill(1)
    with pytest.raises(CannotReplay):
        accumulate.grad(x, s, y)


def test_nan_is_the_same_value_and_minus_zero_is_another():
    x, y, z = floats(np.nan, 0), floats(0, 0), floats(0, 0)
    compose(x, y, z)
    y.from_numpy(y.to_numpy())
    compose.grad(x, y, z)
    y[1] = -0.0
    with pytest.raises(CannotReplay):
        compose.grad(x, y, z)


def rounded_otherwise(dtype, error):
    """A gradient of `compose` with `fast_math`, where memory holds what it has left but for a relative `error`."""
    qd.init(arch=qd.cpu, default_fp=dtype, fast_math=True)
    x, y, z = (qd.ndarray(dtype, (2,), needs_grad=True) for _ in range(3))
    x.fill(1)
    compose(x, y, z)
    held = y.to_numpy()
    y.from_numpy(held * np.asarray(1 + error, held.dtype))
    z.grad.fill(1)
    compose.grad(x, y, z)
    return x.grad.to_numpy()


@pytest.mark.parametrize("dtype, error", [(qd.f64, 2.0**-50), (qd.f32, 2.0**-20)])
def test_fast_math_may_round_otherwise(dtype, error):
    assert np.allclose(rounded_otherwise(dtype, error), np.sin(2))
    with pytest.raises(CannotReplay, match="another value here"):
        rounded_otherwise(dtype, 2.0**-12)
    with pytest.raises(CannotReplay, match="another value here"):
        rounded_otherwise(dtype, np.nan)


def held_with(dtype, expression, values, error):
    """Gradients of a square of `expression` of `values` with `fast_math`, where memory holds it but for `error`."""
    qd.init(arch=qd.cpu, default_fp=dtype, fast_math=True)

    @qd.kernel
    def compose(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in range(1):
            y[i] = expression(x[0], x[1])
        for i in range(1):
            z[i] = y[i] * y[i]

    x, y, z = (qd.ndarray(dtype, (2,), needs_grad=True) for _ in range(3))
    x.from_numpy(np.array(values, y.to_numpy().dtype))
    compose(x, y, z)
    y[0] = y[0] + error
    z.grad.fill(1)
    compose.grad(x, y, z)
    return x.grad.to_numpy()


@qd.func
def product_less_one(a, b):
    return a * b - 1.0


@qd.func
def scaled_difference(a, b):
    return -(a - b) * 3.0 / 4.0


@qd.func
def chosen_difference(a, b):
    return qd.select(a < b, qd.max(a - b, -1.0), 7.0)


@qd.func
def sum_in_a_loop(a, b):
    s = a
    for _ in range(3):
        s -= b
    return s


#: What is left of their terms, which are about 1: 2^-29 of them or less.
CANCELLING = [(product_less_one, (1 + 2.0**-30, 1 + 2.0**-30)), (scaled_difference, (1, 1 + 2.0**-29)),
              (chosen_difference, (1, 1 + 2.0**-30)), (sum_in_a_loop, (3 + 2.0**-28, 1))]


@pytest.mark.parametrize("expression, values", CANCELLING)
def test_fast_math_is_relative_to_the_terms_of_sums_that_cancel(expression, values):
    expected = held_with(qd.f64, expression, values, 0)
    assert np.allclose(held_with(qd.f64, expression, values, 2.0**-52), expected, rtol=2.0**-20)
    for error in (2.0**-46, -(2.0**-46), np.inf, np.nan):
        with pytest.raises(CannotReplay, match="another value here"):
            held_with(qd.f64, expression, values, error)


def test_fast_math_is_relative_to_the_terms_of_sums_of_f32():
    values = 1 + 2.0**-12, 1 + 2.0**-12
    held_with(qd.f32, product_less_one, values, 2.0**-23)
    with pytest.raises(CannotReplay, match="another value here"):
        held_with(qd.f32, product_less_one, values, 2.0**-17)


@qd.func
def of_a_small_number(a, b):
    return 1.0 / (a - b)


@qd.func
def root_of_a_small_number(a, b):
    return qd.sqrt(a - b)


@pytest.mark.parametrize("expression", [of_a_small_number, root_of_a_small_number])
def test_what_cancels_in_a_function_is_no_excuse(expression):
    values = 1 + 2.0**-40, 1
    held = held_with(qd.f64, expression, values, 0)
    assert np.isfinite(held).all()
    for relative in (2.0**-20, -(2.0**-30)):
        with pytest.raises(CannotReplay, match="another value here"):
            held_with(qd.f64, expression, values, relative * (2.0**40 if expression is of_a_small_number else 2.0**-20))


def test_what_overwrites_may_not_be_as_small_as_rounding():
    qd.init(arch=qd.cpu, default_fp=qd.f64, fast_math=True)

    @qd.kernel
    def clamp(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in range(1):
            y[i] = x[0] - x[1]
        for i in range(1):
            z[i] = qd.max(y[i], 0.0)
        for i in range(1):
            y[i] = z[i]

    x, y, z = floats(1, 1 + 2.0**-52), floats(0), floats(0)
    clamp(x, y, z)                                 # -2^-52 has derivative 0, and 0 has not
    z.grad.fill(1)
    with pytest.raises(CannotReplay, match="overwritten before the kernel ends"):
        clamp.grad(x, y, z)


def test_sums_of_children_that_cancel():
    qd.init(arch=qd.cpu, default_fp=qd.f64, fast_math=True)

    @qd.kernel
    def forces(parent: qd.types.ndarray(), x: qd.types.ndarray(), f: qd.types.ndarray(), y: qd.types.ndarray()):
        for b in range(1):
            for i in range(4):
                f[i] = x[i] * x[i] - 2.0
            for j in range(3):
                f[parent[3 - j]] = f[parent[3 - j]] + f[3 - j]
        for i in range(4):
            y[i] = f[i] * f[i]

    values, parent = np.sqrt([3 - 2.0**-28, 2 - 2.0**-30, 1.0, 2.0]), integers(0, 0, 1, 1)
    x, f, y = floats(*values), floats(0, 0, 0, 0), floats(0, 0, 0, 0)
    forces(parent, x, f, y)
    for error in (0, 2.0**-51):                    # of sums that are about 2^-28
        f[0] = f[0] + error
        x.grad.fill(0)
        y.grad.from_numpy(np.array([1.0, 0, 0, 0]))
        forces.grad(parent, x, f, y)
        assert np.allclose(x.grad.to_numpy(), 4 * f[0] * x.to_numpy(), rtol=2.0**-20)
    f[0] = f[0] + 2.0**-44
    with pytest.raises(CannotReplay, match="another value here.*element 0 of `f`"):
        forces.grad(parent, x, f, y)


def test_fast_math_reads_nothing_before_it_writes_it():
    qd.init(arch=qd.cpu, default_fp=qd.f64, fast_math=True)
    x = floats(5)
    minimum(x)
    x.grad.fill(1)
    with pytest.raises(CannotReplay, match="reads this element before it writes it"):
        minimum.grad(x)


def test_unchecked():
    qd.init(arch=qd.cpu, default_fp=qd.f64, gradients="unchecked")
    q, parent, x = grown()
    x[0] = 4                                       # nobody looks
    tree.grad(q, parent, x)
    assert q.grad.to_numpy().tolist() == [0, 48, 12, 12]
    with pytest.raises(qd.errors.Error, match="gradients"):
        qd.init(gradients="trusted")


def test_one_kernel_unchecked():
    @qd.kernel(gradients="unchecked")
    def half(x: qd.types.ndarray()):
        for b in range(1):
            x[0] = qd.min(x[0], 1.0)

    x = floats(0.5)
    half(x)
    x.grad.fill(1)
    half.grad(x)
    assert x.grad[0] == 1


def test_the_tape_and_the_initial_state_do_not_ask():
    x = floats(5)
    x.grad.fill(1)
    minimum.grad(x, initial_state=True)
    assert x.grad[0] == 0 and x[0] == 5


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_random_kernels(count):
    accepted = 0
    for seed in range(81_000_000, 81_000_000 + count):
        difference, found = compare(seed)
        assert difference == "", f"seed {seed}"
        accepted += found["after somebody has written"] is not None
    assert accepted > count // 20


@pytest.mark.parametrize("fast", (False, True))
def test_the_least_difference_may_lie_beyond_a_kink(fast):
    qd.init(arch=qd.cpu, fast_math=fast)

    @qd.kernel
    def clamped(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] = x[i]
        for i in range(x.shape[0]):
            if y[i] > 1.0:
                z[i] = y[i] * 7.0
            else:
                z[i] = y[i]
        for i in range(x.shape[0]):
            y[i] = qd.min(y[i], 1.0)

    x, y, z = floats(1 + 2**-40), floats(0), floats(0)
    clamped(x, y, z)
    z.grad.fill(1)
    with pytest.raises(CannotReplay):
        clamped.grad(x, y, z)


def test_a_sum_in_any_order_excuses_no_copy():
    @qd.kernel
    def beside(x: qd.types.ndarray(), y: qd.types.ndarray(), s: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in range(1):
            s[i] = 0.0
        for i in range(x.shape[0]):
            y[i] = x[i]
            s[0] += x[i]
        for i in range(x.shape[0]):
            z[i] = qd.select(y[i] > 1.0, 7.0 * y[i] * y[i], y[i] * y[i]) * s[0]

    x, y, s, z = floats(1 + 2**-38), floats(0), floats(0), floats(0)
    beside(x, y, s, z)
    y[0] = 1
    z.grad.fill(1)
    with pytest.raises(CannotReplay):
        beside.grad(x, y, s, z)


@pytest.mark.parametrize("held", (1.01, 5, -100))
@pytest.mark.parametrize("fast", (False, True))
def test_errors_that_a_loop_takes_back_do_not_add_up(fast, held):
    qd.init(arch=qd.cpu, fast_math=fast)

    @qd.kernel
    def average(x: qd.types.ndarray(), y: qd.types.ndarray(), s: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in range(x.shape[0]):
            m = 0.0 * x[i]
            for _ in range(100):
                m += 0.5 * (x[i] * x[i] - m)
            y[i] = m
        for i in range(x.shape[0]):
            s[0] += x[i]
            z[i] = y[i] * y[i]

    x, y, s, z = floats(1), floats(0), floats(0), floats(0)
    average(x, y, s, z)
    z.grad.fill(1)
    average.grad(x, y, s, z)
    assert np.allclose(x.grad.to_numpy(), 4)
    y[0] = held
    z.grad.fill(1)
    with pytest.raises(CannotReplay):
        average.grad(x, y, s, z)
