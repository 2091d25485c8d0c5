"""`init(ad_stack_size=N)`: gradients of loops that take more than N iterations are refused.

Costate needs no such limit; programs that set it are told when it is exceeded, as Quadrants does:
by loops that carry values from one iteration to the next.
Counters of the iterations at each depth of loops run in the primal, and what they have reached at
most is looked at before a gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import QuadrantsAssertionError, QuadrantsCompilationError
from costate.lang.base.callers import in_their_words
from costate.lang.base.dtypes import i32
from costate.lang.trace.arrays import Hidden, TracedArray

if TYPE_CHECKING:
    from costate.lang.values.builder import Builder

Op = _core.Op
DEPTH = 6


class StackCap:
    """The counters of one kernel."""

    def __init__(self, builder: Builder, most: int) -> None:
        self.most = most
        self.builder: Any = builder
        self.traced: Any = TracedArray(i32, 0, (), ())
        self.hidden = Hidden(builder, i32, ())
        self.level = 0
        self.carrying: list[Any] = []   # of the loops around the current statement, whether they carry values
        self.open()

    def open(self) -> None:
        """New counters, in front of serial code or in a range."""
        b = self.builder
        self.counters: Any = [b.trace.declare(i32.core, b.constant(i32, 0), b.loc)
                         for _ in range(DEPTH)]

    def enter(self, carries: bool) -> None:
        self.carrying.append(carries)
        if not carries:
            return
        b = self.builder
        if self.level == 0:
            for counter in self.counters:
                b.trace.assign(counter, b.constant(i32, 0), b.loc)
        self.level += 1

    def iteration(self) -> None:
        if not self.carrying[-1]:
            return
        b = self.builder
        counter = self.counters[min(self.level, DEPTH) - 1]
        more = b.pure(Op.add, i32, b.trace.read(i32.core, counter, b.loc), b.constant(i32, 1))
        b.trace.assign(counter, more, b.loc)

    def leave(self) -> None:
        if not self.carrying.pop():
            return
        b = self.builder
        self.level -= 1
        if self.level == 0:
            for counter in self.counters:
                b.trace.update(Op.max, self.traced.handle, i32.core, [],
                               b.trace.read(i32.core, counter, b.loc), b.loc)

    def closed(self) -> StackCap:
        """What launches need, without the trace."""
        self.builder = self.traced = self.counters = None
        return self

    def clear(self, arrays: dict[Any, Any]) -> None:
        arrays[self.hidden].fill(0)

    def check(self, name: str, arrays: dict[Any, Any]) -> None:
        """Raises if the last launch took too many iterations; `arrays` is {Hidden: array}."""
        iterations = int(arrays[self.hidden].to_numpy())
        if iterations > self.most:
            self.clear(arrays)
            raise QuadrantsAssertionError(
                f"Adstack overflow: a loop of kernel `{name}` that carries values takes {iterations} iterations, more than "
                f"`ad_stack_size={self.most}` allows; leave that option of `init` out, gradients "
                "need no limit")


def refuse_loops(name: str, place: _core.Loc) -> None:
    raise QuadrantsCompilationError(in_their_words(
        f"{place}: kernel `{name}`: Cannot use non static range in Backwards mode with "
        "`ad_stack_experimental_enabled=False`; leave that option of `init` out, or unroll the loop "
        "with `ti.static(range(...))`"))


