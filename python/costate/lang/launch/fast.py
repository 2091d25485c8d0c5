"""Launches with arguments that were seen before: no specialisation, no checks twice.

An entry is found by the identities of arrays and templates; it ends with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import Error
from costate.lang.base import dtypes, runtime
from costate.lang.base.explain import in_python
from costate.lang.base.number import Number
from costate.lang.base.remembered import Remembered
from costate.lang.base.threads import get_ident
from costate.lang.data import snode, storage
from costate.lang.launch import similar
from costate.lang.launch.arguments import DataclassParameter, OptionalParameter, ScalarParameter, TemplateParameter
from costate.lang.values.lifted import lifts

if TYPE_CHECKING:
    from costate.lang.launch.arguments import Values
    from costate.lang.launch.kernel import Kernel
    from costate.lang.launch.specialisation import Specialisation

_PRIMITIVE = (int, float, str, bool)
MOST = 256


class Entry:
    """What a launch with these objects passes on."""

    __slots__ = ("found", "bound", "launch", "numbers", "scalars", "tensors", "references", "destroyed", "own")

    def __init__(self, found: Specialisation, bound: _core.BoundArguments, numbers: list[Any],
                 scalars: list[tuple[int, list[int]]], tensors: tuple[Any, ...], references: list[Any]) -> None:
        self.found, self.bound, self.launch = found, bound, bound.launch
        self.numbers, self.scalars = numbers, scalars   # (position of an argument, where it stands among the numbers)
        self.tensors = tensors   # (position, what is known of the tensor of PyTorch there)
        self.references = references
        self.destroyed = snode.destroyed()
        self.own = found.own

    def result(self) -> Any:
        """What the kernel has returned."""
        return self.found.returns.read(self.own.arrays) if self.found.returns else None

    def recorded(self, *passed: Any) -> None:
        try:
            self.launch(*passed)
        except Error:
            with in_python(self.found.names):
                raise

    def gradient(self, *passed: Any) -> None:
        with in_python(self.found.names):
            self.bound.grad(*passed)

    def gradient_from_start(self, *passed: Any) -> None:
        with in_python(self.found.names):
            self.bound.grad(*passed, initial_state=True)


class Table:
    """The entries of a kernel, of one thread."""

    def __init__(self, kernel: Kernel) -> None:
        parameters = kernel.parameters[kernel.instance is not None:]
        self.objects = [k for k, p in enumerate(parameters) if not isinstance(p, ScalarParameter)]
        self.scalars = [(k, p, p.python_type) for k, p in enumerate(parameters)
                        if isinstance(p, ScalarParameter)]
        self.by_position = {k: (p, t) for k, p, t in self.scalars}
        self.count = len(parameters)
        self.changing = any(isinstance(p, DataclassParameter) and not p.frozen for p in parameters)
        self.mixed = any(isinstance(p, (TemplateParameter, OptionalParameter)) for p in parameters)
        self.all_objects = len(self.objects) == self.count
        self.generation = runtime.generation
        self.entries = Remembered()
        self.similar = Remembered()   # by all but tensors of PyTorch

    def key(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.mixed:
            return tuple([id(args[k]) if type(args[k]) not in _PRIMITIVE else
                          (type(args[k]), args[k] if type(args[k]) is not float else repr(args[k]))
                          for k in self.objects])
        if self.all_objects:
            return tuple(map(id, args))
        return tuple([id(args[k]) for k in self.objects])

    def similar_key(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """That of all launches whose tensors are of the same types."""
        key: list[Any] = list(self.key(args))
        for at, k in enumerate(self.objects):
            one = args[k]
            if dtypes.is_tensor(one):
                key[at] = one.dtype, one.shape, one.requires_grad
        return tuple(key)

    def with_numbers(self, entry: Entry, args: tuple[Any, ...]) -> list[Any] | None:
        """The numbers of this call, or None."""
        result = entry.numbers.copy()
        for position, slots in entry.scalars:
            value = args[position]
            parameter, python_type = self.by_position[position]
            if type(value) is Number and not value.alive:
                value = float(value)
            if type(value) is not python_type or not parameter.lo <= value <= parameter.hi:
                return None
            for slot in slots:
                result[slot] = value
        return result

    def add(self, kernel: Kernel, args: tuple[Any, ...], found: Specialisation, values: Values) -> Entry | None:
        """Remembers a launch, if nothing of it may change: the entry or None."""
        if self.changing or values.changing or not found.plain or values.after or values.hosts or values.has_cells \
                or found.compiled is None:
            return None
        if lifts(kernel.instance) or any(map(lifts, args)):
            return None
        self._add_similar(kernel, args, found, values)
        tensors = self._tensors(args, values)
        if tensors is None:
            return None
        key = self.key(args)
        objects = [args[k] for k in self.objects if type(args[k]) not in _PRIMITIVE and args[k] is not None]
        references = self.entries.forgetting(key, objects)
        if any(one is a for one, a in zip(references, objects)):
            return None
        if len(self.entries) >= MOST:
            self.entries.clear()
        passed = found.arguments(values.items)
        slots = [k for k, one in enumerate(passed) if not isinstance(one, _core.Array)]
        made = self.entries[key] = Entry(found, found.compiled.bound(*passed), [passed[k] for k in slots],
                                         self._scalars(kernel, found, values, slots), tensors, references)
        return made

    def _add_similar(self, kernel: Kernel, args: tuple[Any, ...], found: Specialisation, values: Values) -> None:
        """Remembers what launches with other tensors have in common with this one."""
        if not values.tensors or values.numbers is not None or found.blocks:
            return
        slots = similar.slots_of(kernel, args, values)
        if slots is None:
            return
        key = self.similar_key(args)
        if key in self.similar:
            return
        bound = {position for _, position, _ in slots}
        objects = [args[k] for k in self.objects if k not in bound and type(args[k]) not in _PRIMITIVE and args[k] is not None]
        references = self.similar.forgetting(key, objects)
        made = similar.made_of(found, args, values, slots, references)
        if made is None or any(one is a for one, a in zip(references, objects)):
            return
        if len(self.similar) >= MOST:
            self.similar.clear()
        self.similar[key] = made

    def _tensors(self, args: tuple[Any, ...], values: Values) -> tuple[Any, ...] | None:
        """Where tensors of PyTorch stand, whose memory the device uses, and what is known of them."""
        result = []
        for item, tensor in values.tensors.items():
            position = next((k for k in self.objects if args[k] is tensor), None)
            known: Any = getattr(tensor, "_costate", None)
            if position is None or getattr(known, "array", None) is not values.items[item] or known.is_copied:
                return None
            result.append((position, known))
        return tuple(result)

    def _scalars(self, kernel: Kernel, found: Specialisation, values: Values, slots: list[int]) -> list[tuple[int, list[int]]]:
        """Where the numbers of the call stand among those of the launch, which are the arguments in `slots`."""
        item_of, count = {}, 0
        for k, counted in enumerate(values.counts):
            for parameter_position, _, _ in self.scalars:
                if parameter_position + (kernel.instance is not None) == k:
                    item_of[parameter_position] = count
            count += counted
        result = []
        for position, item in item_of.items():
            result.append((position, [k for k, s in enumerate(slots) if found.order[s] == item]))
        return result


def table_of(kernel: Kernel) -> Table:
    """The table of this thread."""
    tables, me = kernel.tables, get_ident()
    table = tables.get(me)
    if table is None or table.generation != runtime.generation:
        table = tables[me] = Table(kernel)
    return table


def launch(kernel: Kernel, args: tuple[Any, ...], gradient: str = "", tape: Any = None) -> Entry | similar.Similar | None:
    """Launches with a known entry, which `tape` has recorded before if there is one; None if there is none. `gradient`: the
    method of the entry that runs it, if it is wanted."""
    table = kernel.tables.get(get_ident())
    if table is None or len(args) != table.count or table.generation != runtime.generation:
        return None
    entry: Entry | None = table.entries.get(table.key(args))
    if entry is None and table.similar and tape is None and not gradient:
        return _similarly(table, args)
    if entry is None or entry.destroyed != snode._destroyed or not entry.found.seen.holds():
        return None
    passed = entry.numbers
    if entry.scalars:
        with_numbers = table.with_numbers(entry, args)
        if with_numbers is None:
            return None
        passed = with_numbers
    for position, known in entry.tensors:
        tensor = args[position]
        if tensor._costate is not known or not known.ready(tensor):
            return None
    if storage._dirty:
        storage.flush()
    function: Callable[..., Any] = entry.launch
    if tape is not None:
        if entry.found.returns or not tape.insert_again(kernel, args, entry):
            return None
        function = entry.recorded
    elif gradient:
        entry.found.check_gradient()
        function = getattr(entry, gradient)
    if entry.found.blocks:
        with entry.found.enough_blocks():
            _with_tensors(function, passed, entry.tensors, args)
    elif entry.tensors:
        _with_tensors(function, passed, entry.tensors, args)
    else:
        function(*passed)
    return entry


def _similarly(table: Table, args: tuple[Any, ...]) -> similar.Similar | None:
    """Launches with what it has in common with another launch; None if there is none."""
    key = table.similar_key(args)
    known: similar.Similar | None = table.similar.get(key)
    if known is None:
        return None
    if not known.holds():
        del table.similar[key]
        return None
    values = known.bind(args)
    if values is None or known.has_met(values):
        return None
    if storage._dirty:
        storage.flush()
    known.launch(values)
    return known


def _with_tensors(function: Callable[..., Any], passed: list[Any], tensors: tuple[Any, ...], args: tuple[Any, ...]) -> None:
    try:
        function(*passed)
    finally:
        for position, known in tensors:
            if known.array_version != known.array.version:
                known.write_versions(args[position])
