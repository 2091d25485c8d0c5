"""`@func`: functions that become part of the kernels that call them."""

from __future__ import annotations

import ast
import functools
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from costate.errors import ArgumentCountError, QuadrantsNameError, QuadrantsSyntaxError, QuadrantsTypeError, RecursiveCall
from costate.lang.analysis.scan import arguments_of, calls_methods
from costate.lang.base import dtypes
from costate.lang.base.callers import in_their_words
from costate.lang.data.annotations import CompoundType, NdarrayType, template, without_none
from costate.lang.data.struct import Struct
from costate.lang.syntax.source import Source
from costate.lang.trace import early, plain
from costate.lang.trace.arrays import Element
from costate.lang.trace.early import returns_early
from costate.lang.trace.frame import Bound, Frame, Given
from costate.lang.trace.places import Group
from costate.lang.values import arith
from costate.lang.values.builder import scanned
from costate.lang.values.describe import describe
from costate.lang.values.expr import NUMBERS, Expr, is_number, is_scalar, value_of
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.trace.visitor import Visitor

MOST_CALLS, MOST_EQUAL_CALLS = 64, 4


def _known(value: Any) -> Any:
    """What of an argument is known while the kernel is compiled."""
    if isinstance(value, (tuple, list)):
        return [_known(one) for one in value]
    if isinstance(value, Matrix):
        return value.shape
    if isinstance(value, (*NUMBERS, str, type(None))):
        return type(value), repr(value)
    is_of_run_time = isinstance(value, Expr) or hasattr(value, "get") and hasattr(value, "set")
    return (type(value), repr(getattr(value, "dtype", None))) if is_of_run_time else id(value)


def _through(calls: list[Any], call: tuple[Any, ...]) -> str:
    """Which other functions stand between two equal calls."""
    last = len(calls) - 1 - calls[::-1].index(call)
    names = dict.fromkeys(f"`{function.__name__}`" for function, _ in calls[last + 1:])
    return f" through {', '.join(names)}" if names else ""


