"""What can stand on the left of `=`: variables and components; elements are in `arrays.py`."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsTypeError
from costate.lang.base import dtypes, scalars
from costate.lang.values import arith, linalg
from costate.lang.values.builder import require
from costate.lang.values.describe import describe
from costate.lang.values.expr import Expr, condition_handle, dtype_of, handle_of, index_handle, is_number, is_scalar
from costate.lang.values.matrix import Matrix, swizzle_of

if TYPE_CHECKING:
    from costate import _core
    from costate.lang.base.dtypes import DataType


def _loses(dtype: DataType, value: Any) -> bool:
    given = dtype_of(value)
    if is_number(value) or dtype.is_bool:
        return given.is_float and not dtype.is_float
    return dtypes.promote(dtype, given) is not dtype


@dataclass(frozen=True)
class First:
    """The statement that gave a variable its first value, and so its type."""

    name: str
    loc: _core.Loc
    is_vector: bool

    def text(self, dtype: DataType, given: DataType) -> str:
        """How it gets the type that holds both."""
        wide, loc = dtypes.promote(dtype, given), self.loc
        file = "" if require("a variable").loc.file == loc.file else f" of {loc.file}"
        line = linecache.getline(loc.file, loc.line).strip()
        return f"; `{self.name}` is {dtype} by its first value (line {loc.line}{file}: `{line}`): there " + (
            f"`ti.Vector([...], ti.{wide})`" if self.is_vector else f"`{self.name}: ti.{wide} = ...`") + f" makes it {wide}"


def warn_of_loss(what: str, dtype: DataType, value: Any, first: First | None = None) -> None:
    """Warns, once for each place, where a value is stored as a type that does not hold it, as Quadrants does."""
    b = require("an assignment")
    if _loses(dtype, value):
        given = dtype_of(value)
        b.warn(f"{what} may lose precision: {dtype} <- {given}; `cast` says that this is meant" + (
            first.text(dtype, given) if first else ""))


def note_first(place: Any, name: str) -> None:
    """The current statement gives a new variable its first value."""
    is_vector = not isinstance(place, Variable)
    for one in place.places if isinstance(place, Group) else [place]:
        one.first = First(name, require("a variable").loc, is_vector)


def scalar_for(value: Any, dtype: DataType, what: str, first: First | None = None) -> Any:
    """The handle of what is stored as a `dtype`."""
    if isinstance(value, Matrix) and len(value.entries) == 1:
        value = value.entries[0]
    if not is_scalar(value):
        raise QuadrantsTypeError(f"{describe(value)} cannot be assigned to {what}, which is a "
                                 f"number of type {dtype}")
    check_fits(value, dtype, what)
    warn_of_loss("Assign", dtype, value, first)
    return handle_of(value, dtype)


def check_fits(value: Any, dtype: DataType, what: str) -> None:
    """Refuses integer constants that have more bits than a `dtype`."""
    number = value.number if isinstance(value, Expr) else value
    if not scalars.fits(number, dtype):
        raise QuadrantsTypeError(f"{number} is out of the range of {what}, which is of type {dtype}; use `ti.cast(x, "
                                 f"ti.{dtype})` for its lowest bits")


class Place:
    """What can stand on the left of `=`."""

    is_local: Any = False      # whether it is a local variable, or has parts that are
    is_element: Any = False    # of an array
    first: First | None = None     # of a variable with a name
    dtype: Any

    def get(self) -> Any:
        """What stands there."""
        raise NotImplementedError

    def set(self, value: Any) -> None:
        """Assigns."""
        raise NotImplementedError

    def update(self, op: str, value: Any) -> Any:
        """Combines; what stood there before, where that is known."""
        raise NotImplementedError

    def fetch(self, op: str, value: Any) -> Any:
        """The same; what stood there before."""
        raise NotImplementedError


def is_shared(x: Place) -> bool:
    """Whether other work items may change it at the same time."""
    return isinstance(x, Place) and (x.is_element or isinstance(x, ChosenElement))


class Variable(Place):
    """A local number, or the element that has taken its place where work items share it."""

    def __init__(self, value: Any, dtype: DataType | None = None, owner: tuple[Any, ...] | None = None) -> None:
        b = require("a variable")
        self.dtype, self.owner, self.in_range = dtype or dtype_of(value), owner, b.in_range
        self.element: Any = None
        self.handle = b.trace.declare(self.dtype.core, handle_of(value, self.dtype), b.loc)

    is_local = property(lambda self: self.element is None)
    is_element = property(lambda self: self.element is not None)

    def get(self) -> Any:
        if self.element is not None:
            return self.element.get()
        b = require("a variable")
        return Expr(b.trace.read(self.dtype.core, self.handle, b.loc), self.dtype)

    def set(self, value: Any) -> None:
        if self.element is not None:
            self.element.set(value)
            return
        b = require("a variable")
        b.changes(self)
        b.trace.assign(self.handle, scalar_for(value, self.dtype, "a variable", self.first), b.loc)

    def update(self, op: str, value: Any) -> Any:
        return _updated(self, op, value) if self.element is None else self.element.update(op, value)

    def fetch(self, op: Any, value: Any) -> Any:
        return _updated(self, op, value) if self.element is None else self.element.fetch(op, value)

    def exchange(self, value: Any) -> Any:
        return self._shared("atomic_exchange").exchange(value)

    def compare_exchange(self, expected: Any, desired: Any) -> Any:
        return self._shared("atomic_cas").compare_exchange(expected, desired)

    def _shared(self, what: Any) -> Any:
        if self.element is None:
            raise QuadrantsTypeError(f"`{what}` changes an element of an array, or a variable that work items share")
        return self.element


def _updated(place: Variable, op: str, value: int) -> Any:
    """The value before."""
    old = place.get()
    place.set({"add": arith.add, "sub": arith.sub, "min": arith.least, "max": arith.greatest,
               "and": arith.bit_and, "or": arith.bit_or, "xor": arith.bit_xor}[op](old, value))
    return old


class Group(Place):
    """A vector or matrix of places."""

    def __init__(self, places: list[Any], shape: tuple[int, ...]) -> None:
        self.places = places
        self.shape = tuple(shape)

    dtype = property(lambda self: self.places[0].dtype)
    is_local = property(lambda self: any(place.is_local for place in self.places))

    def get(self) -> Matrix:
        return Matrix.of([p.get() for p in self.places], self.shape)

    def entries_of(self, value: Any) -> Any:
        if is_scalar(value):
            return [value] * len(self.places)
        value = value if isinstance(value, Matrix) else Matrix(value)
        if value.shape != self.shape and len(value.entries) != len(self.places):
            raise QuadrantsTypeError(f"a vector or matrix of shape {value.shape} cannot be "
                                     f"assigned to one of shape {self.shape}")
        return value.entries

    def set(self, value: Any) -> None:
        for place, entry in zip(self.places, self.entries_of(value), strict=True):
            place.set(entry)

    def update(self, op: str, value: Any) -> Matrix:
        old = [p.update(op, e) for p, e in zip(self.places, self.entries_of(value), strict=True)]
        return Matrix.of(old, self.shape)

    def part(self, index: Any) -> Any:
        pattern = Matrix.of(range(len(self.places)), self.shape)
        if isinstance(index, Matrix):
            index = tuple(index.entries)
        if pattern.is_part(index):
            return _part(self, pattern, index)
        position = pattern.offset(index)
        if position is not None:
            return self.places[position]
        index = index if isinstance(index, tuple) else (index,)
        chosen = ChosenElement if self.places[0].is_element else Chosen
        return chosen(self.places, index, self.shape)

    def attribute(self, name: str) -> Any:
        chosen = swizzle_of(name) if len(self.shape) == 1 else None
        if chosen is None:
            return None
        if len(chosen) == 1:
            return self.part(chosen[0])
        return Group([self.part(k) for k in chosen], (len(chosen),))


def _part(place: Any, pattern: Matrix, index: Any) -> Group:
    """The places that an index with slices means."""
    indices, shape = pattern.part(index)
    return Group([place.part(i) for i in indices], shape)


class Chosen(Place):
    """A component of a local vector at an index of run time; outside there is 0."""

    is_local = True

    def __init__(self, places: list[Any], index: tuple[Any, ...], shape: tuple[int, ...]) -> None:
        self.places, self.is_at = places, linalg.is_at(index, shape)
        self.dtype = places[0].dtype

    def get(self) -> Any:
        return linalg.pick(self.is_at, [place.get() for place in self.places])

    def set(self, value: Expr) -> None:
        value = Expr(scalar_for(value, self.dtype, "a component"), self.dtype)
        for chosen, place in zip(self.is_at, self.places):
            if chosen is False:
                continue
            place.set(arith.select(chosen, value, place.get()))

    update = _updated


class ChosenElement(Chosen):
    """A component, at an index of run time, of a vector that work items share: the others are left to them."""

    def set(self, value: Expr) -> None:
        self._at_it(lambda place: place.set(value))

    def update(self, op: str, value: Any) -> None:
        self._at_it(lambda place: place.update(op, value))

    def fetch(self, op: Any, value: Any) -> Any:
        old = Variable(0, self.dtype)
        self._at_it(lambda place: old.set(place.fetch(op, value)))
        return old.get()

    def _at_it(self, change: Callable[..., Any]) -> None:
        b = require("a component")
        for chosen, place in zip(self.is_at, self.places):
            if chosen is False:
                continue
            if chosen is True:
                change(place)
                continue
            b.trace.begin_if(condition_handle(chosen), b.loc)
            with b.nested():
                change(place)
            b.trace.end()


class LocalElement(Place):
    """An element of a large local vector or matrix."""

    is_local = True

    def __init__(self, array: LocalArray, position: Any) -> None:
        self.array, self.position = array, position
        self.dtype = array.dtype

    def get(self) -> Any:
        b = require("an element")
        return Expr(b.trace.load_local(self.dtype.core, self.array.handle,
                                       index_handle(self.position), b.loc), self.dtype)

    def set(self, value: Any) -> None:
        b = require("an element")
        b.changes(self.array)
        b.trace.store_local(self.array.handle, index_handle(self.position),
                            scalar_for(value, self.dtype, "an element", self.array.first), b.loc)

    update = _updated


class LocalArray(Place):
    """A local vector or matrix of many components, in memory."""

    is_local = property(lambda self: self.elements is None)
    is_element = property(lambda self: self.elements is not None)

    def __init__(self, value: Matrix, dtype: DataType, owner: tuple[Any, ...] | None = None) -> None:
        b = require("a variable")
        self.dtype, self.shape, self.owner, self.in_range = dtype, value.shape, owner, b.in_range
        self.elements: Any = None    # that have taken its place where work items share it
        self.handle = b.trace.declare_local(dtype.core, len(value.entries), b.loc)
        self.set(value, fresh=True)

    def at(self, position: Any) -> LocalElement:
        return LocalElement(self, position)

    def get(self) -> Any:
        if self.elements is not None:
            return self.elements.get()
        return Matrix.of([self.at(k).get() for k in range(self.count)], self.shape)

    count = property(lambda self: self.shape[0] * (self.shape[1] if len(self.shape) == 2 else 1))

    def set(self, value: Matrix, fresh: bool = False) -> None:
        if self.elements is not None:
            self.elements.set(value)
            return
        entries = [value] * self.count if is_scalar(value) else value.entries
        for k, e in enumerate(entries):
            if not (fresh and is_number(e) and e == 0):
                self.at(k).set(e)

    def update(self, op: Any, value: Any) -> Any:
        if self.elements is not None:
            return self.elements.update(op, value)
        return Group([self.at(k) for k in range(self.count)], self.shape).update(op, value)

    def part(self, index: tuple[Any, ...]) -> Any:
        if self.elements is not None:
            return self.elements.part(index)
        pattern = Matrix.of(range(self.count), self.shape)
        if pattern.is_part(index):
            return _part(self, pattern, index)
        position = pattern.offset(index)
        if position is None:
            index = index if isinstance(index, tuple) else (index,)
            position = linalg.position(index, self.shape)
        return self.at(position)

    def attribute(self, name: str) -> Any:
        if self.elements is not None:
            return self.elements.attribute(name)
        return Group([self.at(k) for k in range(self.count)], self.shape).attribute(name)
