"""The lines of the user that calls have come from, and the name of the package there."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from costate.lang.syntax.words import in_words_of


def _of_the_user() -> tuple[int, FrameType]:
    """How many frames of the package surround the caller, and the first one that is not of it, or the outermost one."""
    count, frame = 0, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "costate":
        count, frame = count + 1, frame.f_back
    return count, frame


def warn(text: str) -> None:
    """A warning of the line of the user."""
    warnings.warn(text, stacklevel=_of_the_user()[0] + 1)


def in_their_words(text: str) -> str:
    """A text about `ti.name`, with the name that the package has where the call has come from."""
    return in_words_of(_of_the_user()[1].f_globals, text)


def line() -> str:
    """`file:line`."""
    frame = _of_the_user()[1]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
