"""`root.dense(...).place(x)`: the shapes of fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeError
from costate.lang.base import dtypes, runtime, threads
from costate.lang.base.remembered import Weakly
from costate.lang.data import activity, clear
from costate.lang.data.blocks import Blocks, blocks_of
from costate.lang.data.extents import extents as extents_of
from costate.lang.data.field import ScalarField

if TYPE_CHECKING:
    from costate.lang.data.field import Field


class Axis:
    """A dimension of fields."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> Any:
        return f"Axis({self.value})"


def axes(*numbers: Any) -> Any:
    """The axes with these numbers; also called `indices`."""
    return [Axis(n) for n in numbers]


def _count(capacity: Any) -> int | None:
    if capacity is None:
        return None
    if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
        raise QuadrantsRuntimeError(f"the `capacity` of a node is how many of its cells may be active, not {capacity!r}")
    return int(capacity)


def _extents(dimensions: Any, count: int) -> Any:
    """`count` extents; one is that of all axes."""
    found = extents_of(dimensions, 1)
    return found * count if len(found) == 1 else found


class SNode:
    """A node of the tree that places fields; it lives as long as one of them. Sparse ones keep what is active (`sparse.py`)
    over dense memory."""

    some_are_sparse = False   # of all nodes that have been made

    def __init__(self, tree: Any, extents: Any = None, kind: str = "dense",
                 parent: Any = None, capacity: int | None = None) -> None:
        self.tree = tree
        self.extents = extents or {}   # axis -> extent
        self.kind = kind
        if kind != "dense":
            SNode.some_are_sparse = True
        self.parent_node = parent
        self.own_axis: Any = None           # of the lists of a `dynamic` node
        self._children = Weakly()
        self._fields = Weakly()
        self.capacity = capacity            # how many blocks may be in use; None: see blocks.py
        self._state: ScalarField | None = None
        self._blocks: tuple[Blocks | None] | None = None   # None: that is not decided

    def _child(self, axes_: Any, dimensions: Any, kind: str = "dense", capacity: Any = None) -> SNode:
        axes_ = [axes_] if isinstance(axes_, Axis) else list(axes_)
        dimensions = _extents(dimensions, len(axes_))
        if len(axes_) != len(dimensions):
            raise QuadrantsRuntimeError(f"{len(axes_)} axes and {len(dimensions)} dimensions")
        extents = dict(self.extents)
        for axis, extent in zip(axes_, dimensions):
            extents[axis.value] = extents.get(axis.value, 1) * extent
        child = SNode(self.tree, extents, kind, self, _count(capacity))
        self._children.append(child)
        return child

    def dense(self, axes_: Any, dimensions: Any) -> SNode | None:
        """A node with these extents of these axes below this one; extents of an axis multiply."""
        return self._child(axes_, dimensions)

    def pointer(self, axes_: Any, dimensions: Any, capacity: int | None = None) -> SNode | None:
        """As `dense`, of cells that are active once something in them has been written: of a large node `capacity` at most."""
        return self._child(axes_, dimensions, "pointer", capacity)

    def bitmasked(self, axes_: Any, dimensions: Any, capacity: int | None = None) -> SNode | None:
        """As `pointer`."""
        return self._child(axes_, dimensions, "bitmasked", capacity)

    hash = pointer

    def dynamic(self, axis: Any, dimension: Any, chunk_size: Any = None, capacity: int | None = None) -> SNode:
        """Lists of at most `dimension` elements along an axis: `append`, `length`. `capacity`: how many are not empty."""
        above = self.sparse_above()
        if above is not None and above.kind == "dynamic":
            raise QuadrantsRuntimeError("a `dynamic` node below another one is not supported; use an axis of "
                                        "`dense` and lengths of your own")
        child = self._child(axis, dimension, "dynamic", capacity)
        child.own_axis = (axis if isinstance(axis, Axis) else axis[0]).value
        if child.own_axis in self.extents:
            raise QuadrantsRuntimeError("the axis of a `dynamic` node is one that the nodes above do not have")
        return child

    def quant_array(self, *_: Any, **__: Any) -> None:
        raise QuadrantsRuntimeError("quantised types (`quant_array`) are not supported; use fields of i8, i16 or f16")

    bit_struct = bit_array = quant_array

    is_sparse = property(lambda self: self.kind != "dense")
    children = property(lambda self: list(self._children))
    fields = property(lambda self: list(self._fields))

    def state(self) -> ScalarField:
        """What is active: 1 for each cell that is, or the lengths of lists; of a node with blocks, for each row."""
        blocks = self.blocks()
        if blocks is not None:
            state: ScalarField = blocks.state
            return state
        with threads.lock:
            if self._state is None:
                self._state = self._new_state()
            return self._state

    def _new_state(self) -> ScalarField:
        shape = tuple(n for axis, n in sorted(self.extents.items()) if axis != self.own_axis)
        made = ScalarField(dtypes.i32, (), shape, name=f"activity of a `{self.kind}` node")
        made._tree = self.tree
        return made

    def blocks(self) -> Blocks | None:
        """Where the cells of this sparse node lie; None if its memory is dense."""
        if self._blocks is None:
            with threads.lock:
                self._blocks = self._blocks or (blocks_of(self),)
        return self._blocks[0]

    def blocks_below(self) -> Blocks | None:
        """The blocks in which fields lie that are placed in this node; None if their memory is dense."""
        above = self.sparse_above()
        return None if above is None else above.blocks()

    def block_fields(self) -> list[Field]:
        """The fields that lie in the blocks of this sparse node."""
        return [one for below in self.descendants() if below.sparse_above() is self for one in below.fields]

    def lineage(self) -> list[SNode]:
        """The nodes from the root to this one."""
        return [*(self.parent_node.lineage() if self.parent_node else ()), self]

    def sparse_above(self) -> SNode | None:
        """This node if it is sparse, or the nearest one above that is, or None."""
        return next((one for one in reversed(self.lineage()) if one.is_sparse), None)

    def descendants(self) -> Iterator[SNode]:
        """This node and those below."""
        yield self
        for child in self.children:
            yield from child.descendants()

    def deactivate_all(self) -> None:
        """Makes all cells inactive and 0."""
        if activity.deactivate_all(self):
            _forget_launches()

    def place(self, *fields: Any, offset: Any = None) -> SNode:
        """Gives the fields the shape of this node. A gradient `x.grad` may be placed too."""
        self.tree.check_open()
        for one in fields:
            if isinstance(one, (list, tuple)):
                self.place(*one, offset=offset)
            elif hasattr(one, "which"):
                if one._strong._core_array is not None:
                    raise QuadrantsRuntimeError(f"{one.describe()} is placed after the first use "
                                                "of the field")
                setattr(one._strong, f"needs_{one.which}", True)
            elif hasattr(one, "place_members"):
                one.place_members(self, offset)
            else:
                self._place(one)
                one.shifted(offset)
        return self

    def _place(self, field: Field) -> None:
        if field._shape is not None:
            raise QuadrantsRuntimeError(f"{field.describe()} has a shape already")
        field._shape = tuple(self.extents[axis] for axis in sorted(self.extents))
        field._tree = self.tree
        field._node = self
        field._sparse_node = self if self.sparse_above() else None
        self._fields.append(field)

    def _all_fields(self) -> Iterator[Any]:
        yield from self.fields
        for child in self.children:
            yield from child._all_fields()

    def _need(self, what: str) -> None:
        for field in self._all_fields():
            if field.dtype.is_float and field._core_array is None:  # those that have been used stay as they are
                setattr(field, what, True)

    def lazy_grad(self) -> None:
        """Gives all fields of floats below a gradient."""
        self._need("needs_grad")

    def lazy_dual(self) -> None:
        """Gives all fields of floats below a tangent."""
        self._need("needs_dual")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.extents[axis] for axis in sorted(self.extents))

    def parent(self, n: Any = 1) -> SNode:
        """The node n levels above."""
        node = self
        for _ in range(n):
            node = node.parent_node or node
        return node

    def loop_range(self) -> Any:
        return self


