"""Where the cells of a large sparse node lie in memory, on the host; in kernels, see `trace/blocks.py`.

A *block* is what lies below one cell of a sparse node. Blocks have numbers, in the order in which they have come into use:
a field has a row of memory for each. The *directory* tells the number of a block, in levels of `DIGIT` entries, of which
those exist that something has been written below. Row 0 stands for all blocks without a number: it holds 0. What does not
fit goes to the last row, which nobody reads, and to an error. A number stays with its block until all are given back.
"""

from __future__ import annotations

import itertools
import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeError
from costate.lang.base import dtypes, runtime
from costate.lang.base.hooks import Hook
from costate.lang.data.field import ScalarField

if TYPE_CHECKING:
    from costate import _core
    from costate.lang.data.snode import SNode

#: `claim(node, block)`: a block of a node gets a row.
claim: Hook[..., None] = Hook("claim")
#: Entries of a directory below an entry of the level above.
DIGIT = 128
#: The most entries of the first level.
_FIRST = 1 << 22
#: Nodes with less dense memory than this, in bytes, have it.
dense_bytes = 16 << 20
#: Up to this much memory there is a row for each block, and above for as many as take `_PART` bytes, `_FEW` at least.
_WHOLE, _PART, _FEW = 1 << 30, 32 << 20, 16_384
#: Up to so many cells, what is active is kept for each of them, and above for each row: work items that have cells of their own
#: are known to keep apart then.
_STATES = 1 << 22
#: An entry that a work item is about to set, and one that is never set.
BUSY, FULL = -1, -2


class Directory(ScalarField):
    """What it says stays as it is, so derivatives need no copy of it."""

    is_directory = True
    full: int | None = None   # an entry that is never set

    def _make(self) -> _core.Array:
        array = super()._make()
        if self.full is not None:
            array.write_at([self.full], np.full((), FULL, np.int32))
        return array


def _bytes(node: SNode) -> int:
    """Those of one block, without gradients."""
    return int(4 + sum(_cells(field._node, node) * field.dtype.np.itemsize * math.prod(field.element_shape)
                       for field in node.block_fields()))


