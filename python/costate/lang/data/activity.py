"""What is active of sparse fields, on the host; in kernels, see `sparse.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import QuadrantsRuntimeError

if TYPE_CHECKING:
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
        state, place = one.state(), tuple(cell[a] for a in sorted(cell))
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


def deactivate_all(node: SNode) -> None:
    """Makes all cells of a node and below inactive and 0."""
    if not any(one.is_sparse for one in node.descendants()):
        raise QuadrantsRuntimeError("`deactivate_all` of a node without sparse nodes")
    for one in node.descendants():
        if one.is_sparse:
            one.state().fill(0)
        if one.sparse_above():
            for field in one.fields:
                field.fill(0)
