"""`ad.FwdMode`: tangents of several launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.ad.host_numbers import ForwardNumbers
from costate.errors import QuadrantsAssertionError, QuadrantsRuntimeError
from costate.lang.base.state import state
from costate.lang.data import storage
from costate.lang.data.clear import clear, own_fields
from costate.lang.data.storage import Storage


class FwdMode:
    """Inside of `with FwdMode(loss, param, seed):` launches push tangents: `loss.dual`.

    `param`: the field or ndarray by which is differentiated, or a list of them; `seed`: the
    direction, a number for each element (all in a row). Not needed for a `param` of one element.
    `clear_gradients`: clears all tangents first, and that of `param` at the end.
    """

    def __init__(self, loss: Any, param: Any = None, seed: Any = None,
                 clear_gradients: bool = True) -> None:
        self.loss = list(loss) if isinstance(loss, (list, tuple)) else [loss]
        self.params = list(param) if isinstance(param, (list, tuple)) else [param]
        self.seed = seed
        self.clear_gradients = clear_gradients
        self.calls: list[Any] = []
        self.entered = self.left = False
        self.numbers = ForwardNumbers(self)

    def __enter__(self) -> FwdMode:
        if self.entered:
            raise QuadrantsRuntimeError("Forward mode manager can be entered only once.")
        self.entered = True
        if state.tape is not None or state.forward is not None:
            raise QuadrantsRuntimeError("FwdMode inside of a `Tape` or of FwdMode")
        for one in self.loss:
            if not isinstance(one, Storage) or not one.needs_dual:
                raise QuadrantsRuntimeError("Duals of loss are not allocated, please use "
                                            "field(..., needs_dual=True) for all fields that are "
                                            "required by autodiff.")
        for one in self.params:
            if one is not None and (not isinstance(one, Storage) or not one.needs_dual):
                raise QuadrantsRuntimeError("Duals of param are not allocated, please use "
                                            "field(..., needs_dual=True) for all fields that are "
                                            "required by autodiff.")
        storage.flush()
        if self.clear_gradients:
            for field in own_fields():
                clear(field, "dual")
            for one in self.loss:
                one.dual.fill(0)
        self._set_seeds()
        state.forward = self
        return self

    def _set_seeds(self) -> None:
        sizes = [_size(p) for p in self.params if p is not None]
        if not sizes:
            return
        if self.seed is None:
            if sum(sizes) != 1:
                raise QuadrantsRuntimeError("`seed` is not set for non 0-D field, please specify. "
                                            "`seed` is a list to specify which parameters the "
                                            "computed derivatives respect to. The length of the "
                                            f"`seed` should be same to that of the `param`: "
                                            f"{sum(sizes)}.")
            seed = np.ones(1)
        else:
            seed = np.asarray(self.seed, np.float64).reshape(-1)
        if seed.size != sum(sizes):
            raise QuadrantsAssertionError(f"`seed` has {seed.size} numbers, and `param` "
                                          f"{sum(sizes)} elements")
        start = 0
        for param, size in zip((p for p in self.params if p is not None), sizes):
            part = seed[start:start + size].reshape((*param.shape, *param.element_shape))
            param.dual.from_numpy(part)
            start += size

    def claimed(self, field: Any) -> None:
        """A field is used that another thread had used last."""
        if self.clear_gradients:
            clear(field, "dual")

    def insert(self, function: Any, args: Any = ()) -> None:
        """Notes a call."""
        self.calls.append((function, args))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if state.forward is self:
            state.forward = None
        self.left = True
        storage.flush()
        if self.clear_gradients:
            for one in self.params:
                if one is not None and one not in self.loss:
                    one.dual.fill(0)


def _size(array: Any) -> int:
    count = 1
    for extent in (*array.shape, *array.element_shape):
        count *= extent
    return count
