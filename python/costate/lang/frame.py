"""The names of a function that is being traced."""

import ast
import builtins

from costate.errors import QuadrantsNameError
from costate.lang.scan import changes


class Bound:
    """A name for one value."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Frame:
    """A function that is being traced: its source, its variables, what it returns."""

    def __init__(self, function, source, depth=0):
        self.source = source
        self.function = function
        self.scopes = [{}]
        self.depth = depth
        self.result = None
        self.returned = False
        self.globals = function.__globals__
        self.closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self.blocks = []           # [statements, the current one, how many scopes surround them]
        self._changes = source.changes
        self.shared = set()
        self.loops = []            # "range", "loop", "static": from the outermost to the innermost
        self.return_type = None
        self.early = None          # see early.py
        self.kernel = None         # the specialisation, if this is a kernel

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
        self.scopes.append({})

    def __exit__(self, *_):
        self.scopes.pop()
