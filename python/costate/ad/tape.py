"""`ad.Tape`: the gradient of several launches."""

import warnings

import numpy as np

from costate import _core
from costate.ad.clear import clear_all_gradients
from costate.ad.enums import AutodiffMode
from costate.ad.state import state
from costate.errors import CannotReplay, QuadrantsRuntimeError
from costate.lang import runtime, storage
from costate.lang.explain import in_python
from costate.lang.storage import Storage


def check_loss(loss, what="Tape"):
    """The loss of a tape: one number with a gradient."""
    if loss is None:
        return None
    if hasattr(loss, "_unwrap"):
        loss = loss._unwrap()
    if not isinstance(loss, Storage) and type(loss).__module__.startswith("torch"):
        return check_tensor(loss)
    if not isinstance(loss, Storage) or loss.element_shape:
        raise QuadrantsRuntimeError(f"The loss of `{what}` must be a 0-D field, i.e. scalar, or an "
                                    "ndarray with one element")
    count = 1
    for extent in loss.shape:
        count *= extent
    if loss.is_field and len(loss.shape) != 0:
        raise QuadrantsRuntimeError("The loss of `Tape` must be a 0-D field, i.e. scalar")
    if count != 1:
        raise RuntimeError("The loss of `Tape` must be an ndarray with only one element")
    if not loss.needs_grad:
        kind = "field" if loss.is_field else "ndarray"
        raise QuadrantsRuntimeError(f"Gradients of loss are not allocated, please use qd.{kind}(..., needs_grad=True) "
                                    f"for all {kind}s that are required by autodiff.")
    return loss


def check_tensor(loss):
    if loss.numel() != 1:
        raise RuntimeError("The loss of `Tape` must be a tensor only contains one element")
    if not loss.requires_grad:
        raise QuadrantsRuntimeError("Gradients of loss are not allocated, please set "
                                    "`requires_grad=True` for all tensors that are required by "
                                    "autodiff.")
    return loss


