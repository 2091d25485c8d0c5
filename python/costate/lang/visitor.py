"""Walks the syntax tree of a kernel and traces it."""

from costate.lang.expressions import Expressions
from costate.lang.loops import Loops
from costate.lang.statements import Statements


class Visitor(Expressions, Statements, Loops):
    """Traces one function: a kernel, or a `func` where it is called."""

    def __init__(self, builder, frame):
        self.builder = builder
        self.frame = frame
        self.source = frame.source

    def run(self):
        """Traces the body; returns what the function returns."""
        self.block(self.source.node.body)
        return self.frame.result
