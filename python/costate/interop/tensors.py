"""PyTorch tensors as arrays."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Sequence

import torch

from .. import _core, errors
from costate.lang.base.state import records, state
from costate.lang.base import runtime
from . import device_for, memory_kind
from .copies import Copied, Kept, make_gradient, of_same_gradient, place_of, version_of

DTYPES = {
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
TORCH_DTYPES = {ours: theirs for theirs, ours in DTYPES.items()}
_increment_version = torch.autograd.graph.increment_version


def _describe(tensor: torch.Tensor) -> str:
    return f"a {tensor.dtype} tensor of shape {tuple(tensor.shape)} on {tensor.device}"


def reject(tensor: torch.Tensor, text: str) -> None:
    raise errors.BadArgument(f"{_describe(tensor)} {text}")


def check(tensor: torch.Tensor) -> None:
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        reject(tensor, f"is a {type(tensor).__name__}, which computes its elements itself; pass a plain tensor")
    if tensor.dtype not in DTYPES:
        reject(tensor, "has elements that kernels do not have; convert it with `.to(...)`")
    if tensor.is_cuda and tensor.device.index:
        reject(tensor, "is not on the first GPU, which Costate uses; move it with `.to(\"cuda:0\")`")
    if tensor.layout != torch.strided:
        reject(tensor, "is sparse; pass `x.to_dense()`")
    if not tensor.is_contiguous():
        reject(tensor, "is not contiguous; pass `x.contiguous()`")
    if tensor.is_conj() or tensor.is_neg():
        reject(tensor, "is a view that PyTorch computes when it is read; pass `x.resolve_neg()`")


def _gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Its ``.grad``, made if it requires one."""
    if not tensor.requires_grad:
        return None
    if not tensor.is_leaf:
        reject(tensor, "is the result of other operations and requires a gradient, which a "
                "launch would lose; use `torch_function`, or pass `x.detach()`")
    if tensor.dtype == torch.float16:
        reject(tensor, "requires a gradient, which Costate keeps in float32; use "
                "`torch_function`, or float32")
    gradient = make_gradient(tensor)
    if gradient.dtype != tensor.dtype:
        reject(tensor, "has a `.grad` of another dtype")
    return gradient


def adopt(tensor: torch.Tensor, gradient: torch.Tensor | None, device: _core.Device,
          announced: bool, dual: bool = False) -> _core.Array:
    if tensor.is_cuda:
        # Its memory is used again only after what this stream is to do.
        for used in (tensor, gradient):
            if used is not None:
                used.record_stream(torch.cuda.current_stream(used.device))
    return _core.Array.adopt(
        device, DTYPES[tensor.dtype], tuple(tensor.shape), tensor.data_ptr(),
        tensor.untyped_storage(),
        grad_address=0 if gradient is None else gradient.data_ptr(),
        grad_owner=None if gradient is None else gradient.untyped_storage(),
        grad=gradient is not None, dual=dual, announced=announced, stream_ordered=tensor.is_cuda)


