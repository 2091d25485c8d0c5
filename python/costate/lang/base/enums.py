"""Enumerations by the names of Quadrants and Taichi."""

import enum


class AutodiffMode(enum.IntEnum):
    """What a launch computes."""

    NONE = 0
    VALIDATION = 1
    FORWARD = 2
    REVERSE = 3


class SNodeGradType(enum.IntEnum):
    """What a field holds."""

    PRIMAL = 0
    ADJOINT = 1
    DUAL = 2
    ADJOINT_CHECKBIT = 3
