"""Numbers that go through the host inside of a `Tape` or `FwdMode` keep their derivatives."""

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import costate as ti


@pytest.fixture
def fields(double):
    x, y = (ti.field(ti.f64, 3, needs_grad=True, needs_dual=True) for _ in range(2))
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
    x.from_numpy(np.array([0.6, 1.3, 2.0]))
    return x, y, loss


@ti.kernel
def scaled(a: ti.f64, x: ti.template(), loss: ti.template()):
    for i in x:
        loss[None] += a * x[i] * x[i]


@ti.kernel
def total(x: ti.template(), loss: ti.template()):
    for i in x:
        loss[None] += x[i] * x[i] * x[i]


def gradient(program, x, loss):
    """By a `Tape`, by `FwdMode`, and by differences."""
    start = x.to_numpy()
    with ti.ad.Tape(loss):
        program()
    tape = x.grad.to_numpy()
    forward, differences = np.zeros(start.shape), np.zeros(start.shape)
    for index in np.ndindex(start.shape):
        seed = np.zeros(start.shape)
        seed[index] = 1
        x.from_numpy(start)
        loss.fill(0)
        with ti.ad.FwdMode(loss=loss, param=x, seed=seed.reshape(-1)):
            program()
        forward[index] = loss.dual[None]
        sides = []
        for step in (1e-6, -1e-6):
            x.from_numpy(start + step * seed)
            loss.fill(0)
            program()
            sides.append(loss[None])
        differences[index] = (sides[0] - sides[1]) / 2e-6
    x.from_numpy(start)
    return tape, forward, differences