class _Known(Kept):
    """The array over a tensor, kept with it as long as the tensor stays what it is."""

    is_copied = False
    __slots__ = ("array", "place", "gradient", "gradient_place", "shape", "dtype", "version", "array_version",
                 "device", "is_cuda", "generation", "marks")

    def __init__(self, tensor: torch.Tensor, device: _core.Device) -> None:
        check(tensor)
        self.gradient = gradient = _gradient_of(tensor)
        self.version = version_of(tensor)
        self.array = adopt(tensor, gradient, device, announced=self.version is not None)
        self.array_version = self.array.version
        self.place = tensor.data_ptr()
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self.gradient_place = None if gradient is None else gradient.data_ptr()
        self.device = device
        self.is_cuda = tensor.is_cuda
        self.generation = runtime.generation
        self.marks: set[int] = set()   # of what it has been launched with

    def fits(self, tensor: torch.Tensor) -> bool:
        if (self.place != tensor.data_ptr() or self.shape != tensor.shape or self.dtype is not tensor.dtype
                or self.generation != runtime.generation or not tensor.is_contiguous()):
            return False
        if self.gradient_place is None:
            return not tensor.requires_grad
        gradient = tensor.grad
        return (tensor.requires_grad and gradient is not None
                and gradient.data_ptr() == self.gradient_place and gradient.is_contiguous())

    def ready(self, tensor: torch.Tensor) -> bool:
        """`fits` and `before` in one, for launches that are repeated."""
        if (self.place != tensor.data_ptr() or self.shape != tensor.shape or self.dtype is not tensor.dtype
                or self.generation != runtime.generation or not tensor.is_contiguous()):
            return False
        if self.gradient_place is not None:
            gradient = tensor.grad
            if (gradient is None or gradient.data_ptr() != self.gradient_place or not tensor.requires_grad
                    or not gradient.is_contiguous()):
                return False
        elif tensor.requires_grad:
            return False
        if self.is_cuda or self.version is None or (
                self.version != tensor._version or self.array_version != self.array.version):
            self.before(tensor)
        return True

    def read_versions(self, tensor: torch.Tensor) -> None:
        """Before a launch: what others have written since. Of one that a graph keeps, its replays ask."""
        if state.capture is not None:
            return
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

    def before(self, tensor: torch.Tensor) -> None:
        """Before a launch."""
        if self.version is None or (self.version != tensor._version
                                    or self.array_version != self.array.version):
            self.read_versions(tensor)
        if self.is_cuda:
            use_current_stream(self.device, tensor)

    def before_backward(self, tensor: torch.Tensor) -> None:
        """Before a recording is reversed: what PyTorch has done since the launch."""
        self.before(tensor)
        self.attach(tensor)

    def attach(self, tensor: torch.Tensor) -> None:
        """Gives the tensor the gradient of the array, with the values of its own."""
        if self.gradient is None or tensor.grad is self.gradient:
            return
        if tensor.grad is None:  # as `optimizer.zero_grad()` leaves it
            self.gradient.zero_()
        elif tensor.grad.data_ptr() != self.gradient_place or not tensor.grad.is_contiguous():
            self.gradient.copy_(tensor.grad)
        tensor.grad = self.gradient

    def after(self, tensor: torch.Tensor) -> None:
        """After a launch."""
        if self.array_version != self.array.version:
            self.write_versions(tensor)


def _make(tensor: torch.Tensor, copies: bool) -> _Known | Copied:
    kind = tensor.device.type
    if kind == memory_kind() or not copies or kind not in ("cpu", "cuda"):
        return _Known(tensor, device_for(kind))
    check(tensor)
    return Copied(tensor, runtime.device(), DTYPES[tensor.dtype], _gradient_of(tensor))


def _of_tape(tensor: torch.Tensor) -> _Known | Copied | None:
    """The array that the recording has over the memory: `x[t]` is another tensor each time."""
    if not records():
        return None
    copy = of_same_gradient(state.tape, tensor)
    if copy is not None and place_of(copy[1]) == place_of(tensor) and copy[0].fits(tensor):
        return copy[0]
    known = state.tape.places.get(place_of(tensor))
    if known is None or known.is_copied and known.array.has_grad:   # of another `.grad`
        return None
    known.attach(tensor)
    return known if known.fits(tensor) else None


def _refuse_parts(text: str) -> None:
    raise errors.CannotReplay(f"{text} are parts of the same memory, which has been written under the `Tape`: its gradient cannot tell "
                              "which values they share; pass one of them, or copies")


def refuse_views(used: Iterable[tuple[_Known, torch.Tensor, int]], arrays: Iterable[tuple[_core.Array, int]]) -> None:
    """The same for tensors over the memory of fields and ndarrays, as DLPack makes them."""
    ours = {id(known.array) for known, _, _ in used}
    spans = [(known.place, known.place + tensor.numel() * tensor.element_size(), tensor, known.array.version != version)
             for known, tensor, version in used if tensor.is_floating_point()]
    for array, version in arrays:
        if id(array) in ours or array.size == 0:
            continue
        start = array.numpy().__array_interface__["data"][0]
        for lo, hi, tensor, written in spans:
            if lo < start + array.nbytes and start < hi and (written or array.version != version):
                _refuse_parts(f"{_describe(tensor)} and an array of shape {tuple(array.shape)}")


def _known(tensor: Any, copies: bool = False) -> _Known | Copied:
    known = getattr(tensor, "_costate", None)
    if known is None or not known.fits(tensor):
        known = tensor._costate = _of_tape(tensor) or _make(tensor, copies)
    known.before(tensor)
    return known


