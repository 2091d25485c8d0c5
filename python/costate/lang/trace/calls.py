"""Calls inside of kernels."""

from __future__ import annotations

import ast
import builtins
import math
import random
import string
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.errors import CompilationError, Error, QuadrantsSyntaxError, QuadrantsTypeError, RecursiveCall
from costate.lang.analysis.scan import arguments_of, has_call
from costate.lang.base import dtypes
from costate.lang.data.annotations import CompoundType
from costate.lang.data.ranges import RangeOf, static
from costate.lang.data.storage import Storage
from costate.lang.data.struct import Struct
from costate.lang.syntax.located import located
from costate.lang.trace.arrays import TracedArray, has_traced
from costate.lang.trace.func import Func
from costate.lang.trace.message import MOST_PRINTED, PLAIN, Text, message_of
from costate.lang.trace.places import Place
from costate.lang.values import ops
from costate.lang.values.builder import require
from costate.lang.values.describe import describe
from costate.lang.values.expr import Expr, is_scalar
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.trace.frame import Frame
    from costate.lang.trace.visitor import Visitor
    from costate.lang.values.builder import Builder


class OfTheHost:
    """What only the host calls: a kernel."""

    __name__: str


def _range(*args: Any) -> Any:
    if any(isinstance(a, Expr) for a in args):
        for a in args:
            if not is_scalar(a) or isinstance(a, (float, np.floating)) or (
                    isinstance(a, Expr) and a.dtype.is_float):
                raise QuadrantsTypeError("the bounds of `range` are integers; convert with `int(x)`")
        lo, hi, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        return RangeOf(lo, hi, step)
    return range(*(int(a) if isinstance(a, np.integer) else a for a in args))


def _print(*args: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False, **more: Any) -> None:
    if more:
        raise QuadrantsTypeError(f"`print` in a kernel got an unexpected keyword argument '{next(iter(more))}'")
    b = require("print")
    text = message_of(args, sep)
    text.add_text(end)
    for pattern, values in text.patterns(MOST_PRINTED):
        b.trace.print(PLAIN + pattern, values, b.loc)


def _len(x: Any) -> Any:
    if isinstance(x, TracedArray):
        return x.extent(0)
    return len(x)


def _sum(values: Any, start: Any = 0) -> Any:
    return builtins.sum(list(values), start)


def _convert(python: type[Any]) -> Callable[..., Any]:
    def apply(x: Any = 0) -> Any:
        if isinstance(x, (Expr, Matrix)):
            return ops.cast(x, dtypes.cook(python))
        return python(x)
    return apply


def _round(x: Any, digits: Any = None) -> Any:
    if isinstance(x, (Expr, Matrix)):
        if digits is not None:
            raise QuadrantsTypeError("`round` in a kernel gives whole numbers: scale before and after it")
        return ops.round(x)
    return round(x, digits)


def _folds(python: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*args: Any, **options: Any) -> Any:
        flat = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        if builtins.any(isinstance(a, (Expr, Matrix)) for a in flat):
            if options:
                raise QuadrantsTypeError(f"`{python.__name__}` in a kernel has no option `{next(iter(options))}`")
            if len(args) == 1 and isinstance(args[0], Matrix):
                flat = args[0].entries
            return own(*flat)
        return python(*args, **options)
    return apply


def _all(values: Matrix) -> Any:
    return Matrix.of(_entries(values), ()).all()


def _any(values: Any) -> Any:
    return Matrix.of(_entries(values), ()).any()


def _entries(values: Any) -> Any:
    """The numbers of a list, vector or matrix."""
    if isinstance(values, Matrix):
        return values.entries
    if not builtins.all(is_scalar(e) for e in values):
        raise QuadrantsTypeError("`any` and `all` are of numbers: use `.any()` and `.all()` of vectors")
    return list(values)


BUILTINS: dict[Any, Any] = {
    range: _range, print: _print, len: _len, sum: _sum, int: _convert(int), float: _convert(float),
    bool: _convert(bool), round: _round, min: _folds(min, ops.min), max: _folds(max, ops.max),
    abs: ops.abs, pow: ops.pow, all: _all, any: _any, divmod: lambda a, b: (ops.floordiv(a, b), ops.mod(a, b)),
}


