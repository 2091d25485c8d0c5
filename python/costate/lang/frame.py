"""The names of a function that is being traced."""

import ast
import builtins

from costate.errors import QuadrantsNameError
from costate.lang.builder import require
from costate.lang.scan import changes


class Bound:
    """A name for one value."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Scope(dict):
    """Names, and how much control flow of run time surrounds them."""

    def __init__(self, depth):
        super().__init__()
        self.depth = depth


class Frame:
    """A function that is being traced: its source, its variables, what it returns."""

    def __init__(self, function, source, depth=0):
        self.source = source
        self.function = function
        self.scopes = [Scope(depth)]
        self.result = None
        self.returned = False
        self.globals = function.__globals__
        self.closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self.blocks = []           # [statements, the current one, how many scopes surround them]
        self._changes = source.changes
        self.shared = set()
        self.loops = []            # "range", "loop", "static", "once": from the outermost to the innermost
        self.unrolled = []         # how much control flow of run time surrounds the "static" ones
        self.jump = None           # "break" or "continue", on the way to the end of such a loop
        self.return_type = None
        self.early = None          # see early.py
        self.kernel = None         # the specialisation, if this is a kernel

    @property
    def depth(self):
        """How much control flow of run time surrounds the function."""
        return self.scopes[0].depth

    @depth.setter
    def depth(self, depth):
        self.scopes[0].depth = depth

    def changes(self, statement):
        """The names that a statement changes."""
        found = self._changes.get(id(statement))
        if found is None:
            found = self._changes[id(statement)] = changes(statement, self._changes_arguments)
        return found

    def changed_in(self, name, statements):
        return any(name in self.changes(s) for s in statements)

    def will_change(self, name):
        """Whether what follows the current statement, in its scope, changes a name."""
        for statements, current, depth in reversed(self.blocks):
            if depth != len(self.scopes):
                return False
            if self.changed_in(name, statements[current + 1:]):
                return True
        return False

    def _changes_arguments(self, func):
        path = []
        while isinstance(func, ast.Attribute):
            path.append(func.attr)
            func = func.value
        if not isinstance(func, ast.Name):
            return True
        try:
            found = self.outer(func.id)
            for name in reversed(path):
                found = getattr(found, name)
        except (QuadrantsNameError, AttributeError):
            return True
        return getattr(found, "by_reference", False)

    def find(self, name):
        """The place or binding of a local name, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def scope_of(self, name):
        """The innermost scope that has a name, or None."""
        return next((scope for scope in reversed(self.scopes) if name in scope), None)

    def bind(self, name, what):
        self.scopes[-1][name] = what

    def outer(self, name):
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
        raise QuadrantsNameError(f'Name "{name}" is not defined')

    def __enter__(self):
        self.scopes.append(Scope(require("a block").depth))

    def __exit__(self, *_):
        self.scopes.pop()