def check(program, x, loss):
    tape, forward, differences = gradient(program, x, loss)
    assert np.abs(tape).max() > 0
    np.testing.assert_allclose(tape, differences, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(forward, tape, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("of", [
    lambda a, b: a, lambda a, b: +a, lambda a, b: -a, lambda a, b: a + b, lambda a, b: 2 - a, lambda a, b: a - 2, lambda a, b: 3 * a * b,
    lambda a, b: a / b, lambda a, b: 1 / a, lambda a, b: a ** b, lambda a, b: a ** 3, lambda a, b: 2 ** a, lambda a, b: b % a,
    lambda a, b: 2.5 % a, lambda a, b: abs(a - b), lambda a, b: min(a, b), lambda a, b: max(a, b, 1), lambda a, b: sum([a, b, 1]),
    lambda a, b: a.real, lambda a, b: copy.deepcopy([a])[0], lambda a, b: a if a < b else b,
    lambda a, b: np.sin(a), lambda a, b: np.exp(a) * np.float64(2), lambda a, b: np.float64(2) * a,
    lambda a, b: np.arctan2(a, b), lambda a, b: np.hypot(a, b), lambda a, b: np.maximum(a, b), lambda a, b: np.power(a, b),
    lambda a, b: np.sqrt(a), lambda a, b: np.arcsin(a), lambda a, b: np.log1p(a) + np.square(b), lambda a, b: np.fmod(b, a),
    lambda a, b: ti.sin(a), lambda a, b: ti.atan2(a, b), lambda a, b: ti.sqrt(a) * ti.exp(-b), lambda a, b: ti.max(a, b),
    lambda a, b: ti.pow(a, b), lambda a, b: ti.hypot(a, b), lambda a, b: ti.rsqrt(a), lambda a, b: ti.erf(a),
    lambda a, b: divmod(b, a)[1], lambda a, b: a * Fraction(1, 3) + Fraction(1, 2) / b, lambda a, b: np.clip(b * a, 0, 1),
    lambda a, b: np.where(a > b, a, b), lambda a, b: ti.frexp(3 * b)[0], lambda a, b: ti.math.mix(a, b, 0.3),
    lambda a, b: ti.cast(a, ti.f64), lambda a, b: ti.raw_mod(b, a), lambda a, b: ti.Vector([a, b]).norm(),
    lambda a, b: ti.Vector([a, b]).dot(ti.Vector([b, a])), lambda a, b: ti.Matrix([[a, b], [1, 2]]).inverse()[0, 0],
])
def test_operators_and_functions(fields, of):
    x, y, loss = fields

    def program():
        a, b = x[0], x[1]
        scaled(of(a, b), x, loss)
    check(program, x, loss)


def test_a_chain_of_updates_by_the_host(fields):
    x, y, loss = fields

    def program():
        total_so_far = 0.0
        for k in range(3):
            x[k] += 0.5 * x[(k + 1) % 3] * total_so_far
            total_so_far += x[k] ** 2
            y[k] = total_so_far
            scaled(total_so_far, x, loss)
        total(y, loss)
    check(program, x, loss)


def test_an_element_is_overwritten_between_read_and_use(fields):
    x, y, loss = fields

    def program():
        y.fill(0)
        a = x[0]
        x[0] = 5.0
        scaled(a, x, loss)
        x.fill(a * a)
        b = x[1]
        x.fill(0)
        scaled(b, y, loss)
        y.fill(b)
        scaled(b, y, loss)
    check(program, x, loss)


def test_numbers_that_kernels_return(fields):
    x, y, loss = fields

    @ti.kernel
    def energy(a: ti.f64) -> ti.f64:
        e = 0.0
        for i in x:
            e += a * x[i] * x[i]
        return e

    @ti.kernel
    def moments() -> ti.types.vector(2, ti.f64):
        return ti.Vector([x[0] * x[1], x[2]])

    def program():
        e = energy(x[1])
        e = energy(e * 0.1)
        m = moments()
        scaled(e * m[0] + m.norm(), x, loss)
    check(program, x, loss)


def test_vectors(fields):
    x, _, loss = fields
    v = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True, needs_dual=True)

    @ti.kernel
    def spread(a: ti.types.vector(2, ti.f64)):
        for i in v:
            v[i] += a * x[i] * x[2]

    @ti.kernel
    def squares():
        for i in v:
            loss[None] += v[i].dot(v[i]) + v[i][0]

    def program():
        v[0] = ti.Vector([x[0], x[1] * x[1]])
        v[1] = [x[2], 1.0]
        a = v[0]
        a[1] = a[0] * 3
        spread(v[0] * 2 + a.yx)
        v[1].x = v[0].y * v[1][0]
        spread([v[1].x, 2.0])
        squares()
    check(program, x, loss)


def test_components_as_fields(fields):
    x, _, loss = fields
    v = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True, needs_dual=True)

    @ti.kernel
    def squares(a: ti.f64):
        for i in v:
            loss[None] += a * v[i][0] ** 2 * v[i][1]

    def program():
        left, right = v.get_scalar_field(0), v.get_scalar_field(1)
        left.fill(x[0])
        right.from_numpy(np.array([x[1], 2.0], dtype=object))
        left[1] *= right[0]
        squares(left[1])
    check(program, x, loss)
    with pytest.raises(ti.errors.NotDifferentiable, match="comes from a field"):
        with ti.ad.Tape(loss):
            v.get_scalar_field(0).from_numpy(v.get_scalar_field(1).to_numpy())


def test_structs(fields):
    x, _, loss = fields
    s = ti.types.struct(p=ti.f64, q=ti.types.vector(2, ti.f64)).field(shape=2, needs_grad=True, needs_dual=True)
    kind = ti.types.struct(a=ti.f64, b=ti.types.vector(2, ti.f64))

    @ti.kernel
    def squares(k: kind):
        for i in s:
            loss[None] += k.a * s[i].p * s[i].q.dot(k.b)

    @ti.kernel
    def both() -> kind:
        return kind(a=x[0] * x[1], b=ti.Vector([x[1], x[2]]))

    def program():
        s[0].p = x[0] * x[1]
        s[0].q[1] = s[0].p * 2
        s[1] = {"p": x[2], "q": [x[0], 1.0]}
        squares(both())
    check(program, x, loss)


def test_ndarrays_and_many_dimensions(fields):
    x, _, loss = fields
    m = ti.ndarray(ti.f64, (2, 3), needs_grad=True, needs_dual=True)

    @ti.kernel
    def of_ndarray(a: ti.f64, m: ti.types.ndarray()):
        for i, j in m:
            loss[None] += a * m[i, j] * m[i, j]

    def program():
        m.fill(x[0])
        m[-1, -2] = x[1] * m[0, 0]
        of_ndarray(m[1, 1], m)
    check(program, x, loss)


