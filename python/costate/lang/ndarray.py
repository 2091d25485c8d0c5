"""Ndarrays: arrays that are passed to kernels."""

import enum

from costate.errors import QuadrantsRuntimeTypeError
from costate.lang import dtypes
from costate.lang.field import extents
from costate.lang.storage import Companion, Storage, _Tensors


class Ndarray(Storage):
    """An array of numbers, vectors or matrices that kernels take as an argument."""

    kind = "ndarray"

    def __init__(self, dtype, shape, element_shape=(), needs_grad=False, needs_dual=False):
        super().__init__(dtype, element_shape, needs_grad, needs_dual)
        self.shape = extents(shape)
        self._register()
        self.core()

    def _make_companion(self, which):
        return Companion(self, which)

    @property
    def grad(self):
        """The gradient, or None."""
        return self.companion("grad") if self.needs_grad else None

    @property
    def dual(self):
        """The tangent, or None."""
        return self.companion("dual") if self.needs_dual else None

    @property
    def element_type(self):
        return self.dtype

    def __deepcopy__(self, memo=None):
        made = type(self)(self.dtype, self.shape, self.element_shape, self.needs_grad, self.needs_dual)
        made.copy_from(self)
        return made

    __copy__ = __deepcopy__

    def _reset_grad(self):
        if self.needs_grad:
            self.grad.fill(0)


class ScalarNdarray(Ndarray):
    """An ndarray of numbers."""


class MatrixNdarray(Ndarray):
    """An ndarray of matrices."""


class VectorNdarray(Ndarray):
    """An ndarray of vectors."""


def make_ndarray(dtype, shape, element_shape=(), needs_grad=False, needs_dual=False, layout=None):
    dtype = dtypes.cook(dtype)
    if (needs_grad or needs_dual) and not dtype.is_float:
        raise QuadrantsRuntimeTypeError(f"{dtype} is not supported for ndarray with `needs_grad=True` "
                                    "or `needs_dual=True`.")
    kind = (ScalarNdarray, VectorNdarray, MatrixNdarray)[len(element_shape)]
    return kind(dtype, shape, element_shape, needs_grad, needs_dual)


def ndarray(dtype, shape, needs_grad=False, needs_dual=False, layout=None):
    """An array of type `dtype` and shape `shape`, all zero, to be passed to kernels."""
    from costate.lang.annotations import CompoundType
    if isinstance(dtype, CompoundType):
        return make_ndarray(dtype.dtype, shape, dtype.shape, needs_grad, needs_dual)
    if hasattr(dtype, "ndarray"):  # a struct
        return dtype.ndarray(shape, needs_grad, needs_dual)
    return make_ndarray(dtype, shape, (), needs_grad, needs_dual)


class Backend(enum.IntEnum):
    """What a `tensor` is."""

    FIELD = 0
    NDARRAY = 1


class Tensor(metaclass=_Tensors):
    """Fields and ndarrays alike, in annotations and `isinstance`."""


def tensor(dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, needs_dual=False, layout=None,
           **options):
    """An ndarray or a field; `layout` is accepted: memory is row-major. Integers have no gradient."""
    from costate.lang.field import field
    from costate.lang.annotations import CompoundType
    number = dtype.dtype if isinstance(dtype, CompoundType) else dtypes.cook(dtype)
    needs_grad = bool(needs_grad and number.is_float)
    make = ndarray if backend == Backend.NDARRAY else field
    made = make(dtype, shape=shape, needs_grad=needs_grad, needs_dual=needs_dual)
    made.layout = tuple(layout) if layout is not None else None
    return made
