"""The kernel that this thread traces, and where in the source it stands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from warnings import warn_explicit

from costate import _core
from costate.errors import QuadrantsCompilationError, QuadrantsRuntimeError
from costate.lang.base.state import state
from costate.lang.values.lifted import Lifted

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType

_state = threading.local()
_registries: dict[Any, Any] = {}   # file -> what Python knows of its warnings


def current() -> Builder | None:
    """The builder of the kernel that this thread traces, or None."""
    return getattr(_state, "builder", None)


class NoKernel(QuadrantsRuntimeError):
    """What is only possible in a kernel was tried elsewhere."""


def scanned(source: object) -> dict[Any, Any]:
    """What this kernel keeps of a source; nothing without one."""
    b = current()
    return {} if b is None else b.scanned.setdefault(source, {})


def require(what: str) -> Builder:
    builder = current()
    if builder is None:
        raise NoKernel(f"{what} is only possible in a kernel")
    return builder


#: What a trace does that is no mere computing.
_ACTS = {"declare_local", "store_local", "declare_shared", "update_shared", "group", "store", "update", "fetch", "exchange", "compare_exchange",
         "print", "check"}


class _Nothing:
    """Takes the place of a trace to learn the types of an expression, and whether it `acts`."""

    def __init__(self) -> None:
        self.acts = False

    def assign(self, variable: Any, *_: Any) -> int:
        """What is declared meanwhile is 0."""
        self.acts |= variable != 0
        return 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.acts |= name in _ACTS
        if name == "begin_range":
            return lambda extents, loc: [0] * len(extents)
        return lambda *args: 0


class Builder:
    """Wraps `_core.Trace`: keeps the place, finds arguments for arrays that are met."""

    def __init__(self, name: str, loc: _core.Loc, options: _core.KernelOptions | None = None) -> None:
        self.name = name
        self.trace = _core.Trace(name, loc)
        self.loc = loc
        self.dry = 0
        self.depth = 0          # of runtime control flow around the current statement
        self.graph_depth = 0    # of that, of loops over counters of graphs
        self.has_serial_graphs = False     # loops in them are serial
        self.has_graph_ranges = False      # some are not
        self.branches = 0       # around the current statement, of conditions that are known
        self.in_range = False
        self.arguments: list[Any] = []     # what each argument of the kernel is, see kernel.py
        self.lifted = Lifted()  # numbers of objects that are arguments
        self.labels: dict[int, str | None] = {}        # names of arguments, for messages
        self.watch: Any = None       # of objects of Python whose members are read, see watch.py
        self.written: set[int] = set()    # the arguments whose elements the kernel changes
        self.read: dict[int, None] = {}   # those whose elements it reads, if these are floats
        self.arrays: dict[Any, Any] = {}        # id of the host array -> traced array
        self.loop_hint: dict[Any, Any] = {}
        self.has_drawn = False  # random numbers
        self.has_tiles = False  # of warps
        self.random_key: _core.Value | None = None
        self.random: Any = None      # the stream of random numbers of the current work item
        self.ranges = 0
        self.changed_nodes: Any = frozenset()  # sparse nodes, by identity, whose cells the current parallel loop changes
        self.unmarked = False   # writes activate nothing
        self.blocks: set[Any] = set()      # of which the kernel may need more, see blocks.py
        self.cell: Any = None              # of a sparse field, that a loop is at
        self.from_start: dict[Any, Any] = {}    # {(identity of a loop variable, the first index): the handle from 0}
        self.stopped: list[Any] = []       # arrays whose elements are constants to derivatives here
        self.calls: list[Any] = []         # functions that are being inlined
        self.debug = bool(options and options.debug)
        self.deterministic = bool(options and options.deterministic)
        self.cap: Any = None         # see stack_cap.py
        self.zeros: Any = None       # extent -> a private array of zeros, see linalg.py
        self.made: dict[Any, Any] = {}          # id -> (a list or dictionary of the kernel, `depth` where it was made)
        self.dynamic_loop: Any = None  # where the first loop stands that is not a range
        self.scanned: dict[Any, dict[Any, Any]] = {}   # what is known of sources, while names mean what they mean now
        self.warned: set[object] = set()     # places of which the kernel has warned
        self.in_their_words: Callable[[str], str] = str    # a message about `ti.name`
        self.check: Any = None       # of the global data access rule, see ad/validation.py

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to run."""
        return bool(self.trace.is_empty)

    def constant(self, dtype: DataType, number: float) -> _core.Value:
        return self.trace.constant(dtype.core, number, self.loc)

    def pure(self, op: _core.Op, dtype: DataType, *operands: _core.Value) -> _core.Value:
        return self.trace.pure(op, dtype.core, list(operands), self.loc)

    def changes(self, variable: Any) -> None:
        """A variable changes. One from outside of the range around it has become an array, in front of the range."""
        if self.in_range and not variable.in_range and variable.owner and not self.dry:
            raise QuadrantsCompilationError(f"`{variable.owner[1]}` is a variable from outside of a parallel loop, which changes it "
                                            "by way of an object of Python; assign it by its name, or use a field of shape ()")

    def warn(self, text: str) -> None:
        """Warns, once for each place."""
        place = self.loc.file, self.loc.line, self.loc.column
        if not self.dry and place not in self.warned:
            self.warned.add(place)
            warn_explicit(self.in_their_words(text), UserWarning, *place[:2], registry=_registries.setdefault(place[0], {}))

    @contextmanager
    def unmarking(self) -> Iterator[None]:
        """What is written inside activates nothing."""
        before, self.unmarked = self.unmarked, True
        try:
            yield
        finally:
            self.unmarked = before

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    @contextmanager
    def dry_run(self) -> Iterator[_Nothing]:
        """What happens inside leaves no statement behind."""
        saved = self.trace, self.loc, dict(self.arrays), len(self.arguments)
        nothing = _Nothing()
        self.trace = cast("_core.Trace", nothing)
        self.dry += 1
        try:
            yield nothing
        finally:
            self.dry -= 1
            if self.dry and nothing.acts:
                cast("_Nothing", saved[0]).acts = True
            self.trace, self.loc, self.arrays, arguments = saved
            del self.arguments[arguments:]

    def act(self) -> None:
        """In a dry run, instead of something that is no mere computing."""
        cast("_Nothing", self.trace).acts = True

    def __enter__(self) -> Builder:
        self.outer = current()
        _state.builder = self
        state.tracing += 1
        state.listen()
        return self

    def __exit__(self, *_: object) -> None:
        _state.builder = self.outer
        state.tracing -= 1
        state.listen()
        self._forget()

    def _forget(self) -> None:
        """What is traced lets go of arrays; else they would live until Python looks for cycles."""
        for traced in self.arrays.values():
            if hasattr(traced, "make_companion"):
                traced.host = traced.make_companion = None
        for one in (self.arrays, self.arguments, self.made, self.stopped, self.calls, self.from_start):
            one.clear()
