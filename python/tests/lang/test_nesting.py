"""Programs whose functions, branches and expressions are nested deeply compile, in reasonable time."""

import importlib.util
import sys
import threading

import numpy as np
import pytest

import costate as ti

HEAD = """import costate as ti
x = ti.field(ti.f32, shape=4, needs_grad=True)
y = ti.field(ti.f32, shape=4, needs_grad=True)
"""


def module_of(tmp_path, text):
    file = tmp_path / "nested.py"
    file.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location("nested", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def values_and_gradient(module):
    module.x.from_numpy(np.arange(4, dtype=np.float32))
    module.y.grad.fill(1)
    module.k()
    module.k.grad()
    return module.y.to_numpy().tolist(), module.x.grad.to_numpy().tolist()


def nested_funcs(count, early):
    text = "@ti.func\ndef f0(a):\n    return a + 1.0\n"
    leave = "    if a > 1000.0:\n        return a\n" if early else ""
    for k in range(1, count):
        text += f"@ti.func\ndef f{k}(a):\n{leave}    return f{k - 1}(a) + 1.0\n"
    return text + f"@ti.kernel\ndef k():\n    for i in x:\n        y[i] = f{count - 1}(x[i])\n"


@pytest.mark.parametrize("count, early", [(200, False), (6, True)])
def test_functions(tmp_path, count, early):
    before = sys.getrecursionlimit()
    values, gradient = values_and_gradient(module_of(tmp_path, nested_funcs(count, early)))
    assert values == [count, count + 1, count + 2, count + 3] and gradient == [1] * 4
    assert sys.getrecursionlimit() == before


def chain(count):
    text = "@ti.kernel\ndef k():\n    for i in x:\n        if i == 5:\n            y[i] = 0.0\n"
    for k in range(count):
        text += f"        elif i == {k}:\n            y[i] = x[i] * {k + 2}.0\n"
    return text + "        else:\n            y[i] = -1.0\n"


def test_a_thousand_elifs(tmp_path):
    values, gradient = values_and_gradient(module_of(tmp_path, chain(1000)))
    assert values == [0, 3, 8, 15] and gradient == [2, 3, 4, 5]


def test_names_and_static_conditions_in_a_chain(tmp_path):
    module = module_of(tmp_path, """
@ti.kernel
def k():
    for i in x:
        a = 1.0
        if i == 0:
            b = 2.0
            a = b
        elif ti.static(False):
            a = 100.0
        elif i == 1:
            b = 3
            a = b * 1.0
        elif ti.static(True):
            if i == 2:
                a = 4.0
            elif i == 7:
                a = 100.0
        else:
            a = 200.0
        y[i] = a * x[i]
""")
    assert values_and_gradient(module) == ([0, 3, 8, 3], [2, 3, 4, 1])


def test_what_is_wrong_in_an_elif_is_shown_there(tmp_path):
    module = module_of(tmp_path, """
@ti.kernel
def k():
    for i in x:
        if i == 0:
            y[i] = 1.0
        elif ti.Vector([i, i]) > 0:
            y[i] = 2.0
""")
    with pytest.raises(ti.QuadrantsTypeError, match=r"line 10, in k:\n        elif ti.Vector[^\n]*\n        \^+\na condition is a vector"):
        module.k()


@pytest.mark.parametrize("expression, values, gradient", [
    ("".join(f"y[{k % 4}] + {k}.0 if i == {k} else " for k in range(40)) + "x[i]", [0, 1, 2, 3], [0] * 4),
    ("".join(f"(y[{k % 4}] > -1.0 and (i & {2**k} or " for k in range(20)) + "i" + "))" * 20, None, [0] * 4),
])
def test_expressions(tmp_path, expression, values, gradient):
    module = module_of(tmp_path, f"@ti.kernel\ndef k():\n    for i in range(4):\n        z = {expression}\n        x[i] += z\n")
    module.k()
    if values:
        assert module.x.to_numpy().tolist() == values


def test_functions_of_python_without_end_are_named_in_any_thread():
    class Owner:
        def __getattr__(self, name):
            return getattr(self, name + "x")

    def without_end(n):
        return list(map(without_end, [n]))[0]

    owner = Owner()

    @ti.kernel
    def calls() -> ti.i32:
        return without_end(0)

    @ti.kernel
    def reads() -> ti.i32:
        return owner.a

    def run():
        for kernel in (calls, reads):
            with pytest.raises(ti.QuadrantsCompilationError, match="go deeper than Python allows"):
                kernel()
            found.append(kernel)
    found = []
    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(found) == 4
