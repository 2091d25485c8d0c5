"""Launches in which only tensors of PyTorch and numbers are others than before: these are bound, and nothing else.

A tensor that comes back gets an entry with all arguments (`fast.py`), which binds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate import _core
from costate.lang.base import dtypes
from costate.lang.base.explain import in_python
from costate.lang.data import snode
from costate.lang.launch.arguments import ArrayParameter, ScalarParameter, Values

if TYPE_CHECKING:
    from costate.lang.launch.arguments import Parameter
    from costate.lang.launch.kernel import Kernel
    from costate.lang.launch.specialisation import Specialisation

#: A parameter that is bound at each launch, where its argument stands, and its item.
Slot = tuple["Parameter", int, int]


class Similar:
    """What launches that differ in tensors and numbers have in common."""

    __slots__ = ("found", "own", "items", "slots", "key", "references", "destroyed", "others")

    def __init__(self, found: Specialisation, items: list[Any], slots: list[Slot], key: tuple[Any, ...],
                 references: list[Any]) -> None:
        self.found, self.own = found, found.own
        self.slots, self.key, self.references = slots, key, references
        bound = {item for _, _, item in slots}
        self.items = [None if k in bound else one for k, one in enumerate(items)]
        self.others = frozenset(map(id, self.items))
        self.destroyed = snode.destroyed()

    def result(self) -> Any:
        """What the kernel has returned."""
        return self.found.returns.read(self.own.arrays) if self.found.returns else None

    def holds(self) -> bool:
        return self.destroyed == snode._destroyed and self.found.seen.holds()

    def bind(self, args: tuple[Any, ...]) -> Values | None:
        """What the launch passes on, or None if it is another kind of launch."""
        try:
            values = _bound(self.slots, args)
        except Exception:
            return None    # who binds all says what is wrong with which argument
        if values is None or tuple(values.key) != self.key:
            return None
        arrays = {id(values.items[k]) for k in values.tensors}
        if len(arrays) != len(values.tensors) or not arrays.isdisjoint(self.others):
            return None    # the same array twice
        return values

    def launch(self, values: Values) -> None:
        items = self.items.copy()
        for (_, _, item), one in zip(self.slots, values.items):
            items[item] = one
        passed = self.found.arguments(items, self.own)
        assert self.found.compiled is not None
        try:
            with in_python(self.found.names):
                self.found.compiled.launch(*passed)
        finally:
            for tensor in values.tensors.values():
                _known(tensor).after(tensor)

    def has_met(self, values: Values) -> bool:
        """Whether a tensor has been here before; it has, after this."""
        marks = [_known(tensor).marks for tensor in values.tensors.values()]
        me = id(self)
        found = any(me in one for one in marks)
        for one in marks:
            one.add(me)
        return found


def _known(tensor: Any) -> Any:
    """What is kept with a tensor that has been bound."""
    return tensor._costate


def _bound(slots: list[Slot], args: tuple[Any, ...]) -> Values | None:
    values = Values()
    for parameter, position, _ in slots:
        parameter.bind(args[position], values)
    is_other = values.after or values.hosts or values.outside or values.has_cells
    if is_other or len(values.items) != len(slots) or any(_known(tensor).is_copied for tensor in values.tensors.values()):
        return None
    return values


def slots_of(kernel: Kernel, args: tuple[Any, ...], values: Values) -> list[Slot] | None:
    """Of a launch that has tensors as arguments of their own, and no arrays of others: else None."""
    first = kernel.instance is not None
    slots, item, count = [], sum(values.counts[:first]), 0
    for position, parameter in enumerate(kernel.parameters[first:]):
        is_tensor = isinstance(parameter, ArrayParameter) and dtypes.is_tensor(args[position])
        if is_tensor or isinstance(parameter, ScalarParameter):
            slots.append((parameter, position, item))
        count += is_tensor
        item += values.counts[position + first]
    return slots if count and count == len(values.tensors) else None


def made_of(found: Specialisation, args: tuple[Any, ...], values: Values, slots: list[Slot], references: list[Any]) -> Similar | None:
    """From a launch."""
    again = _bound(slots, args)
    if again is None:
        return None
    arrays = [one for one in values.items if isinstance(one, _core.Array)]
    if len({id(one) for one in arrays}) != len(arrays):
        return None
    return Similar(found, values.items, slots, tuple(again.key), references)
