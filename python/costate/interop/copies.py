"""Tensors of PyTorch whose memory the device cannot use: copied before launches, and back after them."""

from __future__ import annotations

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
        self.generation = runtime.generation

    def fits(self, tensor: torch.Tensor) -> bool:
        return (self.generation == runtime.generation and self.place == tensor.data_ptr() and self.shape == tensor.shape
                and self.dtype is tensor.dtype and self.array.has_grad == tensor.requires_grad)

    def before(self, tensor: torch.Tensor) -> None:
        """Before a launch."""
        host = on_host(tensor)
        if self.known is None or not _same(self.known, host):
            if id(self) in state.copies:
                raise CannotReplay(f"a tensor of shape {tuple(tensor.shape)} that the gradient of a function needs has been "
                                   "overwritten since the function ran, by PyTorch; copy it before, or write to another tensor")
            self._write(host)
        if state.hidden and state.tape is not None:
            state.tape.hidden_copies[id(self)] = self
        if not records():
            self.write_gradient(tensor)
        elif id(self) not in state.tape.copies:
            state.tape.add_copy(self, tensor)

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

    def after(self, tensor: torch.Tensor) -> None:
        """After a launch."""
        if self.is_written():
            self.known = read(self.array, tensor)
            self.array_version = self.array.version
        if not records():
            self.read_gradient(tensor)

    def write_gradient(self, tensor: torch.Tensor) -> None:
        if self.array.has_grad:
            if tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
            elif not tensor.grad.is_contiguous():  # that of a sum is one number, seen many times
                tensor.grad = tensor.grad.contiguous()
            self.array.grad.write(on_host(tensor.grad))

    def read_gradient(self, tensor: torch.Tensor) -> None:
        if self.array.has_grad:
            read(self.array.grad, tensor.grad)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().contiguous()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit by bit: NaN is NaN, and -0 is not 0."""
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def read(array: _core.Array, tensor: Any) -> torch.Tensor:
    """Into the tensor; what it holds then, on the host."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    array.read(host)
    with torch.no_grad():
        tensor.copy_(host)
    return host
