"""Gradients against differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.ad.host_numbers import Again
from costate.errors import BadArgument, QuadrantsAssertionError
from costate.lang.base.explain import explain
from costate.lang.base.state import state
from costate.lang.data import storage
from costate.lang.launch.scalar_slopes import Directions

if TYPE_CHECKING:
    from costate.ad.tape import Tape
    from costate.lang.launch.kernel import Kernel


def _arrays_of(value: Any) -> Iterator[Any]:
    """The fields and ndarrays in an argument."""
    if isinstance(value, storage.Storage):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays_of(one)
    elif dataclasses.is_dataclass(value) or hasattr(value, "members"):
        members = value.members if hasattr(value, "members") else vars(value)
        yield from _arrays_of(list(members.values()))


class Saved:
    """The values of arrays, to start again from there."""

    def __init__(self, arrays: Any) -> None:
        self.values: dict[Any, Any] = {}
        self.add(list(arrays))

    def add(self, argument: Any) -> None:
        """Also those of the arrays in an argument, unless they are there."""
        for array in _arrays_of(argument):
            if array not in self.values:
                self.values[array] = array.to_numpy()

    def restore(self) -> None:
        for array, values in self.values.items():
            array.from_numpy(values)


def compare(tape: Tape, step: float = 1e-4, relative: float = 1e-6, absolute: float = 1e-6) -> None:
    """Raises where a gradient of `grad_check` differs from central differences."""
    wrong = []
    for field in tape.grad_check:
        found = field.grad.to_numpy()
        expected = _differences(tape, field, step)
        if not np.allclose(found, expected, rtol=max(relative, 1e-4), atol=max(absolute, 1e-6)):
            worst = np.unravel_index(np.argmax(np.abs(found - expected)), found.shape)
            wrong.append(f"{field.describe()} at {tuple(map(int, worst))}: {found[worst]} by the "
                         f"`Tape`, {expected[worst]} by differences")
    if wrong:
        raise QuadrantsAssertionError("Gradient check failed: " + "; ".join(wrong))


def _differences(tape: Tape, field: Any, step: float) -> np.ndarray[Any, Any]:
    tape._saved.restore()
    start = field.to_numpy()
    result = np.zeros(start.shape)
    final = Saved(tape._saved.values)
    for index in np.ndindex(start.shape):
        sides = []
        for sign in (1, -1):
            tape._saved.restore()
            moved = start.copy()
            moved[index] += sign * step
            field.from_numpy(moved)
            _again(tape)
            sides.append(float(np.sum(tape.loss.to_numpy())))
        result[index] = (sides[0] - sides[1]) / (2 * step)
    final.restore()
    _again(tape)
    return result


def _again(tape: Tape) -> None:
    for function, args in tape.calls:
        if hasattr(function, "run"):
            function.run(args, numbers=Again())
        else:
            function(*args)


def check_gradient(kernel: Kernel, *args: Any, **options: Any) -> _core.GradientCheck:
    """Compares reverse mode, forward mode and differences of one kernel at its arguments.

    Returns a report that is true where they agree; `print` shows it.
    """
    if state.tape is not None:
        raise QuadrantsAssertionError("check_gradient inside of a `Tape`")
    found, arguments = kernel.bound(*args, **options)
    if found.compiled is None:
        raise BadArgument(f"kernel `{kernel.__name__}` does nothing, and has no derivatives; check one that writes an array")
    storage.flush()
    check = _core.check_gradient(found.compiled, *arguments)
    check.array = explain(check.array, found.names)
    return check


def report(kernel: Kernel, *args: Any, **options: Any) -> str:
    """For people: what is compiled, what the gradient saves on its tape and what it recomputes."""
    return kernel.report(*args, **options)


def hessian_vector_product(kernel: Kernel, *args: Any, scalars: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Adds the gradient to `x.grad`, and the product of the Hessian with `x.dual` to
    `x.grad.dual`, of all arguments and fields; they have `needs_grad` and `needs_dual`.

    `scalars`: the direction of float arguments, by name, which have their part in the Hessian then: that of the product is
    returned."""
    directions = Directions(scalars or {}, second=True)
    compiled, arguments = kernel.compiled(*args, numbers=directions if scalars else None, **options)
    directions.check(kernel.__name__)
    storage.flush()
    if compiled is not None:
        compiled.gradient().jvp(*arguments)
    return directions.products() if scalars else None


hvp = hessian_vector_product
