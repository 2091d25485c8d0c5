"""Every construct of Python's grammar is supported with the value that it has in Python, or refused where it stands."""

import ast
import linecache
import math

import numpy as np
import pytest

import costate as ti
from costate.lang.source import UNSUPPORTED
from costate.lang.visitor import Visitor

HELPERS = {"ti": ti, "math": math, "extra": {"x": 1}, "pair": (1, 2)}


def made(body, parameters="a: ti.i32", head="def", result=" -> ti.f64"):
    """A kernel with this body."""
    text = f"@ti.kernel\n{head} k({parameters}){result}:\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    name = f"<syntax {hash((text, id(object())))}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space = dict(HELPERS, function=ti.func(_identity))
    exec(compile(text, name, "exec"), space)
    return space["k"]


def _identity(x):
    return x


def test_the_grammar_is_covered():
    classes = [*ast.stmt.__subclasses__(), *ast.expr.__subclasses__()]
    supported = [c for c in classes if hasattr(Visitor, f"do_{c.__name__}") or hasattr(Visitor, f"on_{c.__name__}")]
    assert set(classes) - set(supported) - {ast.Slice} <= set(UNSUPPORTED)


@pytest.mark.parametrize("body", [
    "return (a + 7 - a * 3) / 2 + a // 2 + a % 3 + a ** 2",
    "return (a & 6) + (a | 9) + (a ^ 5) + (a << 2) + (a >> 1) + ~a - +a",
    "return (1 < a < 9) + 10 * (a != 5) + 100 * (a == 5) + 1000 * (2 <= a >= 3) + (not a)",
    "return (a and 7) + (a or 8) + (0 or a)",
    "return (1 if a > 2 else 5) + (a in (3, 5)) + (a not in [5, 6])",
    "x = y = a\nx += 2\nreturn x * 10 + y",
    "x, (y, z) = a, (2, 3)\n[p, q] = x, y\nx, y = y, x\nreturn x + 10 * y + 100 * z + 1000 * p + 10000 * q",
    "x = a\nx += 3; x -= 1; x *= 2; x //= 3; x %= 50; x **= 2; x &= 255; x |= 1; x ^= 7; x <<= 2; x >>= 1\nreturn x",
    "x = 1.0 * a\nx /= 4\nreturn x",
    "y = (c := a + 1) * 2\nreturn y + c",
    "s = 0\nif a > 10: s = 1\nelif (c := a * 2) > 5: s = c\nelif c > 3: s = c + 100\nreturn s",
    "s = 0\nm = a\nwhile (m := m - 1) > 0 and s < 6:\n    s += m\n    if m == 3: continue\n    s += 1\nreturn 10 * s + m",
    "s = 0\nfor i in range(3):\n    n = a\n    while (p := (q := n - i) * 2) > 2:\n        s += p + q\n        n -= 1\nreturn s",
    "l = [i * a for i in range(4) if i != 2]\nreturn l[0] + 10 * l[1] + 100 * l[2]",
    "l = [i * j + a for i in range(3) for j in range(2)]\nreturn l[5]",
    "d = {i: i * a for i in range(3)}\nreturn d[2]",
    "d = {**extra, 'y': a}\nreturn d['x'] * 10 + d['y']",
    "l = [1.0, 2.0]\nl[0] = a\nl[1] += l[0]\nreturn l[0] + 10 * l[1]",
    "x: ti.i32 = 3\n'text'\n...\npass\nx + 1\nreturn x",
    "i = 0\nwhile True:\n    i += 1\n    if i > a: break\n    else: continue\n    i += 100\nreturn i",
    "r = 0\nfor j in range(2):\n    for i in range(9):\n        r += 1\n        if True: break\nreturn r",
    "r = 0\nfor j in range(2):\n    for i in range(9):\n        if i == a: continue\n        if i > a: break\n        r += i\nreturn r",
    "if True: return a\nreturn 6",
    "return math.sin(a) + max(a, 3, 4) + min(*pair, a) + abs(-a) + pow(a, 2)",
])
@pytest.mark.parametrize("a", [5, 2])
def test_supported(body, a, double):
    space = {**HELPERS}
    text = body.replace("ti.i32", "int").replace("ti.static", "")
    exec("def k(a):\n" + "".join(f"    {line}\n" for line in text.split("\n")), space)
    assert made(body)(a) == pytest.approx(space["k"](a), rel=1e-12)


