"""What functions of Python may read while a kernel is compiled: the members that their code names."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.ndarray, types.ModuleType, types.FunctionType,
          types.BuiltinFunctionType)
_CONTAINERS = (list, tuple, set, frozenset)
_OTHERS = {*sys.stdlib_module_names, "costate", "numpy", "scipy", "torch"} - {"__main__"}
MOST_ENTRIES = 256   # of a container that is looked into


def members(function: Any, args: Any = ()) -> Iterator[Any]:
    """(object, name, value) of members of the function's object, of its arguments, of what it finds around itself, and of what
    these lead to; (None, None, array or container) of others that it finds around itself."""
    calls: list[tuple[Any, Any]] = [(function, args)]
    seen: set[Any] = set()
    while calls:
        called: Any
        called, given = calls.pop()
        if isinstance(called, partial):
            called, given = called.func, [*given, *called.args, *called.keywords.values()]
        plain = _function_of(called)
        if plain is None or (plain.__code__, id(_owner(called))) in seen:
            continue
        seen.add((plain.__code__, id(_owner(called))))
        around = list(_around(plain))
        yield from ((None, None, one) for one in around if isinstance(one, (np.ndarray, dict, *_CONTAINERS)))
        for found in _named(_names(plain.__code__), [_owner(called), *given, *around]):
            yield found
            calls.append((found[2], ()))


def _named(names: set[str], objects: list[Any]) -> Iterator[Any]:
    seen = {}
    while objects:
        one = objects.pop()
        if id(one) in seen or isinstance(one, _PLAIN):
            continue
        seen[id(one)] = one
        if isinstance(one, (*_CONTAINERS, dict)):
            if len(one) <= MOST_ENTRIES:
                objects += one.values() if isinstance(one, dict) else one
        elif not is_ours(one):
            for found in _members_of(one, names):
                yield found
                objects.append(found[2])


def _members_of(one: Any, names: set[str]) -> Iterator[Any]:
    for name in names:
        try:
            yield one, name, getattr(one, name)
        except Exception:  # noqa: BLE001 - no such member, or a property that fails
            continue
        getter = getattr(type(one), name, None)
        if isinstance(getter, property) and getter.fget:
            yield one, name, types.MethodType(getter.fget, one)


def _function_of(called: Any) -> Any:
    if not isinstance(called, (types.FunctionType, types.MethodType)):
        called = getattr(type(called), "__call__", None)
    plain = getattr(called, "__func__", called)
    return plain if isinstance(plain, types.FunctionType) and _package(plain.__module__) not in _OTHERS else None


def _owner(called: Any) -> Any:
    return called if not isinstance(called, (types.FunctionType, types.MethodType)) else getattr(called, "__self__", None)


def _names(code: Any) -> set[str]:
    inner = (name for one in code.co_consts if isinstance(one, types.CodeType) for name in _names(one))
    return {*code.co_names, *inner}


def _around(function: Callable[..., Any]) -> Iterator[Any]:
    """The objects that a function knows by name."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:    # not yet there
            continue
    known = function.__globals__
    yield from (known[name] for name in _names(function.__code__) if name in known)


def is_ours(one: Any) -> bool:
    """Whether an object, or a class, is of the library."""
    kind = one if isinstance(one, type) else type(one)
    return _package(kind.__module__) == "costate"


def _package(module: str) -> str:
    return (module or "").partition(".")[0]
