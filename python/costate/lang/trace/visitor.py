"""Walks the syntax tree of a kernel and traces it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate.lang.trace.loops import Loops

if TYPE_CHECKING:
    from costate.lang.trace.frame import Frame


class Visitor(Loops):
    """Traces one function: a kernel, or a `func` where it is called."""

    def within(self, frame: Frame) -> Visitor:
        """One for a function that is called."""
        return Visitor(self.builder, frame)

    def run(self) -> Any:
        """Traces the body; returns what the function returns."""
        self.block(self.source.node.body)
        return self.frame.result
