"""`@kernel`: compiled for the arguments that it is called with, at the first such call."""

import functools
import inspect

import numpy as np

from costate import _core
from costate.ad import state as ad_state
from costate.errors import (CompilationError, Error, QuadrantsRuntimeError, QuadrantsSyntaxError,
                            QuadrantsTypeError)
from costate.lang import calls, dtypes, random, runtime, storage
from costate.lang.annotations import CompoundType
from costate.lang.arguments import Path, Values, aliases_of, parameter_for
from costate.lang.builder import Builder
from costate.lang.expr import Expr, is_scalar
from costate.lang.frame import Bound, Frame
from costate.lang.func import hints_of
from costate.lang.matrix import Matrix
from costate.lang.places import Element, TracedArray
from costate.lang.scan import shared_names
from costate.lang.source import Source
from costate.lang.statements import located


class SelfParameter:
    """`self` of a kernel of a class."""

    name = "self"

    def bind(self, value, values):
        values.key.append(id(value))
        values.kept.append(value)

    def trace(self, builder, value, path):
        return Bound(value)


class Specialisation:
    """A kernel for certain types and template arguments."""

    def __init__(self, kernel, args, values, aliases, validation):
        self.kernel = kernel
        self.kept = values.kept
        self.returns = []        # (array, dtype, shape) of what the kernel returns
        self.result = None
        self.seed = None
        self.last_key = 0
        options = runtime.runtime().kernel_options()
        self.debug = options.debug
        try:
            self._trace(args, values, aliases, options, False, validation)
        except random.NeedsRandom:
            self.returns = []
            self._trace(args, values, aliases, options, True, validation)

    def _trace(self, args, values, aliases, options, needs_random, validation):
        source = self.kernel.source
        frame = Frame(self.kernel.function, source)
        frame.kernel = self
        frame.shared = shared_names(source.node)
        self.needs_random = needs_random
        with Builder(self.kernel.__name__, source.loc(source.node), options) as builder:
            if validation:
                from costate.ad.validation import Checker
                builder.check = Checker(builder)
            try:
                path = Path(values.items, aliases or {})
                for parameter, given in zip(self.kernel.parameters, args):
                    frame.bind(parameter.name, parameter.trace(builder, given, path))
                if needs_random:
                    key = builder.trace.scalar(dtypes.u64.core)
                    builder.arguments.append(("key",))
                    builder.random_key = key
                    builder.random = random.Stream(builder, key, builder.constant(dtypes.u64, 0))
                self._split_changed(builder, frame)
                from costate.lang.visitor import Visitor
                Visitor(builder, frame).run()
                self.checker = builder.check
                self.order = self._order(builder.arguments)
                self.compiled = self._finish(builder, options)
            finally:
                if hasattr(builder.trace, "abandon"):
                    builder.trace.abandon()

    def _split_changed(self, builder, frame):
        """Parameters that the kernel assigns become variables."""
        from costate.lang.places import variable_for
        for name, found in list(frame.scopes[-1].items()):
            if isinstance(found, Bound) and (
                    is_scalar(found.value) or isinstance(found.value, Matrix)) and \
                    frame.changed_in(name, frame.source.node.body):
                frame.bind(name, variable_for(found.value))

    def _finish(self, builder, options):
        try:
            return builder.trace.finish(options)
        except Error as error:
            if "is empty" in str(error):
                return None
            raise

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

    def arguments(self, items, key):
        return [items[o] if type(o) is int else
                key if o is None else
                getattr(items[o[0]], o[1]) if type(o) is tuple else o()
                for o in self.order]

    # -- return values -------------------------------------------------------------

    def traced_return(self, builder, value):
        kinds = self.kernel.return_kinds()
        values = value if isinstance(value, tuple) else (value,)
        if kinds is None:
            raise QuadrantsSyntaxError("a kernel that returns a value has a return type: "
                                       f"`def {self.kernel.__name__}(...) -> ti.f32:`")
        if len(values) != len(kinds):
            raise QuadrantsSyntaxError(f"the kernel returns {len(values)} values, and its type says "
                                       f"{len(kinds)}")
        for one, kind in zip(values, kinds):
            self.returns.append(self._store_result(builder, one, kind))
        self.is_tuple = self.kernel.returns_tuple

    def _store_result(self, builder, value, kind):
        if isinstance(kind, CompoundType):
            value = value if isinstance(value, Matrix) else Matrix(value)
            if value.shape != kind.shape:
                raise QuadrantsTypeError(f"the kernel returns a vector or matrix of shape "
                                         f"{value.shape}, and its type says {kind!r}")
            shape, dtype, entries = kind.shape, kind.dtype or dtypes.defaults.fp, value.entries
        else:
            if not is_scalar(value):
                raise QuadrantsTypeError(f"the kernel returns {value!r}, and its type says {kind}")
            shape, dtype, entries = (), dtypes.cook(kind), [value]
        host = calls.hidden_array(dtype, (len(entries),))
        array = TracedArray(dtype, 1, (), (len(entries),))
        builder.arguments.append(("array", host))
        for k, e in enumerate(entries):
            Element(array, [builder.constant(dtypes.i64, k)]).set(
                e if isinstance(e, Expr) else dtypes.convert_number(e, dtype))
        return host, dtype, shape

    def read_results(self):
        results = []
        for array, dtype, shape in self.returns:
            numbers = [x.item() for x in array.to_numpy()]
            results.append(Matrix.of(numbers, shape) if shape else numbers[0])
        return tuple(results) if self.is_tuple else results[0]

    # -- launches ------------------------------------------------------------------

    def launch(self, values, mode):
        if self.compiled is None:
            return None
        if storage._dirty:
            storage.flush()
        if self.needs_random and mode != "grad":
            self.last_key = random.next_key()
        args = self.arguments(values.items, self.last_key)
        compiled = self.compiled
        if mode == "primal":
            compiled.launch(*args)
        elif mode == "grad":
            compiled.grad(*args)
        else:
            compiled.jvp(*args)
        if self.checker is not None:
            self.checker.launched(self, args)
        if self.debug:
            runtime.device().synchronize()
        for action in values.after:
            action()
        if self.returns and mode != "grad":
            return self.read_results()
        return None