class Tree:
    def __init__(self, name: str) -> None:
        self.name = name
        self.state = "open"

    def check_open(self) -> None:
        if self.state != "open":
            raise QuadrantsRuntimeError("this FieldsBuilder is finalized; make another one")

    def check_alive(self, field: Any) -> None:
        if self.state == "destroyed":
            raise QuadrantsRuntimeError(f"{field.describe()} was destroyed with its SNodeTree")


_destroyed = 0


def destroyed() -> int:
    """How often trees have been destroyed, or blocks given back: what is known of launches has arrays that may have ended."""
    return _destroyed


def _forget_launches() -> None:
    global _destroyed
    with threads.lock:
        _destroyed += 1


class SNodeTree:
    """What FieldsBuilder.finalize returns."""

    def __init__(self, tree: Any, node: Any) -> None:
        self.tree, self.node = tree, node

    def destroy(self) -> None:
        """Frees the fields of the tree."""
        if self.tree.state == "destroyed":
            raise QuadrantsRuntimeError("the SNode tree has been destroyed")
        _forget_launches()
        self.tree.state = "destroyed"
        for field in self.node._all_fields():
            field._release()
            field._companions.clear()
        for node in self.node.descendants():
            if node._blocks and node._blocks[0]:
                node._blocks[0].give_back()


class FieldsBuilder:
    """A tree of its own for fields: `dense`, `place`, `lazy_grad`, then `finalize()`."""

    def __init__(self) -> None:
        self.tree = Tree("FieldsBuilder")
        self.node = SNode(self.tree)

    def __getattr__(self, name: str) -> Any:
        if name in ("dense", "pointer", "bitmasked", "hash", "dynamic", "place", "lazy_grad", "lazy_dual",
                    "deactivate_all", "quant_array"):
            self.tree.check_open()
            return getattr(self.node, name)
        raise AttributeError(name)

    def finalize(self, raise_warning: bool = True) -> SNodeTree:
        """Makes the fields."""
        self.tree.check_open()
        self.tree.state = "finalized"
        for field in self.node._all_fields():
            field.core()
        return SNodeTree(self.tree, self.node)

    finalized = property(lambda self: self.tree.state != "open")
    empty = property(lambda self: not self.node.children and not self.node.fields)


class _RootNode(SNode):
    """Above what is placed in it, and all fields that have been made with a shape."""

    def _all_fields(self) -> Iterator[Any]:
        yield from super()._all_fields()
        for field in list(clear.fields):
            if field._tree is None and field._shape is not None and field._generation == runtime.generation:
                yield field


class _Root:
    """The root of the tree that fields are placed in unless a FieldsBuilder is used."""

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._node = _RootNode(Tree("root"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


root = _Root()


def deactivate_all_snodes() -> None:
    """Makes all cells of all sparse nodes inactive and 0."""
    for node in root.children:
        if any(one.is_sparse for one in node.descendants()):
            node.deactivate_all()


@runtime.on_reset.add
def _renew() -> None:
    root._renew()
