"""PyTorch tensors as arguments of kernels, and kernels as functions of PyTorch.

``launch(kernel.launch, x, y, 3)`` passes tensors as they are; nothing is copied.
``torch_function(kernel, outputs=...)`` makes a differentiable function.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence, Union

import torch
from torch.autograd.function import once_differentiable

from .. import _core
from . import device_for

__all__ = ["array_of", "launch", "launcher", "torch_function"]

_DTYPES = {
    torch.bool: _core.DType.bool,
    torch.int8: _core.DType.i8,
    torch.int16: _core.DType.i16,
    torch.int32: _core.DType.i32,
    torch.int64: _core.DType.i64,
    torch.uint8: _core.DType.u8,
    torch.uint16: _core.DType.u16,
    torch.uint32: _core.DType.u32,
    torch.uint64: _core.DType.u64,
    torch.float16: _core.DType.f16,
    torch.float32: _core.DType.f32,
    torch.float64: _core.DType.f64,
}
_TORCH_DTYPES = {ours: theirs for theirs, ours in _DTYPES.items()}
_increment_version = torch.autograd.graph.increment_version


# -- Tensors as arrays ---------------------------------------------------------


def _describe(tensor: torch.Tensor) -> str:
    return f"a {tensor.dtype} tensor of shape {tuple(tensor.shape)} on {tensor.device}"


def _reject(tensor: torch.Tensor, text: str) -> None:
    raise _core.BadArgument(f"{_describe(tensor)} {text}")


def _check(tensor: torch.Tensor) -> None:
    if tensor.dtype not in _DTYPES:
        _reject(tensor, "has elements that kernels do not have; convert it with `.to(...)`")
    if tensor.layout != torch.strided:
        _reject(tensor, "is sparse; pass `x.to_dense()`")
    if not tensor.is_contiguous():
        _reject(tensor, "is not contiguous; pass `x.contiguous()`")
    if tensor.is_conj() or tensor.is_neg():
        _reject(tensor, "is a view that PyTorch computes when it is read; pass `x.resolve_neg()`")


def _gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Its ``.grad``, made if it requires one."""
    if not tensor.requires_grad:
        return None
    if not tensor.is_leaf:
        _reject(tensor, "is the result of other operations and requires a gradient, which a "
                "launch would lose; use `torch_function`, or pass `x.detach()`")
    if tensor.dtype == torch.float16:
        _reject(tensor, "requires a gradient, which Costate keeps in float32; use "
                "`torch_function`, or float32")
    if tensor.grad is None:
        tensor.grad = torch.zeros_like(tensor)
    gradient = tensor.grad
    if not gradient.is_contiguous() or gradient.dtype != tensor.dtype:
        _reject(tensor, "has a `.grad` that is not contiguous, or of another dtype")
    return gradient


