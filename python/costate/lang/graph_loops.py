"""`while ti.graph_do_while(counter)`: the body once, and again while the counter is not 0."""

import ast

from costate.errors import QuadrantsSyntaxError

_NAMES = ("graph_do_while", "do_while")


def _counter(test):
    """The argument of the call, or None."""
    if not isinstance(test, ast.Call):
        return None
    name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
    return test.args[0] if name in _NAMES and len(test.args) == 1 else None


class _Rewriter(ast.NodeTransformer):
    def visit_While(self, node):
        self.generic_visit(node)
        counter = _counter(node.test)
        if counter is None:
            return node
        value = ast.Subscript(counter, ast.Constant(None), ast.Load())
        end = ast.If(ast.Compare(value, [ast.Eq()], [ast.Constant(0)]), [ast.Break()], [])
        made = ast.copy_location(ast.While(ast.Constant(True), [*node.body, end], node.orelse), node)
        for one in (made.test, *ast.walk(end)):
            ast.copy_location(one, node.test)
        return made


def rewritten(function):
    """The syntax tree of a function, with its loops over counters as loops that end with a `break`."""
    return _Rewriter().visit(function)


def graph_do_while(counter):
    """`while ti.graph_do_while(counter):` in a kernel: the body once, and again while `counter[None]` is not 0."""
    raise QuadrantsSyntaxError("`graph_do_while(counter)` is the condition of a `while` in a kernel")


do_while = graph_do_while
