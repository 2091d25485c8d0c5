"""Sparse nodes: what is active is kept in an array of its own.

A `pointer` or `bitmasked` node has a number for each cell, 1 where it is active, a `dynamic` node the length of each
list; of a large node, those that have a row (`blocks.py`). Whoever is active has active parents; what is inactive holds 0. So
a read needs no check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import QuadrantsTypeError
from costate.lang.base.dtypes import i32, i64, u1, u64
from costate.lang.base.marks import mark
from costate.lang.data import field as fields
from costate.lang.data.snode import SNode
from costate.lang.data.struct import Struct, StructField
from costate.lang.trace import arrays
from costate.lang.trace.arrays import Element, Hidden, TracedArray, flat_indices, traced
from costate.lang.trace.blocks import Directory, Rows, place_in_memory
from costate.lang.values import arith
from costate.lang.values.builder import require
from costate.lang.values.expr import Expr, index_handle, index_value
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.analysis.effects import Effects
    from costate.lang.trace.arrays import ElementGroup
    from costate.lang.data.field import ScalarField
    from costate.lang.values.builder import Builder

Op = _core.Op


def node_of(x: Any) -> Any:
    """The node of a field, of an element of a field of structs, or the node itself."""
    if isinstance(x, TracedArray):
        x = x.host
    if isinstance(x, StructField):
        x = x.first()
    found = x if hasattr(x, "children") else getattr(x, "_node", None)
    if found is None:
        raise QuadrantsTypeError("a node of fields is wanted: what `root.pointer(...)` returns, or `x.parent()` of a "
                                 "field that is placed in one")
    return found


# -- cells of nodes, as handles ---------------------------------------------------


def _cells(handles: list[Any], here: SNode, there: Any) -> list[Any]:
    """The indices of the cell of `there`, a parent, that has the cell `handles` of `here`."""
    b, axes = require("a cell"), sorted(here.extents)
    result = []
    for axis in sorted(there.extents):
        handle = handles[axes.index(axis)]
        factor = here.extents[axis] // there.extents[axis]
        if factor != 1:
            handle = b.pure(Op.div, i64, handle, b.constant(i64, factor))
        result.append(handle)
    return result


class Cell:
    """The state of a cell of a sparse node, in a kernel."""

    def __init__(self, node: Any, handles: Any) -> None:
        self.node = node
        self.b = require("a sparse field")
        self.list_index: Any = None
        if node.kind == "dynamic":
            own = sorted(node.extents).index(node.own_axis)
            handles = list(handles)
            if len(handles) == len(node.extents):
                self.list_index = handles.pop(own)
        self.handles = list(handles)
        self.blocks, self.state = node.blocks(), traced(self.b, node.state())

    def row(self, is_made: bool = False) -> Any:
        """That of its block, 0 if there is none, unless one is to be made; None if memory is dense."""
        if self.blocks is None:
            return None
        directory = Directory(self.b, self.blocks)
        block = directory.block_of(self.handles)
        return directory.claim(block) if is_made else directory.row(block)

    def place(self, row: _core.Value | None = None) -> list[_core.Value]:
        """Where its state stands; its row may be known."""
        if self.blocks is None or not self.blocks.by_row:
            return self.handles
        return [self.row() if row is None else row]

    def read(self, place: list[Any] | None = None) -> Expr:
        """The state; atomically, if the kernel changes some."""
        b, place = self.b, place or self.place()
        if id(self.node) in b.changed_nodes:
            old = b.trace.fetch(Op.max, self.state.handle, i32.core, place, b.constant(i32, 0), b.loc)
            return Expr(old, i32)
        return Expr(b.trace.load(self.state.handle, i32.core, place, b.loc), i32)

    def is_active(self, state: Any) -> Any:
        if self.list_index is None:
            return arith.gt(state, 0)
        return arith.lt(index_value(self.list_index), state)

    def _change(self, op: _core.Op, value: _core.Value, place: list[_core.Value]) -> None:
        b = self.b
        b.trace.update(op, self.state.handle, i32.core, place, value, b.loc)

    def activate(self, row: _core.Value | None = None) -> Any:
        """Gives the row of its block, which may be known."""
        row = self.row(is_made=True) if row is None else row
        one = self.b.constant(i32, 1)
        if self.list_index is not None:
            one = self.b.pure(Op.add, i32, self.b.pure(Op.cast, i32, self.list_index), one)
        self._change(Op.max, one, self.place(row))
        return row

    def clear(self) -> None:
        self._change(Op.min, self.b.constant(i32, 0), self.place())

    def grow(self) -> Expr:
        """One more in the list; the length before."""
        b, place = self.b, self.place(self.row(is_made=True))
        return Expr(b.trace.fetch(Op.add, self.state.handle, i32.core, place, b.constant(i32, 1), b.loc), i32)


def activate_from(node: Any, handles: Any, base: Any, row: _core.Value | None = None) -> Any:
    """Makes the cell of `node`, whose field or node `base` has the cell `handles`, and those above it active. Gives the row
    of the block of the last one, which may be known."""
    sparse = [one for one in node.lineage() if one.is_sparse]
    for one in sparse[:-1]:
        Cell(one, _cells(handles, base, one)).activate()
    return Cell(sparse[-1], _cells(handles, base, sparse[-1])).activate(row) if sparse else None


@arrays.activate.given
def written(element: Element | ElementGroup) -> None:
    """A kernel writes an element of an array: if it is a sparse field, it becomes active."""
    node = getattr(element.array.host, "_sparse_node", None)
    if node is None or require("an element").unmarked:
        return
    activate_from(node, element.handles[:element.array.ndim], node)


@arrays.locate.given
def located(element: Any, is_written: bool) -> list[Any]:
    """Where an element of a field in blocks lies. What is written becomes active; a gradient gets a row, and no more."""
    b, array = require("an element"), element.array
    node = array.host._placed()._sparse_node
    handles, rest = element.handles[:array.ndim], element.handles[array.ndim:]
    _check_inside(b, array, handles)
    activates = is_written and not array.is_companion and not b.unmarked

    def row_of(directory: Directory, block: Any) -> Any:
        if activates:
            return activate_from(node, handles, node)
        if is_written:
            return directory.claim(block) if array.is_companion else directory.written_row(block)
        return directory.row(block)
    known = b.cell
    place = place_in_memory(node, array.blocks, handles, row_of)
    if activates and known is not None and place[0] is known.row:
        activate_from(node, handles, node, known.row)
    return [*place, *rest]


def _check_inside(b: Builder, array: TracedArray, handles: list[_core.Value]) -> None:
    """In debug mode: the indices, which do not tell where in memory an element lies."""
    if not b.debug:
        return
    for k, extent in zip(handles, array.extents or ()):
        inside = b.pure(Op.lt, u1, b.pure(Op.cast, u64, k), b.constant(u64, extent))
        b.trace.check(inside, f"an index is out of range of {array._text()}", [], b.loc)


# -- functions of the language ----------------------------------------------------


def _handles(x: Any, node: SNode, indices: Any, axes: list[int]) -> list[_core.Value]:
    """The cell at indices of these axes: of a node they count from 0, of a field from its offset."""
    indices = flat_indices(indices)
    if len(indices) != len(axes):
        raise QuadrantsTypeError(f"a `{node.kind}` node takes {len(axes)} indices here, not {len(indices)}")
    if hasattr(x, "children"):
        if any(_lows(field, node, axes) for field in node.fields):
            raise QuadrantsTypeError(f"the indices of a `{node.kind}` node count from 0, and those of its fields from their "
                                     "offset: pass the field instead of the node")
    else:
        lows = _lows(x, node, axes)
        indices = [arith.sub(k, lo) for k, lo in zip(indices, lows or [0] * len(axes), strict=True)]
    return [index_handle(k) for k in indices]


def _lows(field: ScalarField, node: SNode, axes: list[int]) -> Any:
    """The first indices of a field along axes, or None if all are 0."""
    lows = _offsets(field, node)
    found = [lows[axis] for axis in axes]
    return found if any(found) else None


def _list_axes(node: SNode) -> list[int]:
    """All axes, but for that of lists."""
    return [axis for axis in sorted(node.extents) if axis != node.own_axis]


def activate(node: Any, indices: Any) -> None:
    """Makes a cell of a node active, as a write to it does."""
    given, node = node, node_of(node)
    activate_from(node, _handles(given, node, indices, sorted(node.extents)), node)


def is_active(node: Any, indices: Any) -> Any:
    """Whether a cell of a node is active."""
    given, node = node, node_of(node)
    handles = _handles(given, node, indices, sorted(node.extents))
    above = node.sparse_above()
    if above is None:
        return True
    cell = Cell(above, _cells(handles, node, above))
    return cell.is_active(cell.read())


@fields.length.given
def length(node: Any, indices: Any = ()) -> Expr:
    """The length of a list of a `dynamic` node."""
    given, node = node, _list_node(node)
    return List(node, _handles(given, node, indices, _list_axes(node))).length()


@fields.append.given
def append(node: Any, indices: Any, value: Any) -> Expr | None:
    """Puts a value at the end of a list of a `dynamic` node; returns the length before."""
    given, node = node, _list_node(node)
    return List(node, _handles(given, node, indices, _list_axes(node))).append(value)


@fields.deactivate.given
def deactivate(node: Any, indices: Any) -> None:
    """Makes a cell of a node, and all below, inactive and 0; of a `dynamic` node a list empty."""
    given, node = node, node_of(node)
    if not node.is_sparse:
        raise QuadrantsTypeError("`deactivate` of a dense node; its cells are always there")
    _deactivate(node, _handles(given, node, indices, _list_axes(node)))


def _deactivate(node: SNode, handles: list[_core.Value]) -> None:
    cell = Cell(node, handles)
    cell.clear()
    _clear_below(node, cell.handles)


def _put(node: SNode, place: list[_core.Value], value: Any) -> None:
    """A value, or a struct of them, becomes the element at a place of the fields of a node."""
    b, fields = require("append"), list(node.fields)
    values = [value.member(name) for name in value.keys] if isinstance(value, Struct) else [value]
    if len(values) != len(fields):
        raise QuadrantsTypeError(f"`append` with {len(values)} values to a node of {len(fields)} fields")
    for field, one in zip(fields, values):
        one = one.get() if hasattr(one, "get") and hasattr(one, "set") else one
        with b.unmarking():
            traced(b, field).from_start(place).set(one)


def _clear_below(node: SNode, handles: list[_core.Value]) -> None:
    known = {a: (h, node.extents[a]) for a, h in zip(_list_axes(node), handles)}
    b = require("deactivate")
    for below in node.descendants():
        if below is not node and below.is_sparse:
            extents = {a: n for a, n in below.extents.items() if below.kind != "dynamic" or a != below.own_axis}
            _each(b, extents, known, lambda at, below=below: Cell(below, at).clear())
        for field in below.fields:
            with b.unmarking():
                blocks = below.blocks_below()
                if blocks is None:
                    _each(b, below.extents, known, lambda at, field=field: traced(b, field).from_start(at).set(0))
                else:
                    _each(b, blocks.keys, known, lambda at, field=field: _clear_row(b, field, at))


def _clear_row(b: Builder, field: Any, handles: list[Any]) -> None:
    """Sets a field to 0 in a block of its own, if that has a row."""
    array = traced(b, field)
    blocks: Any = array.blocks
    directory = Directory(b, blocks)
    row = directory.row(directory.block_of(handles))
    b.trace.begin_if(directory.is_above_0(row), b.loc)
    with b.nested():
        cells = b.constant(i64, blocks.cells(field._sparse_node))
        cell = b.trace.begin_for(b.constant(i64, 0), cells, b.constant(i64, 1), b.loc)
        kind = arrays.ElementGroup if array.element_shape else Element
        with b.nested():
            kind(array, [row, cell], is_placed=True).set(0)
        b.trace.end()
    b.trace.end()


def _each(b: Builder, extents: dict[int, int], known: dict[Any, Any], body: Callable[..., Any],
          handles: tuple[Any, ...] = ()) -> None:
    """`body` of the indices of all cells that lie in a cell: `known` is {axis: (its index, the extent there)}."""
    axes = sorted(extents)
    if len(handles) == len(axes):
        body(list(handles))
        return
    axis = axes[len(handles)]
    zero, one = b.constant(i64, 0), b.constant(i64, 1)
    start, extent = known.get(axis, (zero, 1))
    size = extents[axis] // extent
    if size == 1:
        _each(b, extents, known, body, (*handles, start))
        return
    index = b.trace.begin_for(zero, b.constant(i64, size), one, b.loc)
    with b.nested():
        first = b.pure(Op.mul, i64, start, b.constant(i64, size))
        _each(b, extents, known, body, (*handles, b.pure(Op.add, i64, first, index)))
    b.trace.end()


def rescale_index(a: Any, b: Any, indices: Any) -> Matrix:
    """The index in b of what has an index in a; fields or nodes."""
    given, a, wanted, b = a, _node_or_shape(a), b, _node_or_shape(b)
    first, start = _offsets(given, a), _offsets(wanted, b)
    result, axes = [], sorted(b.extents)
    for axis, value in zip(sorted(a.extents), flat_indices(indices)):
        if axis in axes:
            n, m = a.extents[axis], b.extents[axis]
            value = arith.sub(value, first[axis]) if first[axis] else value
            value = arith.floordiv(value, n // m) if n >= m else arith.mul(value, m // n)
            result.append(arith.add(value, start[axis]) if start[axis] else value)
    return Matrix(result)


def _node_or_shape(x: Any) -> SNode:
    """The node of a field; of one that was made with a shape, one with its extents."""
    x = x.host if isinstance(x, TracedArray) else x.first() if isinstance(x, StructField) else x
    is_placed = hasattr(x, "children") or getattr(x, "_node", None) is not None
    return node_of(x) if is_placed or not hasattr(x, "shape") else SNode(None, dict(enumerate(x.shape)))


def _offsets(x: Any, node: SNode) -> dict[int, int]:
    """{axis: the first index} of a field; of a node they are 0."""
    x = x.host if isinstance(x, TracedArray) else x.first() if isinstance(x, StructField) else x
    axes = sorted(node.extents)
    return dict(zip(axes, getattr(x, "offset", None) or (0,) * len(axes)))


def _list_node(x: Any) -> Any:
    node = node_of(x)
    if node.kind != "dynamic":
        raise QuadrantsTypeError(f"a `{node.kind}` node has no lists; `append` and `length` are of `dynamic` nodes")
    return node


@arrays.list_at.given
class List:
    """`x[i]` where the last index is that of a list; handles that count from 0."""

    def __init__(self, node: Any, handles: Any) -> None:
        self.node, self.handles = node, list(handles)

    def append(self, value: Any) -> Expr:
        node, b = self.node, require("append")
        at = Cell(node, self.handles).grow()
        own = sorted(node.extents).index(node.own_axis)
        b.trace.begin_if(arith.lt(at, node.extents[node.own_axis]).handle, b.loc)
        with b.nested():
            if node.parent_node.sparse_above():
                activate_from(node.parent_node, self.handles, node.parent_node)
            _put(node, [*self.handles[:own], index_handle(at), *self.handles[own:]], value)
        b.trace.end()
        return at

    def length(self) -> Expr:
        return Cell(self.node, self.handles).read()

    def deactivate(self) -> None:
        _deactivate(self.node, self.handles)


def claim(node: SNode, block: Any) -> None:
    """Gives a block of a node a row, and does not make it active."""
    blocks: Any = node.blocks()
    Directory(require("a block"), blocks).claim(index_handle(block))


for _function in (activate, append, deactivate, claim):
    mark(_function, changes_arrays=True)


# -- loops over active cells ------------------------------------------------------


class _Every:
    """All nodes."""

    def __contains__(self, node: Any) -> Any:
        return True


def nodes_changed(effects: Effects) -> Any:
    """The identities of the sparse nodes whose cells may become active or inactive by what a loop does."""
    if effects.anything:
        return _Every()
    return frozenset(id(one) for what in effects.objects.values() for one in _sparse_nodes(what))


def _sparse_nodes(what: Any) -> Iterator[Any]:
    """Those that a change of an array or node changes."""
    if isinstance(what, TracedArray):
        what = what.host
    if isinstance(what, StructField):
        yield from (node for one in what.members.values() for node in _sparse_nodes(one))
    elif isinstance(what, SNode):
        yield from (one for one in (*what.lineage(), *what.descendants()) if one.is_sparse)
    elif getattr(what, "_node", None) is not None:
        yield from _sparse_nodes(what._node)


class Guard:
    """Which work items of a loop over a field or node are at active cells: as they are when the loop starts."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.above = node.sparse_above()
        self.blocks = self.above.blocks()
        self.start: Any = None

    @property
    def by_rows(self) -> bool:
        """Whether the loop is over the rows of blocks: whose order is not that of the blocks, and left to chance."""
        return self.blocks is not None and not require("a loop").deterministic

    def counts(self) -> list[Any]:
        """How many rows and cells in each there are."""
        b = require("a loop")
        return [Rows(b, self.blocks).count(), b.constant(i64, self.blocks.cells(self.node))]

    def cell(self, indices: list[Any]) -> Any:
        """The cell of a work item, by the indices of its row and in that."""
        b = require("a loop")
        row = b.pure(Op.add, i64, indices[0], b.constant(i64, 1))
        return Rows(b, self.blocks).cell(self.node, row, indices[1])

    def begin(self) -> None:
        """In front of a parallel loop: keeps the states, if the kernel changes some."""
        b = require("a loop")
        if id(self.above) not in b.changed_nodes:
            return
        state = self.above.state()
        copy = TracedArray(i32, len(state.shape), (), state.shape)
        Hidden(b, i32, state.shape)
        counts = [b.constant(i64, n) for n in state.shape or (1,)]
        if self.blocks is not None and self.blocks.by_row:   # no others are visited
            counts = [b.pure(Op.add, i64, Rows(b, self.blocks).count(), b.constant(i64, 1))]
        indices = b.trace.begin_range(counts, b.loc)
        at = indices if state.shape else []
        source = traced(b, state)
        b.trace.store(copy.handle, i32.core, at, b.trace.load(source.handle, i32.core, at, b.loc), b.loc)
        b.trace.end()
        self.start = copy

    def condition(self, handles: Any) -> Any:
        """Whether the cell of a work item was active."""
        b = require("a loop")
        cell = Cell(self.above, _cells(handles, self.node, self.above))
        place = cell.place(b.cell.row if b.cell is not None and b.cell.has(self.blocks, self.node, handles) else None)
        if self.start is None:
            return cell.is_active(cell.read(place))
        state = b.trace.load(self.start.handle, i32.core, place, b.loc)
        return cell.is_active(Expr(state, i32))


def guard_of(x: Any) -> Guard | None:
    """The Guard of a loop over a field or node, or None if all of it is active."""
    if hasattr(x, "which") and x._blocks() is not None:
        x = x._placed()
    node = x if hasattr(x, "children") else getattr(x, "_node", None)
    return Guard(node) if node is not None and node.sparse_above() else None
