"""`root.dense(...).place(x)`: the shapes of fields."""

from costate.errors import QuadrantsRuntimeError
from costate.lang.base import dtypes, runtime, threads
from costate.lang.base.remembered import Weakly
from costate.lang.data import activity, clear
from costate.lang.data.extents import extents as extents_of
from costate.lang.data.field import ScalarField


class Axis:
    """A dimension of fields."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Axis({self.value})"


def axes(*numbers):
    """The axes with these numbers; also called `indices`."""
    return [Axis(n) for n in numbers]


def _extents(dimensions, count):
    """`count` extents; one is that of all axes."""
    found = extents_of(dimensions, 1)
    return found * count if len(found) == 1 else found


class SNode:
    """A node of the tree that places fields; it lives as long as one of them. Sparse ones keep what is active (`sparse.py`)
    over dense memory."""

    some_are_sparse = False   # of all nodes that have been made

    def __init__(self, tree, extents=None, kind="dense", parent=None):
        self.tree = tree
        self.extents = extents or {}   # axis -> extent
        self.kind = kind
        if kind != "dense":
            SNode.some_are_sparse = True
        self.parent_node = parent
        self.own_axis = None           # of the lists of a `dynamic` node
        self._children = Weakly()
        self._fields = Weakly()
        self._state = None

    def _child(self, axes_, dimensions, kind="dense"):
        axes_ = [axes_] if isinstance(axes_, Axis) else list(axes_)
        dimensions = _extents(dimensions, len(axes_))
        if len(axes_) != len(dimensions):
            raise QuadrantsRuntimeError(f"{len(axes_)} axes and {len(dimensions)} dimensions")
        extents = dict(self.extents)
        for axis, extent in zip(axes_, dimensions):
            extents[axis.value] = extents.get(axis.value, 1) * extent
        child = SNode(self.tree, extents, kind, self)
        self._children.append(child)
        return child

    def dense(self, axes_, dimensions):
        """A node with these extents of these axes below this one; extents of an axis multiply."""
        return self._child(axes_, dimensions)

    def pointer(self, axes_, dimensions):
        """As `dense`, of cells that are active once something in them has been written."""
        return self._child(axes_, dimensions, "pointer")

    def bitmasked(self, axes_, dimensions):
        """As `pointer`."""
        return self._child(axes_, dimensions, "bitmasked")

    hash = pointer

    def dynamic(self, axis, dimension, chunk_size=None):
        """Lists of at most `dimension` elements along an axis: `append`, `length`."""
        if self.sparse_above() is not None and self.sparse_above().kind == "dynamic":
            raise QuadrantsRuntimeError("a `dynamic` node below another one is not supported; use an axis of "
                                        "`dense` and lengths of your own")
        child = self._child(axis, dimension, "dynamic")
        child.own_axis = (axis if isinstance(axis, Axis) else axis[0]).value
        if child.own_axis in self.extents:
            raise QuadrantsRuntimeError("the axis of a `dynamic` node is one that the nodes above do not have")
        return child

    def quant_array(self, *_, **__):
        raise QuadrantsRuntimeError("quantised types (`quant_array`) are not supported; use fields of i8, i16 or f16")

    bit_struct = bit_array = quant_array

    is_sparse = property(lambda self: self.kind != "dense")
    children = property(lambda self: list(self._children))
    fields = property(lambda self: list(self._fields))

    def state(self):
        """What is active: 1 for each cell that is, or the lengths of lists."""
        with threads.lock:
            if self._state is None:
                self._state = self._new_state()
            return self._state

    def _new_state(self):
        shape = tuple(n for axis, n in sorted(self.extents.items()) if axis != self.own_axis)
        made = ScalarField(dtypes.i32, (), shape, name=f"activity of a `{self.kind}` node")
        made._tree = self.tree
        return made

    def lineage(self):
        """The nodes from the root to this one."""
        return [*(self.parent_node.lineage() if self.parent_node else ()), self]

    def sparse_above(self):
        """This node if it is sparse, or the nearest one above that is, or None."""
        return next((one for one in reversed(self.lineage()) if one.is_sparse), None)

    def descendants(self):
        """This node and those below."""
        yield self
        for child in self.children:
            yield from child.descendants()

    def deactivate_all(self):
        """Makes all cells inactive and 0."""
        activity.deactivate_all(self)

    def place(self, *fields, offset=None):
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

    def _place(self, field):
        if field._shape is not None:
            raise QuadrantsRuntimeError(f"{field.describe()} has a shape already")
        field._shape = tuple(self.extents[axis] for axis in sorted(self.extents))
        field._tree = self.tree
        field._node = self
        field._sparse_node = self if self.sparse_above() else None
        self._fields.append(field)

    def _all_fields(self):
        yield from self.fields
        for child in self.children:
            yield from child._all_fields()

    def _need(self, what):
        for field in self._all_fields():
            if field.dtype.is_float and field._core_array is None:  # those that have been used stay as they are
                setattr(field, what, True)

    def lazy_grad(self):
        """Gives all fields of floats below a gradient."""
        self._need("needs_grad")

    def lazy_dual(self):
        """Gives all fields of floats below a tangent."""
        self._need("needs_dual")

    @property
    def shape(self):
        return tuple(self.extents[axis] for axis in sorted(self.extents))

    def parent(self, n=1):
        """The node n levels above."""
        node = self
        for _ in range(n):
            node = node.parent_node or node
        return node

    def loop_range(self):
        return self


class Tree:
    def __init__(self, name):
        self.name = name
        self.state = "open"

    def check_open(self):
        if self.state != "open":
            raise QuadrantsRuntimeError("this FieldsBuilder is finalized; make another one")

    def check_alive(self, field):
        if self.state == "destroyed":
            raise QuadrantsRuntimeError(f"{field.describe()} was destroyed with its SNodeTree")


_destroyed = 0


def destroyed():
    """How many trees have been destroyed."""
    return _destroyed


class SNodeTree:
    """What FieldsBuilder.finalize returns."""

    def __init__(self, tree, node):
        self.tree, self.node = tree, node

    def destroy(self):
        """Frees the fields of the tree."""
        if self.tree.state == "destroyed":
            raise QuadrantsRuntimeError("the SNode tree has been destroyed")
        global _destroyed
        with threads.lock:
            _destroyed += 1
            self.tree.state = "destroyed"
        for field in self.node._all_fields():
            field._release()
            field._companions.clear()


class FieldsBuilder:
    """A tree of its own for fields: `dense`, `place`, `lazy_grad`, then `finalize()`."""

    def __init__(self):
        self.tree = Tree("FieldsBuilder")
        self.node = SNode(self.tree)

    def __getattr__(self, name):
        if name in ("dense", "pointer", "bitmasked", "hash", "dynamic", "place", "lazy_grad", "lazy_dual",
                    "deactivate_all", "quant_array"):
            self.tree.check_open()
            return getattr(self.node, name)
        raise AttributeError(name)

    def finalize(self, raise_warning=True):
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

    def _all_fields(self):
        yield from super()._all_fields()
        for field in list(clear.fields):
            if field._tree is None and field._shape is not None and field._generation == runtime.generation:
                yield field


class _Root:
    """The root of the tree that fields are placed in unless a FieldsBuilder is used."""

    def __init__(self):
        self._renew()

    def _renew(self):
        self._node = _RootNode(Tree("root"))

    def __getattr__(self, name):
        return getattr(self._node, name)


root = _Root()


def deactivate_all_snodes():
    """Makes all cells of all sparse nodes inactive and 0."""
    for node in root.children:
        if any(one.is_sparse for one in node.descendants()):
            node.deactivate_all()


@runtime.on_reset.add
def _renew():
    root._renew()
