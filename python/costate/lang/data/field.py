"""Fields: arrays that kernels find by name."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from costate.errors import BadOrder, QuadrantsRuntimeError, QuadrantsRuntimeTypeError
from costate.lang.base import declared, dtypes
from costate.lang.base.hooks import Hook
from costate.lang.data import clear
from costate.lang.data.annotations import AnyCompound, CompoundType
from costate.lang.data.component import Component
from costate.lang.data.extents import extents
from costate.lang.data.pickled import Copied, CopiedCompanion
from costate.lang.data.storage import Companion, Storage
from costate.lang.values import matrix as matrices

if TYPE_CHECKING:
    from costate import _core
    from costate.lang.base.dtypes import DataType

#: Of lists, in kernels.
append: Hook[..., Any] = Hook("append")
length: Hook[..., Any] = Hook("length")
deactivate: Hook[..., Any] = Hook("deactivate")


class Layout(enum.Enum):
    """How the components of vectors lie in memory."""

    AOS = 1
    SOA = 2
    NULL = 3


class FieldCompanion(CopiedCompanion, Companion):
    """The gradient or tangent of a field."""

    def _make_companion(self, which: str) -> FieldCompanion:
        return type(self)(self, which)


class OfLists:
    """What kernels call on a field of lists without other indices."""

    def append(self, value: Any) -> Any:
        """Adds an element: see `costate.append`."""
        return append(self, [], value)

    def length(self) -> Any:
        """How many there are: see `costate.length`."""
        return length(self)

    def deactivate(self) -> None:
        """Leaves none."""
        deactivate(self, [])


class Field(OfLists, Copied, Storage):
    """An array whose shape is given when it is made, or by `root.dense(...).place(x)`."""

    is_field = True
    kind = "field"

    def __init__(self, dtype: DataType, element_shape: tuple[int, ...] = (), shape: tuple[int, ...] | None = None,
                 needs_grad: bool = False, needs_dual: bool = False, name: str = "") -> None:
        super().__init__(dtype, element_shape, needs_grad, needs_dual, name)
        self._shape = shape
        self._tree: Any = None
        self._register()
        declared.declare()

    def _register(self) -> None:
        super()._register()
        clear.fields.add(self)

    @property
    def shape(self) -> Any:
        if self._shape is None:
            raise QuadrantsRuntimeError(f"{self.describe()} has no allocation, for it has no shape "
                                        "yet: give it `shape=`, or `root.dense(i, n).place(x)`")
        return self._shape

    def _make(self) -> _core.Array:
        if self._tree is not None:
            self._tree.check_alive(self)
        _ = self.shape
        array = super()._make()
        return array

    def _make_companion(self, which: str) -> FieldCompanion:
        return FieldCompanion(self, which)

    def _made_by(self) -> tuple[Any, Any, Any]:
        if self._sparse_node is not None:
            raise QuadrantsRuntimeError(f"{self.describe()} is in a sparse node, and cannot be copied or pickled as a field; "
                                        "use its `to_numpy()`")
        arguments = (self.dtype, self.element_shape, self.shape, self.needs_grad, self.needs_dual, self.name)
        return type(self), arguments, {"offset": self.offset, "layout": self.layout}

    @property
    def grad(self) -> FieldCompanion | None:
        """The gradient; None for fields of integers."""
        return self.companion("grad") if self.dtype.is_float else None

    @property
    def dual(self) -> FieldCompanion | None:
        """The tangent; None for fields of integers."""
        return self.companion("dual") if self.dtype.is_float else None

    def shifted(self, offset: Any) -> Field:
        """This field, with the indices of its first element."""
        if offset is not None:
            offset = extents(offset, None, "offset")
            if len(offset) != len(self.shape):
                raise QuadrantsRuntimeError("The dimensionality of shape and offset must be the same "
                                            f"({len(self.shape)} != {len(offset)})")
            self.offset = offset if any(offset) else None
        return self

    def loop_range(self) -> Any:
        return self

    def __str__(self) -> Any:
        if self._shape is None:
            return "<Field: Definition of this field is incomplete>"
        return str(self.to_numpy())

    def get_field_members(self) -> Any:
        return [self]

    @property
    def num_dense_cells(self) -> Any:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


class ScalarField(Field):
    """A field of numbers."""


class _Columns(Storage):
    """Arrays of vectors or matrices; matrices of one column are copied as vectors."""

    def _columns(self, array: Any, keep_dims: bool) -> Any:
        shape = self.element_shape if keep_dims or self.element_shape[1:] != (1,) else self.element_shape[:1]
        if keep_dims and len(shape) == 1:
            shape = (*shape, 1)
        return array.reshape((*self.shape, *shape))

    def to_numpy(self, keep_dims: bool = False, dtype: Any = None, copy: bool = True) -> Any:  # type: ignore[override]
        """A copy as a NumPy array, see `Storage`; with `keep_dims`, vectors are matrices of one column."""
        return self._columns(super().to_numpy(dtype=dtype, copy=copy), keep_dims)

    def to_torch(self, device: Any = None, keep_dims: Any = False, copy: Any = True) -> Any:  # type: ignore[override]
        """The same as a PyTorch tensor."""
        return self._columns(super().to_torch(device=device, copy=copy), keep_dims)


class _MatrixCompanion(_Columns, FieldCompanion):
    """The gradient or tangent of a field of vectors or matrices."""


class MatrixField(_Columns, Field):
    """A field of vectors or matrices."""

    def _make_companion(self, which: str) -> _MatrixCompanion:
        return _MatrixCompanion(self, which)

    @property
    def ndim(self) -> int:
        """1 of vectors, 2 of matrices."""
        return len(self.element_shape)

    def get_scalar_field(self, *index: Any) -> Component:
        """One component, as a field of numbers over the same memory."""
        return Component(self, index)


VectorField = MatrixField


def _check_order(order: str, shape: tuple[int, ...] | None) -> None:
    """Such as `"ji"`, with each of the first letters from `i` on once."""
    if shape is None:
        raise QuadrantsRuntimeError("a field with an `order` has a shape")
    axes = "ijklmnop"[:len(extents(shape))]
    if sorted(order) != sorted(axes):
        raise BadOrder(f"the `order` of a field of shape {extents(shape)} has each of the axes {axes!r} "
                                    f"once: {order!r}")


def _check(dtype: DataType, shape: Any, offset: tuple[Any, ...] | None, order: str | None, needs_grad: bool,
           needs_dual: bool) -> DataType:
    dtype = dtypes.cook(dtype)
    if order is not None:
        _check_order(order, shape)
    if (needs_grad or needs_dual) and not dtype.is_float:
        raise QuadrantsRuntimeTypeError(f"{dtype} is not supported for field with `needs_grad=True` or "
                                    "`needs_dual=True`.")
    if offset is not None and shape is None:
        raise QuadrantsRuntimeError("a field with an `offset` has a shape; or give it to `place`")
    return dtype


def check_layout(layout: Any, shape: Any) -> None:
    """One of `Layout`, or each dimension once, in their order in memory."""
    if layout is None or isinstance(layout, Layout):
        return
    axes = list(layout) if isinstance(layout, (tuple, list)) else None
    if axes is None or shape is None or sorted(map(str, axes)) != sorted(map(str, range(len(extents(shape))))):
        raise QuadrantsRuntimeTypeError(f"a `layout` is one of `Layout`, or a tuple with each dimension of the shape once, not "
                                        f"{layout!r}")


def field(dtype: Any, shape: Any = None, order: Any = None, name: str = "", offset: Any = None,
          needs_grad: bool = False, needs_dual: bool = False, layout: Any = None) -> Any:
    """A field of numbers of type `dtype` and shape `shape`, all zero.

    Without `shape`, `root.dense(...).place(x)` gives it one. `needs_grad` and `needs_dual` make a
    gradient `x.grad` and a tangent `x.dual`. `order` and `layout` are accepted: memory is
    row-major. A `dtype` that is a vector or matrix type makes a field of those.
    """
    if isinstance(dtype, (AnyCompound, CompoundType)):
        return dtype.field(shape=shape, order=order, name=name, offset=offset, needs_grad=needs_grad,
                           needs_dual=needs_dual, layout=layout)
    dtype = _check(dtype, shape, offset, order, needs_grad, needs_dual)
    check_layout(layout, shape)
    return ScalarField(dtype, (), extents(shape), needs_grad, needs_dual, name).shifted(offset)


@matrices.make_field.given
def matrix_field(element_shape: Any, dtype: Any, shape: Any = None, order: Any = None, name: str = "",
                 offset: Any = None, needs_grad: bool = False, needs_dual: bool = False, layout: Any = Layout.AOS,
                 ndim: Any = None) -> Any:
    element_shape = extents(tuple(element_shape), 1, "number of components")
    dtype = _check(dtype, shape, offset, order, needs_grad, needs_dual)
    check_layout(layout, shape)
    return MatrixField(dtype, element_shape, extents(shape), needs_grad, needs_dual,
                       name).shifted(offset)
