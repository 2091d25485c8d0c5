"""Elements of fields of structs, and structs with methods."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from costate.lang.data.storage import Storage
from costate.lang.data.struct import Methods, Struct, StructField, StructType
from costate.lang.trace.arrays import traced
from costate.lang.trace.func import Func, PyFunc

if TYPE_CHECKING:
    from costate.lang.values.builder import Builder


def element(builder: Builder, field: StructField, index: Any) -> Struct:
    """An element of a field of structs in a kernel."""
    members = {}
    for name, one in field.members.items():
        if isinstance(one, Storage):
            one = traced(builder, one)
        members[name] = element(builder, one, index) if isinstance(one, StructField) else one.at(index)
    return Struct(members, field.methods)


def dataclass(cls: Any) -> StructType:
    """The struct type of a class: its annotations are the members, its functions the methods.

    `@ti.func`s are methods in kernels, plain functions on the host, too.
    """
    kinds = (Func, FunctionType, staticmethod, property)
    methods = {k: PyFunc(v) if isinstance(v, FunctionType) else v
               for k, v in vars(cls).items() if isinstance(v, kinds) and not k.startswith("__")}
    return StructType(getattr(cls, "__annotations__", {}), Methods(methods, cls) if methods else {}, cls.__name__)
