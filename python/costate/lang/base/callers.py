"""The lines of the user that calls have come from."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def _of_the_user() -> tuple[int, FrameType]:
    """How many frames of the package surround the caller, and the first one that is not of it, or the outermost one."""
    count, frame = 0, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "costate":
        count, frame = count + 1, frame.f_back
    return count, frame


def warn(text: str) -> None:
    """A warning of the line of the user."""
    warnings.warn(text, stacklevel=_of_the_user()[0] + 1)


def line() -> str:
    """`file:line`."""
    frame = _of_the_user()[1]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
