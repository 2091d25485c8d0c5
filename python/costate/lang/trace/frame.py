"""The names of a function that is being traced."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsNameError
from costate.lang.analysis.effects import Meaning, effects_of, outside
from costate.lang.analysis.scan import arguments_of, changes
from costate.lang.data.ranges import static
from costate.lang.data.struct import Struct
from costate.lang.trace.places import Place
from costate.lang.trace.variables import variable_for
from costate.lang.values.builder import require, scanned
from costate.lang.values.expr import NUMBERS, Expr
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.analysis.effects import Effects
    from costate.lang.syntax.source import Source


class Bound:
    """A name for one value; `number` is that of a constant, for `ti.static`."""

    __slots__ = ("value", "number")

    def __init__(self, value: Any, number: int | None = None) -> None:
        self.value, self.number = value, number


class Given(Bound):
    """A template parameter of a `func` whose argument is a constant."""


@dataclass(eq=False, repr=False)
class Block:
    """Statements that are traced: the position of the current one, and how many scopes surround them."""

    statements: list[ast.stmt]
    position: int
    scopes: int

    @property
    def current(self) -> ast.stmt:
        return self.statements[self.position]


class Scope(dict[str, Any]):
    """Names, and how much control flow of run time surrounds them."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth


def changed_by(function: Any, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that a function may change."""
    if not getattr(function, "by_reference", False):
        return []
    asked = getattr(function, "changed_arguments", None)
    return arguments_of(call) if asked is None else asked(call)


class Frame:
    """A function that is being traced: its source, its variables, what it returns."""

    def __init__(self, function: Callable[..., Any], source: Source, depth: int = 0) -> None:
        self.source = source
        self.function = function
        self.scopes = [Scope(depth)]
        self.ended: set[str] = set()   # names of scopes that have ended
        self.result: Any = None
        self.returned = False
        self.globals = function.__globals__
        self.closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self.blocks: list[Block] = []
        self._changes_here: dict[tuple[int, bool], set[str]] = {}   # where what is called depends on `self`
        self.loops: list[str] = []            # "range", "loop", "static", "once": from the outermost to the innermost
        self.unrolled: list[int] = []         # how much control flow of run time surrounds the "static" ones
        self.jump: str | None = None           # "break" or "continue", on the way to the end of such a loop
        self.in_static = False     # whether an argument of `ti.static` is evaluated
        self.return_type: Any = None
        self.early: Any = None          # see early.py
        self.kernel: Any = None         # the specialisation, if this is a kernel

    @property
    def depth(self) -> int:
        """How much control flow of run time surrounds the function."""
        return self.scopes[0].depth

    @depth.setter
    def depth(self, depth: int) -> None:
        self.scopes[0].depth = depth

    def changes(self, statement: ast.stmt, is_static: bool = False) -> set[str]:
        """The names that a statement changes; of constants, which calls of functions only pass on, and which may become others, fewer."""
        known = scanned(self.source) if self._owner is None else self._changes_here
        key = id(statement), is_static
        found = known.get(key)
        if found is None:
            asked = (self._changed_constants, self.is_static) if is_static else (self._changed_arguments,)
            found = known[key] = changes(statement, *asked)
        return found

    def is_static(self, value: ast.expr | None) -> bool:
        """Whether this is `ti.static(...)`, or made of such by `not`, `and` and `or`."""
        if isinstance(value, ast.UnaryOp):
            return isinstance(value.op, ast.Not) and self.is_static(value.operand)
        if isinstance(value, ast.BoolOp):
            return all(map(self.is_static, value.values))
        return isinstance(value, ast.Call) and self.called(value.func) is static

    def changed_in(self, name: str, statements: list[ast.stmt], is_static: bool = False) -> bool:
        return any(name in self.changes(s, is_static) for s in statements)

    def will_change(self, name: str, is_static: bool = False) -> bool:
        """Whether what follows the current statement, in its scope, changes a name."""
        for block in reversed(self.blocks):
            if block.scopes != len(self.scopes):
                return False
            if self.changed_in(name, block.statements[block.position + 1:], is_static):
                return True
        return False

    def _changed_arguments(self, call: ast.Call) -> list[ast.expr]:
        found = self.called(call.func)
        return arguments_of(call) if found is None else changed_by(found, call)

    def _changed_constants(self, call: ast.Call) -> list[ast.expr]:
        found = self.called(call.func)
        return [] if hasattr(found, "inline") else changed_by(found, call)

    @property
    def _owner(self) -> Any:
        """The object of Python whose method this is, if that is known."""
        code = self.function.__code__
        found = self.scopes[0].get(code.co_varnames[0]) if code.co_argcount else None
        value = found.value if isinstance(found, Bound) else None
        return value if hasattr(value, "__dict__") and not isinstance(value, Struct) else None

    def called(self, func: ast.expr) -> Any:
        """What a call calls, or None if that is not known yet."""
        path = []
        while isinstance(func, ast.Attribute):
            path.append(func.attr)
            func = func.value
        if not isinstance(func, ast.Name):
            return None
        try:
            found = self._called_name(func.id) if path else self._outside(func.id)
            for name in reversed(path):
                found = getattr(found, name)
        except (QuadrantsNameError, AttributeError):
            return None
        return found

    def _outside(self, name: str) -> Any:
        code = self.function.__code__
        return None if name in code.co_varnames or name in code.co_cellvars else self.outer(name)

    def _called_name(self, name: str) -> Any:
        """What has a member that is called: `self` too."""
        return self._owner if name in self.function.__code__.co_varnames[:1] else self._outside(name)

    def variable(self, name: str, value: Any) -> Place:
        """A new variable of this name."""
        return variable_for(value, (self.function.__code__, name))

    def find(self, name: str) -> Any:
        """The place or binding of a local name, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def meaning(self, name: str) -> Meaning:
        """What a name means to the analysis of effects."""
        found = self.find(name)
        if found is None:
            return outside(self.function, name)
        value = found.value if isinstance(found, Bound) else found
        own = frozenset({name})
        if isinstance(value, (Place, Expr, Matrix, *NUMBERS)):
            return Meaning(names=own)
        return Meaning((value,), own if isinstance(value, Struct) else frozenset())

    def effects(self, statements: list[ast.stmt]) -> Effects:
        """What statements may do, see `analysis/effects.py`."""
        return effects_of(statements, self)

    @property
    def has_variables(self) -> bool:
        """Whether there are names that may mean variables."""
        return any(not isinstance(found, Bound) or isinstance(found.value, Struct)
                   for scope in self.scopes for found in scope.values())

    def scope_of(self, name: str) -> Scope | None:
        """The innermost scope that has a name, or None."""
        return next((scope for scope in reversed(self.scopes) if name in scope), None)

    def bind(self, name: str, what: Any) -> None:
        self.scopes[-1][name] = what

    def outer(self, name: str) -> Any:
        """What a name means outside of the function."""
        if name in self.closure:
            try:
                return self.closure[name].cell_contents
            except ValueError:
                raise QuadrantsNameError(f'Name "{name}" is not defined yet where the kernel is '
                                         "first launched") from None
        if name in self.globals:
            return self.globals[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise QuadrantsNameError(f'Name "{name}" is not defined' + (
            f" here: it is of a block that has ended; give `{name}` a value before that block, or, if it is the variable of a loop, "
            "copy it within the loop to a name that has one" if name in self.ended else ""))

    def knows(self, name: str) -> Any:
        """What a name means there, or None if that is nothing yet."""
        with suppress(QuadrantsNameError):
            return self.outer(name)
        return None

    @contextmanager
    def static_arguments(self, is_static: bool) -> Iterator[None]:
        """The arguments of a call, maybe of `ti.static`."""
        before, self.in_static = self.in_static, is_static or self.in_static
        try:
            yield
        finally:
            self.in_static = before

    def __enter__(self) -> None:
        self.scopes.append(Scope(require("a block").depth))

    def __exit__(self, *_: object) -> None:
        self.ended.update(self.scopes.pop())
