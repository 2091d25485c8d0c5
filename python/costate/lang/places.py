"""What can stand on the left of `=`: variables, elements of arrays, components."""

import warnings

from costate import _core
from costate.errors import QuadrantsIndexError, QuadrantsTypeError
from costate.lang import arith, dtypes, linalg, ops
from costate.lang.builder import require
from costate.lang.dtypes import i64
from costate.lang.expr import (Expr, dtype_of, handle_of, index_handle, index_value, is_number,
                               is_scalar)
from costate.lang.matrix import Matrix, swizzle_of, unified

Op = _core.Op


def scalar_for(value, dtype, what):
    """The handle of what is stored as a `dtype`; warns like Taichi where precision is lost."""
    if isinstance(value, Matrix) and len(value.entries) == 1:
        value = value.entries[0]
    if not is_scalar(value):
        from costate.lang.ops import describe
        raise QuadrantsTypeError(f"{describe(value)} cannot be assigned to {what}, which is a "
                                 f"number of type {dtype}")
    given = dtype_of(value)
    if given.is_float and not dtype.is_float and not require("=").dry:
        warnings.warn(f"Assign may lose precision: {dtype} <- {given}", stacklevel=2)
    return handle_of(value, dtype)


class Variable:
    """A local number."""

    def __init__(self, value, dtype=None):
        b = require("a variable")
        self.dtype = dtype or dtype_of(value)
        self.handle = b.trace.declare(self.dtype.core, handle_of(value, self.dtype), b.loc)

    def get(self):
        b = require("a variable")
        return Expr(b.trace.read(self.dtype.core, self.handle, b.loc), self.dtype)

    def set(self, value):
        b = require("a variable")
        b.trace.assign(self.handle, scalar_for(value, self.dtype, "a variable"), b.loc)

    def update(self, op, value):
        old = self.get()
        self.set({"add": arith.add, "min": arith.least, "max": arith.greatest,
                  "and": arith.bit_and, "or": arith.bit_or, "xor": arith.bit_xor}[op](old, value))
        return old


class Group:
    """A vector or matrix of places."""

    def __init__(self, places, shape):
        self.places = places
        self.shape = tuple(shape)

    dtype = property(lambda self: self.places[0].dtype)

    def get(self):
        return Matrix.of([p.get() for p in self.places], self.shape)

    def entries_of(self, value):
        if is_scalar(value):
            return [value] * len(self.places)
        value = value if isinstance(value, Matrix) else Matrix(value)
        if value.shape != self.shape and len(value.entries) != len(self.places):
            raise QuadrantsTypeError(f"a vector or matrix of shape {value.shape} cannot be "
                                     f"assigned to one of shape {self.shape}")
        return value.entries

    def set(self, value):
        for place, entry in zip(self.places, self.entries_of(value), strict=True):
            place.set(entry)

    def update(self, op, value):
        old = [p.update(op, e) for p, e in zip(self.places, self.entries_of(value), strict=True)]
        return Matrix.of(old, self.shape)

    def part(self, index):
        pattern = Matrix.of(range(len(self.places)), self.shape)
        if isinstance(index, Matrix):
            index = tuple(index.entries)
        if pattern.is_part(index):
            if isinstance(index, Expr) or isinstance(index, tuple) and any(
                    isinstance(i, Expr) for i in index):
                row = index if isinstance(index, Expr) else index[0]
                return Group([self.part((row, j)) for j in range(self.shape[1])], self.shape[1:])
            positions, shape = pattern.part(index)
            return Group([self.places[p] for p in positions], shape)
        position = pattern.offset(index)
        if position is not None:
            return self.places[position]
        index = index if isinstance(index, tuple) else (index,)
        return Chosen(self.places, index, self.shape)

    def attribute(self, name):
        chosen = swizzle_of(name) if len(self.shape) == 1 else None
        if chosen is None:
            return None
        if len(chosen) == 1:
            return self.part(chosen[0])
        return Group([self.part(k) for k in chosen], (len(chosen),))


class Chosen:
    """A component of a local vector at an index of run time; outside there is 0."""

    def __init__(self, places, index, shape):
        self.places, self.is_at = places, linalg.is_at(index, shape)
        self.dtype = places[0].dtype

    def get(self):
        return linalg.pick(self.is_at, [place.get() for place in self.places])

    def set(self, value):
        value = Expr(scalar_for(value, self.dtype, "a component"), self.dtype)
        for chosen, place in zip(self.is_at, self.places):
            place.set(arith.select(chosen, value, place.get()))

    update = Variable.update


