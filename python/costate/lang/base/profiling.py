"""The profiles that `init(kernel_profiler=True)` and COSTATE_PROFILE keep, and spans for whoever keeps one."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager

from costate import _core

#: Of `init`; None: it keeps none.
kept: _core.Profile | None = None


def keep(option: object) -> None:
    """From here on, as `init(kernel_profiler=option)` says; times from before are forgotten."""
    global kept
    if kept is not None:
        kept.end()
    kept = _core.Profile() if option else None


_of_environment: _core.Profile | None = None


def keep_for_environment() -> None:
    """COSTATE_PROFILE names a file for all that the process does from the first `init` on."""
    global _of_environment
    file = os.environ.get("COSTATE_PROFILE")
    if file and _of_environment is None:
        _of_environment = _core.Profile(file)
        atexit.register(_of_environment.end)


@contextmanager
def span(name: str) -> Iterator[None]:
    """Work of the program by a name, in all profiles."""
    made: _core.ProfileSpan | None = _core.ProfileSpan(name)
    try:
        yield
    finally:
        made = None  # noqa: F841  ends with its object
