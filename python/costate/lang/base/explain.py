"""Messages of the library in the words of Python."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from costate.errors import Error

WORDS = [
    (r"device\.array<T>\(\.\.\., grad \| dual\)", "`needs_grad=True, needs_dual=True`"),
    (r"device\.array<T>\(\.\.\., grad\)", "`needs_grad=True`"),
    (r"device\.array<T>\(\.\.\., dual\)", "`needs_dual=True`"),
    (r"`grad\(initial_state, \.\.\.\)`", "`k.grad(..., initial_state=True)`"),
    (r"with KernelOptions::debug", "with `init(debug=True)`"),
    (r"KernelOptions", "`init(debug=True)`"),
    (r"`gradient` of custom launch", "the gradient of function"), (r"custom launch `", "function `"),
    (r"array 1 of `reads` of function `read of (.*?)` \(", r"\1 ("),
    (r"which the launch itself does not use", "which the function itself does not use"),
    (r"use from_host or fill, or take the pointer outside of the recording",
     "use `x[i] = v`, `fill` or `from_numpy`, or take it outside of the `with`"),
    (r"; derivatives of gradients are not known here, so a part", ". Cannot automatically differentiate through a grad tensor: a part"),
    (r"one work item of the range uses the element", "Cross-iteration read-after-write: one work item of the range uses the element"),
    (r"(record \w+ launch(?:es)?|record both|record the launch) with a `Tape`", r"\1 in a `with ad.Tape(loss):`"),
    (r"`\.(grad|dual)\(\)`", r"`.\1`"), (r"`bit_cast<T>\(stop_gradient\(x\)\)`", "`bit_cast(stop_grad(x), dtype)`"),
    (r"`parallel` inside `parallel`", "a parallel loop inside of another one"),
    (r"a `parallel`", "a parallel loop"), (r"`parallel`", "the parallel loop"),
    (r"a `Var`", "a variable"), (r"a `Local`", "a local array"),
    (r"`FOR`", "`for`"), (r"`WHILE`", "`while`"), (r"`RETURN`", "`return`"), (r"`BREAK`", "`break`"),
    (r"`CONTINUE`", "`continue`"), (r"`ASSERT`", "`assert`"),
]


def explain(text: str, names: Any = (), kernels: dict[Any, Any] | None = None) -> str:
    """The text with names of Python.

    `names` are those of the arguments of the kernel; `kernels` has such names for several, by
    the name of the kernel.
    """
    def of_kernel(match: Any) -> str:
        number, known = int(match.group(1)) - 1, (kernels or {}).get(match.group(2), ())
        label = known[number] if 0 <= number < len(known) else None
        return f"`{label}` of kernel `{match.group(2)}`" if label else match.group(0)
    def name(match: Any) -> str:
        number = int(match.group(1)) - 1
        return f"`{names[number]}`" if 0 <= number < len(names) and names[number] else match.group(0)
    text = re.sub(r"\bargument (\d+) of kernel `(\w+)`", of_kernel, text)
    text = re.sub(r"\bargument (\d+)", name, text)
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    seen: set[Any] = set()
    return "\n".join(shown for line in text.split("\n") for shown in with_source(line, seen))


PLACE = r"^(.+?):(\d+):(\d+): (?:error|note)"
IN_TEXT = r"(?:at |\()((?:/|<)[^:\n]*?):(\d+)(?::(\d+))?[:,;)]"


def with_source(line: str, seen: set[Any]) -> Iterator[Any]:
    """A line of a message, and the line of Python below that it is about, with a caret."""
    yield line
    found = re.match(PLACE, line) or re.search(IN_TEXT, line)
    if found is None or found.groups() in seen:
        return
    seen.add(found.groups())
    source = linecache.getline(found.group(1), int(found.group(2))).rstrip("\n")
    if source.strip():
        yield source
        column = found.group(3)
        start = int(column) - 1 if column else len(source) - len(source.lstrip())
        yield " " * start + "^"


class in_python:
    """Errors that come out of here speak Python."""

    __slots__ = ("names", "kernels")

    def __init__(self, names: Sequence[Any] = (), kernels: Any = None) -> None:
        self.names, self.kernels = names, kernels

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Error) and len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (explain(error.args[0], self.names, self.kernels),)
