"""Arguments of a kernel: what is compiled in, and what is passed at each launch.

For each parameter there is a `Parameter` that makes an argument a key (of the
specialisation) and into what the launch passes on, and traces it.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from typing import get_type_hints

import numpy as np

from costate import _core
from costate.errors import CannotCapture, MissingGradient, QuadrantsRuntimeTypeError, QuadrantsSyntaxError
from costate.lang.base import dtypes, runtime, scalars
from costate.lang.base.callers import in_their_words
from costate.lang.base.number import ReadArray, is_alive, refuse_array, refuse_constant
from costate.lang.base.remembered import Remembered
from costate.lang.base.state import records, state
from costate.lang.data.annotations import CompoundType, NdarrayType, UnpackedType, ref, without_none
from costate.lang.data.buffer_view import BufferView, BufferViewType
from costate.lang.data.component import Component
from costate.lang.data.ndarray import Ndarray, Tensor
from costate.lang.data.storage import Storage
from costate.lang.data.struct import Struct, StructField, StructType
from costate.lang.data.triplets import Triplets, sparse_matrix_builder
from costate.lang.trace.arrays import Element, ElementGroup, TracedArray, TracedView
from costate.lang.trace.frame import Bound
from costate.lang.trace.func import Func, is_template
from costate.lang.trace.passed import Companion, Item
from costate.lang.trace.triplets import TracedTriplets
from costate.lang.values.expr import Expr
from costate.lang.values.lifted import lifts, numbers, type_of
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from typing import Protocol

    import torch

    from costate.lang.base.dtypes import DataType
    from costate.lang.values.builder import Builder

    class Parameter(Protocol):
        """What makes an argument a key and what the launch passes on, and traces it."""

        name: str

        def bind(self, value: Any, values: Values) -> None: ...

        def trace(self, builder: Builder, value: Any, path: Path) -> Bound: ...

    class Slopes(Protocol):
        """What knows where numbers come from, see scalar_slopes.py."""

        def tensor(self, tensor: torch.Tensor, values: list[float]) -> list[Any]:
            """Numbers that know that they are those of a tensor."""

        def cell(self, given: object, value: float, parameter: ScalarParameter) -> _core.Array | None:
            """An array that stands for a number, if derivatives pass through it."""


class Values:
    """What one launch passes on, in the order of the parameters."""

    __slots__ = ("items", "key", "after", "kept", "counts", "tensors", "hosts", "outside", "numbers", "has_cells", "serial",
                 "changing")

    def __init__(self, numbers: Slopes | None = None) -> None:
        self.numbers = numbers        # what derivatives pass through numbers with, or None
        self.serial = False           # loops of `graph_do_while` have no parallel ones
        self.has_cells = False        # whether arrays stand for numbers
        self.items: list[Any] = []    # numbers and arrays of the library
        self.key: list[object] = []
        self.after: list[Callable[[], None]] = []    # what happens after the launch
        self.kept: list[object] = []
        self.counts: list[int] = []   # how many items each parameter has
        self.tensors: dict[int, torch.Tensor] = {}  # position of an item -> the tensor of PyTorch that it is
        #: id of an item -> (it, the array of NumPy that it stands for)
        self.hosts: dict[int, tuple[_core.Array, np.ndarray[Any, Any]]] = {}
        self.outside = False  # an array may be one over memory of others
        self.changing = False     # numbers come out of objects that may hold other ones at the next launch

    def others(self) -> tuple[object, ...]:
        """What changes where more is bound than arrays of the library."""
        return len(self.after), len(self.kept), len(self.tensors), len(self.hosts), self.outside, self.has_cells


def numbers_of(values: Values) -> list[int]:
    return [item for item in values.items if not isinstance(item, _core.Array)]


def _is_tensor(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Tensor)


def parameter_for(name: str, annotation: Any, position: int | str) -> Parameter:
    """The Parameter of an annotation."""
    inner, may_be_none = without_none(annotation)
    if may_be_none:
        parameter = parameter_for(name, inner, position)
        return parameter if isinstance(parameter, TemplateParameter) else OptionalParameter(name, parameter)
    if isinstance(annotation, (ref, UnpackedType)):
        raise QuadrantsSyntaxError(f"parameter `{name}`: `ref` is for parameters of funcs, and `unpacked` for members of structs")
    if is_template(annotation):
        return TemplateParameter(name)
    if isinstance(annotation, NdarrayType) or annotation is NdarrayType:
        return ArrayParameter(name, annotation if isinstance(annotation, NdarrayType)
                              else NdarrayType())
    if isinstance(annotation, BufferViewType) or annotation is BufferView:
        return ViewParameter(name, annotation if isinstance(annotation, BufferViewType) else BufferViewType())
    if _is_tensor(annotation):
        return AnyParameter(name)
    if isinstance(annotation, sparse_matrix_builder) or annotation is sparse_matrix_builder:
        return BuilderParameter(name)
    if annotation is Matrix or dtypes.is_dtype(annotation) and annotation is not None:
        if annotation is not Matrix:
            return ScalarParameter(name, dtypes.cook(annotation))
    if isinstance(annotation, CompoundType):
        return VectorParameter(name, annotation)
    if isinstance(annotation, StructType):
        return StructParameter(name, annotation)
    if dataclasses.is_dataclass(annotation):
        return DataclassParameter(name, annotation)  # type: ignore[arg-type]
    raise QuadrantsSyntaxError(in_their_words(f"Invalid type annotation (argument {position}) of parameter `{name}`: "
                                              f"{annotation!r}; use a data type such as `ti.f32`, "
                                              "`ti.types.ndarray()`, `ti.template()`, a vector type or a dataclass"))


class OptionalParameter:
    """`annotation | None`."""

    def __init__(self, name: str, parameter: Parameter) -> None:
        self.name, self.parameter = name, parameter

    def bind(self, value: Any, values: Values) -> None:
        if value is None:
            values.key.append(None)
        else:
            values.changing |= _may_change(value, self.parameter)
            self.parameter.bind(value, values)

    def trace(self, builder: Builder, value: Any, path: Path) -> Bound:
        return Bound(None) if value is None else self.parameter.trace(builder, value, path)


class ScalarParameter:
    """A number, or one of a vector or matrix of this shape."""

    def __init__(self, name: str, dtype: DataType, shape: tuple[int, ...] = ()) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        # Numbers that are passed on as they are.
        self.python_type = float if dtype.is_float else int if dtype.is_int else bool
        self.lo: float
        self.hi: float
        self.lo, self.hi = dtypes.finite_range(dtype) if dtype.is_float else dtypes.value_range(dtype)

    def bind(self, value: Any, values: Values) -> None:
        if _stands_for(value, self.dtype, ()):
            _bind_array(value, values)
            return
        number, why = scalars.plain(value), f"{value!r} is not one number"
        if isinstance(number, float) and not self.dtype.is_float:  # also if it is whole: it was computed with floats
            number, why = None, f"{number} is a float; pass an integer, such as `round(v)`, or annotate `{self.name}` with a type of floats"
        if number is None:
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` (type={type(value)}) cannot be "
                                            f"converted into required type {self.dtype}: {why}")
        values.items.append(scalars.convert(number, self.dtype, f"Argument `{self.name}`"))
        if values.numbers is not None and self.dtype.is_float:
            self._bind_cell(value if is_alive(value) else _numbers_of(value, [number], values.numbers)[0], values, values.numbers)

    def _bind_cell(self, given: object, values: Values, numbers: Slopes) -> None:
        """An array in the place of the last item, if derivatives pass through it."""
        cell = numbers.cell(given, values.items[-1], self)
        if cell is not None:
            values.items.pop()
            _bind_array(cell, values)

    def trace(self, builder: Builder, value: object, path: Path) -> Bound:
        position = path.next()
        if isinstance(path.items[position], _core.Array):
            cell = TracedArray(self.dtype, 0)
            builder.arguments.append(Item(position, self.name))
            return Bound(Element(cell, []).get())
        handle = builder.trace.scalar(self.dtype.core)
        builder.arguments.append(Item(position))
        if self.dtype is dtypes.i32:
            wide = builder.pure(_core.Op.cast, dtypes.i64, handle)
            return Bound(Expr(handle, self.dtype, wide, 1))
        return Bound(Expr(handle, self.dtype))


def _may_change(given: object, parameter: Parameter) -> bool:
    """Whether the number that an object gives for a parameter may be another one at the next launch."""
    return isinstance(parameter, ScalarParameter) and hasattr(given, "__setitem__")


def _stands_for(value: object, dtype: DataType, shape: tuple[int, ...]) -> bool:
    """Whether an array stands for a number, or for all of a vector or matrix."""
    return isinstance(value, _core.Array) and dtype.is_float and value.dtype == dtype.core and tuple(value.shape) == shape


def _bind_array(value: _core.Array, values: Values) -> None:
    """One that stands for an argument."""
    values.items.append(value)
    values.has_cells = True
    values.key.append(("cell", len(values.items)))


def _numbers_of(value: Any, entries: list[Any], numbers: Slopes) -> list[Any]:
    """Those of a tensor of PyTorch that requires a gradient know where they come from."""
    return numbers.tensor(value, entries) if dtypes.is_tensor(value) and value.requires_grad else entries


def bind_numbers(value: object, values: Values) -> None:
    """The numbers of an object that are arguments of each launch, see lifted.py."""
    if lifts(value):
        for _, name, number in numbers(value):
            dtype = type_of(number)
            values.key.append((name, dtype.name))
            ScalarParameter(name, dtype).bind(number, values)


class VectorParameter:
    def __init__(self, name: str, kind: CompoundType) -> None:
        self.name, self.kind = name, kind

    def bind(self, value: Any, values: Values) -> None:
        if _stands_for(value, self.kind.dtype or dtypes.defaults.fp, self.kind.shape):
            _bind_array(value, values)
            return
        entries = scalars.leaves(value)
        if len(entries) != self.kind.count or isinstance(value, (Storage, StructField)):
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` (type={type(value)}) cannot be "
                                            f"converted into required type {self.kind!r}")
        values.changing = True
        one = ScalarParameter(self.name, self.kind.dtype or dtypes.defaults.fp, self.kind.shape)
        if values.numbers is not None and one.dtype.is_float:
            refuse_array(value, self.name)
            entries = _numbers_of(value, entries, values.numbers)
        for e in entries:
            one.bind(e, values)

    def trace(self, builder: Builder, value: Any, path: Path) -> Bound:
        one = ScalarParameter(self.name, self.kind.dtype or dtypes.defaults.fp, self.kind.shape)
        first = path.items[path.position + 1]
        if isinstance(first, _core.Array) and len(first.shape) == len(self.kind.shape):
            array = TracedArray(one.dtype, 0, self.kind.shape)
            builder.arguments.append(Item(path.next(), self.name))
            return Bound(ElementGroup(array, []).get())
        entries = [one.trace(builder, None, path).value for _ in range(self.kind.count)]
        return Bound(Matrix.of(entries, self.kind.shape))


class StructParameter:
    def __init__(self, name: str, kind: StructType) -> None:
        self.name, self.kind = name, kind
        self.members = {k: parameter_for(f"{name}.{k}", t, k) for k, t in kind.members.items()}

    def bind(self, value: Any, values: Values) -> None:
        values.changing = True
        for name, parameter in self.members.items():
            given = value.get(name) if isinstance(value, dict) else getattr(value, name)
            parameter.bind(given, values)

    def trace(self, builder: Builder, value: object, path: Path) -> Bound:
        return Bound(Struct({k: p.trace(builder, None, path).value
                             for k, p in self.members.items()}, self.kind.methods))


class ViewParameter:
    """A `BufferView`: an ndarray and two numbers."""

    def __init__(self, name: str, kind: BufferViewType) -> None:
        self.name = name
        self.parts: list[Parameter] = [ArrayParameter(name, kind.ndarray_type), ScalarParameter(name, dtypes.i32),
                                       ScalarParameter(name, dtypes.i32)]

    def bind(self, value: object, values: Values) -> None:
        if not isinstance(value, BufferView):
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` is a {type(value).__name__}, not a `BufferView`; give "
                                            "`x[a:b]` or `BufferView(x, offset, size)`")
        for part, given in zip(self.parts, (value.arr, value.offset, value.size)):
            part.bind(given, values)

    def trace(self, builder: Builder, value: BufferView, path: Path) -> Bound:
        array, offset, size = (part.trace(builder, given, path).value
                               for part, given in zip(self.parts, (value.arr, None, None)))
        return Bound(TracedView(array, offset, size))


class BuilderParameter:
    """A sparse matrix that the kernel builds: its arrays."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _parts(self, value: Triplets) -> list[tuple[ArrayParameter, Ndarray]]:
        return [(ArrayParameter(self.name, kind), array) for kind, array in zip(value.kinds(), value.arrays)]

    def bind(self, value: object, values: Values) -> None:
        if not isinstance(value, Triplets):
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` is a {type(value).__name__}, not a "
                                            "`linalg.SparseMatrixBuilder`")
        values.key.append(value.most)
        for part, array in self._parts(value):
            part.bind(array, values)

    def trace(self, builder: Builder, value: Triplets, path: Path) -> Bound:
        return Bound(TracedTriplets([part.trace(builder, array, path).value for part, array in self._parts(value)], value.most))


class TemplateParameter:
    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, value: object, values: Values) -> None:
        if isinstance(value, Ndarray):
            ArrayParameter(self.name, NdarrayType()).bind(value, values)
            return
        if values.numbers is not None:
            refuse_constant(value, f"is passed as `{self.name}`, a template parameter, which is compiled into the kernel")
        if isinstance(value, (float, np.generic)):
            values.key.append((type(value), repr(value)))  # 0.0 is not -0.0, and nan is nan
        elif isinstance(value, (bool, int, str, type(None), enum.Enum)):
            values.key.append((type(value), value))
        elif isinstance(value, (tuple, list)):
            values.key.append((type(value), len(value)))
            for one in value:
                self.bind(one, values)
        elif isinstance(value, Matrix):
            values.key.append((Matrix, value.shape))
            for one in value.entries:
                self.bind(one, values)
        elif isinstance(value, Component):
            values.key.append((value.index, id(value.field)))
            values.kept.append(value.field)
        else:
            parts = _parts(value)
            names = tuple(value.members) if isinstance(value, StructField) else ()
            values.key.append((names, *map(id, parts)))
            values.kept.extend(parts)
            bind_numbers(value, values)

    def trace(self, builder: Builder, value: Any, path: Path) -> Bound:
        if lifts(value):
            builder.lifted.add(value, path)
        if isinstance(value, Ndarray):
            return ArrayParameter(self.name, NdarrayType()).trace(builder, value, path)
        if isinstance(value, (tuple, list)):
            return Bound(type(value)(self.trace(builder, v, path).value for v in value))
        return Bound(value)


def _parts(value: object) -> list[object]:
    """The objects that make a template what it is: some are made anew for each use."""
    if isinstance(value, StructField) and value.members:
        return [part for one in (*value.members.values(), *value.methods.values()) for part in _parts(one)]
    if isinstance(value, Func) and value.instance is not None:
        return [value.function, value.instance]
    return [value]


class AnyParameter(TemplateParameter):
    """A `Tensor`: a field or an ndarray."""


class Members:
    """What a frozen dataclass of ndarrays binds to, as long as it lives."""

    __slots__ = ("items", "key", "generation", "references")
    _numbers: dict[tuple[object, ...], int] = {}    # of keys, which are long
    _count = itertools.count()

    def __init__(self, items: list[Any], key: list[object]) -> None:
        self.items = items
        self.key = (Members, Members._numbers.setdefault(tuple(key), next(Members._count)))
        self.generation = runtime.generation
        self.references: list[Any] = []


class DataclassParameter:
    """A frozen dataclass of arrays, numbers and other dataclasses."""

    def __init__(self, name: str, cls: type[Any]) -> None:
        self.name, self.cls = name, cls
        try:
            hints = get_type_hints(cls)
        except Exception:
            hints = {f.name: f.type for f in dataclasses.fields(cls)}
        self.members = {f.name: self._member(f.name, hints.get(f.name, f.type))
                        for f in dataclasses.fields(cls)}
        #: Whether an instance stays what it is.
        self.frozen: bool = cls.__dataclass_params__.frozen and all(
            p.frozen for p in self.members.values() if isinstance(p, DataclassParameter))
        self.known = Remembered()

    def _member(self, name: str, annotation: Any) -> Parameter:
        if isinstance(annotation, type) and issubclass(annotation, Storage) or _is_tensor(annotation):
            return AnyParameter(f"{self.name}.{name}")
        return parameter_for(f"{self.name}.{name}", annotation, name)

    def bind(self, value: object, values: Values) -> None:
        if not isinstance(value, self.cls):
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` is a {type(value).__name__}, "
                                            f"not a {self.cls.__name__}")
        known = self.known.get(id(value))
        if known is not None and known.generation == runtime.generation:
            values.items += known.items
            values.key.append(known.key)
            return
        items, parts, others = len(values.items), len(values.key), values.others()
        for name, parameter in self.members.items():
            given = getattr(value, name)
            values.changing |= _may_change(given, parameter)
            parameter.bind(given, values)
        if self.frozen and values.others() == others and all(isinstance(one, _core.Array) for one in values.items[items:]):
            self._know(value, Members(values.items[items:], values.key[parts:]), values, parts)

    def _know(self, value: object, members: Members, values: Values, parts: int) -> None:
        values.key[parts:] = [members.key]
        members.references = self.known.forgetting(id(value), [value])
        self.known.add(id(value), members)

    def trace(self, builder: Builder, value: Any, path: Path) -> Bound:
        members = {}
        for name, parameter in self.members.items():
            given = parameter.trace(builder, getattr(value, name), path)
            members[name] = given.value if isinstance(given, Bound) else given
        methods = {k: f for cls in reversed(self.cls.__mro__) for k, f in vars(cls).items()
                   if isinstance(f, Func)}
        return Bound(Struct(members, methods))


