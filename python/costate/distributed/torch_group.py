"""Ranks of `torch.distributed`: gloo on hosts, NCCL on GPUs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from costate import _core
from costate.errors import BadArgument, NoDevice, RankLost
from costate.lang.base import runtime, streams

_Pairs = Sequence[tuple[int, _core.Array]]


class TorchGroup(_core.Communicator):
    """A process group of `torch.distributed` (None: all processes).

    `timeout`: seconds after which a rank that does not answer is `RankLost`. With NCCL and `cuda` arrays are sent from where
    they are, beside other work of the device, and the host does not wait: by a communicator of our own, which the ranks of the
    process group make when they meet first.
    """

    def __init__(self, group: Any = None, timeout: float = 30.0) -> None:
        super().__init__()
        if not dist.is_initialized():
            raise BadArgument("there is no group of ranks: call `torch.distributed.init_process_group` first, or pass `group`")
        self.group = dist.group.WORLD if group is None else group
        self.timeout = timeout
        self.numbers = dist.get_process_group_ranks(self.group)
        self.own = dist.get_rank(self.group)
        self.in_place = dist.get_backend(self.group) == "nccl"
        self._known: tuple[int, _core.Communicator] = -1, self

    def of_device(self) -> _core.Communicator:
        """What carries messages of the device of `init`; a collective call."""
        if self._known[0] != runtime.generation:
            self._known = runtime.generation, self._connect()
        return self._known[1]

    def _connect(self) -> _core.Communicator:
        replaced = type(self) is not TorchGroup
        if replaced or not self.in_place or self.size() == 1 or runtime.device().name != "cuda":
            return self
        try:
            with streams.queued(torch.cuda.current_stream()):
                return _core.nccl(runtime.device(), self, self.timeout)
        except NoDevice:    # an NCCL that is part of PyTorch; on all ranks
            return self

    def rank(self) -> int:
        return self.own

    def size(self) -> int:
        return len(self.numbers)

    def sum(self, array: _core.Array) -> None:
        if self.in_place:
            self._wait([dist.all_reduce(self._lent(array), group=self.group, async_op=True)])
            return array.written_outside()
        numbers = array.to_numpy()
        wide = torch.from_numpy(numbers.astype(np.int64) if numbers.dtype.kind in "iu" else numbers)
        self._call(lambda: [dist.all_reduce(wide, group=self.group, async_op=True)])
        array.write(wide.numpy().astype(numbers.dtype, copy=False))

    def exchange(self, sends: _Pairs, receives: _Pairs) -> Callable[[], None]:
        outgoing = [(peer, self._bytes(array)) for peer, array in sends]
        incoming = [(peer, array, self._room(array)) for peer, array in receives]
        ops = [dist.P2POp(dist.isend, one, self.numbers[peer], self.group, tag) for (peer, one), tag in _numbered(outgoing)]
        ops += [dist.P2POp(dist.irecv, one, self.numbers[peer], self.group, tag)
                for (peer, _, one), tag in _numbered(incoming)]
        works = list(self._named(lambda: dist.batch_isend_irecv(ops) if ops else []))
        ops.clear()

        def wait() -> None:
            self._wait(works)
            works.clear()
            outgoing.clear()
            while incoming:
                self._put(*incoming.pop(0)[1:])
        return wait

    def barrier(self) -> None:
        self._call(lambda: [dist.barrier(self.group, async_op=True)])

    # -- memory --------------------------------------------------------------------

    def _lent(self, array: _core.Array, read_only: bool = False) -> torch.Tensor:
        """The memory of the array, for the current stream."""
        stream = torch.cuda.current_stream().cuda_stream
        array.device.use_stream(stream)
        return _tensor(array.__dlpack__(stream=stream or 1, read_only=read_only))

    def _bytes(self, array: _core.Array) -> torch.Tensor:
        return self._lent(array, True) if self.in_place else torch.from_numpy(array.to_numpy().reshape(-1).view(np.uint8))

    def _room(self, array: _core.Array) -> torch.Tensor:
        return self._lent(array) if self.in_place else torch.empty(array.nbytes, dtype=torch.uint8, device="cpu")

    def _put(self, array: _core.Array, received: torch.Tensor) -> None:
        if self.in_place:
            del received     # so that the array is lent no more
            return array.written_outside()
        array.write(received.numpy().view(_numpy_type(array)).reshape(array.shape))

    # -- errors --------------------------------------------------------------------

    def _call(self, begin: Callable[[], Iterable[Any]]) -> None:
        self._wait(self._named(begin))

    def _wait(self, works: Iterable[Any]) -> None:
        limit = () if self.in_place else (timedelta(seconds=self.timeout),)
        self._named(lambda: [work.wait(*limit) for work in works])

    def _named(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except RuntimeError as error:
            raise RankLost(f"rank {self.own} of {self.size()}: another rank has ended, has not answered within {self.timeout:g} s, or "
                           f"makes other calls than this one: {str(error).splitlines()[0]}") from error


def _tensor(capsule: Any) -> torch.Tensor:
    return torch.from_dlpack(capsule)   # type: ignore[attr-defined]


def _numbered(messages: list[Any]) -> list[tuple[Any, int]]:
    """With the number of each among those of its peer."""
    counts: dict[int, int] = {}
    result = []
    for message in messages:
        number = counts.get(message[0], 0)
        counts[message[0]] = number + 1
        result.append((message, number))
    return result


def _numpy_type(array: _core.Array) -> Any:
    return np.dtype({"f16": "float16", "f32": "float32", "f64": "float64"}.get(array.dtype.name)
                    or array.dtype.name.replace("i", "int").replace("u", "uint"))


_known: weakref.WeakKeyDictionary[Any, TorchGroup] = weakref.WeakKeyDictionary()


def of_process_group(group: Any) -> TorchGroup:
    """The same object for the same process group."""
    if not dist.is_initialized():
        return TorchGroup(group)
    group = dist.group.WORLD if group is None else group
    found = _known.get(group)
    return _known.setdefault(group, TorchGroup(group)) if found is None else found


def gradient_of(tensor: Any) -> _core.Array:
    """An array over the gradient of a tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise BadArgument(f"`sum_gradients` is of fields, ndarrays and tensors, not of {type(tensor).__name__}")
    if tensor.grad is None:
        tensor.grad = torch.zeros_like(tensor)
    host = tensor.grad.device.type == "cpu" and not runtime.shares_memory()
    return _core.Array.from_dlpack(tensor.grad.detach(), _host() if host else runtime.device())


@cache
def _host() -> _core.Device:
    """Works on gradients of tensors that are not where kernels run."""
    return _core.Device.open("cpu")
