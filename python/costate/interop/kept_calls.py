"""Calls of functions of PyTorch that are like one before: with tensors of the same types, on their memory as it is.

They know the compiled kernel and where its arguments come from, and ask nothing twice. Whatever is not that simple is left
to the calls that know nothing, each of which may be the first of its kind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import torch
from torch.autograd import forward_ad

from .. import _core
from costate.lang.base import runtime, threads
from costate.lang.base.state import state
from costate.lang.launch.arguments import ArrayParameter, ScalarParameter
from costate.lang.launch.specialisation import Own
from . import memory_kind

if TYPE_CHECKING:
    from .autograd import _Launch, _Plan

#: What PyTorch offers to code that is not built against it, from 2.10 on.
EXCHANGE: Any = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
MOST = 4

Inputs = tuple[Any, ...]
#: How a result is made of the inputs.
Maker = Callable[[Inputs], torch.Tensor]
Found = tuple[Union[torch.Tensor, None], ...]

_plans = threads.Objects()


@runtime.on_reset.add
def _forget() -> None:
    for plan in _plans:
        plan.kept = ()


_transforms_are_active = torch._C._are_functorch_transforms_active
_dispatch_modes = torch._C._len_torch_dispatch_stack
_tracing_state = torch._C._get_tracing_state


def is_plain() -> bool:
    """Whether calls are nothing but that: nobody transforms or records them."""
    return not (state.loud or _transforms_are_active() or _dispatch_modes() or forward_ad._current_level >= 0
                or _tracing_state() is not None)


class KeptCall:
    """What calls with tensors of certain types have in common."""

    def __init__(self, plan: _Plan, core: _core.Kernel, positions: Sequence[int], seen: Any, launch: _Launch,
                 results: Mapping[int, torch.Tensor]) -> None:
        self.plan, self.seen, self.launch, self.key = plan, seen, launch, _key(plan, launch)
        of = [(plan.inputs.index(i) if i in plan.inputs else -1, plan.results.index(i) if i in plan.results else -1) for i in positions]
        likes = [_like(plan, i, launch) for i in plan.results]
        self.makes_results = min(likes) >= 0
        self.tensors = _core.TensorLaunch(core, runtime.device(), EXCHANGE, (torch.Tensor, torch.nn.Parameter),
                                          (torch.zeros_like, torch.empty_like, _copy), likes, [k for k, _ in of], [k for _, k in of],
                                          [_components(plan, launch, i) for i in positions])
        self.numbers = [(k, plan.types[i]) for k, i in enumerate(plan.inputs) if plan.is_scalar(i)]
        self.makers = [_maker(plan, i, results[i], launch) for i in plan.results]
        self.kept: dict[tuple[bool, ...], bool] = {}   # whether gradients by so many inputs need the results
        self.all_floats = all(results[i].is_floating_point() for i in plan.results)

    def fits(self, inputs: Inputs) -> int:
        """Whether it is one for these inputs: 0, or 1, or 2 if one of them requires a gradient."""
        if self.seen is not None and not self.seen.holds():
            return 0
        if self.numbers and not self._fit(inputs):
            return 0
        return self.tensors.fits(inputs)

    def _fit(self, inputs: Inputs) -> bool:
        for k, parameter in self.numbers:
            value = inputs[k]
            if self.plan.is_core:
                if type(value) not in (int, float, bool):
                    return False
            elif type(value) is not parameter.python_type or not parameter.lo <= value <= parameter.hi:
                return False
        return True

    def __call__(self, inputs: Inputs) -> tuple[torch.Tensor, ...] | None:
        """The results; None if what the user makes them of does not fit."""
        if self.makes_results:
            return self.tensors.call(inputs)
        results = tuple([make(inputs) for make in self.makers])
        return results if self.tensors.launch(inputs, results) else None

    def keeps_results(self, needs: tuple[bool, ...]) -> bool:
        """Whether the results are kept for a gradient."""
        return self.kept.get(needs, True)

    def gradient(self, inputs: Inputs, finals: tuple[torch.Tensor, ...], needs: tuple[bool, ...],
                 cotangents: tuple[torch.Tensor, ...]) -> Found | None:
        """As many as `needs`, which ends with those of the inputs; None if the tensors do not fit. `finals`: what the results hold,
        if that is known."""
        if self.seen is not None and not self.seen.holds():
            return None
        if not self.plan.replays and (finals or not self.keeps_results(needs)):
            try:
                found = self.tensors.gradient(inputs, finals, needs, cotangents, False)
                self.kept[needs] = self.tensors.needs_results
                if found is not None or finals:
                    return found
                self.kept[needs] = True
            except _core.CannotReplay:
                self.plan.replays = True
        starts = tuple([make(inputs) for make in self.makers])
        return self.tensors.gradient(inputs, starts, needs, cotangents, True)

    def launch_of(self, inputs: Inputs) -> _Launch:
        """What calls that know nothing want to know of the launch."""
        if not self.numbers or self.launch.own is None:
            return self.launch
        launch = copy.copy(self.launch)
        launch.own = Own({}, self.launch.own.seen, [inputs[k] for k, _ in self.numbers])
        return launch


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _key(plan: _Plan, launch: _Launch) -> tuple[Any, ...]:
    return tuple([(a.dtype, len(a.shape), *_components(plan, launch, i)) if isinstance(a, _core.Array) else None
                  for i, a in enumerate(launch.values)])


def _components(plan: _Plan, launch: _Launch, position: int) -> list[int]:
    """The last extents of a tensor, if the code is for no others."""
    if not plan.is_array(position):
        return []
    array = launch.values[position]
    count = len(plan.components(position)) or (0 if plan.is_core else plan.types[position].kind.element_dim or 0)
    return list(array.shape[len(array.shape) - count:])


def _like(plan: _Plan, position: int, launch: _Launch) -> int:
    """The input that a result is zeros like, or -1."""
    how = plan.outputs.get(position)
    if not isinstance(how, int):
        return -1
    like = launch.values[how]
    alike = like.dtype == launch.values[position].dtype and _components(plan, launch, how) == _components(plan, launch, position)
    return plan.inputs.index(how) if alike else -1


def _maker(plan: _Plan, position: int, result: torch.Tensor, launch: _Launch) -> Maker:
    if position in plan.updates:
        k = plan.inputs.index(position)
        return lambda inputs: inputs[k].clone()
    how = plan.outputs[position]
    k = _like(plan, position, launch)
    if k >= 0:
        return lambda inputs: torch.zeros_like(inputs[k])
    if not isinstance(how, int):
        shape, dtype, device = result.shape, result.dtype, result.device
        return lambda inputs: torch.zeros(shape, dtype=dtype, device=device)
    return lambda inputs: plan.output(position, inputs)


def _is_simple(plan: _Plan) -> bool:
    """Whether all arguments are arrays and numbers, what happens is one launch, and no function of the user makes results."""
    if EXCHANGE is None or plan.has_makers or plan.steps is not None or plan.sequence is not None:
        return False
    if plan.is_core:
        return True
    return all(isinstance(kind, ScalarParameter) and not kind.shape
               or isinstance(kind, ArrayParameter) and not kind.kind.members and not kind.kind.needs_grad for kind in plan.types)


def _has_half(launch: _Launch) -> bool:
    """Gradients of f16 are f32."""
    return any(isinstance(a, _core.Array) and a.dtype == _core.DType.f16 for a in launch.values)


def keep(plan: _Plan, launch: _Launch, results: Mapping[int, torch.Tensor]) -> None:
    """After a call: those like it know more, if that is possible."""
    if not plan.may_keep or launch.copies or not is_plain() or _has_half(launch):
        return
    if not _is_simple(plan):
        plan.may_keep = False
        return
    key = _key(plan, launch)
    if any(call.key == key and (call.seen is None or call.seen.holds()) for call in plan.kept):
        return
    found = _compiled(plan, launch)
    if found is None:
        plan.may_keep = False
        return
    _plans.add(plan)
    plan.kept = (KeptCall(plan, *found, launch, results), *plan.kept)[:MOST]


def _compiled(plan: _Plan, launch: _Launch) -> tuple[_core.Kernel, Sequence[int], Any] | None:
    """(the kernel, the position of each of its arguments, what it has read of objects), if launches are nothing but that."""
    if plan.is_core:
        return plan.kernel, range(len(plan.types)), None
    found, values = plan.kernel.specialise((*plan.instance, *launch.values), is_derived=True)
    of_instance = len(plan.instance)
    counts = [0] * of_instance + [1] * len(plan.types)
    if (found.compiled is None or not found.plain or found.blocks or values.after or values.hosts or values.has_cells
            or values.counts != counts or not all(type(one) is int for one in found.order)):
        return None
    return found.compiled, found.order, found.seen if found.seen.places else None
