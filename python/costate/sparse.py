"""A sparse grid of structs, by the names of Taichi."""

from __future__ import annotations as _annotations

import math
from typing import Any

from costate.errors import QuadrantsRuntimeError
from costate.lang.compat.small_funcs import active as _active
from costate.lang.data.extents import extents
from costate.lang.data.snode import axes, root
from costate.lang.data.struct import Struct

__all__ = ["grid", "usage"]


def grid(field_dict: dict[str, Any], shape: Any) -> Any:
    """A field of structs with these members, on a `bitmasked` node of two or three dimensions."""
    shape = extents(shape)
    if len(shape) not in (2, 3):
        raise QuadrantsRuntimeError(f"a sparse grid has two or three dimensions, not {len(shape)}")
    made = Struct.field(field_dict)
    root.bitmasked(axes(*range(len(shape))), shape).place(made)
    return made


def usage(x: Any) -> float:
    """How much of a grid is active, between 0 and 1."""
    return float(_active(x) / math.prod(x.shape))