def test_lists_of_numbers(fields):
    x, y, loss = fields

    def program():
        y.from_numpy([x[2], 2.0, x[0] * x[1]])
        total(y, loss)
        y.from_numpy(np.array([x[1], x[1], 1.0], dtype=object))
        total(y, loss)
        loss[None] += x[0]
    check(program, x, loss)


def test_numbers_of_objects(fields):
    x, _, loss = fields

    @ti.data_oriented(template_primitives=False)
    class Model:
        def __init__(self):
            self.a, self.n = 0.5, 2

        @ti.kernel
        def run(self):
            for i in x:
                loss[None] += self.a * x[i] ** self.n
            for i in x:
                loss[None] += self.a

    model = Model()

    def program():
        model.a = x[0] * 2
        model.run()
        model.a = 1.0
        model.run()
    check(program, x, loss)


def test_numbers_print_compare_and_are_kept_as_before(fields):
    x, _, loss = fields
    with ti.ad.Tape(loss):
        a = x[0]
        total(x, loss)
        assert isinstance(a, float) and repr(a) == "0.6" and str(a) == "0.6" and f"{a:.2f}" == "0.60" and "%.1f" % a == "0.6"
        assert json.dumps({"a": a}) == '{"a": 0.6}' and a < 1 and a == 0.6 and hash(a) == hash(0.6) and {0.6: 1}[a] == 1
        assert round(a) == 1 and int(a) == 0 and divmod(a, 1) == (0.0, 0.6) and math.sqrt(a) == math.sqrt(0.6)
        assert type(pickle.loads(pickle.dumps(a))) is float and type(float(a)) is float and a // 1 == 0
        assert np.isfinite(a) and np.floor(a) == 0 and np.array([a]).tolist() == [0.6] and np.allclose(a, 0.6)
        assert ti.stop_gradient(a) == a and type(ti.stop_gradient(a) + 1) is float
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * x.to_numpy() ** 2)
    assert type(a + 1) is float and type(x[0]) is float
    with ti.ad.Tape(loss):
        scaled(a, x, loss)      # a number of another recording
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * 0.6 * x.to_numpy())


def test_constants_by_request(fields):
    x, _, loss = fields
    with ti.ad.Tape(loss):
        scaled(float(x[0]), x, loss)
        scaled(ti.stop_gradient(x[0]), x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 4 * 0.6 * x.to_numpy())


def test_sparse_fields(fields):
    x, _, loss = fields
    t = ti.field(ti.f64)
    node = ti.root.pointer(ti.i, 4)
    node.place(t, t.grad, t.dual)

    @ti.kernel
    def add(a: ti.f64):
        for i in t:
            loss[None] += a * t[i] * t[i]

    def program():
        t[2] = x[0]
        t[1] = t[2] * x[1]
        add(t[1])
        t.fill(x[2])
        add(1.0)
    check(program, x, loss)


# -- what cannot be recorded is an error ---------------------------------------------------


def test_what_is_compiled_in_is_refused(fields):
    x, _, loss = fields

    @ti.data_oriented
    class Model:
        a = 0.5

        @ti.kernel
        def run(self):
            loss[None] += self.a * x[1]

    @ti.kernel
    def fixed(a: ti.template()):
        loss[None] += a * x[1]
    model = Model()
    fixed(x[0])
    for use in (lambda: setattr(model, "a", x[0]) or model.run(), lambda: fixed(x[0])):
        with pytest.raises(ti.errors.NotDifferentiable, match=r"element of a field.* compiled.*derivative would be lost"):
            with ti.ad.Tape(loss):
                use()
    model.a = 0.5
    with ti.ad.Tape(loss):
        fixed(float(x[0]))
        model.run()
    assert x.grad[1] == pytest.approx(1.1)


def test_functions_of_numpy_without_a_known_derivative(fields):
    x, _, loss = fields
    for of in (lambda a: np.sinc(a), lambda a: np.interp(a, [0, 1], [0, 1]), lambda a: np.sum(a) * 2, lambda a: np.logaddexp(a, 1)):
        with pytest.raises(ti.errors.NotDifferentiable, match="comes from an element of a field.*derivative would be lost"):
            with ti.ad.Tape(loss):
                scaled(of(x[0]) + 1, x, loss)