def _element(shape: tuple[int, ...], dtype: DataType) -> str:
    """The type of elements, as Quadrants writes it."""
    kind = ("", "VectorType", "MatrixType")[len(shape)]
    return f"{kind}[{','.join(map(str, shape))}, {dtype}]" if shape else str(dtype)


def _tensor(shape: tuple[int, ...], dtype: DataType) -> str:
    return f"[Tensor ({', '.join(map(str, shape))}) {dtype}]" if shape else str(dtype)


class ArrayParameter:
    """An ndarray, of structs too, or an array of NumPy, PyTorch or the library."""

    def __init__(self, name: str, kind: NdarrayType) -> None:
        self.name, self.kind = name, kind

    def _member(self, name: str) -> ArrayParameter:
        kinds = self.kind.members
        return ArrayParameter(f"{self.name}.{name}", NdarrayType(kinds and kinds[name], self.kind.ndim,
                                                                 needs_grad=self.kind.needs_grad, boundary=self.kind.boundary))

    def _bind_members(self, value: object, values: Values) -> None:
        kinds = self.kind.members
        if not isinstance(value, StructField) or kinds and list(kinds) != list(value.members):
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` (type={type(value)}) is not an ndarray of structs "
                                            f"with the members {', '.join(kinds or ())}")
        values.key.append(("struct", tuple(value.members), tuple(map(id, value.methods.values()))))
        values.kept.extend(value.methods.values())
        for name, one in value.members.items():
            self._member(name).bind(one, values)

    def bind(self, value: Any, values: Values) -> None:
        kind = self.kind
        if isinstance(value, StructField) or kind.members:
            self._bind_members(value, values)
            return
        is_foreign = not isinstance(value, Storage)
        if isinstance(value, Ndarray):
            dtype, ndim, element_shape = value.dtype, len(value.shape), value.element_shape
            array = value.core()
        elif isinstance(value, Storage) and not value.is_field:
            dtype, ndim, element_shape = value.dtype, len(value.shape), value.element_shape
            array = value.core()
        elif isinstance(value, Storage):
            raise QuadrantsRuntimeTypeError(f"Invalid argument for parameter `{self.name}`: a field "
                                            "is passed as `ti.template()`, or used by its name; "
                                            "`types.ndarray()` takes ndarrays")
        else:
            array, element_shape = self._foreign(value, values)
            dtype = dtypes.of_core(array.dtype)
            ndim = len(array.shape) - len(element_shape)
        invalid = f"Invalid value for argument {self.name} - required"
        if kind.element_shape is not None and kind.element_shape != element_shape:
            wanted = _element(kind.element_shape, kind.dtype or dtype)
            raise QuadrantsRuntimeTypeError(f"{invalid} element type: {wanted}, but {_element(element_shape, dtype)} is provided")
        if kind.dtype is not None and kind.dtype is not dtype and not (element_shape and kind.element_shape and is_foreign):
            raise QuadrantsRuntimeTypeError(f"Expect element type {kind.dtype} for argument {self.name}, but get {_tensor(element_shape, dtype)}; "
                                            f"pass an array of {kind.dtype} (`x.astype(np.{kind.dtype.np.name})` of one of NumPy), or "
                                            "leave `dtype` out of the annotation")
        if kind.ndim is not None and kind.ndim != ndim:
            raise QuadrantsRuntimeTypeError(f"{invalid} ndim={kind.ndim}, but {ndim}d ndarray with shape "
                                            f"{tuple(array.shape)[:ndim]} is provided")
        if kind.element_dim is not None and kind.element_dim != len(element_shape):
            kinds = ("numbers", "vectors", "matrices")
            raise QuadrantsRuntimeTypeError(f"{invalid} an array of {kinds[kind.element_dim]}, but one of "
                                            f"{kinds[len(element_shape)]} is provided")
        needs_grad = getattr(value, "needs_grad", array.has_grad)
        if kind.needs_grad and not array.has_grad:
            raise QuadrantsRuntimeTypeError(f"Invalid argument into `types.ndarray()`: "
                                            f"`{self.name}` needs a gradient: make it with "
                                            "`needs_grad=True`")
        values.key.append((dtype.name, ndim, element_shape, needs_grad))
        values.items.append(array)

    def _foreign(self, value: Any, values: Values) -> tuple[_core.Array, tuple[int, ...]]:
        """An array of the library for one of NumPy or PyTorch."""
        kind = self.kind
        if isinstance(value, _core.Array):
            array = value
            values.outside = True
        elif dtypes.is_tensor(value):
            from costate.interop.tensors import array_for
            if kind.needs_grad is False:
                value = _without_gradient(value)
            elif value.requires_grad and not value.is_leaf:
                value = _leaf_over(value)
            array = array_for(value)
            values.tensors[len(values.items)] = value
        elif isinstance(value, np.ndarray):
            array = self._numpy(value, values)
        elif value is None:
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` is None, which is no ndarray; `x.grad` is None of an ndarray that is "
                                            "made without `needs_grad=True`")
        else:
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` (type={type(value)}) cannot be "
                                            "converted into required type ndarray; pass an ndarray "
                                            "or an array of NumPy or PyTorch")
        shape = kind.element_shape
        if shape is None and kind.element_dim:
            shape = tuple(array.shape[len(array.shape) - kind.element_dim:])
        if shape and tuple(array.shape[len(array.shape) - len(shape):]) != shape:
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` has shape "
                                            f"{tuple(array.shape)}, whose last extents are not "
                                            f"{shape}")
        return array, shape or ()

    def _numpy(self, value: np.ndarray[Any, Any], values: Values) -> _core.Array:
        if type(value) is ReadArray:
            refuse_array(value, self.name)
            value = np.asarray(value)
        if isinstance(value, np.ma.MaskedArray) or type(value).__array_ufunc__ is not np.ndarray.__array_ufunc__:
            raise QuadrantsRuntimeTypeError(f"Argument `{self.name}` is a {type(value).__name__}, whose elements are more than the "
                                            "numbers in its memory; pass a plain array, such as `x.filled(0)` of a masked one or "
                                            "`np.asarray(x)`")
        if state.capture is not None:
            raise CannotCapture(f"argument `{self.name}` is an array of NumPy, which a launch copies; pass a field or an ndarray")
        for array, known in values.hosts.values():
            if known is value:
                return array

        def make() -> _core.Array:
            array = _core.Array(runtime.device(), dtypes.of_numpy(value.dtype).core, list(value.shape))
            array.write(np.asarray(value, order="C"))
            return array

        array = state.tape.host_array(value, make) if records() else make()
        values.hosts[id(array)] = array, value
        if value.flags.writeable:
            version = array.version

            def back() -> None:
                if array.version == version:
                    return
                if value.flags.c_contiguous:
                    array.read(value)
                else:
                    value[...] = array.to_numpy()
            values.after.append(back)
        return array

    def trace(self, builder: Builder, value: Any, path: Path) -> Bound:
        if isinstance(value, StructField):
            return Bound(StructField({name: self._member(name).trace(builder, one, path).value
                                      for name, one in value.members.items()}, value.methods))
        position = path.next()
        array = path.items[position]
        known = builder.arrays.get(("array", path.alias(position)))
        dtype = dtypes.of_core(array.dtype)
        element_shape = getattr(value, "element_shape", None)
        if element_shape is None:
            element_shape = self.kind.element_shape or ()
            if not element_shape and self.kind.element_dim:
                element_shape = tuple(array.shape[len(array.shape) - self.kind.element_dim:])
        if known is not None and known.element_shape == tuple(element_shape) and known.clamps == self.kind.clamps:
            return Bound(known)
        made = TracedArray(dtype, len(array.shape) - len(element_shape), element_shape)
        made.clamps = self.kind.clamps
        item = Item(position, self.name)
        made.make_companion = self._companion(builder, made, array, item)
        if self.kind.needs_grad is False:
            builder.stopped.append(made)
        builder.arguments.append(item)
        builder.arrays[("array", path.alias(position))] = made
        return Bound(made)

    def _companion(self, builder: Builder, traced: TracedArray, array: _core.Array, item: Item) -> Callable[[str], TracedArray]:
        def make(which: str) -> TracedArray:
            if not getattr(array, f"has_{which}"):
                raise MissingGradient(f"`{self.name}` has no "
                                      f"{'gradient' if which == 'grad' else 'tangent'}; make it with "
                                      f"`needs_{which}=True`")
            dtype = dtypes.of_core(getattr(array, which).dtype)
            made = TracedArray(dtype, traced.ndim, traced.element_shape, is_gradient=which == "grad")
            made.clamps = traced.clamps
            builder.arguments.append(Companion(item, which))
            return made
        return make


