"""Messages point to the line of the user."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import costate as ti


def refused(body, error, *parts, parameters="", debug=False):
    """A kernel whose first statement is `body` is refused at that line."""
    import linecache
    lines = body.split("\n")
    text = f"@ti.kernel\ndef k({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    name = f"<refused {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"ti": ti, "x": ti.field(ti.f32, shape=(3, 3)), "v": ti.Vector([1.0, 2.0])}
    with pytest.raises(error) as info:
        exec(compile(text, name, "exec"), space)
        space["k"]()
    message = str(info.value)
    assert re.search(r'File "<refused .*", line \d+, in k:', message), message
    assert "^" in message
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize("body, part, instead", [
    ("try:\n    pass\nexcept Exception:\n    pass", "`try`", "use `if`"), ("raise ValueError", "`raise`", "assert"),
    ("with x:\n    pass", "`with`", "host"), ("f = lambda a: a", "`lambda`", "@ti.func"),
    ("def f():\n    pass", "function inside", "@ti.func"), ("class A:\n    pass", "class inside", "out"),
    ("import math", "`import`", "top"), ("del x", "`del`", "leave it out"), ("global x", "`global`", "field"),
    ("a = {1, 2}", "a set", "vector"), ("a = sum(i for i in range(3))", "generator", "list comprehension"),
    ("yield 3", "`yield`", "array"),
    ("for i in range(3):\n    pass\nelse:\n    pass", "'else'", "flag"),
    ("while x[0, 0] > 0:\n    pass\nelse:\n    pass", "'else'", "flag"),
    ("match x[0, 0]:\n    case 1:\n        pass", "`match`", "elif"),
    ("for i in ti.static(range(3)):\n    if x[0, 0] > i:\n        break", "static", "unrolled"),
    ("a, *b = (1, 2, 3)", "", "`*`"),
    ("for i in range(3):\n    return 1", "Return inside non-static if/for", "variable"),
])
def test_syntax_that_kernels_lack(body, part, instead):
    refused(body, ti.QuadrantsSyntaxError if not body.startswith("a, *b") else ti.QuadrantsCompilationError, part, "" if body.startswith("a, *b") else instead)


@pytest.mark.parametrize("body, error, part", [
    ("x[0, 0] = y", NameError, 'Name "y" is not defined'), ("x[0] = 1", IndexError, "2 dimensions"),
    ("x[0.5, 0] = 1", TypeError, "indices are integers"), ("x[x[0, 0], 0] = 1", TypeError, "f32; indices"),
    ("x = 3", None, ""), ("a = x + 1", TypeError, "x[i]"), ("a = v @ 3", TypeError, "`@`"),
    ("x[0, 0] = v", TypeError, "vector"), ("a = v.cross(v).w", Exception, "w"), ("v.q = 1", IndexError, "out of range"),
    ("a = 1.5 & x[0, 0]", TypeError, "`&`"), ("for i in x:\n    pass", SyntaxError, "2 dimensions"),
    ("for i in range(x[0, 0]):\n    pass", TypeError, "integers"), ("for i in 5:\n    pass", TypeError, "iterable"),
    ("for i in [1, 2]:\n    pass", TypeError, "ti.static"), ("a = ti.static(x[0, 0])", TypeError, "static"),
    ("if v > 0:\n    pass", TypeError, "condition"), ("a = x.shap", Exception, "shap"),
    ("a = 1\na = v", TypeError, "vector"), ("undefined_function(1)", NameError, "undefined_function"),
    ("ti.static_assert(1 > 2, 'no')", Exception, "no"), ("a = ti.Vector([])", TypeError, "at least one"),
    ("a = ti.sin(x)", TypeError, "x[i]"), ("a = v.dot(ti.Vector([1.0]))", TypeError, "components"),
    ("for i, j in range(3):\n    pass", SyntaxError, "loop variables"), ("n += 1", NameError, "n"),
    ("a = v[3]", IndexError, "out of range"), ("ti.atomic_add(1, 2)", SyntaxError, "element of an array"),
    ("a = ti.i32(x[0, 0]) ** -1", TypeError, "power"), ("a = 3(4)", TypeError, "not a function"),
])
def test_mistakes(body, error, part):
    if error is None:
        return
    warnings.simplefilter("ignore")
    refused(body, error, part)
    refused(body, ti.QuadrantsCompilationError)


def test_the_caret_stands_below_the_mistake():
    x = ti.field(ti.f32, shape=3)

    @ti.kernel
    def k():
        for i in x:
            x[i] = 1.0 + undefined_name * 2

    with pytest.raises(ti.QuadrantsNameError) as info:
        k()
    head, line, caret, text = str(info.value).split("\n")
    assert head.endswith("in k:") and "test_errors.py" in head
    assert line[caret.index("^"):caret.rindex("^") + 1] == "undefined_name"


def test_errors_in_functions_name_their_line():
    @ti.func
    def inner(a):
        return a + missing

    @ti.kernel
    def k() -> ti.f32:
        return inner(1.0)

    with pytest.raises(ti.QuadrantsNameError, match="in inner:"):
        k()


def test_annotations_that_are_no_types():
    for wrong in (str, np.ndarray, 5, list[int]):
        with pytest.raises(ti.QuadrantsSyntaxError, match="Invalid type annotation"):
            @ti.kernel
            def k(x: wrong):
                pass

    @ti.kernel
    def later(x: "not_there"):  # noqa: F821
        pass

    with pytest.raises(ti.QuadrantsNameError, match="not_there.*annotations of `later`"):
        later(1)


def test_kernels_are_annotated():
    with pytest.raises(ti.QuadrantsSyntaxError, match="annotated"):
        @ti.kernel
        def a(x):
            pass
    with pytest.raises(ti.QuadrantsCompilationError, match="annotation"):
        @ti.kernel
        def b(x: "3"):
            pass
        b(1)
    with pytest.raises(ti.QuadrantsSyntaxError, match="variable arguments"):
        @ti.kernel
        def c(*args):
            pass
    with pytest.raises(ti.QuadrantsSyntaxError, match="return type"):
        @ti.kernel
        def d():
            return 1
        d()


def test_kernels_do_not_call_kernels():
    @ti.kernel
    def a():
        pass

    @ti.kernel
    def b():
        a()

    with pytest.raises(ti.QuadrantsSyntaxError, match="Kernels cannot call other kernels"):
        b()


def test_functions_are_called_in_kernels():
    @ti.func
    def f():
        pass

    with pytest.raises(ti.QuadrantsSyntaxError, match="called in"):
        f()


def test_lambdas_and_missing_sources():
    with pytest.raises(ti.QuadrantsSyntaxError, match="lambda"):
        ti.kernel(lambda: None)()
    space = {"ti": ti}
    exec("@ti.kernel\ndef k():\n    pass", space)
    with pytest.raises(ti.QuadrantsSyntaxError, match="source of `k` is not available"):
        space["k"]()


def test_recursion_is_refused_by_name():
    @ti.func
    def f(n):
        r = n
        if n > 0:
            r = f(n - 1)
        return r

    @ti.kernel
    def k() -> ti.i32:
        return f(3)

    with pytest.raises(ti.QuadrantsCompilationError, match="`f` calls itself"):
        k()


def test_asserts():
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.i32, shape=5)

    @ti.kernel
    def k(limit: ti.i32):
        for i in x:
            assert i < limit, f"index {i} of {limit}"

    k(5)
    with pytest.raises(AssertionError, match="index 3 of 3|index 4 of 3"):
        k(3)
    with pytest.raises(ti.QuadrantsAssertionError, match="test_errors.py"):
        k(2)
    k(5)
    ti.init(arch=ti.cpu)
    y = ti.field(ti.i32, shape=())

    @ti.kernel
    def off():
        assert y[None] > 0

    off()


def test_out_of_range_in_debug_mode():
    ti.init(arch=ti.cpu, debug=True)
    x = ti.field(ti.i32, shape=5)

    @ti.kernel
    def k(i: ti.i32):
        x[i] = 1

    k(4)
    with pytest.raises(ti.QuadrantsAssertionError, match=r"(?s)test_errors.py:\d+"):
        k(5)
    with pytest.raises(AssertionError):
        k(-1)


def test_errors_of_the_gradient_name_the_line():
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    y = ti.field(ti.f32, shape=3)

    @ti.kernel
    def k():
        for i in x:
            y[i] = x[i] * 2

    k()
    with pytest.raises(ti.MissingGradient, match=r"(?s)`y` .*has no gradient.*`needs_grad=True`"):
        k.grad()


def test_errors_that_are_found_later_have_a_caret():
    x = ti.field(ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def k():
        for i in x:
            x[i] = x[i] * x[i] + 1
            x[i] = x[i] * x[i]

    k()
    with pytest.raises(ti.CannotReplay) as info:
        k.grad()
    lines = str(info.value).split("\n")
    assert lines[1].endswith("x[i] = x[i] * x[i] + 1") and lines[2].strip() == "^"
    assert lines[1][lines[2].index("^"):].startswith("x[i] * x[i] + 1")


def test_print(capfd):
    @ti.kernel
    def k(a: ti.i32):
        print("a =", a, ti.Vector([1, 2]))
        print(f"twice {2 * a}")

    k(3)
    ti.sync()
    assert capfd.readouterr().out == "a = 3 [1, 2]\ntwice 6\n"


def test_print_writes_what_python_writes(capfd):
    @ti.kernel
    def k(i: ti.i32, x: ti.f32):
        print("x is", x, i, sep="|", end="<\n")
        print(f"{x:.2f} {x:8}|{x:>8.3f}|{x:.3}|{x:e}|{i:4d}|{i:<4}|{i:04}|{i:+.1f}|{ti.u64(255):x}")
        m = ti.Matrix([[x, 2, 3], [4, 5, 6], [7, 8, i]])
        print(m, "{i}")
        print()
        print("{} of {:.1f}".format(i, x), f"{4:03d}", end="")
        print(ti.Struct(n=i, v=ti.Vector([x, 2])), end="")

    k(3, 1.5)
    ti.sync()
    assert capfd.readouterr().out == (
        "x is|1.5|3<\n1.50      1.5|   1.500|1.5|1.500000e+00|   3|3   |0003|+3.0|ff\n"
        "[[1.5, 2, 3], [4, 5, 6], [7, 8, 3]] {i}\n\n3 of 1.5 004{'n': 3, 'v': [1.5, 2]}")


def test_formats_of_constants_and_places(capfd):
    @ti.kernel
    def k(n: ti.i32):
        print("{:i} {:.4d} {:5}|".format(1, 2, 3), "{2} {} {1} {n} {0}".format(3, 2, 1, n=n))

    k(7)
    ti.sync()
    assert capfd.readouterr().out.strip() == "1 0002     3| 1 3 2 7 3"


@pytest.mark.parametrize("pattern, text", [("{0} {1}", "Expected 2 positional argument"), ("{m}", "Keyword 'm' not found")])
def test_patterns_that_ask_for_more(pattern, text):
    @ti.kernel
    def k(n: ti.i32):
        print(pattern.format(n))

    with pytest.raises(ti.QuadrantsSyntaxError, match=text):
        k(1)


def test_formats_that_kernels_do_not_have():
    @ti.kernel
    def centred(x: ti.f32):
        print(f"{x:^8}")

    with pytest.raises(ti.QuadrantsSyntaxError, match=r"the format '\^8' doesn't match 'f32'"):
        centred(1)


def test_long_assertions():
    ti.init(arch=ti.cpu, debug=True)

    @ti.kernel
    def k(v: ti.math.vec4, i: ti.i32):
        assert i > 0, f"{{i}} {v:.1f} {i}"

    with pytest.raises(AssertionError, match=r"\{i\} \[1.0, 2.0, 3.0, 4.0"):
        k([1, 2, 3, 4], 0)
        ti.sync()


def test_errors_in_functions_name_the_calls():
    @ti.func
    def inner(a):
        return a + unknown  # noqa: F821

    @ti.func
    def outer(a):
        if a > 0:
            a += inner(a)
        return a

    @ti.kernel
    def k(x: ti.template()):
        for i in x:
            x[i] = outer(outer(i))

    with pytest.raises(ti.QuadrantsNameError) as caught:
        k(ti.field(ti.f32, shape=2))
    assert [line.strip() for line in str(caught.value).splitlines() if "File" not in line] == [
        "x[i] = outer(outer(i))", "^^^^^^^^", "a += inner(a)", "^^^^^^^^", "return a + unknown  # noqa: F821", "^^^^^^^",
        'Name "unknown" is not defined']


def test_init_options():
    ti.init(arch=ti.cpu, default_fp=ti.f64, default_ip=ti.i64, debug=True, offline_cache=False, random_seed=3,
            cpu_max_num_threads=2, ad_stack_experimental_enabled=True, cfg_optimization=False, kernel_profiler=True,
            device_memory_GB=1, force_scalarize_matrix=True, ad_stack_sparse_threshold_bytes=0)
    cfg = ti.lang.impl.current_cfg()
    assert cfg.default_fp == ti.f64 and cfg.debug and cfg.arch == ti.cpu
    with pytest.warns(UserWarning, match="unknown option `no_such_option`"):
        ti.init(arch=ti.cpu, no_such_option=1)
    with pytest.warns(UserWarning, match=r"Arch=\[Arch.opengl\] .* falling back to Arch.*`opengl`"):
        ti.init(arch=ti.opengl)
    with pytest.raises(ti.NoDevice, match="none of .*opengl"):
        ti.init(arch=ti.opengl, enable_fallback=False)


@pytest.mark.parametrize("arch, why", [("amdgpu", "HIP"), ("metal", "Metal")])
def test_devices_that_are_not_here_say_what_is_missing(arch, why):
    kind = getattr(ti, arch)
    if ti.lang.misc.is_arch_supported(kind):
        pytest.skip(f"{arch} is here")
    with pytest.raises(ti.NoDevice, match=f"none of .*{arch}.* is here: .*{why}.*; use arch=cpu"):
        ti.init(arch=kind, enable_fallback=False)
    assert kind not in ti.gpu or ti.gpu.index(ti.cuda) < ti.gpu.index(kind)


def test_init_happens_by_itself():
    ti.reset()
    x, y = ti.field(ti.f32, shape=3), ti.field(ti.f32, shape=3)
    x[0] = 1
    y[1] = 2

    @ti.kernel
    def k():
        x[0] += y[1]

    k()
    assert x[0] == 3


def test_nothing_is_printed_at_the_end():
    script = ("import costate as ti\nti.init(arch=ti.cpu)\nx = ti.field(ti.f32, shape=3, needs_grad=True)\n"
              "import sys\nx[0] = 1\nprint(x[0])\n")
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "1.0\n" and done.stderr == ""


def test_messages_use_the_name_that_the_package_has_in_the_file(tmp_path):
    file = tmp_path / "other_name.py"
    file.write_text("import costate as cs\n\n@cs.kernel\ndef k():\n    a = lambda x: x\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ti.QuadrantsSyntaxError, match="@cs.func"):
        names["k"]()


def test_a_file_that_has_changed(tmp_path, monkeypatch):
    file = tmp_path / "changing.py"
    file.write_text("import costate as ti\n\n\n@ti.kernel\ndef one() -> ti.i32:\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import changing
    file.write_text("import costate as ti\n@ti.kernel\ndef other() -> ti.i32:\n    return 5\n\n# longer\n")
    with pytest.raises(ti.QuadrantsSyntaxError, match="has changed since `one`"):
        changing.one()


def test_an_array_in_the_place_of_its_element_is_told_how_it_is_written():
    global total, grid
    total, grid = ti.field(ti.f32, shape=()), ti.field(ti.f32, shape=(2, 2))

    @ti.kernel
    def add():
        total += 1.0

    @ti.kernel
    def add_to_all():
        grid += 1.0

    with pytest.raises(ti.QuadrantsTypeError, match=r"change its elements: `total\[None\]`"):
        add()
    with pytest.raises(ti.QuadrantsTypeError, match=r"change its elements: `grid\[i, j\]`"):
        add_to_all()


def test_a_parameter_without_a_type_is_told_which_there_are():
    with pytest.raises(ti.QuadrantsSyntaxError, match=r"must be type annotated: `a` of `scale`; write `a: f32` of a number"):
        @ti.kernel
        def scale(a):
            pass


@pytest.mark.host
def test_errors_in_functions_of_the_library_name_the_line_that_calls_them():
    ti.reset()
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=64)

    @ti.kernel
    def add():
        for i in x:
            x[i] = ti.simt.block.reduce_add(1.0, 64, ti.f32)   # the line

    @ti.kernel
    def scan():
        x[0] = ti.algorithms.exclusive_scan_add(x, 3, 4)   # the line

    for kernel in (add, scan):
        with pytest.raises(Exception) as failure:
            kernel()
        assert "test_errors.py" in str(failure.value) and "# the line" in str(failure.value)
        assert "costate/lang" not in str(failure.value)
