"""What statements may do, before they are traced: which names and arrays they change, whether they draw random numbers.

An expression means objects that are known now, or parts of local variables, or what nobody knows. Functions of the language
are looked into with what their arguments mean.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

MOST_OBJECTS = 256   # that an expression may mean


if TYPE_CHECKING:
    class Names(Protocol):
        """What names mean where statements stand."""

        def meaning(self, name: str) -> Meaning: ...

    class Function(Protocol):
        """A function of the language, see `trace/func.py`."""

        function: types.FunctionType
        instance: object
        parameters: Sequence[inspect.Parameter]

        @property
        def body(self) -> list[ast.stmt]: ...

        def passes_itself(self, name: str) -> bool:
            """Whether a parameter is the argument and no copy."""


@dataclass(eq=False, repr=False)
class Meaning:
    """What an expression may mean: objects, parts of variables; `is_open`: or anything."""

    objects: tuple[object, ...] = ()
    names: frozenset[str] = frozenset()
    is_open: bool = False

    def or_else(self, other: Meaning) -> Meaning:
        if other is NEW or other is self:
            return self
        if self is NEW:
            return other
        objects = {id(one): one for one in (*self.objects, *other.objects)}
        return Meaning(tuple(objects.values()), self.names | other.names, self.is_open or other.is_open)

    @property
    def key(self) -> object:
        return tuple(map(id, self.objects)), self.names, self.is_open


NEW, ANYTHING = Meaning(), Meaning(is_open=True)


@dataclass(eq=False, repr=False)
class Effects:
    """What may happen; `anything`: to all arrays."""

    names: set[str] = field(default_factory=set)
    objects: dict[int, object] = field(default_factory=dict)
    anything: bool = False
    draws: bool = False

    def change(self, what: Meaning) -> None:
        self.names |= what.names
        self.objects.update((id(one), one) for one in what.objects)
        self.anything |= what.is_open

    def add(self, other: Effects) -> None:
        self.names |= other.names
        self.objects.update(other.objects)
        self.anything |= other.anything
        self.draws |= other.draws


class _Inside:
    """The names of a function that is called."""

    def __init__(self, function: types.FunctionType, parameters: dict[str, Meaning]) -> None:
        self.function, self.parameters = function, parameters

    def meaning(self, name: str) -> Meaning:
        return self.parameters[name] if name in self.parameters else outside(self.function, name)


def outside(function: Any, name: str) -> Meaning:
    """What a name means outside of a function."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return Meaning((cell.cell_contents,))
        except ValueError:    # not yet there
            return ANYTHING
    for known in (function.__globals__, vars(builtins)):
        if name in known:
            return Meaning((known[name],))
    return NEW


#: Functions of Python that may be called with anything.
_HARMLESS = {"builtins", "costate", "functools", "itertools", "math", "numpy", "operator", "string", "typing"}
_OF_VALUES = {"cast", "norm", "norm_sqr", "norm_inv", "normalized", "transpose", "determinant", "inverse", "trace", "sum", "max",
              "min", "any", "all", "dot", "cross", "outer_product", "frobenius_inner", "copy", "to_list", "get_shape"}
_CHANGING = {"fill", "append", "deactivate", "deactivate_all"}


@dataclass(eq=False, repr=False)
class Arguments:
    """Of a call: what they mean; `spread`: of which parameters is not known; `owner`: the variable whose method is called."""

    given: list[Meaning]
    named: dict[str | None, Meaning]
    spread: bool
    owner: frozenset[str]

    @property
    def all(self) -> list[Meaning]:
        return [*self.given, *self.named.values()]


@dataclass(eq=False, repr=False)
class Call:
    """What a call does; `arguments` keeps the objects alive whose identities it is known by."""

    arguments: Arguments
    effects: Effects = field(default_factory=Effects)


