"""Values, types and operators."""

import math
import sys
import warnings

import numpy as np
import pytest

import costate as ti


def result_of(expression, dtype, **names):
    """`expression` over scalars in a kernel, as a `dtype`. `names`: (type, value)."""
    import linecache
    parameters = ", ".join(f"{n}: ti.{t}" for n, (t, _) in names.items())
    text = f"@ti.kernel\ndef k({parameters}) -> ti.{dtype}:\n    return {expression}\n"
    name = f"<test {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"ti": ti, "math": math, "np": np}
    exec(compile(text, name, "exec"), space)
    return space["k"](*[v for _, v in names.values()])


INT = {"a": ("i32", 7), "b": ("i32", -2)}
REAL = {"a": ("f32", 7.5), "b": ("f32", -2.0)}


@pytest.mark.parametrize("expression, expected", [
    ("a + b", 5), ("a - b", 9), ("a * b", -14), ("a // b", -4), ("a % b", -1), ("-a", -7), ("+a", 7),
    ("a & 3", 3), ("a | 8", 15), ("a ^ 2", 5), ("~a", -8), ("a << 2", 28), ("a >> 1", 3),
    ("a ** 2", 49), ("b ** 3", -8), ("a ** a", 823543), ("abs(b)", 2), ("min(a, b)", -2),
    ("max(a, b, 9)", 9), ("pow(b, 2)", 4), ("a if a > b else b", 7), ("int(7.9)", 7),
    ("ti.raw_div(a, b)", -3), ("ti.raw_mod(a, b)", 1), ("b >> 1", -1), ("ti.bit_shr(b, 1)", 2**31 - 1),
    ("(a + b) * (a - b)", 45), ("7 // 2 + 2 ** 3", 11), ("b // 2", -1), ("(b - 1) // 2", -2),
    ("(b - 1) % 2", 1), ("ti.select(a > b, 1, 2)", 1),
    ("ti.popcnt(a)", 3), ("ti.clz(a)", 29), ("ti.ffs(b)", 2), ("ti.sgn(b)", -1),
    ("ti.max(a, b)", 7), ("len((1, 2, 3))", 3), ("sum([a, b, 1])", 6),
])
def test_integers(expression, expected):
    assert result_of(expression, "i32", **INT) == expected


@pytest.mark.parametrize("expression, expected", [
    ("a + b", 5.5), ("a / b", -3.75), ("a // b", -4.0), ("a % b", -0.5), ("a ** 2", 56.25),
    ("a ** -1", 1 / 7.5), ("b ** 3", -8.0), ("a ** b", 7.5 ** -2), ("a ** 0.5", math.sqrt(7.5)),
    ("ti.sqrt(a)", math.sqrt(7.5)), ("math.sin(a)", math.sin(7.5)), ("ti.floor(a)", 7.0),
    ("ti.ceil(a)", 8.0), ("round(a)", 8.0), ("ti.round(b - 0.5)", -3.0), ("ti.atan2(a, b)", math.atan2(7.5, -2)),
    ("np.cos(a)", math.cos(7.5)), ("ti.rsqrt(a)", 7.5 ** -0.5), ("ti.math.clamp(a, 0.0, 3.0)", 3.0),
    ("ti.math.mix(a, b, 0.25)", 7.5 * 0.75 - 0.5), ("ti.math.fract(a)", 0.5), ("abs(b)", 2.0),
    ("ti.math.sign(b)", -1.0), ("math.pi", math.pi), ("ti.exp(b)", math.exp(-2)), ("ti.log(a)", math.log(7.5)),
    ("ti.tanh(b)", math.tanh(-2)), ("ti.acos(b / 4)", math.acos(-.5)), ("ti.asin(b / 4)", math.asin(-.5)),
    ("float(3)", 3.0), ("ti.math.smoothstep(0.0, 10.0, a)", 0.84375), ("ti.tan(a)", math.tan(7.5)),
    ("ti.math.step(1.0, a)", 1.0), ("ti.inv(b)", -0.5), ("min(a, 3)", 3.0), ("max(a, b, 100)", 100.0),
    ("1 / 4", 0.25), ("ti.math.radians(180.0)", math.pi), ("ti.math.mod(b, 3.0)", 1.0),
    ("ti.f32(3) / 2", 1.5), ("ti.cast(2.9, ti.i32)", 2.0),
])
def test_floats(expression, expected):
    assert result_of(expression, "f32", **REAL) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("expression, expected", [
    ("a > b", True), ("a < b", False), ("a == a and b < 0", True), ("a < b or b == -2", True),
    ("not a", False), ("-3 < b < a", True), ("b < a < 7", False), ("a != b", True), ("bool(a)", True),
    ("a >= 7 and not b > 0", True), ("a <= 6", False), ("True and a > 0", True), ("None is None", True),
    ("3 in (1, 2, 3)", True),
])
def test_conditions(expression, expected):
    assert result_of(f"1 if {expression} else 0", "i32", **INT) == expected


