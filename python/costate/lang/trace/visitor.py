"""Walks the syntax tree of a kernel and traces it."""

from costate.lang.trace.expressions import Expressions
from costate.lang.trace.loops import Loops
from costate.lang.trace.statements import Statements


class Visitor(Expressions, Statements, Loops):
    """Traces one function: a kernel, or a `func` where it is called."""

    def __init__(self, builder, frame):
        self.builder = builder
        self.frame = frame
        self.source = frame.source

    def within(self, frame):
        """One for a function that is called."""
        return Visitor(self.builder, frame)

    def run(self):
        """Traces the body; returns what the function returns."""
        self.block(self.source.node.body)
        return self.frame.result
