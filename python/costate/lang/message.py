"""Texts with values of the kernel: `print`, `assert` and f-strings."""

from costate.lang.expr import Expr
from costate.lang.matrix import Matrix


class Text:
    """A text and the values that stand in its `{}`."""

    def __init__(self):
        self.text = ""
        self.values = []

    def add_text(self, text):
        self.text += str(text).replace("{", "(").replace("}", ")")

    def add(self, value, form=None):
        if isinstance(value, Expr):
            self.text += "{}"
            self.values.append(value.handle)
        elif isinstance(value, Text):
            self.text += value.text
            self.values += value.values
        elif isinstance(value, (list, tuple)) or isinstance(value, Matrix):
            self.add_text("[")
            for k, e in enumerate(value):
                if k:
                    self.add_text(", ")
                self.add(e, form)
            self.add_text("]")
        else:
            self.add_text(format(value, form) if form else value)

    def simplified(self):
        return self if self.values else self.text


def message_of(parts, sep=" "):
    """A Text of the arguments of `print`."""
    text = Text()
    for k, part in enumerate(parts):
        if k:
            text.add_text(sep)
        text.add(part)
    return text
