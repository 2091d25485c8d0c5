"""`ad.Tape`: the gradient of several launches."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from costate import _core
from costate.ad.check import Saved, compare
from costate.ad.host_numbers import HiddenNumbers, TapeNumbers
from costate.errors import BadArgument, CannotReplay, QuadrantsRuntimeError
from costate.lang.base import callers, dtypes, progress, runtime
from costate.lang.base.enums import AutodiffMode
from costate.lang.base.explain import in_python
from costate.lang.base.options import bytes_in
from costate.lang.base.state import state, unrecorded
from costate.lang.data import storage
from costate.lang.data import clear as claims
from costate.lang.data.clear import clear, own_fields
from costate.lang.data.storage import Storage
from costate.lang.launch import fast


def check_loss(loss: Any, what: str = "Tape") -> Any:
    """The loss of a recording: one number with a gradient."""
    if loss is None:
        return None
    if hasattr(loss, "_unwrap"):
        loss = loss._unwrap()
    if not isinstance(loss, Storage) and dtypes.is_tensor(loss):
        return check_tensor(loss)
    if not isinstance(loss, Storage) or loss.element_shape:
        raise QuadrantsRuntimeError(f"The loss of `{what}` must be a 0-D field, i.e. scalar, or an "
                                    "ndarray with one element")
    count = 1
    for extent in loss.shape:
        count *= extent
    if loss.is_field and len(loss.shape) != 0:
        raise QuadrantsRuntimeError(f"The loss of `Tape` must be a 0-D field, i.e. scalar, but {loss.describe()} has shape {loss.shape}; "
                                    "add its elements to a field of shape () in a kernel")
    if count != 1:
        raise RuntimeError("The loss of `Tape` must be an ndarray with only one element")
    if not loss.needs_grad:
        what = "use qd.field(..., needs_grad=True) for all fields" if loss.is_field else "set needs_grad=True for all ndarrays"
        raise QuadrantsRuntimeError(f"Gradients of loss are not allocated, please {what} that are required by autodiff.")
    return loss


def check_tensor(loss: Any) -> Any:
    if loss.numel() != 1:
        raise RuntimeError("The loss of `Tape` must be a tensor only contains one element")
    if not loss.requires_grad:
        raise QuadrantsRuntimeError("Gradients of loss are not allocated, please set "
                                    "requires_grad=True for all tensors that are required by "
                                    "autodiff.")
    return loss


def count_of(snapshots: Any) -> int:
    """The option `snapshots` of a Tape."""
    if snapshots is None:
        return 0
    if isinstance(snapshots, bool) or not isinstance(snapshots, numbers.Integral) or snapshots < 1:
        raise BadArgument(f"a `Tape` cannot take {snapshots!r} snapshots; give a number from 1 on, or `None` to save "
                          "all that gradients need")
    return int(snapshots)


def bytes_of(budget: Any) -> Any:
    """Of the option `budget` of a Tape."""
    count = bytes_in(budget)
    if count < 1:
        raise BadArgument(f"a `Tape` cannot have a budget of {budget!r}; give a number of bytes, or a text such as \"2GB\"")
    return count


def options_of(snapshots: Any = None, budget: Any = None, on_host: bool = False, folder: Any = None) -> dict[Any, Any]:
    """Those of a recording, as it is given them."""
    return dict(snapshots=count_of(snapshots), budget=0 if budget is None else bytes_of(budget),
                on_host=bool(on_host), folder=os.fspath(folder or ""))


@contextmanager
def shown(option: bool | Callable[[int, int], object] | None) -> Iterator[dict[str, Any]]:
    """How `backward` tells how far it is."""
    if callable(option):
        yield dict(progress=option)
        return
    with progress.bar("backward", "steps", runtime.runtime().config.progress if option is None else option) as bar:
        yield dict(progress=bar, interval=progress.INTERVAL)


class Tape:
    """Records the launches inside of `with Tape(loss):` and adds their gradients at its end.

    `loss`: a field of shape (), or an ndarray or tensor with one element; it is set to 0 at the
    start, and its gradient to 1 at the end.
    `clear_gradients`: clears the gradients of all fields first. `validation`: with debug mode,
    kernels check that nothing is written that was read before (the *global data access rule* of
    Taichi). Gradients are exact without that rule: values that they need are copied before they are
    overwritten. `grad_check`: a list of fields (of f64) whose gradients are compared with
    differences.

    `snapshots`: instead of all values that gradients need at most so many states are kept, and launches
    run again between them; `budget`: as many as fit into so many bytes, such as "2GB". A step is a
    launch, or what stands between two calls of `step`; `for t in tape.steps(n):` tells how many there
    are. They are kept in memory of the host with `on_host`, in files of a `folder` if one is given.
    `progress`: shows how much is reversed (without: if it takes long, on a terminal), or a function of
    the number of steps that are reversed and of all. `all_or_nothing`: a pass backwards that fails
    leaves gradients as they were, however much memory their copies take.
    """

    def __init__(self, loss: Any = None, clear_gradients: bool = True, validation: bool = False,
                 grad_check: Any = None, *, snapshots: int | None = None, budget: int | str | None = None, on_host: bool = False,
                 folder: str | os.PathLike[str] | None = None,
                 progress: bool | Callable[[int, int], object] | None = None, all_or_nothing: bool = False) -> None:
        self.loss = check_loss(loss)
        self.clear_gradients = clear_gradients
        self.validation = validation
        self.grad_check = grad_check
        self.calls: list[Any] = []
        self.modes: list[Any] = []
        self.entered = self.left = False
        self.gradient_evaluated = False
        self.core = _core.Tape(**options_of(snapshots, budget, on_host, folder))
        self.progress, self.all_or_nothing = progress, all_or_nothing
        self.numbers = TapeNumbers(self)
        self.hidden_numbers = HiddenNumbers(self.numbers)
        self.last_report: _core.TapeReport | None = None
        self.found: set[Any] = set()      # the kernels that were launched
        self.again: dict[Any, Any] = {}         # entries of `fast` that were recorded, and the last claim before that
        self.hidden_again: dict[Any, Any] = {}  # and those that functions with a gradient of their own have launched
        self.tensors: dict[Any, Any] = {}       # arrays over tensors of PyTorch, these, and the versions at first
        self.places: dict[Any, Any] = {}        # and by the memory of the tensors
        self.arrays: dict[Any, Any] = {}        # arrays that were arguments beside tensors of PyTorch, and their versions at first
        self.hosts: list[Any] = []         # arrays of NumPy that were arguments, and what stands for them
        self.copies: dict[Any, Any] = {}        # tensors of PyTorch elsewhere than the device, and the arrays for them
        self.gradients: dict[int, Any] = {}     # by the memory of a gradient: the last of `copies` with that, and its tensor
        self.copied: set[int] = set()           # ids of tensors with one
        self.hidden_copies: dict[Any, Any] = {} # those that functions with a gradient of their own have used
        self.pasts: list[Any] = []         # gradients of the user
        self.inner: dict[Any, Any] = {}         # tensors that only functions with gradients of their own have used
        self._recording: Any = None

    @property
    def validates(self) -> bool:
        return bool(self.validation and runtime.runtime().config.debug)

    # -- with ----------------------------------------------------------------------

    def __enter__(self) -> Tape:
        if self.entered:
            raise QuadrantsRuntimeError("Tape can be entered only once.")
        self.entered = True
        if state.tape is not None:
            raise QuadrantsRuntimeError("a `Tape` inside of another one; use `ad.grad_replaced` for "
                                        "checkpoints")
        if state.forward is not None:
            raise QuadrantsRuntimeError("a `Tape` inside of FwdMode")
        if self.validation and not runtime.runtime().config.debug:
            callers.warn(callers.in_their_words("Debug mode is disabled, autodiff valid check will not work. Please specify "
                                                "`ti.init(debug=True)` to enable the check."))
        state.hidden = 0    # whatever a recording that failed has left
        storage.flush()
        if self.grad_check:
            self._saved = Saved([self.loss, *self.grad_check])
        for field in own_fields():
            if state.reversing:
                field._user = None    # begins when it is used: the gradients of others are on their way
            else:
                self._begin(field)
        self._clear_loss()
        self.resume()
        state.tape = self
        state.recordings += 1
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if state.tape is self:
            state.tape = None
        self.left = True
        self.suspend()
        self._restore_modes()
        if kind is not None:
            self.core.clear()
            self.numbers.end()
        else:
            storage.flush()
            self.grad()
            if self.grad_check:
                compare(self)

    def _restore_modes(self) -> None:
        for (function, _), mode in reversed(list(zip(self.calls, self.modes))):
            if hasattr(function, "autodiff_mode"):
                function.autodiff_mode = mode

    def _begin(self, field: Any) -> None:
        if self.clear_gradients:
            clear(field, "grad")
        if self.validates and getattr(field, "checkbit", None) is not None:
            field.checkbit.fill(0)
        if self.grad_check and field._core_array is not None:
            self._saved.add(field)

    def claimed(self, field: Any) -> None:
        """A field is used that this recording has not begun with."""
        unrecorded(lambda: self._begin(field))

    def _clear_loss(self) -> None:
        if isinstance(self.loss, Storage):
            self.loss.fill(0)
        elif self.loss is not None:
            import torch
            with torch.no_grad():
                self.loss.fill_(0)

    @property
    def recording(self) -> bool:
        return self._recording is not None

    # -- steps ---------------------------------------------------------------------

    def step(self) -> None:
        """What follows, up to the next call, is one step."""
        self.core.step()

    def steps(self, count: int) -> _core.TapeSteps:
        """The numbers of so many steps that follow; each one begins a step."""
        return self.core.steps(count)

    range = steps

    def never_copy(self, x: Storage) -> None:
        """Keeps no copies of an array: where a gradient needs a value of it that is overwritten, that is CannotReplay. Not with
        `snapshots` or a `budget`."""
        self.core.never_copy(x.core())

    def __len__(self) -> int:
        """The number of launches and host writes that are recorded."""
        return len(self.core)

    def __bool__(self) -> bool:
        return True

    def report(self) -> _core.TapeReport:
        """What is kept, and what will run again: of the plan if nothing has run yet, and after the end as it was then."""
        return self.last_report or self.core.report()

    # -- recording -----------------------------------------------------------------

    def resume(self) -> None:
        """Records again, after what is recorded."""
        self._recording = self.core.record()
        self._recording.__enter__()

    def suspend(self) -> None:
        """What follows is not recorded."""
        if self._recording is not None:
            recording, self._recording = self._recording, None
            recording.__exit__(None, None, None)

    def launch(self, kernel: Any, args: Any) -> Any:
        """Runs a kernel and records it."""
        if getattr(kernel.original, "no_gradient", False):
            return self.unrecorded(kernel.run, args)
        self.insert(kernel, args)
        if storage._dirty:
            storage.flush()
        return self.run(kernel, args)

    def run(self, kernel: Any, args: Any) -> Any:
        """Runs a kernel, which may be one of a function with a gradient of its own."""
        last_claim = claims.last_claim
        found, values = kernel.specialise(args, None if state.hidden else self.numbers, is_derived=True)
        if not state.hidden:
            self.found.add(found)
            if found.compiled is not None:
                self._meet_arrays(found, found.arguments(values.items))
        result = found.launch(values, "primal")
        entry = fast.table_of(kernel).add(kernel, args[kernel.instance is not None:], found, values)
        if entry is not None and not (state.hidden and values.tensors):
            (self.hidden_again if state.hidden else self.again)[entry] = last_claim
        return result

    def insert_again(self, kernel: Any, args: Any, entry: Any) -> bool:
        """Notes a call like one that was recorded; False if there is more to do."""
        if state.hidden:
            return self.hidden_again.get(entry) is claims.last_claim
        if self.again.get(entry) is not claims.last_claim or self.grad_check or self.validation or self.numbers.constants:
            return False
        if self.numbers.made:
            self.numbers.check_plain(args)
        self.calls.append((kernel, args if kernel.instance is None else (kernel.instance, *args)))
        self.modes.append(kernel.autodiff_mode)
        return True

    def _meet_arrays(self, found: Any, arrays: list[Any]) -> None:
        if self.numbers.constants:
            self.numbers.refuse_constants(arrays, found.name)
        for array in arrays:
            if isinstance(array, _core.Array) and id(array) not in self.arrays:
                self.arrays[id(array)] = array, array.version

    def meet(self, tensor: Any) -> None:
        """A tensor of PyTorch is an argument of a launch."""
        known = tensor._costate
        if state.hidden:
            self.inner[id(known)] = known, tensor
        elif not known.is_copied and id(known) not in self.tensors:
            from costate.interop.copies import place_of
            self.tensors[id(known)] = known, tensor, known.array.version
            self.places[place_of(tensor)] = known

    def add_copy(self, known: Any, tensor: Any) -> None:
        """The same for one elsewhere than the device; a gradient is that of one tensor."""
        self.copies[id(known)] = known, tensor, known.array.version
        if not known.array.has_grad:
            from costate.interop.copies import place_of
            self.places[place_of(tensor)] = known

    def host_array(self, value: Any, make: Any) -> Any:
        """What stands for an array of NumPy: the same for the same elements, whose values it follows."""
        place = value.__array_interface__
        for one in self.hosts:
            if one.value.__array_interface__ == place and one.value.strides == value.strides:
                one.follow()
                return one.array
        self.hosts.append(Host(value, make()))
        return self.hosts[-1].array

    def _check_hosts(self) -> None:
        for k, one in enumerate(self.hosts):
            for other in self.hosts[:k]:
                if one.value.dtype.kind == "f" and np.may_share_memory(one.value, other.value) and (
                        one.is_written or other.is_written):
                    raise CannotReplay(f"NumPy arrays of shapes {one.value.shape} and {other.value.shape} are parts of the same memory, which has "
                                       "been written under the `Tape`: its gradient cannot tell which values they share; use fields "
                                       "or ndarrays")

    def unrecorded(self, function: Any, *args: Any) -> Any:
        """Calls a function whose launches have no gradient."""
        if self.grad_check:
            self.insert(function, args)
        return self._custom(getattr(function, "__name__", "a function"), lambda: function(*args))

    def custom(self, name: str, primal: Any, gradient: Any,
               args: Any) -> Any:
        """Runs `primal`, whose gradient is what `gradient` does: it finds in arrays what `primal` left."""
        past = Past(gradient, self.copies, self.hidden_copies)
        result = self._custom(name, primal, past)
        past.keep(args)
        self.pasts.append(past)
        return result

    def _custom(self, name: str, primal: Callable[..., Any], past: Past | None = None) -> Any:
        storage.flush()
        self._look_at_tensors()
        given: list[Any] = [self, primal]
        results: list[Any] = []  # emptied at the end, for the entry keeps its functions

        def run() -> None:
            tape, function = given
            with hidden(past.keys if past else None):
                try:
                    results.append(function())
                finally:
                    storage.flush()
                    tape._look_at_tensors()
        try:
            with in_python():
                _core.CustomLaunch(name=name, finds_arrays=True, primal=run, gradient=past)()
            return results.pop()
        finally:
            given.clear()

    def _look_at_tensors(self) -> None:
        """What PyTorch has written so far."""
        for known, tensor, *_ in (*self.tensors.values(), *self.inner.values()):
            if not known.is_copied:
                known.before(tensor)

    def insert(self, function: Any, args: Any = ()) -> None:
        """Notes a call, for `calls` and `modes`."""
        if self.grad_check:
            self._saved.add(args)
        self.calls.append((function, args))
        self.modes.append(getattr(function, "autodiff_mode", AutodiffMode.NONE))
        if self.validates and hasattr(function, "autodiff_mode"):
            function.autodiff_mode = AutodiffMode.VALIDATION

    # -- gradients -----------------------------------------------------------------

    def grad(self) -> None:
        """Adds the gradients; the end of the `with` calls it."""
        if not self.entered:
            raise QuadrantsRuntimeError("Before evaluating gradients tape must be entered.")
        if self.gradient_evaluated:
            raise QuadrantsRuntimeError("Gradients of grad can be evaluated only once.")
        for found in self.found:
            found.check_gradient()
        try:
            with in_python(kernels={f.name: f.names for f in self.found}):
                self._backward()
            for copied, tensor, _ in self.copies.values():
                copied.read_gradient(tensor)
        finally:
            self.gradient_evaluated = True
            self.last_report = self.core.report()
            self.core.clear()
            self.numbers.end()

    def _backward(self) -> None:
        for known, tensor, _ in self.tensors.values():
            known.before_backward(tensor)
        self._check_hosts()
        if self.tensors or self.copies:
            from costate.interop.tensors import refuse_overlaps, refuse_views
            refuse_overlaps([*self.tensors.values(), *self.copies.values()])
            if runtime.shares_memory():
                refuse_views(self.tensors.values(), self.arrays.values())
        for copied, tensor, _ in self.copies.values():
            copied.write_gradient(tensor)
        self._look_at_tensors()
        for past in self.pasts:
            past.compare()
        self._tell_of_no_gradients()
        storage.flush()
        loss = None if self.loss is None else self._loss_array()
        if self.loss is not None and (loss is None or loss.has_grad and not self.core.computes(loss)):
            return self._tell_of_unwritten_loss(loss)
        with shown(self.progress) as told:
            self.core.backward(loss, clear_written=self.clear_gradients, all_or_nothing=self.all_or_nothing, **told)

    def _tell_of_unwritten_loss(self, loss: Any) -> None:
        """It does not depend on anything, so the gradients of what was written are 0."""
        if loss is not None:
            loss.grad.fill(1)
        if self.clear_gradients:
            tensors = ((known.array, before) for known, _, before in (*self.tensors.values(), *self.copies.values()))
            for array, before in (*self.arrays.values(), *tensors):
                if array.has_grad and array.version != before:
                    array.grad.fill(0)
        callers.warn("no launch inside of the `with` writes the loss of the `Tape`, so all gradients are 0; compute it with a kernel there")

    def _tell_of_no_gradients(self) -> None:
        """Of a recording in which no array but the loss has one."""
        others = self.tensors or self.copies or self.pasts or self.numbers.made or not isinstance(self.loss, Storage)
        if others or any(array.has_grad and array is not self.loss.core() for array, _ in self.arrays.values()):
            return
        names = dict.fromkeys(name for found in self.found for name in found.names_read())
        if names:
            callers.warn(f"the `Tape` gives no gradients: none of the arrays that its kernels read ({', '.join(names)}) has one; make "
                         "them with `needs_grad=True`")

    def _loss_array(self) -> Any:
        """The array of the loss, or None if no launch is given it."""
        if isinstance(self.loss, Storage):
            return self.loss.core()
        from costate.interop.copies import place_of
        known = getattr(self.loss, "_costate", None)
        if not any(id(known) in met for met in (self.tensors, self.copies, self.inner)):
            known = self.places.get(place_of(self.loss))
        return None if known is None else known.array


class Host:
    """An array of NumPy that was an argument, and the one that stands for it."""

    def __init__(self, value: Any, array: Any) -> None:
        self.value, self.array = value, array
        self.first = self.brought = array.version    # before all launches, and after the last write of the host

    @property
    def is_written(self) -> bool:
        return bool(self.array.version != self.first)

    def follow(self) -> None:
        """Brings what the host has written. What it has left as a launch wrote it is no constant."""
        given = np.asarray(self.value, order="C")
        differs = _bytes_of(given) != _bytes_of(self.array.to_numpy())
        if not differs.any():
            return
        differs = differs.any(axis=1).reshape(given.shape)
        if differs.all() or self.array.version == self.brought:
            self.array.write(given)
        else:
            for index in np.argwhere(differs):
                self.array.write_at(tuple(index.tolist()), given[tuple(index)])
        self.brought = self.array.version


def _bytes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Those of each element, in a row."""
    return array.reshape(-1, 1).view(np.uint8)