class Walk:
    """Goes through statements in their order."""

    def __init__(self, names: Names, done: dict[object, Call]) -> None:
        self.names, self.done = names, done
        self.own: dict[str, Meaning] = {}
        self.learnt = 0    # how often a name has got more meanings
        self.effects = Effects()

    def statements(self, body: Iterable[ast.AST]) -> Effects:
        for one in body:
            self.visit(one)
        return self.effects

    def visit(self, node: ast.AST) -> None:
        kind = type(node)
        if kind in _LEAVES:
            return
        act = _ACTS.get(kind)
        if act is not None:
            act(self, node)
        if kind is ast.For or kind is ast.While:
            known = self.learnt
            self._children(node)
            if self.learnt != known:
                self._children(node)    # with what an iteration leaves
        else:
            self._children(node)

    def _children(self, node: ast.AST) -> None:
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, ast.AST):
                self.visit(child)
            elif isinstance(child, list):
                for one in child:
                    if isinstance(one, ast.AST):
                        self.visit(one)

    def _loop(self, node: ast.For | ast.comprehension) -> None:
        self._bind(node.target, _parts(self.means(node.iter)))

    def _comprehension(self, node: ast.ListComp | ast.DictComp) -> None:
        for generator in node.generators:   # what they bind stands in front of them
            self.visit(generator)

    # -- assignments ---------------------------------------------------------------

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) -> None:
        value = NEW if node.value is None else self.means(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self._bind(target, value if not isinstance(node, ast.AugAssign) else NEW)

    def _bind(self, target: ast.expr, value: Meaning) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._bind(one, _parts(value))
        elif isinstance(target, ast.Name):
            before = self.own.get(target.id) or self.names.meaning(target.id)
            self.effects.names |= before.names
            self.own[target.id] = joined = before.or_else(value)
            self.learnt += joined.key != before.key
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value)
        else:
            self.effects.change(self.means(target))

    # -- expressions ---------------------------------------------------------------

    def means(self, node: ast.expr) -> Meaning:
        """What an expression means, without what it does."""
        if isinstance(node, ast.Name):
            return self.own[node.id] if node.id in self.own else self.names.meaning(node.id)
        if isinstance(node, ast.Attribute):
            return self._member(self.means(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return self._item(self.means(node.value), node.slice)
        if isinstance(node, ast.IfExp):
            return self.means(node.body).or_else(self.means(node.orelse))
        if isinstance(node, (ast.Tuple, ast.List)):
            result = NEW
            for one in node.elts:
                result = result.or_else(self.means(one))
            return result
        if isinstance(node, ast.Call):
            return self._result(node)
        return ANYTHING if isinstance(node, (ast.Dict, ast.ListComp, ast.DictComp, ast.BoolOp, ast.Starred)) else NEW

    def _result(self, node: ast.Call) -> Meaning:
        """What a call returns: a value, one of its arguments, or an object that nobody knows."""
        called = self.means(node.func)
        if called.is_open:
            return ANYTHING
        result = Meaning(names=called.names)
        for function in called.objects:
            if getattr(function, "__name__", "") == "parent" and _is_ours(function):
                result = result.or_else(_parent(function, node))
            elif not (_is_language(function) or _is_harmless(function)) or any(function is one for one in _OPEN):
                return ANYTHING
        for one in [*node.args, *(k.value for k in node.keywords)]:
            given = self.means(one)
            result = result.or_else(Meaning(given.objects, is_open=given.is_open))
        return result

    def _member(self, base: Meaning, name: str) -> Meaning:
        if not base.objects:
            return base
        result = Meaning(names=base.names, is_open=base.is_open)
        for one in base.objects:
            result = result.or_else(_attribute_of(one, name, base.names))
        return result

    def _item(self, base: Meaning, index: ast.expr) -> Meaning:
        result = Meaning(names=base.names, is_open=base.is_open)
        for one in base.objects:
            if isinstance(one, (list, tuple, dict)):
                result = result.or_else(_entries(one, index))
            elif hasattr(one, "element_shape") or hasattr(one, "members"):
                result = result.or_else(Meaning((one,)))    # an element, which is changed with its array
            else:
                result = result.or_else(ANYTHING)
        return result

    # -- calls ---------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> None:
        """A property of an object of the user may draw."""
        for one in self.means(node.value).objects:
            if isinstance(getattr(type(one), node.attr, None), property) and not _is_ours(one):
                self.effects.draws = True

    def _call(self, node: ast.Call) -> None:
        called = self.means(node.func)
        given = [self.means(one.value if isinstance(one, ast.Starred) else one) for one in node.args]
        named = {k.arg: self.means(k.value) for k in node.keywords}
        passed = [*given, *named.values()]
        spread = any(isinstance(one, ast.Starred) for one in node.args) or None in named
        if isinstance(node.func, ast.Attribute):
            base = self.means(node.func.value)
            if node.func.attr in _CHANGING:
                self.effects.change(base)
            if not called.objects and not called.is_open and node.func.attr in _OF_VALUES:
                return
        if called.is_open or not called.objects:
            self._anything(passed + ([called] if called.names else []))
        for function in called.objects:
            self._call_of(function, Arguments(given, named, spread, called.names))

    def _call_of(self, function: object, arguments: Arguments) -> None:
        passed = arguments.all
        if isinstance(function, partial):
            more = [Meaning((one,)) for one in (*function.args, *function.keywords.values())]
            self._anything([*passed, *more])
        elif _is_language(function):
            self._language(cast("Function", function), arguments)
        elif getattr(function, "draws", False):
            self.effects.draws = True
        elif getattr(function, "changes_arrays", getattr(function, "by_reference", False)):
            for one in passed[:1]:
                self.effects.change(one)
        elif not _is_harmless(function):
            self._anything(passed)

    def _anything(self, passed: Iterable[Meaning]) -> None:
        self.effects.draws = self.effects.anything = True
        for one in passed:
            self.effects.change(one)

    def _language(self, function: Function, arguments: Arguments) -> None:
        if arguments.spread or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in function.parameters):
            self._anything(arguments.all)
            return
        given = arguments.given
        if function.instance is not None:
            given = [Meaning((function.instance,), arguments.owner), *given]
        key = function.function.__code__, tuple(one.key for one in given), tuple(
            (k, v.key) for k, v in arguments.named.items())
        if key not in self.done:
            self.done[key] = Call(arguments)     # of calls of itself, with the same arguments
            self.done[key].effects = self._body(function, given, arguments.named)
        self.effects.add(self.done[key].effects)

    def _body(self, function: Function, given: list[Meaning], named: dict[str | None, Meaning]) -> Effects:
        if len(self.done) > MOST_OBJECTS:
            return Effects(set().union(*(one.names for one in given)), anything=True, draws=True)
        try:
            known = dict(zip([p.name for p in function.parameters], given))
            known.update({name: one for name, one in named.items() if name is not None})
            parameters = {p.name: known.get(p.name) or Meaning((p.default,)) for p in function.parameters}
            inside = {name: one if function.passes_itself(name) else Meaning(one.objects, is_open=one.is_open)
                      for name, one in parameters.items()}
            return Walk(_Inside(function.function, inside), self.done).statements(function.body)
        except Exception:   # of the source or the annotations: an error where the function is traced
            return Effects(anything=True, draws=True)


_ACTS: dict[type[ast.AST], Callable[[Walk, Any], None]] = {
    ast.Assign: Walk._assignment, ast.AnnAssign: Walk._assignment, ast.AugAssign: Walk._assignment,
    ast.NamedExpr: Walk._assignment, ast.For: Walk._loop, ast.comprehension: Walk._loop, ast.ListComp: Walk._comprehension,
    ast.DictComp: Walk._comprehension, ast.Call: Walk._call, ast.Attribute: Walk._attribute}
_LEAVES = {ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Load, ast.Store}


def effects_of(statements: Iterable[ast.AST], names: Names) -> Effects:
    """What statements may do where names mean this."""
    return Walk(names, {}).statements(statements)


def _package(one: object) -> str:
    kind = one if isinstance(one, (type, types.FunctionType, types.BuiltinFunctionType)) else type(one)
    return (getattr(kind, "__module__", None) or "").partition(".")[0]


def _is_ours(one: object) -> bool:
    return _package(one) == "costate"


def _is_language(function: object) -> bool:
    return hasattr(type(function), "inline")


def _is_harmless(function: object) -> bool:
    return isinstance(getattr(function, "__self__", None), (str, list, tuple, dict, set, np.ndarray)) or \
        _package(function) in _HARMLESS


#: Functions of Python whose results may be any object.
_OPEN = (getattr, next, iter, map, filter, eval, vars)


def _parent(function: Any, node: ast.Call) -> Meaning:
    """What `x.parent(n)` is."""
    levels = [one.value for one in node.args if isinstance(one, ast.Constant)]
    return Meaning((function(*levels),)) if len(levels) == len(node.args) and not node.keywords else ANYTHING


def _parts(value: Meaning) -> Meaning:
    """What a loop over something known gives: the entries of lists, else indices and numbers."""
    result = Meaning(is_open=value.is_open)
    for one in value.objects:
        if isinstance(one, (list, tuple, set, dict)):
            result = result.or_else(_entries(one, None))
        elif _package(one) not in ("costate", "numpy", "builtins"):
            return ANYTHING
    return result


def _attribute_of(one: object, name: str, names: frozenset[str]) -> Meaning:
    members = getattr(one, "_members", None) if _is_ours(one) else None
    if isinstance(members, dict) and name in members:   # of a struct in a kernel
        member = members[name]
        is_variable = hasattr(member, "set") and not hasattr(member, "_members")
        return Meaning(names=names) if is_variable else Meaning((member,), names)
    if isinstance(getattr(type(one), name, None), property) and not _is_ours(one):
        return ANYTHING
    try:
        return Meaning((getattr(one, name),))
    except Exception:    # what it raises is an error where it is traced
        return Meaning((one,)) if hasattr(one, "element_shape") else NEW    # a component of an element


def _entries(container: Any, index: ast.expr | None) -> Meaning:
    if isinstance(index, ast.Constant):
        try:
            return Meaning((container[index.value],))
        except (IndexError, KeyError, TypeError):
            return NEW
    several = list(container.values() if isinstance(container, dict) else container)
    return Meaning(tuple(several)) if len(several) <= MOST_OBJECTS else ANYTHING

