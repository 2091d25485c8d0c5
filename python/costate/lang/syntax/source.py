"""The source of a kernel: where it stands, and messages that show it."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

from costate import _core
from costate.errors import QuadrantsSyntaxError
from costate.lang.syntax.graph_checkpoints import call_of
from costate.lang.syntax.graph_loops import rewritten
from costate.lang.syntax.stream_blocks import spliced
from costate.lang.syntax.words import in_words_of


def _move_named_conditions(tree: ast.Module) -> None:
    """The condition of a loop only computes: one with `:=` becomes a `break` at the start of the body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
            always = ast.copy_location(ast.Constant(True), node.test)
            node.body.insert(0, ast.fix_missing_locations(ast.copy_location(leave, node.test)))
            node.test = always


def block(lines: list[str], first: int) -> str:
    """The function that begins at a line, as far as indentation shows: what is cut in the middle does not parse. "": none
    begins there. To ask the tokens of Python takes the time of a compilation."""
    def indent(line: str) -> int:
        return len(line.expandtabs()) - len(line.expandtabs().lstrip())

    head = first
    while head < len(lines) and not lines[head].lstrip().startswith(("def ", "async def ")):
        if head == first and not lines[head].lstrip().startswith("@"):
            return ""
        head += 1
    end = head + 1
    while end < len(lines) and (indent(lines[end]) > indent(lines[first]) or lines[end].lstrip()[:1] in CONTINUES):
        end += 1
    return "".join(lines[first:end])


class Source:
    """The syntax tree of a Python function, with the line numbers of its file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__qualname__.split(".")[-1] if function.__name__ != "<lambda>" else (
            "<lambda>")
        self.file = inspect.getsourcefile(function) or function.__code__.co_filename
        self.is_library = (function.__module__ or "").partition(".")[0] == "costate"
        self.node = self._short_way() or self._long_way()
        if isinstance(self.node, ast.AsyncFunctionDef):
            raise type(unsupported(self.node))(self.show(self.node, str(unsupported(self.node))))
        self._mangle()
        self._check_node()
        self._places: dict[tuple[int, int], _core.Loc] = {}

    def _short_way(self) -> Any:
        """The tree, or None if it takes more than indentation to see where the function ends."""
        if hasattr(self.function, "__wrapped__"):
            return None
        code = self.function.__code__
        linecache.checkcache(self.file)
        text = block(linecache.getlines(self.file, self.function.__globals__), code.co_firstlineno - 1)
        try:
            return self._parse(text, code.co_firstlineno) if text else None
        except SyntaxError:
            return None

    def _long_way(self) -> Any:
        """The tree, by the tokens of Python."""
        try:
            lines, first = inspect.getsourcelines(self.function)
        except (OSError, TypeError):
            raise QuadrantsSyntaxError(
                f"the source of `{self.name}` is not available (it was typed into an interpreter, "
                "or made by `exec`); write it to a file, or register its text with `linecache`"
            ) from None
        if self.function.__name__ == "<lambda>":
            raise QuadrantsSyntaxError(f"File \"{self.file}\", line {first}: a kernel is a function "
                                       "made with `def`, not a lambda")
        return self._parse("".join(lines), first)

    def _parse(self, text: str, first: int) -> Any:
        indented = text[:1] in " \t"
        try:
            tree = ast.parse("if 1:\n" + text if indented else text)
        except SyntaxError:
            tree, indented = ast.parse(textwrap.dedent(text)), False
        ast.increment_lineno(tree, first - 1 - indented)
        _move_named_conditions(tree)
        functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        if not functions:
            raise self._has_changed()
        return spliced(rewritten(functions[0]))

    def _mangle(self) -> None:
        """Names such as `__n` are those of the class, as in Python."""
        owner = self.function.__qualname__.split(".")[-2:-1]
        if not owner or owner == ["<locals>"]:
            return
        for node in ast.walk(self.node):
            name = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr"}.get(type(node))
            old = getattr(node, name) if name else ""
            if name and old.startswith("__") and not old.endswith("__"):
                setattr(node, name, f"_{owner[0].lstrip('_')}{old}")

    def _check_node(self) -> None:
        """Files are read when a kernel is first launched, which may be long after Python has read them."""
        code, args = inspect.unwrap(self.function).__code__, self.node.args
        names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        if self.node.name != code.co_name or names != list(code.co_varnames[:len(names)]):
            raise self._has_changed()

    def _has_changed(self) -> QuadrantsSyntaxError:
        line = inspect.unwrap(self.function).__code__.co_firstlineno
        return QuadrantsSyntaxError(f"File \"{self.file}\", line {line}: the file has changed since `{self.name}` "
                                    "was made, and holds something else there; import it again")

    def loc(self, node: Any) -> _core.Loc:
        """The place of a node for the compiler."""
        key = node.lineno, node.col_offset
        if key not in self._places:
            self._places[key] = _core.Loc(self.file, key[0], key[1] + 1)
        return self._places[key]

    def in_their_words(self, text: str) -> str:
        """A message about `ti.name`, with the name that the package has in the user's file."""
        return in_words_of(self.function.__globals__, text)

    def show(self, node: Any, text: str) -> str:
        """`text` below the line of the source, with a caret."""
        text = self.in_their_words(text)
        line = linecache.getline(self.file, node.lineno).rstrip("\n")
        head = f'File "{self.file}", line {node.lineno}, in {self.name}:'
        if not line:
            return f"{head}\n{text}"
        end = node.end_col_offset if node.end_lineno == node.lineno else len(line)
        start = len(line.encode()[:node.col_offset].decode(errors="replace"))
        stop = max(start + 1, len(line.encode()[:end].decode(errors="replace")))
        if len(line) > MOST_SHOWN:  # what is about the caret
            first = max(0, min(start - 40, len(line) - MOST_SHOWN))
            line, start, stop = line[first:first + MOST_SHOWN], start - first, min(stop - first, MOST_SHOWN)
        return f"{head}\n{line}\n{' ' * start}{'^' * (stop - start)}\n{text}"