TYPES = {
    ("i32", "f32"): "f32", ("i32", "i64"): "i64", ("f32", "f64"): "f64", ("i64", "f32"): "f32",
    ("i32", "u32"): "u32", ("u8", "u8"): "u8", ("i8", "i16"): "i16", ("i8", "u8"): "u8", ("u8", "i16"): "i16", ("i64", "u32"): "i64",
    ("f16", "f32"): "f32", ("f16", "i32"): "f16", ("u64", "i32"): "u64",
}


@pytest.mark.parametrize("pair", TYPES, ids="-".join)
def test_promotion(pair):
    a, b = (ti.lang.dtypes.by_name(t) for t in pair)
    assert ti.lang.dtypes.promote(a, b).name == ti.lang.dtypes.promote(b, a).name == TYPES[pair]


def test_true_division_of_integers_has_the_default_type():
    assert result_of("a / 2", "f64", a=("i32", 1)) == 0.5
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    assert result_of("a / 3", "f64", a=("i32", 1)) == 1 / 3


def test_literals_have_the_default_types():
    ti.init(arch=ti.cpu, default_ip=ti.i64)
    assert result_of("a + 1", "i64", a=("i32", 2**31 - 1)) == 2**31
    ti.init(arch=ti.cpu)
    assert result_of("a + 1", "i64", a=("i32", 2**31 - 1)) == -2**31


@pytest.mark.parametrize("value, dtype, expected", [
    ("ti.u8(300)", "i32", 44), ("ti.i8(200)", "i32", -56), ("ti.i32(-1.9)", "i32", -1),
    ("ti.cast(a, ti.u8)", "i32", 7), ("ti.bit_cast(1.0, ti.i32)", "i32", 0x3f800000),
    ("ti.cast(a, float)", "f32", 7.0), ("ti.cast(a, int)", "i32", 7), ("ti.f64(a) / 3", "f64", 7 / 3),
])
def test_casts(value, dtype, expected):
    assert result_of(value, dtype, a=("i32", 7)) == pytest.approx(expected)


def test_a_variable_keeps_its_type():
    @ti.kernel
    def k() -> ti.f32:
        a = 1
        a = 2.7
        return a

    with pytest.warns(UserWarning, match="lose precision"):
        assert k() == 2


def test_an_int_variable_casts_what_is_added():
    @ti.kernel
    def k() -> ti.f32:
        a = 1
        a += 2.7
        return a

    with pytest.warns(UserWarning, match="i32 <- f32"):
        assert k() == 3


def test_in_and_is():
    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        r = 0
        if x in (1, 2):
            r += 1
        if x not in [3, x + 1]:
            r += 10
        return r

    assert [k(1), k(3), k(5)] == [11, 0, 10]

    @ti.kernel
    def same(x: ti.i32, y: ti.i32) -> ti.i32:
        return x is y

    with pytest.raises(ti.QuadrantsSyntaxError, match="use `==`"):
        same(3, 3)


def test_short_circuits_do_not_load():
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.i32, shape=4)
    y = ti.field(ti.i32, shape=4)

    @ti.kernel
    def k():
        for i in y:
            y[i] = 1 if i < 3 and x[i + 1] == 0 else 2
            if i > 2 or x[i + 1] > 0:
                y[i] += 10

    k()
    assert y.to_numpy().tolist() == [1, 1, 1, 12]


def test_a_ternary_evaluates_one_arm():
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.f32, shape=4)
    y = ti.field(ti.f32, shape=4)

    @ti.kernel
    def k():
        for i in y:
            y[i] = x[i - 1] if i > 0 else 5

    x.fill(2)
    k()
    assert y.to_numpy().tolist() == [5, 2, 2, 2]


def test_augmented_assignments():
    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        a += 3
        a -= 1
        a *= 4
        a //= 3
        a %= 7
        a <<= 3
        a |= 1
        a ^= 3
        a &= 0xff
        a **= 2
        a >>= 1
        return a

    a = 10
    a += 3; a -= 1; a *= 4; a //= 3; a %= 7; a <<= 3; a |= 1; a ^= 3; a &= 0xff; a **= 2; a >>= 1
    assert k(10) == a