class Kernel:
    """A kernel; calling it launches it. `k.grad(...)` adds its gradient."""

    def __init__(self, function, instance=None, like=None):
        self.instance = instance
        if like is not None:
            self.__dict__.update({k: v for k, v in like.__dict__.items()
                                  if k not in ("instance", "grad")})
            self.original = like
            self.grad = Gradient(self)
            return
        functools.update_wrapper(self, function)
        self.function = function
        self.original = self
        self.cache = {}
        self.generation = None
        self._source = None
        signature = inspect.signature(function)
        self.hints = None
        self.signature = signature
        self.is_method = _is_method(function)
        self._parameters = None
        self.grad = Gradient(self)
        self._check_signature()

    def _check_signature(self):
        for position, p in enumerate(self.signature.parameters.values()):
            if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                raise QuadrantsSyntaxError("Kernels do not support variable arguments (*args, "
                                           f"**kwargs): `{self.__name__}`")
            if p.annotation is p.empty and not (position == 0 and self.is_method):
                raise QuadrantsSyntaxError(f"Kernels parameters must be type annotated: `{p.name}` "
                                           f"of `{self.__name__}`")

    @property
    def parameters(self):
        if self.original._parameters is None:
            self.original._parameters = self._make_parameters()
        return self.original._parameters

    def _make_parameters(self):
        hints = self.original.hints = hints_of(self.function)
        made = []
        for position, p in enumerate(self.signature.parameters.values()):
            if position == 0 and self.is_method:
                parameter = SelfParameter()
                parameter.name = p.name
            else:
                parameter = parameter_for(p.name, hints[p.name], position)
            made.append(parameter)
        return made

    @property
    def source(self):
        if self.original._source is None:
            self.original._source = Source(self.function)
        return self.original._source

    def return_kinds(self):
        """The types of the values that the kernel returns, or None."""
        kind = self.original.hints.get("return")
        if kind is None:
            return None
        args = getattr(kind, "__args__", None)
        self.returns_tuple = bool(args) or isinstance(kind, (tuple, list))
        if args:
            return list(args)
        return list(kind) if isinstance(kind, (tuple, list)) else [kind]

    def __get__(self, instance, owner):
        if instance is None:
            return self
        name = "_costate_kernel_" + self.__name__
        bound = instance.__dict__.get(name) if hasattr(instance, "__dict__") else None
        if bound is None or bound.original is not self:
            bound = Kernel(self.function, instance, self)
            try:
                instance.__dict__[name] = bound
            except (AttributeError, TypeError):
                pass
        return bound

    def _arguments(self, args, options):
        if self.instance is not None:
            args = (self.instance, *args)
        if options or len(args) != len(self.signature.parameters):
            try:
                bound = self.signature.bind(*args, **options)
            except TypeError as error:
                raise QuadrantsTypeError(f"`{self.__name__}()`: {error}") from None
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        return args

    def specialise(self, args):
        """(Specialisation, Values) for arguments."""
        original = self.original
        runtime.runtime()
        if original.generation != runtime.generation:
            original.cache, original.generation = {}, runtime.generation
            original._parameters = None
        values = Values()
        for parameter, given in zip(self.parameters, args):
            parameter.bind(given, values)
        aliases = aliases_of(values.items)
        if aliases:
            values.key.append(tuple(aliases.items()))
        validation = ad_state.validating()
        if validation:
            values.key.append("validation")
        key = tuple(values.key)
        found = original.cache.get(key)
        if found is None:
            found = Specialisation(self, args, values, aliases, validation)
            original.cache[key] = found
        return found, values

    def __call__(self, *args, **options):
        args = self._arguments(args, options)
        return ad_state.launched(self, args)

    def run(self, args, mode="primal"):
        """Launches without telling tapes."""
        found, values = self.specialise(args)
        return found.launch(values, mode)

    def jvp(self, *args, **options):
        """Runs the kernel and pushes the tangents `.dual` through it."""
        return self.run(self._arguments(args, options), "jvp")

    def compiled(self, *args, **options):
        """(the compiled `_core.Kernel`, its arguments) of these arguments."""
        found, values = self.specialise(self._arguments(args, options))
        storage.flush()
        return found.compiled, found.arguments(values.items, found.last_key)

    def report(self, *args, **options):
        """What is compiled, what the gradient saves and computes again; see `ad.report`."""
        return self.compiled(*args, **options)[0].report()

    def __repr__(self):
        return f"<kernel {self.__qualname__}>"


