"""`for` in its forms."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.analysis.effects import Effects
from costate.lang.analysis.scan import has_jump
from costate.lang.base.dtypes import i32, i64, u1, u64
from costate.lang.data.ranges import Grouped, NDRange, RangeOf, Static, static
from costate.lang.data.snode import SNode
from costate.lang.data.component import Component
from costate.lang.data.storage import Storage
from costate.lang.data.struct import StructField
from costate.lang.trace.arrays import TracedArray, traced
from costate.lang.trace.early import contains_return
from costate.lang.trace.frame import Bound
from costate.lang.trace.sparse import guard_of, nodes_changed
from costate.lang.trace.statements import Statements
from costate.lang.trace.variables import share
from costate.lang.values import arith
from costate.lang.values.builder import require
from costate.lang.values.describe import describe
from costate.lang.values.expr import Expr, dtype_of, index_handle, index_value, is_number
from costate.lang.values.matrix import Matrix
from costate.lang.values.random import Stream

if TYPE_CHECKING:
    from costate.lang.base.dtypes import DataType
    from costate.lang.trace.places import Variable
    from costate.lang.trace.sparse import Guard

Op = _core.Op


class Loops(Statements):
    """Parallel ranges at the outermost level of a kernel, serial loops, and unrolled ones."""

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            raise QuadrantsSyntaxError("'else' clause for 'for' is not supported in kernels; use a "
                                       "flag")
        iterable = self.iterable(node.iter)
        hint, self.builder.loop_hint = self.builder.loop_hint, {}
        self.at(node)
        checkpoints = hint.get("checkpoints")
        if isinstance(iterable, Static):
            self.without_checkpoints(checkpoints, "an unrolled loop")
            self.unrolled(node, iterable.value)
            return
        grouped = isinstance(iterable, Grouped)
        box = self.box(iterable.value if grouped else iterable)
        leaves = self.frame.early and contains_return(node) or self.builder.branches and has_jump(node.body, ast.Break)
        if self.at_top and not hint.get("serialize") and not leaves:
            self.without_checkpoints(checkpoints, "a parallel loop")
            self.parallel(node, box, grouped, hint.get("block_dim"))
        else:
            if self.builder.dynamic_loop is None:
                self.builder.dynamic_loop = self.builder.loc
            with self.counted(node):
                self.serial(node, box, grouped, checkpoints)

    @property
    def at_top(self) -> bool:
        """Whether loops are parallel here: at the top of a kernel, or of a loop of `graph_do_while` there."""
        b = self.builder
        if b.depth == 0:
            return True
        if b.depth != b.graph_depth or b.has_serial_graphs:
            return False
        b.has_graph_ranges = True
        return True

    def without_checkpoints(self, checkpoints: Any, what: str) -> None:
        if checkpoints:
            raise QuadrantsSyntaxError(f"{what} has no checkpoints: those are states of a loop that runs in order; put "
                                       "`ti.loop_config(checkpoints=...)` in front of such a loop")

    def keep_checkpoints(self, checkpoints: Any) -> None:
        """Tells the loop just begun."""
        if checkpoints:
            self.builder.trace.keep_checkpoints(checkpoints, self.builder.loc)

    def iterable(self, node: ast.expr) -> Any:
        """What is iterated; of `a if static(c) else b` the one that is chosen."""
        if isinstance(node, ast.IfExp):
            test = self.value(node.test)
            if isinstance(test, Expr):
                raise QuadrantsSyntaxError("what a loop runs over is chosen while the kernel is "
                                           "compiled: the condition is `ti.static(...)`")
            return self.iterable(node.body if test else node.orelse)
        if isinstance(node, ast.Call) and self.place(node.func) is static:
            return Static(self.value(node))
        return self.place(node)

    def box(self, iterable: Any) -> Box:
        """The ranges of a loop, as a Box."""
        if isinstance(iterable, range):
            return Box([(iterable.start, iterable.stop, iterable.step)], scalar=True)
        if isinstance(iterable, RangeOf):
            return Box([(iterable.lo, iterable.hi, iterable.step)], scalar=True)
        if isinstance(iterable, NDRange):
            return Box([(lo, hi, 1) for lo, hi in iterable.bounds], scalar=False,
                       dimensions=iterable.dimensions)
        if isinstance(iterable, StructField):
            iterable = iterable.first()
        if isinstance(iterable, Component):
            iterable = iterable.field
        if isinstance(iterable, (Storage, SNode)):
            lows = getattr(iterable, "offset", None) or (0,) * len(iterable.shape)
            return Box([(lo, lo + n, 1) for lo, n in zip(lows, iterable.shape)], scalar=False,
                       guard=guard_of(iterable))
        if isinstance(iterable, TracedArray):
            if iterable.offset or iterable.blocks is not None or getattr(iterable.host, "_sparse_node", None) is not None:
                return self.box(iterable.host)
            return Box([(0, iterable.extent(k), 1) for k in range(iterable.ndim)], scalar=False)
        if isinstance(iterable, (Matrix, list, tuple, zip, enumerate, dict)):
            raise QuadrantsTypeError(f"a loop over {describe(iterable)}: unroll it with `for x "
                                     "in ti.static(...)`, or loop over `range(n)`")
        raise QuadrantsTypeError(f"{describe(iterable)} is not iterable in a kernel; loop over "
                                 "`range`, `ti.ndrange`, `ti.grouped`, a field or an ndarray")

    @contextmanager
    def counted(self, node: ast.stmt) -> Iterator[None]:
        """Counts the iterations of a loop that carries values, if `ad_stack_size` limits them."""
        cap = self.builder.cap
        if cap:
            cap.enter(self.carries(node))
        yield
        if cap:
            cap.leave()

    def carries(self, node: Any) -> bool:
        """Whether a loop changes local variables from outside."""
        names = set().union(*(self.frame.changes(s) for s in node.body))
        found = map(self.frame.find, names)
        return any(_is_local(one.value if isinstance(one, Bound) else one) for one in found)

    def body(self, node: ast.For) -> None:
        """The statements of a loop; `stop_grad` in them ends with them."""
        cap = self.builder.cap
        if cap and self.frame.loops[-1] == "loop":
            cap.iteration()
        stopped = len(self.builder.stopped)
        self.block(node.body)
        del self.builder.stopped[stopped:]

    # -- unrolled ------------------------------------------------------------------

    def unrolled(self, node: ast.For, iterable: Any) -> None:
        if isinstance(iterable, RangeOf) or isinstance(iterable, Expr):
            raise QuadrantsTypeError("the range of `ti.static` has bounds that exist only when the "
                                     "kernel runs; leave `ti.static` out")
        if isinstance(iterable, NDRange):
            iterable = iterable.python()
        elif isinstance(iterable, Grouped):
            iterable = (Matrix(list(i)) for i in iterable.value.python())
        iterable = self.items(iterable)
        frame = self.frame
        frame.loops.append("static")
        frame.unrolled.append(self.builder.depth)
        for item in iterable:
            with frame:
                self.bind_static(node.target, item, partial(self.bind_unrolled, node))
                self.body(node)
            jump, frame.jump = frame.jump, None
            if frame.returned or jump == "break":
                break
        frame.unrolled.pop()
        frame.loops.pop()

    def bind_unrolled(self, node: ast.For, name: str, item: Any) -> None:
        changes = is_number(item) and self.frame.changed_in(name, node.body, is_static=True)
        self.frame.bind(name, self.frame.variable(name, item) if changes else Bound(item))

    # -- parallel ------------------------------------------------------------------

    def parallel(self, node: ast.For, box: Box, grouped: bool, block_dim: int | None = None) -> None:
        b = self.builder
        if b.in_range:
            raise QuadrantsSyntaxError("a parallel loop inside of another one")
        loc = b.loc
        if not box.ranges:
            self.serial(node, box, grouped)
            return
        self.prepare(node)
        if box.guard:
            box.guard.begin()
        counts = box.all_counts()
        indices = b.trace.begin_range(counts, loc)
        if block_dim:
            b.trace.set_block_dim(block_dim, loc)
        b.in_range = True
        self.frame.loops.append("range")
        with b.nested(), self.frame:
            outer = self.start_random(indices, counts)
            counters = self.builder.cap and self.builder.cap.counters
            if self.builder.cap:
                self.builder.cap.open()
            with self.at_cell(box, indices) as handles:
                self.bind_indices(node, box.values(handles), box, grouped)
                with self.guarded(box, handles):
                    self.body(node)
        self.frame.loops.pop()
        b.random = outer
        if b.cap:
            b.cap.counters = counters
        b.in_range, b.changed_nodes = False, frozenset()
        b.trace.end()

    def prepare(self, loop: ast.For) -> None:
        """In front of a parallel loop: variables that it changes become arrays, and it is known which sparse nodes change."""
        b = self.builder
        if b.dry or not (self.frame.has_variables or SNode.some_are_sparse):
            return
        effects = self.frame.effects(loop.body)
        b.changed_nodes = nodes_changed(effects)
        for name in sorted(effects.names):
            found = self.frame.find(name)
            share(b, found.value if isinstance(found, Bound) else found)

    @contextmanager
    def guarded(self, box: Box, indices: Any) -> Iterator[None]:
        """The work items at active cells, if the loop is over a sparse field."""
        b = self.builder
        if not box.guard:
            yield
            return
        b.trace.begin_if(box.guard.condition(list(indices)).handle, b.loc)
        with b.nested():
            yield
        b.trace.end()

    @contextmanager
    def at_cell(self, box: Box, indices: list[_core.Value]) -> Iterator[list[Any]]:
        """The indices, from 0, of an iteration; of a loop over rows those of its cell, which lies at a known place."""
        b = self.builder
        if box.guard is None or not box.guard.by_rows:
            yield list(indices)
            return
        outer, b.cell = b.cell, box.guard.cell(indices)
        yield b.cell.handles
        b.cell = outer

    def start_random(self, indices: list[_core.Value], counts: list[_core.Value]) -> Any:
        """Gives the work item random numbers of its own."""
        b = self.builder
        outer = b.random
        if outer is not None:
            assert b.random_key is not None
            b.ranges += 1
            place = indices[0]
            for index, count in zip(indices[1:], counts[1:]):
                place = b.pure(Op.add, i64, b.pure(Op.mul, i64, place, count), index)
            key = b.pure(Op.add, u64, b.random_key, b.constant(u64, b.ranges))
            b.random = Stream(b, key, b.pure(Op.cast, u64, place))
        return outer

    # -- serial --------------------------------------------------------------------

    def serial(self, node: ast.For, box: Box, grouped: bool, checkpoints: Any = None) -> None:
        leaves = has_jump(node.body, ast.Break) or self.frame.early and contains_return(node)
        if box.by_rows or len(box.ranges) > 1 and leaves:
            self.linear(node, box, grouped, checkpoints)
        else:
            if not box.ranges:
                self.without_checkpoints(checkpoints, "a loop of one iteration")
            self.nest(node, box, grouped, [], checkpoints)
        self.left(node)

    def nest(self, node: ast.For, box: Box, grouped: bool, values: list[Any], checkpoints: Any = None) -> None:
        k = len(values)
        if k == len(box.ranges):
            with self.frame:
                self.bind_indices(node, values, box, grouped)
                self.frame.loops.append("loop" if box.ranges else "once")
                with self.guarded(box, box.guard and box.counts(values)):
                    self.body(node)
                self.frame.loops.pop()
            return
        b = self.builder
        lo, hi, step = (index_handle(x) for x in box.ranges[k])
        index = b.trace.begin_for(lo, hi, step, b.loc)
        self.keep_checkpoints(checkpoints)
        with b.nested():
            self.nest(node, box, grouped, [*values, index_value(index, box.dtype(k))])
        b.trace.end()

    def linear(self, node: ast.For, box: Box, grouped: bool, checkpoints: Any) -> None:
        """One loop over all tuples, so that `break` leaves it."""
        b = self.builder
        zero, one = b.constant(i64, 0), b.constant(i64, 1)
        counts = [b.pure(Op.max, i64, count, zero) for count in box.all_counts()]
        total = counts[0]
        for count in counts[1:]:
            total = b.pure(Op.mul, i64, total, count)
        rest = b.trace.begin_for(zero, total, one, b.loc)
        self.keep_checkpoints(checkpoints)
        self.frame.loops.append("loop")
        with b.nested(), self.frame:
            handles: list[Any] = []
            for count in reversed(counts[1:]):
                handles.insert(0, b.pure(Op.rem, i64, rest, count))
                rest = b.pure(Op.div, i64, rest, count)
            handles.insert(0, rest)
            with self.at_cell(box, handles) as cell:
                self.bind_indices(node, box.values(cell), box, grouped)
                with self.guarded(box, cell):
                    self.body(node)
        self.frame.loops.pop()
        b.trace.end()

    # -- whole arrays --------------------------------------------------------------

    def fill(self, array: Any, value: int) -> None:
        """Sets all elements of an array, or of a sparse field those that are active."""
        b, box = self.builder, self.box(array)
        array = traced(b, array) if isinstance(array, Storage) else array
        value = Matrix(value) if isinstance(value, (list, tuple)) else value

        def store(indices: list[_core.Value]) -> None:
            with self.at_cell(box, indices) as handles, self.guarded(box, handles):
                array.at(box.values(handles)).set(value)
        if b.depth or not box.ranges:
            self.each(box.all_counts(), store)
            return
        if box.guard:
            b.changed_nodes = nodes_changed(Effects(objects={id(array): array}))
            box.guard.begin()
        indices = b.trace.begin_range(box.all_counts(), b.loc)
        b.in_range = True
        with b.nested():
            store(indices)
        b.in_range, b.changed_nodes = False, frozenset()
        b.trace.end()

    def each(self, counts: Any, body: Any, *indices: Any) -> None:
        """Serial loops below these counts."""
        b = self.builder
        if len(indices) == len(counts):
            body(list(indices))
            return
        index = b.trace.begin_for(b.constant(i64, 0), counts[len(indices)], b.constant(i64, 1), b.loc)
        with b.nested():
            self.each(counts, body, *indices, index)
        b.trace.end()

    # -- indices -------------------------------------------------------------------

    def bind_indices(self, node: ast.For, values: list[Any], box: Box, grouped: bool) -> None:
        target = node.target
        if box.dimensions is not None:
            values = box.dimensions(values)
        if grouped:
            vector = Matrix.of(values, (len(values),)) if values else Matrix.of([], (0,))
            self.bind_index(node, target, vector)
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            if len(target.elts) == 1 and len(values) == 1 or len(target.elts) == len(values):
                for one, value in zip(target.elts, values):
                    self.bind_index(node, one, value)
                return
            raise QuadrantsSyntaxError(f"{len(target.elts)} loop variables for {len(values)} "
                                       "dimensions")
        if len(values) == 1:
            self.bind_index(node, target, values[0])
        elif not values:
            self.bind_index(node, target, None)
        else:
            raise QuadrantsSyntaxError(f"one loop variable for {len(values)} dimensions; write "
                                       f"`for {', '.join('ijklmnop'[:len(values)])} in ...`, or "
                                       "`for I in ti.grouped(...)`")

    def bind_index(self, node: ast.For, target: ast.expr, value: Any) -> None:
        if not isinstance(target, ast.Name):
            raise QuadrantsSyntaxError("a loop variable is a name")
        if target.id != "_" and self.frame.find(target.id) is not None:
            raise QuadrantsSyntaxError(f"Variable '{target.id}' is already declared in the outer scope and cannot be used "
                                       "as loop variable; give it another name")
        if value is not None and self.frame.changed_in(target.id, node.body):
            self.frame.bind(target.id, self.frame.variable(target.id, value))
        else:
            self.frame.bind(target.id, Bound(value))


def _is_local(value: Variable | None) -> bool:
    """Whether what a name means has parts that are local variables."""
    return getattr(value, "is_local", False) is True


class Box:
    """The ranges (lo, hi, step) of a loop."""

    def __init__(self, ranges: list[Any], scalar: bool, dimensions: Callable[..., Any] | None = None,
                 guard: Guard | None = None) -> None:
        self.ranges = ranges
        self.guard = guard   # of a loop over a sparse field
        self.dimensions = dimensions

    def dtype(self, k: int) -> DataType:
        """The type of the index: that of the bounds, i32 unless they are wider."""
        wide = any(isinstance(x, Expr) and dtype_of(x).bits == 64 for x in self.ranges[k])
        big = any(is_number(x) and not -2**31 <= x < 2**31 for x in self.ranges[k])
        return i64 if wide or big else i32

    def count(self, k: int) -> _core.Value:
        """The handle of the number of work items; none, if it is negative."""
        b = require("a loop")
        lo, hi, step = self.ranges[k]
        if is_number(lo) and is_number(hi) and is_number(step):
            return b.constant(i64, len(range(int(lo), int(hi), int(step))))
        lo_, hi_ = index_handle(lo), index_handle(hi)
        if is_number(lo) and lo == 0 and is_number(step) and step == 1:
            return hi_
        length = b.pure(Op.sub, i64, hi_, lo_)
        if is_number(step) and step == 1:
            return length
        step_, one, zero = index_handle(step), b.constant(i64, 1), b.constant(i64, 0)
        down = b.pure(Op.lt, u1, step_, zero)
        size = b.pure(Op.abs, i64, step_)
        length = b.pure(Op.select, i64, down, b.pure(Op.neg, i64, length), length)
        padded = b.pure(Op.add, i64, length, b.pure(Op.sub, i64, size, one))
        return b.pure(Op.div, i64, padded, size)

    @property
    def by_rows(self) -> bool:
        """Whether the loop is over the rows of blocks and what lies in them."""
        return self.guard is not None and self.guard.by_rows

    def all_counts(self) -> list[_core.Value]:
        """The handles of the numbers of work items."""
        if self.guard is not None and self.guard.by_rows:
            return self.guard.counts()
        return [self.count(k) for k in range(len(self.ranges))]

    def values(self, handles: list[_core.Value]) -> list[Expr]:
        """The loop variables of a work item, whose indices from 0 are remembered."""
        b, values = require("a loop"), [self.value(k, h) for k, h in enumerate(handles)]
        for (low, _, _), value, handle in zip(self.ranges, values, handles):
            if self.by_rows and low:
                b.from_start[id(value.wide), low] = handle
        return values

    def counts(self, values: list[Any]) -> list[_core.Value]:
        """The handles of indices from 0, of the loop variables."""
        return [index_handle(arith.sub(value, lo)) for value, (lo, _, _) in zip(values, self.ranges)]

    def value(self, k: int, index: _core.Value) -> Expr:
        """The loop variable of work item `index`, a handle."""
        b = require("a loop")
        lo, _, step = self.ranges[k]
        if not (is_number(step) and step == 1):
            index = b.pure(Op.mul, i64, index, index_handle(step))
        if not (is_number(lo) and lo == 0):
            index = b.pure(Op.add, i64, index_handle(lo), index)
        return index_value(index, self.dtype(k))
