"""Gradients that the user gives: `ad.grad_replaced`, `ad.grad_for`, `ad.no_grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from costate.errors import QuadrantsRuntimeError
from costate.lang.base.state import state
from costate.lang.launch.kernel import Kernel


class Replaced:
    """A Python function that launches kernels, and whose gradient is another function."""

    __name__: str

    def __init__(self, function: Any, instance: Any = None, like: Any = None) -> None:
        self.function, self.instance = function, instance
        self.like = like
        functools.update_wrapper(self, function)
        self._grad: Any = None

    def __get__(self, instance: Any, owner: Any) -> Replaced:
        return self if instance is None else Replaced(self.function, instance, self)

    @property
    def gradient(self) -> Any:
        return (self.like or self)._grad

    def _with_self(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.instance, *args) if self.instance is not None else args

    def __call__(self, *args: Any, **options: Any) -> Any:
        args = self._with_self(args)
        tape = state.tape
        if tape is None or state.hidden:
            return self.function(*args, **options)
        if self.gradient is None:
            raise QuadrantsRuntimeError(f"`{self.__name__}` has no gradient: decorate a function "
                                        f"with `@ad.grad_for({self.__name__})`")
        tape.insert(self, args)
        tape.numbers.refuse_derivatives((args, options), self.__name__)
        return tape.custom(self.__name__, lambda: self.function(*args, **options),
                           lambda: self.gradient(*args, **options), (args, options))

    def grad(self, *args: Any, **options: Any) -> Any:
        """Calls the gradient function."""
        if self.gradient is None:
            raise QuadrantsRuntimeError(f"`{self.__name__}` has no gradient: decorate a function "
                                        f"with `@ad.grad_for({self.__name__})`")
        return self.gradient(*self._with_self(args), **options)


def grad_replaced(function: Any) -> Replaced:
    """A function of Python whose gradient is the one that `@grad_for(function)` decorates.

    Inside of a `Tape` the launches of the function are not recorded; in their place the gradient
    function is called with the same arguments. It adds to gradients itself; a number with a derivative as an
    argument is NotDifferentiable: pass `float(...)` of it, or an array. It finds the arrays that
    the function uses as they were when that returned; what it writes to arrays of the recording, other
    than gradients, is put back after it.
    """
    if isinstance(function, Kernel):
        raise QuadrantsRuntimeError("`grad_replaced` is for functions of Python that launch "
                                    "kernels; it stands in place of `@kernel`, not above it")
    return Replaced(function)


def grad_for(primal: Any) -> Callable[..., Any]:
    """Makes the decorated function the gradient of `primal`."""
    def decorate(function: Any) -> Any:
        if not isinstance(primal, Replaced):
            raise QuadrantsRuntimeError(f"Cannot find `@ad.grad_replaced` above the function "
                                        f"`{getattr(primal, '__name__', primal)}`, whose gradient "
                                        "is given")
        if primal._grad is not None:
            raise QuadrantsRuntimeError(f"`{primal.__name__}` has a gradient already")
        primal._grad = function.function if isinstance(function, Replaced) else function
        return function
    return decorate


def _nothing(*_: Any, **__: Any) -> None:
    """The gradient under `no_grad`."""


def no_grad(function: Any) -> Any:
    """A function of Python or a kernel that a `Tape` does not see; calling its `.grad` does nothing."""
    if isinstance(function, Kernel):
        function.no_gradient = True
        return function

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        tape = state.tape
        if tape is None or state.hidden:
            return function(*args, **options)
        return tape.unrecorded(functools.partial(function, *args, **options))
    setattr(call, "grad", _nothing)
    return call
