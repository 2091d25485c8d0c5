"""What a kernel returns: an array for each number, vector or matrix, which every `return` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base import state as surroundings
from costate.lang.data.annotations import CompoundType
from costate.lang.data.struct import Struct, StructType
from costate.lang.trace.arrays import Element, Hidden, TracedArray
from costate.lang.trace.places import check_fits
from costate.lang.values.builder import require
from costate.lang.values.expr import Expr, is_scalar
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate import _core
    from costate.lang.values.builder import Builder


class Values:
    """A number, vector or matrix that a kernel returns."""

    def __init__(self, builder: Builder, kind: Any) -> None:
        self.name = builder.name
        is_number = not isinstance(kind, CompoundType)
        self.kind = kind
        self.shape = () if is_number else kind.shape
        self.dtype = dtypes.cook(kind) if is_number else kind.dtype or dtypes.defaults.fp
        self.count = 1 if is_number else kind.count
        self.array = TracedArray(self.dtype, 1, (), (self.count,))
        self.hidden = Hidden(builder, self.dtype, (self.count,))

    def store(self, value: Any) -> None:
        self._store_all(self._matrix(value).entries if self.shape else [self._number(value)])

    def store_zero(self) -> None:
        self._store_all([0] * self.count)

    def _store_all(self, numbers: list[Any]) -> None:
        b = require("return")
        for k, x in enumerate(numbers):
            check_fits(x, self.dtype, "what the kernel returns")
            x = x if isinstance(x, Expr) else dtypes.convert_number(x, self.dtype)
            Element(self.array, [b.constant(dtypes.i64, k)]).set(x)

    def _matrix(self, value: Matrix) -> Matrix:
        value = value if isinstance(value, Matrix) else Matrix(value)
        if value.shape != self.shape:
            raise QuadrantsTypeError(f"the kernel returns a vector or matrix of shape {value.shape}, and its "
                                     f"type says {self.kind!r}")
        return value

    def _number(self, value: Any) -> Any:
        if not is_scalar(value):
            raise QuadrantsTypeError(f"the kernel returns {value!r}, and its type says {self.kind}")
        return value

    def read(self, arrays: dict[Hidden, _core.Array]) -> Any:
        numbers = arrays[self.hidden].to_numpy().tolist()
        recorder = surroundings.numbers() if self.dtype.is_float else None
        if recorder is not None:
            numbers = recorder.read(arrays[self.hidden], (), numbers, f"what kernel `{self.name}` has returned")
        return Matrix.of(numbers, self.shape) if self.shape else numbers[0]


class Members:
    """A struct that a kernel returns."""

    def __init__(self, builder: Builder, kind: StructType) -> None:
        self.kind = kind
        self.members = {name: result_of(builder, one) for name, one in kind.members.items()}

    def store(self, value: Struct) -> None:
        if not isinstance(value, Struct) or list(value.keys) != list(self.members):
            raise QuadrantsTypeError(f"the kernel returns {value!r}, and its type says a struct with the "
                                     f"members {', '.join(self.members)}")
        value = value.get()
        for name, one in self.members.items():
            one.store(value.member(name))

    def store_zero(self) -> None:
        for one in self.members.values():
            one.store_zero()

    def read(self, arrays: dict[Hidden, _core.Array]) -> Struct:
        return Struct({name: one.read(arrays) for name, one in self.members.items()}, self.kind.methods)


def result_of(builder: Builder, kind: Any) -> Any:
    return (Members if isinstance(kind, StructType) else Values)(builder, kind)


class Results:
    """The results of a kernel, made at its first `return`."""

    def __init__(self, kernel: Any) -> None:
        self.name = kernel.__name__
        self.kinds, self.is_tuple = kernel.return_kinds()
        self.parts: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def is_declared(self) -> bool:
        """Whether the type of the kernel says that it returns something."""
        return self.kinds not in (None, [None])

    def store(self, builder: Builder, value: Any) -> None:
        kinds = self.kinds
        values = value if isinstance(value, tuple) else (value,)
        if kinds is None:
            raise QuadrantsSyntaxError("a kernel that returns a value has a return type: "
                                       f"`def {self.name}(...) -> ti.f32:`")
        if len(values) != len(kinds):
            raise QuadrantsSyntaxError(f"the kernel returns {len(values)} values, and its type says "
                                       f"{len(kinds)}")
        if not self.parts:
            self.parts = [result_of(builder, kind) for kind in kinds]
        for part, one in zip(self.parts, values):
            part.store(one)

    def end(self, has_returned: bool) -> None:
        """After the last statement; who comes there without a `return` returns 0."""
        if not self.parts and not has_returned and self.is_declared:
            raise QuadrantsSyntaxError(f"`{self.name}`: Kernel has a return type but does not have a return statement")
        if not has_returned:
            for part in self.parts:
                part.store_zero()

    def read(self, arrays: dict[Hidden, _core.Array]) -> Any:
        """The values, from {Hidden: array}."""
        values = tuple(part.read(arrays) for part in self.parts)
        return values if self.is_tuple else values[0]
