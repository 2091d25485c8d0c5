"""Programs of several ranks: halos, sums, parts, and their derivatives.

A *group* is a process group of `torch.distributed`, a `Communicator`, or None: all processes of `torch.distributed`. All
functions are collective: each rank of the group calls them, in the same order.
"""

from __future__ import annotations as _annotations

import functools
import sys as _sys
from collections.abc import Callable
from typing import Any

from costate import _core
from costate.errors import BadArgument, CannotCapture, QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang.base import runtime as _runtime
from costate.lang.base import state as _surroundings
from costate.lang.base.explain import in_python as _in_python
from costate.lang.base.state import state as _state
from costate.lang.base.threads import get_ident as _get_ident
from costate.lang.data import storage as _storage
from costate.lang.data.storage import Storage as _Storage

__all__ = ["Communicator", "Gather", "Halo", "Scatter", "TorchGroup", "all_reduce", "gather", "in_process", "scatter",
           "sum_gradients"]

Communicator = _core.Communicator


def in_process(size: int, timeout: float = 30.0) -> list[_core.Communicator]:
    """So many ranks of this process, each for a thread of its own; `timeout` in seconds."""
    return _core.in_process(size, timeout)


def __getattr__(name: str) -> Any:
    if name == "TorchGroup":
        from costate.distributed.torch_group import TorchGroup
        return TorchGroup
    raise AttributeError(f"module `costate.distributed` has no attribute `{name}`")


def _group_of(group: Any) -> _core.Communicator:
    if not isinstance(group, _core.Communicator):
        if group is None and "torch" not in _sys.modules:
            raise BadArgument("there is no group of ranks: pass `group`, or call `torch.distributed.init_process_group` first")
        from costate.distributed.torch_group import of_process_group
        group = of_process_group(group)
    carrier: _core.Communicator = group.of_device() if hasattr(group, "of_device") else group
    return carrier


def _storage_of(x: Any, what: str) -> Any:
    """A field or ndarray that has an array."""
    if hasattr(x, "_unwrap"):
        x = x._unwrap()
    if not isinstance(x, _Storage):
        raise BadArgument(f"{what} is of fields and ndarrays, not of {type(x).__name__}; copy a tensor or NumPy array into "
                          "one with `from_torch` or `from_numpy`")
    if getattr(x, "_sparse_node", None) is not None:
        raise BadArgument(f"{what} of {x.describe()}, which is sparse: what others send has no place in it; use a dense field")
    return x


def _claim(x: Any) -> None:
    """This thread uses a field, perhaps after another one."""
    while hasattr(x, "which"):
        x = x._strong
    if x.is_field and x._user != _get_ident():
        _storage.claim(x)


class _Call:
    """What a `Tape` calls again where it compares gradients with differences."""

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self.__name__, self.function = name, function

    def __call__(self, *_: Any) -> None:
        self.function()


def _launch(name: str, primal: Callable[[], None], tangent: Callable[[], None]) -> None:
    """Launches as its surroundings want it."""
    if _state.tracing:
        raise QuadrantsSyntaxError(f"`{name}` in a kernel; call it between launches")
    _storage.flush()
    with _in_python():
        if _state.forward is not None:
            _state.forward.insert(_Call(name, primal))
            return tangent()
        if _surroundings.records():
            _state.tape.insert(_Call(name, primal))
        primal()


class _Exchange:
    """Messages between ranks that may be sent again and again."""

    _core: _core.Exchange

    def __init__(self, group: Any, arrays: list[Any], make: Callable[..., Any]) -> None:
        self._name = type(self).__name__
        self._arrays = [None if one is None else _storage_of(one, f"a `{self._name}`") for one in arrays]
        self._generation = _runtime.generation
        _storage.flush()
        communicator = _group_of(group)
        with _in_python():
            self._core = make(*[None if one is None else one.core() for one in self._arrays], group=communicator)

    def _run(self, primal: Callable[[], None], tangent: Callable[[], None]) -> None:
        if self._generation != _runtime.generation:
            raise QuadrantsRuntimeError(f"this `{self._name}` was made before the last `init` or `reset`; make it again")
        for one in self._arrays:
            if one is not None:
                _claim(one)
        _launch(self._name, primal, tangent)

    def __call__(self) -> None:
        """Sends, and waits for what others send. In a `Tape` its gradient sends adjoints back."""
        self._run(self._core, self._core.jvp)

    def start(self) -> None:
        """Sends. What is launched before `finish` runs meanwhile; it does not write what is sent."""
        self._run(self._core.start, self._core.start_jvp)

    def finish(self) -> None:
        """Waits for what others send, and puts it into its place."""
        self._run(self._core.finish, self._core.finish_jvp)

    def grad(self) -> None:
        """The gradient of a call: adds adjoints to those of what was read, and clears those of what was overwritten."""
        with _in_python():
            self._core.grad()

    def finish_grad(self) -> None:
        """The gradient of `finish`, which comes before that of `start`: sends adjoints of what was overwritten, and clears them."""
        with _in_python():
            self._core.finish_grad()

    def start_grad(self) -> None:
        """The gradient of `start`: waits for what others send, and adds it to the adjoints of what was read."""
        with _in_python():
            self._core.start_grad()


