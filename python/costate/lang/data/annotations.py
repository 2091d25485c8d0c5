"""What stands after the parameters of kernels: `types.ndarray()`, `template()`, ..."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import numpy as np

from costate.errors import QuadrantsCompilationError, QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.callers import in_their_words
from costate.lang.data.extents import extents
from costate.lang.values import arith
from costate.lang.values.expr import is_scalar
from costate.lang.values.matrix import Matrix, flatten, make_field, make_ndarray, unified

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType


class OrNone:
    """An annotation that may be written `annotation | None`."""

    def __or__(self, other: Any) -> Any:
        return Union[type(self) if isinstance(self, template) else self, other]

    __ror__ = __or__


def without_none(annotation: Any) -> tuple[Any, bool]:
    """The annotation, and whether it was written `annotation | None`."""
    args = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()
    if len(args) != 2 or NoneType not in args:
        return annotation, False
    return args[args[0] is NoneType], True


class template(OrNone):
    """Annotation: a value that is known when the kernel is compiled, or a field.

    `x: ti.template()` and `x: ti.template` mean the same. Of a `ti.func`: the argument itself
    instead of a copy.
    """

    def __init__(self, element_type: Any = None, ndim: Any = None) -> None:
        pass

    def __call__(self) -> template:
        return self


class ref(template):
    """Annotation of a parameter of a `ti.func` that changes the variable of its caller."""


def _check_count(name: str, value: int | None, most: int | None) -> None:
    is_count = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0
    if value is not None and not (is_count and (most is None or value <= most)):
        raise QuadrantsCompilationError(f"`{name}` of `types.ndarray` is an integer, {f'0 to {most}' if most else 'at least 0'}, "
                                        f"not {value!r}")


class NdarrayType(OrNone):
    """Annotation: an ndarray, or an array of NumPy or PyTorch."""

    def __init__(self, dtype: Any = None, ndim: Any = None, element_dim: Any = None, element_shape: Any = None,
                 field_dim: Any = None, needs_grad: Any = None, boundary: Any = None) -> None:
        self.members = dict(dtype.members) if hasattr(dtype, "members") else None  # of a struct
        if self.members is not None:
            dtype = None
        if isinstance(dtype, CompoundType):
            element_shape = dtype.shape
            dtype = dtype.dtype
        if isinstance(dtype, AnyCompound):
            element_dim, dtype = dtype.ndim, dtype.dtype
        self.dtype = dtypes.cook(dtype) if dtype is not None else None
        self.ndim = ndim if ndim is not None else field_dim
        if element_shape is None and element_dim is not None and element_dim == 0:
            element_shape = ()
        self.element_shape = tuple(element_shape) if element_shape is not None else None
        self.element_dim = element_dim
        _check_count("ndim", self.ndim, None)
        _check_count("element_dim", element_dim, 2)
        self.needs_grad = needs_grad
        if boundary not in (None, "unsafe", "clamp"):
            raise QuadrantsCompilationError(f"`boundary` of `types.ndarray` is \"unsafe\" or \"clamp\", not {boundary!r}")
        self.boundary = boundary
        self.clamps = boundary == "clamp"

    def __class_getitem__(cls, args: Any) -> NdarrayType:
        return cls(*args) if isinstance(args, tuple) else cls(args)

    def __call__(self, **options: Any) -> Any:
        return NdarrayType(**options)

    def __repr__(self) -> str:
        return f"ndarray(dtype={self.dtype}, ndim={self.ndim})"


NDArray = NdarrayType
ndarray = NdarrayType


class CompoundType:
    """The type of vectors or matrices; calling it makes one."""

    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape = extents(tuple(shape), 1, "number of components")
        self.dtype = dtypes.cook(dtype) if dtype is not None else None

    n = property(lambda self: self.shape[0])
    m = property(lambda self: self.shape[1] if len(self.shape) == 2 else 1)
    ndim = property(lambda self: len(self.shape))

    @property
    def count(self) -> int:
        result = 1
        for extent in self.shape:
            result *= extent
        return result

    def __call__(self, *args: Any) -> Matrix:
        entries = []
        for a in args:
            if is_scalar(a):
                entries.append(a)
            elif isinstance(a, Matrix):
                entries += a.entries
            else:
                entries += flatten(a)[0]
        if len(entries) == 1:
            entries *= self.count
        if len(entries) != self.count:
            raise QuadrantsCompilationError(f"{self!r} has {self.count} components, not "
                                            f"{len(entries)}")
        if self.dtype is not None:
            entries = [arith.typed(e, self.dtype) for e in entries]
        return Matrix.of(unified(entries), self.shape, self.dtype)

    def cast(self, value: Any) -> Any:
        return self(value)

    def field(self, shape: Any = None, **options: Any) -> Any:
        """A field of these."""
        return make_field(self.shape, self._dtype(), shape, **options)

    def ndarray(self, shape: Any, **options: Any) -> Any:
        """An ndarray of these."""
        return make_ndarray(self._dtype(), shape, self.shape, **options)

    def _dtype(self) -> DataType:
        return self.dtype or dtypes.defaults.fp

    def __eq__(self, other: Any) -> bool:
        return (isinstance(other, CompoundType) and other.shape == self.shape
                and other.dtype is self.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        kind = "vector" if len(self.shape) == 1 else "matrix"
        return f"{kind}({', '.join(map(str, self.shape))}, {self.dtype})"


class DefaultCompound(CompoundType):
    """`vec3`, `mat2`, ...: of the default type at the time of use."""

    def __init__(self, shape: Any, kind: str) -> None:
        self.shape = tuple(shape)
        self.kind = kind

    @property
    def dtype(self) -> DataType:  # type: ignore[override]
        return {"f": dtypes.defaults.fp, "i": dtypes.defaults.ip, "u": dtypes.defaults.up}[self.kind]


class AnyCompound:
    """Vectors or matrices of any size, in `types.ndarray(dtype=...)` and in annotations of funcs."""

    dtype = None

    def __init__(self, ndim: Any, dtype: Any = None) -> None:
        self.ndim = ndim
        self.dtype = dtypes.cook(dtype) if dtype is not None else None

    def _refuse(self) -> None:
        kind, sizes = ("vector", "n") if self.ndim == 1 else ("matrix", "n, m")
        raise QuadrantsTypeError(f"`types.{kind}()` without a size is the element type of an ndarray that is an argument; "
                                 f"here, give the size: `types.{kind}({sizes}, dtype)`")

    def __call__(self, *_: Any, **__: Any) -> None:
        self._refuse()

    field = ndarray = tensor = cast = __call__

    def __repr__(self) -> str:
        return f"{'vector' if self.ndim == 1 else 'matrix'}(dtype={self.dtype})"


class UnpackedType(CompoundType):
    """A vector that is a member of a struct, and nothing else."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise QuadrantsSyntaxError(in_their_words("`types.vector(..., unpacked=True)` is the type of a member of a `ti.dataclass`; "
                                                  "leave `unpacked` out"))

    __call__ = cast = field = ndarray = tensor = _refuse


def vector(n: Any = None, dtype: Any = None, *, unpacked: bool = False) -> Any:
    """The type of vectors with n components; without n, of any size, for elements of arguments.

    `unpacked` members of structs are as others: components are kept in registers where they fit.
    """
    if n is None:
        return AnyCompound(1, dtype)
    return (UnpackedType if unpacked else CompoundType)((n,), dtype)


def matrix(n: Any = None, m: Any = None, dtype: Any = None) -> Any:
    """The type of matrices with n rows and m columns; without them, of any size, for elements of arguments."""
    if (n is None) != (m is None):
        raise QuadrantsTypeError("`types.matrix` has both a number of rows and of columns, or neither")
    return AnyCompound(2, dtype) if n is None else CompoundType((n, m), dtype)