def _version_of(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _adopt(tensor: torch.Tensor, gradient: torch.Tensor | None, device: _core.Device,
           announced: bool) -> _core.Array:
    if tensor.is_cuda:
        # Its memory is used again only behind what this stream is to do.
        for used in (tensor, gradient):
            if used is not None:
                used.record_stream(torch.cuda.current_stream(used.device))
    return _core.Array.adopt(
        device, _DTYPES[tensor.dtype], tuple(tensor.shape), tensor.data_ptr(),
        tensor.untyped_storage(),
        grad_address=0 if gradient is None else gradient.data_ptr(),
        grad_owner=None if gradient is None else gradient.untyped_storage(),
        grad=gradient is not None, announced=announced, stream_ordered=tensor.is_cuda)


class _Known:
    """The array over a tensor, kept with it as long as the tensor stays what it is."""

    __slots__ = ("array", "place", "gradient_place", "shape", "version", "array_version",
                 "device")

    def __init__(self, tensor: torch.Tensor, device: _core.Device) -> None:
        _check(tensor)
        gradient = _gradient_of(tensor)
        self.version = _version_of(tensor)
        self.array = _adopt(tensor, gradient, device, announced=self.version is not None)
        self.array_version = self.array.version
        self.place = tensor.data_ptr()
        self.shape = tensor.shape
        self.gradient_place = None if gradient is None else gradient.data_ptr()
        self.device = device if tensor.is_cuda else None

    def fits(self, tensor: torch.Tensor) -> bool:
        if (self.place != tensor.data_ptr() or self.shape != tensor.shape
                or not tensor.is_contiguous()):
            return False
        if self.gradient_place is None:
            return not tensor.requires_grad
        gradient = tensor.grad
        return (tensor.requires_grad and gradient is not None
                and gradient.data_ptr() == self.gradient_place)

    def read_versions(self, tensor: torch.Tensor) -> None:
        """Before a launch: what others have written since."""
        if self.array_version != self.array.version:
            self.write_versions(tensor)
        if self.version is not None and tensor._version != self.version:
            self.array.written_outside()
            self.version = tensor._version
            self.array_version = self.array.version

    def write_versions(self, tensor: torch.Tensor) -> None:
        """After a launch that has written it."""
        self.array_version = self.array.version
        if self.version is not None:
            unseen = tensor._version - self.version
            _increment_version(tensor)
            self.version = tensor._version - unseen

    # Copies and pickles of the tensor are other tensors.
    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return type(None), ()


def _known(tensor: torch.Tensor) -> _Known:
    known = getattr(tensor, "_costate", None)
    if known is None or not known.fits(tensor):
        known = tensor._costate = _Known(tensor, device_for(tensor.device.type))
    else:
        known.read_versions(tensor)
    if known.device is not None:
        _use_current_stream(known.device, tensor)
    return known


def _use_current_stream(device: _core.Device, tensor: torch.Tensor) -> None:
    device.use_stream(torch.cuda.current_stream(tensor.device).cuda_stream)


def array_of(tensor: torch.Tensor) -> _core.Array:
    """The array over the memory of a contiguous tensor; nothing is copied.

    Its ``grad`` is over ``tensor.grad``, which is made, all zero, if the tensor
    requires a gradient and has none. Work on the array goes to PyTorch's current
    stream from here on. Raises BadArgument for tensors that are not contiguous,
    of a dtype that kernels do not have, or results that require a gradient.
    """
    return _known(tensor).array


def launch(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls ``function``, such as ``kernel.launch`` or ``kernel.grad``, with
    arrays in the place of tensors, and tells PyTorch which of them it has written."""
    tensors = []
    converted = []
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            known = _known(argument)
            tensors.append((known, argument))
            converted.append(known.array)
        else:
            converted.append(argument)
    try:
        return function(*converted, **options)
    finally:
        for known, tensor in tensors:
            if known.array_version != known.array.version:
                known.write_versions(tensor)


def launcher(function: Callable[..., Any]) -> Callable[..., Any]:
    """``launch`` of this function."""
    return lambda *arguments, **options: launch(function, *arguments, **options)


# -- Kernels as functions --------------------------------------------------------

#: How an output is made: like the argument of that number; of that shape; or what
#: a function of the other arguments returns, a shape or a tensor to start with.
Output = Union[int, Sequence[int], Callable[..., Any]]


class _Plan:
    """What the calls of one function have in common."""

    def __init__(self, kernel: _core.Kernel, outputs: Mapping[int, Output],
                 updates: Sequence[int]) -> None:
        self.kernel = kernel
        self.types = kernel.arguments
        self.outputs = dict(outputs)
        self.updates = tuple(updates)
        self.results = sorted([*self.outputs, *self.updates])
        self.replays = False  # the gradient needs what arrays held before the launch
        self._check()

    def _check(self) -> None:
        for position in self.results:
            if not 0 <= position < len(self.types) or self.types[position].rank < 0:
                raise _core.BadArgument(
                    f"kernel `{self.kernel.name}` has no array argument {position} (counted "
                    "from 0) that could be an output")
        if len(set(self.results)) != len(self.results):
            raise _core.BadArgument("an argument is an output or an update, not both")
        if not self.results:
            raise _core.BadArgument(
                f"the function of kernel `{self.kernel.name}` has no output; name the "
                "arguments that the kernel writes in `outputs` or `updates`")

    @property
    def inputs(self) -> list[int]:
        return [i for i in range(len(self.types)) if i not in self.outputs]

    def output(self, position: int, arguments: Sequence[Any]) -> torch.Tensor:
        how = self.outputs[position]
        if callable(how):
            how = how(*arguments)
        if isinstance(how, torch.Tensor):
            return how.detach().clone(memory_format=torch.contiguous_format)
        like = next(a for a in arguments if isinstance(a, torch.Tensor))
        if isinstance(how, int):
            like = arguments[self.inputs.index(how)]
            how = like.shape
        return torch.zeros(tuple(how), dtype=_TORCH_DTYPES[self.types[position].dtype],
                           device=like.device)

    def place(self, inputs: Sequence[Any], outputs: Mapping[int, torch.Tensor]) -> list[Any]:
        """All arguments, in the order of the kernel."""
        values = dict(zip(self.inputs, inputs))
        return [outputs[i] if i in outputs else values[i] for i in range(len(self.types))]

    def starts(self, inputs: Sequence[Any]) -> dict[int, torch.Tensor]:
        """What the results hold before the launch."""
        starts = {i: self.output(i, inputs) for i in self.outputs}
        for i in self.updates:
            starts[i] = inputs[self.inputs.index(i)].detach().clone()
        return starts


class _Arrays:
    """Arrays over tensors for one launch, with the adjoints that it asks for."""

    def __init__(self, plan: _Plan, tensors: Sequence[Any],
                 gradients: Mapping[int, torch.Tensor]) -> None:
        first = next(t for t in tensors if isinstance(t, torch.Tensor))
        device = device_for(first.device.type)
        if first.is_cuda:
            _use_current_stream(device, first)
        self.values = []
        for i, value in enumerate(tensors):
            if isinstance(value, torch.Tensor):
                _check(value)
                value = _adopt(value, gradients.get(i), device, announced=True)
            self.values.append(value)
        self.versions = [v.version if isinstance(v, _core.Array) else 0 for v in self.values]

    def written(self) -> list[int]:
        return [i for i, value in enumerate(self.values)
                if isinstance(value, _core.Array) and value.version != self.versions[i]]


def _require_results(plan: _Plan, arrays: _Arrays) -> None:
    for i in arrays.written():
        if i not in plan.results:
            raise _core.BadArgument(
                f"kernel `{plan.kernel.name}` writes argument {i} (counted from 0), which the "
                "function of PyTorch takes for an input; name it in `outputs`, or in `updates` "
                "if the kernel also reads what it held before")


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, *inputs: Any) -> Any:
        inputs = [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
        results = plan.starts(inputs)
        arguments = plan.place(inputs, results)
        arrays = _Arrays(plan, arguments, {})
        plan.kernel.launch(*arrays.values)
        _require_results(plan, arrays)
        ctx.plan = plan
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        outputs = [results[i] for i in plan.results]
        kept = [x for x in inputs if isinstance(x, torch.Tensor)]
        ctx.save_for_backward(*kept, *([] if plan.replays else outputs))
        ctx.mark_non_differentiable(*[y for y in outputs if not y.is_floating_point()])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        plan = ctx.plan
        saved = list(ctx.saved_tensors)
        inputs = [saved.pop(0) if number is None else number for number in ctx.numbers]
        inputs = [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
        finals = dict(zip(plan.results, saved))
        if finals and not plan.replays:
            try:
                return None, *_gradients(ctx, inputs, finals, cotangents, False)
            except _core.CannotReplay:
                plan.replays = True
        return None, *_gradients(ctx, inputs, plan.starts(inputs), cotangents, True)


def _adjoint_like(tensor: torch.Tensor) -> torch.Tensor:
    """Costate keeps those of f16 in f32."""
    dtype = torch.float32 if tensor.dtype == torch.float16 else tensor.dtype
    return torch.zeros(tensor.shape, dtype=dtype, device=tensor.device)


def _gradients(ctx: Any, inputs: Sequence[Any], results: Mapping[int, torch.Tensor],
               cotangents: Sequence[torch.Tensor], initial_state: bool) -> list[Any]:
    plan = ctx.plan
    adjoints = {}
    for i, cotangent in zip(plan.results, cotangents):
        if results[i].is_floating_point():
            adjoints[i] = _adjoint_like(results[i]).copy_(cotangent)
    for k, i in enumerate(plan.inputs):
        if ctx.needs_input_grad[k + 1] and i not in results:
            adjoints[i] = _adjoint_like(inputs[k])
    arrays = _Arrays(plan, plan.place(inputs, results), adjoints)
    plan.kernel.grad(*arrays.values, initial_state=initial_state)
    return [adjoints[i].to(inputs[k].dtype) if ctx.needs_input_grad[k + 1] else None
            for k, i in enumerate(plan.inputs)]


def torch_function(kernel: Any, outputs: Mapping[int, Output] | None = None, *,
                   updates: Sequence[int] = ()) -> Callable[..., Any]:
    """A kernel as a function of PyTorch, with its gradient.

    ``outputs`` says which arguments of the kernel, counted from 0, the function
    returns instead of taking them, and how each of them is made, all zero: an
    int for the shape of that other argument, a shape, or a function of the
    arguments that gives a shape or a tensor to start with. ``updates`` names
    arguments that the kernel reads and writes: the function leaves the tensor
    that it is given alone and returns another one.

        norm = torch_function(kernel, outputs={1: ()})  # kernel(x, sum)
        norm(x).backward()

    The function takes the other arguments in order: tensors, which are copied
    only if they are not contiguous, and numbers. It runs on PyTorch's current
    stream and returns one tensor or a tuple of them. Where the gradient needs
    values that the kernel overwrites, the kernel runs once more in `backward`.
    Raises BadArgument if the kernel writes other arguments; the gradient of a
    gradient is a RuntimeError of PyTorch.
    """
    plan = _Plan(getattr(kernel, "_core_kernel", kernel), outputs or {}, updates)

    def function(*arguments: Any) -> Any:
        if len(arguments) != len(plan.inputs):
            raise TypeError(f"{plan.kernel.name}() takes {len(plan.inputs)} arguments "
                            f"({len(arguments)} given)")
        return _Function.apply(plan, *[_prepared(plan, i, a)
                                       for i, a in zip(plan.inputs, arguments)])

    function.__name__ = function.__qualname__ = plan.kernel.name
    return function


def _prepared(plan: _Plan, position: int, argument: Any) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    if plan.types[position].rank >= 0:
        return argument.contiguous()
    if argument.requires_grad:
        _reject(argument, f"is argument {position} (counted from 0) of kernel "
                f"`{plan.kernel.name}`, a scalar, which has no gradient; make it an array of "
                "rank 0, or pass `x.item()`")
    return argument.item()
