"""`@kernel`: compiled for the arguments that it is called with, at the first such call."""

import functools
import inspect

from costate.ad import state as ad_state
from costate.ad.enums import AutodiffMode
from costate.errors import ArgumentCountError, QuadrantsSyntaxError
from costate.lang import fast, runtime, storage
from costate.lang import random as random_numbers
from costate.lang.arguments import Values, aliases_of, parameter_for
from costate.lang.frame import Bound
from costate.lang.func import hints_of
from costate.lang.source import Source
from costate.lang.specialisation import Specialisation


class SelfParameter:
    """`self` of a kernel of a class."""

    name = "self"

    def bind(self, value, values):
        values.key.append(id(value))
        values.kept.append(value)

    def trace(self, builder, value, path):
        return Bound(value)


class Kernel:
    """A kernel; calling it launches it. `k.grad(...)` adds its gradient."""

    def __init__(self, function, instance=None, like=None):
        self.instance = instance
        if like is not None:
            self.__dict__.update({k: v for k, v in like.__dict__.items()
                                  if k not in ("instance", "grad")})
            self.original = like
            self.table = None
            self.grad = Gradient(self)
            return
        functools.update_wrapper(self, function)
        self.function = function
        self.original = self
        self.cache = {}
        self.table = None
        self.autodiff_mode = AutodiffMode.NONE
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
            if position == 0 and self.is_method:
                continue
            if p.annotation is p.empty:
                raise QuadrantsSyntaxError(f"Kernels parameters must be type annotated: `{p.name}` "
                                           f"of `{self.__name__}`")
            if not isinstance(p.annotation, str):
                parameter_for(p.name, p.annotation, position)  # refuses what it does not know

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
                raise ArgumentCountError(f"`{self.__name__}()`: {error}") from None
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
            before = len(values.items)
            parameter.bind(given, values)
            values.counts.append(len(values.items) - before)
        aliases = aliases_of(values.items)
        if aliases:
            values.key.append(tuple(aliases.items()))
        validation = ad_state.validating()
        if validation:
            values.key.append("validation")
        key = tuple(values.key)
        known = original.cache.get(key)
        found = known and known.fitting()
        if found is None:
            found = Specialisation(self, args, values, aliases, validation)
            if known:
                found.replaces(known)
            original.cache[key] = found
        return found, values

    def __call__(self, *args, **options):
        if not options and ad_state.quiet() and fast.launch(self, args):
            return None
        args = self._arguments(args, options)
        return ad_state.launched(self, args)

    def run(self, args, mode="primal", initial_state=False):
        """Launches without telling tapes."""
        found, values = self.specialise(args)
        result = found.launch(values, mode, initial_state)
        if mode == "primal":
            if self.table is None or self.table.generation != runtime.generation:
                self.table = fast.Table(self)
            self.table.add(self, args[self.instance is not None:], found, values)
        return result

    def jvp(self, *args, **options):
        """Runs the kernel and pushes the tangents `.dual` through it."""
        return self.run(self._arguments(args, options), "jvp")

    def prepared(self, args, key=None):
        """(the compiled `_core.Kernel`, its arguments, the key of its random numbers), a new
        key or that of another launch."""
        found, values = self.specialise(args)
        if key is None and found.needs_random:
            key = random_numbers.next_key()
        storage.flush()
        return found.compiled, found.arguments(values.items, key), key

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

    def __call__(self, *args, initial_state=False, **options):
        """Adds to the gradients of what the kernel reads, from those of what it writes.

        `initial_state=True`: the arrays hold what they held before the launch whose gradient is
        wanted. Then kernels that overwrite what their gradient needs have one, too.
        """
        kernel = self.kernel
        ad_state.check_gradient_allowed(kernel)
        if not (options or initial_state) and ad_state.quiet() and fast.launch(kernel, args, True):
            return None
        return kernel.run(kernel._arguments(args, options), "grad", initial_state)


def _is_method(function):
    """Whether a function is defined in a class: by its first parameter and its qualified name."""
    parameters = list(inspect.signature(function).parameters.values())
    parts = function.__qualname__.split(".")
    return (len(parts) > 1 and parts[-2] != "<locals>" and bool(parameters)
            and parameters[0].annotation is inspect.Parameter.empty)


def kernel(function=None, *, pure=None, fastcache=False, graph=False, checkpoints=False):
    """Makes a kernel of a Python function.

    Parameters are annotated: `ti.f32` and the other types, `ti.types.ndarray()`,
    `ti.template()`, vector types, dataclasses. The outermost `for` loops run in parallel. The options are those of
    Quadrants, and have no effect.
    """
    if function is None:
        return kernel
    if inspect.isclass(function) or not callable(function):
        raise QuadrantsSyntaxError("`@kernel` is for functions")
    if isinstance(function, Kernel):
        return function
    return Kernel(function)


def pure(function):
    """The function: kernels are kept for the next process without being asked to."""
    return function


def data_oriented(cls):
    """Marks a class whose methods are kernels and funcs."""
    cls._data_oriented = True
    return cls
