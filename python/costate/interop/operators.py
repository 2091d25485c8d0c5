"""Functions of PyTorch as operators, which `torch.compile`, `torch.export` and `torch.func` take.

Four operators of one function f of inputs x, none of which changes anything: f itself; its gradient, of x and the
cotangents c; its tangent, of x and directions d; and the derivative of the gradient, of x, c and d. Each has a fake
implementation, a loop for `vmap`, and a derivative by the others, but the last one, whose derivative is refused.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, Callable, Protocol, Sequence, Union

import torch
from torch._functorch.autograd_function import enable_single_level_autograd_function  # type: ignore[attr-defined]
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction

from .. import errors

#: The type of schemas that is no number.
TENSOR = "Tensor"

_counter = itertools.count()
_libraries: list[Any] = []   # which end what they define with them


class Kind:
    """What one input of the function is for the operators."""

    def __init__(self, type: str = TENSOR, shape: tuple[int, ...] | None = None) -> None:
        self.type, self.shape = type, shape

    @property
    def schema(self) -> str:
        name = "SymInt" if self.type == "int" else self.type
        return name if self.shape is None else name + "[]"

    def given(self, value: Any) -> Any:
        """What an operator is given for the argument of a function."""
        if self.type == TENSOR or self.shape is None:
            return value
        return list(_leaves(value))

    def taken(self, value: Any) -> Any:
        """The argument of the kernel."""
        if self.type == TENSOR:
            return value.contiguous()
        return value if self.shape is None else _nested(list(value), self.shape)


def _leaves(value: Any) -> Any:
    return itertools.chain.from_iterable(map(_leaves, value)) if hasattr(value, "__iter__") else (value,)


def _nested(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if len(shape) <= 1:
        return list(values)
    step = len(values) // shape[0]
    return [_nested(values[k * step:(k + 1) * step], shape[1:]) for k in range(shape[0])]


def is_traced(arguments: Sequence[Any]) -> bool:
    """Whether a call is to become a part of something else: of a graph, a transformation, a check."""
    return (torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
            or torch._C._len_torch_dispatch_stack() > 0
            or any(isinstance(a, torch.Tensor) and type(a) not in (torch.Tensor, torch.nn.Parameter) for a in arguments))


def are_batched(tensors: Sequence[Any]) -> bool:
    """Whether one of them stands for several, as in `is_grads_batched=True`."""
    return any(isinstance(x, torch.Tensor) and _is_batched(x) for x in tensors)


_is_batched = torch._C._functorch.is_legacy_batchedtensor

Tensors = Sequence[Union[torch.Tensor, None]]


class Work(Protocol):
    """What the operators of a function compute, of its inputs, of cotangents of its results, and directions of its inputs."""

    def like(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Tensors as the results are."""

    def primal(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The results."""

    def gradient(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor], needs: Sequence[bool]) -> Tensors:
        """For each input."""

    def tangent(self, inputs: Sequence[Any], directions: Tensors) -> Tensors:
        """For each result."""

    def second(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor], directions: Tensors,
               needs: Sequence[bool]) -> tuple[Tensors, Tensors]:
        """The derivative of the gradient along the directions for each input, and the tangent for each result."""


def _filled(found: Sequence[torch.Tensor | None], like: torch.Tensor) -> list[torch.Tensor]:
    """Operators return tensors only: an empty one where there is no derivative."""
    return [like.new_empty(0, dtype=torch.float32) if x is None else x for x in found]


class Operators:
    """Those of one function, for certain kinds of its inputs."""

    def __init__(self, work: Work, name: str, kinds: Sequence[Kind], results: int, batching: str | None, title: str) -> None:
        self.work, self.kinds, self.results, self.batching, self.title = work, kinds, results, batching, title
        self.tensors = [k for k, kind in enumerate(kinds) if kind.type == TENSOR]
        space, _, base = name.partition("::")
        self.library: Any = torch.library.Library(space, "FRAGMENT")  # type: ignore[no-untyped-call]
        _libraries.append(self.library)
        inputs = [f"{kind.schema} x{k}" for k, kind in enumerate(kinds)]
        cotangents = [f"Tensor c{k}" for k in range(results)]
        directions = [f"Tensor d{k}" for k in range(len(self.tensors))]
        each = len(self.tensors)
        self.primal = self._define(base, inputs, results, self._primal, self._fake_primal, _Primal)
        self.gradient = self._define(base + "_gradient", [*inputs, *cotangents, "bool[] needs"], each, self._gradient,
                                     self._fake_gradient, _Gradient)
        self.tangent = self._define(base + "_tangent", [*inputs, *directions], results, self._tangent, self._fake_tangent, _Tangent)
        self.second = self._define(base + "_second", [*inputs, *cotangents, *directions, "bool[] needs"], each + results,
                                   self._second, self._fake_second, _Second)

    def _define(self, name: str, parameters: Sequence[str], count: int, compute: Callable[..., Any], fake: Callable[..., Any],
                derivative: Any) -> Any:
        returned = TENSOR if count == 1 else "(" + ", ".join([TENSOR] * count) + ")"
        try:
            self.library.define(f"{name}({', '.join(parameters)}) -> {returned}", tags=(torch.Tag.needs_fixed_stride_order,))
        except RuntimeError as error:
            raise errors.BadArgument(f"there is no second operator `{self.library.ns}::{name}`; choose another `name` for the "
                                     f"function of {self.title}") from error
        overload = getattr(getattr(torch.ops, self.library.ns), name).default

        def one(values: Sequence[Any]) -> Any:
            return values[0] if count == 1 else tuple(values)

        def differentiable(*arguments: Any) -> Any:
            with enable_single_level_autograd_function():
                return derivative.apply(self, *arguments)
        qualified = f"{self.library.ns}::{name}"
        self.library.impl(name, lambda *arguments: one(compute(*arguments)), "CompositeExplicitAutograd")
        torch.library.register_fake(qualified, lambda *arguments: one(fake(*arguments)), lib=self.library)
        self.library.impl(name, differentiable, "Autograd")
        torch.library.register_vmap(qualified, self._batched(overload, lambda *arguments: one(fake(*arguments))), lib=self.library)
        return overload

    # -- what is computed ------------------------------------------------------------

    def split(self, arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The inputs, and what follows them."""
        count = len(self.kinds)
        return list(arguments[:count]), list(arguments[count:])

    def _taken(self, arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        inputs, others = self.split(arguments)
        return [kind.taken(x) for kind, x in zip(self.kinds, inputs)], others

    def of(self, inputs: Sequence[Any]) -> list[Any]:
        return [inputs[k] for k in self.tensors]

    def _primal(self, *arguments: Any) -> list[torch.Tensor]:
        return self.work.primal(self._taken(arguments)[0])

    def _gradient(self, *arguments: Any) -> list[torch.Tensor]:
        inputs, others = self._taken(arguments)
        found = self.work.gradient(inputs, others[:-1], self._needs(others[-1]))
        return _filled([found[k] for k in self.tensors], self.of(inputs)[0])

    def _tangent(self, *arguments: Any) -> list[torch.Tensor]:
        inputs, directions = self._taken(arguments)
        return _filled(self.work.tangent(inputs, self._spread(directions)), self.of(inputs)[0])

    def _second(self, *arguments: Any) -> list[torch.Tensor]:
        inputs, others = self._taken(arguments)
        cotangents, directions = others[:self.results], others[self.results:-1]
        along, slopes = self.work.second(inputs, cotangents, self._spread(directions), self._needs(others[-1]))
        return _filled([*[along[k] for k in self.tensors], *slopes], self.of(inputs)[0])

    def _needs(self, of_tensors: Sequence[bool]) -> list[bool]:
        needs = [False] * len(self.kinds)
        for k, need in zip(self.tensors, of_tensors):
            needs[k] = need
        return needs

    def _spread(self, directions: Sequence[torch.Tensor]) -> list[Any]:
        """One for each input."""
        spread: list[Any] = [None] * len(self.kinds)
        for k, direction in zip(self.tensors, directions):
            spread[k] = direction if direction.is_floating_point() else None
        return spread

    # -- what that is like -----------------------------------------------------------

    def _fake_primal(self, *arguments: Any) -> list[torch.Tensor]:
        return self.work.like(self._taken(arguments)[0])

    def _fake_gradient(self, *arguments: Any) -> list[torch.Tensor]:
        inputs, others = self.split(arguments)
        tensors = self.of(inputs)
        return _filled([_like(x) if need else None for x, need in zip(tensors, others[-1])], tensors[0])

    def _fake_tangent(self, *arguments: Any) -> list[torch.Tensor]:
        inputs, _ = self.split(arguments)
        return _filled([x if x.is_floating_point() else None for x in self._fake_primal(*inputs)], self.of(inputs)[0])

    def _fake_second(self, *arguments: Any) -> list[torch.Tensor]:
        inputs, others = self.split(arguments)
        return self._fake_gradient(*inputs, others[-1]) + self._fake_tangent(*inputs)

    # -- for functions that are none, where tensors are batched ----------------------

    def gradients(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor], needs: Sequence[bool]) -> list[Any]:
        """For each input, or None."""
        return self._needed(needs, self.gradient(*inputs, *cotangents, [needs[k] for k in self.tensors]))

    def tangents(self, inputs: Sequence[Any], directions: Tensors) -> tuple[torch.Tensor, ...]:
        """For each result."""
        return _all(self.tangent(*inputs, *_zeros(self.of(directions), self.of(inputs))))

    def seconds(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor], directions: Tensors,
                needs: Sequence[bool]) -> tuple[list[Any], tuple[torch.Tensor, ...]]:
        """For each input, or None; for each result."""
        along = _zeros(self.of(directions), self.of(inputs))
        found = _all(self.second(*inputs, *cotangents, *along, [needs[k] for k in self.tensors]))
        return self._needed(needs, found), found[len(self.tensors):]

    def _needed(self, needs: Sequence[bool], of_tensors: Any) -> list[Any]:
        found: list[Any] = [None] * len(self.kinds)
        for k, x in zip(self.tensors, _all(of_tensors)):
            found[k] = x if needs[k] else None
        return found

    # -- vmap ------------------------------------------------------------------------

    def _batched(self, overload: Any, fake: Callable[..., Any]) -> Callable[..., Any]:
        def several(info: Any, dims: Sequence[int | None], *arguments: Any) -> Any:
            if self.batching is None:
                raise errors.BadArgument(f"the function of {self.title} is under `vmap`, for which it has no `vmap_method`; "
                                         "\"sequential\" launches it for each sample, or give the kernel a dimension of samples")
            def sample(k: int) -> Any:
                return overload(*[x.select(dim, k) if isinstance(dim, int) else x for x, dim in zip(arguments, dims)])
            found = [sample(k) for k in range(info.batch_size)]
            if not found:
                like = fake(*[_sample_like(x, dim) if isinstance(dim, int) else x for x, dim in zip(arguments, dims)])
                return _none_of(like), 0 if isinstance(like, torch.Tensor) else (0,) * len(like)
            if isinstance(found[0], torch.Tensor):
                return torch.stack(found), 0
            return tuple(map(torch.stack, zip(*found))), (0,) * len(found[0])
        return several


