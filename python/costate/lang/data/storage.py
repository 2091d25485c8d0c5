"""Arrays with access to single elements from the host."""

from __future__ import annotations

import copy
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.errors import (CannotCapture, KnownIndexError, MissingGradient, NotDifferentiable,
                            QuadrantsIndexError, QuadrantsRuntimeError, QuadrantsSyntaxError)
from costate.lang.base import declared, dtypes, runtime, scalars, threads
from costate.lang.base import state as surroundings
from costate.lang.base.answer import Answer
from costate.lang.base.explain import in_python
from costate.lang.base.hooks import Hook
from costate.lang.base.number import is_alive, read_array
from costate.lang.base.state import state
from costate.lang.base.threads import get_ident
from costate.lang.data import activity, clear, zeros
from costate.lang.data.handle import Handle
from costate.lang.data.shared_memory import SharedMemory
from costate.lang.values.builder import current
from costate.lang.values.matrix import FieldElement, Matrix

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.data.pickled import Copied

#: `copy_elements(target, source)`, which derivatives see.
copy_elements: Hook[..., Any] = Hook("copy_elements")
#: Arrays that the host has written and devices have not, by their identities; it keeps none of them. What is written where
#: derivatives are taken is not among them.
_dirty: dict[Any, Any] = {}
#: All fields and ndarrays.
_all = threads.Objects()


_looks = 0   # changes when arrays get other contents without a write
_FEW = 8          # single elements
_LITTLE = 65_536  # bytes


def forget_mirrors() -> None:
    """Copies on the host are not what arrays hold."""
    global _looks
    with threads.lock:
        _looks += 1


@runtime.before_sync.add
def flush() -> None:
    """Brings what the host has written to the devices."""
    if not _dirty or state.capture is not None:   # a replay brings it
        return
    with threads.lock:
        for known in list(_dirty.values()):
            one = known()
            if one is not None:
                one._bring()


def _is_seen() -> int:
    """Whether a derivative is taken of what the host writes."""
    return surroundings.records() or surroundings.is_custom()


def _repeated(one: Any, function: Callable[..., Any], *args: Any) -> None:
    """A `Tape` that compares its gradients with differences repeats what the host writes."""
    if state.loud and surroundings.records() and state.tape.grad_check and not hasattr(one, "which"):
        state.tape.insert(function, (one, *map(copy.copy, args)))


def _unseen(function: Any) -> Any:
    """Calls it as if no derivative were taken."""
    if not surroundings.is_custom():
        return surroundings.unrecorded(function)
    return threads.elsewhere(function)


def claim(one: Any) -> None:
    """This thread uses a field, or its gradient: see ad/clear.py."""
    while hasattr(one, "which"):
        one = one._strong
    if one.is_field:
        clear.claim(one)


def _forward() -> bool:
    """Whether tangents are pushed."""
    return state.forward is not None


def _differentiates() -> bool:
    """Whether derivatives of what happens now are wanted."""
    return not surroundings.quiet()


@runtime.on_reset.add
def _forget() -> None:
    _dirty.clear()
    for one in _all:
        one._release()


class _Tensors(type):
    _ndim = None   # of the elements; None: any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Storage) and cls._ndim in (None, len(instance.element_shape))

    def __call__(cls, impl: Any) -> Copied:
        if not isinstance(impl, cls):
            raise TypeError(f"`{cls.__name__}(x)` is for such a field or ndarray, not for {type(impl).__name__}; "
                            "`tensor(dtype, shape)` makes one")
        return impl


