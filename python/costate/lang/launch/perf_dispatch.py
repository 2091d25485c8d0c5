"""`perf_dispatch`: the fastest of several functions that do the same."""

from __future__ import annotations

import functools
import inspect
import os
import time
from collections.abc import Callable
from typing import Any

from costate.errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang.base import runtime
from costate.lang.launch.kernel import Kernel


def _forced() -> dict[str, str]:
    """{name of a dispatcher: name of the function that the environment chooses}"""
    chosen = {}
    for pair in os.environ.get("QD_PERFDISPATCH_FORCE", "").split(","):
        if pair.strip():
            name, colon, choice = pair.partition(":")
            if not colon:
                raise ValueError(f"the environment variable QD_PERFDISPATCH_FORCE has the entry {pair.strip()!r}; it is "
                                 "written as dispatcher:function")
            chosen[name.strip()] = choice.strip()
    return chosen


class Choice:
    """A function that may be chosen."""

    __name__: str

    def __init__(self, function: Callable[..., Any], is_compatible: Callable[..., bool] | None) -> None:
        functools.update_wrapper(self, function)
        self.function, self.is_compatible = function, is_compatible

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(*args, **options)

    def __getattr__(self, name: str) -> Any:  # `.grad` and the like are those of the function
        if name.startswith("__") or name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)


class Trials:
    """What is known about the choices for calls of one geometry."""

    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.counts: dict[Choice, int] = {}
        self.times: dict[Choice, list[float]] = {}
        self.fastest: Choice | None = None
        self.since, self.calls = 0.0, 0

    def next(self, choices: list[Choice]) -> Choice:
        return min(choices, key=lambda one: self.counts.get(one, 0))

    def measured(self, choice: Choice, seconds: float | None) -> None:
        self.counts[choice] = self.counts.get(choice, 0) + 1
        if seconds is not None:
            self.times.setdefault(choice, []).append(seconds)

    def decide(self, choices: list[Choice], active: int) -> None:
        """Keeps the fastest if all have been tried often enough."""
        if all(self.counts.get(one, 0) >= self.warmup + active for one in choices):
            self.keep(min((one for one in choices if one in self.times),
                          key=lambda one: sum(self.times[one]) / len(self.times[one])))

    def keep(self, choice: Choice) -> None:
        self.fastest, self.since, self.calls = choice, time.time(), 0

    def is_stale(self, count: int | None, seconds: float | None) -> bool:
        """Whether it is time to measure again."""
        self.calls += 1
        return bool(count and 0 < count < self.calls or seconds and 0 < seconds <= time.time() - self.since)


class PerformanceDispatcher:
    """Calls one of the functions that `register` has given it: each for a while, then the fastest."""

    __name__: str

    def __init__(self, function: Callable[..., Any], get_geometry_hash: Callable[..., Any], first_warmup: int, warmup: int,
                 active: int, repeat_after_count: int | None, repeat_after_seconds: float | None) -> None:
        functools.update_wrapper(self, function)
        if repeat_after_count is None and repeat_after_seconds is None:
            repeat_after_count = 300
        self.geometry = get_geometry_hash
        self.choices: list[Choice] = []
        self.first_warmup, self.warmup, self.active = first_warmup, warmup, max(1, active)
        self.repeat = (repeat_after_count, repeat_after_seconds)
        self.names = list(inspect.signature(function).parameters)
        self.trials: dict[Any, Trials] = {}    # by what the geometry hashes to

    def register(self, implementation: Callable[..., Any] | None = None, *,
                 is_compatible: Callable[..., bool] | None = None) -> Any:
        """Adds a function with the same parameters; `is_compatible(*args)` says whether it takes these arguments."""
        if implementation is None:
            return lambda one: self.register(one, is_compatible=is_compatible)
        plain = implementation.function if isinstance(implementation, Kernel) else implementation
        names = list(inspect.signature(plain).parameters)
        if sorted(names) != sorted(self.names):
            raise QuadrantsSyntaxError(f"`{plain.__name__}` has the parameters {names}, `{self.__name__}`, for which it is "
                                       f"registered, {self.names}")
        self.choices.append(Choice(implementation, is_compatible))
        return self.choices[-1]

    def _compatible(self, args: tuple[Any, ...], options: dict[str, Any]) -> list[Choice]:
        wanted = _forced().get(self.__name__)
        for one in self.choices:
            if one.__name__ == wanted:
                return [one]
        found = [one for one in self.choices if one.is_compatible is None or one.is_compatible(*args, **options)]
        if not found:
            raise QuadrantsRuntimeError(f"no function that is registered for `{self.__name__}` takes these arguments; "
                                        "register one without `is_compatible`")
        return found

    def __call__(self, *args: Any, **options: Any) -> Any:
        key = self.geometry(*args, **options)
        known = self.trials.get(key)
        if known is not None and known.fastest is not None:
            if not known.is_stale(*self.repeat):
                return known.fastest(*args, **options)
            known = None
            self.trials[key] = Trials(self.warmup)
        known = self.trials.setdefault(key, Trials(self.first_warmup))
        return self._try(known, args, options)

    def _try(self, known: Trials, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        choices = self._compatible(args, options)
        choice = known.next(choices)
        if len(choices) == 1:
            known.keep(choice)
            return choice(*args, **options)
        warm = known.counts.get(choice, 0) >= known.warmup
        if not warm:
            result = choice(*args, **options)
            known.measured(choice, None)
            return result
        runtime.sync()
        start = time.perf_counter()
        result = choice(*args, **options)
        runtime.sync()
        known.measured(choice, time.perf_counter() - start)
        known.decide(choices, self.active)
        return result

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)


def perf_dispatch(*, get_geometry_hash: Callable[..., Any], first_warmup: int = 1, warmup: int = 0, active: int = 1,
                  repeat_after_count: int | None = None,
                  repeat_after_seconds: float | None = None) -> Callable[[Callable[..., Any]], PerformanceDispatcher]:
    """Makes a function the name of several that do the same, which its `register` gives; the fastest is called.

    For each value of `get_geometry_hash(*args)` every function is called `first_warmup` times, then `active` times by
    the clock. All is measured again after `repeat_after_count` calls or `repeat_after_seconds`, 300 calls if neither is
    given, with `warmup` calls ahead. QD_PERFDISPATCH_FORCE=name:function chooses one.
    """
    def decorate(function: Callable[..., Any]) -> PerformanceDispatcher:
        return PerformanceDispatcher(function, get_geometry_hash, first_warmup, warmup, active, repeat_after_count,
                                     repeat_after_seconds)
    return decorate