def _degrees(name: str) -> Any:
    factor = {"degrees": 180 / math.pi, "radians": math.pi / 180}.get(name)
    return factor and (lambda x: ops.mul(x, factor))


def _substitute(function: Any) -> Any:
    """What a function of Python means in a kernel."""
    try:
        found = BUILTINS.get(function)
    except TypeError:
        found = None
    if found is not None:
        return found
    name: Any = getattr(function, "__name__", None)
    if getattr(math, str(name), None) is function:
        return getattr(ops, {"fabs": "abs"}.get(name, name), None) or _degrees(name)
    if isinstance(function, np.ufunc):
        renamed = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
                   "maximum": "max", "minimum": "min", "power": "pow", "absolute": "abs"}
        return getattr(ops, renamed.get(name, name), None)
    if isinstance(function, type) and issubclass(function, np.generic):
        dtype = dtypes.of_numpy(function)
        return lambda x: ops.cast(x, dtype)
    return None


def call(visitor: Any, node: ast.Call) -> Any:
    """Traces a call."""
    function = visitor.place(node.func)
    by_reference = getattr(getattr(function, "func", function), "by_reference", False)
    get = visitor.place if by_reference else visitor.unused if function is len else visitor.value
    with visitor.frame.static_arguments(function is static):
        args, options = _arguments(visitor, node, get, function)
    visitor.at(node)
    try:
        return invoke(visitor, function, args, options)
    except Error as error:
        if getattr(error, "located", False) and not isinstance(error, RecursiveCall):  # in a function: the call stands above it
            raise located(error, visitor.source, node) from error
        raise


def _is_passed_by_value(function: Any, key: int | str) -> bool:
    """Of an argument, by its position or name."""
    one = getattr(function, "func", function)
    if not isinstance(one, Func):
        return not getattr(one, "by_reference", False)
    names = [p.name for p in one.parameters][one.instance is not None:]
    return not one.passes_itself(key if isinstance(key, str) else names[key] if key < len(names) else "")


def _arguments(visitor: Visitor, node: ast.Call, get: Callable[..., Any], function: Any) -> tuple[Any, ...]:
    args: list[Any] = []
    options: dict[Any, Any] = {}
    everything = arguments_of(node)

    def given(one: ast.expr, key: int | str) -> Any:
        """A struct as it is before later arguments change it."""
        value = get(one)
        is_struct = isinstance(value, Struct) and _is_passed_by_value(function, key)
        return value.get() if is_struct and any(map(has_call, everything[everything.index(one) + 1:])) else value

    for a in node.args:
        if isinstance(a, ast.Starred):
            args += visitor.spread(a)
        else:
            args.append(given(a, len(args)))
    for k in node.keywords:
        more = visitor.mapping(k.value) if k.arg is None else {k.arg: given(k.value, k.arg)}
        for name in more:
            if name in options:
                raise QuadrantsTypeError(f"`{ast.unparse(node.func)}` got multiple values for `{name}`")
        options.update(more)
    return args, options


_OF_THE_HOST = {"to_numpy", "from_numpy", "to_torch", "from_torch", "to_dlpack", "copy_from", "place", "dense", "pointer",
                "bitmasked", "dynamic", "lazy_grad", "lazy_dual", "deactivate_all", "field", "ndarray", "tensor",
                "matrix_field", "make_ndarray", "init", "reset", "sync", "clear_all_gradients", "deactivate_all_snodes"}


def _refuse_host(function: Any) -> None:
    """Functions that would be called once, while the kernel is compiled, and not when it runs."""
    name = getattr(function, "__name__", None)
    if name in _OF_THE_HOST and (getattr(function, "__module__", None) or "").startswith("costate."):
        raise QuadrantsSyntaxError(f"`{name}` is of the host, and not of kernels: call it before or after the kernel")


def _warn_of_numbers_that_stay(function: Any) -> None:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
        require("a call").warn(f"`{function.__name__}` of Python gives a kernel one number, while it is compiled; use `ti.random()` "
                               "for new ones at each launch and work item")


