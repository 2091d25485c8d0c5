"""`Tape(validation=True)`: nothing is written that was read before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate import _core
from costate.lang.base import dtypes, runtime
from costate.lang.trace.arrays import TracedArray
from costate.lang.trace.passed import Fixed

if TYPE_CHECKING:
    from costate.lang.trace.arrays import Element
    from costate.lang.values.builder import Builder

Op = _core.Op


class Checker:
    """Gives each array with a gradient a bit per element: it has been read."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.bits: dict[Any, Any] = {}

    def _bits(self, array: TracedArray) -> Any:
        owner: Any = array.host
        if owner is None or not getattr(owner, "needs_grad", False):
            return None
        if id(array) not in self.bits:
            if getattr(owner, "checkbit", None) is None:
                owner.checkbit = _core.Array(runtime.device(), dtypes.i32.core, owner.core().shape)
            made = TracedArray(dtypes.i32, len(owner.checkbit.shape))
            self.builder.arguments.append(Fixed(owner.checkbit))
            self.bits[id(array)] = made
        return self.bits[id(array)]

    def read(self, element: Element) -> None:
        bits = self._bits(element.array)
        if bits is not None and not self.builder.dry:
            b = self.builder
            b.trace.update(Op.max, bits.handle, dtypes.i32.core, element.located(),
                           b.constant(dtypes.i32, 1), b.loc)

    def written(self, element: Element) -> None:
        bits = self._bits(element.array)
        if bits is not None and not self.builder.dry:
            b = self.builder
            old = b.trace.fetch(Op.max, bits.handle, dtypes.i32.core, element.located(),
                                b.constant(dtypes.i32, 0), b.loc)
            fine = b.pure(Op.eq, dtypes.u1, old, b.constant(dtypes.i32, 0))
            b.trace.check(fine, f"(kernel={b.name}) Breaks the global data access rule. Snode "
                                f"{element.array.host.name or 'of a field'} is overwritten "
                                "unexpectedly.", [], b.loc)
