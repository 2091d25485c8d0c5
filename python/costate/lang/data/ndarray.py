"""Ndarrays: arrays that are passed to kernels."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsRuntimeTypeError
from costate.lang.base import dtypes
from costate.lang.data.annotations import CompoundType
from costate.lang.data.buffer_view import view_of
from costate.lang.data.extents import extents
from costate.lang.data.field import check_layout, field
from costate.lang.data.pickled import Copied, CopiedCompanion
from costate.lang.data.storage import Companion, Storage, _Tensors
from costate.lang.values import matrix as matrices

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


class NdarrayCompanion(CopiedCompanion, Companion):
    """The gradient or tangent of an ndarray."""

    def _make_companion(self, which: str) -> Any:
        return NdarrayCompanion(self, which)


class Ndarray(Copied, Storage):
    """An array of numbers, vectors or matrices that kernels take as an argument."""

    kind = "ndarray"

    def __init__(self, dtype: DataType, shape: Any, element_shape: tuple[int, ...] = (), needs_grad: bool = False,
                 needs_dual: bool = False) -> None:
        super().__init__(dtype, element_shape, needs_grad, needs_dual)
        if shape is None:
            raise QuadrantsRuntimeTypeError("an ndarray has a shape: an integer, or a tuple of them")
        self.shape = extents(shape)
        self._register()
        self.core()

    def _make_companion(self, which: str) -> NdarrayCompanion:
        return NdarrayCompanion(self, which)

    @property
    def grad(self) -> Any:
        """The gradient, or None."""
        return self.companion("grad") if self.needs_grad else None

    @property
    def dual(self) -> Any:
        """The tangent, or None."""
        return self.companion("dual") if self.needs_dual else None

    def __getitem__(self, key: Any) -> Any:
        return view_of(self, key) if isinstance(key, slice) else super().__getitem__(key)

    @property
    def element_type(self) -> Any:
        return self.dtype

    def _made_by(self) -> tuple[Any, Any, Any]:
        arguments = (self.dtype, self.shape, self.element_shape, self.needs_grad, self.needs_dual)
        return type(self), arguments, {"layout": self.layout}

    def _reset_grad(self) -> None:
        if self.needs_grad:
            self.grad.fill(0)


class ScalarNdarray(Ndarray):
    """An ndarray of numbers."""


class MatrixNdarray(Ndarray):
    """An ndarray of matrices."""


class VectorNdarray(Ndarray):
    """An ndarray of vectors."""


@matrices.make_ndarray.given
def make_ndarray(dtype: Any, shape: Any, element_shape: Any = (), needs_grad: bool = False,
                 needs_dual: bool = False, layout: Any = None) -> Ndarray:
    element_shape = extents(tuple(element_shape), 1, "number of components")
    dtype = dtypes.cook(dtype)
    if (needs_grad or needs_dual) and not dtype.is_float:
        raise QuadrantsRuntimeTypeError(f"{dtype} is not supported for ndarray with `needs_grad=True` "
                                    "or `needs_dual=True`.")
    check_layout(layout, shape)
    kind = (ScalarNdarray, VectorNdarray, MatrixNdarray)[len(element_shape)]
    return kind(dtype, shape, element_shape, needs_grad, needs_dual)


def ndarray(dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False,
            layout: Any = None) -> Any:
    """An array of type `dtype` and shape `shape`, all zero, to be passed to kernels."""
    if isinstance(dtype, CompoundType):
        return make_ndarray(dtype.dtype or dtypes.defaults.fp, shape, dtype.shape, needs_grad, needs_dual, layout)
    if hasattr(dtype, "ndarray"):  # a struct
        return dtype.ndarray(shape, needs_grad, needs_dual, layout)
    return make_ndarray(dtype, shape, (), needs_grad, needs_dual, layout)


class Backend(enum.IntEnum):
    """What a `tensor` is."""

    FIELD = 0
    NDARRAY = 1


class Tensor(metaclass=_Tensors):
    """Fields and ndarrays alike, in annotations and `isinstance`; `Tensor(x)` is the field or ndarray x."""


class VectorTensor(Tensor):
    """Fields and ndarrays of vectors."""

    _ndim = 1


class MatrixTensor(Tensor):
    """Fields and ndarrays of matrices."""

    _ndim = 2


def wrap(impl: Any) -> Any:
    """The field or ndarray itself, which is a tensor."""
    make: Any = Tensor
    return make(impl)


def tensor(dtype: Any, shape: Any, *, backend: Any = Backend.NDARRAY, needs_grad: bool = False, needs_dual: bool = False,
           layout: Any = None, **options: Any) -> Any:
    """An ndarray or a field; `layout` is accepted: memory is row-major. `options` are those of the one or the other."""
    try:
        make = ndarray if Backend(backend) == Backend.NDARRAY else field
    except ValueError:
        raise QuadrantsRuntimeTypeError(f"the `backend` of a tensor is `Backend.FIELD` or `Backend.NDARRAY`, not "
                                        f"{backend!r}") from None
    made = make(dtype, shape=shape, needs_grad=needs_grad, needs_dual=needs_dual, layout=layout, **options)
    made.layout = tuple(layout) if layout is not None else None
    return made


@matrices.make_tensor.given
def _matrix_tensor(element_shape: tuple[int, ...], dtype: DataType, shape: Any, **options: Any) -> Any:
    return tensor(CompoundType(element_shape, dtype), shape, **options)
