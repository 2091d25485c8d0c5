"""What is known of objects, as long as they live."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from costate.lang.base.threads import lock


MOST_KEPT = 64


class Remembered(dict[Any, Any]):
    """Values by keys that have the identities of objects: each ends with the first of these."""

    __slots__ = ("__weakref__", "_strong")

    def __init__(self) -> None:
        super().__init__()
        self._strong: list[Any] = []    # the keys of values that keep objects alive

    def add(self, key: Any, value: Any) -> None:
        """Keeps a value that has `references`."""
        self[key] = value
        if key not in self._strong and not all(isinstance(one, weakref.ref) for one in value.references):
            self._strong.append(key)
            if len(self._strong) > MOST_KEPT:
                self.pop(self._strong.pop(0), None)

    def forgetting(self, key: Any, objects: list[Any]) -> list[Any]:
        """What the value of a key has to hold: references to the objects, which take it out with them. Objects that
        cannot be referred to weakly stay alive with the value."""
        table = weakref.ref(self)

        def forget(_: Any) -> None:
            known = table()
            if known is not None:
                known.pop(key, None)
        return [_reference(one, forget) for one in objects]


def _reference(one: Any, forget: Callable[..., Any]) -> Any:
    try:
        return weakref.ref(one, forget)
    except TypeError:
        return one


class Weakly:
    """Objects in their order, as long as they live."""

    def __init__(self) -> None:
        self._all: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._count = 0

    def append(self, one: Any) -> None:
        with lock:
            self._all[self._count] = one
            self._count += 1

    def __iter__(self) -> Any:
        with lock:
            return iter(list(self._all.values()))
