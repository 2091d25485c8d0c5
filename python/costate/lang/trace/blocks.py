"""Blocks of large sparse nodes, in kernels: see `data/blocks.py`.

The entry of a directory that nobody has set is taken by one work item (`BUSY`), which gives it the next number; who needs it
meanwhile waits. That one has no need of others, so it comes to an end, also among the lanes of a warp: what it does stands
in front of the loop that waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate import _core
from costate.lang.base import runtime
from costate.lang.base.dtypes import i32, i64, u1
from costate.lang.data.blocks import BUSY, Blocks
from costate.lang.trace.arrays import TracedArray, traced
from costate.lang.values.builder import require

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.data.snode import SNode
    from costate.lang.values.builder import Builder

Op = _core.Op


class Cell:
    """Where a cell of a field lies: in a row, at a place in it. It is the one that a loop is at."""

    def __init__(self, blocks: Blocks, node: SNode, row: Any, place: Any, handles: list[Any]) -> None:
        self.blocks, self.extents, self.row, self.place, self.handles = blocks, node.extents, row, place, handles

    def has(self, blocks: Blocks, node: SNode, handles: list[_core.Value]) -> bool:
        """Whether these are the indices of this cell."""
        return blocks is self.blocks and node.extents == self.extents and all(
            a is b for a, b in zip(handles, self.handles, strict=True))


class Numbers:
    """Arithmetic on the indices of blocks."""

    def __init__(self, b: Builder, blocks: Blocks) -> None:
        self.b, self.blocks = b, blocks

    def number(self, value: int) -> _core.Value:
        return self.b.constant(i64, value)

    def op(self, op: _core.Op, x: Any, y: Any) -> Any:
        return self.b.pure(op, i64, x, y if isinstance(y, _core.Value) or not isinstance(y, int) else self.number(y))

    def split(self, node: SNode, handles: list[_core.Value]) -> tuple[Any, Any]:
        """(number of the block among all, cell in it) of a cell of a node below."""
        block, cell = self.number(0), self.number(0)
        for (axis, extent), k in zip(sorted(node.extents.items()), handles, strict=True):
            count = self.blocks.keys.get(axis, 1)
            size = extent // count
            if axis in self.blocks.keys:
                outer = k if size == 1 else self.op(Op.div, k, size)
                block = self.op(Op.add, self.op(Op.mul, block, count), outer)
            if size != 1:
                inner = k if axis not in self.blocks.keys else self.op(Op.rem, k, size)
                cell = self.op(Op.add, self.op(Op.mul, cell, size), inner)
        return block, cell

    def block_of(self, handles: list[_core.Value]) -> _core.Value:
        """The number among all, for the indices of the node itself."""
        block = self.number(0)
        for extent, k in zip(self.blocks.keys.values(), handles, strict=True):
            block = self.op(Op.add, self.op(Op.mul, block, extent), k)
        return block

    def joined(self, node: SNode, block: _core.Value, cell: _core.Value) -> list[_core.Value]:
        """The indices of a cell of a node below: the opposite of `split`."""
        handles: list[Any] = []
        for axis, extent in reversed(sorted(node.extents.items())):
            count = self.blocks.keys.get(axis, 1)
            size, index = extent // count, self.number(0)
            if size != 1:
                cell, index = self._digit(cell, size)
            if axis in self.blocks.keys:
                block, outer = self._digit(block, count)
                index = self.op(Op.add, self.op(Op.mul, outer, size), index) if size != 1 else outer
            handles.insert(0, index)
        return handles

    def _digit(self, rest: _core.Value, base: int) -> tuple[Any, Any]:
        return self.op(Op.div, rest, base), self.op(Op.rem, rest, base)

    def is_above_0(self, handle: _core.Value, dtype: DataType = i64) -> _core.Value:
        return self.b.pure(Op.gt, u1, handle, self.b.constant(dtype, 0))


class Directory(Numbers):
    """Rows of blocks."""

    def __init__(self, b: Builder, blocks: Blocks) -> None:
        super().__init__(b, blocks)
        self.array: TracedArray = traced(b, blocks.directory)

    def _places(self, block: Any, entry_at: Any) -> Any:
        """The last entry on the way to a block; `entry_at(level, place, isn't there)` gives one."""
        blocks, entry = self.blocks, None
        for level in range(blocks.levels):
            power = blocks.digit ** (blocks.levels - 1 - level)
            place = block if power == 1 else self.op(Op.div, block, power)
            if level:
                begin = self.op(Op.add, self.op(Op.mul, entry, blocks.digit), blocks.begins[level - 1])
                inside = self.op(Op.add, begin, self.op(Op.rem, place, blocks.digit))
                place = self._unless_full(entry, inside) if entry_at == self._claimed else inside
            entry = self._wide(entry_at(level, place, block))
        return entry

    def _unless_full(self, entry: Any, place: Any) -> Any:
        return self.b.pure(Op.select, i64, self.is_above_0(entry), place, self.number(self.blocks.full))

    def _wide(self, entry: _core.Value) -> _core.Value:
        return self.b.pure(Op.cast, i64, entry)

    def _load(self, place: _core.Value) -> _core.Value:
        return self.b.trace.load(self.array.handle, i32.core, [place], self.b.loc)

    def _found(self, level: int, place: _core.Value, block: _core.Value) -> _core.Value:
        return self.b.pure(Op.max, i32, self._load(place), self.b.constant(i32, 0))

    def row(self, block: Any) -> Any:
        """The row of a block, 0 if it has none."""
        return self._places(block, self._found)

    def written_row(self, block: _core.Value) -> _core.Value:
        """The same; the last row if it has none."""
        return self._or_last(self.row(block))

    def _or_last(self, row: _core.Value) -> _core.Value:
        return self.b.pure(Op.select, i64, self.is_above_0(row), row, self.number(self.blocks.trash))

    def claim(self, block: _core.Value) -> _core.Value:
        """The row of a block, which gets one if it has none; the last one if none are left."""
        if not self.b.dry:
            self.b.blocks.add(self.blocks)
        return self._or_last(self._places(block, self._claimed))

    def _claimed(self, level: int, place: _core.Value, block: _core.Value) -> _core.Value:
        b = self.b
        missing = b.pure(Op.le, u1, self._load(place), b.constant(i32, 0))
        b.trace.begin_if(missing, b.loc)
        free = b.constant(i32, 0)
        found = b.trace.compare_exchange(self.array.handle, i32.core, [place], free, b.constant(i32, BUSY), b.loc)
        b.trace.begin_if(b.pure(Op.eq, u1, found, free), b.loc)
        self._set(level, place, block)
        b.trace.end()
        self._wait(place)
        b.trace.end()
        # A GPU may have what it loaded before in a cache.
        return self._load(place) if runtime.device().name == "cpu" else self._fetched(place)

    def _wait(self, place: _core.Value) -> None:
        b, busy = self.b, self.b.constant(i32, BUSY)
        entry = b.trace.declare(i32.core, busy, b.loc)
        b.trace.begin_while(b.loc)
        b.trace.begin_while_body(b.pure(Op.eq, u1, b.trace.read(i32.core, entry, b.loc), busy), b.loc)
        b.trace.assign(entry, self._fetched(place), b.loc)
        b.trace.end()

    def _fetched(self, place: _core.Value) -> _core.Value:
        return self.b.trace.fetch(Op.or_, self.array.handle, i32.core, [place], self.b.constant(i32, 0), self.b.loc)

    def _set(self, level: int, place: _core.Value, block: _core.Value) -> None:
        """The work item that has taken an entry gives it the next number, or gives up."""
        b, blocks = self.b, self.blocks
        used, one, at = traced(b, blocks.used), b.constant(i32, 1), self.number(level)
        number = b.pure(Op.add, i32, b.trace.fetch(Op.add, used.handle, i32.core, [at], one, b.loc), one)
        b.trace.begin_if(b.pure(Op.le, u1, number, b.constant(i32, blocks.most[level])), b.loc)
        if level == blocks.levels - 1:
            where = traced(b, blocks.where)
            b.trace.store(where.handle, i64.core, [self._wide(number)], block, b.loc)
        b.trace.exchange(self.array.handle, i32.core, [place], number, b.loc)
        b.trace.end()
        b.trace.begin_else(b.loc)
        b.trace.exchange(self.array.handle, i32.core, [place], b.constant(i32, 0), b.loc)
        b.trace.end()


class Rows(Numbers):
    """The rows in use, for loops."""

    def count(self) -> _core.Value:
        b, blocks = self.b, self.blocks
        used = traced(b, blocks.used)
        found = b.trace.load(used.handle, i32.core, [self.number(blocks.levels - 1)], b.loc)
        return b.pure(Op.cast, i64, b.pure(Op.min, i32, found, b.constant(i32, blocks.capacity)))

    def cell(self, node: SNode, row: _core.Value, place: _core.Value) -> Cell:
        """The cell of a node below, that lies at a place in a row."""
        b = self.b
        where = traced(b, self.blocks.where)
        block = b.trace.load(where.handle, i64.core, [row], b.loc)
        return Cell(self.blocks, node, row, place, self.joined(node, block, place))


def place_in_memory(node: SNode, blocks: Blocks, handles: list[Any], row_of: Any) -> list[Any]:
    """[row, cell in it] of a cell of a node below; `row_of(directory, block)` gives the row where a loop has not."""
    b = require("an element")
    if b.cell is not None and b.cell.has(blocks, node, handles):
        return [b.cell.row, b.cell.place]
    directory = Directory(b, blocks)
    block, cell = directory.split(node, handles)
    return [row_of(directory, block), cell]