class hidden:
    """What is launched inside is no part of a recording."""

    def __init__(self, keys: Any = None) -> None:
        self.keys = keys    # of random numbers, by specialisation; None if nobody asks

    def __enter__(self) -> None:
        self.outer = state.keys
        state.keys = self.keys
        state.hidden += 1

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        state.hidden -= 1
        state.keys = self.outer


class Past:
    """A gradient of the user, which sees what was there when its function returned."""

    def __init__(self, gradient: Any, copies: Any, hidden_copies: Any) -> None:
        self.gradient, self.copies = gradient, copies
        self.keys: dict[Any, Any] = {}
        self.hidden_copies = hidden_copies
        self.hosts: list[Any] = []     # arrays of NumPy among the arguments, and what they held

    def keep(self, args: Any) -> None:
        """Arrays of NumPy, of which nobody says that they are overwritten."""
        self.hosts = [(one, one.copy()) for one in _numpy_in(args) if one.flags.writeable]

    def compare(self) -> None:
        """Before a pass backwards: those that have changed since are what they were while the gradient runs."""
        self.hosts = [(one, kept) for one, kept in self.hosts if one.tobytes() != kept.tobytes()]

    def __call__(self) -> None:
        newest = self._random_keys(self.keys)
        old = [(one, one.copy(), kept) for one, kept in self.hosts]
        for one, _, kept in old:
            one[...] = kept
        storage.forget_mirrors()
        for copied, tensor, _ in self.copies.values():
            copied.read_gradient(tensor)
        state.reversing += 1
        outer, state.copies = state.copies, {*self.copies, *self.hidden_copies}
        try:
            self.gradient()
        finally:
            state.copies = outer
            state.reversing -= 1
            storage.flush()
            storage.forget_mirrors()
            self._random_keys(newest)
            for one, last, _ in old:
                one[...] = last
            for copied, tensor, _ in self.copies.values():
                copied.write_gradient(tensor)

    @staticmethod
    def _random_keys(keys: dict[Any, Any]) -> dict[Any, Any]:
        """Sets those of the last launches; what they were."""
        before = {found: found.own.key for found in keys}
        for found, key in keys.items():
            found.own.key = key
        return before


def _numpy_in(value: Any) -> Iterator[Any]:
    """The arrays of NumPy in arguments."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _numpy_in(one)
    elif isinstance(value, dict):
        yield from _numpy_in(list(value.values()))
