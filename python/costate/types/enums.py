"""Enumerations by the names of Quadrants and Taichi."""

from costate.ad.enums import AutodiffMode, SNodeGradType  # noqa: F401
from costate.lang.field import Layout  # noqa: F401
