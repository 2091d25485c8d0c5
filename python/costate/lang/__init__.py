"""The kernel language: from Python source to statements of a kernel."""

import sys as _sys


def __getattr__(name):
    """Taichi has the names of the package here, too."""
    package = vars(_sys.modules["costate"])
    if name in package:
        return package[name]
    raise AttributeError(f"module `costate.lang` has no attribute `{name}`")
