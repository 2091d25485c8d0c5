"""`x.get_scalar_field(k)`: one component of a field of vectors or matrices, as a field of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsIndexError, QuadrantsRuntimeError
from costate.lang.base.number import refuse_array
from costate.lang.base.scalars import check_array
from costate.lang.base.state import numbers, records

if TYPE_CHECKING:
    from costate.lang.data.storage import Storage


class Component:
    """A view: elements are those components of the field."""

    def __init__(self, field: Storage, index: tuple[int, ...]) -> None:
        shape = field.element_shape
        if len(index) == 2 and len(shape) == 1 and index[1] == 0:
            index = index[:1]
        if len(index) != len(shape) or not all(0 <= k < n for k, n in zip(index, shape)):
            raise QuadrantsIndexError(f"{field.describe()} has components of shape {shape}, and none at {index}")
        self.field, self.index = field, index

    shape = property(lambda self: self.field.shape)
    dtype = property(lambda self: self.field.dtype)

    def place_members(self, node: Any, offset: Any = None) -> None:
        """Places the whole field where its first component is placed; the others need the same shape."""
        field = self.field
        if getattr(field, "_shape", None) is None:
            node.place(field, offset=offset)
        elif field.shape != node.shape:
            raise QuadrantsRuntimeError(f"the components of {field.describe()} are one array of shape {field.shape}; this one is placed "
                                        f"in a node of shape {node.shape}")

    def _of(self, other: Any) -> Component | None:
        return None if other is None else Component(other, self.index)

    grad = property(lambda self: self._of(self.field.grad))
    dual = property(lambda self: self._of(self.field.dual))

    def __getitem__(self, key: Any) -> Any:
        return self.field[key][self.index[0] if len(self.index) == 1 else self.index]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.field[key][self.index[0] if len(self.index) == 1 else self.index] = value

    def to_numpy(self, dtype: Any = None) -> Any:
        """A copy as a NumPy array."""
        whole = self.field.to_numpy(dtype=dtype).reshape(*self.shape, *self.field.element_shape)
        return whole[(..., *self.index)].copy()

    def from_numpy(self, array: Any) -> None:
        """Takes the elements of a NumPy array of the same shape."""
        refuse_array(array, "elements")
        array = np.asarray(array)
        if array.shape != self.shape:
            raise ValueError(f"a component of {self.field.describe()} has shape {self.shape}, the array {array.shape}")
        if records() or numbers() is not None:   # the other components stay what they are
            for key in np.ndindex(*self.shape):
                self[key] = array.item(*key)
            return
        check_array(array, self.field.dtype, f"a component of {self.field.describe()}")
        whole = self.field.to_numpy().reshape(*self.shape, *self.field.element_shape)
        whole[(..., *self.index)] = array
        self.field.from_numpy(whole)

    def fill(self, value: Any) -> None:
        self.from_numpy(np.array([value] * math.prod(self.shape), object).reshape(self.shape))
