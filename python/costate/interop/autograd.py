"""Kernels as functions of PyTorch."""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Mapping, Sequence

import torch
from torch.autograd.function import _SingleLevelFunction, once_differentiable

from .. import _core, errors
from ..ad.tape import options_of
from costate.lang.base import dtypes, runtime
from costate.lang.launch.arguments import ArrayParameter, ScalarParameter, TemplateParameter, VectorParameter
from . import memory_kind
from .copies import on_host, read
from .kept_calls import KeptCall, is_plain, keep
from .operators import TENSOR, Kind, Operators, are_batched, is_traced, name_of
from .plan import Constants, Output, Plan
from .tensors import DTYPES, TORCH_DTYPES, adopt, check, reject, use_current_stream

class _Plan(Plan):
    """The same with tensors."""

    library = "PyTorch"
    may_keep = True
    kept: tuple[KeptCall, ...] = ()   # see kept_calls.py
    traceable: _Traceable

    def kind_of(self, position: int) -> Kind:
        """What an input is for operators."""
        if not self.is_number(position):
            return Kind()
        kind: Any = self.types[position]
        if self.is_core:
            floats = TORCH_DTYPES[kind.dtype].is_floating_point
            return Kind("float" if floats else "bool" if kind.dtype == _core.DType.bool else "int")
        shape = None if self.is_scalar(position) else tuple(kind.kind.shape)
        dtype = kind.dtype if shape is None else kind.kind.dtype or dtypes.defaults.fp
        return Kind("float" if dtype.is_float else "bool" if dtype.is_bool else "int", shape)

    def device_of(self, arguments: Sequence[Any]) -> Any:
        """That of the first tensor that is an array."""
        found = next((a.device for i, a in zip(self.inputs, arguments) if isinstance(a, torch.Tensor) and self.takes_tensor(i)), None)
        return memory_kind() if found is None else found

    def as_array(self, position: int, tensor: torch.Tensor, device: Any) -> torch.Tensor:
        """A tensor that requires a gradient in the place of a number, vector or matrix: in the type and shape of that."""
        kind: Any = self.types[position]
        dtype = kind.dtype if self.is_scalar(position) else kind.kind.dtype or dtypes.defaults.fp
        shape = () if self.is_scalar(position) else kind.kind.shape
        if not dtype.is_float or tensor.numel() != math.prod(shape):
            reject(tensor, f"is argument {position} (counted from 0) of {self.title}, which is {dtype} of shape {shape}")
        return tensor.to(device, TORCH_DTYPES[dtype.core]).reshape(shape).contiguous()

    def dtype_of(self, position: int, like: torch.Tensor) -> torch.dtype:
        if self.is_core:
            return TORCH_DTYPES[self.types[position].dtype]
        dtype = self.types[position].kind.dtype
        return like.dtype if dtype is None else TORCH_DTYPES[dtype.core]

    def output(self, position: int, arguments: Sequence[Any]) -> torch.Tensor:
        how = self.outputs[position]
        if callable(how):
            how = how(*arguments)
        if isinstance(how, torch.Tensor):
            return how.detach().clone(memory_format=torch.contiguous_format)
        like = next((a for a in arguments if isinstance(a, torch.Tensor)), None)
        if like is None:
            raise errors.BadArgument(f"{self.title} is given no tensor, which would say "
                                    "where its outputs are to be; let `outputs` make tensors")
        if isinstance(how, int):
            like = arguments[self.inputs.index(how)]
            shape = self.indices_of(how, like) + self.components_like(position, like)
        else:
            shape = self.whole_shape(position, how)
        return torch.zeros(shape, dtype=self.dtype_of(position, like), device=like.device)

    @property
    def has_makers(self) -> bool:
        """Whether functions of the user make results."""
        return any(map(callable, self.outputs.values()))

    def starts(self, inputs: Sequence[Any], made: Mapping[int, torch.Tensor] = {}) -> dict[int, torch.Tensor]:
        """What the results hold before the launch; `made`: copies of those that the user's functions have made for it."""
        starts = {i: made[i].clone() if i in made else self.output(i, inputs) for i in self.outputs}
        for i in self.updates:
            starts[i] = inputs[self.inputs.index(i)].detach().clone()
        return starts


