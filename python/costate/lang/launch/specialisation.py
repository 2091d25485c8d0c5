"""A kernel for certain types and template arguments: traced, compiled and launched."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import CannotCapture, CannotReplay, Error, QuadrantsRuntimeTypeError, RecursiveCall
from costate.lang.base import callers, dtypes, profiling, runtime
from costate.lang.base.explain import in_python
from costate.lang.base.state import state, unrecorded
from costate.lang.base.threads import get_ident, lock
from costate.lang.data import storage
from costate.lang.launch import host_arguments
from costate.lang.launch.arguments import Path, StructParameter
from costate.lang.trace.arrays import Hidden
from costate.lang.trace.carried import warn_of_carried
from costate.lang.trace.frame import Bound, Frame
from costate.lang.trace.passed import Companion, Fixed, Item, Met, RandomKey
from costate.lang.trace.results import Results
from costate.lang.trace.stack_cap import StackCap, refuse_loops
from costate.lang.trace.validation import Checker
from costate.lang.trace.visitor import Visitor
from costate.lang.trace.watch import Watch
from costate.lang.values import random
from costate.lang.values.builder import Builder
from costate.lang.values.expr import is_number, is_scalar
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.launch.arguments import Values
    from costate.lang.launch.kernel import Kernel
    from costate.lang.trace.watch import Seen


MOST_VARIANTS = 16
MOST_FRAMES = 4000   # of Python; many more could overflow the stack of C where calls go through it


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Functions are traced where they are called, in several frames each."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, MOST_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Own:
    """What one thread has of a kernel: its hidden arrays, and the key of the random numbers of its last launch; of a launch
    that is kept what it has read of objects, and its numbers."""

    __slots__ = ("arrays", "key", "seen", "numbers")

    def __init__(self, arrays: dict[Hidden, _core.Array], seen: Seen | None = None, numbers: Sequence[float] = ()) -> None:
        self.arrays, self.key, self.seen, self.numbers = arrays, 0, seen, numbers


class Specialisation:
    """A kernel for certain types and template arguments. It keeps no object alive whose identity is in its key."""

    def __init__(self, kernel: Kernel, args: tuple[Any, ...], values: Values, aliases: dict[int, int] | None,
                 validation: bool, references: list[Any]) -> None:
        runtime.runtime().compiled += 1
        self.name = kernel.__name__
        self.references = references   # see `Remembered`
        self.keyed = set(map(id, values.kept))
        self.owns: dict[int, Own] = {}      # by threads
        self.others: list[Specialisation] = []         # those of the same key for other members of objects, the newest first
        options = runtime.runtime().kernel_options(kernel.original.options)
        self.debug = options.debug
        runtime.device()   # on which launches without arrays run
        try:
            with profiling.span(f"trace {self.name}"), _deep_calls():
                if not self._trace(kernel, args, values, aliases, options, validation, values.serial):
                    self._trace(kernel, args, values, aliases, options, validation, True)
        except RecursiveCall as error:  # without the thousand frames that led there
            raise error.with_traceback(None) from None

    def fitting(self) -> Specialisation | None:
        """This one, or another variant, for the members that objects have at present, or None."""
        return next((one for one in (self, *self.others) if one.seen.holds()), None)

    def replaces(self, known: Specialisation) -> None:
        """Another variant was compiled for the same key."""
        before = len(known.others)
        self.others, known.others = [known, *known.others][:MOST_VARIANTS - 1], []
        if len(self.others) == MOST_VARIANTS - 1 > before:
            callers.warn(f"kernel `{self.name}` is compiled again whenever a member of an object that it reads is "
                         "replaced, which has happened often: make a parameter of a number that changes, or an element of a field")

    def _trace(self, kernel: Kernel, args: tuple[Any, ...], values: Values, aliases: dict[int, int] | None,
               options: _core.KernelOptions, validation: bool, serial: bool) -> bool:
        """Whether this is what runs: where random numbers are drawn, loops in those of `graph_do_while` have to be serial, as those
        of a range are the same each time that it runs."""
        source = kernel.source
        frame = Frame(kernel.function, source)
        frame.kernel = self
        self.returns = Results(kernel)
        with Builder(self.name, source.loc(source.node), options) as builder:
            builder.warned, builder.watch = kernel.original.warned, Watch()
            builder.in_their_words = source.in_their_words
            builder.has_serial_graphs = serial
            if validation:
                builder.check = Checker(builder)
            try:
                self._trace_parameters(kernel, args, Path(values.items, aliases or {}), frame, builder)
                Visitor(builder, frame).run()
                if builder.has_drawn and builder.has_graph_ranges:
                    return False
                self.returns.end(frame.returned)
                self._note(builder)
                self.compiled = self._finish(builder, frame, options)
                return True
            finally:
                builder.trace.abandon()

    def _trace_parameters(self, kernel: Kernel, args: tuple[Any, ...], path: Path, frame: Frame, builder: Builder) -> None:
        """What stands in front of the body."""
        for parameter, given in zip(kernel.parameters, args):
            frame.bind(parameter.name, parameter.trace(builder, given, path))
        if frame.effects(frame.source.node.body).draws:
            builder.random_key = builder.trace.scalar(dtypes.u64.core)
            builder.arguments.append(RandomKey())
            builder.random = random.Stream(builder, builder.random_key, builder.constant(dtypes.u64, 0))
        limit = runtime.runtime().config.ad_stack_size
        if limit:
            builder.cap = StackCap(builder, limit)
        self._split_changed(kernel, frame)

    def _note(self, builder: Builder) -> None:
        """What launches need to know."""
        self.needs_random, self.has_graph_ranges = builder.has_drawn, builder.has_graph_ranges
        self.checks, self.cap = builder.check is not None, builder.cap and builder.cap.closed()
        self.dynamic_loop, self.blocks = builder.dynamic_loop, tuple(builder.blocks)
        self.seen = builder.watch.sealed()
        self.keyed |= self.seen.objects()
        self.order, self.written = self._order(builder.arguments), builder.written
        self.read, self.has_told = tuple(k for k in builder.read if not isinstance(builder.arguments[k], Hidden)), False

    @staticmethod
    def _split_changed(kernel: Kernel, frame: Frame) -> None:
        """Parameters that the kernel assigns become variables."""
        structs = {p.name for p in kernel.parameters if isinstance(p, StructParameter)}
        for name, found in list(frame.scopes[-1].items()):
            if not isinstance(found, Bound) or not frame.changed_in(name, frame.source.node.body, is_number(found.value)):
                continue
            if is_scalar(found.value) or isinstance(found.value, Matrix):
                frame.bind(name, frame.variable(name, found.value))
            elif name in structs:
                frame.bind(name, found.value.copied(partial(frame.variable, name)))

    def _finish(self, builder: Builder, frame: Frame, options: _core.KernelOptions) -> _core.Kernel | None:
        self.names = [self._name(builder, k) for k in range(len(builder.arguments))]
        if builder.is_empty:
            return None
        with in_python(self.names):
            made: _core.Kernel = builder.trace.finish(options)
        warn_of_carried(builder, frame, self.names)
        return made

    @staticmethod
    def _name(builder: Builder, position: int) -> str | None:
        """What messages call an argument."""
        one = builder.arguments[position]
        if isinstance(one, Companion):
            return f"{one.of.name}.{one.which}"
        return builder.labels.get(position) or (one.name if isinstance(one, Item) else None)

    def _order(self, arguments: list[Any]) -> list[Any]:
        """Where each argument of the compiled kernel comes from: the position of an item, or a function of the items and
        of what the thread has."""
        self.fields: list[Any] = []
        self.hidden: list[Hidden] = []
        return [self._origin(one) for one in arguments]

    def _origin(self, one: Any) -> Any:
        if isinstance(one, Item):
            return one.position
        if isinstance(one, Companion):
            return lambda items, own: getattr(items[one.of.position], one.which)
        if isinstance(one, Met):
            return self._field(self._holder(one.storage))
        if isinstance(one, Hidden):
            self.hidden.append(one)
            return lambda items, own: own.arrays[one]
        return (lambda items, own: one.array) if isinstance(one, Fixed) else lambda items, own: own.key

    def _field(self, holder: Any) -> Any:
        self.fields.append(holder)
        return lambda items, own: holder().core()

    def _holder(self, array: Any) -> Any:
        """A function that returns a field; of one in the key a reference, with which this ends."""
        owner = array
        while hasattr(owner, "which"):
            owner = owner.owner()
        return weakref.ref(array) if id(owner) in self.keyed or id(array) in self.keyed else lambda: array

    @property
    def own(self) -> Own:
        """What this thread has."""
        return self.owns.get(get_ident()) or self._make_own()

    def _make_own(self) -> Own:
        with lock:
            made = self.owns[get_ident()] = Own({one: one.make() for one in self.hidden})
        return made

    @property
    def plain(self) -> bool:
        """Whether a launch is nothing but that, and what the kernel returns."""
        return not (self.needs_random or self.checks or self.debug or self.cap)

    def arguments(self, items: list[Any], own: Own | None = None) -> list[Any]:
        """Those of a launch, from what the parameters are given and what a thread has."""
        own = own or self.own
        return [items[one] if type(one) is int else one(items, own) for one in self.order]

    def check_gradient(self) -> None:
        """What options of `init` have against the gradient."""
        if self.dynamic_loop and runtime.runtime().config.ad_stack_experimental_enabled is False:
            refuse_loops(self.name, self.dynamic_loop)
        if self.cap:
            self.cap.check(self.name, self.own.arrays)

    def names_read(self) -> list[str]:
        """Those of the arrays of floats that the kernel reads."""
        return [f"`{self.names[k]}`" for k in self.read if self.names[k]]

    def tell_of_no_gradients(self, args: list[Any]) -> None:
        """Once, of gradients that go nowhere."""
        self.has_told = True
        if self.read and any(one.has_grad for one in args if isinstance(one, _core.Array)) and not any(
                args[k].has_grad for k in self.read):
            callers.warn(f"the gradient of kernel `{self.name}` goes nowhere: none of the arrays that it reads "
                         f"({', '.join(self.names_read()) or 'fields'}) has one; make them with `needs_grad=True`")

    def check_hosts(self, values: Values, args: list[Any]) -> None:
        """What launches with arrays of NumPy would lose."""
        if values.hosts and self.written:
            host_arguments.check(self, values, args)

    def compile(self, values: Values, mode: str) -> None:
        """Makes the code of a mode, and launches nothing."""
        launch = {"primal": None, "gradient": "grad", "tangent": "jvp"}.get(mode, "")
        if launch == "":
            raise QuadrantsRuntimeTypeError(f"there is no mode {mode!r} of a kernel; there are \"primal\", \"gradient\" and "
                                            "\"tangent\"")
        if self.compiled is None or launch is None:
            return
        storage.flush()
        args = self.arguments(values.items)
        run = getattr(self.compiled, launch)

        def capture() -> None:
            with in_python(self.names), suppress(CannotCapture, CannotReplay):
                runtime.device().capture(lambda: run(*args))
        unrecorded(capture)

    def report(self) -> str:
        """What is compiled."""
        if self.compiled is None:
            return f"kernel `{self.name}` does nothing\n"
        text: str = self.compiled.report()
        return text

    # -- launches ------------------------------------------------------------------

    @staticmethod
    def _tell_tape(values: Values) -> None:
        """Of tensors of PyTorch."""
        tape = state.tape
        if tape is not None and (not state.hidden or state.keys is not None):
            for tensor in values.tensors.values():
                tape.meet(tensor)

    @contextmanager
    def enough_blocks(self) -> Iterator[None]:
        """Around a launch that may need blocks of sparse fields."""
        try:
            yield
        except BaseException:
            with suppress(Error):   # of a device that is lost
                for one in self.blocks:
                    one.free_taken()
            raise
        if state.capture is None:
            for one in self.blocks:
                one.check()

    def launch(self, values: Values, mode: str, initial_state: bool = False) -> Any:
        if self.compiled is None:
            return None
        if state.capture is not None:
            state.capture.meet(self, values, mode)
        if storage._dirty:
            storage.flush()
        me = get_ident()
        own = self.owns.get(me) or self._make_own()
        for holder in self.fields:
            field = holder()
            if field._user != me:
                storage.claim(field)
        if mode == "grad":
            self.check_gradient()
        elif self.cap:
            self.cap.clear(own.arrays)
        if self.needs_random and mode != "grad":
            own.key = random.next_key()
            if state.keys is not None:
                state.keys[self] = own.key
        launch = getattr(self.compiled, {"primal": "launch"}.get(mode, mode))
        items = values.items
        if values.tensors:
            from costate.interop.tensors import launcher
            launch = launcher(launch)
            self._tell_tape(values)
            items = [values.tensors.get(k, item) for k, item in enumerate(items)]
        args = self.arguments(items, own)
        if mode != "grad":
            self.check_hosts(values, args)
        elif not (self.has_told or values.tensors):
            self.tell_of_no_gradients(args)
        with self.enough_blocks(), in_python(self.names):
            if initial_state:
                launch(*args, initial_state=True)
            else:
                launch(*args)
        if (self.debug or self.checks) and state.capture is None:
            with in_python(self.names):
                runtime.device().synchronize()
        for action in values.after:
            action()
        if self.returns and mode != "grad":
            return self.returns.read(own.arrays)
        return None