@pytest.mark.parametrize("body, caret, part", [
    ("try: pass\nexcept ValueError: pass", "try: pass", "`try`"),
    ("try: pass\nexcept* ValueError: pass", "try: pass", "`try`"),
    ("with a as f: pass", "with a as f: pass", "`with`"),
    ("raise ValueError('x')", "raise ValueError('x')", "`raise`"),
    ("yield 1", "yield 1", "`yield`"),
    ("x = (yield)", "yield", "`yield`"),
    ("yield from [1]", "yield from [1]", "`yield from`"),
    ("global y", "global y", "`global`"),
    ("x = 1\ndel x", "del x", "`del`"),
    ("match a:\n    case _: pass", "match a:", "`match`"),
    ("import os", "import os", "`import`"),
    ("from os import path", "from os import path", "`import`"),
    ("class A: pass", "class A: pass", "a class"),
    ("def f(): pass", "def f(): pass", "a function"),
    ("f = lambda x: x", "lambda x: x", "`lambda`"),
    ("s = {1, 2}", "{1, 2}", "a set"),
    ("s = {i for i in range(3)}", "{i for i in range(3)}", "a set comprehension"),
    ("s = sum(i for i in range(3))", "(i for i in range(3))", "a generator"),
    ("x, *y = 1, 2, 3", "x, *y = 1, 2, 3", "3 values for 2 names"),
    ("while a > 3 and (m := a) > 3: pass", "m := a", "`:=`"),
    ("l = [(y := i) for i in range(3)]", "y := i", "`:=`"),
    ("for i in range(3): pass\nelse: pass", "for i in range(3): pass", "'else' clause"),
    ("while a > 3: pass\nelse: pass", "while a > 3: pass", "'else' clause"),
    ("x = 3j", "3j", "not a number of kernels"),
    ("x = a @ a", "a @ a", "of matrices and vectors"),
    ("x = a + 'b'", "a + 'b'", "type `str`"),
    ("x = a + None", "a + None", "type `NoneType`"),
    ("x = -'b'", "-'b'", "has no sign"),
    ("x = ~(a * 0.5)", "~(a * 0.5)", "`~`"),
    ("x = a << 0.5", "a << 0.5", "`<<`"),
    ("x = a is pair", "a is pair", "`is`"),
    ("x = a(3)", "a(3)", "a number of type i32 is not a function"),
    ("x = a[0]", "a[0]", "has no elements"),
    ("x = a.b", "a.b", "no attribute `b`"),
    ("x = nothing", "nothing", "is not defined"),
    ("x = ti.nothing", "ti.nothing", "no attribute `nothing`"),
    ("x, y = a", "x, y = a", "cannot be unpacked"),
    ("x, y = 1, 2, 3", "x, y = 1, 2, 3", "3 values for 2 names"),
    ("x: ti.i32", "x: ti.i32", "gets a value where it is declared"),
    ("x: 'ti.i32' = 3", "x: 'ti.i32' = 3", "is not a type"),
    ("pair[0] = a", "pair[0] = a", "cannot be assigned"),
    ("math.pi = a", "math.pi = a", "cannot be assigned"),
    ("d = {a: 1}", "{a: 1}", "the key of a dictionary"),
    ("d = {a: i for i in range(2)}", "{a: i for i in range(2)}", "the key of a dictionary"),
    ("d = {**a}", "{**a}", "is not a dictionary"),
    ("d = {**pair}", "{**pair}", "is not a dictionary"),
    ("x = function(**a)", "function(**a)", "is not a dictionary"),
    ("x = function(*a)", "function(*a)", "is not a list, tuple or vector"),
    ("x = function(1, x=3)", "function(1, x=3)", "multiple values"),
    ("x = function(y=3)", "function(y=3)", "`_identity()`"),
    ("l = [i for i in range(a)]", "[i for i in range(a)]", "unrolled while the kernel is compiled"),
    ("l = [i for i in range(4) if i < a]", "[i for i in range(4) if i < a]", "decided while the kernel is compiled"),
    ("l = [i for i in 3]", "[i for i in 3]", "is not iterable"),
    ("l = [1 for pair[0] in range(3)]", "[1 for pair[0] in range(3)]", "a loop variable is a name"),
    ("for i in a: pass", "for i in a: pass", "a number of type i32 is not iterable"),
    ("for i in [1, 2]: pass", "for i in [1, 2]: pass", "ti.static(...)"),
    ("for i in ti.static(3): pass", "for i in ti.static(3): pass", "is not iterable"),
    ("for pair[0] in range(3): pass", "for pair[0] in range(3): pass", "a loop variable is a name"),
    ("for pair[0] in ti.static(range(3)): pass", "for pair[0] in ti.static(range(3)): pass", "a loop variable is a name"),
    ("for x, *y in ti.static([(1, 2)]): pass", "for x, *y in ti.static([(1, 2)]): pass", "a loop variable is a name"),
    ("for x, y in ti.static([1, 2]): pass", "for x, y in ti.static([1, 2]): pass", "is not iterable"),
    ("if ti.Vector([a, 1]): pass", "if ti.Vector([a, 1]): pass", "`.any()`"),
    ("while ti.Vector([a, 1]): pass", "while ti.Vector([a, 1]): pass", "a vector"),
    ("for i in range(3):\n    if i > 1: break", "break", "Cannot break in the outermost loop"),
    ("return", "return", "a `return` without a value"),
    ("return None", "return None", "a `return` without a value"),
    ("return 'abc'", "return 'abc'", "its type says f64"),
    ("assert a > 1, 'x %d %d' % a", "'x %d %d' % a", "more values"),
    ("assert a > 1, 'x %d' % (a * 0.5)", "'x %d' % (a * 0.5)", "`%d` of f32"),
])
def test_refused(body, caret, part):
    if "except*" in body and not hasattr(ast, "TryStar"):
        pytest.skip("this Python has no `except*`")
    last = "" if body.startswith("return") else "\nreturn 1"
    with pytest.raises(ti.QuadrantsCompilationError) as error:
        made(body + last)(3)
    where, line, carets, *text = str(error.value).split("\n")
    assert where.startswith('File "<syntax ') and where.endswith(", in k:")
    start = carets.index("^")
    assert line[start:start + carets.count("^")] == caret
    assert part in text[-1]


