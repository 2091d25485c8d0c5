"""What surrounds a launch: a tape, forward mode, or a function with a gradient of its own."""

import threading

from costate.errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang import runtime


class _State(threading.local):
    """What surrounds the launches of a thread."""

    tape = None       # the active Tape
    forward = None    # the active FwdMode
    hidden = 0        # inside of a function whose gradient is given
    tracing = 0       # inside of a kernel that is compiled
    loud = False      # whether one of these wants to know about launches

    def __setattr__(self, name, value):
        own = self.__dict__
        own[name] = value
        own["loud"] = bool(own.get("tape") is not None or own.get("forward") is not None or own.get("tracing"))


state = _State()


@runtime.on_reset
def _forget():
    state.tape = state.forward = None
    state.hidden = 0


def quiet():
    """Whether nothing wants to know about launches."""
    return not state.loud


def records():
    """Whether a tape records what happens now."""
    return state.tape is not None and state.tape.recording


def unrecorded(function):
    """Calls a function that the active tape does not see."""
    tape = state.tape if records() else None
    if tape is not None:
        tape.suspend()
    try:
        function()
    finally:
        if tape is not None:
            tape.resume()


def validating():
    """Whether kernels check the global data access rule."""
    return state.tape is not None and not state.hidden and state.tape.validates


def launched(kernel, args):
    """Launches a kernel as its surroundings want it."""
    if state.tracing:
        raise QuadrantsSyntaxError("Kernels cannot call other kernels, and not by way of a function of Python either; "
                                   f"make `{kernel.__name__}` a `@ti.func`")
    if state.forward is not None:
        state.forward.insert(kernel, args)
        return kernel.run(args, "jvp")
    if state.tape is not None and not state.hidden:
        return state.tape.launch(kernel, args)
    return kernel.run(args)


def check_gradient_allowed(kernel):
    if state.forward is not None:
        raise QuadrantsRuntimeError(f"`{kernel.__name__}.grad()` inside of `ad.FwdMode`; leave the "
                                    "`with` first")