def hints_of(function: Any) -> dict[Any, Any]:
    """The annotations of a function, evaluated."""
    raw = getattr(function, "__annotations__", {})
    names = {**function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            pass
    try:
        return {k: eval(v, names) if isinstance(v, str) else v for k, v in raw.items()}
    except NameError as error:
        raise QuadrantsNameError(f"{error}, in the annotations of `{function.__name__}`") from None


def _mismatch(wanted: CompoundType, value: Any) -> str:
    """Where the shape of a vector or matrix differs from that of a parameter."""
    given = value.shape if isinstance(value, Matrix) else ()
    for n, want, have in zip("nm", wanted.shape, given):
        if want != have:
            return f": it is expected to be a Matrix with {n} {want}, but got {have}"
    return f", but {describe(value)}"


def _may_change(frame: Frame, name: str) -> bool:
    """Whether a function may change what it has under a name, methods of that too."""
    node = frame.source.node
    return frame.changed_in(name, node.body) or calls_methods(node, name)


def is_template(annotation: Any) -> bool:
    return annotation is template or isinstance(annotation, template)


def refuse_wrapped(function: Any, what: str) -> None:
    """Decorators below ours: what is compiled is the source of the function itself."""
    if hasattr(function, "__wrapped__"):
        raise QuadrantsSyntaxError(in_their_words(f"`{function.__name__}` is decorated by something below `@ti.{what}`, which has no "
                                                  f"effect on what is compiled; put that decorator above `@ti.{what}`"))


class _Read:
    """What is read of a function once, for all objects of which it is a method."""

    source: Any = None
    hints: Any = None


class Func:
    """A function of the kernel language."""

    __name__: str

    def __init__(self, function: Any, instance: Any = None, like: Any = None) -> None:
        self.function = function
        self.instance = instance
        if like is not None:
            self.__dict__.update({k: v for k, v in like.__dict__.items() if k != "instance"})
            return
        refuse_wrapped(function, "func")
        functools.update_wrapper(self, function)
        self.read = _Read()
        self.requires_top_level = False
        self.parameters = list(inspect.signature(function).parameters.values())

    @property
    def hints(self) -> Any:
        if self.read.hints is None:
            self.read.hints = hints_of(self.function)
        return self.read.hints

    @property
    def source(self) -> Any:
        if self.read.source is None:
            self.read.source = Source(self.function)
        return self.read.source

    @property
    def changed(self) -> set[str]:
        """The template parameters that the function may assign, itself or by what it calls, methods of theirs too."""
        known = scanned(self.read)
        if "changed" not in known:
            templates = known["changed"] = {p.name for p in self.parameters if is_template(self.hints.get(p.name))}   # where it calls itself
            frame = Frame(self.function, self.source)
            known["changed"] = {name for name in templates if _may_change(frame, name)}
        found: set[str] = known["changed"]
        return found

    def changed_arguments(self, call: ast.Call) -> list[ast.expr]:
        """Those of a call that the function may assign."""
        unpacked = [*(one for one in call.args if isinstance(one, ast.Starred)), *(k for k in call.keywords if k.arg is None)]
        if unpacked or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in self.parameters):
            return arguments_of(call)
        names = [p.name for p in self.parameters][self.instance is not None:]
        named = [*zip(names, call.args), *((k.arg, k.value) for k in call.keywords)]
        return [value for name, value in named if name in self.changed]

    @property
    def by_reference(self) -> bool:
        """Whether a parameter is the argument itself."""
        return any(is_template(self.hints.get(p.name)) for p in self.parameters)

    @property
    def body(self) -> Any:
        return self.source.node.body

    def passes_itself(self, name: str) -> bool:
        """Whether a parameter is the argument and no copy."""
        return is_template(self.hints.get(name)) or self.instance is not None and name == self.parameters[0].name

    def __get__(self, instance: Any, owner: Any) -> Func:
        return self if instance is None else Func(self.function, instance, self)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if plain.active():
            return plain.call(self, args if self.instance is None else (self.instance, *args), options)
        raise QuadrantsSyntaxError(in_their_words(f"the function `{self.__name__}` is a `@ti.func`: it is called in kernels"))

    def inline(self, visitor: Visitor, args: Any, options: Any) -> Any:
        """Traces the function where it is called."""
        builder = visitor.builder
        if self.requires_top_level and builder.depth > builder.graph_depth:
            raise QuadrantsSyntaxError(f"`{self.__name__}` is a func with `requires_top_level=True`: it is called at the top of a "
                                       "kernel, and not inside of a `for`, `if` or `while` of run time")
        if self.instance is not None:
            args = [self.instance, *args]
        bound = self._bind(args, options)
        self._enter(builder.calls, bound)
        loc = builder.loc
        try:
            self._check_returns()
            if returns_early(self.source.node):
                return early.inline(builder, lambda: self._visitor(visitor, bound))
            return self._visitor(visitor, bound).run()
        finally:
            builder.calls.pop()
            builder.loc = loc

    def _check_returns(self) -> None:
        if self.hints.get("return") is not None and not any(isinstance(one, ast.Return) for one in ast.walk(self.source.node)):
            raise QuadrantsSyntaxError(f"`{self.__name__}`: Function has a return type but does not have a return statement")

    def _enter(self, calls: list[Any], bound: dict[Any, Any]) -> None:
        """Notes a call; refuses one that has come again and again with nothing that could end it."""
        call = self.function, [_known(value) for value in bound.values()]
        if calls.count(call) >= MOST_EQUAL_CALLS:
            raise RecursiveCall(f"the function `{self.__name__}` calls itself{_through(calls, call)}, and what would end that is "
                                "known only when the kernel runs; use a loop, or a depth that is a `ti.template()` number")
        if len(calls) >= MOST_CALLS and any(function is self.function for function, _ in calls):
            raise RecursiveCall(f"the function `{self.__name__}` calls itself, more than {MOST_CALLS} calls deep; use a loop")
        calls.append(call)

    def _visitor(self, visitor: Visitor, bound: dict[Any, Any]) -> Visitor:
        frame = Frame(self.function, self.source, visitor.builder.depth)
        frame.return_type = self.hints.get("return")
        for p in self.parameters:
            annotation = self.hints.get(p.name)
            frame.bind(p.name, self._parameter(frame, p.name, annotation, bound[p.name]))
        return visitor.within(frame)

    def _bind(self, args: Any, options: dict[Any, Any]) -> dict[Any, Any]:
        try:
            bound = inspect.signature(self.function).bind(*args, **options)
        except TypeError as error:
            raise ArgumentCountError.of(self.__name__, error) from None
        bound.apply_defaults()
        return bound.arguments

    def _struct(self, frame: Frame, name: str, annotation: Any, given: Struct) -> Struct:
        """A struct: itself as a template or as `self`, else its value."""
        if is_template(annotation) or given is self.instance:
            return given
        return given.copied(partial(frame.variable, name)) if _may_change(frame, name) else given.get()

    def _parameter(self, frame: Frame, name: str, annotation: Any, given: Any) -> Any:
        annotation, may_be_none = without_none(annotation)
        if may_be_none and given is None:
            return Bound(None)
        if isinstance(given, Struct):
            return Bound(self._struct(frame, name, annotation, given))
        if is_template(annotation):
            if isinstance(given, (Group, Element)) or hasattr(given, "get") and hasattr(
                    given, "update"):
                return given
            return Given(given) if is_number(given) else Bound(given)
        value = given.get() if hasattr(given, "get") and hasattr(given, "set") else given
        if annotation is not None and dtypes.is_dtype(annotation):
            if not is_scalar(value):
                raise QuadrantsTypeError(f"argument `{name}` of `{self.__name__}` is "
                                         f"{describe(value)}, not a number")
            value = arith.typed(value, dtypes.cook(annotation))
        elif isinstance(annotation, CompoundType):
            if isinstance(value, (list, tuple)):
                value = Matrix(list(value))
            if not isinstance(value, Matrix) or value.shape != annotation.shape:
                raise QuadrantsSyntaxError(f"argument `{name}` of `{self.__name__}` is not a {annotation!r}{_mismatch(annotation, value)}")
            value = annotation(value) if annotation.dtype is not None else value
        elif isinstance(annotation, NdarrayType):
            self._check_elements(name, annotation, value)
            return Bound(value)
        if frame.changed_in(name, frame.source.node.body) and (is_scalar(value) or isinstance(value, Matrix)):
            return frame.variable(name, value)
        if is_scalar(value):
            return Bound(value_of(value)) if not isinstance(value, bool) else Bound(value)
        return Bound(value)

    def _check_elements(self, name: str, wanted: NdarrayType, value: Any) -> None:
        shape = getattr(value, "element_shape", None)
        if wanted.element_shape is not None and shape is not None and wanted.element_shape != shape:
            raise QuadrantsTypeError(f"Invalid value for argument {name} of `{self.__name__}` - required elements of shape "
                                     f"{wanted.element_shape}, but {shape} is provided")


def func(function: Any = None, *, is_real_function: bool = False,
         requires_top_level: bool = False) -> Any:
    """Makes a function callable in kernels, whose code it becomes part of.

    `requires_top_level` refuses calls inside of loops and branches of run time; `is_real_function` has no effect.
    """
    if function is None:
        return functools.partial(func, is_real_function=is_real_function, requires_top_level=requires_top_level)
    made = Func(function)
    made.requires_top_level = requires_top_level
    return made


class PyFunc(Func):
    """A function of the kernel language that Python can call too."""

    def __get__(self, instance: Any, owner: Any) -> PyFunc:
        return self if instance is None else PyFunc(self.function, instance, self)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.instance is not None:
            args = (self.instance, *args)
        return self.function(*args, **options)


def pyfunc(function: Any) -> PyFunc:
    """Makes a function callable in kernels and from Python."""
    return PyFunc(function)


real_func = func
