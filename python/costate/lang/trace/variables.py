"""Local variables, and those that parallel loops share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from costate.lang.base import dtypes
from costate.lang.data.struct import Struct
from costate.lang.trace.arrays import Element, Hidden, TracedArray
from costate.lang.trace.places import Group, LocalArray, Variable
from costate.lang.values.matrix import Matrix, unified

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.trace.places import Place
    from costate.lang.values.builder import Builder
    from costate.lang.values.expr import Expr


@dataclass(eq=False, repr=False)
class Like:
    """What a variable holds: a number, or a vector or matrix of a shape."""

    dtype: DataType
    shape: tuple[int, ...] | None


def variable_for(value: Any, owner: tuple[object, ...] | None = None) -> Place:
    """A new local variable with this value; `owner` is the (code, name) that it has in the source."""
    make = partial(Variable, owner=owner)
    if isinstance(value, Matrix):
        value = value.like(unified(value.entries))
        dtype = dtypes.defaults.fp if any(isinstance(e, float) for e in value.entries) else value.dtype
        if len(value.entries) > 32:
            return LocalArray(value, dtype, owner)
        return Group([make(e, dtype) for e in value.entries], value.shape)
    return make(value)


def share(builder: Builder, place: Place | Struct) -> None:
    """Makes hidden arrays of the variables in a place, in front of a parallel loop that changes them."""
    if isinstance(place, Variable):
        if place.element is None and place.owner:
            place.element = _element_with(builder, place.get(), place)
    elif isinstance(place, LocalArray):
        if place.elements is None:
            place.elements = Group([_element_with(builder, e, place) for e in place.get().entries], place.shape)
    elif isinstance(place, Group):
        for one in place.places:
            share(builder, one)
    elif isinstance(place, Struct):
        for _, one in place.items:
            share(builder, one)


def _element_with(builder: Builder, value: Expr, variable: LocalArray | Variable) -> Element:
    """The element of a hidden array that takes the place of a variable."""
    array = TracedArray(variable.dtype, 0, (), ())
    builder.labels[len(builder.arguments)] = variable.owner[1] if variable.owner else None
    Hidden(builder, variable.dtype, ())
    element = Element(array, [])
    element.first = variable.first
    element.set(value)
    return element
