"""A kernel for certain types and template arguments: traced, compiled and launched."""

import warnings
from functools import partial

from costate.ad.state import state
from costate.errors import Error, RecursiveCall
from costate.lang import dtypes, host_arguments, random, runtime, storage
from costate.lang.arguments import Path, StructParameter
from costate.lang.builder import Builder
from costate.lang.explain import in_python
from costate.lang.expr import is_number, is_scalar
from costate.lang.frame import Bound, Frame
from costate.lang.matrix import Matrix
from costate.lang.results import Results
from costate.lang.stack_cap import StackCap, refuse_loops
from costate.lang.watch import Watch


MOST_VARIANTS = 16


class Again(Exception):
    """The trace has found what it should have known."""

    def __init__(self, **facts):
        super().__init__(facts)
        self.facts = facts


class Specialisation:
    """A kernel for certain types and template arguments."""

    def __init__(self, kernel, args, values, aliases, validation):
        self.kernel = kernel
        self.kept = values.kept
        self.variants = [self]   # this one and those of the same key for other members of objects, the newest first
        self.seed = None
        self.last_key = 0
        options = runtime.runtime().kernel_options()
        self.debug = options.debug
        self.printed = 0         # how many `static_print`s have printed
        self.needs_random, self.shared, self.changed_nodes = False, frozenset(), frozenset()
        while not self._traced(args, values, aliases, options, validation):
            pass

    def fitting(self):
        """The variant for the members that objects have at present, or None."""
        return next((one for one in self.variants if one.seen.holds()), None)

    def replaces(self, known):
        """Another variant was compiled for the same key."""
        self.variants = [self, *known.variants][:MOST_VARIANTS]
        if len(self.variants) == MOST_VARIANTS > len(known.variants):
            warnings.warn(f"kernel `{self.kernel.__name__}` is compiled again whenever a member of an object that it reads is "
                          "replaced, which has happened often: make a parameter of a number that changes, or an element of a "
                          "field", stacklevel=2)

    def _traced(self, *args):
        """Traces, but for what the trace itself tells: whether there are random numbers, which loops are parallel,
        which sparse nodes change. Then it is false, and the next trace knows."""
        try:
            self._trace(*args)
            return True
        except random.NeedsRandom:
            self.needs_random = True
        except Again as found:
            self.__dict__.update(found.facts)
        except RecursiveCall as error:  # without the thousand frames that led there
            raise error.with_traceback(None) from None
        return False

    def _trace(self, args, values, aliases, options, validation):
        source = self.kernel.source
        frame = Frame(self.kernel.function, source)
        frame.kernel = self
        self.returns = Results(self.kernel)
        with Builder(self.kernel.__name__, source.loc(source.node), options) as builder:
            builder.printed, builder.warned = self.printed, self.kernel.original.warned
            builder.shared, builder.changed_nodes, builder.watch = self.shared, self.changed_nodes, Watch()
            if validation:
                from costate.ad.validation import Checker
                builder.check = Checker(builder)
            try:
                path = Path(values.items, aliases or {})
                for parameter, given in zip(self.kernel.parameters, args):
                    frame.bind(parameter.name, parameter.trace(builder, given, path))
                if self.needs_random:
                    key = builder.trace.scalar(dtypes.u64.core)
                    builder.arguments.append(("key",))
                    builder.random_key = key
                    builder.random = random.Stream(builder, key, builder.constant(dtypes.u64, 0))
                limit = runtime.runtime().config.ad_stack_size
                if limit:
                    builder.cap = StackCap(builder, limit)
                self._split_changed(builder, frame)
                from costate.lang.visitor import Visitor
                Visitor(builder, frame).run()
                self._check_facts(builder)
                self.returns.end(frame.returned)
                self.checker, self.cap = builder.check, builder.cap
                self.dynamic_loop = builder.dynamic_loop
                self.order, self.written = self._order(builder.arguments), builder.written
                self.seen = builder.watch.sealed()
                self.compiled = self._finish(builder, options)
            finally:
                self.printed = max(self.printed, builder.prints)
                if hasattr(builder.trace, "abandon"):
                    builder.trace.abandon()

    def _check_facts(self, builder):
        """Whether variables that parallel loops change were known to be hidden arrays, and nodes to change."""
        shared = self.shared | builder.changed_in_range
        nodes = self.changed_nodes | builder.read_nodes & builder.written_nodes
        if shared != self.shared or nodes != self.changed_nodes:
            raise Again(shared=shared, changed_nodes=nodes)

    def _split_changed(self, builder, frame):
        """Parameters that the kernel assigns become variables."""
        structs = {p.name for p in self.kernel.parameters if isinstance(p, StructParameter)}
        for name, found in list(frame.scopes[-1].items()):
            if not isinstance(found, Bound) or not frame.changed_in(name, frame.source.node.body, is_number(found.value)):
                continue
            if is_scalar(found.value) or isinstance(found.value, Matrix):
                frame.bind(name, frame.variable(name, found.value))
            elif name in structs:
                frame.bind(name, found.value.copied(partial(frame.variable, name)))

    def _finish(self, builder, options):
        self.names = [self._name(builder, k) for k in range(len(builder.arguments))]
        try:
            with in_python(self.names):
                return builder.trace.finish(options)
        except Error as error:
            if "is empty" in str(error):
                return None
            raise

    @staticmethod
    def _name(builder, position):
        """What messages call an argument."""
        kind = builder.arguments[position]
        if kind[0] == "companion":
            return f"{builder.labels.get(('value', kind[1]), 'an argument')}.{kind[2]}"
        return builder.labels.get(position, builder.labels.get(kind[:2]))

    @staticmethod
    def _order(arguments):
        """For each argument of the compiled kernel a function of (items, key) that gives it."""
        order = []
        for one in arguments:
            if one[0] == "value":
                order.append(one[1])
            elif one[0] == "storage":
                order.append(one[1].core)
            elif one[0] == "array":
                order.append(lambda array=one[1]: array)
            elif one[0] == "companion":
                order.append((one[1], one[2]))
            else:
                order.append(None)
        return order

    @property
    def plain(self):
        """Whether a launch is nothing but that."""
        return not (self.needs_random or self.checker or self.debug or self.returns or self.cap)

    def arguments(self, items, key):
        return [items[o] if type(o) is int else
                key if o is None else
                getattr(items[o[0]], o[1]) if type(o) is tuple else o()
                for o in self.order]

    def check_gradient(self):
        """What options of `init` have against the gradient."""
        if self.dynamic_loop and runtime.runtime().config.ad_stack_experimental_enabled is False:
            refuse_loops(self.kernel.__name__, self.dynamic_loop)
        if self.cap:
            self.cap.check(self.kernel.__name__)

    # -- launches ------------------------------------------------------------------

    @staticmethod
    def _tell_tape(values):
        """Of tensors of PyTorch."""
        tape = state.tape
        if tape is not None and (not state.hidden or state.keys is not None):
            for tensor in values.tensors.values():
                tape.meet(tensor)

    def launch(self, values, mode, initial_state=False):
        if self.compiled is None:
            return None
        if storage._dirty:
            storage.flush()
        if mode == "grad":
            self.check_gradient()
        elif self.cap:
            self.cap.clear()
        if self.needs_random and mode != "grad":
            self.last_key = random.next_key()
            if state.keys is not None:
                state.keys[self] = self.last_key
        launch = getattr(self.compiled, {"primal": "launch"}.get(mode, mode))
        items = values.items
        if values.tensors:
            from costate.interop.torch import launcher
            launch = launcher(launch)
            self._tell_tape(values)
            items = [values.tensors.get(k, item) for k, item in enumerate(items)]
        args = self.arguments(items, self.last_key)
        if values.hosts and self.written and mode != "grad":
            host_arguments.check(self, values, args)
        with in_python(self.names):
            if initial_state:
                launch(*args, initial_state=True)
            else:
                launch(*args)
        if self.checker is not None:
            self.checker.launched(self, args)
        if self.debug:
            with in_python(self.names):
                runtime.device().synchronize()
        for action in values.after:
            action()
        if self.returns and mode != "grad":
            return self.returns.read()
        return None