class Storage(SharedMemory):
    """An array of numbers, vectors or matrices: base of fields and ndarrays.

    `shape` is that of the indices, `element_shape` that of an element; the device array has both,
    one after the other.
    """

    __slots__ = ("_companions", "__dict__", "__weakref__")
    is_field = False
    layout: Any = None
    kind = "array"
    offset: Any = None   # the indices of the first element, if they are not 0
    shape: Any
    _make_companion: Any      # for "grad" or "dual"
    _node: Any = None         # the node that a field is placed in
    _sparse_node: Any = None  # the same, if what is active of it is kept
    _host_writes: Any = None  # inside of a `Tape`, see zeros.py

    def __init__(self, dtype: DataType, element_shape: tuple[int, ...] = (), needs_grad: bool = False,
                 needs_dual: bool = False, name: str = "") -> None:
        self.dtype = dtype
        self.element_shape = tuple(element_shape)
        self.needs_grad = needs_grad
        self.needs_dual = needs_dual
        self.name = name
        self._core_array: _core.Array | None = None
        self._host: np.ndarray[Any, Any] | None = None
        self._version: Any = None
        self._uses: tuple[Any, int] = (None, 0)   # of single elements by the host, and of which contents
        self._companions: dict[str, Any] = {}
        self._generation = runtime.generation
        self._user = get_ident()   # the thread that has used it last, see ad/clear.py

    def _register(self) -> None:
        if state.capture is not None and not state.tracing:
            raise CannotCapture(f"a graph cannot make {self.describe()}, which each replay would find as the last one has left it; "
                                "make it before `capture`")
        _all.add(self)

    # -- the array on the device ---------------------------------------------------

    def core(self) -> _core.Array:
        """The device array, made at first use."""
        array = self._core_array
        return self._made() if array is None else array

    def _made(self) -> _core.Array:
        if not state.tracing:
            declared.use()
        with threads.lock:
            if self._core_array is None:
                self._core_array = self._make()
            return self._core_array

    def _blocks(self) -> Any:
        node = self._placed()._sparse_node
        return None if node is None else node.blocks_below()

    def _release(self) -> None:
        """Lets go of the memory, and of what the host has written there."""
        self._forget_host()
        self._core_array = None
        for one in list(self._companions.values()):
            one._release()

    def _make(self) -> _core.Array:
        if self._generation != runtime.generation:
            raise QuadrantsRuntimeError(f"{self.describe()} was made before the last `init` or "
                                        "`reset`; make it again")
        blocks = self._blocks()
        shape = self.shape if blocks is None else (blocks.rows, blocks.cells(self._sparse_node))
        form = None if blocks is None else _core.ElementForm("sparse", 0)
        return _core.Array(runtime.device(), self.dtype.core, [*shape, *self.element_shape],
                           grad=bool(self.needs_grad), dual=bool(self.needs_dual), form=form)

    def describe(self) -> str:
        return f"{self.kind} `{self.name}`" if self.name else f"a {self.kind}"

    def companion(self, which: str) -> Any:
        """The gradient ("grad") or tangent ("dual") as an array of its own."""
        found = self._companions.get(which)
        return self._companions.setdefault(which, self._make_companion(which)) if found is None else found

    # -- the copy on the host ------------------------------------------------------

    def _mirror(self) -> Any:
        """Under the lock."""
        array = self.core()
        if self._is_dirty():
            return self._host
        if self._host is None:
            self._host = np.empty(array.shape, self.dtype.np)
            self._version = None
        if self._version != (array.version, _looks):
            array.read(self._host)
            self._version = array.version, _looks
        return self._host

    def _is_dirty(self) -> bool:
        return id(self) in _dirty

    def _set_dirty(self) -> None:
        key = id(self)
        if key not in _dirty:
            _dirty[key] = weakref.ref(self, lambda _: _dirty.pop(key, None))

    def __del__(self, ends: Any = sys.is_finalizing, dirty: Any = _dirty,
                lock: Any = threads.lock) -> None:
        """Others may have the array, and see what was written."""
        if id(self) not in dirty or ends():
            return
        with lock:
            if id(self) in dirty:
                self._bring()

    def _bring(self) -> None:
        """Under the lock. Others wait as long as it is among those that are written."""
        _unseen(self._flush)
        _dirty.pop(id(self), None)

    def _flush(self) -> None:
        array = self.core()
        array.write(self._host)
        self._version = array.version, _looks

    def _element(self, index: Any) -> Any:
        """The numbers of an element: of the array itself where kernels run in its memory."""
        if state.capture is not None:
            self._refuse_capture()
        blocks = self._blocks()
        if blocks is not None:
            index = blocks.place(self._placed()._sparse_node, index if isinstance(index, tuple) else (index,))
            if index[0] == 0:
                return np.zeros(self.element_shape, self.dtype.np)
        if runtime.shares_memory() and not self._is_dirty():
            return self.core().numpy()[index]
        with threads.lock:
            if self._takes_copy():
                return self._mirror()[index]
            return self._fetched(index if isinstance(index, tuple) else (index,))

    def _refuse_capture(self) -> None:
        raise CannotCapture(f"a graph cannot use elements of {self.describe()} on the host; do that outside of `capture`, or in a "
                            "kernel")

    def _fetched(self, index: tuple[Any, ...]) -> Any:
        array = self.core()
        element = np.empty(array.shape[len(index):], self.dtype.np)
        array.read_at([k + extent if k < 0 else k for k, extent in zip(index, array.shape)], element)
        return element

    def _takes_copy(self) -> bool:
        """Under the lock: whether the host is to have all elements. It gets them if they are little, or once it has used a
        few, one after the other, that nobody else has written since."""
        array = self.core()
        seen = array.version, _looks
        if array.nbytes <= _LITTLE or self._is_dirty() or self._host is not None and self._version == seen:
            return True
        before, uses = self._uses
        self._uses = seen, uses + 1 if before == seen else 1
        return self._uses[1] > _FEW

    def _write(self, index: Any, value: Any, component: tuple[Any, ...] = ()) -> None:
        """An element, or a component of it: at once where that costs little or somebody records."""
        if state.capture is not None:
            self._refuse_capture()
        index = index if isinstance(index, tuple) else (index,)
        if index and min(index) < 0:
            index = tuple([k if k >= 0 else k + extent for k, extent in zip(index, self.shape)])
        if self._sparse_node is not None:
            activity.mark(self._sparse_node, index)
        blocks = self._blocks()
        place = (*index, *component)
        if blocks is not None:
            place = (*blocks.place(self._placed()._sparse_node, index, makes=True), *component)
        _repeated(self, Storage._write, index, value, component)
        if runtime.shares_memory() or _is_seen() or not self._set_in_copy(place, value):
            self._put(place, value)
        if _forward():
            self._stop_tangent((*index, *component))

    def _set_in_copy(self, place: tuple[Any, ...], value: Any) -> bool:
        with threads.lock:
            if not self._takes_copy():
                return False
            self._mirror()[place] = value
            self._set_dirty()
            return True

    def _put(self, place: tuple[Any, ...], value: Any) -> None:
        with threads.lock:
            if self._is_dirty():
                self._bring()
        array, part = self.core(), np.asarray(value, self.dtype.np)
        extents = array.shape[len(place):]
        if part.shape != extents:
            part = np.broadcast_to(part, extents)
        mirror = self._host if self._version == (array.version, _looks) else None
        array.write_at(place, np.ascontiguousarray(part) if extents else part)
        if not runtime.shares_memory():
            self._uses = (array.version, _looks), self._uses[1]
        if mirror is not None:
            mirror[place] = part
            self._version = array.version, _looks

    def _write_component(self, index: Any, position: int, value: float) -> None:
        if current() is not None:
            self._refuse_kernel()
        component = np.unravel_index(position, self.element_shape)
        self._write(index, value, component)
        if state.loud:
            self._note_numbers((*(index if isinstance(index, tuple) else (index,)), *component), value)

    def _stop_tangent(self, place: Any = ()) -> None:
        """In `FwdMode`: what the host writes is a constant."""
        if self.core().has_dual:
            self.companion("dual")._write_anew(place)

    def _write_anew(self, place: Any) -> None:
        if place:
            self._write(place[:len(self.shape)], 0, place[len(self.shape):])
        else:
            self.fill(0)

    def _forget_host(self) -> None:
        with threads.lock:
            _dirty.pop(id(self), None)
            self._host = None

    def _from_start(self, key: Any) -> tuple[Any, ...]:
        """The index that counts from 0, for one that counts from the offset."""
        given = list(key) if isinstance(key, (tuple, Matrix)) else [key]
        if any(isinstance(k, Matrix) for k in given):
            given = [e for k in given for e in (k.entries if isinstance(k, Matrix) else [k])]
        if len(given) != len(self.offset):
            return tuple(given)
        for k, lo, extent in zip(given, self.offset, self.shape):
            if not isinstance(k, (slice, float)) and k is not None and not lo <= k < lo + extent:
                raise KnownIndexError(f"index {k} is out of range of {self.describe()} of shape {self.shape}, whose indices "
                                          f"begin at {self.offset}")
        return tuple(k if isinstance(k, (slice, float)) or k is None else k - lo for k, lo in zip(given, self.offset))

    def _index(self, key: Any) -> Any:
        if self.offset:
            key = self._from_start(key)
        if type(key) is int and len(self.shape) == 1 and 0 <= key < self.shape[0]:
            return key
        if key is None:
            key = ()
        elif isinstance(key, Matrix):
            key = tuple(key.entries)
        elif not isinstance(key, tuple):
            key = (key,)
        if any(isinstance(k, Matrix) for k in key):
            key = tuple(e for k in key for e in (k.entries if isinstance(k, Matrix) else [k]))
        if len(key) != len(self.shape):
            if not self.shape and key == (0,):
                return ()
            raise QuadrantsIndexError(f"{self.describe()} of shape {self.shape} takes {len(self.shape)} indices, not {len(key)}: "
                                      f"{len(self.shape)}d {'field' if self.is_field else 'ndarray'} indexed with {len(key)}d indices")
        for k, extent in zip(key, self.shape):
            if isinstance(k, (slice, float)) or k is None:
                raise QuadrantsIndexError(f"{k!r} is not an index of {self.describe()}; slices "
                                          "are those of `to_numpy()`")
            if not -extent <= k < extent:
                raise KnownIndexError(f"index {k} is out of range of {self.describe()} of "
                                          f"shape {self.shape}")
        return tuple(int(k) for k in key)

    def __getitem__(self, key: Any) -> Any:
        if current() is not None:
            self._refuse_kernel()
        index = self._index(key)
        element = self._element(index)
        if not self.element_shape:
            value = element.item()
            return self._known(index, [value])[0] if state.loud else value
        entries = element.reshape(-1).tolist()
        if state.loud:
            entries = self._known(index, entries)
        return FieldElement(entries, self.element_shape,
                            lambda position, changed: self._write_component(index, position, changed))

    def __setitem__(self, key: Any, value: Any) -> None:
        if current() is not None:
            self._refuse_kernel()
        index = self._index(key)
        if self.element_shape:
            element: Any = scalars.convert_all(value, self.dtype, self.describe(), self.element_shape)
        else:
            element = scalars.convert(value, self.dtype, self.describe())
        self._write(index, element)
        if state.loud:
            self._note_numbers(index, value)

    def _known(self, index: Any, values: list[Any]) -> list[Any]:
        """Numbers that the host reads, with what derivatives know of them."""
        numbers = surroundings.numbers() if self.dtype.is_float else None
        if numbers is None:
            return values
        index = index if isinstance(index, tuple) else (index,)
        index = tuple([k + extent if k < 0 else k for k, extent in zip(index, self.shape)])
        blocks = self._blocks()
        if blocks is not None:
            index = blocks.place(self._placed()._sparse_node, index)
            if index[0] == 0:
                return values
        what = f"an element of {self.describe()}"
        return numbers.read(self.core(), index, values, what)  # type: ignore[no-any-return]

    def _note_numbers(self, place: Any, given: Any) -> None:
        """The host has written numbers: derivatives may know of them."""
        numbers = surroundings.numbers() if self.dtype.is_float else None
        if numbers is None:
            return
        leaves = [given] if is_alive(given) else scalars.leaves(given)
        if not any(map(is_alive, leaves)):
            numbers.check_plain(leaves)
            zeros.note_write(self, place)
        else:
            place = place if isinstance(place, tuple) else (place,)
            place = tuple([k + extent if k < 0 else k for k, extent in zip(place, (*self.shape, *self.element_shape))])
            numbers.stored(self.core(), self._in_memory(tuple(map(int, place))), leaves, self.describe())

    def _in_memory(self, place: tuple[int, ...]) -> tuple[int, ...]:
        """Where the host has written."""
        blocks, count = self._blocks(), len(self.shape)
        if blocks is None:
            return place
        if len(place) < count:
            raise NotDifferentiable(f"a number that derivatives pass through is written to all of {self.describe()}, which is sparse; "
                                    "write it to single elements, or in a kernel")
        return (*blocks.place(self._placed()._sparse_node, place[:count]), *place[count:])

    def _refuse_kernel(self) -> None:
        raise QuadrantsSyntaxError(f"a plain function of Python, which a kernel calls while it is compiled, uses an "
                                   f"element of {self.describe()}: make the function a `@ti.func`")

    # -- whole arrays --------------------------------------------------------------

    def to_numpy(self, dtype: Any = None, copy: bool = True) -> Any:
        """A copy as a NumPy array; with `copy=False`, on a CPU, the memory itself."""
        if copy is False:
            self._check_shared("to_numpy")
            with in_python():
                host = self._brought().numpy(writable=True)
            if state.loud:
                host = read_array(host, self._whole())
            return host if dtype is None else np.asarray(host, dtypes.cook(dtype).np if dtypes.is_dtype(dtype) else dtype)
        host = self._copied()
        if state.loud:
            host = read_array(host, self._whole())
        if dtype is None:
            return host
        return host.astype(dtypes.cook(dtype).np if dtypes.is_dtype(dtype) else dtype)

    def _copied(self) -> np.ndarray[Any, Any]:
        array = self.core()
        host = self._mirrored() if self._is_dirty() else array.to_numpy()
        blocks = self._blocks()
        return host if blocks is None else activity.spread(self, blocks, host)

    def _mirrored(self) -> np.ndarray[Any, Any]:
        with threads.lock:
            return self._mirror().copy()  # type: ignore[no-any-return]

    def _whole(self) -> Any:
        """What derivatives know of the array as a whole, which the host reads or writes, or None."""
        numbers = surroundings.numbers() if self.dtype.is_float else None
        return None if numbers is None else numbers.whole(self.core(), self.describe())

    def from_numpy(self, array: Any) -> None:
        """Takes the elements of a NumPy array of the same shape."""
        given = array
        array = np.asarray(array)
        expected = (*self.shape, *self.element_shape)
        if tuple(array.shape) != expected:
            column = bool(self.element_shape) and (array.shape == (*expected, 1) or (*array.shape, 1) == expected)
            column |= len(self.element_shape) == 1 and array.shape == (*self.shape, 1, *self.element_shape)
            if not column:
                raise ValueError(f"{self.describe()} has shape {expected} with its components, "
                                 f"the array {tuple(array.shape)}")
            array = array.reshape(expected)
        scalars.check_array(array, self.dtype, self.describe())
        _repeated(self, Storage.from_numpy, array)
        self._forget_host()
        blocks = self._blocks()
        if blocks is not None:
            array = activity.in_rows(self, blocks, array)
        elif self._sparse_node is not None:
            array = activity.keep_active(self, array)
        self.core().write(np.asarray(array, self.dtype.np, order="C"))
        if _forward():
            self._stop_tangent()
        if state.loud and (isinstance(given, (list, tuple)) or array.dtype == object or is_alive(given)):
            self._note_numbers((), given)
        elif state.loud:
            zeros.note_write(self, ())

    def _check_shared(self, what: str) -> None:
        if not runtime.shares_memory():
            torch = ", or use `to_torch(copy=False)`" if runtime.device().name == "cuda" else ""
            raise QuadrantsRuntimeError(f"`{what}(copy=False)` of {self.describe()}: its memory is on the device; "
                                        f"leave `copy=False` out{torch}")

    def to_torch(self, device: Any = None, copy: bool = True) -> Any:
        """A copy as a PyTorch tensor; with `copy=False` the memory itself, on its device."""
        import torch
        if copy is False:
            tensor = torch.from_dlpack(self)  # type: ignore[attr-defined]
            return tensor if device is None else tensor.to(device)
        tensor = torch.from_numpy(self._copied())
        tensor = tensor.to(device) if device is not None else tensor
        if state.loud:
            setattr(tensor, "_costate_node", self._whole())
        return tensor

    def from_torch(self, tensor: Any) -> None:
        """Takes the elements of a PyTorch tensor of the same shape."""
        if state.loud:
            self._refuse_tensor(tensor)
        self.from_numpy(tensor.detach().cpu().numpy())

    def _refuse_tensor(self, tensor: Any) -> None:
        """One whose derivatives would be lost."""
        numbers = surroundings.numbers() if self.dtype.is_float else None
        if numbers is None:
            return
        if tensor.requires_grad:
            raise NotDifferentiable(f"{self.describe()} takes a tensor of PyTorch that requires a gradient, which it would not get; pass "
                                    "the tensor to a kernel, or take `tensor.detach()`")
        node = getattr(tensor, "_costate_node", None)
        if node is not None and node.alive:
            node.refuse("")

    def fill(self, value: Any) -> None:
        """Sets every element."""
        _repeated(self, Storage.fill, value)
        self._forget_host()
        blocks = self._blocks()
        if isinstance(value, (Matrix, list, tuple, np.ndarray)) or self._sparse_node is not None:
            full = np.empty((*self.shape, *self.element_shape) if blocks is None else self.core().shape, self.dtype.np)
            full[...] = scalars.convert_all(value, self.dtype, self.describe(), self.element_shape)
            if blocks is not None:
                full = activity.keep_active_rows(self, blocks, full)
            elif self._sparse_node is not None:
                full = activity.keep_active(self, full)
            self.core().write(full)
        else:
            self.core().fill(scalars.convert(value, self.dtype, self.describe()))
        if _forward():
            self._stop_tangent()
        if state.loud:
            self._note_numbers((), value)

    def copy_from(self, other: Any) -> None:
        """Takes the elements of a field or ndarray of the same shape."""
        if tuple(other.shape) != tuple(self.shape):
            raise ValueError(f"shapes {self.shape} and {other.shape} differ")
        if _differentiates() and isinstance(other, Storage) and self.element_shape == other.element_shape:
            copy_elements(self, other)
        else:
            self.from_numpy(other.to_numpy())

    def _brought(self) -> Any:
        if self._blocks() is not None:
            raise QuadrantsRuntimeError(f"{self.describe()} is sparse, and its memory is no array: leave `copy=False` out")
        flush()
        return self.core()

    def __len__(self) -> Any:
        if not self.shape:
            raise TypeError(f"{self.describe()} of shape () has no length")
        return self.shape[0]

    def __iter__(self) -> None:
        raise NotImplementedError(f"Struct for is only available in Quadrants scope: {self.describe()} is iterated in kernels; use "
                                  "`to_numpy()` on the host")

    @property
    def snode(self) -> Handle:
        """What tests of Quadrants and Taichi ask about the place of a field."""
        return Handle(self)

    def parent(self, n: Any = 1) -> Any:
        """The node that a field is placed in, or one above."""
        node = getattr(self._placed(), "_node", None)
        return self.snode if node is None else node.parent(n - 1)

    def _placed(self) -> Any:
        return self

    has_grad = property(lambda self: Answer(bool(self.needs_grad)))
    has_dual = property(lambda self: Answer(bool(self.needs_dual)))

    def _unwrap(self) -> Any:
        return self

    n = property(lambda self: self.element_shape[0] if self.element_shape else 1)
    m = property(lambda self: self.element_shape[1] if len(self.element_shape) == 2 else 1)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.dtype} {tuple(self.shape)}>"


