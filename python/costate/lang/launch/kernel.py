"""`@kernel`: compiled for the arguments that it is called with, at the first such call."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from costate.errors import ArgumentCountError, CannotReplay, MissingGradient, QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang.base import callers, declared
from costate.lang.base import options as option_values
from costate.lang.base import runtime, streams, threads
from costate.lang.base import state as ad_state
from costate.lang.base.enums import AutodiffMode
from costate.lang.base.hooks import Hook
from costate.lang.base.remembered import Remembered
from costate.lang.data import storage
from costate.lang.launch import fast
from costate.lang.launch.arguments import Values, aliases_of, bind_numbers, numbers_of, parameter_for
from costate.lang.launch.scalar_slopes import Adjoints, Directions
from costate.lang.launch.similar import Similar
from costate.lang.launch.specialisation import Own, Specialisation
from costate.lang.syntax.source import Source
from costate.lang.trace import plain
from costate.lang.trace.calls import OfTheHost
from costate.lang.trace.frame import Bound
from costate.lang.trace.func import hints_of, refuse_wrapped
from costate.lang.values import random as random_numbers
from costate.lang.values.lifted import lifts

if TYPE_CHECKING:
    from costate import _core
    from costate.lang.launch.arguments import Parameter, Path, Slopes
    from costate.lang.values.builder import Builder


Function = TypeVar("Function")


class SelfParameter:
    """`self` of a kernel of a class."""

    name = "self"

    def bind(self, value: object, values: Values) -> None:
        values.key.append(id(value))
        values.kept.append(value)
        bind_numbers(value, values)

    def trace(self, builder: Builder, value: object, path: Path) -> Bound:
        if lifts(value):
            builder.lifted.add(value, path)
        return Bound(value)


@dataclass(frozen=True)
class CacheObservations:
    """What is known of a kernel in the cache of compiled kernels, by the names of Quadrants."""

    cache_key_generated: bool = False
    cache_validated: bool = False
    cache_loaded: bool = False
    cache_stored: bool = False
    cache_hit: bool = False


#: Makes a kernel that has checkpoints.
pausing: Hook[..., Kernel] = Hook("checkpoints=True")

#: All kernels, and what objects have of them.
_all = threads.Objects()


@runtime.on_reset.add
def _forget() -> None:
    for one in _all:
        one._forget()


class Kernel(OfTheHost):
    """A kernel; calling it launches it. `k.grad(...)` adds its gradient."""

    __name__: str
    __qualname__: str
    no_gradient: bool
    instance: Any = None
    fastcache = False
    #: Of a cache of what is not compiled yet; there is none.
    fe_ll_cache_observations = CacheObservations()
    has_run = False            # or may have
    has_graph_ranges = False   # parallel loops in loops of `graph_do_while`; those of derivatives are serial

    def __init__(self, function: Callable[..., Any], options: dict[str, Any] | None = None) -> None:
        refuse_wrapped(function, "kernel")
        self.options = options or {}
        option_values.check(self.options, f"kernel `{function.__name__}`")
        functools.update_wrapper(self, function)
        self.function = function
        self.place = "_costate_kernel_" + function.__name__   # of what an object keeps of this kernel
        self.cache = Remembered()
        self.tables: dict[int, fast.Table] = {}    # by threads
        self.warned: set[object] = set()   # where
        self.autodiff_mode = AutodiffMode.NONE
        self._source: Source | None = None
        self.signature = inspect.signature(function)
        self.hints: dict[str, Any] = {}
        self.names = tuple(self.signature.parameters)
        self.is_method = _is_method(function)
        self._parameters: list[Parameter] | None = None
        self._check_signature()
        _all.add(self)

    @property
    def original(self) -> Kernel:
        """The kernel that one of an object belongs to."""
        return self

    @property
    def _primal(self) -> Kernel:
        """This kernel, by the name that Quadrants gives it."""
        return self

    def _specialisations(self) -> list[Specialisation]:
        return [variant for one in list(self.original.cache.values()) for variant in (one, *one.others)]

    @property
    def src_ll_cache_observations(self) -> CacheObservations:
        """What the cache had of a kernel with `fastcache` for arguments that are no fields."""
        kept = [one for one in self._specialisations() if self.original.fastcache and one.compiled and not one.fields]
        loaded = any(": from the cache in " in one.report() for one in kept)
        return CacheObservations(bool(kept), loaded, loaded, bool(kept) and not loaded)

    def _forget(self) -> None:
        """Ends what was compiled for the options of `init` so far."""
        self.cache, self.tables, self._parameters = Remembered(), {}, None

    def _check_signature(self) -> None:
        for position, p in enumerate(self.signature.parameters.values()):
            if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                raise QuadrantsSyntaxError("Kernels do not support variable arguments (*args, "
                                           f"**kwargs): `{self.__name__}`")
            if position == 0 and self.is_method:
                continue
            if p.annotation is p.empty:
                raise QuadrantsSyntaxError(f"Kernels parameters must be type annotated: `{p.name}` "
                                           f"of `{self.__name__}`; write `{p.name}: f32` of a number, `types.ndarray()` of "
                                           "an array, `template()` of a field")
            if not isinstance(p.annotation, str):
                parameter_for(p.name, p.annotation, position)  # refuses what it does not know

    @property
    def parameters(self) -> list[Parameter]:
        made = self.original._parameters
        if made is None:
            with threads.lock:
                made = self.original._parameters = self._make_parameters()
        return made

    def _make_parameters(self) -> list[Parameter]:
        hints = self.original.hints = self.original.annotations()
        made = []
        for position, p in enumerate(self.signature.parameters.values()):
            if position == 0 and self.is_method:
                parameter: Parameter = SelfParameter()
                parameter.name = p.name
            else:
                parameter = parameter_for(p.name, hints[p.name], position)
            made.append(parameter)
        return made

    def read_source(self) -> Source:
        """The source of the function."""
        return Source(self.function)

    def annotations(self) -> dict[str, Any]:
        """Those of the parameters and of what it returns."""
        return hints_of(self.function)

    @property
    def source(self) -> Source:
        with threads.lock:
            if self.original._source is None:
                self.original._source = self.original.read_source()
            return self.original._source

    def return_kinds(self) -> tuple[list[Any] | None, bool]:
        """The types of the values that the kernel returns, or None; whether they are a tuple."""
        kind = self.original.hints.get("return")
        if kind is None:
            return None, False
        args = getattr(kind, "__args__", None)
        if args:
            return list(args), True
        is_tuple = isinstance(kind, (tuple, list))
        return list(kind) if is_tuple else [kind], is_tuple

    def __get__(self, instance: Any, owner: type | None) -> Kernel:
        if instance is None:
            return self
        try:
            known = instance.__dict__[self.place]
            if known.original is self and known.owner() is instance:
                return BoundKernel(instance, known)
        except (AttributeError, KeyError):
            pass
        return BoundKernel(instance, self._known(instance))

    def _known(self, instance: Any) -> _Known:
        """What an object keeps of this kernel; if it can keep anything."""
        try:
            known = instance.__dict__[self.place] = _Known(self, weakref.ref(instance))
            return known
        except (AttributeError, TypeError):
            return _Known(self, None)

    def _arguments(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        if self.instance is not None:
            args = (self.instance, *args)
        if options or len(args) != len(self.signature.parameters):
            try:
                bound = self.signature.bind(*args, **options)
            except TypeError as error:
                raise ArgumentCountError.of(self.__name__, error) from None
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        return args

    def specialise(self, args: tuple[Any, ...], numbers: Slopes | None = None, is_derived: bool = False,
                   is_launch: bool = True) -> tuple[Specialisation, Values]:
        """(Specialisation, Values) for arguments; `numbers` knows where numbers come from, if derivatives pass through them.
        `is_derived`: a derivative is wanted, now or later. `is_launch`: what the kernel writes may be written from here on."""
        if plain.active():
            plain.refuse("a derivative or report")
        runtime.runtime()
        declared.use()
        self.original.has_run |= is_launch
        values = self._bound(args, Values(numbers))
        aliases = aliases_of(values.items)
        if aliases:
            values.key.append(tuple(aliases.items()))
        validation = ad_state.validating()
        if validation:
            values.key.append("validation")
        found = self._found(args, values, aliases, validation)
        if is_derived and found.has_graph_ranges:
            values.key.append("serial")
            values.serial = True
            found = self._found(args, values, aliases, validation)
        return found, values

    def _bound(self, args: tuple[Any, ...], values: Values) -> Values:
        """What the parameters make of the arguments."""
        for parameter, given in zip(self.parameters, args):
            before = len(values.items)
            try:
                parameter.bind(given, values)
            except Exception as error:
                _name_argument(error, self.__name__, parameter.name)
                raise
            values.counts.append(len(values.items) - before)
        return values

    def _found(self, args: tuple[Any, ...], values: Values, aliases: dict[int, int] | None, validation: bool) -> Specialisation:
        key = tuple(values.key)
        known = self.original.cache.get(key)
        found = known and known.fitting()
        return self._specialised(key, args, values, aliases, validation) if found is None else found

    def _specialised(self, key: tuple[Any, ...], args: tuple[Any, ...], values: Values, aliases: dict[int, int] | None,
                     validation: bool) -> Specialisation:
        """Compiled by one thread for all."""
        with threads.lock:
            cache = self.original.cache
            known = cache.get(key)
            found = known and known.fitting()
            if found is None:
                references = cache.forgetting(key, values.kept)
                found = Specialisation(self, args, values, aliases, validation, references)
                self.original.has_graph_ranges |= found.has_graph_ranges
                if known:
                    found.replaces(known)
                cache.add(key, found)
            return found

    def _by_position(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...] | None:
        """All arguments by position, or None if it is not that simple."""
        names = self.names[len(args) + (self.instance is not None):]
        if len(names) != len(options) or not all(map(options.__contains__, names)):
            return None
        return (*args, *map(options.__getitem__, names))

    def _launched_again(self, args: tuple[Any, ...], options: dict[str, Any], gradient: str = "") -> fast.Entry | Similar | None:
        """Launches as before, if nothing but numbers has changed and nobody wants to know: what was known, or None."""
        tape = None
        if ad_state.state.loud:
            tape = ad_state.only_tape()
            if tape is None or gradient:
                return None
        if (tape is not None or gradient) and self.original.has_graph_ranges:
            return None
        passed = self._by_position(args, options) if options else args
        return None if passed is None else fast.launch(self, passed, gradient, tape)

    def __call__(self, *args: Any, **options: Any) -> Any:
        again = self._launched_again(args, options)
        if again is not None:
            return again.result()
        if "qd_stream" in options:
            with streams.queued(options.pop("qd_stream")):
                return self(*args, **options)
        args = self._arguments(args, options)
        if plain.active():
            for parameter, given in zip(self.parameters, args):
                parameter.bind(given, Values())     # refuses what it does not take
            return plain.launch(self, args)
        return ad_state.launched(self, args)

    def run(self, args: tuple[Any, ...], mode: str = "primal", initial_state: bool = False, numbers: Slopes | None = None) -> Any:
        """Launches without recording."""
        found, values = self.specialise(args, numbers, mode != "primal", is_launch=mode != "grad")
        try:
            result = found.launch(values, mode, initial_state)
        except CannotReplay:
            if initial_state or self.original.has_run:
                raise
            return found.launch(values, mode, initial_state=True)   # no launch has changed what the arrays hold
        if mode != "jvp":
            fast.table_of(self).add(self, args[self.instance is not None:], found, values)
        return result

    def jvp(self, *args: Any, scalars: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Runs the kernel and pushes the tangents `.dual` through it, and those of float arguments in `scalars`, by name."""
        if "qd_stream" in options:
            with streams.queued(options.pop("qd_stream")):
                return self.jvp(*args, scalars=scalars, **options)
        if not scalars:
            return self.run(self._arguments(args, options), "jvp")
        directions = Directions(scalars)
        found, values = self.specialise(self._arguments(args, options), directions, is_derived=True)
        directions.check(self.__name__)
        return found.launch(values, "jvp")

    def prepared(self, args: tuple[Any, ...], own: Own | None = None) -> tuple[
            _core.Kernel | None, list[Any], Own, list[Callable[[], None]]]:
        """(the compiled `_core.Kernel`, its arguments, what this thread has of it, what happens after the launch), or
        with what another launch had."""
        found, values = self.specialise(args, is_derived=True)
        if own is None:
            own = Own(found.own.arrays, found.seen, numbers_of(values))
            own.key = random_numbers.next_key() if found.needs_random else 0
        elif own.seen is not None and not own.seen.holds() or own.numbers != numbers_of(values):
            raise CannotReplay(f"a member of an object that kernel `{self.__name__}` reads has changed since the launch whose "
                               "derivative is taken; pass it as an argument, or take the derivative before")
        storage.flush()
        passed = found.arguments(values.items, own)
        found.check_hosts(values, passed)
        return found.compiled, passed, own, [*values.after, *(one.check for one in found.blocks)]

    def compiled(self, *args: Any, numbers: Slopes | None = None, **options: Any) -> tuple[_core.Kernel | None, list[Any]]:
        """(the compiled `_core.Kernel`, its arguments) of these arguments."""
        found, arguments = self.bound(*args, numbers=numbers, **options)
        return found.compiled, arguments

    def bound(self, *args: Any, numbers: Slopes | None = None, **options: Any) -> tuple[Specialisation, list[Any]]:
        """What is traced for these arguments, and the arguments of its code."""
        found, values = self.specialise(self._arguments(args, options), numbers, is_derived=True)
        storage.flush()
        return found, found.arguments(values.items)

    def report(self, *args: Any, mode: str = "primal", **options: Any) -> str:
        """What is compiled for these arguments, and of a gradient what each line saves and computes again. Without arguments
        for all that it has been launched with. `mode`: "gradient" or "tangent" compiles that, if no launch has done it yet."""
        if not args and not options and len(self.parameters) > (self.instance is not None):
            return "".join(one.report() for one in self._specialisations()) or f"kernel `{self.__name__}` has not been launched\n"
        found, values = self.specialise(self._arguments(args, options), is_derived=mode != "primal")
        found.compile(values, mode)
        text: str = found.report()
        return text

    def grad(self, *args: Any, initial_state: bool = False, scalars: bool = False, **options: Any) -> dict[str, Any] | None:
        """Adds to the gradients of what the kernel reads, from those of what it writes.

        `initial_state=True`: the arrays hold what they held before the launch whose gradient is
        wanted. Then kernels that overwrite what their gradient needs have one, too. `scalars=True`:
        returns the gradients of float arguments that are numbers, vectors and matrices, by name.
        """
        if getattr(self, "no_gradient", False):
            return None
        try:
            return self._grad(args, initial_state, scalars, options)
        except MissingGradient as error:
            if scalars or "no argument has a gradient" not in str(error):
                raise
            callers.warn(str(error).partition("\n")[0])
            return None

    def _grad(self, args: tuple[Any, ...], initial_state: bool, scalars: bool, options: dict[str, Any]) -> dict[str, Any] | None:
        ad_state.check_gradient_allowed(self)
        if not scalars and self._launched_again(args, options, "gradient_from_start" if initial_state else "gradient"):
            return None
        if "qd_stream" in options:
            with streams.queued(options.pop("qd_stream")):
                return self.grad(*args, initial_state=initial_state, scalars=scalars, **options)
        adjoints = Adjoints(scalars)
        self.run(self._arguments(args, options), "grad", initial_state, adjoints)
        return adjoints.taken()

    def resume(self, *_: Any, **__: Any) -> Any:
        raise QuadrantsRuntimeError(f"`{self.__name__}` has no checkpoints to resume from: they are those of kernels with "
                                    "`graph=True, checkpoints=True`")

    def __repr__(self) -> str:
        return f"<kernel {self.__qualname__}>"


