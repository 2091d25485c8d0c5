"""Structs: named members, in kernels, in fields and as arguments."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from importlib import import_module
from operator import attrgetter
from pickle import PicklingError
from typing import Any

from costate.errors import QuadrantsRuntimeTypeError, QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.base import dtypes
from costate.lang.base.answer import Answer
from costate.lang.data.annotations import CompoundType, UnpackedType
from costate.lang.data.field import OfLists, check_layout, field
from costate.lang.data.ndarray import ndarray
from costate.lang.values import arith
from costate.lang.values.elementwise import elementwise
from costate.lang.values.expr import is_scalar
from costate.lang.values.matrix import Matrix


def _is_place(x: Any) -> bool:
    return hasattr(x, "get") and hasattr(x, "set")


class Struct:
    """A value with members; each is a place or a value."""

    def __init__(self, members: Any = None, methods: Any = None, **more: Any) -> None:
        self._members = {**(members or {}), **more}
        self._methods = methods or {}

    def member(self, name: str) -> Any:
        if name in self._members:
            return self._members[name]
        if name in self._methods:
            return self._methods[name].__get__(self, type(self))
        raise QuadrantsTypeError(f"a struct has no member `{name}`; it has "
                                 f"{', '.join(self._members)}")

    def place_of(self, name: str) -> Any:
        found = self.member(name)
        if not _is_place(found):
            raise QuadrantsTypeError(f"the member `{name}` cannot be assigned here")
        return found

    def get(self) -> Struct:
        return Struct({k: v.get() if _is_place(v) else v for k, v in self._members.items()},
                      self._methods)

    def set(self, value: Any) -> None:
        value = value.get() if isinstance(value, Struct) else value   # which may have members of this one
        for name in self._members:
            one = value.member(name)
            self.place_of(name).set(one.get() if _is_place(one) else one)

    @property
    def is_variable(self) -> Any:
        """Whether all members can be assigned."""
        return all(v.is_variable if isinstance(v, Struct) else _is_place(v) for v in self._members.values())

    @property
    def is_local(self) -> Any:
        """Whether members are local variables."""
        return any(getattr(v, "is_local", False) is True for v in self._members.values())

    def copied(self, make: Any) -> Struct:
        """A local variable with these members; `make(value)` makes one of a number or vector."""
        def copy(v: Any) -> Any:
            v = v.get() if _is_place(v) else v
            if isinstance(v, Struct):
                return v.copied(make)
            return make(v) if is_scalar(v) or isinstance(v, Matrix) else v
        return Struct({k: copy(v) for k, v in self._members.items()}, self._methods)

    @staticmethod
    def field(members: Any, methods: Any = None, shape: Any = None, name: str = "struct",
              **options: Any) -> StructField | None:
        """A field of structs with these members, a type each; see `costate.field`."""
        return StructType(members, methods, name).field(shape=shape, **options)

    @property
    def keys(self) -> list[str]:
        return list(self._members)

    @property
    def items(self) -> Any:
        return self._members.items()

    entries = property(lambda self: self._members)
    methods = property(lambda self: self._methods)

    def __getitem__(self, name: Any) -> Any:
        return self.member(name)

    def __setitem__(self, name: Any, value: Any) -> None:
        setattr(self, name, value)

    def to_dict(self, include_methods: bool = False, include_ndim: bool = False) -> dict[Any, Any]:
        return {**self._members, **(self._methods if include_methods else {})}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.member(name)
        except QuadrantsTypeError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif name in self._members:
            self._members[name] = value
        else:
            raise AttributeError(f"a struct has no member `{name}`; it has {', '.join(self._members)}")

    def __repr__(self) -> Any:
        return repr(self._members)


def with_structs(value: Any, change: Callable[[Struct], Any]) -> Any:
    """A tuple, list or dictionary, or what is in it, with other structs; lists and dictionaries stay the same objects."""
    if isinstance(value, Struct):
        return change(value)
    if type(value) is tuple:
        return tuple([with_structs(one, change) for one in value])
    for key, one in value.items() if type(value) is dict else enumerate(value) if type(value) is list else ():
        if isinstance(one, (Struct, tuple, list, dict)):
            value[key] = with_structs(one, change)
    return value


class StructElement:
    """An element of a field of structs on the host."""

    def __init__(self, field: Any, index: Any) -> None:
        object.__setattr__(self, "_at", (field, index))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        field, index = self._at
        if name in field.methods:
            return field.methods[name].__get__(self, type(self))
        if name not in field.members:
            raise AttributeError(f"a struct has no member `{name}`; it has {', '.join(field.members)}")
        return field.members[name][index]

    def copy(self) -> Struct:
        """The struct with its members as they are now."""
        return Struct({k: v.copy() if isinstance(v, StructElement) else v for k, v in self.to_dict().items()},
                      self._at[0].methods)

    def __setattr__(self, name: str, value: Any) -> None:
        field, index = self._at
        field.members[name][index] = value

    def to_dict(self) -> dict[Any, Any]:
        field, index = self._at
        return {k: f[index] for k, f in field.members.items()}

    def __repr__(self) -> Any:
        return repr(self.to_dict())


class StructField(OfLists):
    """A field of structs: a field for each member."""

    def __init__(self, members: Any, methods: Any = None) -> None:
        self.members = members
        self.methods = methods or {}

    def __copy__(self) -> StructField:
        return StructField({k: copy(f) for k, f in self.members.items()}, self.methods)

    def first(self) -> Any:
        field = next(iter(self.members.values()))
        return field.first() if isinstance(field, StructField) else field

    shape = property(lambda self: self.first().shape)
    has_grad = property(lambda self: Answer(any(one.has_grad for one in self.members.values())))
    has_dual = property(lambda self: Answer(any(one.has_dual for one in self.members.values())))
    keys = property(lambda self: list(self.members))

    def place_members(self, node: Any, offset: Any = None) -> None:
        node.place(*self.members.values(), offset=offset)

    def __getattr__(self, name: str) -> Any:
        if name != "members" and name in self.members:
            return self.members[name]
        if name in ("grad", "dual"):
            made = {k: getattr(f, name) for k, f in self.members.items()}
            return StructField({k: f for k, f in made.items() if f is not None})
        raise AttributeError(f"a field of structs has no member `{name}`")

    def get_member_field(self, name: Any) -> Any:
        return self.members[name]

    field_dict = property(lambda self: dict(self.members))
    struct_methods = property(lambda self: self.methods)

    @property
    def snode(self) -> Any:
        """The node of the first member."""
        return self.first().snode

    def parent(self, n: Any = 1) -> Any:
        """The node n levels above the members."""
        return self.first().parent(n)

    def __getitem__(self, index: Any) -> StructElement:
        return StructElement(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        value = value.to_dict() if hasattr(value, "to_dict") else value
        for name, one in value.items():
            self.members[name][index] = one

    def fill(self, value: Any) -> None:
        for one in self.members.values():
            one.fill(value)

    def to_numpy(self, *, copy: bool = True) -> dict[Any, Any]:
        return {k: f.to_numpy(copy=copy) for k, f in self.members.items()}

    def from_numpy(self, arrays: Any) -> None:
        for k, f in self.members.items():
            f.from_numpy(arrays[k])

    def to_torch(self, device: Any = None, *, copy: Any = True) -> Any:
        return {k: f.to_torch(device=device, copy=copy) for k, f in self.members.items()}

    def from_torch(self, tensors: Any) -> None:
        for k, f in self.members.items():
            f.from_torch(tensors[k])

    def copy_from(self, other: Any) -> None:
        for k, f in self.members.items():
            f.copy_from(other.members[k])


def packed(members: Any) -> dict[str, Any]:
    """The types of members, of which none is `unpacked`."""
    for name, kind in members.items():
        if isinstance(kind, UnpackedType):
            taken = [one for one in (f"_{name}{k}" for k in range(kind.n)) if one in members]
            if taken:
                raise QuadrantsSyntaxError(f"the member `{taken[0]}` has the name of a component of the unpacked vector `{name}`; "
                                           "choose another name")
    return {name: CompoundType(kind.shape, kind.dtype) if isinstance(kind, UnpackedType) else kind
            for name, kind in members.items()}


class StructType:
    """The type of structs: `types.struct(pos=vec3, mass=f32)`, or a class with `@dataclass`."""

    def __init__(self, members: Any, methods: Any = None, name: str = "struct") -> None:
        self.members, self.methods, self.__name__ = packed(members), methods or {}, name

    def __call__(self, *args: Any, **given: Any) -> Struct:
        if len(args) > len(self.members):
            raise QuadrantsTypeError(f"{self.__name__} has {len(self.members)} members, not {len(args)}")
        by_position = dict(zip(self.members, args))
        for name in given:
            if name not in self.members:
                raise QuadrantsTypeError(f"{self.__name__} has no member `{name}`")
            if name in by_position:
                raise QuadrantsTypeError(f"{self.__name__} is given its member `{name}` twice")
        given = {**by_position, **given}
        return Struct({k: self._member(t, given.get(k, 0)) for k, t in self.members.items()},
                      self.methods)

    def taken(self, value: Any) -> Struct | None:
        """A struct of this type: of one, of a dictionary, of a list of members, or of the first member."""
        value = value.get() if isinstance(value, Struct) else value
        if hasattr(value, "to_dict"):
            value = value.to_dict()
        if isinstance(value, dict):
            return self(**value)
        return self(*value) if isinstance(value, (list, tuple)) else self(value)

    @staticmethod
    def _member(kind: Any, value: Any) -> Any:
        if dtypes.is_dtype(kind):
                return elementwise(lambda v: arith.typed(v, dtypes.cook(kind)), value)
        if isinstance(kind, StructType):
            return kind.taken(value)
        return kind(value)

    def field(self, shape: Any = None, layout: Any = None, needs_grad: bool = False, needs_dual: bool = False,
              offset: Any = None, name: str = "") -> StructField:
        """A field of these."""
        self._check_real(needs_grad or needs_dual)
        check_layout(layout, shape)
        return StructField({k: self._field(t, field, shape, needs_grad, needs_dual, offset)
                            for k, t in self.members.items()}, self.methods)

    def _check_real(self, wanted: bool) -> None:
        if wanted and not _is_real(self):
            raise QuadrantsRuntimeTypeError(f"no member of {self.__name__} is of a type that has a gradient: leave "
                                            "`needs_grad` and `needs_dual` out")

    def ndarray(self, shape: Any, needs_grad: bool = False, needs_dual: bool = False,
                layout: Any = None) -> StructField:
        """An ndarray of these: an ndarray for each member."""
        self._check_real(needs_grad or needs_dual)
        check_layout(layout, shape)
        return StructField({name: ndarray(kind, shape, needs_grad and _is_real(kind), needs_dual and _is_real(kind))
                            for name, kind in self.members.items()}, self.methods)

    @staticmethod
    def _field(kind: Any, make: Callable[..., Any], shape: Any, needs_grad: bool, needs_dual: bool, offset: Any) -> Any:
        if isinstance(kind, StructType):
            real = _is_real(kind)
            return kind.field(shape=shape, needs_grad=needs_grad and real, needs_dual=needs_dual and real,
                              offset=offset)
        real = _is_real(kind)
        return make(kind, shape=shape, needs_grad=needs_grad and real,
                    needs_dual=needs_dual and real, offset=offset)


def _is_real(kind: Any) -> Any:
    """Whether a number, vector or struct has a gradient."""
    if isinstance(kind, StructType):
        return any(map(_is_real, kind.members.values()))
    return (dtypes.cook(kind) if dtypes.is_dtype(kind) else kind.dtype or dtypes.defaults.fp).is_float


def struct(**members: Any) -> StructType:
    """The type of structs with these members."""
    return StructType(members)


class Methods(dict[str, Any]):
    """Those of a class, to which pickles and copies of what has them refer."""

    def __init__(self, methods: Any, cls: Any) -> None:
        super().__init__(methods)
        self.owner = cls.__module__, cls.__qualname__

    def __reduce__(self) -> tuple[Any, ...]:
        if "<locals>" in self.owner[1]:
            raise PicklingError(f"a struct with the methods of `{self.owner[1]}` cannot be pickled: that class is made in a function")
        return _methods_of, self.owner

    def __deepcopy__(self, memo: Any) -> Methods:
        return self


def _methods_of(module: str, name: str) -> Any:
    return attrgetter(name)(import_module(module)).methods