def _cells(below: SNode, node: SNode) -> int:
    """How many cells of a node below lie in a block."""
    return int(math.prod(below.extents.values()) // math.prod(_keys(node).values()))


def _keys(node: SNode) -> dict[int, int]:
    """{axis: how many cells there are}, of a `dynamic` node without the axis of its lists."""
    return {axis: extent for axis, extent in sorted(node.extents.items()) if axis != node.own_axis}


def blocks_of(node: SNode) -> Blocks | None:
    """Those of a sparse node; None if its memory is dense."""
    total = math.prod(_keys(node).values())
    if node.capacity is None and total * _bytes(node) < dense_bytes:
        return None
    return Blocks(node, total)


class Blocks:
    """The blocks of a sparse node."""

    def __init__(self, node: SNode, total: int) -> None:
        self.keys, self.total, self.kind, self.node = _keys(node), total, node.kind, weakref.ref(node)
        self.digit, self.levels = DIGIT, 1
        while total > _FIRST * self.digit ** (self.levels - 1):
            self.levels += 1
        self.capacity = self._capacity(node)
        self.first = -(-total // self.digit ** (self.levels - 1))
        # Of each level how many entries there are of the next, at most, and where those begin.
        self.most = [min(self.capacity, -(-total // self.digit ** (self.levels - 1 - k))) for k in range(self.levels - 1)]
        self.begins = [*itertools.accumulate([self.first, *((n + 1) * self.digit for n in self.most)])]
        self.most.append(self.capacity)
        self.full = self.begins[-1]
        name = f"a `{self.kind}` node"
        make = self._made
        self.directory = make(Directory(dtypes.i32, (), (self.full + 1,), name=f"the directory of {name}"), node)
        self.used = make(Directory(dtypes.i32, (), (self.levels,), name=f"the numbers of blocks of {name}"), node)
        self.where = make(Directory(dtypes.i64, (), (self.rows,), name=f"the places of blocks of {name}"), node)
        self.by_row = total > _STATES   # what is active
        states = (self.rows,) if self.by_row else tuple(self.keys.values())
        self.state = make(ScalarField(dtypes.i32, (), states, name=f"activity of {name}"), node)
        self.directory.full = self.full

    @staticmethod
    def _made(field: Any, node: SNode) -> Any:
        field._tree = node.tree
        return field

    def _capacity(self, node: SNode) -> int:
        if node.capacity is not None:
            return min(node.capacity, self.total)
        size, part = _bytes(node) + 12, _PART
        if self.total * size <= _WHOLE:
            return self.total
        if runtime.device().name != "cpu":   # where also memory exists that nothing has touched
            part, size = 2 * _PART, size + 4 * self.digit * (self.levels - 1)
        return min(self.total, max(part // size, min(_FEW, _WHOLE // size), 1))

    rows = property(lambda self: self.capacity + 2)
    trash = property(lambda self: self.capacity + 1)

    def cells(self, node: SNode) -> int:
        """Of a node below, how many lie in a block."""
        return int(math.prod(node.extents.values())) // self.total

    # -- on the host -----------------------------------------------------------------

    def place(self, node: SNode, index: tuple[int, ...], makes: bool = False) -> tuple[int, int]:
        """(row, cell in it) of a cell of a node below; row 0 if there is none, unless one is to be made."""
        block = cell = 0
        for (axis, extent), k in zip(sorted(node.extents.items()), index, strict=True):
            size, k = extent // self.keys.get(axis, 1), k + extent if k < 0 else k
            if axis in self.keys:
                block = block * self.keys[axis] + k // size
            cell = cell * size + k % size
        return self.row(block, makes), cell

    def row_of(self, cell: dict[int, int], makes: bool = False) -> int:
        """The row of the block of a cell of the node itself, {axis: index}."""
        block = 0
        for axis, extent in self.keys.items():
            block = block * extent + cell[axis]
        return self.row(block, makes)

    def _digits(self, block: int) -> list[int]:
        digits: list[int] = []
        for _ in range(self.levels - 1):
            block, digit = divmod(block, self.digit)
            digits.insert(0, digit)
        return [block, *digits]

    def row(self, block: int, makes: bool = False) -> int:
        """The row of a block; 0 if it has none, unless one is to be made."""
        place, entry = 0, 0
        for level, digit in enumerate(self._digits(block)):
            place = digit if level == 0 else self.begins[level - 1] + entry * self.digit + digit
            entry = _number(self.directory, place)
            if entry <= 0 and not makes:
                return 0
            if entry <= 0:
                claim(self.node(), block)   # by a launch: a recording would take back what the host writes
                return self.row(block)
        return entry

    def _full_text(self) -> str:
        return (f"a `{self.kind}` node of {self.total:,} cells has room for {self.capacity:,} that something has been written to, "
                f"and no more are left; give it `capacity=`, how many there may be, or `deactivate_all` what is not needed")

    def check(self) -> None:
        """After a launch that may have needed rows: whether there were enough."""
        for level, most in enumerate(self.most):
            if _number(self.used, level) > most:
                _set(self.used, level, most)
                raise QuadrantsRuntimeError(self._full_text())

    def free_taken(self) -> None:
        """After a launch that did not come to its end: entries that work items have taken are free."""
        for place in np.flatnonzero(self.directory.to_numpy() == BUSY):
            _set(self.directory, int(place), 0)

    def count(self) -> int:
        """How many rows are in use, row 0 not counted."""
        return min(_number(self.used, self.levels - 1), self.capacity)

    def active(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(rows in use, what is active of each: 0, 1 or a length)."""
        rows = np.arange(1, self.count() + 1)
        places = rows if self.by_row else self.where.to_numpy()[rows]
        return rows, self.state.to_numpy().reshape(-1)[places]

    def active_cells(self, node: SNode) -> np.ndarray[Any, Any]:
        """For each row and cell of a node below whether it is active."""
        rows, state = self.active()
        result = np.zeros((self.rows, self.cells(node)), bool)
        result[rows] = self._positions(node) < state[:, None]
        return result

    def _positions(self, node: SNode) -> np.ndarray[Any, Any]:
        """The index in its list of each cell of a block, 0 without lists."""
        sizes = [extent // self.keys.get(axis, 1) for axis, extent in sorted(node.extents.items())]
        if self.kind != "dynamic":
            return np.zeros(math.prod(sizes), np.int64)
        own = next(k for k, axis in enumerate(sorted(node.extents)) if axis not in self.keys)
        inside: np.ndarray[Any, Any] = np.indices(sizes)[own]
        return inside.reshape(-1)

    def indices(self, node: SNode) -> tuple[Any, ...]:
        """For each row in use the indices of its cells, as an index of an array with the shape of the node."""
        where = self.where.to_numpy()[1:self.count() + 1]
        starts = dict(zip(self.keys, np.unravel_index(where, tuple(self.keys.values())) if self.keys else (), strict=True))
        sizes = [extent // self.keys.get(axis, 1) for axis, extent in sorted(node.extents.items())]
        inside = np.indices(sizes).reshape(len(sizes), -1)
        return tuple(starts[axis][:, None] * size + one if axis in self.keys else np.broadcast_to(one, (len(where), one.size))
                     for axis, size, one in zip(sorted(node.extents), sizes, inside, strict=True))

    def blocks_at(self, node: SNode, index: tuple[np.ndarray[Any, Any], ...]) -> np.ndarray[Any, Any]:
        """Those of cells of a node below, each once."""
        at = dict(zip(sorted(node.extents), index, strict=True))
        block = np.zeros(len(index[0]) if index else 1, np.int64)
        for axis, extent in self.keys.items():
            block = block * extent + at[axis] // (node.extents[axis] // extent)
        return np.unique(block)

    def give_back(self) -> None:
        """No block has a number, and nothing is active. What is known of launches has arrays that end here."""
        for one in (self.directory, self.used, self.where, self.state):
            one._release()


def _number(array: ScalarField, place: int) -> int:
    found = np.empty((), array.dtype.np)
    array.core().read_at([place], found)
    return int(found)


def _set(array: ScalarField, place: int, value: int) -> None:
    array.core().write_at([place], np.full((), value, array.dtype.np))
