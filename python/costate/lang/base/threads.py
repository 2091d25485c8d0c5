"""What threads have in common, and what each has of its own."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

get_ident = threading.get_ident

#: Held while options, kernels or lazily made arrays are made, changed or forgotten.
lock = threading.RLock()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def alive() -> Any:
    """The threads that run Python, by their numbers; those of threads that have ended are used again."""
    return sys._current_frames().keys()


def elsewhere(function: Callable[[], Any]) -> Any:
    """Calls a function on a thread of its own, and waits for it."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:    # which is the caller's
            errors.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class Objects:
    """Objects as long as they live, which some threads add while others go through them."""

    def __init__(self) -> None:
        self._all: weakref.WeakSet[Any] = weakref.WeakSet()

    def add(self, one: Any) -> None:
        with lock:
            self._all.add(one)

    def __iter__(self) -> Any:
        return iter(self.list())

    def list(self) -> list[Any]:
        with lock:
            return list(self._all)