def test_operations_without_a_derivative(fields):
    x, _, loss = fields
    for of in (lambda a: (a + 1j).real, lambda a: ti.bit_cast(a, ti.i64)):
        with pytest.raises(ti.errors.NotDifferentiable, match="element of a field is (an operand beside a complex|taken for its bits)"):
            with ti.ad.Tape(loss):
                of(x[0])
        of(x[0])


def test_numbers_that_leave_a_function_with_a_gradient_of_its_own(fields):
    x, _, loss = fields

    @ti.ad.grad_replaced
    def first():
        scaled(x[0], x, loss)
        return x[0] * 2

    @ti.ad.grad_for(first)
    def first_gradient():
        x.grad[0] += 1

    @ti.ad.no_grad
    def constant():
        return x[0]
    with pytest.raises(ti.errors.NotDifferentiable, match="leaves a function with a gradient of its own"):
        with ti.ad.Tape(loss):
            scaled(first(), x, loss)
    with ti.ad.Tape(loss):
        assert first() == 1.2
        scaled(constant(), x, loss)
    assert x.grad[0] == pytest.approx(1 + 2 * 0.6 * 0.6)


def test_arrays_without_a_gradient(fields):
    x, _, loss = fields
    plain = ti.field(ti.f64, 3, name="plain")
    whole = ti.field(ti.i32, 3)
    with ti.ad.Tape(loss):
        total(x, loss)
        plain[0] = loss[None]       # kept for later
        whole[0] = int(loss[None])
    for mode in (lambda: ti.ad.Tape(loss), lambda: ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0])):
        with pytest.raises(ti.errors.MissingGradient, match="plain"):
            with mode():
                plain[0] = x[0]
                total(plain, loss)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_what_kernels_leave_in_arrays_without_a_gradient(fields, mode):
    x, y, loss = fields
    plain, clock = ti.field(ti.f64, 2, name="plain"), ti.field(ti.f64, ())

    @ti.kernel
    def store():
        for i in range(2):
            plain[i] = x[i] * x[i]

    @ti.kernel
    def tick():
        for i in range(1):
            clock[None] += 0.25

    def tape():
        return ti.ad.Tape(loss) if mode == "reverse" else ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0])
    for use in (lambda: scaled(plain[0] * 2, x, loss), lambda: y.__setitem__(0, plain[1]) or total(y, loss)):
        with pytest.raises(ti.errors.MissingGradient, match="element of field `plain` .*no gradient" if mode == "reverse" else "plain"):
            with tape():
                store()
                use()
    if mode == "reverse":
        with tape():
            tick()
            tick()
            scaled(clock[None] + x[0] * clock[None], x, loss)      # 0.5 (1 + x0)
            scaled(clock[None], x, loss)
        np.testing.assert_allclose(x.grad.to_numpy(), 2 * (1 + 0.3) * x.to_numpy() + [0.5 * (x.to_numpy() ** 2).sum(), 0, 0])
        with tape():
            store()
            total(x, loss)
            assert plain[0] == pytest.approx(0.36)     # for a log


