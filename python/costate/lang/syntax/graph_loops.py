"""`while ti.graph_do_while(counter)`: the body once, and again while the counter is not 0."""

from __future__ import annotations

import ast
from typing import Any

from costate.errors import QuadrantsSyntaxError

_NAMES = ("graph_do_while", "do_while")


def _counter(test: ast.expr) -> Any:
    """The argument of the call, or None."""
    if not isinstance(test, ast.Call):
        return None
    name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
    return test.args[0] if name in _NAMES and len(test.args) == 1 else None


def _rewrite(node: Any, counter: ast.Name) -> None:
    """Makes a loop without end, whose last statement is a `break` where the counter is 0."""
    test = node.test
    value = ast.Subscript(counter, ast.Constant(None), ast.Load())
    end = ast.If(ast.Compare(value, [ast.Eq()], [ast.Constant(0)]), [ast.Break()], [])
    node.test = ast.Constant(True)
    for one in (node.test, *ast.walk(end)):
        ast.copy_location(one, test)
    node.body.append(end)
    node.is_graph = True


def rewritten(function: ast.stmt) -> ast.stmt:
    """The syntax tree of a function, with its loops over counters as loops that end with a `break`."""
    for node in list(ast.walk(function)):
        counter = _counter(node.test) if isinstance(node, ast.While) else None
        if counter is not None:
            _rewrite(node, counter)
    return function


def graph_do_while(counter: Any) -> None:
    """`while ti.graph_do_while(counter):` in a kernel: the body once, and again while `counter[None]` is not 0."""
    raise QuadrantsSyntaxError("`graph_do_while(counter)` is the condition of a `while` in a kernel")


do_while = graph_do_while
