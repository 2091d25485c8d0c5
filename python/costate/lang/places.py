"""What can stand on the left of `=`: variables, elements of arrays, components."""

from functools import partial

from costate import _core
from costate.errors import QuadrantsIndexError, QuadrantsTypeError
from costate.lang import arith, dtypes, linalg, ops, scalars
from costate.lang.builder import require
from costate.lang.dtypes import i64
from costate.lang.expr import (Expr, condition_handle, dtype_of, handle_of, index_handle, index_value, is_number,
                               is_scalar, known_index)
from costate.lang.matrix import Matrix, swizzle_of, unified

Op = _core.Op


def _loses(dtype, value):
    given = dtype_of(value)
    if is_number(value) or dtype.is_bool:
        return given.is_float and not dtype.is_float
    return dtypes.promote(dtype, given) is not dtype


def warn_of_loss(what, dtype, value):
    """Warns, once for each place, where a value is stored as a type that does not hold it, as Quadrants does."""
    b = require("an assignment")
    if _loses(dtype, value):
        b.warn(f"{what} may lose precision: {dtype} <- {dtype_of(value)}; `cast` says that this is meant")


def scalar_for(value, dtype, what):
    """The handle of what is stored as a `dtype`."""
    if isinstance(value, Matrix) and len(value.entries) == 1:
        value = value.entries[0]
    if not is_scalar(value):
        from costate.lang.ops import describe
        raise QuadrantsTypeError(f"{describe(value)} cannot be assigned to {what}, which is a "
                                 f"number of type {dtype}")
    check_fits(value, dtype, what)
    warn_of_loss("Assign", dtype, value)
    return handle_of(value, dtype)


def check_fits(value, dtype, what):
    """Refuses integer constants that have more bits than a `dtype`."""
    number = value.number if isinstance(value, Expr) else value
    if not scalars.fits(number, dtype):
        raise QuadrantsTypeError(f"{number} is out of the range of {what}, which is of type {dtype}; use `ti.cast(x, "
                                 f"ti.{dtype})` for its lowest bits")


