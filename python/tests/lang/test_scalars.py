"""Numbers of the host: one rule for arguments, elements and `fill`; constants of kernels and typed vectors."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import costate as ti

INTEGERS = (ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64)
FLOATS = (ti.f16, ti.f32, ti.f64)


def ways(dtype):
    """Functions that make a number an element, an argument, ..., and give what it has become."""
    def element(value, make):
        x = make()
        x[0] = value
        return x[0]

    def filled(value):
        x = ti.field(dtype, 2)
        x.fill(value)
        return x[1]

    def component(value):
        v = ti.Vector.field(2, dtype, 1)
        v[0] = [value, 1]
        return v[0][0]

    def filled_vector(value):
        v = ti.Vector.field(2, dtype, 1)
        v.fill([1, value])
        return v[0][1]

    @ti.kernel
    def given(a: dtype) -> dtype:
        return a

    @ti.kernel
    def vector(a: ti.types.vector(2, dtype)) -> dtype:
        return a[1]

    return (lambda v: element(v, lambda: ti.field(dtype, 1)), lambda v: element(v, lambda: ti.ndarray(dtype, 1)), filled,
            component, filled_vector, given, lambda v: vector([1, v]))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_out_of_range(dtype):
    lo, hi = ti.lang.dtypes.value_range(dtype)
    for way in ways(dtype):
        assert way(lo) == lo and way(hi) == hi
        for value in (lo - 1, hi + 1, 2**70):
            with pytest.raises(ti.QuadrantsRuntimeTypeError, match=f"cannot be converted into required type {dtype}: {value} is "
                                                                   "out of range"):
                way(value)


@pytest.mark.parametrize("dtype", (ti.f16, ti.f32), ids=str)
def test_floats_out_of_range(dtype):
    for way in ways(dtype):
        assert way(float("inf")) == float("inf") and np.isnan(way(float("nan"))) and way(-2) == -2
        for value in (1e300, -2**200, 10**400, Fraction(10**400)):
            with pytest.raises(ti.QuadrantsRuntimeTypeError, match="it is out of range: up to "):
                way(value)


def test_fractions_and_nan_are_no_integers():
    *others, given, vector = ways(ti.i32)
    for value in (1.5, float("nan"), float("inf"), np.float32(0.5), Decimal("2.5"), Fraction(1, 2)):
        for way in (*others, given, vector):
            with pytest.raises(ti.QuadrantsRuntimeTypeError, match="cannot be converted into required type i32"):
                way(value)
    assert all(way(2.0) == 2 for way in others)


@pytest.mark.parametrize("dtype", (ti.i32, ti.f64), ids=str)
def test_numbers_of_many_kinds(dtype):
    torch = pytest.importorskip("torch")
    values = [3, np.int64(3), np.uint8(3), np.array(3), np.array([3]), torch.tensor(3), torch.tensor([[3]]),
              Decimal(3), Fraction(3), ti.f32(3) if dtype.is_float else ti.i32(3)]
    if dtype.is_float:
        values += [Decimal("0.5"), Fraction(1, 4), torch.tensor(0.5), np.float16(0.5)]
    for way in ways(dtype):
        for value in values:
            assert way(value) == (3 if isinstance(value, np.ndarray) else float(value))


def test_what_is_no_number():
    for way in ways(ti.f32):
        for value in ("3", None, 1j, [1, 2, 3], np.zeros(2), object(), ti.field(ti.f32, 2)):
            with pytest.raises((TypeError, ValueError)):
                way(value)


def test_constants_of_kernels():
    x, u, v = ti.field(ti.i32, 1), ti.field(ti.u32, 1), ti.Vector.field(2, ti.u8, 1)
    large = 2**40

    @ti.kernel
    def stored():
        x[0] = 2**31

    @ti.kernel
    def added():
        x[0] += large

    @ti.kernel
    def negative():
        u[0] = -1

    @ti.kernel
    def of_vector():
        v[0] = ti.Vector([300, 1])

    @ti.kernel
    def returned() -> ti.i32:
        return large

    @ti.kernel
    def named():
        y = 2**40
        x[0] = y

    @ti.kernel
    def declared():
        y: ti.i32 = large
        x[0] = y

    for kernel in (stored, added, negative, of_vector, returned, named, declared):
        with pytest.raises(ti.QuadrantsTypeError, match=r"is out of the range of .*; use `\w+.cast"):
            kernel()
    assert x[0] == u[0] == 0

    @ti.kernel
    def lowest():
        x[0] = ti.cast(2**40 + 5, ti.i32)
        u[0] = ti.u32(-1)

    lowest()
    assert x[0] == 5 and u[0] == 2**32 - 1


def test_typed_vectors_keep_their_type():
    ti.init(arch=ti.cpu, default_ip=ti.i64)
    assert ti.math.uvec2.dtype is ti.u64
    a, third = ti.types.vector(2, ti.u32)(1, 2), ti.Vector([1 / 3], dt=ti.f64)
    out, real = ti.field(ti.u64, ()), ti.field(ti.f64, ())

    @ti.kernel
    def k():
        out[None] = a[0] - a[1]
        real[None] = third[0]

    @ti.kernel
    def wide(v: ti.math.uvec2) -> ti.u64:
        return v[0] + ti.math.uvec2(2**40, 1)[0]

    k()
    assert out[None] == 2**32 - 1 and real[None] == 1 / 3
    assert wide(ti.math.uvec2(2**41, 1)) == 2**41 + 2**40
    ti.init(arch=ti.cpu)
    assert ti.math.uvec3.dtype is ti.u32
    ti.init(arch=ti.cpu, default_up=ti.u16)
    assert ti.math.uvec3.dtype is ti.u16
    for make in (lambda: ti.types.vector(2, ti.u8)(300, 1), lambda: ti.Vector([300, 1], dt=ti.u8),
                 lambda: ti.types.struct(a=ti.u8)(300)):
        with pytest.raises(ti.QuadrantsTypeError, match="300 is out of the range of u8"):
            make()


def test_structs_of_structs():
    inner = ti.types.struct(a=ti.f32, b=ti.i32)
    outer = ti.types.struct(i=inner, p=ti.f32, v=ti.math.vec2)

    @ti.kernel
    def k(n: ti.i32) -> ti.types.vector(4, ti.f32):
        s = outer(3)
        t = outer(inner(1, 2), n, ti.Vector([5.0, 6.0]))
        return ti.Vector([s.i.a, s.p + s.i.b, t.i.b, t.p])

    assert k(4).to_list() == [3, 0, 2, 4]
    s = outer(3)
    assert (s.i.a, s.i.b, s.p) == (3, 0, 0)
    assert outer([1, 2]).i.b == 2 and outer({"b": 7}).i.b == 7
    field = outer.field(shape=1)
    field[0] = outer(inner(8, 9))
    assert field[0].i.b == 9
    for wrong, text in ((lambda: outer({"c": 1}), "no member `c`"), (lambda: outer(1, 2, 3, 4), "has 3 members, not 4"),
                        (lambda: outer(1, i=2), "given its member `i` twice")):
        with pytest.raises(ti.QuadrantsTypeError, match=text):
            wrong()


def test_the_absolute_value_of_numbers_of_another_library():
    class Signed:
        def __abs__(self):
            return "its own"

    assert ti.abs(Signed()) == "its own" and ti.abs(Decimal(-2)) == 2
    with pytest.raises(ti.QuadrantsTypeError, match="is not a number"):
        ti.abs("x")


@pytest.mark.parametrize("dtype", [ti.i32, ti.u32, ti.i64], ids=str)
def test_integers_to_negative_powers_are_rounded_to_zero(dtype):
    @ti.kernel
    def power(a: dtype, n: ti.i32) -> dtype:
        return a ** n

    bases = (0, 1, 2, 5, 2 ** 31 - 1) + ((-1, -2, -3) if dtype is not ti.u32 else ())
    for a in bases:
        for n in (-3, -2, -1, 0, 1):
            assert power(a, n) == (a ** n if n >= 0 or abs(a) == 1 else 0), (a, n)


def whole_arrays(dtype, shape):
    """Functions that take the elements of an array, and what holds them."""
    field, array, vector = ti.field(dtype, shape), ti.ndarray(dtype, shape), ti.Vector.field(2, dtype, shape)
    part = vector.get_scalar_field(1)
    return [(one, one.from_numpy) for one in (field, array, part)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_arrays_of_integers_out_of_range(dtype):
    lo, hi = ti.lang.dtypes.value_range(dtype)
    for one, take in whole_arrays(dtype, (2, 2)):
        wider = [(np.array([[0, 1], [value, 3]], kind), value) for kind in (np.int64, np.uint64) for value in (lo - 1, hi + 1)
                 if np.iinfo(kind).min <= value <= np.iinfo(kind).max]
        for given, value in wider:
            with pytest.raises(ti.QuadrantsRuntimeTypeError, match=rf"element \(1, 0\), .*into required type {dtype}: {value} is out of range"):
                take(given)
        take(np.array([[lo, hi], [0, 3]], np.int64 if lo else np.uint64))
        assert one.to_numpy().tolist() == [[lo, hi], [0, 3]]


@pytest.mark.parametrize("kind", (np.float16, np.float32, np.float64))
def test_arrays_of_floats_as_integers(kind, recwarn):
    for one, take in whole_arrays(ti.i32, 3):
        take(np.array([1, -2, 3], kind))
        assert one.to_numpy().tolist() == [1, -2, 3] and not recwarn
        for bad in (float("nan"), float("inf")):
            with pytest.raises(ti.QuadrantsRuntimeTypeError, match=r"element \(2,\), .*is out of range"):
                take(np.array([1, 2, bad], kind))
        with pytest.warns(UserWarning, match=r"i32 <- float\d\d: element \(1,\) of .* is -1.5 and becomes -1; `astype`"):
            take(np.array([1, -1.5, 2.5], kind))
        assert one.to_numpy().tolist() == [1, -1, 2]
        recwarn.clear()


def test_an_array_of_one_element_as_an_integer():
    x = ti.field(ti.i8, ())
    with pytest.raises(ti.QuadrantsRuntimeTypeError, match=r"element \(\), .*300 is out of range"):
        x.from_numpy(np.array(300))
