"""Warnings of what one iteration of a parallel loop leaves to another."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from costate.lang.trace.arrays import Hidden
from costate.lang.trace.passed import Met

if TYPE_CHECKING:
    from collections.abc import Iterator

    from costate import _core
    from costate.lang.trace.frame import Frame
    from costate.lang.values.builder import Builder

SERIAL = "To run them in order, put `ti.loop_config(serialize=True)` in front of the loop"


def warn_of_carried(builder: Builder, frame: Frame, names: list[str | None]) -> None:
    """Warns, once for each loop, where its result depends on the order of iterations; `names` are those of the arguments."""
    for _, several in groupby(_found(builder, frame, names), lambda one: str(one.where.range)):
        group = list(several)
        group = [one for one in group if one.is_variable == group[0].is_variable and one.is_shared == group[0].is_shared]
        builder.loc = group[0].where.range
        builder.warn(_text(group))


@dataclass
class Carried:
    """A variable or array, and where it is read and changed."""

    name: str
    where: _core.CarriedElement
    is_variable: bool

    @property
    def is_shared(self) -> bool:
        return self.is_variable or bool(self.where.is_shared)


def _found(builder: Builder, frame: Frame, names: list[str | None]) -> Iterator[Carried]:
    """All variables; elements unless a condition may keep the iterations apart, or they are counters."""
    for one in builder.trace.carried:
        argument = builder.arguments[one.argument]
        is_variable = isinstance(argument, Hidden)
        if is_variable or one.is_sure and not (one.is_shared and one.is_added):
            known = names[one.argument] or _outside(frame, argument)
            yield Carried(f"`{known}`" if known else "an array", one, is_variable)


def _outside(frame: Frame, argument: Any) -> str | None:
    """The name that a field has where the kernel was made."""
    if not isinstance(argument, Met):
        return None
    return next((name for name in (*frame.closure, *frame.globals) if frame.knows(name) is argument.storage), None)


def _text(group: list[Carried]) -> str:
    first = group[0]
    names = list(dict.fromkeys(one.name for one in group))
    what = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
    read, change = first.where.read, first.where.change
    changed = f" ({_line(change)})" if change.line != read.line else ""
    if not first.is_shared:
        return (f"iterations of this loop read elements of {what} ({_line(read)}) that others change{changed}, but they run in "
                f"parallel, so that what they find there is left to chance. {SERIAL}; else write to another array, or launch a "
                "kernel once for each step")
    text = (f"all iterations of this loop share {what}, and run in parallel: what they read there ({_line(read)}) is left to chance, "
            f"since others change it{changed}. {SERIAL}; for sums, products, minima and maxima over all of them there are `+=`, "
            "`ti.atomic_mul`, `atomic_min` and `atomic_max`")
    return text + ("; what belongs to one iteration gets its first value inside of the loop" if first.is_variable else "")


def _line(loc: _core.Loc) -> str:
    return f"line {loc.line}: `{linecache.getline(loc.file, loc.line).strip()}`"