@pytest.mark.parametrize("body, head", [("return 1", "async def"), ("await x\nreturn 1", "async def"),
                                        ("async for i in range(3): pass", "async def")])
def test_async_functions(body, head):
    with pytest.raises(ti.QuadrantsSyntaxError, match=r"(?s)File .*\^.*`async def` is not supported"):
        made(body, head=head)(3)


def test_decorators_below_ours_are_refused():
    import functools

    def twice(f):
        @functools.wraps(f)
        def wrapper(*args):
            return 2 * f(*args)
        return wrapper

    def body() -> ti.i32:
        return 4

    for make in (ti.kernel, ti.func):
        with pytest.raises(ti.QuadrantsSyntaxError, match="`body` is decorated by something below"):
            make(twice(body))
    assert twice(ti.kernel(body))() == 8


@pytest.mark.parametrize("message, text", [
    ("'bad %d of %.2f' % (i + 7, a * 1.5)", "bad 7 of 4.50"),
    ("'bad %s, %5d|%-4d|%%' % (a, i, a)", "bad 3,     0|3   |%"),
    ("f'bad {i} of {a!r}'", "bad 0 of 3"),
    ("'bad {} of {x}'.format(i, x=a)", "bad 0 of 3"),
    ("'bad %d' % 3", "bad 3"),
    ("a", "3"),
])
def test_texts_of_asserts(message, text):
    ti.init(arch=ti.cpu, debug=True)
    k = made(f"for i in range(1):\n    assert a > 4, {message}", result="")
    with pytest.raises(ti.QuadrantsAssertionError) as error:
        k(3)
    assert text in str(error.value)
    k(5)


def test_conversions_in_texts(capfd):
    made("print(f'{\"x\"!r} {a!r} {\"y\"}')", result="")(3)
    ti.sync()
    assert capfd.readouterr().out == "'x' 3 y\n"