def refuse_overlaps(used: Iterable[tuple[_Known, torch.Tensor, int]]) -> None:
    """Values that go from one array to another over the same memory would lose their gradient.

    Takes the arrays of a recording, their tensors, and their versions when it met them.
    """
    floats = [u for u in used if u[1].is_floating_point()]
    end, last = 0, None  # type: int, tuple[torch.Tensor, bool] | None
    for known, tensor, version in sorted(floats, key=lambda u: u[0].place):
        written = known.array.version != version
        if last is not None and known.place < end and (written or last[1]):
            _refuse_parts(f"{_describe(tensor)} and {_describe(last[0])}")
        stop = known.place + tensor.numel() * tensor.element_size()
        if stop > end:
            end, last = stop, (tensor, written)
        elif written and last is not None:
            last = last[0], True


#: The handle of the current stream of a GPU by its number, without an object for it.
_handle_of: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def use_current_stream(device: _core.Device, tensor: torch.Tensor) -> None:
    device.use_stream(_handle_of(0) if _handle_of else torch.cuda.current_stream(tensor.device).cuda_stream)


# Their `isinstance` is code of Python, so the usual types come first.
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_OTHERS = frozenset({_core.Array, int, float, bool})


def _is_tensor(argument: Any) -> bool:
    kind = type(argument)
    return kind in _TENSORS or (kind not in _OTHERS and isinstance(argument, torch.Tensor))


def array_of(tensor: torch.Tensor) -> _core.Array:
    """The array over the memory of a contiguous tensor; nothing is copied.

    Its ``grad`` is over ``tensor.grad``, which is made, all zero, if the tensor
    requires a gradient and has none. Work on the array goes to PyTorch's current
    stream from here on. Raises BadArgument for tensors that are not contiguous,
    of a dtype that kernels do not have, or results that require a gradient.
    """
    return _known(tensor).array


def array_for(tensor: torch.Tensor) -> _core.Array:
    """``array_of``, or where the device cannot use the memory an array that ``launcher`` copies to."""
    return _known(tensor, copies=True).array


def launch(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls ``function``, such as ``kernel.launch`` or ``kernel.grad``, with
    arrays in the place of tensors, and tells PyTorch which of them it has written."""
    return _launch(function, arguments, options, copies=False)


def launcher(function: Callable[..., Any]) -> Callable[..., Any]:
    """``launch`` of this function, also with tensors whose memory the device cannot use."""
    return lambda *arguments, **options: _launch(function, arguments, options, copies=True)


def _refuse_common_memory(tensors: Sequence[tuple[_Known | Copied, torch.Tensor]]) -> None:
    """What the launch itself refuses of tensors that are not copied."""
    copied = [(known, tensor) for known, tensor in tensors if isinstance(known, Copied)]
    for k, (known, tensor) in enumerate(copied):
        for other, its in copied[:k]:
            if known is not other and (_overlap(tensor, its) and (known.is_written() or other.is_written())
                                       or _have_common_gradients(known, tensor, other, its)):
                for one in (known, other):
                    one.forget()
                raise errors.BadArgument(f"{_describe(tensor)} and {_describe(its)} have memory in common, and it is written; "
                                         "pass two tensors")


def _have_common_gradients(known: Copied, tensor: torch.Tensor, other: Copied, its: torch.Tensor) -> bool:
    """And the launch has written them."""
    return (known.is_gradient_written() and (_overlap(tensor.grad, its) or _overlap(tensor.grad, its.grad))
            or other.is_gradient_written() and (_overlap(its.grad, tensor) or _overlap(its.grad, tensor.grad)))


def _overlap(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    return (a is not None and b is not None and a.data_ptr() < b.data_ptr() + b.nbytes and b.data_ptr() < a.data_ptr() + a.nbytes)


def _launch(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any],
            copies: bool) -> Any:
    converted = list(arguments)
    tensors = []
    for position, argument in enumerate(arguments):
        if _is_tensor(argument):
            known = _known(argument, copies)
            tensors.append((known, argument))
            converted[position] = known.array
    try:
        result = function(*converted, **options)
        if copies:
            _refuse_common_memory(tensors)
        return result
    finally:
        for known, tensor in tensors:
            known.after(tensor)