class Companion(Storage):
    """The gradient or tangent of an array."""

    def __init__(self, owner: Any, which: str) -> None:
        self.owner = weakref.ref(owner)
        self._facts = type(owner), owner.__dict__
        self.which = which
        self.is_field = owner.is_field
        self.kind = ("gradient of " if which == "grad" else "tangent of ") + owner.describe()
        super().__init__(owner.dtype, owner.element_shape)

    @property
    def _strong(self) -> Any:
        """The array that this belongs to. It keeps this one, and not the other way round: if only this one is left, what
        is known of the array makes another one."""
        owner = self.owner()
        return self._revived() if owner is None else owner

    def _revived(self) -> Any:
        kind, facts = self._facts
        made = object.__new__(kind)
        made.__dict__ = facts
        made._companions = {self.which: self}
        made._register()
        self.owner, self._owner = weakref.ref(made), made
        return made

    def _placed(self) -> Any:
        return self._strong

    _user = property(lambda self: self._strong._user, lambda self, value: None)
    shape = property(lambda self: self._strong.shape)
    offset = property(lambda self: self._strong.offset)

    def describe(self) -> str:
        return self.kind

    def __str__(self) -> Any:
        return str(self.to_numpy()) if self.is_field and self.placed else repr(self)

    def _make(self) -> Any:
        owner = self._strong
        array = owner.core()
        if not getattr(array, f"has_{self.which}"):
            raise MissingGradient(
                f"{owner.describe()} has no {'gradient' if self.which == 'grad' else 'tangent'}; "
                f"make it with `needs_{self.which}=True`, or place `x.{self.which}`, or use "
                f"`root.lazy_{self.which}()` before its first use")
        made = getattr(array, self.which)
        self.dtype = dtypes.of_core(made.dtype)
        return made

    def _stop_tangent(self, place: Any = ()) -> None:
        if self.which == "grad":
            super()._stop_tangent(place)

    @property
    def placed(self) -> Any:
        return getattr(self._strong, f"needs_{self.which}")

    def _make_companion(self, which: Any) -> Any:
        return Companion(self, which)

    def _used(self) -> None:
        """The host writes it: what it holds is no riddle."""
        if self._user != get_ident():
            claim(self)
        self._strong._host_writes = None

    def _write(self, index: Any, value: float, component: tuple[Any, ...] = ()) -> None:
        self._used()
        super()._write(index, value, component)

    def from_numpy(self, array: Any) -> None:
        self._used()
        super().from_numpy(array)

    def fill(self, value: Any) -> None:
        self._used()
        super().fill(value)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if self.which == "grad" and (self.element_shape or found == 0):
            zeros.tell_of_zeros(self, self._index(key), found.entries if self.element_shape else found)
        return found

    def _copied(self) -> np.ndarray[Any, Any]:
        found = super()._copied()
        if self.which == "grad" and (state.loud or self._strong._host_writes is not None):
            zeros.tell_of_zeros(self, (), found)
        return found

    grad = property(lambda self: self.companion("grad"))
    dual = property(lambda self: self.companion("dual"))