class _Launch:
    """A kernel with arrays over tensors, which have the adjoints that they are given."""

    def __init__(self, plan: _Plan, tensors: Sequence[Any],
                 gradients: Mapping[int, torch.Tensor] = {}, dual: bool = False,
                 like: _Launch | None = None) -> None:
        self.plan, self.tensors = plan, tensors
        first = next(t for t in tensors if isinstance(t, torch.Tensor))
        self.device = runtime.device()
        self.copies = first.device.type != memory_kind()
        self.copied: list[Any] = []
        if first.is_cuda and not self.copies:
            use_current_stream(self.device, first)
        self.values: list[Any] = []
        for i, value in enumerate(tensors):
            if isinstance(value, torch.Tensor) and (plan.takes_tensor(i) or plan.is_number(i)):
                check(value)
                gradient = gradients.get(i)
                if gradient is None and plan.needs_grad(i):
                    gradient = _adjoint_like(value)
                value = self._array(value, gradient, dual and value.is_floating_point())
            self.values.append(value)
        self._resolve(like)

    def _array(self, tensor: torch.Tensor, gradient: torch.Tensor | None, dual: bool) -> _core.Array:
        if not self.copies:
            return adopt(tensor, gradient, self.device, announced=True, dual=dual)
        array = _core.Array(self.device, DTYPES[tensor.dtype], list(tensor.shape), grad=gradient is not None, dual=dual)
        for part, source in [(array, tensor)] + ([] if gradient is None else [(array.grad, gradient)]):
            part.write(on_host(source))
            self.copied.append((part, part.version, source))
        return array

    def copy_back(self) -> None:
        """What kernels have written, where tensors are not in memory of the device."""
        for array, version, tensor in self.copied:
            if array.version != version:
                read(array, tensor)

    def set(self, array: _core.Array, values: torch.Tensor) -> None:
        if self.copies:
            array.write(on_host(values).to(TORCH_DTYPES[array.dtype]))
        else:
            torch.from_dlpack(array).copy_(values)  # type: ignore[attr-defined]

    def get(self, array: _core.Array, like: torch.Tensor) -> torch.Tensor:
        """A copy, of the dtype of another tensor."""
        if not self.copies:
            return torch.from_dlpack(array).to(like.dtype, copy=True)  # type: ignore[attr-defined]
        host = torch.empty(tuple(array.shape), dtype=TORCH_DTYPES[array.dtype], device="cpu")
        array.read(host)
        return host.to(like.device, like.dtype)

    core: Any
    arguments: Any
    own: Any
    after: list[Callable[[], None]]
    #: What functions of the user have made, by position, as it was before the launch.
    made: Mapping[int, torch.Tensor] = {}

    def _resolve(self, like: _Launch | None) -> None:
        """What the kernel is given: also fields, and the key of random numbers."""
        self.core, self.arguments, self.own, self.after = self.plan.prepared(self.values, like and like.own)
        self.fields = [a for a in self.arguments if isinstance(a, _core.Array)
                       and not any(a is value for value in self.values)]

    def primal(self) -> None:
        before = [field.version for field in self.fields]
        versions = [v.version if isinstance(v, _core.Array) else 0 for v in self.values]
        try:
            for _ in range(self.plan.steps or 1):
                self.core.launch(*self.arguments)
        finally:
            changed = self._changed_inputs(versions)
        for i in changed:
            self.plan.require_result(i)
        self.copy_back()
        for action in self.after:
            action()
        self.field_versions = [field.version for field in self.fields]
        self.writes_fields = before != self.field_versions

    def _changed_inputs(self, versions: Sequence[int]) -> list[int]:
        """Those that were written all the same, by what nobody could look at before. Autograd is told."""
        found = [i for i, (value, version) in enumerate(zip(self.values, versions))
                 if isinstance(value, _core.Array) and value.version != version and i not in self.plan.results]
        for i in found:
            if isinstance(self.tensors[i], torch.Tensor) and not self.copies:
                torch.autograd.graph.increment_version(self.tensors[i])
        return found

    def reverse(self, initial_state: bool) -> None:
        if self.plan.steps is None:
            self.core.grad(*self.arguments, initial_state=initial_state)
        else:
            tape = _core.Tape(**self.plan.options)
            with tape.record():
                for _ in tape.steps(self.plan.steps):
                    self.core.launch(*self.arguments)
            tape.backward()
        self.copy_back()

    def require_fields(self, initial_state: bool) -> None:
        """In a gradient of this launch: fields are not arguments, so PyTorch keeps none."""
        if [field.version for field in self.fields] != self.field_versions:
            raise errors.CannotReplay(
                f"a field that {self.plan.title} uses was written since the function of "
                "PyTorch was called; pass what it holds as an argument")
        if initial_state and self.writes_fields:
            raise errors.CannotReplay(
                f"the gradient of {self.plan.title} needs what fields held before it "
                "wrote them; pass them as arguments, and name these in `updates`")

    def forget_tensors(self) -> _Launch:
        """What a gradient has to know of a launch, without its memory."""
        self.tensors = self.values = self.arguments = self.copied = self.after = []
        return self


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, *inputs: Any) -> Any:
        given = [x for x in inputs if isinstance(x, torch.Tensor)]
        inputs = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in inputs)
        results = plan.starts(inputs)
        made = {i: results[i].clone() for i, how in plan.outputs.items() if callable(how)}
        launch = _Launch(plan, plan.place(inputs, results))
        launch.primal()
        launch.made = made
        keep(plan, launch, results)
        ctx.plan, ctx.launch = plan, launch.forget_tensors()
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        outputs = [results[i] for i in plan.results]
        ctx.save_for_backward(*given, *([] if plan.replays else outputs))
        ctx.save_for_forward(*given)
        ctx.mark_non_differentiable(*[y for y in outputs if not y.is_floating_point()])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        inputs, finals = _saved(ctx)
        return None, *_reversed(ctx, ctx.plan, ctx.launch, inputs, finals, cotangents)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: torch.Tensor | None) -> Any:
        saved, plan = list(ctx.saved_tensors), ctx.plan
        inputs = [saved.pop(0).detach() if number is None else number for number in ctx.numbers]
        if ctx.launch.writes_fields:
            raise errors.NotDifferentiable(
                f"forward mode of {plan.title}, which writes fields, would write them twice; pass "
                "what it writes as arguments, and name them in `outputs` or `updates`")
        results = plan.starts(inputs, ctx.launch.made)
        if are_batched(tangents):
            operators, given = plan.traceable.given(inputs)
            slopes = _of_floats(operators.tangents(given, tangents), [results[i] for i in plan.results])
        else:
            both = _Launch(plan, plan.place(inputs, results), dual=True, like=ctx.launch)
            slopes = _tangents(plan, both, results, tangents)
        return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _saved(ctx: Any) -> tuple[tuple[Any, ...], tuple[torch.Tensor, ...]]:
    """The inputs, and what the results hold, if that is known."""
    saved, count = ctx.saved_tensors, len(ctx.numbers)
    if any(number is not None for number in ctx.numbers):
        tensors = iter(saved)
        inputs = tuple([next(tensors) if number is None else number for number in ctx.numbers])
        return inputs, tuple(tensors)
    return saved[:count], saved[count:]