class LocalElement:
    """An element of a large local vector or matrix."""

    def __init__(self, array, position):
        self.array, self.position = array, position
        self.dtype = array.dtype

    def get(self):
        b = require("an element")
        return Expr(b.trace.load_local(self.dtype.core, self.array.handle,
                                       index_handle(self.position), b.loc), self.dtype)

    def set(self, value):
        b = require("an element")
        b.trace.store_local(self.array.handle, index_handle(self.position),
                            scalar_for(value, self.dtype, "an element"), b.loc)

    update = Variable.update


class LocalArray:
    """A local vector or matrix of many components, in memory."""

    def __init__(self, value, dtype):
        b = require("a variable")
        self.dtype, self.shape = dtype, value.shape
        self.handle = b.trace.declare_local(dtype.core, len(value.entries), b.loc)
        self.set(value, fresh=True)

    def at(self, position):
        return LocalElement(self, position)

    def get(self):
        return Matrix.of([self.at(k).get() for k in range(self.count)], self.shape)

    count = property(lambda self: self.shape[0] * (self.shape[1] if len(self.shape) == 2 else 1))

    def set(self, value, fresh=False):
        entries = [value] * self.count if is_scalar(value) else value.entries
        for k, e in enumerate(entries):
            if not (fresh and is_number(e) and e == 0):
                self.at(k).set(e)

    def update(self, op, value):
        return Group([self.at(k) for k in range(self.count)], self.shape).update(op, value)

    def part(self, index):
        pattern = Matrix.of(range(self.count), self.shape)
        if pattern.is_part(index):
            return Group([self.at(k) for k in range(self.count)], self.shape).part(index)
        position = pattern.offset(index)
        if position is None:
            index = index if isinstance(index, tuple) else (index,)
            position = linalg.position(index, self.shape)
        return self.at(position)

    def attribute(self, name):
        return Group([self.at(k) for k in range(self.count)], self.shape).attribute(name)


def _written(element, b):
    """A kernel is about to change an element."""
    if b.check:
        b.check.written(element)
    if getattr(element.array.host, "_sparse_node", None) is not None:
        from costate.lang.sparse import written
        written(element)


class Element:
    """A number in an array."""

    def __init__(self, array, handles):
        self.array, self.handles = array, handles
        self.dtype = array.dtype

    def get(self):
        b = require("an element")
        if b.check:
            b.check.read(self)
        handle = b.trace.load(self.array.handle, self.dtype.core, self.handles, b.loc)
        if b.stopped and self.dtype.is_float and any(self.array is one for one in b.stopped):
            handle = b.pure(Op.stop_gradient, self.dtype, handle)
        return Expr(handle, self.dtype)

    def set(self, value):
        b = require("an element")
        _written(self, b)
        b.trace.store(self.array.handle, self.dtype.core, self.handles,
                      scalar_for(value, self.dtype, "an element"), b.loc)

    def value_for_update(self, value):
        if not is_scalar(value):
            raise QuadrantsTypeError(f"{ops.describe(value)} cannot be added to a number")
        return handle_of(value, self.dtype)

    def update(self, op, value):
        b = require("an element")
        _written(self, b)
        b.trace.update(getattr(Op, op + "_" if op in ("and", "or") else op), self.array.handle,
                       self.dtype.core, self.handles, self.value_for_update(value), b.loc)

    def exchange(self, value):
        b = require("an element")
        _written(self, b)
        old = b.trace.exchange(self.array.handle, self.dtype.core, self.handles,
                               self.value_for_update(value), b.loc)
        return Expr(old, self.dtype)

    def compare_exchange(self, expected, desired):
        b = require("an element")
        _written(self, b)
        old = b.trace.compare_exchange(self.array.handle, self.dtype.core, self.handles,
                                       self.value_for_update(expected),
                                       self.value_for_update(desired), b.loc)
        return Expr(old, self.dtype)

    def fetch(self, op, value):
        b = require("an element")
        _written(self, b)
        old = b.trace.fetch(getattr(Op, op + "_" if op in ("and", "or") else op),
                            self.array.handle, self.dtype.core, self.handles,
                            self.value_for_update(value), b.loc)
        return Expr(old, self.dtype)


