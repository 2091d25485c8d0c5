"""The lines of a function, found by indentation: the tree is that of Python's own tokens, or there is none."""

import ast
import inspect
import pathlib
import textwrap

import pytest

import costate as ti
from costate.lang.syntax.source import block

WHOLE = {
    "plain": """
        def f(a):
            return a

        b = 1
        """,
    "decorated": """
        @one
        @two(
            3,
        )
        # why
        def f(
            a,
            b,
        ):
            pass
        class C: pass
        """,
    "comments": """
        def f(a):
            if a:
        # far left
                return (
            a
        )

            # at the end
        x = 2
        """,
    "one line": """
        def f(a): return a
        g(f)
        """,
    "async": """
        async def f(a):
            await a
        def g(): pass
        """,
    "the end of the file": """
        def f(a):
            def g():
                return a
            return g""",
    "a class": """
        class C:
            def f(self):
                return 1
            def g(self):
                return 2
        """,
    "tabs": "class C:\n\tdef f(self):\n\t\treturn 1\n\tdef g(self): pass\n",
}
CUT = {
    "a string": 'def f(a):\n    """one\ntwo"""\n    return a\n',
    "brackets": "def f(a):\n    return (a +\n1)\n",
    "a line that goes on": "def f(a):\n    return a + \\\n1\n",
    "a line that goes on in brackets": "def f(a,\nb):\n    return a\n",
}


def lines_of(text):
    return textwrap.dedent(text).lstrip("\n").splitlines(True)


def tree(text):
    return ast.dump(ast.parse("if 1:\n" + text if text[:1] in " \t" else text))


def by_tokens(lines, first):
    return "".join(inspect.getblock(lines[first:]))


@pytest.mark.parametrize("name", WHOLE)
def test_the_block_is_that_of_the_tokens(name):
    lines = lines_of(WHOLE[name])
    first = next(k for k, line in enumerate(lines) if line.lstrip().startswith(("@", "def ", "async ")))
    assert tree(block(lines, first)) == tree(by_tokens(lines, first))


@pytest.mark.parametrize("name", CUT)
def test_what_is_cut_does_not_parse(name):
    with pytest.raises(SyntaxError):
        ast.parse(block(lines_of(CUT[name]), 0))


def test_what_begins_otherwise_is_no_block():
    assert block(["f = lambda a: a\n"], 0) == ""
    assert block(["x = 1\n"], 3) == ""


def test_functions_of_this_package():
    """Of each file the first few."""
    for file in sorted(pathlib.Path(__file__).parent.glob("*.py"))[::8]:
        lines = file.read_text().splitlines(True)
        starts = [k for k, line in enumerate(lines) if line.startswith("def ")]
        for first in starts[:12]:
            try:
                short = tree(block(lines, first))
            except SyntaxError:
                continue
            assert short == tree(by_tokens(lines, first)), (file, first)


@ti.kernel
def fill(
        x: ti.template(), value: ti.i32,
):
    """One
and more"""
    for i in x:
        x[i] = (value +
i)


def test_a_kernel_whose_end_only_tokens_show():
    x = ti.field(ti.i32, 3)
    fill(x, 4)
    assert x.to_numpy().tolist() == [4, 5, 6]
