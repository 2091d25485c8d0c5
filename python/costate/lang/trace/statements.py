"""Statements of a kernel, but loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from costate.errors import QuadrantsNameError, QuadrantsSyntaxError, QuadrantsTypeError
from costate.lang.analysis.scan import with_assigned_elements
from costate.lang.base import dtypes
from costate.lang.data.storage import Storage
from costate.lang.data.struct import Struct, with_structs
from costate.lang.syntax.located import located
from costate.lang.syntax.source import unsupported
from costate.lang.trace import calls, tiles
from costate.lang.trace.arrays import TracedArray
from costate.lang.trace.early import contains_return
from costate.lang.trace.expressions import BINARY, Expressions, is_value
from costate.lang.trace.frame import Block, Bound, Given
from costate.lang.trace.message import MOST_ASSERTED, Text
from costate.lang.trace.places import Group, LocalArray, Place, Variable, is_shared, note_first
from costate.lang.values import arith, linalg
from costate.lang.values.describe import describe
from costate.lang.values.elementwise import elementwise
from costate.lang.values.expr import Expr, condition_handle, is_number, is_scalar, value_of
from costate.lang.values.matrix import Matrix, unified

ATOMIC = {ast.Add: "add", ast.Sub: "sub", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}


def _indices_of(array: Storage | TracedArray) -> str:
    """As many as it takes, by names that a loop could have."""
    count = array.ndim if isinstance(array, TracedArray) else len(array.shape)
    return ", ".join("ijklmnop"[:count]) or "None"


class Statements(Expressions):
    """`block(statements)` traces statements one after the other."""

    def block(self, statements: list[ast.stmt]) -> None:
        frame = self.frame
        block = Block(statements, 0, len(frame.scopes))
        frame.blocks.append(block)
        for position, statement in enumerate(statements):
            block.position = position
            self.statement(statement)
            if frame.returned or frame.jump:
                break
        frame.blocks.pop()

    def statement(self, node: ast.stmt) -> None:
        self.at(node)
        method = getattr(self, "do_" + type(node).__name__, None)
        try:
            if method is None:
                raise unsupported(node)
            method(node)
        except Exception as error:
            if getattr(error, "located", False):
                raise
            if self.source.is_library:
                vars(error).pop("node", None)
                raise
            raise located(error, self.source, getattr(error, "node", node)) from error

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Inside of control flow of run time, with names of its own."""
        stopped = len(self.builder.stopped)
        with self.builder.nested(), self.frame:
            yield
        del self.builder.stopped[stopped:]

    def inner(self, statements: list[ast.stmt]) -> None:
        """A block inside of control flow of run time."""
        with self.inside():
            self.block(statements)

    # -- assignments ---------------------------------------------------------------

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value, node.value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise QuadrantsSyntaxError("a variable gets a value where it is declared: "
                                       "`a: ti.f32 = 0.0`")
        value = self.value(node.value)
        kind = self.value(node.annotation)
        if dtypes.is_dtype(kind) and is_value(value):
            value = elementwise(lambda v: arith.typed(v, dtypes.cook(kind)), value)
        elif callable(getattr(kind, "cast", None)) and is_value(value):
            value = kind(value)
        elif is_number(kind) or isinstance(kind, str):
            raise QuadrantsTypeError(f"`{ast.unparse(node.annotation)}` is not a type; write `x: ti.f32 = ...`")
        self.assign(node.target, value)

    def assign(self, target: ast.expr, value: Any, given: ast.expr | None = None) -> None:
        """`given` is the expression of the value, if there is one."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value, given)
            return
        self.at(target)
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, self.frame.is_static(given))
            return
        if isinstance(target, ast.Starred):
            raise unsupported(target)
        place = self.target(target)
        place.set(value)

    def target(self, node: ast.expr) -> Any:
        """The place of a subscript or attribute that is assigned."""
        place = self.place(node)
        if isinstance(place, (Place, Struct)):
            return place
        if isinstance(node, ast.Attribute):
            base = self.place(node.value)
            if isinstance(base, Struct):
                return base.place_of(node.attr)
            raise QuadrantsSyntaxError(f"`{ast.unparse(node)}` cannot be assigned in a kernel; only "
                                       "variables and elements of arrays can")
        made = isinstance(node, ast.Subscript) and isinstance(self.place(node.value), (list, tuple, dict))
        raise QuadrantsSyntaxError(f"`{ast.unparse(node)}` cannot be assigned in a kernel" + (
            "; make a `ti.Vector([...])` of the list" if made else ""))

    def unpack(self, targets: list[ast.expr], value: Any, given: ast.expr | None = None) -> None:
        if not isinstance(value, (Matrix, tuple, list)):
            raise QuadrantsTypeError(f"{describe(value)} cannot be unpacked")
        values = list(value)
        if len(values) != len(targets):
            raise QuadrantsTypeError(f"{len(values)} values for {len(targets)} names")
        parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) and len(given.elts) == len(values) else [given] * len(values)
        # What structs hold before the first of them is assigned.
        values = [part if self.frame.is_static(node) else with_structs(part, Struct.get) for part, node in zip(values, parts)]
        for one, part, node in zip(targets, values, parts):
            self.assign(one, part, node)

    def find_to_change(self, name: str) -> Any:
        """The place or binding of a local name that is assigned."""
        found = self.frame.find(name)
        if isinstance(found, Given):
            raise QuadrantsTypeError(f"`{name}` is a template parameter whose argument is a constant, {found.value!r}; call the "
                                     "function with a variable, or assign to another name")
        return found

    def assign_name(self, name: str, value: Any, is_static: bool = False) -> None:
        found = self.find_to_change(name)
        if isinstance(found, Bound) and isinstance(found.value, Struct) and found.value.is_variable:
            found = found.value
        if isinstance(found, (Place, Struct)):
            if isinstance(value, (list, tuple)) and isinstance(found, (Group, LocalArray)):
                value = Matrix(list(value))
            if not is_value(value) and not isinstance(found, Struct):
                raise QuadrantsTypeError(f"{describe(value)} cannot be assigned to `{name}`, "
                                         "which is a variable")
            if isinstance(value, Matrix) and isinstance(found, Variable):
                raise QuadrantsTypeError(f"`{name}` is a number and cannot become a vector")
            found.set(value)
            return
        if isinstance(found, Bound) and (is_static or not (is_value(found.value) and is_value(value))):
            self.rebind(name, value, is_static)
        else:
            self.declare(name, value, is_static)

    def rebind(self, name: str, value: Any, is_static: bool = False) -> None:
        """A name of something that is known while the kernel is compiled, or becomes it."""
        scope = self.frame.scope_of(name)
        if scope is None or scope is self.frame.scopes[-1]:
            self.declare(name, value, is_static)
            return
        if scope.depth != self.builder.depth:
            raise QuadrantsTypeError(f"`{name}` is known while the kernel is compiled, and cannot become something else in "
                                     "a branch or loop of run time; decide by `ti.static(...)`, or use numbers or vectors")
        scopes, self.frame.scopes = self.frame.scopes, self.frame.scopes[:self.frame.scopes.index(scope) + 1]
        self.declare(name, value, is_static)
        self.frame.scopes = scopes

    def declare(self, name: str, value: Any, is_static: bool = False) -> None:
        """A new name in this block; what comes from `ti.static` stays known while the kernel is compiled."""
        if isinstance(value, Struct):
            self.frame.bind(name, value.copied(partial(self.frame.variable, name)))
            return
        if isinstance(value, (tuple, list, dict)) and not is_static:
            value = with_structs(value, lambda one: one.copied(partial(self.frame.variable, name)))
        if isinstance(value, list) and value and all(map(is_scalar, value)) and name in with_assigned_elements(self.source):
            value = Matrix(value)
        if not is_value(value) or is_static and not self.frame.will_change(name, is_static=True):
            self.frame.bind(name, Bound(value))
            return
        if self.frame.will_change(name):
            made = self.frame.variable(name, value)
            note_first(made, name)
            self.frame.bind(name, made)
        elif isinstance(value, Matrix):
            self.frame.bind(name, Bound(self.fixed(value)))
        else:
            self.frame.bind(name, Bound(value_of(value), value if is_number(value) else None))

    def fixed(self, value: Matrix) -> Matrix:
        """A vector whose numbers are values of the kernel of one type."""
        entries = unified(value.entries)
        dtype = dtypes.defaults.fp if any(isinstance(e, float) for e in entries) else value.dtype
        return value.like([value_of(e, dtype) for e in entries])

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            place = self.find_to_change(node.target.id)
            if isinstance(place, Bound) and tiles.is_tile(place.value):
                place = place.value
            elif isinstance(place, Bound) or place is None:
                value = self.value(node.target)
                if isinstance(value, (Storage, TracedArray)):
                    raise QuadrantsTypeError(f"`{node.target.id}` is an array; change its elements: "
                                             f"`{node.target.id}[{_indices_of(value)}]`")
                if place is None:
                    raise QuadrantsNameError(f'Name "{node.target.id}" is not defined in the '
                                             "kernel: it is a constant there; use a field of "
                                             "shape ()")
                self.rebind(node.target.id, self.binary(node.op, value, self.value(node.value)))
                return
        else:
            place = self.target(node.target)
        value = self.value(node.value)
        self.at(node)
        self.augment(place, node.op, value)

    def augment(self, place: Place, op: ast.operator, value: Any) -> None:
        if tiles.is_tile(place):
            tiles.subtract(place, op, value)
            return
        if isinstance(place, Struct):
            raise QuadrantsTypeError("a struct is changed by its members")
        if isinstance(value, (list, tuple)):
            value = Matrix(list(value))
        first = place.places[0] if isinstance(place, Group) else place
        atomic = is_shared(first)
        if atomic and type(op) in ATOMIC:
            place.update(ATOMIC[type(op)], value)
        elif isinstance(op, ast.MatMult):
            place.set(place.get() @ value)
        else:
            place.set(elementwise(BINARY[type(op)], place.get(), value))

    # -- control flow --------------------------------------------------------------

    def do_Expr(self, node: ast.Expr) -> None:
        if getattr(node.value, "value", None) is not Ellipsis:
            self.place(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_If(self, node: ast.If) -> None:
        """An `elif` is an `if` in the `else` before it; there may be more of them than calls can be nested."""
        depth = self.builder.depth
        with ExitStack() as branches:
            current: ast.If | None = node
            while current is not None:
                current = self.branch(current, branches)
            opened = self.builder.depth - depth
        for _ in range(opened):
            self.builder.trace.end()

    def branch(self, node: ast.If, branches: ExitStack) -> ast.If | None:
        """Traces an `if` up to an `elif`, which it returns."""
        test = self.value(node.test)
        if isinstance(test, Matrix):
            raise located(QuadrantsTypeError("a condition is a vector or matrix; use `.any()` or `.all()`"), self.source, node)
        if isinstance(test, Expr):
            self.taken(node, test)
            if not node.orelse:
                return None
            self.at(node)
            self.builder.trace.begin_else(self.builder.loc)
            branches.enter_context(self.inside())
        elif test:
            self.chosen(node.body)
            return None
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            self.frame.blocks.append(Block(node.orelse, 0, len(self.frame.scopes)))
            branches.callback(self.frame.blocks.pop)
            self.at(node.orelse[0])
            return node.orelse[0]
        self.chosen(node.orelse)
        return None

    def chosen(self, statements: list[ast.stmt]) -> None:
        """The side of an `if` that remains."""
        self.builder.branches += 1
        self.block(statements)
        self.builder.branches -= 1

    def taken(self, node: ast.If, test: Expr) -> None:
        """What an `if` of run time does if it is true."""
        b = self.builder
        self.at(node.test)
        b.trace.begin_if(condition_handle(test), b.loc)
        self.inner(node.body)
        b.trace.end()

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise QuadrantsSyntaxError("'else' clause for 'while' is not supported in kernels; use "
                                       "a flag")
        with self.counted(node):
            self.while_loop(node)

    def while_loop(self, node: ast.While) -> None:
        b = self.builder
        checkpoints = b.loop_hint.pop("checkpoints", None)
        test = ast.copy_location(ast.Constant(True), node.test) if self.acts(node.test) else node.test
        with linalg.condition_of_loop(lambda: self.value(test)):
            b.trace.begin_while(b.loc)
            with b.nested():
                condition = self.condition(test)
        self.at(node)
        b.trace.begin_while_body(condition, b.loc)
        self.keep_checkpoints(checkpoints)
        self.frame.loops.append("loop")
        if b.cap:
            b.cap.iteration()
        if test is not node.test:
            self.leave_unless(node.test)
        b.graph_depth += getattr(node, "is_graph", False)
        self.inner(node.body)
        b.graph_depth -= getattr(node, "is_graph", False)
        self.frame.loops.pop()
        b.trace.end()
        self.left(node)

    def acts(self, test: ast.expr) -> bool:
        """Whether a condition does more than to compute, which it has to do in the body."""
        if not any(isinstance(n, ast.Call) for n in ast.walk(test)):
            return False
        with self.builder.dry_run() as dry:
            self.value(test)
        return dry.acts

    def condition(self, test: ast.expr) -> Any:
        value = self.value(test)
        if not is_scalar(value):
            raise QuadrantsTypeError(f"the condition of a `while` is {describe(value)}")
        return condition_handle(value)

    def leave_unless(self, test: ast.expr) -> None:
        """Leaves the loop whose body begins here."""
        b = self.builder
        with b.nested():
            condition = self.condition(ast.copy_location(ast.UnaryOp(ast.Not(), test), test))
            self.at(test)
            b.trace.begin_if(condition, b.loc)
            b.trace.jump_break(b.loc)
            b.trace.end()

    def left(self, loop: ast.stmt) -> None:
        """After a loop in which the function may have returned."""
        if self.frame.early and contains_return(loop):
            self.frame.early.after_loop()

    def do_Break(self, node: ast.Break) -> None:
        if self.jumps_now("break"):
            return
        if self.frame.loops[-1] == "range":
            raise QuadrantsSyntaxError("Cannot break in the outermost loop: its work items run in "
                                       "parallel; use `ti.loop_config(serialize=True)` in front of "
                                       "it")
        self.builder.trace.jump_break(self.builder.loc)

    def do_Continue(self, node: ast.Continue) -> None:
        if self.jumps_now("continue"):
            return
        if self.frame.loops[-1] == "range":
            self.builder.trace.jump_return(self.builder.loc)
        else:
            self.builder.trace.jump_continue(self.builder.loc)

    def jumps_now(self, what: str) -> bool:
        """Whether the jump is one of an unrolled loop."""
        frame = self.frame
        if not frame.loops:
            raise QuadrantsSyntaxError(f"`{what}` outside of a loop")
        if frame.loops[-1] == "once":
            raise QuadrantsSyntaxError(f"`{what}` in a loop over a field of shape (), which has one iteration; use a condition")
        if frame.loops[-1] != "static":
            return False
        if self.builder.depth != frame.unrolled[-1]:
            raise QuadrantsSyntaxError(f"You are trying to `{what}` a static `for` loop, but the `{what}` statement is in a "
                                       "non-static `if`: the loop is unrolled before the condition is known; use a plain `for`")
        frame.jump = what
        return True

    def do_Return(self, node: ast.Return) -> None:
        frame, b = self.frame, self.builder
        if b.depth != frame.depth:
            self.return_early(node)
            return
        value = self.result_of(node)
        if frame.early:
            frame.early.leave(value)
        elif frame.kernel is None:
            frame.result = value
        elif value is not None:
            frame.kernel.returns.store(b, value)
        frame.returned = True

    def return_early(self, node: ast.Return) -> None:
        """A `return` inside of a branch or loop of run time."""
        frame, b = self.frame, self.builder
        if "range" in frame.loops and (node.value is not None or not frame.kernel):
            raise QuadrantsSyntaxError(
                "Return inside non-static if/for is not supported in a parallel loop; assign the result to "
                "a variable or element and return that at the end, or use "
                "`ti.loop_config(serialize=True)` in front of the loop")
        if frame.early:
            frame.early.is_needed = True
            frame.early.leave(self.result_of(node))
            return
        if node.value is not None:
            frame.kernel.returns.store(b, self.result_of(node))
        b.trace.jump_return(b.loc)

    def result_of(self, node: ast.Return) -> Any:
        value = None if node.value is None else self.value(node.value)
        if value is None and self.frame.kernel is not None and self.frame.kernel.returns.is_declared:
            raise QuadrantsSyntaxError("a `return` without a value in a kernel whose type says that it returns one")
        if isinstance(value, list):
            value = Matrix(value)
        self.at(node)
        return value if self.frame.kernel is not None else calls.returned(self.frame, value)

    def do_Assert(self, node: ast.Assert) -> None:
        b = self.builder
        test = self.value(node.test)
        text = Text()
        if node.msg is not None:
            message = self.value(node.msg)
            text.add(message)
        else:
            text.add_text(ast.unparse(node.test))
        if not b.debug:
            return
        self.at(node)
        if isinstance(test, Matrix):
            test = test.all()
        if is_number(test) and test:
            return
        if not is_scalar(test):
            if test:
                return
            test = False
        pattern, values = next(text.patterns(MOST_ASSERTED))
        b.trace.check(condition_handle(test), pattern, values, b.loc)