def test_numbers_of_a_tape_of_another_thread(fields):
    import threading
    x, _, loss = fields
    other = ti.field(ti.f64, (), needs_grad=True)
    found = []

    def work(a):
        try:
            with ti.ad.Tape(other):
                scaled(a, x, other)
        except Exception as error:
            found.append(error)
    with ti.ad.Tape(loss):
        total(x, loss)
        thread = threading.Thread(target=work, args=(x[0],))
        thread.start()
        thread.join()
    assert isinstance(found[0], ti.errors.BadArgument) and "another thread" in str(found[0])


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("use", [
    lambda x, y, k: y.from_numpy(x.to_numpy()),
    lambda x, y, k: y.from_numpy(2 * x.to_numpy()[::-1] + 1),
    lambda x, y, k: y.from_numpy(np.concatenate([x.to_numpy()[1:], [0]])),
    lambda x, y, k: y.from_numpy(np.where(x.to_numpy() > 1, x.to_numpy(), 0)),
    lambda x, y, k: y.from_numpy(np.sin(x.to_numpy(ti.f32)).astype(np.float64)),
    lambda x, y, k: y.fill(x.to_numpy().sum()),
    lambda x, y, k: y.__setitem__(0, x.to_numpy()[0] * 2),
    lambda x, y, k: y.__setitem__(0, np.mean(x.to_numpy())),
    lambda x, y, k: k(x.to_numpy(), 1.0),
    lambda x, y, k: k(np.ones(3), np.dot(x.to_numpy(), [1, 2, 3])),
    lambda x, y, k: k(np.ones(3), x.to_numpy()[:1]),
    lambda x, y, k: k(np.ones(3), math.sin(x[0])),
    lambda x, y, k: y.__setitem__(0, math.exp(x[0])),
    lambda x, y, k: y.fill(math.sqrt(x[1] * x[1] + x[0])),
    lambda x, y, k: y.from_numpy(np.ones(3) * x[0]),
    lambda x, y, k: y.from_numpy(ti.Vector([x[0], x[1], x[2]]).to_numpy()),
    lambda x, y, k: k(np.ones(3) * x[1], 1.0),
])
def test_what_nobody_can_follow(fields, use, mode):
    x, y, loss = fields

    @ti.kernel
    def k(n: ti.types.ndarray(), a: ti.f64):
        for i in x:
            loss[None] += a * n[i]
    k(np.ones(3), 1.0)
    with pytest.raises(ti.errors.NotDifferentiable, match="comes from (an element of )?a field"):
        with ti.ad.Tape(loss) if mode == "reverse" else ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1]):
            k(np.ones(3), 2.0)
            use(x, y, k)
    use(x, y, k)


@pytest.mark.filterwarnings("ignore:the gradient of a field is 0 inside")
def test_arrays_print_compare_and_are_kept_as_before(fields):
    x, y, loss = fields
    with ti.ad.Tape(loss):
        a = x.to_numpy()
        total(x, loss)
        assert isinstance(a, np.ndarray) and a.tolist() == [0.6, 1.3, 2.0] and str(a) == "[0.6 1.3 2. ]"
        assert type(a > 1) is np.ndarray and type(pickle.loads(pickle.dumps(a))) is np.ndarray and np.allclose(a, [0.6, 1.3, 2])
        assert a[0].item() == 0.6 and json.dumps([a[0], a.sum(), a.max()]) == "[0.6, 3.9, 2.0]" and f"{a.mean():.1f}" == "1.3"
        y.from_numpy(np.array(a))
        total(y, loss)
        assert type(x.grad.to_numpy()) is np.ndarray
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * x.to_numpy() ** 2)
    y.from_numpy(a * 2)
    assert type(x.to_numpy()) is np.ndarray and type(a + 1) is np.ndarray


def test_constants_that_math_computes(fields):
    x, _, loss = fields
    with ti.ad.Tape(loss):
        a = x[0]
        scaled(ti.stop_gradient(math.sin(a)), x, loss)
        scaled(ti.ad.stop_grad(math.sin(a)), x, loss)
        scaled(0.5, x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * (2 * math.sin(0.6) + 0.5) * x.to_numpy())


def test_the_host_writes_the_loss(fields):
    x, _, loss = fields

    def program():
        loss[None] += x[0] * x[1]
        loss[None] *= loss[None]
        loss[None] = loss[None] + np.sin(x[2])
    check(program, x, loss)


def test_functions_of_short_numbers_are_warnings(fields):
    x, _, loss = fields
    x[0] = 2
    with pytest.warns(UserWarning, match="math.sqrt. of a number that comes from an element of a field"):
        with ti.ad.Tape(loss):
            a = x[0]
            scaled(math.sqrt(2), x, loss)
    assert a == 2