class Tape:
    """Records the launches inside of `with Tape(loss):` and adds their gradients at its end.

    `loss`: a field of shape (), or an ndarray or tensor with one element; it is set to 0 at the
    start, and its gradient to 1 at the end.
    `clear_gradients`: clears the gradients of all fields first. `validation`: with debug mode,
    kernels check that nothing is written that was read before (the *global data access rule* of
    Taichi). Gradients are exact without that rule: values that they need are copied before they are
    overwritten. `grad_check`: a list of fields (of f64) whose gradients are compared with
    differences.
    """

    def __init__(self, loss=None, clear_gradients=True, validation=False, grad_check=None):
        self.loss = check_loss(loss)
        self.clear_gradients = clear_gradients
        self.validation = validation
        self.grad_check = grad_check
        self.calls = []
        self.modes = []
        self.entered = False
        self.gradient_evaluated = False
        self.entries = []       # _core.Tape, or a function that adds gradients
        self.touched = set()
        self.found = set()      # the kernels that were launched
        self.tensors = {}       # arrays over tensors of PyTorch, these, and the versions at first
        self.places = {}        # and by the memory of the tensors
        self.arrays = {}        # arrays that were arguments beside tensors of PyTorch, and their versions at first
        self.hosts = []         # arrays of NumPy that were arguments, those that stand for them, the versions at first
        self.copies = {}        # tensors of PyTorch elsewhere than the device, and the arrays for them
        self._recording = None

    @property
    def validates(self):
        return bool(self.validation and runtime.runtime().config.debug)

    # -- with ----------------------------------------------------------------------

    def __enter__(self):
        if self.entered:
            raise QuadrantsRuntimeError("Tape can be entered only once.")
        self.entered = True
        if state.tape is not None:
            raise QuadrantsRuntimeError("a Tape inside of another one; use `ad.grad_replaced` for "
                                        "checkpoints")
        if state.forward is not None:
            raise QuadrantsRuntimeError("a Tape inside of FwdMode")
        if self.validation and not runtime.runtime().config.debug:
            warnings.warn("Debug mode is disabled, autodiff valid check will not work. Please "
                          "specify `init(debug=True)` to enable the check.", stacklevel=2)
        state.hidden = 0    # whatever a tape that failed has left
        storage.flush()
        if self.clear_gradients:
            clear_all_gradients()
        if self.validates:
            from costate.ad.validation import clear_bits
            clear_bits()
        self._clear_loss()
        if self.grad_check:
            from costate.ad.check import Saved, fields_that_exist
            self._saved = Saved([*fields_that_exist(), self.loss, *self.grad_check])
        self._written = self._loss_version()
        self.resume()
        state.tape = self
        return self

    def __exit__(self, kind, error, trace):
        state.tape = None
        self.suspend()
        if self.validation:
            self._restore_modes()
        if kind is None:
            storage.flush()
            self.grad()
            if self.grad_check:
                from costate.ad.check import compare
                compare(self)

    def _restore_modes(self):
        for (function, _), mode in reversed(list(zip(self.calls, self.modes))):
            if hasattr(function, "autodiff_mode"):
                function.autodiff_mode = mode

    def _clear_loss(self):
        if isinstance(self.loss, Storage):
            self.loss.fill(0)
        elif self.loss is not None:
            import torch
            with torch.no_grad():
                self.loss.fill_(0)

    def _loss_version(self):
        return self.loss.core().version if isinstance(self.loss, Storage) else None

    @property
    def recording(self):
        return self._recording is not None

    # -- recording -----------------------------------------------------------------

    def resume(self):
        """Records again, behind what is recorded."""
        if not self.entries or not isinstance(self.entries[-1], _core.Tape):
            self.entries.append(_core.Tape())
        self._recording = self.entries[-1].record()
        self._recording.__enter__()

    def suspend(self):
        """What follows is not recorded."""
        if self._recording is not None:
            recording, self._recording = self._recording, None
            recording.__exit__(None, None, None)

    def launch(self, kernel, args):
        """Runs a kernel and records it."""
        if getattr(kernel.original, "no_gradient", False):
            return self.unrecorded(kernel.run, args)
        self.insert(kernel, args)
        if storage._dirty:
            self.flush()
        found, values = kernel.specialise(args)
        if found not in self.found:
            self.found.add(found)
        if found.compiled is not None:
            arrays = found.arguments(values.items, 0)
            self.touched.update([id(a) for a in arrays])
            self._meet_arrays(arrays)
        for tensor in values.tensors.values():
            self._meet(tensor)
        return found.launch(values, "primal")

    def _meet_arrays(self, arrays):
        for array in arrays:
            if isinstance(array, _core.Array) and id(array) not in self.arrays:
                self.arrays[id(array)] = array, array.version

    def _meet(self, tensor):
        """A tensor of PyTorch is an argument."""
        known = tensor._costate
        if not known.is_copied and id(known) not in self.tensors:
            from costate.interop.tensors import place_of
            self.tensors[id(known)] = known, tensor, known.array.version
            self.places[place_of(tensor)] = known

    def add_copy(self, known, tensor):
        """The same for one elsewhere than the device; a gradient is that of one tensor."""
        self.copies[id(known)] = known, tensor, known.array.version
        if not known.array.has_grad:
            from costate.interop.tensors import place_of
            self.places[place_of(tensor)] = known

    def host_array(self, value, make):
        """What stands for an array of NumPy: the same for the same elements, whose values it follows."""
        place = value.__array_interface__
        for known, array, _ in self.hosts:
            if known.__array_interface__ == place and known.strides == value.strides:
                if array.to_numpy().tobytes() != value.tobytes():
                    array.write(np.asarray(value, order="C"))
                return array
        array = make()
        self.hosts.append((value, array, array.version))
        return array

    def _check_hosts(self):
        for k, (one, array, version) in enumerate(self.hosts):
            for other, its_array, its_version in self.hosts[:k]:
                if one.dtype.kind == "f" and np.may_share_memory(one, other) and (
                        array.version != version or its_array.version != its_version):
                    raise CannotReplay(f"NumPy arrays of shapes {one.shape} and {other.shape} are parts of the same memory, which has "
                                       "been written under the Tape: its gradient cannot tell which values they share; use fields "
                                       "or ndarrays")

    def flush(self):
        """Host writes: those to arrays that no recorded launch has used are no part of the tape."""
        fresh = [s for s in storage._dirty if id(s.core()) not in self.touched]
        if fresh:
            self.suspend()
            for one in fresh:
                storage._dirty.discard(one)
                one._flush()
            self.resume()
        storage.flush()

    def unrecorded(self, function, *args):
        """Calls a function whose launches have no gradient."""
        storage.flush()
        self.suspend()
        state.hidden += 1
        try:
            return function(*args)
        finally:
            storage.flush()
            state.hidden -= 1
            if self.entries and isinstance(self.entries[-1], _core.Tape) and not len(
                    self.entries[-1]):
                self.entries.pop()
            self.entries.append(None)
            self.resume()

    def custom(self, primal, gradient):
        """Runs `primal`, whose gradient is what `gradient` does."""
        storage.flush()
        self.suspend()
        state.hidden += 1
        try:
            return primal()
        finally:
            storage.flush()
            state.hidden -= 1
            self.entries.append(gradient)
            self.resume()

    def insert(self, function, args=()):
        """Notes a call, for `calls` and `modes`."""
        if self.grad_check:
            self._saved.add(args)
        self.calls.append((function, args))
        self.modes.append(getattr(function, "autodiff_mode", AutodiffMode.NONE))
        if self.validates and hasattr(function, "autodiff_mode"):
            function.autodiff_mode = AutodiffMode.VALIDATION

    # -- gradients -----------------------------------------------------------------

    def grad(self):
        """Adds the gradients; the end of the `with` calls it."""
        if not self.entered:
            raise QuadrantsRuntimeError("Before evaluating gradients tape must be entered.")
        if self.gradient_evaluated:
            raise QuadrantsRuntimeError("Gradients of grad can be evaluated only once.")
        entries = [e for e in self.entries if e is not None and not (
            isinstance(e, _core.Tape) and not len(e))]
        for found in self.found:
            found.check_gradient()
        try:
            with in_python(kernels={f.kernel.__name__: f.names for f in self.found}):
                self._backward(entries)
            for copied, tensor, _ in self.copies.values():
                copied.read_gradient(tensor)
        finally:
            self.gradient_evaluated = True
            for entry in entries:
                if isinstance(entry, _core.Tape):
                    entry.clear()

    def _backward(self, entries):
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
        if self._whole(entries):
            return
        self._seed()
        for entry in reversed(entries):
            storage.flush()
            if isinstance(entry, _core.Tape):
                entry.backward()
            else:
                entry()

    def _whole(self, entries):
        """All in one, with the gradients of intermediate arrays cleared."""
        if not (self.clear_gradients and len(entries) == 1 and isinstance(entries[0], _core.Tape)):
            return False
        loss = self._written_loss()
        if loss is None:
            return False
        entries[0].backward(loss)
        return True

    def _written_loss(self):
        """The array of the loss, if the tape has written it."""
        if isinstance(self.loss, Storage):
            return self.loss.core() if self._loss_version() != self._written else None
        known = getattr(self.loss, "_costate", None)
        met = self.copies if getattr(known, "is_copied", False) else self.tensors
        _, _, version = met.get(id(known), (None, None, None))
        return known.array if version is not None and known.array.version != version else None

    def _seed(self):
        if isinstance(self.loss, Storage):
            self.loss.grad.fill(1.0)
        elif self.loss is not None:
            self._seed_tensor()

    def _seed_tensor(self):
        import torch
        with torch.no_grad():
            if self.loss.grad is None:
                self.loss.grad = torch.ones_like(self.loss)
            else:
                self.loss.grad.fill_(1.0)
        for copied, tensor, _ in self.copies.values():
            if tensor is self.loss:
                copied.write_gradient(tensor)