#: With what no statement begins; "": lines without anything.
CONTINUES = ("", "#", ")", "]", "}")

#: Characters of a line of the source.
MOST_SHOWN = 200

#: What is not part of kernels, and what to write instead.
UNSUPPORTED = {
    ast.Try: ("`try`", "use `if` and flags"),
    ast.Raise: ("`raise`", "use `assert condition, \"text\"` in debug mode"),
    ast.With: ("`with`", "launch kernels inside of `with` on the host"),
    ast.Lambda: ("`lambda`", "write a `@ti.func`"),
    ast.FunctionDef: ("a function inside of a kernel", "move it out and decorate it with `@ti.func`"),
    ast.ClassDef: ("a class inside of a kernel", "move it out of the kernel"),
    ast.AsyncFunctionDef: ("`async def`", "write a `@ti.func`"),
    ast.Yield: ("`yield`", "store results in an array"),
    ast.YieldFrom: ("`yield from`", "store results in an array"),
    ast.Await: ("`await`", "launch kernels from the host"),
    ast.Delete: ("`del`", "leave it out: variables end with their block"),
    ast.Global: ("`global`", "use a field of shape ()"),
    ast.Nonlocal: ("`nonlocal`", "use a field of shape ()"),
    ast.Import: ("`import`", "import at the top of the file"),
    ast.ImportFrom: ("`import`", "import at the top of the file"),
    ast.Set: ("a set", "use a vector or a field"),
    ast.SetComp: ("a set comprehension", "use a list comprehension over `ti.static(range(n))`"),
    ast.GeneratorExp: ("a generator", "use a list comprehension over `ti.static(range(n))`"),
    ast.NamedExpr: ("`:=` after `and`, `or` or `if`", "assign in a statement of its own"),
    ast.Starred: ("`*`", "write the elements out"),
    ast.AsyncFor: ("`async for`", "use `for`"),
    ast.AsyncWith: ("`async with`", "launch kernels from the host"),
}
if hasattr(ast, "Match"):
    UNSUPPORTED[ast.Match] = ("`match`", "use `if` and `elif`")
if hasattr(ast, "TryStar"):
    UNSUPPORTED[ast.TryStar] = ("`try`", "use `if` and flags")
if hasattr(ast, "TypeAlias"):
    UNSUPPORTED[ast.TypeAlias] = ("`type`", "name the type outside of the kernel")


def unsupported(node: ast.AST) -> QuadrantsSyntaxError:
    """The error for a construct that kernels do not have."""
    if call_of(node):
        return QuadrantsSyntaxError("a `checkpoint` is for kernels that are made with `@ti.kernel(graph=True, checkpoints=True)`")
    what, instead = UNSUPPORTED.get(type(node), (f"`{type(node).__name__}`", None))
    return QuadrantsSyntaxError(f"Unsupported node \"{type(node).__name__}\": {what} is not "
                                f"supported in kernels" + (f"; {instead}" if instead else ""))