def _leaf_over(tensor: torch.Tensor) -> torch.Tensor:
    """A leaf over the memory of a result of PyTorch, with the same `.grad`."""
    import torch
    with warnings.catch_warnings():  # that PyTorch sets none of a result: this sets it
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")
        if tensor._grad is None:
            tensor._grad = torch.zeros_like(tensor)
    leaf = tensor.detach().requires_grad_()
    leaf.grad = tensor._grad
    return leaf


def _without_gradient(tensor: torch.Tensor) -> torch.Tensor:
    """Its values. A leaf that has asked for a gradient finds zeros."""
    import torch
    if tensor.requires_grad and tensor.is_leaf and tensor.grad is None:
        tensor.grad = torch.zeros_like(tensor)
    return tensor.detach()


class Path:
    """Counts the items of a launch while the parameters are traced."""

    def __init__(self, items: list[Any], aliases: dict[int, int]) -> None:
        self.items = items
        self.position = -1
        self.aliases = aliases

    def next(self) -> int:
        self.position += 1
        return self.position

    def alias(self, position: int) -> int:
        """The first position of the same array."""
        return self.aliases.get(position, position)


def aliases_of(items: list[Any]) -> dict[int, int] | None:
    """{position: first position of the same array} of arrays that are passed more than once."""
    arrays = [(k, x) for k, x in enumerate(items) if isinstance(x, _core.Array)]
    if len(arrays) < 2:
        return None
    if len({id(x) for _, x in arrays}) == len(arrays):
        return None
    first: dict[int, int] = {}
    found: dict[int, int] = {}
    for k, x in arrays:
        if id(x) in first:
            found[k] = first[id(x)]
        else:
            first[id(x)] = k
    return found
