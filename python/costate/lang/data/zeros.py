"""Gradients that are 0 because the host has read them too early, or has written their array inside of a `Tape`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate.lang.base import callers
from costate.lang.base.state import records, state

if TYPE_CHECKING:
    from costate.lang.data.storage import Companion, Storage

MOST_PLACES = 64   # that are remembered

Place = tuple[int, ...]


class HostWrites:
    """What the host has written of an array inside of one `Tape`, as constants: {place: line}; () is all of it."""

    def __init__(self) -> None:
        self.recording = state.recordings
        self.lines: dict[Place, str] = {}

    def find(self, place: Place) -> str | None:
        return self.lines.get(()) or self.lines.get(place)


def note_write(array: Storage, place: Any) -> None:
    """The host has written constants, which a `Tape` records."""
    if not (records() and array.needs_grad):
        return
    known = array._host_writes
    if known is None or known.recording != state.recordings:
        known = array._host_writes = HostWrites()
    if len(known.lines) < MOST_PLACES:
        known.lines[_place(place)] = callers.line()


def _place(index: Any) -> Place:
    return tuple(index) if isinstance(index, (tuple, list)) else (index,)


def tell_of_zeros(gradient: Companion, index: Any, values: Any) -> None:
    """The host has read a gradient, all of it if the index is ()."""
    if np.any(values):
        return
    owner = gradient._strong
    if records():
        if len(state.tape):
            callers.warn(f"the {gradient.describe()} is 0 inside of the `with` of the `Tape`, which adds gradients at its end: read it "
                         "after that")
        return
    known = owner._host_writes
    line = known.find(_place(index)) if known is not None and known.recording == state.recordings else None
    if line is not None and not state.hidden and not state.reversing:
        callers.warn(f"the {gradient.describe()} is 0 because the host has written {owner.describe()} inside of the `with` of the `Tape` "
                     f"({line}): a gradient is that of what stood there before. Write it in front of the `with`; of intermediate "
                     "values this is right")
