"""The kernel that this thread traces, and where in the source it stands."""

import threading
from contextlib import contextmanager

from costate import _core

_state = threading.local()


def current():
    """The builder of the kernel that this thread traces, or None."""
    return getattr(_state, "builder", None)


def require(what):
    builder = current()
    if builder is None:
        from costate.errors import QuadrantsRuntimeError
        raise QuadrantsRuntimeError(f"{what} is only possible in a kernel")
    return builder


class _Nothing:
    """Takes the place of a trace to learn the types of an expression."""

    def __getattr__(self, name):
        if name == "begin_range":
            return lambda extents, loc: [0] * len(extents)
        return lambda *args: 0


class Builder:
    """Wraps `_core.Trace`: keeps the place, finds arguments for arrays that are met."""

    def __init__(self, name, loc, options=None):
        self.name = name
        self.trace = _core.Trace(name, loc)
        self.loc = loc
        self.dry = 0
        self.prints = self.printed = 0  # `static_print`s of this trace, and of one before
        self.depth = 0          # of runtime control flow around the current statement
        self.in_range = False
        self.arguments = []     # what each argument of the kernel is, see kernel.py
        self.labels = {}        # names of arguments, for messages
        self.watch = None       # of objects of Python whose members are read, see watch.py
        self.written = set()    # the arguments whose elements the kernel changes
        self.arrays = {}        # id of the host array -> traced array
        self.shared = []        # hidden arrays of this kernel
        self.loop_hint = {}
        self.random = None      # the stream of random numbers of the current iteration
        self.ranges = 0
        self.changed_nodes = frozenset()  # sparse nodes whose cells become active or inactive, known from a first trace
        self.read_nodes, self.written_nodes = set(), set()
        self.unmarked = False   # writes activate nothing
        self.parallel = set()   # the `for` statements that became ranges
        self.stopped = []       # arrays whose elements are constants to derivatives here
        self.calls = []         # functions that are being inlined
        self.debug = bool(options and options.debug)
        self.cap = None         # see stack_cap.py
        self.zeros = None       # extent -> a private array of zeros, see linalg.py
        self.made = {}          # id -> (a list or dictionary of the kernel, `depth` where it was made)
        self.dynamic_loop = None  # where the first loop stands that is not a range
        self.check = None       # of the global data access rule, see ad/validation.py

    def constant(self, dtype, number):
        return self.trace.constant(dtype.core, number, self.loc)

    def pure(self, op, dtype, *operands):
        return self.trace.pure(op, dtype.core, list(operands), self.loc)

    @contextmanager
    def unmarking(self):
        """What is written inside activates nothing."""
        before, self.unmarked = self.unmarked, True
        try:
            yield
        finally:
            self.unmarked = before

    @contextmanager
    def nested(self):
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    @contextmanager
    def dry_run(self):
        """What happens inside leaves no statement behind."""
        saved = self.trace, self.loc, dict(self.arrays), len(self.arguments), len(self.shared)
        self.trace = _Nothing()
        self.dry += 1
        try:
            yield
        finally:
            self.dry -= 1
            self.trace, self.loc, self.arrays, arguments, shared = saved
            del self.arguments[arguments:]
            del self.shared[shared:]

    def __enter__(self):
        from costate.ad.state import state
        self.outer = current()
        _state.builder = self
        state.tracing += 1
        return self

    def __exit__(self, *_):
        from costate.ad.state import state
        _state.builder = self.outer
        state.tracing -= 1
