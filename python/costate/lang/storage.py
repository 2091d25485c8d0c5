"""Arrays with access to single elements from the host."""

import weakref

import numpy as np

from costate import _core
from costate.errors import (BadArgument, MissingGradient, QuadrantsIndexError, QuadrantsRuntimeError,
                            QuadrantsSyntaxError)
from costate.lang import activity, dtypes, runtime, scalars
from costate.lang.builder import current
from costate.lang.matrix import FieldElement, Matrix

_dirty = set()


def flush():
    """Brings what the host has written to the devices."""
    while _dirty:
        _dirty.pop()._flush()


def _recorded():
    from costate.ad import state
    return state.records()


def _differentiates():
    """Whether derivatives of what happens now are wanted."""
    from costate.ad import state
    return not state.quiet()


@runtime.on_reset
def _forget():
    _dirty.clear()


class _Tensors(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Storage)


class Storage:
    """An array of numbers, vectors or matrices: base of fields and ndarrays.

    `shape` is that of the indices, `element_shape` that of an element; the device array has both,
    one behind the other.
    """

    is_field = False
    layout = None
    kind = "array"
    offset = None   # the indices of the first element, if they are not 0
    _node = None         # the node that a field is placed in
    _sparse_node = None  # the same, if what is active of it is kept

    def __init__(self, dtype, element_shape=(), needs_grad=False, needs_dual=False, name=""):
        self.dtype = dtype
        self.element_shape = tuple(element_shape)
        self.needs_grad = needs_grad
        self.needs_dual = needs_dual
        self.name = name
        self._core_array = None
        self._host = None
        self._version = None
        self._companions = {}
        self._written = {}      # the elements that the host has written
        self._generation = runtime.generation

    # -- the array on the device ---------------------------------------------------

    def core(self):
        """The device array, made at first use."""
        if self._core_array is None:
            self._core_array = self._make()
        return self._core_array

    def _make(self):
        if self._generation != runtime.generation:
            raise QuadrantsRuntimeError(f"{self.describe()} was made before the last `init` or "
                                        "`reset`; make it again")
        return _core.Array(runtime.device(), self.dtype.core, [*self.shape, *self.element_shape],
                           grad=bool(self.needs_grad), dual=bool(self.needs_dual))

    def describe(self):
        return f"{self.kind} `{self.name}`" if self.name else f"a {self.kind}"

    def companion(self, which):
        """The gradient ("grad") or tangent ("dual") as an array of its own."""
        if which not in self._companions:
            self._companions[which] = self._make_companion(which)
        return self._companions[which]

    # -- the copy on the host ------------------------------------------------------

    def _mirror(self):
        array = self.core()
        if self in _dirty:
            return self._host
        if self._host is None:
            self._host = np.empty(array.shape, self.dtype.np)
            self._version = None
        if self._version != array.version:
            array.read(self._host)
            self._version = array.version
        return self._host

    def _flush(self):
        array = self.core()
        written, self._written = self._written, {}
        if array.has_grad and _recorded():
            from costate.lang.host_write import put
            put(array, self.dtype, self._host, written)
        else:
            array.write(self._host)
        self._version = array.version

    def _readable(self):
        """The elements on the host: the array itself where kernels run in its memory."""
        if runtime.shares_memory() and self not in _dirty:
            return self.core().numpy()
        return self._mirror()

    def _write(self, index, value):
        if self._sparse_node is not None:
            activity.mark(self._sparse_node, index if isinstance(index, tuple) else (index,))
        if runtime.shares_memory() and self not in _dirty:
            try:
                self.core().numpy(writable=True)[index] = value
                return
            except BadArgument:
                pass    # somebody records
        self._mirror()[index] = value
        index = index if isinstance(index, tuple) else (index,)
        self._written[tuple(int(k) % extent for k, extent in zip(index, self.shape))] = None
        _dirty.add(self)

    def _from_start(self, key):
        """The index that counts from 0, for one that counts from the offset."""
        given = list(key) if isinstance(key, (tuple, Matrix)) else [key]
        if any(isinstance(k, Matrix) for k in given):
            given = [e for k in given for e in (k.entries if isinstance(k, Matrix) else [k])]
        if len(given) != len(self.offset):
            return tuple(given)
        for k, lo, extent in zip(given, self.offset, self.shape):
            if not isinstance(k, (slice, float)) and k is not None and not lo <= k < lo + extent:
                raise QuadrantsIndexError(f"index {k} is out of range of {self.describe()} of shape {self.shape}, whose indices "
                                          f"begin at {self.offset}")
        return tuple(k if isinstance(k, (slice, float)) or k is None else k - lo for k, lo in zip(given, self.offset))

    def _index(self, key):
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
            raise QuadrantsIndexError(f"{self.describe()} of shape {self.shape} takes "
                                      f"{len(self.shape)} indices, not {len(key)}")
        for k, extent in zip(key, self.shape):
            if isinstance(k, (slice, float)) or k is None:
                raise QuadrantsIndexError(f"{k!r} is not an index of {self.describe()}; slices "
                                          "are those of `to_numpy()`")
            if not -extent <= k < extent:
                raise QuadrantsIndexError(f"index {k} is out of range of {self.describe()} of "
                                          f"shape {self.shape}")
        return tuple(int(k) for k in key)

    def __getitem__(self, key):
        if current() is not None:
            self._refuse_kernel()
        index = self._index(key)
        host = self._readable()
        if not self.element_shape:
            return host[index].item()
        entries = host[index].reshape(-1).tolist()
        return FieldElement(entries, self.element_shape,
                            lambda changed: self.__setitem__(key, changed))

    def __setitem__(self, key, value):
        if current() is not None:
            self._refuse_kernel()
        index = self._index(key)
        if self.element_shape:
            value = scalars.convert_all(value, self.dtype, self.describe(), self.element_shape)
        else:
            value = scalars.convert(value, self.dtype, self.describe())
        self._write(index, value)

    def _refuse_kernel(self):
        raise QuadrantsSyntaxError(f"a plain function of Python, which a kernel calls while it is compiled, uses an "
                                   f"element of {self.describe()}: make the function a `@ti.func`")

    # -- whole arrays --------------------------------------------------------------

    def to_numpy(self, dtype=None, copy=True):
        """A copy as a NumPy array; with `copy=False`, on a CPU, the memory itself."""
        if copy is False:
            self._check_shared("to_numpy")
            flush()
            host = self.core().numpy(writable=True)
            return host if dtype is None else np.asarray(host, dtypes.cook(dtype).np if dtypes.is_dtype(dtype) else dtype)
        array = self.core()
        if self in _dirty:
            _dirty.discard(self)
            self._flush()
        host = array.to_numpy()
        if dtype is None:
            return host
        return host.astype(dtypes.cook(dtype).np if dtypes.is_dtype(dtype) else dtype)

    def from_numpy(self, array):
        """Takes the elements of a NumPy array of the same shape."""
        array = np.asarray(array)
        expected = (*self.shape, *self.element_shape)
        if tuple(array.shape) != expected:
            column = len(self.element_shape) == 1 and array.shape == (*expected, 1)
            if not column:
                raise ValueError(f"{self.describe()} has shape {expected} with its components, "
                                 f"the array {tuple(array.shape)}")
            array = array.reshape(expected)
        _dirty.discard(self)
        self._host, self._written = None, {}
        if self._sparse_node is not None:
            array = activity.keep_active(self, array)
        self.core().write(np.asarray(array, self.dtype.np, order="C"))

    def _check_shared(self, what):
        if not runtime.shares_memory():
            torch = ", or use `to_torch(copy=False)`" if runtime.device().name == "cuda" else ""
            raise QuadrantsRuntimeError(f"`{what}(copy=False)` of {self.describe()}: its memory is on the device; "
                                        f"leave `copy=False` out{torch}")

    def to_torch(self, device=None, copy=True):
        """A copy as a PyTorch tensor; with `copy=False` the memory itself, on its device."""
        import torch
        if copy is False:
            tensor = torch.from_dlpack(self)
            return tensor if device is None else tensor.to(device)
        tensor = torch.from_numpy(self.to_numpy())
        return tensor.to(device) if device is not None else tensor

    def from_torch(self, tensor):
        """Takes the elements of a PyTorch tensor of the same shape."""
        self.from_numpy(tensor.detach().cpu().numpy())

    def fill(self, value):
        """Sets every element."""
        _dirty.discard(self)
        self._host, self._written = None, {}
        if isinstance(value, (Matrix, list, tuple, np.ndarray)) or self._sparse_node is not None:
            full = np.empty((*self.shape, *self.element_shape), self.dtype.np)
            full[...] = scalars.convert_all(value, self.dtype, self.describe(), self.element_shape)
            self.core().write(full if self._sparse_node is None else activity.keep_active(self, full))
        else:
            self.core().fill(scalars.convert(value, self.dtype, self.describe()))

    def copy_from(self, other):
        """Takes the elements of a field or ndarray of the same shape."""
        if tuple(other.shape) != tuple(self.shape):
            raise ValueError(f"shapes {self.shape} and {other.shape} differ")
        if _differentiates() and isinstance(other, Storage) and self.element_shape == other.element_shape:
            from costate.lang.copying import copy
            copy(self, other)
        else:
            self.from_numpy(other.to_numpy())

    def __dlpack__(self, **options):
        flush()
        return self.core().__dlpack__(**options)

    def __dlpack_device__(self):
        return self.core().__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy(dtype)

    def __len__(self):
        if not self.shape:
            raise TypeError(f"{self.describe()} of shape () has no length")
        return self.shape[0]

    def __iter__(self):
        raise TypeError(f"{self.describe()} is iterated in kernels; use `to_numpy()` on the host")

    @property
    def snode(self):
        """What tests of Quadrants and Taichi ask about the place of a field."""
        from costate.lang.snode import Handle
        return Handle(self)

    def parent(self, n=1):
        """The node that a field is placed in, or one above."""
        node = getattr(self._placed(), "_node", None)
        return self.snode if node is None else node.parent(n - 1)

    def _placed(self):
        return self

    has_grad = property(lambda self: bool(self.needs_grad))
    has_dual = property(lambda self: bool(self.needs_dual))

    def to_dlpack(self):
        """A DLPack capsule over the memory of the array."""
        return self.__dlpack__()

    def _unwrap(self):
        return self

    n = property(lambda self: self.element_shape[0] if self.element_shape else 1)
    m = property(lambda self: self.element_shape[1] if len(self.element_shape) == 2 else 1)

    def __repr__(self):
        return f"<{self.kind} {self.dtype} {tuple(self.shape)}>"


class Companion(Storage):
    """The gradient or tangent of an array."""

    def __init__(self, owner, which):
        self.owner = weakref.ref(owner)
        self._strong = owner
        self.which = which
        self.is_field = owner.is_field
        self.kind = ("gradient of " if which == "grad" else "tangent of ") + owner.describe()
        super().__init__(owner.dtype, owner.element_shape)

    def _placed(self):
        return self._strong

    shape = property(lambda self: self._strong.shape)
    offset = property(lambda self: self._strong.offset)

    def describe(self):
        return self.kind

    def __str__(self):
        return str(self.to_numpy()) if self.is_field and self.placed else repr(self)

    def _make(self):
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

    @property
    def placed(self):
        return getattr(self._strong, f"needs_{self.which}")

    def _make_companion(self, which):
        return Companion(self, which)

    grad = property(lambda self: self.companion("grad"))
    dual = property(lambda self: self.companion("dual"))
