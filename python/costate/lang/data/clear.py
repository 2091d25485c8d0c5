"""`ad.clear_all_gradients`, and whose fields a `Tape` or FwdMode clears."""

from __future__ import annotations

from typing import Any

from costate.lang.base import threads
from costate.lang.base.state import state

#: All fields that have been made.
fields = threads.Objects()

#: Another object after each `claim`.
last_claim = object()


def clear_all_gradients(gradient_type: Any = None) -> None:
    """Sets the gradients of all fields to 0; with `SNodeGradType.DUAL` the tangents."""
    which = "dual" if gradient_type is not None and getattr(gradient_type, "name", "") == "DUAL" \
        else "grad"
    for field in fields:
        clear(field, which)


def clear(field: Any, which: str) -> None:
    array = field._core_array
    if array is not None and getattr(array, f"has_{which}"):
        companion = field._companions.get(which)
        if companion is not None:
            companion._forget_host()
        getattr(array, which).fill(0)


def own_fields() -> list[Any]:
    """Those that no other thread has used last: what another one uses may be in the midst of a derivative."""
    me, known = threads.get_ident(), fields.list()
    own = [f for f in known if f._user == me]
    if len(own) == len(known):
        return own
    others = threads.alive() - {me}
    return [f for f in known if f._user not in others]


def claim(field: Any) -> None:
    """This thread is the one that has used a field last; what it has begun with `own_fields` begins with this one."""
    global last_claim
    last_claim = object()
    field._user = threads.get_ident()
    active = state.tape or state.forward
    if active is not None:
        active.claimed(field)
