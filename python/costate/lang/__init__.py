"""The kernel language: from Python source to statements of a kernel."""

from __future__ import annotations

import sys as _sys
from typing import Any


def __getattr__(name: str) -> Any:
    """Taichi has the names of the package here, too."""
    package = vars(_sys.modules["costate"])
    if name in package:
        return package[name]
    raise AttributeError(f"module `costate.lang` has no attribute `{name}`")
