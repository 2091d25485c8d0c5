"""What is active of sparse fields, on the host; in kernels, see `sparse.py`."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeError
from costate.lang.base import state as surroundings

if TYPE_CHECKING:
    from costate.lang.data.blocks import Blocks
    from costate.lang.data.snode import SNode


def mark(node: SNode, index: tuple[int, ...]) -> None:
    for one in node.lineage():
        if not one.is_sparse:
            continue
        axes, cell = sorted(node.extents), {}
        for axis, extent in one.extents.items():
            cell[axis] = index[axes.index(axis)] // (node.extents[axis] // extent)
        value = 1
        if one.kind == "dynamic":
            value = cell.pop(one.own_axis) + 1
        blocks, state = one.blocks(), one.state()
        row, place = blocks and blocks.row_of(cell, makes=True), tuple(cell[a] for a in sorted(cell))
        if row and blocks and blocks.by_row:
            place = (row,)
        state[place] = max(state[place], value)


def active_cells(node: SNode) -> np.ndarray[Any, Any] | None:
    """Where the cells of a node are active: an array of bools, or None for everywhere."""
    above = node.sparse_above()
    if above is None:
        return None
    state, axes = above.state().to_numpy(), sorted(above.extents)
    if above.kind == "dynamic":
        own = axes.index(above.own_axis)
        lists = np.arange(above.extents[above.own_axis]).reshape([-1 if k == own else 1 for k in range(len(axes))])
        active = lists < np.expand_dims(state, own)
    else:
        active = state > 0
    for position, axis in enumerate(sorted(node.extents)):
        if axis in above.extents:
            active = np.repeat(active, node.extents[axis] // above.extents[axis], axis=position)
        else:
            active = np.repeat(np.expand_dims(active, position), node.extents[axis], axis=position)
    return active


def keep_active(field: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values of a field where it is active, and 0 elsewhere."""
    active = active_cells(field._sparse_node)
    return values if active is None else np.where(
        active.reshape(active.shape + (1,) * len(field.element_shape)), values, 0).astype(values.dtype)


# -- fields that lie in blocks: `rows` are what their memory holds -------------------


_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def spread(field: Any, blocks: Blocks, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values of a field as an array of its shape."""
    node = field._placed()._sparse_node
    size = math.prod((*field.shape, *field.element_shape)) * rows.itemsize
    if size > _MEMORY // 2:
        raise QuadrantsRuntimeError(f"{field.describe()} of shape {tuple(field.shape)} would take {size / 2 ** 30:,.0f} GiB as an "
                                    "array, with all that is not active; let a kernel loop over the field, which visits what is "
                                    "active, or read single elements")
    result = np.zeros((*field.shape, *field.element_shape), rows.dtype)
    result[blocks.indices(node)] = rows[1:blocks.count() + 1]
    return result


def keep_active_rows(field: Any, blocks: Blocks, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What is active of it, and 0 elsewhere; all of a gradient or tangent."""
    if field._sparse_node is None:
        return rows
    active = blocks.active_cells(field._sparse_node)
    return np.where(active.reshape(active.shape + (1,) * len(field.element_shape)), rows, 0).astype(rows.dtype)


def in_rows(field: Any, blocks: Blocks, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values of an array of the shape of a field: those of active cells, of a gradient or tangent all that are not 0."""
    node, is_companion = field._placed()._sparse_node, field._sparse_node is None
    if is_companion:
        elements = values.reshape(*field.shape, -1).any(axis=-1)
        for block in blocks.blocks_at(node, np.nonzero(elements)):
            blocks.row(int(block), makes=True)
    rows = np.zeros(field.core().shape, values.dtype)
    rows[1:blocks.count() + 1] = values[blocks.indices(node)]
    return keep_active_rows(field, blocks, rows)


def deactivate_all(node: SNode) -> bool:
    """Makes all cells of a node and below inactive and 0; whether memory has been given back."""
    if not any(one.is_sparse for one in node.descendants()):
        raise QuadrantsRuntimeError("`deactivate_all` of a node without sparse nodes")
    sparse = [one for one in node.descendants() if one.is_sparse]
    given_back = [one for one in sparse if _may_give_back(one)]
    for one in sparse:
        blocks = one.blocks() if one in given_back else None
        if blocks is not None:
            blocks.give_back()
        else:
            one.state().fill(0)
        for field in one.block_fields():
            if one in given_back:
                field._release()
            else:
                field.fill(0)
    return bool(given_back)


def _may_give_back(node: SNode) -> bool:
    """Whether nobody can ask for what the blocks of a node have held, as derivatives do."""
    return node.blocks() is not None and surroundings.quiet() and not surroundings.is_custom() and not any(
        field.needs_grad or field.needs_dual for field in node.block_fields())
