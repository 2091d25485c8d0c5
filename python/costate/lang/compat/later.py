"""Modules by the names of Quadrants and Taichi are made when somebody asks for one of them."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_begun = _there = False
_lock = threading.RLock()


def install() -> None:
    """Makes them, once."""
    global _begun, _there
    with _lock:
        if not _begun:
            _begun = True
            import_module("costate.lang.compat.aliases").install()
            _there = True


class There:
    """Loads a module that is there."""

    def __init__(self, module: Any) -> None:
        self.module, self.spec = module, getattr(module, "__spec__", None)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.spec    # that of its own name


class _Finder:
    """Is asked for modules that nobody else finds."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("costate."):
            return None
        install()
        found = sys.modules.pop(name, None)    # if it stood there, it would be loaded by its own name, a second time
        return None if found is None else ModuleSpec(name, There(found))  # type: ignore[arg-type]


def watch(module: ModuleType, ours_first: bool = False) -> None:
    """Makes them when a module is asked for a name that it does not have; `ours_first`: that its own function does not know."""
    names = vars(module)
    before = names.get("__getattr__")

    def own(name: str) -> Any:
        if before is None:
            raise AttributeError(f"module `{module.__name__}` has no attribute `{name}`")
        return before(name)

    def look(name: str) -> Any:
        if _there or name.startswith("__"):
            return own(name)
        if ours_first:
            try:
                return own(name)
            except AttributeError:
                pass
        install()
        return names[name] if name in names else own(name)
    names["__getattr__"] = look


def begin(package: ModuleType, *parts: ModuleType) -> None:
    """From here on."""
    sys.meta_path.append(_Finder)
    watch(package, ours_first=True)
    for part in parts:
        watch(part)
