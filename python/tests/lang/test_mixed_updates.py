"""`-=` and the other atomic updates with a right side of another type: it is converted before it is negated."""

import warnings

import numpy as np
import pytest

import costate as ti

TYPES = (ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.f16, ti.f32, ti.f64, ti.u1)
NUMBERS = TYPES[:-1]


def numbers_of(dtype):
    return [1, 0] if dtype is ti.u1 else [5, 3] if dtype.kind == "u" else [5, -3]


def as_type(number, dtype):
    """A number as an element: integers wrap."""
    return number if dtype.is_float else int(np.array(number).astype(np.int64).astype(dtype.np))


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("right", TYPES, ids=str)
@pytest.mark.parametrize("left", NUMBERS, ids=str)
def test_differences_of_every_pair_of_types(left, right):
    v = ti.field(right, 2)
    x, old, local, vector = (ti.field(left, 2) for _ in range(4))
    pair = ti.Vector.field(2, left, shape=1)
    S = ti.types.struct(member=left)
    of_struct = S.field(shape=2)
    v.from_numpy(np.array(numbers_of(right), right.np))
    for one in (x, old, local, vector, of_struct.member):
        one.fill(100)
    pair.fill(100)

    @ti.kernel
    def subtract():
        for i in range(2):
            x[i] -= v[i]
            ti.atomic_sub(old[i], v[i])
            of_struct[i].member -= v[i]
            a = local[i]
            a -= v[i]
            ti.atomic_sub(a, v[i])
            local[i] = a
            b = ti.Vector([vector[i], vector[i]])
            b -= v[i]
            vector[i] = b[1]
        pair[0] -= ti.Vector([v[0], v[1]])

    subtract()
    expected = [as_type(100 - n, left) for n in numbers_of(right)]
    assert x.to_numpy().tolist() == expected
    assert old.to_numpy().tolist() == expected
    assert of_struct.member.to_numpy().tolist() == expected
    assert vector.to_numpy().tolist() == expected
    assert pair[0].to_list() == expected
    assert local.to_numpy().tolist() == [as_type(100 - 2 * n, left) for n in numbers_of(right)]


@pytest.mark.parametrize("right", TYPES, ids=str)
@pytest.mark.parametrize("left", NUMBERS, ids=str)
def test_constants_and_arguments(left, right):
    x, y = ti.field(left, ()), ti.field(left, ())
    x[None] = y[None] = 100
    n = right.np.type(numbers_of(right)[0])

    @ti.kernel
    def subtract(v: right):
        x[None] -= n
        y[None] -= v

    subtract(n)
    assert x[None] == y[None] == 100 - int(n)


def test_the_old_element():
    x, y = ti.field(ti.f32, ()), ti.field(ti.f32, ())
    x[None] = 1000

    @ti.kernel
    def subtract(v: ti.u32):
        y[None] = ti.atomic_sub(x[None], v)

    subtract(5)
    assert (x[None], y[None]) == (995, 1000)


def test_the_gradient_of_a_difference():
    x, y = (ti.field(ti.f64, (), needs_grad=True) for _ in range(2))
    x[None], y.grad[None] = 3, 1

    @ti.kernel
    def subtract(n: ti.u32):
        y[None] -= n
        y[None] -= n * x[None]

    subtract(2)
    subtract.grad(2)
    assert y[None] == -8 and x.grad[None] == -2


@pytest.mark.parametrize("name", ["add", "sub"])
def test_unsigned_elements_and_negative_floats(name):
    of = {"add": ti.atomic_add, "sub": ti.atomic_sub}[name]
    fields = [ti.field(t, 2) for t in (ti.u8, ti.u16, ti.u32, ti.u64)]
    for x in fields:
        x.fill(100)

    @ti.kernel
    def change(v: ti.f64):
        for x in ti.static(fields):
            of(x[0], v)
            of(x[1], -7.0)

    change(-5)
    sign = -1 if name == "sub" else 1
    for x in fields:
        assert x.to_numpy().tolist() == [100 - 5 * sign, 100 - 7 * sign]


def test_large_unsigned_differences_by_floats():
    x = ti.field(ti.u64, 2)
    x.from_numpy(np.array([2**64 - 1, 0], np.uint64))

    @ti.kernel
    def subtract(a: ti.f64, b: ti.f64):
        x[0] -= a
        x[1] -= b

    subtract(2.0**63, -2.0**63)
    assert x.to_numpy().tolist() == [2**63 - 1, 2**63]


def test_extrema_do_not_wrap():
    x = ti.field(ti.i8, 6)
    x.from_numpy(np.array([100, 100, -100, 100, 7, 7], np.int8))

    @ti.kernel
    def limit(large: ti.i32, small: ti.i64, unsigned: ti.u32, nothing: ti.f32):
        ti.atomic_min(x[0], large)
        ti.atomic_max(x[1], small)
        ti.atomic_max(x[2], unsigned)
        ti.atomic_min(x[3], 300)
        ti.atomic_min(x[4], nothing)
        ti.atomic_max(x[5], nothing)

    limit(200, -2**40 - 1, 3 * 10**9, float("nan"))
    assert x.to_numpy().tolist() == [100, 100, 127, 100, 7, 7]


def test_bools_have_no_sums():
    x = ti.field(ti.u1, 1)

    @ti.kernel
    def change():
        x[0] -= True

    with pytest.raises(ti.QuadrantsTypeError, match=r"an element of type u1 has no atomic `sub`; use `&=`"):
        change()


def test_fractions_that_are_lost_are_warned_of():
    x = ti.field(ti.i32, 1)

    @ti.kernel
    def change():
        x[0] -= 0.5

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        change()
    assert any("may lose precision: i32 <- f32" in str(w.message) for w in seen)