def _reversed(ctx: Any, plan: _Plan, launch: _Launch, inputs: Sequence[Any], finals: Sequence[torch.Tensor],
              cotangents: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    if are_batched(cotangents):
        operators, given = plan.traceable.given(inputs)
        return tuple(operators.gradients(given, cotangents, ctx.needs_input_grad[1:]))
    apply: Any = _Gradient.apply
    found: tuple[Any, ...] = apply(plan, launch, ctx.needs_input_grad[1:], [y.detach() for y in finals], *inputs, *cotangents)
    return found


class _Again(_SingleLevelFunction):
    """A call like one before, of which nothing is transformed."""

    @staticmethod
    def forward(ctx: Any, call: KeptCall, *inputs: Any) -> Any:
        outputs = call(inputs)
        if outputs is None:
            ctx.call = None
            return _Function.forward(ctx, call.plan, *inputs)
        ctx.call, kept = call, outputs if call.keeps_results(ctx.needs_input_grad) and not call.plan.replays else ()
        if call.numbers:
            ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]
            ctx.save_for_backward(*[x for x in inputs if isinstance(x, torch.Tensor)], *kept)
        else:
            ctx.save_for_backward(*inputs, *kept)
        if not call.all_floats:
            ctx.mark_non_differentiable(*[y for y in outputs if not y.is_floating_point()])
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        call = ctx.call
        if call is None:
            return _Function.backward(ctx, *cotangents)
        if call.numbers:
            inputs, finals = _saved(ctx)
        else:
            saved, count = ctx.saved_tensors, len(call.plan.inputs)
            inputs, finals = saved[:count], saved[count:]
        if not torch.is_grad_enabled() and is_plain():
            found = call.gradient(inputs, finals, ctx.needs_input_grad, cotangents)
            if found is not None:
                return found
        return None, *_reversed(ctx, call.plan, call.launch_of(inputs), inputs, finals, cotangents)


