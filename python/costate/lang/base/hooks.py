"""What a layer calls and a layer above it gives."""

from typing import Callable, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function that is given by the layer above that has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._function: Callable[P, R] | None = None

    def given(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorates the function."""
        self._function = function
        return function

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        assert self._function is not None, f"nobody gives `{self.name}`"
        return self._function(*args, **options)


class Hooks:
    """Functions that are called one after the other."""

    def __init__(self) -> None:
        self._functions: list[Callable[[], None]] = []

    def add(self, function: Callable[[], None]) -> Callable[[], None]:
        """Decorates one of the functions."""
        self._functions.append(function)
        return function

    def __call__(self) -> None:
        for function in self._functions:
            function()
