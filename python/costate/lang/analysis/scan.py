"""What a function does to its names, read from its syntax tree."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costate.lang.syntax.source import Source


def _base_name(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _targets(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for e in node.elts:
            yield from _targets(e)
    else:
        yield node


def _nothing_is_known(node: ast.expr) -> bool:
    return False


class _Changes:
    def __init__(self, changed_arguments: Callable[[ast.Call], Iterable[ast.expr]], is_known: Callable[[ast.expr], bool]) -> None:
        self.names: set[str] = set()
        self.changed_arguments = changed_arguments
        self.is_known = is_known

    def visit(self, node: ast.AST) -> None:
        for one in self._without_known(node):
            visit = self._visits.get(type(one))
            if visit:
                visit(self, one)

    def _without_known(self, node: ast.AST) -> Iterator[ast.AST]:
        """All nodes but assignments of what is known, where that is known to happen."""
        if isinstance(node, ast.Assign) and self.is_known(node.value) and all(isinstance(t, ast.Name) for t in node.targets):
            yield from ast.walk(node.value)
        elif isinstance(node, ast.If) and self.is_known(node.test) or isinstance(node, ast.For) and self.is_known(node.iter):
            for child in ast.iter_child_nodes(node):
                yield from self._without_known(child)
        else:
            yield from ast.walk(node)

    def _add(self, node: ast.expr) -> None:
        name = _base_name(node)
        if name is not None:
            self.names.add(name)

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            for one in _targets(target):
                self._add(one)

    def _target(self, node: Any) -> None:
        self._add(node.target)

    def _call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fill":
            self._add(node.func.value)
        for one in self.changed_arguments(node):
            self._add(one)

    _visits = {ast.Assign: _assign, ast.AnnAssign: _target, ast.AugAssign: _target, ast.NamedExpr: _target,
               ast.Call: _call}


def arguments_of(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(k.value for k in node.keywords)]


def has_call(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


def changes(node: ast.stmt, changed_arguments: Callable[[ast.Call], Iterable[ast.expr]],
            is_known: Callable[[ast.expr], bool] = _nothing_is_known) -> set[str]:
    """The names that a statement assigns, or whose components it assigns.

    `changed_arguments(call)` are those of a call that it may change, if they are variables; `is_known(value)` says whether a value,
    condition or range is one of `ti.static`: names that get such values are not among the names, unless a branch or loop of run time surrounds that.
    """
    found = _Changes(changed_arguments, is_known)
    found.visit(node)
    return found.names


def calls_methods(node: ast.AST, name: str) -> bool:
    """Whether a function calls methods of what has this name."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
               and _base_name(n.func.value) == name for n in ast.walk(node))


_assigned: weakref.WeakKeyDictionary[Source, set[str]] = weakref.WeakKeyDictionary()   # of sources


def with_assigned_elements(source: Source) -> set[str]:
    """The names of what a function assigns elements of."""
    found = _assigned.get(source)
    if found is None:
        stored = (n.value for n in ast.walk(source.node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        found = _assigned[source] = {n.id for n in stored if isinstance(n, ast.Name)}
    return found


def has_jump(statements: list[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether a `break` (`continue`) of this loop is among its statements."""
    for statement in statements:
        if isinstance(statement, kind):
            return True
        if isinstance(statement, (ast.For, ast.While)):
            if has_jump(statement.orelse, kind):
                return True
        elif isinstance(statement, ast.If):
            if has_jump(statement.body, kind) or has_jump(statement.orelse, kind):
                return True
    return False


def is_simple(node: ast.expr) -> bool:
    """Whether an expression may be evaluated where it is not needed: no loads, no calls."""
    return not any(isinstance(n, (ast.Subscript, ast.Call, ast.FloorDiv, ast.Mod, ast.Pow))
                   for n in ast.walk(node))


def is_evaluated_once(statement: ast.stmt, node: ast.NamedExpr) -> bool:
    """Whether a statement evaluates one of its expressions once, whatever the values are."""
    always: dict[type[ast.AST], Callable[[Any], Iterable[ast.AST]]] = {ast.BoolOp: lambda n: n.values[:1], ast.IfExp: lambda n: [n.test],
                                                               ast.If: lambda n: [n.test], ast.For: lambda n: [n.iter],
                                                               ast.While: lambda n: [], ast.ListComp: lambda n: []}
    waiting: list[ast.AST] = [statement]
    while waiting:
        one = waiting.pop()
        if one is node:
            return True
        waiting += always.get(type(one), ast.iter_child_nodes)(one)
    return False


def may_be_integer(node: ast.AST) -> bool:
    """Whether a condition may be an integer that is no bool; those of functions count as bools."""
    return not any(isinstance(n, (ast.Compare, ast.BoolOp, ast.Not, ast.Call)) for n in ast.walk(node))
