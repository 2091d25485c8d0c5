"""`with ti.checkpoint(label, yield_on=flag):` in a kernel: where it pauses, and goes on later.

A kernel with such blocks gets a parameter, the number of the block to go on from (-1: from the start), and returns the number
of the block that it paused after (-1: it has come to its end). What comes before the one is skipped, and what comes after the
other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

FROM, PAUSED = "_from_checkpoint", "_paused_at"


def call_of(node: ast.AST) -> ast.Call | None:
    """The `checkpoint(...)` of a `with`, or None."""
    call = node.items[0].context_expr if isinstance(node, ast.With) and len(node.items) == 1 else None
    if not isinstance(call, ast.Call):
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return call if name == "checkpoint" else None


def _number(value: int) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _set(name: str, value: int) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], _number(value))


def _runs(*conditions: ast.expr) -> ast.expr:
    """Nothing has paused the kernel, and all of these hold."""
    return ast.BoolOp(ast.And(), [ast.Compare(_name(PAUSED), [ast.Lt()], [ast.Constant(0)]), *conditions])


def _from(compare: ast.cmpop, count: int) -> ast.expr:
    return ast.Compare(_name(FROM), [compare], [ast.Constant(count)])


class Checkpoints:
    """Rewrites the body of a kernel; `labels` are then those of its blocks, in their order."""

    def __init__(self, function: ast.FunctionDef, value_of: Callable[[ast.expr], Any], refuse: Callable[[ast.AST, str], Exception]) -> None:
        self.labels: list[int] = []
        self.value_of, self.refuse = value_of, refuse
        self.parameters = {one.arg for one in function.args.args}
        body = self.block(function.body)
        start, end = _set(PAUSED, -1), ast.Return(_name(PAUSED))
        for one in (start, end):
            self._place(one, function.body[0])
        function.body[:] = [start, *body, end]

    def _place(self, made: ast.AST, like: ast.AST) -> None:
        """Gives what has been made the place of a statement."""
        for one in ast.walk(made):
            if "lineno" not in one.__dict__:
                ast.copy_location(one, like)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made = [self.statement(one) for one in statements]
        for one, old in zip(made, statements):
            self._place(one, old)
        return made

    def statement(self, node: Any) -> ast.stmt:
        if call_of(node):
            return self.pause(node)
        if isinstance(node, ast.Return):
            return ast.Pass()
        if getattr(node, "is_graph", False):
            return self.loop(node)
        for one in ast.walk(node):
            if call_of(one):
                raise self.refuse(one, "`checkpoint` stands at the top of a kernel, or of a loop of `graph_do_while` there, and not in "
                                  "other loops, branches or checkpoints")
        return ast.If(_runs(_from(ast.Lt(), len(self.labels))), [node], [])

    def loop(self, node: ast.While) -> ast.stmt:
        """A loop over a counter: what ends it is the last statement."""
        *body, end = node.body
        before = len(self.labels)
        made = self.block(body)
        if len(self.labels) == before:
            return ast.If(_runs(_from(ast.Lt(), before)), [node], [])
        assert isinstance(end, ast.If)
        end.test = ast.BoolOp(ast.Or(), [ast.Compare(_name(PAUSED), [ast.GtE()], [ast.Constant(0)]), end.test])
        self._place(end, node)
        node.body = [*made, end]
        return ast.If(_runs(_from(ast.Lt(), len(self.labels))), [node], [])

    def pause(self, node: ast.With) -> ast.stmt:
        call = call_of(node)
        assert call is not None
        if node.items[0].optional_vars is not None:
            raise self.refuse(node, "`with ti.checkpoint(...)` has no `as`")
        given = dict(zip(("cp_id", "yield_on"), call.args)) | {k.arg or "**": k.value for k in call.keywords}
        for name in ("cp_id", "yield_on"):
            if name not in given:
                raise self.refuse(node, f"`checkpoint` is missing its argument `{name}`: `with ti.checkpoint(label, yield_on=flag):`")
        position = self._labelled(node, given["cp_id"])
        flag = self._flag(node, given["yield_on"])
        for one in node.body:
            if any(map(call_of, ast.walk(one))):
                raise self.refuse(one, "a `checkpoint` in another one; put them one after the other")
        fired = ast.Compare(ast.Subscript(flag, ast.Constant(None), ast.Load()), [ast.NotEq()], [ast.Constant(0)])
        body = [_set(FROM, -1), *node.body, ast.If(fired, [_set(PAUSED, position)], [])]
        return ast.If(_runs(_from(ast.LtE(), position)), body, [])

    def _labelled(self, node: ast.With, expression: ast.expr) -> int:
        label = self.value_of(expression)
        if not isinstance(label, int) or isinstance(label, bool):
            raise self.refuse(node, "the label of a `checkpoint` is an integer or an `IntEnum` that is known when the kernel is "
                              f"compiled, not {ast.unparse(expression)}")
        if label in self.labels:
            raise self.refuse(node, f"two checkpoints with the label {label}; choose another one")
        self.labels.append(label)
        return len(self.labels) - 1

    def _flag(self, node: ast.With, expression: ast.expr) -> ast.expr:
        name = expression.value if isinstance(expression, ast.Attribute) else expression
        if not isinstance(name, ast.Name) or name.id not in self.parameters:
            raise self.refuse(node, f"`yield_on` of a `checkpoint` is a parameter of the kernel, or a member of one: an ndarray of i32 "
                              f"with shape (), not {ast.unparse(expression)}")
        return expression