class Variable:
    """A local number."""

    def __init__(self, value, dtype=None, owner=None):
        b = require("a variable")
        self.dtype, self.owner, self.in_range = dtype or dtype_of(value), owner, b.in_range
        self.handle = b.trace.declare(self.dtype.core, handle_of(value, self.dtype), b.loc)

    def get(self):
        b = require("a variable")
        return Expr(b.trace.read(self.dtype.core, self.handle, b.loc), self.dtype)

    def set(self, value):
        b = require("a variable")
        b.changes(self)
        b.trace.assign(self.handle, scalar_for(value, self.dtype, "a variable"), b.loc)

    def update(self, op, value):
        old = self.get()
        self.set({"add": arith.add, "sub": arith.sub, "min": arith.least, "max": arith.greatest,
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
            return _part(self, pattern, index)
        position = pattern.offset(index)
        if position is not None:
            return self.places[position]
        index = index if isinstance(index, tuple) else (index,)
        chosen = ChosenElement if isinstance(self.places[0], Element) else Chosen
        return chosen(self.places, index, self.shape)

    def attribute(self, name):
        chosen = swizzle_of(name) if len(self.shape) == 1 else None
        if chosen is None:
            return None
        if len(chosen) == 1:
            return self.part(chosen[0])
        return Group([self.part(k) for k in chosen], (len(chosen),))


def _part(place, pattern, index):
    """The places that an index with slices means."""
    indices, shape = pattern.part(index)
    return Group([place.part(i) for i in indices], shape)


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
            if chosen is False:
                continue
            place.set(arith.select(chosen, value, place.get()))

    update = Variable.update


class ChosenElement(Chosen):
    """A component, at an index of run time, of a vector that work items share: the others are left to them."""

    def set(self, value):
        self._at_it(lambda place: place.set(value))

    def update(self, op, value):
        self._at_it(lambda place: place.update(op, value))

    def fetch(self, op, value):
        old = Variable(0, self.dtype)
        self._at_it(lambda place: old.set(place.fetch(op, value)))
        return old.get()

    def _at_it(self, change):
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
        b.changes(self.array)
        b.trace.store_local(self.array.handle, index_handle(self.position),
                            scalar_for(value, self.dtype, "an element"), b.loc)

    update = Variable.update


class LocalArray:
    """A local vector or matrix of many components, in memory."""

    def __init__(self, value, dtype, owner=None):
        b = require("a variable")
        self.dtype, self.shape, self.owner, self.in_range = dtype, value.shape, owner, b.in_range
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
            return _part(self, pattern, index)
        position = pattern.offset(index)
        if position is None:
            index = index if isinstance(index, tuple) else (index,)
            position = linalg.position(index, self.shape)
        return self.at(position)

    def attribute(self, name):
        return Group([self.at(k) for k in range(self.count)], self.shape).attribute(name)


def is_local(place):
    """Whether this is a local variable, or has parts that are."""
    if isinstance(place, Group):
        return not isinstance(place, ElementGroup) and any(is_local(p) for p in place.places)
    return isinstance(place, (Variable, LocalArray, LocalElement, Chosen)) or getattr(place, "is_local", False) is True


def _written(element, b):
    """A kernel is about to change an element."""
    if not b.dry:
        b.written.add(element.array.argument)
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

    @staticmethod
    def check_operand(value):
        if not is_scalar(value):
            raise QuadrantsTypeError(f"{ops.describe(value)} cannot be added to a number")

    def value_for_update(self, value):
        self.check_operand(value)
        check_fits(value, self.dtype, "an element")
        warn_of_loss("Atomic update", self.dtype, value)
        return handle_of(value, self.dtype)

    def update(self, op, value):
        b = require("an element")
        _written(self, b)
        op, value = self._operation(op, value)
        b.trace.update(op, self.array.handle, self.dtype.core, self.handles, value, b.loc)

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
        op, value = self._operation(op, value)
        old = b.trace.fetch(op, self.array.handle, self.dtype.core, self.handles, value, b.loc)
        return Expr(old, self.dtype)

    def _operation(self, op, value):
        """The atomic operation of the library that `op` is, and its right side as an element."""
        dtype = self.dtype
        self.check_operand(value)
        if dtype.is_bool and op in ("add", "sub", "min", "max"):
            raise QuadrantsTypeError(f"an element of type {dtype} has no atomic `{op}`; use `&=`, `|=` and `^=`, or "
                                     "another type")
        if op in ("min", "max"):
            if not is_number(value):
                warn_of_loss("Atomic update", dtype, value)
            return getattr(Op, op), handle_of(arith.limited(op, value, dtype), dtype)
        check_fits(value, dtype, "an element")
        kept = arith.whole(value, dtype) if op in ("add", "sub") else value
        if not (is_number(value) and kept == value):
            warn_of_loss("Atomic update", dtype, value)
        handle = handle_of(kept, dtype)
        if op == "sub":  # of a `dtype`: the negative of an unsigned number depends on its width
            return Op.add, require("-=").pure(Op.neg, dtype, handle)
        return getattr(Op, op + "_" if op in ("and", "or") else op), handle


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
        index = linalg.known(index if isinstance(index, tuple) else (index,), self.shape)
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
        self.argument = len(b.arguments)
        self.extents = extents   # those of fields are known
        self.host = host
        self.companions = {}
        self.clamps = False      # indices outside are those of the border

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
        dimensions = self._dimensions(len(index))
        handles = [self._handle(k, d, *dimensions[d]) for d, k in enumerate(index[:len(dimensions)])]
        if len(index) == self.ndim:
            return self.from_start(handles)
        if len(index) == self.rank and self.element_shape:
            return Element(self, handles)
        if len(index) == self.ndim - 1 and getattr(getattr(self.host, "_node", None), "kind", "") == "dynamic":
            from costate.lang.sparse import List
            return List(self.host._node, handles)
        raise QuadrantsIndexError(f"an array with {self.ndim} dimensions is accessed with {len(index)} indices")

    def _dimensions(self, count):
        """(first index, extent if it is known) of what so many indices are of."""
        result = list(zip(self.offset or (0,) * self.ndim, self.extents or (None,) * self.ndim))
        node = getattr(self.host, "_node", None)
        if count == self.ndim - 1 and node is not None and node.own_axis is not None:
            del result[sorted(node.extents).index(node.own_axis)]
        return result + [(0, extent) for extent in self.element_shape]

    def _handle(self, k, d, low, extent):
        """The handle of an index of dimension d, from 0; numbers below 0 count from the end."""
        b, number = require("an index"), k.number if isinstance(k, Expr) else k
        if self.clamps and d < self.ndim:
            last = b.pure(Op.sub, i64, self.extent_handle(d), b.constant(i64, 1))
            return b.pure(Op.clamp, i64, index_handle(k), b.constant(i64, 0), last)
        if extent is None:
            below = is_number(number) and number < 0
            return b.pure(Op.add, i64, self.extent_handle(d), index_handle(k)) if below else index_handle(k)
        if self.offset and d < self.ndim:
            if is_number(number) and not low <= number < low + extent:
                raise QuadrantsIndexError(f"index {number} is out of range of {self._text()}, whose indices begin at "
                                          f"{self.offset}")
            return index_handle(arith.sub(k, low) if low else k)
        return index_handle(known_index(k, extent, self._text))

    def _text(self):
        shape = (*(self.extents or ("?",) * self.ndim), *self.element_shape)
        return f"{self.host.describe() if self.host else 'an array'} of shape {shape}"

    def from_start(self, handles):
        """The element at handles that count from 0, whatever the offset is."""
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


def variable_for(value, owner=None):
    """A new local variable with this value; `owner` is the (code, name) that it has in the source."""
    b = require("a variable")
    shared = b.depth == 0 and owner in b.shared
    make = partial(shared_variable, b, owner[1]) if shared else partial(Variable, owner=owner)
    if isinstance(value, Matrix):
        value = value.like(unified(value.entries))
        dtype = dtypes.defaults.fp if any(isinstance(e, float) for e in value.entries) else \
            value.dtype
        if len(value.entries) > 32 and not shared:
            return LocalArray(value, dtype, owner)
        return Group([make(e, dtype) for e in value.entries], value.shape)
    return make(value)


class Hidden:
    """An argument that belongs to one kernel; each thread that launches it has an array of its own."""

    def __init__(self, builder, dtype, shape):
        self.dtype, self.shape = dtype, tuple(shape)
        builder.arguments.append(("hidden", self))

    def make(self):
        from costate.lang import runtime
        return _core.Array(runtime.device(), self.dtype.core, list(self.shape), grad=self.dtype.is_float,
                           dual=self.dtype.is_float, scratch=True)


def shared_variable(builder, name, value, dtype=None):
    """A variable of a kernel that its parallel loops change."""
    dtype = dtype or dtype_of(value)
    if builder.dry:
        return Variable(value, dtype)
    array = TracedArray(dtype, 0, (), ())
    builder.labels[len(builder.arguments)] = name
    Hidden(builder, dtype, ())
    place = Element(array, [])
    place.set(value)
    return place