class _Gradient(torch.autograd.Function):
    """The gradient, whose own gradient is the product of the Hessian and a vector."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, launch: _Launch, needs: Sequence[bool],
                finals: Sequence[torch.Tensor], *tensors: Any) -> Any:
        count = len(plan.inputs)
        ctx.save_for_backward(*[x for x in tensors if isinstance(x, torch.Tensor)])
        tensors = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in tensors)
        inputs, cotangents = tensors[:count], tensors[count:]
        ctx.plan, ctx.launch, ctx.needs = plan, launch, needs
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in tensors]
        results = dict(zip(plan.results, finals))
        if results and not plan.replays:
            try:
                return _gradients(plan, launch, needs, inputs, results, cotangents, False)
            except _core.CannotReplay:
                plan.replays = True
        return _gradients(plan, launch, needs, inputs, plan.starts(inputs, launch.made), cotangents, True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *directions: torch.Tensor | None) -> Any:
        saved = list(ctx.saved_tensors)
        tensors = [saved.pop(0) if number is None else number for number in ctx.numbers]
        count = len(ctx.plan.inputs)
        return None, None, None, None, *_second(ctx, tensors[:count], tensors[count:], directions)


def _adjoint_like(tensor: torch.Tensor) -> torch.Tensor:
    """Costate keeps those of f16 in f32."""
    dtype = torch.float32 if tensor.dtype == torch.float16 else tensor.dtype
    return torch.zeros(tensor.shape, dtype=dtype, device=tensor.device)


def _adjoints(plan: _Plan, needs: Sequence[bool], inputs: Sequence[Any],
              results: Mapping[int, torch.Tensor],
              cotangents: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    adjoints = {}
    for i, cotangent in zip(plan.results, cotangents):
        if results[i].is_floating_point():
            adjoints[i] = _adjoint_like(results[i]).copy_(cotangent)
    for k, i in enumerate(plan.inputs):
        if needs[k] and i not in results:
            adjoints[i] = _adjoint_like(inputs[k])
    return adjoints


def _gradients(plan: _Plan, launch: _Launch, needs: Sequence[bool], inputs: Sequence[Any],
               results: Mapping[int, torch.Tensor], cotangents: Sequence[torch.Tensor],
               initial_state: bool) -> tuple[Any, ...]:
    adjoints = _adjoints(plan, needs, inputs, results, cotangents)
    gradient = _Launch(plan, plan.place(inputs, results), adjoints, like=launch)
    launch.require_fields(initial_state)
    gradient.reverse(initial_state)
    return tuple(_of_inputs(plan, needs, inputs, adjoints))


def _second(ctx: Any, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor],
            directions: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """The derivative of the gradient along `directions`, which by symmetry is the gradient of
    its product with them; and that of the function, which belongs to the cotangents."""
    plan, launch = ctx.plan, ctx.launch
    launch.require_fields(initial_state=True)
    if are_batched((*cotangents, *directions)):
        operators, given = plan.traceable.given(inputs)
        of_inputs, of_results = operators.seconds(given, cotangents, directions, ctx.needs_input_grad[4:])
        return [*of_inputs, *_of_floats(of_results, cotangents)]
    results = plan.starts(inputs, launch.made)
    adjoints = _adjoints(plan, ctx.needs, inputs, results, cotangents)
    both = _Launch(plan, plan.place(inputs, results), adjoints, dual=True, like=launch)
    along, slopes = _curvatures(plan, both, ctx.needs_input_grad[4:], inputs, results, directions)
    return along + slopes


def _curvatures(plan: _Plan, launch: _Launch, needs: Sequence[bool], inputs: Sequence[Any], results: Mapping[int, torch.Tensor],
                directions: Sequence[torch.Tensor | None]) -> tuple[list[torch.Tensor | None], list[torch.Tensor | None]]:
    if plan.steps is not None:
        raise errors.NotDifferentiable(f"the function of {plan.title} launches it several times, so its gradient "
                                       "has no gradient; call a function of one launch several times")
    _set_tangents(plan, launch, directions)
    launch.core.gradient().jvp(*launch.arguments, initial_state=True)
    along = [launch.get(launch.values[i].grad.dual, inputs[k]) if needs[k] else None for k, i in enumerate(plan.inputs)]
    return along, _tangents(plan, launch, results, ())


def _of_floats(found: Sequence[torch.Tensor], like: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    return [x if t.is_floating_point() else None for x, t in zip(found, like)]


def _set_tangents(plan: _Plan, launch: _Launch, tangents: Sequence[torch.Tensor | None]) -> None:
    for i, tangent in zip(plan.inputs, tangents):
        if tangent is not None:
            launch.set(launch.values[i].dual, tangent)


def _tangents(plan: _Plan, launch: _Launch, results: Mapping[int, torch.Tensor],
              tangents: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Those of the results, from those of the inputs; without any, from those that are set."""
    _set_tangents(plan, launch, tangents)
    for _ in range(plan.steps or 1):
        launch.core.jvp(*launch.arguments)
    return [launch.get(launch.values[i].dual, results[i])
            if results[i].is_floating_point() else None for i in plan.results]


