"""What surrounds a launch: a tape, forward mode, or a function with a gradient of its own."""

import threading
import weakref

from costate.errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang import runtime


class _Entered:
    """What the thread is in, as long as somebody holds it: the `with` that it stands in, for one."""

    def __set_name__(self, owner, name):
        self.name = f"{name}_entered"
        setattr(owner, self.name, None)

    def __get__(self, state, owner=None):
        entered = getattr(state, self.name)
        return None if entered is None else entered()

    def __set__(self, state, value):
        setattr(state, self.name, None if value is None else weakref.ref(value))


class _State(threading.local):
    tape = _Entered()       # the active Tape
    forward = _Entered()    # the active FwdMode
    hidden = 0        # inside of a function whose gradient is given
    tracing = 0       # inside of a kernel that is compiled


state = _State()


@runtime.on_reset
def _forget():
    if state.tape is not None:
        state.tape.suspend()
    state.tape = state.forward = None
    state.hidden = 0


def quiet():
    """Whether nothing wants to know about launches."""
    return state.tape_entered is None and state.forward_entered is None and not state.tracing


def records():
    """Whether a tape records what happens now."""
    return state.tape is not None and state.tape.recording


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
