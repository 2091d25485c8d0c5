"""What surrounds a launch: a recording, forward mode, or a function with a gradient of its own."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from costate.errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang.base import runtime


def _weak(name: str) -> Any:
    """An attribute that ends with what it refers to, or with its `with`: one that is never left does not last, nor does one
    that another thread leaves."""
    def get(self: _State) -> Any:
        found = getattr(self, name)
        found = found if found is None else found()
        return None if found is None or found.left else found

    def put(self: _State, value: Any) -> None:
        setattr(self, name, value and weakref.ref(value))
        self.listen()
    return property(get, put)


class _State(threading.local):
    """What surrounds the launches of a thread."""

    _tape = _forward = None
    tape = _weak("_tape")        # the active Tape
    forward = _weak("_forward")  # the active FwdMode
    hidden = 0        # inside of a function whose gradient is given
    reversing = 0     # inside of a gradient of the user
    copies: Any = ()       # there: ids of what stands for tensors elsewhere than the device
    keys = None       # of `hidden`: the keys of random numbers, by specialisation
    capture: Any = None    # what becomes a graph
    sequence: Any = None   # a run of a function of another library, which launches several kernels
    recordings = 0    # how many a `Tape` has begun
    tracing = 0       # inside of a kernel that is compiled
    loud = False      # whether one of these wants to know about launches

    def listen(self) -> None:
        self.loud = bool(self._tape or self._forward or self.tracing or self.capture or self.sequence)


state = _State()


@runtime.on_reset.add
def _forget() -> None:
    if state.tape is not None:
        state.tape.suspend()
    state.tape = state.forward = state.keys = None
    state.hidden = state.reversing = 0


def quiet() -> bool:
    """Whether nothing wants to know about launches."""
    return not state.loud or state.tape is None and state.forward is None and not state.tracing and state.sequence is None


def only_tape() -> Any:
    """The Tape, if it is all that wants to know about launches."""
    if state.tracing or state._forward is not None or state._tape is None:
        return None
    found = state._tape()
    return None if found is None or found.left else found


def records() -> bool:
    """Whether a `Tape` records what happens now."""
    return state._tape is not None and not state.hidden and state.tape is not None and state.tape.recording


def numbers() -> Any:
    """What knows where the numbers come from that the host reads, and where they go, or None."""
    if not state.loud:
        return None
    forward = state.forward
    if forward is not None:
        return forward.numbers
    tape = state.tape
    if tape is None or not state.hidden:
        return tape.numbers if tape is not None and tape.recording else None
    return tape.hidden_numbers if state.keys is not None else None


def is_custom() -> int:
    """Whether a function of the user is an entry of a recording, or runs backwards."""
    return state.hidden or state.reversing


def unrecorded(function: Callable[..., Any]) -> None:
    """Calls a function that the active `Tape` does not see."""
    tape = state.tape if records() else None
    if tape is not None:
        tape.suspend()
    try:
        function()
    finally:
        if tape is not None:
            tape.resume()


def validating() -> bool:
    """Whether kernels check the global data access rule."""
    return state.tape is not None and not state.hidden and state.tape.validates


def launched(kernel: Any, args: tuple[Any, ...]) -> Any:
    """Launches a kernel as its surroundings want it."""
    if state.tracing:
        raise QuadrantsSyntaxError("Kernels cannot call other kernels, and not by way of a function of Python either; "
                                   f"make `{kernel.__name__}` a `@ti.func`")
    if state.sequence is not None:
        return state.sequence.launch(kernel, args)
    if state.forward is not None:
        state.forward.insert(kernel, args)
        return kernel.run(args, "jvp", numbers=state.forward.numbers)
    tape = state.tape
    if tape is None:
        state.tape = state.forward = None    # one that was never left has ended
        return kernel.run(args)
    return tape.run(kernel, args) if state.hidden else tape.launch(kernel, args)


def check_gradient_allowed(kernel: Any) -> None:
    if state.forward is not None:
        raise QuadrantsRuntimeError(f"`{kernel.__name__}.grad()` inside of `ad.FwdMode`; leave the "
                                    "`with` first")
