"""Texts with values of the kernel: `print`, `assert` and f-strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.data.struct import Struct
from costate.lang.values.expr import Expr
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

MOST_PRINTED, MOST_ASSERTED = 8, 4
#: In front of a text: no name of the kernel, and no end of the line (src/base/Message.h).
PLAIN = "\x02"

# Not compiled where it stands, as importing the package takes long enough.
_FORM = r"(?P<align>[<>]?)(?P<flags>[-+ ]?0?)(?P<size>\d{0,2}(\.\d{1,2})?)(?P<letter>[deEfFgGxX]?)"


def _form_of(form: str | None, dtype: DataType) -> str:
    """`:8.3f` of a format of Python."""
    found = re.fullmatch(_FORM, form or "")
    if not found or dtype.is_float and found["letter"] in ("d", "x", "X"):
        raise QuadrantsSyntaxError(f"the format '{form}' doesn't match '{dtype}'. Values of a kernel are written with a sign, a width, a "
                                   "precision and one of `deEfFgGxX`, such as `8.3f`")
    if not form:
        return ""
    align = "-" if found["align"] == "<" else ""
    return f":{align}{found['flags'].replace('-', '')}{found['size']}{found['letter']}"


def _written(value: Any, form: str) -> str:
    """A constant by a format, which for integers may be one of C: `i`, `.10d`."""
    if isinstance(value, int) and re.fullmatch(r"[-+ 0]*\d*(\.\d+)?[di]?", form):
        return f"%{form.rstrip('di')}d" % value
    return format(value, form)


@dataclass(eq=False, repr=False)
class Printed:
    """A value of the kernel in a text, and its format."""

    handle: Any
    form: str


class Text:
    """A text and the values that stand in it."""

    def __init__(self) -> None:
        self.parts: list[Any] = []    # texts and `Printed`

    def add_text(self, text: Any) -> None:
        self.parts.append(str(text))

    def add(self, value: Any, form: str | None = None) -> None:
        if isinstance(value, Expr):
            self.parts.append(Printed(value.handle, _form_of(form, value.dtype)))
        elif isinstance(value, Text):
            self.parts += value.parts
        elif isinstance(value, Struct):
            for k, (name, member) in enumerate(value.get().items):
                self.add_text(f"{', ' if k else '{'}{name!r}: ")
                self.add(member, form)
            self.add_text("}")
        elif isinstance(value, (list, tuple)) or isinstance(value, Matrix):
            self.add_text("[")
            for k, e in enumerate(value):
                if k:
                    self.add_text(", ")
                self.add(e, form)
            self.add_text("]")
        else:
            self.add_text(_written(value, form) if form else value)

    def simplified(self) -> Text | str:
        """A string, if there are no values."""
        return "".join(self.parts) if all(isinstance(p, str) for p in self.parts) else self

    def patterns(self, most: int) -> Iterator[Any]:
        """The text with `{}` for values, and these: one pair for each `most` values."""
        text = ""
        values: list[Any] = []
        for part in self.parts:
            if isinstance(part, str):
                text += part.replace("{", "{{").replace("}", "}}")
                continue
            if len(values) == most:
                yield text, values
                text, values = "", []
            text += "{" + part.form + "}"
            values.append(part.handle)
        yield text, values


_PERCENT = r"%(?:%|([-+ 0]*)(\d*(?:\.\d+)?)([diouxXeEfFgGsr]))"


def formatted_by_percent(pattern: str, values: Any) -> Text:
    """`pattern % values`, of values of the kernel."""
    values = values if isinstance(values, tuple) else (values,)
    text, end, rest = Text(), 0, list(values)
    for found in re.finditer(_PERCENT, pattern):
        text.add_text(pattern[end:found.start()])
        end = found.end()
        if found[0] == "%%":
            text.add_text("%")
        elif not rest:
            raise QuadrantsTypeError(f"{pattern!r} asks for more values than {len(values)}")
        else:
            _add_by_percent(text, rest.pop(0), *found.groups())
    text.add_text(pattern[end:])
    if rest:
        raise QuadrantsTypeError(f"{len(values)} values are more than {pattern!r} asks for")
    return text


def _add_by_percent(text: Text, value: Expr, flags: str, size: str, letter: str) -> None:
    if not isinstance(value, Expr):
        text.add_text(f"%{flags}{size}{letter}" % value if not isinstance(value, Matrix) else value)
        return
    is_whole = letter in "diu"
    if is_whole and value.dtype.is_float:
        raise QuadrantsTypeError(f"`%{letter}` of {value.dtype}: write `%g` or `%.3f`")
    letter = "" if is_whole or letter in "srgG" and not size else letter
    align = "<" if "-" in flags else ""
    text.add(value, align + flags.replace("-", "") + size + letter)


def message_of(parts: tuple[Any, ...], sep: str = " ") -> Text:
    """A Text of the arguments of `print`."""
    text = Text()
    for k, part in enumerate(parts):
        if k:
            text.add_text(sep)
        text.add(part)
    return text
