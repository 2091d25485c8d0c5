"""Enumerations by the names of Quadrants and Taichi."""

from costate.lang.base.enums import AutodiffMode, SNodeGradType  # noqa: F401
from costate.lang.data.field import Layout  # noqa: F401