class Halo(_Exchange):
    """The first and last `width` slices of `x` along `axis`, which are copies of slices of the ranks before and after.

    `halo()` brings them up to date. The rank before the first one is the last with `periodic`; else the halo at an end of
    the domain stays as it is. `x` is a field or ndarray of part and halo, of the same dtype and shape on all ranks but for the
    extent along `axis`, or a list of such, whose halos go in one exchange. BadArgument on all ranks if that is not so, or if a
    part is thinner than the halo.
    """

    def __init__(self, x: Any, axis: int = 0, width: int = 1, periodic: bool = False, group: Any = None) -> None:
        arrays = list(x) if isinstance(x, (list, tuple)) else [x]
        count = len(getattr(arrays[0], "shape", ())) if arrays else 0
        place = axis % count if -count <= axis < count else -1

        def make(*cores: _core.Array, group: _core.Communicator) -> _core.Halo:
            return _core.Halo(list(cores), axis=place, width=width, periodic=bool(periodic), group=group)
        super().__init__(group, arrays, make)


class Scatter(_Exchange):
    """Cuts the array `whole` of the rank `root` along axis 0: rank after rank gets its `part`. Other ranks pass None."""

    def __init__(self, whole: Any, part: Any, root: int = 0, group: Any = None) -> None:
        super().__init__(group, [whole, part], functools.partial(_core.Scatter, root=root))


class Gather(_Exchange):
    """Puts the parts of all ranks after each other, along axis 0, into `whole` of the rank `root`. Other ranks pass None."""

    def __init__(self, part: Any, whole: Any, root: int = 0, group: Any = None) -> None:
        super().__init__(group, [part, whole], functools.partial(_core.Gather, root=root))


def scatter(whole: Any, part: Any, root: int = 0, group: Any = None) -> None:
    """`Scatter(...)()`, once."""
    Scatter(whole, part, root, group)()


def gather(part: Any, whole: Any, root: int = 0, group: Any = None) -> None:
    """`Gather(...)()`, once."""
    Gather(part, whole, root, group)()


def all_reduce(x: Any, group: Any = None, *, ordered: bool = False, replicated: bool = False) -> None:
    """The sum over ranks takes the place of the elements of `x`.

    `ordered`: adds in the order of ranks, so that the bits depend on no timing. `replicated`: what follows is the same on all
    ranks and counts once, such as a loss that all of them have; adjoints then pass as they are. Without, the gradient is that
    of the sum over ranks of the losses, and the adjoint of the sum is the sum of adjoints.
    """
    x = _storage_of(x, "`all_reduce`")
    if _state.capture is not None:
        raise CannotCapture("a graph cannot repeat `all_reduce`, in which ranks compare what they ask for; call it between replays")
    _storage.flush()
    communicator = _group_of(group)
    with _in_python():
        core = _core.AllReduce(x.core(), communicator, bool(ordered), bool(replicated))
    _claim(x)
    _launch("all_reduce", core, core.jvp)


def sum_gradients(fields: Any, group: Any = None, *, ordered: bool = False) -> None:
    """Adds up the gradients of fields, ndarrays or tensors over ranks, after `backward`: those of what all ranks have."""
    _storage.flush()
    communicator = _group_of(group)
    for one in list(fields) if isinstance(fields, (list, tuple)) else [fields]:
        if isinstance(one, _Storage) or hasattr(one, "_unwrap"):
            gradient = _storage_of(one, "`sum_gradients`").core().grad
        else:
            from costate.distributed.torch_group import gradient_of
            gradient = gradient_of(one)
        with _in_python():
            _core.sum_over_ranks(gradient, communicator, bool(ordered))
