"""Derivatives by scalar arguments: arrays of rank 0 stand for them in `k.grad(..., scalars=True)` and `k.jvp(..., scalars={...})`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.errors import BadArgument
from costate.lang.base import runtime, scalars
from costate.lang.base.number import Number
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.launch.arguments import ScalarParameter


class TensorElement:
    """Where a number stands in a tensor of PyTorch."""

    alive = False

    def __init__(self, tensor: Any, position: int) -> None:
        self.tensor, self.position = tensor, position

    def add(self, adjoint: float) -> None:
        """To the gradient of the tensor."""
        import torch
        if self.tensor._grad is None:
            self.tensor._grad = torch.zeros_like(self.tensor)
        with torch.no_grad():
            self.tensor._grad.view(-1)[self.position] += adjoint


def require_leaf(tensor: Any) -> None:
    """One that is passed as a number, whose gradient somebody is to see."""
    if not tensor.is_leaf:
        raise BadArgument(f"a tensor of shape {tuple(tensor.shape)} that is passed as a number is the result of other operations and "
                          "requires a gradient, which a launch would lose; use `torch_function`, or pass `x.item()` or `x.tolist()`")


def cell_of(value: float, dtype: DataType, grad: bool = False, dual: bool = False) -> _core.Array:
    """An array of rank 0 that holds a number."""
    array = _core.Array(runtime.device(), dtype.core, [], grad=grad, dual=dual)
    array.write(np.array(value, dtype.np))
    return array


class Adjoints:
    """Those of the scalar arguments of a gradient: of all, or only of tensors of PyTorch that require one."""

    def __init__(self, of_all: bool) -> None:
        self.of_all = of_all
        self.found: dict[str, tuple[tuple[int, ...], list[_core.Array]]] = {}   # the shape and the numbers of each
        self.tensors: list[tuple[_core.Array, TensorElement]] = []

    def tensor(self, tensor: Any, values: list[float]) -> list[Any]:
        require_leaf(tensor)
        return [Number(value, TensorElement(tensor, k)) for k, value in enumerate(values)]

    def cell(self, given: Any, value: float, parameter: ScalarParameter) -> Any:
        element: Any = getattr(given, "node", None)
        is_tensor = isinstance(element, TensorElement)
        if not self.of_all and not is_tensor:
            return None
        array = cell_of(value, parameter.dtype, grad=True)
        self.found.setdefault(parameter.name, (parameter.shape, []))[1].append(array)
        if is_tensor:
            self.tensors.append((array, element))
        return array

    def taken(self) -> dict[str, Any] | None:
        """By the names of parameters, after the gradient; those of tensors go there."""
        for array, element in self.tensors:
            element.add(float(array.grad.to_numpy()))
        if not self.of_all:
            return None
        return _by_name(self.found, lambda array: array.grad)


def _by_name(cells: Mapping[str, tuple[tuple[int, ...], list[_core.Array]]], part: Callable[[_core.Array], _core.Array]) -> dict[str, Any]:
    """A part of the arrays of each parameter, as a number, vector or matrix."""
    found = {name: (shape, [float(part(one).to_numpy()) for one in arrays]) for name, (shape, arrays) in cells.items()}
    return {name: Matrix.of(numbers, shape) if shape else numbers[0] for name, (shape, numbers) in found.items()}


class Directions:
    """Tangents of scalar arguments, by the names of parameters."""

    def __init__(self, given: Mapping[str, Any], second: bool = False) -> None:
        self.second = second          # whether the derivative of the gradient is wanted
        self.made: dict[str, tuple[tuple[int, ...], list[_core.Array]]] = {}
        self.left = {name: scalars.leaves(one) for name, one in given.items()}

    def tensor(self, tensor: Any, values: list[float]) -> list[Any]:
        return values

    def cell(self, given: Any, value: float, parameter: ScalarParameter) -> Any:
        left = self.left.get(parameter.name)
        if not left:
            return None
        tangent = scalars.convert(left.pop(0), parameter.dtype, f"The tangent of `{parameter.name}`")
        array = cell_of(value, parameter.dtype, grad=self.second, dual=True)
        array.dual.fill(tangent)
        self.made.setdefault(parameter.name, (parameter.shape, []))[1].append(array)
        return array

    def products(self) -> dict[str, Any]:
        """The derivatives of the gradients, by name."""
        return _by_name(self.made, lambda array: array.grad.dual)

    def check(self, kernel: str) -> None:
        """Each tangent is that of a scalar argument."""
        for name, left in self.left.items():
            if left:
                raise BadArgument(f"kernel `{kernel}` has no float argument `{name}` that takes {'these tangents' if len(left) > 1 else 'a tangent'}; "
                                  "`scalars` has the names of parameters, and as many numbers as each has")
