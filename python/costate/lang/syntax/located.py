"""Errors with the line of the source that they are about."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from costate.errors import (CompilationError, Error, QuadrantsIndexError, QuadrantsNameError, QuadrantsSyntaxError,
                            QuadrantsTypeError, RecursiveCall)

if TYPE_CHECKING:
    from costate.lang.syntax.source import Source

_CLASSES = ((NameError, QuadrantsNameError), (IndexError, QuadrantsIndexError),
            (TypeError, QuadrantsTypeError), (SyntaxError, QuadrantsSyntaxError))


def located(error: Any, source: Source, node: Any) -> Any:
    """The error with the line of the source that it is about."""
    text = str(error) or type(error).__name__
    if isinstance(error, RecursionError):
        error = RecursiveCall()
        text = (f"calls of functions, one in the other, go deeper than Python allows ({sys.getrecursionlimit()} of its frames); "
                "use a loop, or `sys.setrecursionlimit(...)`")
    if isinstance(error, Error):
        made = type(error)(source.show(node, text))
    else:
        cls = next((new for old, new in _CLASSES if isinstance(error, old)), CompilationError)
        if not isinstance(error, (NameError, IndexError, TypeError, SyntaxError)):
            text = f"{type(error).__name__}: {text}"
        made = cls(source.show(node, text))
    setattr(made, "located", True)
    return made