# -- beside other things that a Tape does ----------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"snapshots": 2}, {"budget": 2000}, {"clear_gradients": False}, {"validation": True}], ids=str)
def test_options_of_tapes(fields, options):
    x, y, loss = fields
    x.from_numpy(np.array([0.6, 1.3, 0.9]))

    @ti.kernel
    def step(a: ti.f64) -> ti.f64:
        for i in x:
            x[i] = ti.sin(x[i] * a) + 0.1 * x[i]
        return x[1] * a

    def program(tape=None):
        a = 1.0
        for _ in tape.steps(8) if tape else range(8):
            a = step(a) * 0.5 + x[0]
            scaled(a, x, loss)
    start = x.to_numpy()
    x.grad.fill(0)
    with ti.ad.Tape(loss, **options) as tape:
        program(tape)
    found = x.grad.to_numpy()
    x.from_numpy(start)
    check(program, x, loss)
    x.from_numpy(start)
    with ti.ad.Tape(loss):
        program()
    np.testing.assert_allclose(found, x.grad.to_numpy(), rtol=1e-12)


def test_threads_have_numbers_of_their_own(double):
    import threading

    def work(factor, results):
        x, loss = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
        x.from_numpy(factor * np.array([0.6, 1.3, 2.0]))
        for _ in range(20):
            with ti.ad.Tape(loss):
                scaled(x[0] * x[1], x, loss)
        results[factor] = x.grad.to_numpy()
    results = {}
    threads = [threading.Thread(target=work, args=(k, results)) for k in (1.0, 2.0, 3.0)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for factor in (2.0, 3.0):
        np.testing.assert_allclose(results[factor], factor ** 3 * results[1.0])
    x = np.array([0.6, 1.3, 2.0])
    np.testing.assert_allclose(results[1.0], [1.3 * x @ x + 2 * 0.6 ** 2 * 1.3, 0.6 * x @ x + 2 * 0.6 * 1.3 ** 2, 4 * 0.6 * 1.3])


@pytest.mark.parametrize("dtype", [ti.f16, ti.f32, ti.f64], ids=str)
def test_types(double, dtype):
    x, loss = ti.field(dtype, 2, needs_grad=True, needs_dual=True), ti.field(ti.f32, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def k(a: dtype) -> dtype:
        loss[None] += ti.cast(a * x[0], ti.f32)
        return a * x[1]

    def program():
        b = k(x[1])
        x[0] = b * 2
        k(b)
    x[0], x[1] = 0.5, 1.5
    with ti.ad.Tape(loss):
        program()
    # x0 x1 + b 2b with b = x1 x1
    np.testing.assert_allclose(x.grad.to_numpy(), [1.5, 0.5 + 8 * 1.5 ** 3], rtol=1e-2 if dtype is ti.f16 else 1e-6)
    x[0], x[1] = 0.5, 1.5
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1]):
        program()
    assert loss.dual[None] == pytest.approx(2 + 8 * 1.5 ** 3, rel=1e-2 if dtype is ti.f16 else 1e-6)


def test_numbers_that_are_kept_hold_no_arrays(fields):
    import gc
    import weakref
    x, _, loss = fields
    other = ti.ndarray(ti.f64, 3, needs_grad=True)
    with ti.ad.Tape(loss):
        total(x, loss)
        a = other[0] + x[0]
    known = weakref.ref(other)
    gc.disable()
    try:
        del other
        assert known() is None
    finally:
        gc.enable()
    assert a == 0.6


def test_failed_tapes_leave_gradients_alone(fields):
    x, _, loss = fields
    with pytest.raises(ZeroDivisionError):
        with ti.ad.Tape(loss):
            scaled(x[0], x, loss)
            1 / 0
    assert x.grad.to_numpy().tolist() == [0, 0, 0]
    with ti.ad.Tape(loss):
        scaled(x[0], x, loss)
    assert x.grad[1] == pytest.approx(2 * 0.6 * 1.3)


def test_known_launches_take_numbers_of_tapes_that_have_ended(fields, monkeypatch):
    from costate.lang.launch.kernel import Kernel
    x, _, loss = fields
    with ti.ad.Tape(loss):
        a = x[0]
        scaled(1.0, x, loss)
    scaled(2.0, x, loss)
    monkeypatch.setattr(Kernel, "specialise", None)
    loss[None] = 0
    scaled(a, x, loss)
    assert loss[None] == pytest.approx(0.6 * (x.to_numpy() ** 2).sum())