class ElementGroup(Group):
    """A vector or matrix in an array."""

    def __init__(self, array, handles):
        self.array, self.handles = array, handles
        self.shape = array.element_shape
        self._places = None

    @property
    def places(self):
        if self._places is None:
            b = require("an element")
            numbers = [b.constant(i64, k) for k in range(max(self.shape))]
            self._places = [Element(self.array, self.handles + [numbers[k] for k in index])
                            for index in _all_indices(self.shape)]
        return self._places

    dtype = property(lambda self: self.array.dtype)

    def set(self, value):
        with self._activated():
            super().set(value)

    def update(self, op, value):
        with self._activated():
            return super().update(op, value)

    def _activated(self):
        """The element becomes active once, and not with each of its numbers."""
        b = require("an element")
        if getattr(self.array.host, "_sparse_node", None) is not None:
            from costate.lang.sparse import written
            written(self)
        return b.unmarking()

    def part(self, index):
        if isinstance(index, Matrix):
            index = tuple(index.entries)
        pattern = Matrix.of(range(len(list(_all_indices(self.shape)))), self.shape)
        if pattern.is_part(index):
            return super().part(index)
        pattern.offset(index)  # checks numbers
        index = index if isinstance(index, tuple) else (index,)
        return Element(self.array, self.handles + [index_handle(k) for k in index])

    def fetch(self, op, value):
        old = [p.fetch(op, e) for p, e in zip(self.places, self.entries_of(value), strict=True)]
        return Matrix.of(old, self.shape)


def _all_indices(shape):
    import itertools
    return itertools.product(*map(range, shape))


class TracedArray:
    """An array argument of the kernel that is traced."""

    def __init__(self, dtype, ndim, element_shape=(), extents=None, host=None, is_gradient=False):
        b = require("an array")
        self.dtype, self.ndim, self.element_shape = dtype, ndim, tuple(element_shape)
        self.rank = ndim + len(self.element_shape)
        if self.rank > 8:
            raise QuadrantsTypeError(f"an array has at most 8 dimensions with its components, this "
                                     f"one {self.rank}")
        # What the kernel itself calls a gradient is none of its constants.
        form = _core.ElementForm("gradient", 0) if is_gradient else None
        self.handle = b.trace.array(dtype.core, self.rank, form)
        self.extents = extents   # those of fields are known
        self.host = host
        self.companions = {}

    n = property(lambda self: self.element_shape[0] if self.element_shape else 1)
    m = property(lambda self: self.element_shape[1] if len(self.element_shape) == 2 else 1)

    @property
    def offset(self):
        """The indices of the first element, if they are not 0."""
        return getattr(self.host, "offset", None)

    def extent(self, dim):
        if self.extents is not None:
            return self.extents[dim]
        b = require("an extent")
        return index_value(b.trace.extent(self.handle, self.rank, dim, b.loc))

    def extent_handle(self, dim):
        b = require("an extent")
        return b.trace.extent(self.handle, self.rank, dim, b.loc)

    @property
    def shape(self):
        if self.extents is not None:
            return tuple(self.extents)
        return tuple(self.extent(dim) for dim in range(self.ndim))

    def at(self, index):
        """The element at a tuple of indices."""
        index = flat_indices(index)
        if self.offset:
            index = [arith.sub(k, self.offset[d]) if d < self.ndim else k for d, k in enumerate(index)]
        handles = [index_handle(k) for k in index]
        if len(handles) != self.ndim:
            if self.ndim == 0 and is_number(index) and index == 0:
                handles = []
            elif len(handles) == self.rank and self.element_shape:
                return Element(self, handles)
            elif len(handles) == self.ndim - 1 and getattr(getattr(self.host, "_node", None), "kind", "") == "dynamic":
                from costate.lang.sparse import List
                return List(self.host._node, list(index))
            else:
                raise QuadrantsIndexError(f"an array with {self.ndim} dimensions is accessed with "
                                          f"{len(handles)} indices")
        return ElementGroup(self, handles) if self.element_shape else Element(self, handles)


def flat_indices(index):
    if index is None:
        return []
    if isinstance(index, Matrix):
        return index.entries
    if isinstance(index, (tuple, list)):
        return [k for one in index for k in flat_indices(one)]
    if isinstance(index, slice):
        raise QuadrantsIndexError("slices are those of vectors and matrices; loop over the elements "
                                  "of an array")
    return [index]


def variable_for(value, shared=None):
    """A new local variable with this value."""
    make = shared or Variable
    if isinstance(value, Matrix):
        value = value.like(unified(value.entries))
        dtype = dtypes.defaults.fp if any(isinstance(e, float) for e in value.entries) else \
            value.dtype
        if len(value.entries) > 32 and not shared:
            return LocalArray(value, dtype)
        return Group([make(e, dtype) for e in value.entries], value.shape)
    return make(value)
