"""What functions of the language say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def mark(function: F, **facts: object) -> F:
    """Notes facts: `by_reference`: it gets places, `changes_arrays`, `draws` random numbers."""
    for name, value in facts.items():
        setattr(function, name, value)
    return function