def _sample_like(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """What a sample of none would be."""
    return tensor.new_zeros([*tensor.shape[:dim], *tensor.shape[dim + 1:]])


def _none_of(like: Any) -> Any:
    """An empty batch."""
    return like.new_empty((0, *like.shape)) if isinstance(like, torch.Tensor) else tuple(map(_none_of, like))


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _below(operator: Any, *arguments: Any) -> Any:
    """Without this derivative. Those around it, of other transformations, are on: `forward` has switched them off."""
    with torch._C._AutoDispatchBelowAutograd(), torch.enable_grad(), _set_fwd_grad_enabled(True):
        return operator(*arguments)


def _all(found: Any) -> tuple[Any, ...]:
    return (found,) if isinstance(found, torch.Tensor) else tuple(found)


def _floats(tensors: Sequence[torch.Tensor]) -> list[bool]:
    return [t.is_floating_point() for t in tensors]


def _zeros(given: Sequence[torch.Tensor | None], like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.zeros_like(t) if x is None else x for x, t in zip(given, like)]


class _Derivative(_SingleLevelFunction):
    """How an operator is differentiated: inside of the dispatcher, which takes apart transformations before."""

    @staticmethod
    def setup_context(ctx: Any, arguments: Any, output: Any) -> None:
        ctx.all, ctx.floats = arguments[0], _floats(_all(output))
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in arguments]
        ctx.is_float = [isinstance(x, torch.Tensor) and x.is_floating_point() for x in arguments]
        ctx.save_for_backward(*[x for x in arguments if isinstance(x, torch.Tensor)])
        ctx.save_for_forward(*[x for x in arguments if isinstance(x, torch.Tensor)])
        ctx.mark_non_differentiable(*[y for y in _all(output) if not y.is_floating_point()])


