"""Tensors of PyTorch whose memory the device cannot use: copied before launches, and back after them."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from .. import _core
from costate.lang.base.state import records, state
from ..errors import CannotReplay
from costate.lang.base import runtime


class Kept:
    """What is kept with a tensor, but not with copies and pickles of it, which are other tensors."""

    __slots__ = ()

    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return type(None), ()


class Copied(Kept):
    """The array on the device that stands for a tensor."""

    is_copied = True

    def __init__(self, tensor: torch.Tensor, device: _core.Device, dtype: _core.DType,
                 gradient: torch.Tensor | None) -> None:
        self.array = _core.Array(device, dtype, list(tensor.shape), grad=gradient is not None)
        self.place, self.shape, self.dtype = tensor.data_ptr(), tensor.shape, tensor.dtype
        self.known: Any = None           # what the array holds
        self.array_version = self.array.version
        self.gradient_version = 0        # before a launch
        self.version = version_of(tensor)
        self.recording: Any = None       # the last `Tape` whose launches have written it
        self.is_further = False          # under a `Tape` that had met another array with the same `.grad`
        self.generation = runtime.generation

    def fits(self, tensor: torch.Tensor) -> bool:
        return (self.generation == runtime.generation and self.place == tensor.data_ptr() and self.shape == tensor.shape
                and self.dtype is tensor.dtype and self.array.has_grad == tensor.requires_grad and tensor.is_contiguous())

    def before(self, tensor: torch.Tensor) -> None:
        """Before a launch."""
        host = on_host(tensor)
        is_same = self.known is not None and _same(self.known, host)
        if records() and self._is_result() and not (is_same and self._has_version_of(tensor)):
            raise CannotReplay(f"a tensor of shape {tuple(tensor.shape)} that a launch under the `Tape` has written was overwritten by "
                               "PyTorch since, which the gradient cannot follow; write it with a kernel, or to another tensor")
        if not is_same:
            if id(self) in state.copies:
                raise CannotReplay(f"a tensor of shape {tuple(tensor.shape)} that the gradient of a function needs has been "
                                   "overwritten since the function ran, by PyTorch; copy it before, or write to another tensor")
            self._write(host)
        if state.hidden and state.tape is not None:
            state.tape.hidden_copies[id(self)] = self
        self.version = version_of(tensor)
        if not records():
            self._write_gradient(tensor)
        elif id(self) not in state.tape.copies:
            self._join(state.tape, tensor)
        self._note_gradient()

    def _note_gradient(self) -> None:
        if self.array.has_grad:
            self.gradient_version = self.array.grad.version

    def _is_result(self) -> bool:
        """Of a launch that is recorded, with a gradient."""
        return self.array.has_grad and self.recording is not None and self.recording() is state.tape

    def _has_version_of(self, tensor: torch.Tensor) -> bool:
        """Nobody has written it. Parts of a storage count the writes to the others."""
        return self.version == version_of(tensor) or tensor.untyped_storage().nbytes() != tensor.nbytes

    def _join(self, tape: Any, tensor: torch.Tensor) -> None:
        tape.add_copy(self, tensor)
        if self.array.has_grad:
            gradient = make_gradient(tensor)
            self.is_further = id(tensor) in tape.copied or of_same_gradient(tape, tensor) is not None
            tape.copied.add(id(tensor))
            tape.gradients[gradient.data_ptr()] = self, tensor
            tape.places.setdefault(place_of(tensor), self)   # for the loss

    def attach(self, tensor: torch.Tensor) -> None:
        """Stands for another tensor of the same memory."""

    def _write(self, host: torch.Tensor) -> None:
        """What a recording has not met yet is its input, and no part of it."""
        is_input = records() and id(self) not in state.tape.copies
        if is_input:
            state.tape.suspend()
        self.array.write(host)
        if is_input:
            state.tape.resume()
        self.known, self.array_version = host.clone(), self.array.version

    def is_written(self) -> bool:
        """By a launch, and not copied back yet."""
        return self.array_version != self.array.version

    def forget(self) -> None:
        """What the array holds is not what the tensor is to be."""
        self.known, self.array_version = None, self.array.version
        self._note_gradient()

    def is_gradient_written(self) -> bool:
        """By a launch, and not copied back yet."""
        return self.array.has_grad and self.gradient_version != self.array.grad.version

    def after(self, tensor: torch.Tensor) -> None:
        """After a launch."""
        if self.is_written():
            self.known = read(self.array, tensor)
            self.array_version = self.array.version
            self.version = version_of(tensor)
            if records() and self.array.has_grad:
                self.recording = weakref.ref(state.tape)
        if not records() and self.is_gradient_written():  # else an argument that is this `.grad` may have written that
            read(self.array.grad, tensor.grad)

    def write_gradient(self, tensor: torch.Tensor) -> None:
        """Of a recording. One `.grad` of several arrays is the sum of theirs."""
        self._write_gradient(tensor)
        if self.is_further:
            self.array.grad.fill(0)

    def _write_gradient(self, tensor: torch.Tensor) -> None:
        if self.array.has_grad:
            self.array.grad.write(on_host(make_gradient(tensor)))

    def read_gradient(self, tensor: torch.Tensor) -> None:
        """Of a recording."""
        if self.array.has_grad:
            read(self.array.grad, tensor.grad, adds=self.is_further)


def make_gradient(tensor: torch.Tensor) -> torch.Tensor:
    """Its `.grad`, contiguous, which is made if there is none."""
    if tensor.grad is None:
        tensor.grad = torch.zeros_like(tensor)
    elif not tensor.grad.is_contiguous():  # that of a sum is one number, seen many times
        tensor.grad = tensor.grad.contiguous()
    assert tensor.grad is not None
    return tensor.grad


def of_same_gradient(tape: Any, tensor: Any) -> tuple[Copied, torch.Tensor] | None:
    """What a recording has for a tensor with this `.grad`, and that one."""
    if tensor.grad is None or tensor.numel() == 0:
        return None
    copied, other = tape.gradients.get(tensor.grad.data_ptr(), (None, None))
    return (copied, other) if other is not None and other.grad is not None and other.grad.data_ptr() == tensor.grad.data_ptr() else None


def place_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What tensors have in common that are the same argument of a recording."""
    return tensor.data_ptr(), tensor.shape, tensor.dtype, tensor.requires_grad


def version_of(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().contiguous()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit by bit: NaN is NaN, and -0 is not 0."""
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def read(array: _core.Array, tensor: Any, adds: bool = False) -> torch.Tensor:
    """Into the tensor, or added to it; what the array holds, on the host."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    array.read(host)
    with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
        if adds:
            tensor.add_(host.to(tensor.device))
        else:
            tensor.copy_(host)
    return host