def test_tuples_swap_and_unpack():
    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.i32:
        a, b = b, a
        (c, d), e = (a, b), 3
        f = g = c
        f += 1
        return ((a * 10 + c) * 10 + d) * 10 + e + f * 10000 + g * 100000

    assert k(1, 2) == 2213 + 30000 + 200000


def test_annotated_assignment():
    @ti.kernel
    def k() -> ti.f64:
        a: ti.f64 = 1
        a += 0.5
        return a

    assert k() == 1.5


def test_return_values():
    @ti.kernel
    def vector() -> ti.types.vector(3, ti.f32):
        return ti.Vector([1.0, 2.0, 3.0])

    @ti.kernel
    def pair() -> tuple[ti.i32, ti.f32]:
        return 3, 2.5

    @ti.kernel
    def matrix() -> ti.math.mat2:
        return ti.Matrix([[1, 2], [3, 4]])

    assert list(vector()) == [1, 2, 3]
    assert pair() == (3, 2.5)
    assert matrix().to_list() == [[1, 2], [3, 4]]


def test_hash_arithmetic_wraps_like_i32():
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        h = 0
        ti.loop_config(serialize=True)
        for i in range(n):
            h = ((i + 1) * 73856093 ^ h * 19349663) % 1000003
        return h

    h = 0
    for i in range(1000):
        with np.errstate(over="ignore"):
            h = int((np.int32(i + 1) * np.int32(73856093)) ^ (np.int32(h) * np.int32(19349663)))
            h %= 1000003
    assert k(1000) == h


def test_constants_of_python():
    n, scale, name = 3, 2.5, "x"
    table = (1, 2, 4)
    settings = {"k": 5}

    class Holder:
        value = 7

    @ti.kernel
    def k() -> ti.f32:
        s = 0.0
        for i in ti.static(range(n)):
            s += table[i] * scale
        if ti.static(name == "x"):
            s += settings["k"] + Holder.value
        return s

    assert k() == 7 * 2.5 + 12


def test_a_negative_number_keeps_its_type():
    ti.init(arch=ti.cpu, default_ip=ti.i64)
    bits = ti.field(ti.i32, shape=())

    @ti.kernel
    def count(q: ti.i32):
        bits[None] = ti.popcnt(-q)

    count(3)
    assert bits[None] == 31


def test_functions_of_python():
    import math

    @ti.kernel
    def k(v: ti.f32) -> ti.types.vector(5, ti.f32):
        q, r = divmod(v, 3.0)
        return ti.Vector([q, r, math.fabs(-v), math.degrees(v), math.hypot(v, 3.0)])

    assert list(k(4.0)) == pytest.approx([1, 1, 4, math.degrees(4), 5])


@pytest.mark.parametrize("body, text", [("round(v, 2)", "whole numbers"), ("max(v, 2.0, key=abs)", "no option `key`")])
def test_options_of_functions_of_python(body, text, tmp_path):
    file = tmp_path / "options.py"
    file.write_text(f"import costate as ti\n\n@ti.kernel\ndef k(v: ti.f32) -> ti.f32:\n    return {body}\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ti.QuadrantsTypeError, match=text):
        names["k"](1.5)


def test_random_numbers_of_python_are_warned_of():
    import random

    @ti.kernel
    def k() -> ti.f32:
        return random.random()

    with pytest.warns(UserWarning, match="while it is compiled"):
        k()


def test_long_expressions(tmp_path):
    terms = " + ".join(f"x[{i % 4}] * {i}" for i in range(900))
    (tmp_path / "long_expression.py").write_text(
        f"import costate as ti\n@ti.kernel\ndef k(x: ti.template()) -> ti.f32:\n    return {terms}\n"
        f"@ti.kernel\ndef bad(x: ti.template()) -> ti.f32:\n    return {terms} + unknown + {terms}\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import long_expression
    finally:
        sys.path.remove(str(tmp_path))
    x = ti.field(ti.f32, shape=4)
    x.fill(1)
    assert long_expression.k(x) == 900 * 899 / 2
    with pytest.raises(ti.QuadrantsNameError, match="unknown") as caught:
        long_expression.bad(x)
    _, line, caret, _ = str(caught.value).splitlines()
    assert len(line) == 200 and line[caret.index("^"):].startswith("unknown") and caret.strip() == "^" * 7
