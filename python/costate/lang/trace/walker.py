"""What walks of a kernel's tree have in common."""

from __future__ import annotations

import ast
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costate.lang.syntax.source import Source
    from costate.lang.trace.frame import Frame
    from costate.lang.values.builder import Builder


class Walker:
    """Traces one function. `Expressions`, `Statements` and `Loops` derive from this, one from the other; what one calls of those
    after it is declared here."""

    builder: Builder
    frame: Frame
    source: Source

    def __init__(self, builder: Builder, frame: Frame) -> None:
        self.builder, self.frame, self.source = builder, frame, frame.source

    def at(self, node: ast.AST) -> None:
        """Says where the kernel stands: in a function of the library, where it is called."""
        if not self.source.is_library:
            self.builder.loc = self.source.loc(node)

    if TYPE_CHECKING:
        # Expressions
        def place(self, node: ast.expr) -> Any: ...
        def value(self, node: ast.expr) -> Any: ...
        def unused(self, node: ast.expr) -> Any: ...
        # Statements
        def block(self, statements: list[ast.stmt]) -> None: ...
        def assign_name(self, name: str, value: Any, is_static: bool = False) -> None: ...
        def left(self, loop: ast.For | ast.While) -> None: ...
        # Loops
        def counted(self, node: ast.For | ast.While) -> AbstractContextManager[None]: ...
        def keep_checkpoints(self, checkpoints: int | None) -> None: ...
        def fill(self, array: Any, value: Any) -> None: ...