_CHANGES = {"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "popitem", "add", "discard",
            "reverse", "sort"}


def _refuse_change(builder: Builder, function: Any) -> None:
    """Changes of lists and dictionaries of Python happen once, also in loops and branches of run time."""
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, (list, dict, set)) or function.__name__ not in _CHANGES:
        return
    _, depth = builder.made.get(id(owner), (None, 0))
    if depth != builder.depth:
        raise QuadrantsSyntaxError(f"`{function.__name__}` changes a {type(owner).__name__} of Python while the kernel is "
                                   "compiled, and cannot be in a branch or loop of run time; use `ti.static(...)` there, or "
                                   "a vector or a field")


def invoke(visitor: Visitor, function: Any, args: list[Any], options: dict[Any, Any]) -> Any:
    if isinstance(function, Func):
        return function.inline(visitor, args, options)
    _refuse_host(function)
    _refuse_change(visitor.builder, function)
    _warn_of_numbers_that_stay(function)
    if isinstance(function, OfTheHost):
        raise QuadrantsSyntaxError("Kernels cannot call other kernels; make "
                                   f"`{function.__name__}` a `@ti.func`")
    if isinstance(function, (Expr, Matrix, Storage, Place)):
        raise QuadrantsTypeError(f"{describe(function)} is not a function")
    traced = has_traced(args) or has_traced(list(options.values()))
    if isinstance(function, types.BuiltinMethodType) and isinstance(
            getattr(function, "__self__", None), str) and function.__name__ == "format":
        return _formatted(function.__self__, args, options) if traced else _plainly_formatted(function, args, options)
    if function is print or function is range or traced or any(isinstance(a, Matrix) for a in args):
        own = _substitute(function)
        if own is not None:
            return own(*args, **options)
    if isinstance(function, type) and issubclass(function, dict):
        return function(*args, **options)
    if not callable(function):
        raise QuadrantsTypeError(f"{describe(function)} is not a function")
    value = function(*args, **options)
    if function is getattr and hasattr(*args[:2]):
        visitor.builder.watch.attribute(*args[:2], value)
    elif function is getattr or function is hasattr:
        visitor.builder.watch.presence(*args[:2])
    else:
        visitor.builder.watch.call(function, [*args, *options.values()])
    return value


def _plainly_formatted(function: Callable[..., str], args: list[Any], options: dict[Any, Any]) -> Any:
    """A text of constants: by Python, or by the formats that only kernels have."""
    try:
        return function(*args, **options)
    except (ValueError, KeyError, IndexError):
        return _formatted(getattr(function, "__self__"), args, options)


def _formatted(pattern: Any, args: list[Any], options: dict[Any, Any]) -> Any:
    text, position = Text(), 0
    for literal, name, form, _ in string.Formatter().parse(pattern):
        text.add_text(literal)
        if name is None:
            continue
        if name == "" or name.isdigit():
            place = int(name) if name else position
            if place >= len(args):
                raise QuadrantsSyntaxError(f"{pattern!r}: Expected {place + 1} positional argument(s), but received {len(args)} instead.")
            text.add(args[place], form)
            position += not name
        elif name not in options:
            raise QuadrantsSyntaxError(f"{pattern!r}: Keyword {name!r} not found.")
        else:
            text.add(options[name], form)
    return text.simplified()


def returned(frame: Frame, value: Any) -> Any:
    """What a `func` returns, in the type that it declares."""
    kind = frame.return_type
    if kind is None or value is None:
        return value
    if isinstance(kind, (tuple, list)):
        if not isinstance(value, tuple) or len(value) != len(kind):
            raise CompilationError(f"the function returns {len(kind)} values")
        return tuple(_as_type(v, k) for v, k in zip(value, kind))
    if isinstance(kind, CompoundType) or dtypes.is_dtype(kind):
        return _as_type(value, kind)
    return value


def _as_type(value: Any, kind: Any) -> Any:
    if dtypes.is_dtype(kind):
        return ops.cast(value, dtypes.cook(kind)) if is_scalar(value) else value
    return kind(value) if callable(kind) else value
