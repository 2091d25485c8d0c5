"""`A[i, j] += v` of a sparse matrix that a kernel builds."""

from __future__ import annotations

from typing import Any

from costate.errors import QuadrantsIndexError, QuadrantsSyntaxError
from costate.lang.trace.arrays import Element, TracedArray, flat_indices
from costate.lang.trace.places import Place, Variable
from costate.lang.values import arith, ops
from costate.lang.values.builder import require
from costate.lang.values.expr import condition_handle


class TracedTriplets:
    """A builder in a kernel: arrays of one number (how many there are), rows, columns and values."""

    def __init__(self, arrays: list[TracedArray], most: int) -> None:
        self.arrays, self.most = arrays, most

    def at(self, index: Any) -> Entry:
        index = flat_indices(index)
        if len(index) != 2:
            raise QuadrantsIndexError(f"a sparse matrix has two indices, not {len(index)}")
        return Entry(self, index)


class Entry(Place):
    """An entry of it, to which is added."""

    is_element = True

    def __init__(self, triplets: TracedTriplets, index: list[Any]) -> None:
        self.triplets, self.index = triplets, index
        self.dtype = triplets.arrays[3].dtype

    def _refuse(self) -> None:
        raise QuadrantsSyntaxError("an entry of a sparse matrix that is built is not read or replaced in the kernel: "
                                   "`A[i, j] += v` and `A[i, j] -= v` add to it")

    def get(self) -> Any:
        self._refuse()

    def set(self, value: Any) -> None:
        self._refuse()

    def update(self, op: str, value: Any) -> None:
        if op not in ("add", "sub"):
            self._refuse()
        Element.check_operand(value)
        b, arrays = require("a triplet"), self.triplets.arrays
        at = Variable(arrays[0].at([0]).fetch("add", 1))
        b.trace.begin_if(condition_handle(arith.lt(at.get(), self.triplets.most)), b.loc)
        with b.nested():
            for array, one in zip(arrays[1:], (*self.index, arith.neg(value) if op == "sub" else value)):
                array.at([at.get()]).set(ops.cast(one, array.dtype))
        b.trace.end()

    fetch = update