class Gradient:
    """`k.grad`: the gradient launch of a kernel."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, *args, **options):
        """Adds to the gradients of what the kernel reads, from those of what it writes."""
        kernel = self.kernel
        ad_state.check_gradient_allowed(kernel)
        return kernel.run(kernel._arguments(args, options), "grad")


def _is_method(function):
    """Whether a function is defined in a class: by its first parameter and its qualified name."""
    parameters = list(inspect.signature(function).parameters.values())
    parts = function.__qualname__.split(".")
    return (len(parts) > 1 and parts[-2] != "<locals>" and bool(parameters)
            and parameters[0].annotation is inspect.Parameter.empty)


def kernel(function=None, **options):
    """Makes a kernel of a Python function.

    Parameters are annotated: `ti.f32` and the other types, `ti.types.ndarray()`,
    `ti.template()`, vector types, dataclasses. The outermost `for` loops run in parallel.
    """
    if function is None:
        return lambda f: kernel(f, **options)
    if inspect.isclass(function) or not callable(function):
        raise QuadrantsSyntaxError("`@kernel` is for functions")
    if isinstance(function, Kernel):
        return function
    return Kernel(function)


def data_oriented(cls):
    """Marks a class whose methods are kernels and funcs."""
    cls._data_oriented = True
    return cls