def _saved(ctx: Any) -> tuple[Operators, list[Any], list[Any]]:
    """The operators, the inputs, and what the operator is given beside them."""
    tensors = iter(ctx.saved_tensors)
    operators: Operators = ctx.all
    return operators, *operators.split([next(tensors) if x is None else x for x in ctx.numbers[1:]])


def _spread(ctx: Any, operators: Operators, of_inputs: Sequence[Any], *others: Any) -> tuple[Any, ...]:
    """What `backward` returns: for each argument of the operator."""
    found: list[Any] = [None] * len(operators.kinds)
    for k, x in zip(operators.tensors, of_inputs):
        found[k] = x if ctx.needs_input_grad[1 + k] and ctx.is_float[1 + k] else None
    return None, *found, *others


def _slopes(ctx: Any, found: Sequence[torch.Tensor]) -> Any:
    """What `jvp` returns: for each result."""
    slopes = [x if is_float else None for x, is_float in zip(found, ctx.floats)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _needs(ctx: Any, operators: Operators, tensors: Sequence[torch.Tensor]) -> list[bool]:
    return [bool(ctx.needs_input_grad[1 + k]) and t.is_floating_point() for k, t in zip(operators.tensors, tensors)]


class _Primal(_Derivative):
    @staticmethod
    def forward(operators: Operators, *arguments: Any) -> Any:
        return _below(operators.primal, *arguments)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        operators, inputs, _ = _saved(ctx)
        needs = _needs(ctx, operators, operators.of(inputs))
        return _spread(ctx, operators, _all(operators.gradient(*inputs, *cotangents, needs)))

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        operators, inputs, _ = _saved(ctx)
        directions = _zeros(operators.of(tangents), operators.of(inputs))
        return _slopes(ctx, _all(operators.tangent(*inputs, *directions)))


class _Gradient(_Derivative):
    @staticmethod
    def forward(operators: Operators, *arguments: Any) -> Any:
        return _below(operators.gradient, *arguments)

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        operators, inputs, (*cotangents, needs) = _saved(ctx)
        tensors = operators.of(inputs)
        full = [d if need else torch.zeros_like(t) for d, t, need in zip(directions, tensors, needs)]
        found = _all(operators.second(*inputs, *cotangents, *full, _needs(ctx, operators, tensors)))
        slopes = [s if c.is_floating_point() else None for s, c in zip(found[len(tensors):], cotangents)]
        return (*_spread(ctx, operators, found), *slopes, None)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        operators, inputs, (*cotangents, needs) = _saved(ctx)
        moved, others = operators.split(tangents)
        directions = _zeros(operators.of(moved), operators.of(inputs))
        curved = _all(operators.second(*inputs, *cotangents, *directions, needs))
        slopes = _all(operators.gradient(*inputs, *_zeros(others[:-1], cotangents), needs))
        return _slopes(ctx, [h + s for h, s in zip(curved, slopes)])


class _Tangent(_Derivative):
    @staticmethod
    def forward(operators: Operators, *arguments: Any) -> Any:
        return _below(operators.tangent, *arguments)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        operators, inputs, directions = _saved(ctx)
        tensors = operators.of(inputs)
        needs = _floats(tensors)
        curved = _all(operators.second(*inputs, *cotangents, *directions, needs))
        slopes = _all(operators.gradient(*inputs, *cotangents, needs))
        return (*_spread(ctx, operators, curved), *[s if need else None for s, need in zip(slopes, needs)])

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise errors.NotDifferentiable(f"the tangent of {ctx.all.title} has no tangent; take the tangent of its gradient, which "
                                       "tells the same (`jacfwd` of `jacrev`)")


class _Second(_Derivative):
    @staticmethod
    def forward(operators: Operators, *arguments: Any) -> Any:
        return _below(operators.second, *arguments)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise errors.NotDifferentiable(f"{ctx.all.title} has first and second derivatives, and no third ones")

    jvp = backward


def name_of(plan_name: str) -> str:
    return f"costate::{re.sub(r'[^A-Za-z0-9_]', '_', plan_name)}_{next(_counter)}"