class _Traced:
    """The same for operators, whose calls know nothing of each other: what the kernel finds elsewhere than in its arguments
    stays what it was at the first call."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.constants = Constants(f"{plan.title} is part of a graph or transformation of PyTorch (`torch.compile`, `torch.export`, "
                                   "`torch.func`), and")

    def like(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        starts = self.plan.starts(inputs)
        return [starts[i] for i in self.plan.results]

    def primal(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        results = self.plan.starts(inputs)
        launch = self._checked(_Launch(self.plan, self.plan.place(inputs, results)))
        launch.primal()
        if launch.writes_fields:
            self.constants.refuse("writes fields; pass what it writes as arguments, and name them in `outputs` or `updates`")
        return [results[i] for i in self.plan.results]

    def gradient(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor], needs: Sequence[bool]) -> list[Any]:
        results = self.plan.starts(inputs)
        adjoints = _adjoints(self.plan, needs, inputs, results, cotangents)
        launch = self._checked(_Launch(self.plan, self.plan.place(inputs, results), adjoints))
        launch.reverse(initial_state=True)
        return _of_inputs(self.plan, needs, inputs, adjoints)

    def tangent(self, inputs: Sequence[Any], directions: Sequence[Any]) -> list[torch.Tensor | None]:
        results = self.plan.starts(inputs)
        launch = self._checked(_Launch(self.plan, self.plan.place(inputs, results), dual=True))
        return _tangents(self.plan, launch, results, directions)

    def second(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor], directions: Sequence[Any],
               needs: Sequence[bool]) -> tuple[list[torch.Tensor | None], list[torch.Tensor | None]]:
        results = self.plan.starts(inputs)
        adjoints = _adjoints(self.plan, needs, inputs, results, cotangents)
        launch = self._checked(_Launch(self.plan, self.plan.place(inputs, results), adjoints, dual=True))
        return _curvatures(self.plan, launch, needs, inputs, results, directions)

    def _checked(self, launch: _Launch) -> _Launch:
        self.constants.check(launch.core, launch.own, launch.fields)
        return launch


def _of_inputs(plan: _Plan, needs: Sequence[bool], inputs: Sequence[Any], adjoints: Mapping[int, torch.Tensor]) -> list[Any]:
    return [adjoints[i].to(inputs[k].dtype) if needs[k] else None for k, i in enumerate(plan.inputs)]


def torch_function(kernel: Any, outputs: Mapping[int, Output] | None = None, *,
                   updates: Sequence[int] = (), steps: int | None = None, snapshots: int | None = None,
                   budget: int | str | None = None, on_host: bool = False,
                   folder: str | os.PathLike[str] | None = None, name: str | None = None,
                   vmap_method: str | None = "sequential") -> Callable[..., Any]:
    """A kernel as a function of PyTorch, with its gradient.

    ``outputs`` says which arguments of the kernel, counted from 0, the function
    returns instead of taking them, and how each of them is made, all zero: an
    int for the shape of that other argument, a shape, or a function of the
    arguments that gives a shape or a tensor to start with (under `torch.compile` and
    `torch.func` a gradient calls it again: it depends on its arguments alone there). Where the elements are
    vectors or matrices, the shape may be that of the elements alone. ``updates`` names
    arguments that the kernel reads and writes: the function leaves the tensor
    that it is given alone and returns another one.

        norm = torch_function(kernel, outputs={1: ()})  # kernel(x, sum)
        norm(x).backward()

    Outputs of a kernel that takes arrays of any dtype have that of the argument
    that they are like, or else of the first tensor.

    The function takes the other arguments in order: tensors, which are copied
    only if they are not contiguous or not on the device, and numbers, which may be tensors too. It runs on PyTorch's current
    stream and returns one tensor or a tuple of them. Where the gradient needs
    values that the kernel overwrites, the kernel runs once more in `backward`.
    The gradient has a gradient too, but that none; forward mode (`torch.autograd.forward_ad`)
    works. A kernel that writes other arguments is BadArgument, before it does.

    With ``steps`` the kernel is launched so many times on the same arguments, as where
    ``updates`` are a state. The gradient launches it again under a `Tape` with ``snapshots`` or a
    ``budget`` (bytes, or a text such as "2GB") of what it keeps; ``on_host`` and ``folder`` say where, as
    for a `Tape`.

    `torch.compile`, `torch.export` and `torch.func` find an operator of PyTorch, `function.operator`, called ``name``
    (such as "mine::norm"). `torch.func.vmap` launches it for each sample, or raises BadArgument with ``vmap_method=None``.
    """
    options = {option: value for option, value in options_of(snapshots, budget, on_host, folder).items() if value}
    plan = _Plan(kernel, outputs or {}, updates, steps, **options)

    plan.traceable = _Traceable(plan, name, vmap_method)
    return _callable(plan, plan.traceable)


def _callable(plan: _Plan, traceable: _Traceable) -> Callable[..., Any]:
    def function(*arguments: Any, **named: Any) -> Any:
        if named or len(arguments) != count:
            arguments = plan.arguments(arguments, named)
        if not torch.compiler.is_compiling() and plan.kept and is_plain():
            for call in plan.kept:
                fit = call.fits(arguments)
                if fit == 0:
                    continue
                if fit == 2 and torch.is_grad_enabled():
                    return again(call, *arguments)
                results = call(arguments)
                if results is not None:
                    return results[0] if len(results) == 1 else results
        if is_traced(arguments):
            return traceable(arguments)
        apply: Any = _Function.apply
        device = plan.device_of(arguments)
        return apply(plan, *[_prepared(plan, i, a, device) for i, a in zip(plan.inputs, arguments)])

    kind: Any = _Again
    again, count = kind.apply, len(plan.inputs)
    function.__name__ = function.__qualname__ = plan.name
    function.operator = traceable.operator  # type: ignore[attr-defined]
    return function


class _Traceable:
    """The operators of a function: where numbers are numbers, and where those of floats are tensors, which have derivatives."""

    def __init__(self, plan: _Plan, name: str | None, vmap_method: str | None) -> None:
        if vmap_method not in (None, "sequential"):
            raise errors.BadArgument(f"there is no `vmap_method` {vmap_method!r} of functions of PyTorch; there are \"sequential\" and None")
        if name is not None and (name.count("::") != 1 or not all(part.isidentifier() for part in name.split("::"))):
            raise errors.BadArgument(f"an operator of PyTorch cannot have the name {name!r}; give one such as \"mine::{plan.name}\"")
        self.plan, self.operator = plan, None
        self.others = [i for i in plan.inputs if not plan.takes_tensor(i) and not plan.is_number(i)]
        if self.others:
            return
        name, work, title = name or name_of(plan.name), _Traced(plan), f"{plan.title}"
        self.kinds = [plan.kind_of(i) for i in plan.inputs]
        self.wide_kinds = [Kind() if kind.type == "float" else kind for kind in self.kinds]
        count = len(plan.results)
        self.plain = Operators(work, name, self.kinds, count, vmap_method, title)
        self.wide = self.plain
        if not plan.is_core and any(kind.type == "float" for kind in self.kinds):
            self.wide = Operators(work, name + "_of_tensors", self.wide_kinds, count, vmap_method, title)
        self.operator = self.plain.primal

    def __call__(self, arguments: Sequence[Any]) -> Any:
        operators, given = self.given(arguments)
        return operators.primal(*given)

    def given(self, arguments: Sequence[Any]) -> tuple[Operators, list[Any]]:
        """The operators for these arguments, and what they are given."""
        plan = self.plan
        if self.others:
            raise errors.BadArgument(f"argument {self.others[0]} (counted from 0) of {plan.title} is neither a tensor nor a number, "
                                     "so its function cannot be a part of a graph or transformation of PyTorch")
        inputs = list(zip(plan.inputs, arguments, self.kinds))
        wide = any(isinstance(a, torch.Tensor) and kind.type == "float" for _, a, kind in inputs)
        if not wide or plan.is_core:
            return self.plain, [_given(kind, a) for _, a, kind in inputs]
        device = plan.device_of(arguments)
        return self.wide, [plan.as_array(i, torch.as_tensor(a), device) if kind.type == "float" else _given(kind, a)
                           for i, a, kind in inputs]


def _given(kind: Kind, argument: Any) -> Any:
    if isinstance(argument, torch.Tensor) and kind.type != TENSOR:
        argument = argument.item() if kind.shape is None else argument.tolist()
    return kind.given(argument)


def _has_derivative(tensor: torch.Tensor) -> bool:
    unpack: Any = torch.autograd.forward_ad.unpack_dual
    return tensor.requires_grad or unpack(tensor).tangent is not None


def _prepared(plan: _Plan, position: int, argument: Any, device: Any) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    if plan.takes_tensor(position):
        if argument.layout != torch.strided:
            check(argument)    # refuses it
        return argument.contiguous()
    if plan.is_number(position) and _has_derivative(argument):
        if not plan.is_core:
            return plan.as_array(position, argument, device)
        reject(argument, f"is argument {position} (counted from 0) of kernel "
                f"`{plan.name}`, a scalar, which has no gradient; make it an array of rank 0, or pass `x.item()`")
    return argument.item() if plan.is_scalar(position) else argument.tolist() if plan.is_number(position) else argument