def _name_argument(error: Exception, kernel: str, parameter: str) -> None:
    """An error of an argument says which of which kernel it is."""
    text = error.args[0] if error.args else None
    if isinstance(text, str):
        which = "" if f"`{parameter}`" in text else f", argument `{parameter}`"
        error.args = (callers.in_their_words(f"kernel `{kernel}`{which}: {text}"), *error.args[1:])


class _Known:
    """What an object keeps of launches of its kernels. It is of no use to copies of the object."""

    def __init__(self, original: Kernel, owner: weakref.ref[object] | None) -> None:
        self.original, self.owner = original, owner
        self.tables: dict[int, fast.Table] = {}
        _all.add(self)

    def _forget(self) -> None:
        self.tables = {}

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


class BoundKernel(Kernel):
    """A kernel of an object, which it keeps; the object does not keep it."""

    def __init__(self, instance: Any, known: _Known) -> None:
        self.instance, self.known, self.tables = instance, known, known.tables

    @property
    def original(self) -> Kernel:
        return self.known.original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _is_method(function: Callable[..., Any]) -> bool:
    """Whether a function is defined in a class: by its first parameter and its qualified name."""
    parameters = list(inspect.signature(function).parameters.values())
    parts = function.__qualname__.split(".")
    return (len(parts) > 1 and parts[-2] != "<locals>" and bool(parameters)
            and parameters[0].annotation is inspect.Parameter.empty)


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(*, pure: object = ..., fastcache: bool = ..., graph: bool = ..., gpu_graph: bool = ..., checkpoints: bool = ...,
           debug: bool | None = ..., deterministic: bool | None = ..., fast_math: bool | None = ..., find_nan: bool | None = ...,
           lanes: int | None = ..., tape_budget: int | str | None = ..., gradients: str | None = ...) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Callable[..., Any] | None = None, *, pure: object = None, fastcache: bool = False,
           graph: bool = False, gpu_graph: bool = False, checkpoints: bool = False, debug: bool | None = None,
           deterministic: bool | None = None, fast_math: bool | None = None, find_nan: bool | None = None,
           lanes: int | None = None, tape_budget: int | str | None = None, gradients: str | None = None) -> Any:
    """Makes a kernel of a Python function.

    Parameters are annotated: `ti.f32` and the other types, `ti.types.ndarray()`,
    `ti.template()`, vector types, dataclasses. The outermost `for` loops run in parallel. `debug`, `deterministic`,
    `fast_math`, `find_nan`, `lanes`, `tape_budget` and `gradients` are those of `init`, for this kernel; the other options
    are those of Quadrants, and have no effect: all kernels are kept for the next process, and `fastcache=True` only says that
    `k.src_ll_cache_observations` tells whether one was.
    """
    if checkpoints and not graph:
        raise QuadrantsSyntaxError("`checkpoints=True` is for kernels with `graph=True`")
    own: dict[str, Any] = dict(debug=debug, deterministic=deterministic, fast_math=fast_math, find_nan=find_nan, lanes=lanes,
               tape_budget=tape_budget, gradients=gradients)
    own = {name: value for name, value in own.items() if value is not None}
    make = pausing if checkpoints else Kernel
    kept = bool(fastcache or pure)
    return partial(_made, make, own, kept) if function is None else _made(make, own, kept, function)


def _made(make: Callable[..., Kernel], options: dict[str, Any], fastcache: bool, function: Callable[..., Any]) -> Kernel:
    if inspect.isclass(function) or not callable(function):
        raise QuadrantsSyntaxError("`@kernel` is for functions")
    if isinstance(function, Kernel):
        return function
    made = make(function, options)
    made.fastcache = fastcache
    return made


def pure(function: Function) -> Function:
    """The function: kernels are kept for the next process without being asked to."""
    return function


def data_oriented(cls: Any = None, *, stable_members: bool = False, template_primitives: bool = True) -> Any:
    """Marks a class whose methods are kernels and funcs.

    With `template_primitives=False`, the numbers that its objects hold are arguments of each launch: they change without
    a new compilation, and cannot be `static`. `stable_members` is accepted, and has no effect.
    """
    if cls is None:
        return lambda one: data_oriented(one, stable_members=stable_members, template_primitives=template_primitives)
    cls._data_oriented = True
    cls._template_primitives = bool(template_primitives)
    return cls
