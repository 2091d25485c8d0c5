"""Expressions of a kernel: to Python objects, values of the kernel, or places."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from costate import _core
from costate.errors import (CompilationError, QuadrantsIndexError, QuadrantsNameError, QuadrantsSyntaxError,
                            QuadrantsTypeError)
from costate.lang.analysis.scan import has_call, is_evaluated_once, is_simple, may_be_integer
from costate.lang.base import dtypes
from costate.lang.base.dtypes import u1
from costate.lang.data.ranges import RangeOf
from costate.lang.data.component import Component
from costate.lang.data.storage import Storage
from costate.lang.data.struct import Struct, StructField
from costate.lang.syntax.source import unsupported
from costate.lang.trace import calls, tiles
from costate.lang.trace.arrays import TracedArray, companion, has_traced, lifted, traced
from costate.lang.trace.frame import Bound
from costate.lang.trace.message import Text, formatted_by_percent
from costate.lang.trace.groups import SharedArray
from costate.lang.trace.places import Group, LocalArray, Place, Variable
from costate.lang.trace.structs import element as struct_element
from costate.lang.trace.triplets import TracedTriplets
from costate.lang.trace.variables import Like, variable_for
from costate.lang.trace.walker import Walker
from costate.lang.values import arith, ops
from costate.lang.values.describe import describe
from costate.lang.values.elementwise import elementwise
from costate.lang.values.expr import Expr, are_integers, condition_handle, dtype_of, handle_of, is_number, is_scalar
from costate.lang.values.matrix import Matrix

Op = _core.Op

BINARY = {
    ast.Add: arith.add, ast.Sub: arith.sub, ast.Mult: arith.mul, ast.Div: arith.truediv,
    ast.FloorDiv: arith.floordiv, ast.Mod: arith.mod, ast.Pow: arith.power,
    ast.BitAnd: arith.bit_and, ast.BitOr: arith.bit_or, ast.BitXor: arith.bit_xor,
    ast.LShift: arith.shl, ast.RShift: arith.shr,
}
UNARY = {ast.UAdd: arith.pos, ast.USub: arith.neg, ast.Not: arith.logical_not,
         ast.Invert: arith.invert}
COMPARE = {ast.Lt: arith.lt, ast.LtE: arith.le, ast.Gt: arith.gt, ast.GtE: arith.ge,
           ast.Eq: arith.eq, ast.NotEq: arith.ne}


def is_value(x: Any) -> bool:
    """Whether x takes part in arithmetic of the kernel."""
    return is_scalar(x) or isinstance(x, Matrix)


def _is_about(error: Any, node: ast.expr) -> None:
    """Notes the node of an error, unless it is about one in it."""
    if not hasattr(error, "node"):
        try:
            setattr(error, "node", node)
        except AttributeError:
            pass


class Held(ast.expr):
    """An expression that has been evaluated."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held


class Expressions(Walker):
    """Methods `on_Name(node)` give places or values; `value(node)` reads places."""

    def place(self, node: Any) -> Any:
        method = getattr(self, "on_" + type(node).__name__, None)
        try:
            if method is None:
                raise unsupported(node)
            self.at(node)
            return method(node)
        except Exception as error:
            _is_about(error, node)
            raise

    def value(self, node: Any) -> Any:
        result = self.unused(node)
        self.builder.watch.used(result)
        return result

    def unused(self, node: Any) -> Any:
        """A value of which not more than type and shape are asked."""
        result = self.place(node)
        return result.get() if isinstance(result, Place) else result

    def on_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, complex) or node.value is Ellipsis:
            raise QuadrantsTypeError(f"{node.value!r} is not a number of kernels")
        return node.value

    def on_Name(self, node: ast.Name) -> Any:
        found = self.frame.find(node.id)
        if found is None:
            return self.outside(node)
        if not isinstance(found, Bound):
            return found
        return found.value if found.number is None or not self.frame.in_static else found.number

    def outside(self, node: ast.Name) -> Any:
        found = self.frame.outer(node.id)
        if isinstance(found, Expr):
            raise QuadrantsNameError(f'"{node.id}" is a value of another kernel')
        return found.traced() if isinstance(found, Matrix) else found

    def on_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.elements(node.elts))

    def on_List(self, node: ast.List) -> Any:
        return self.made(list(self.elements(node.elts)))

    def made(self, container: Any) -> Any:
        """Remembers where a list or dictionary was made: what changes it is done when the kernel is compiled."""
        self.builder.made[id(container)] = container, self.builder.depth
        return container

    def elements(self, nodes: list[Any]) -> list[Any]:
        result: list[Any] = []
        for n in nodes:
            result += self.spread(n) if isinstance(n, ast.Starred) else [self.value(n)]
        return result

    def spread(self, node: ast.Starred) -> list[Any]:
        """The values that `*x` stands for."""
        value = self.value(node.value)
        if isinstance(value, (Expr, str, Storage, TracedArray)) or not hasattr(value, "__iter__"):
            raise QuadrantsTypeError(f"`{ast.unparse(node)}`: {describe(value)} is not a list, tuple or vector")
        return list(value)

    def on_Dict(self, node: ast.Dict) -> Any:
        result: dict[Any, Any] = {}
        for k, v in zip(node.keys, node.values):
            result.update(self.mapping(v) if k is None else {self.key(k): self.value(v)})
        return self.made(result)

    def key(self, node: ast.expr) -> Any:
        key = self.value(node)
        if has_traced(key):
            raise QuadrantsTypeError(f"`{ast.unparse(node)}` is a value that exists only when the kernel runs, and cannot be "
                                     "the key of a dictionary; use a vector or a field, and its indices")
        return key

    def mapping(self, node: Any) -> dict[Any, Any]:
        """The dictionary that `**x` stands for."""
        value = self.value(node)
        if not isinstance(value, dict):
            raise QuadrantsTypeError(f"`**{ast.unparse(node)}`: {describe(value)} is not a dictionary")
        return value

    def on_BinOp(self, node: ast.BinOp) -> Any:
        chain = [node]  # of `a + b + c + ...`, which may be as long as the user likes
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        result = self.value(chain[-1].left)
        for one in reversed(chain):
            right = self.value(one.right)
            self.at(one)
            try:
                result = self.binary(one.op, result, right)
            except Exception as error:
                _is_about(error, one)
                raise
        return result

    def binary(self, op: ast.operator, a: Any, b: Any) -> Any:
        if isinstance(op, ast.MatMult):
            for x in (a, b):
                if not isinstance(x, Matrix):
                    raise QuadrantsTypeError(f"`@` is of matrices and vectors, not of "
                                             f"{describe(x)}")
            return a @ b
        if is_value(a) and is_value(b):
            return elementwise(BINARY[type(op)], a, b)
        if isinstance(op, ast.Mod) and isinstance(a, str) and has_traced(b):
            return formatted_by_percent(a, b)
        if isinstance(a, Matrix) or isinstance(b, Matrix) or isinstance(a, Expr) or isinstance(
                b, Expr):
            return elementwise(BINARY[type(op)], a, b)
        if isinstance(a, Storage) or isinstance(b, Storage):
            bad = a if isinstance(a, Storage) else b
            raise QuadrantsTypeError(f"unsupported operand: {bad.describe()}; its elements are "
                                     "`x[i]`, of a field of shape () `x[None]`")
        names = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv",
                 ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and_",
                 ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift"}
        return getattr(operator, names[type(op)])(a, b)

    def on_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        self.at(node)
        if not is_value(operand):
            if isinstance(node.op, ast.Not):
                return not operand
            raise QuadrantsTypeError(f"{describe(operand)} has no sign")
        return elementwise(UNARY[type(node.op)], operand)

    def on_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result = None
        for k, (op, right_node) in enumerate(zip(node.ops, node.comparators)):
            if k and has_call(right_node):
                rest = ast.Compare(Held(left), node.ops[k:], node.comparators[k:])
                return self.short_circuit(True, result, ast.fix_missing_locations(ast.copy_location(rest, node)))
            right = self.value(right_node)
            self.at(node)
            one = self.compare(op, left, right)
            result = one if result is None else ops.logical_and(result, one)
            left = right
        return result

    def on_Held(self, node: Held) -> Any:
        return node.held

    def compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            if a is not None and b is not None and (has_traced(a) or has_traced(b)):
                raise QuadrantsSyntaxError("`is` compares objects of Python, and not values of a kernel; use `==`")
            return (a is b) == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self.is_in(a, b) if has_traced(a) or has_traced(b) else a in b
            return found if isinstance(op, ast.In) else ops.logical_not(found) if is_value(found) else not found
        if is_value(a) and is_value(b):
            return elementwise(COMPARE[type(op)], a, b)
        if has_traced(a) or has_traced(b):
            if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
                return elementwise(COMPARE[type(op)], a, b)
            raise QuadrantsTypeError(f"{describe(a)} and {describe(b)} do not compare")
        name = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
                ast.NotEq: "ne"}[type(op)]
        return getattr(operator, name)(a, b)

    def is_in(self, one: Expr, several: Any) -> Any:
        if not is_value(one) or isinstance(one, Matrix) or not isinstance(several, (list, tuple)) or not all(
                is_value(e) and not isinstance(e, Matrix) for e in several):
            raise QuadrantsSyntaxError("`in` of a value of the kernel is for a list or tuple of numbers; compare with "
                                       "`==` and `or` instead")
        found = False
        for each in several:
            found = ops.logical_or(found, elementwise(COMPARE[ast.Eq], one, each))
        return found

    def on_BoolOp(self, node: ast.BoolOp) -> Any:
        conjunction = isinstance(node.op, ast.And)
        result = self.value(node.values[0])
        for operand in node.values[1:]:
            result = self.short_circuit(conjunction, result, operand)
            self.at(node)
        return result

    def short_circuit(self, conjunction: bool, left: Any, node: ast.expr) -> Any:
        if not is_value(left):
            return (left and self.value(node)) if conjunction else (left or self.value(node))
        if is_number(left):
            return self.value(node) if bool(left) == conjunction else left
        if isinstance(left, Matrix) or is_simple(node):
            right = self.value(node)
            if are_integers(left, right):
                return ops.select(left, *((right, left) if conjunction else (left, right)))
            return (ops.logical_and if conjunction else ops.logical_or)(left, right)
        if self.builder.dry or left.dtype is not u1 or may_be_integer(node):
            right = self.tried(node)
            if are_integers(left, right):
                return self.integer_of(conjunction, left, node, self.common(left, right))
        variable = Variable(Expr(handle_of(left, u1), u1), u1)
        b = self.builder
        if b.dry:
            return variable.get()
        skip = variable.get() if conjunction else arith.logical_not(variable.get())
        b.trace.begin_if(skip.handle, b.loc)
        with b.nested():
            variable.set(Expr(condition_handle(self.value(node)), u1))
        b.trace.end()
        return variable.get()

    def tried(self, node: ast.expr) -> Any:
        """The value without statements; in a dry run what is around notes what it uses."""
        if self.builder.dry:
            return self.value(node)
        with self.builder.dry_run():
            return self.value(node)

    def integer_of(self, conjunction: Any, left: Any, node: Any, like: Any) -> Any:
        """`and` and `or` of integers give one of them, as in Python."""
        variable = self.zero_variable(like)
        b = self.builder
        if b.dry:
            return variable.get()
        variable.set(left)
        condition = condition_handle(left if conjunction else ops.logical_not(left))
        b.trace.begin_if(condition, b.loc)
        with b.nested():
            variable.set(self.value(node))
        b.trace.end()
        return variable.get()

    def on_NamedExpr(self, node: ast.NamedExpr) -> Any:
        if not is_evaluated_once(self.frame.blocks[-1].current, node):
            raise unsupported(node)
        name, value = node.target.id, self.value(node.value)
        if is_value(value) and not isinstance(self.frame.find(name), Place):
            self.frame.bind(name, self.frame.variable(name, value))   # the statement itself may change it
        else:
            self.assign_name(name, value)
        return self.value(node.target)

    def on_IfExp(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        if not isinstance(test, (Expr, Matrix)) or isinstance(test, Matrix) and not has_traced(test):
            return self.place(node.body if test else node.orelse)
        if isinstance(test, Matrix) or is_simple(node.body) and is_simple(node.orelse):
            a, c = self.value(node.body), self.value(node.orelse)
            self.at(node)
            return ops.select(test, a, c)
        with self.builder.dry_run():
            a, c = self.value(node.body), self.value(node.orelse)
            like = self.common(a, c)
        variable = self.zero_variable(like)
        b = self.builder
        if b.dry:   # the arms would be traced twice for each ternary around this one
            return variable.get()
        b.trace.begin_if(condition_handle(test), b.loc)
        with b.nested():
            variable.set(self.value(node.body))
        b.trace.end()
        b.trace.begin_else(b.loc)
        with b.nested():
            variable.set(self.value(node.orelse))
        b.trace.end()
        return variable.get()

    def common(self, a: Any, c: Any) -> Like:
        """What fits both arms of a ternary."""
        for x in (a, c):
            if not is_value(x):
                raise QuadrantsTypeError(f"{describe(x)} in `a if c else b` with a condition of "
                                         "the kernel: both arms are numbers, vectors or matrices")
        shapes = {x.shape for x in (a, c) if isinstance(x, Matrix)}
        if len(shapes) > 1:
            raise QuadrantsTypeError("the arms of `a if c else b` have different shapes")
        ta, tc = (x.dtype if isinstance(x, Matrix) else dtype_of(x) for x in (a, c))
        return Like(ta if ta is tc else dtypes.promote(ta, tc), shapes.pop() if shapes else None)

    def zero_variable(self, like: Like) -> Place:
        dtype, shape = like.dtype, like.shape
        if shape is None:
            return Variable(0, dtype)
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        return variable_for(Matrix.of([arith.cast(0, dtype)] * count, shape))

    def on_Subscript(self, node: ast.Subscript) -> Any:
        base = self.place(node.value)
        index = self.index(node.slice)
        self.at(node)
        if isinstance(base, Storage):
            base = self.traced(base, node.value)
        return self.subscript(base, index)

    def index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            parts = [self.spread(e) if isinstance(e, ast.Starred) else [self.index(e)] for e in node.elts]
            return tuple(one for part in parts for one in part)
        if isinstance(node, ast.Slice):
            with self.frame.static_arguments(True):
                return slice(*(None if n is None else self.value(n)
                               for n in (node.lower, node.upper, node.step)))
        return self.value(node)

    def subscript(self, base: Any, index: Any) -> Any:
        if isinstance(base, (TracedArray, TracedTriplets, SharedArray)):
            return tiles.part_of(base, index) or base.at(index)
        if tiles.is_tile(base):
            return tiles.whole(base, index)
        if isinstance(base, StructField):
            return struct_element(self.builder, base, index)
        if isinstance(base, Component):
            return self.subscript(traced(self.builder, base.field).at(index), base.index)
        if isinstance(base, (Group, LocalArray)):
            return base.part(index)
        if isinstance(base, Matrix):
            return base[index]
        if isinstance(base, Place):
            raise QuadrantsTypeError(f"a number of type {base.dtype} has no elements")
        if isinstance(base, Expr):
            raise QuadrantsTypeError(f"a number of type {base.dtype} has no elements")
        if has_traced(index):
            if isinstance(base, (list, tuple)) and all(is_scalar(e) for e in base):
                return Matrix(list(base))[index]
            raise QuadrantsIndexError(f"{describe(base)} is indexed while the kernel is "
                                      "compiled; the index is a value of the kernel")
        value = base[index]
        self.builder.watch.item(base, index, value)
        return value.traced() if isinstance(value, Matrix) else value

    def traced(self, storage: Any, node: ast.expr) -> TracedArray:
        """The argument of the kernel for an array that it finds by name."""
        return traced(self.builder, storage, ast.unparse(node))

    def on_Attribute(self, node: ast.Attribute) -> Any:
        base = self.place(node.value)
        self.at(node)
        return self.attribute(base, node.attr)

    def attribute(self, base: Any, name: str) -> Any:
        if isinstance(base, (Group, LocalArray)):
            part = base.attribute(name)
            if part is not None:
                return part
            if name == "fill":
                return base.set
            return getattr(base.get(), name)
        if isinstance(base, TracedArray) and name in ("grad", "dual"):
            return companion(self.builder, base, name)
        if isinstance(base, (TracedArray, Storage)) and name == "fill":
            return partial(self.fill, base)
        if isinstance(base, StructField) and name == "fill":
            return lambda value: [self.attribute(one, "fill")(value) for one in base.members.values()]
        if isinstance(base, Struct):
            return base.member(name)
        if isinstance(base, Place):
            base = base.get()
        if isinstance(base, Expr):
            if name in ("cast", "dtype"):
                return (lambda t: ops.cast(base, t)) if name == "cast" else base.dtype
            raise QuadrantsTypeError(f"a number has no attribute `{name}`")
        number = lifted(self.builder, base, name)
        if number is not None:
            return number
        try:
            value = getattr(base, name)
            self.builder.watch.attribute(base, name, value)
            return value.traced() if isinstance(value, Matrix) else value
        except AttributeError as error:
            text = f"{describe(base)} has no attribute `{name}`"
            raise CompilationError(str(error) if isinstance(base, ModuleType) else text) from error

    def on_Call(self, node: ast.Call) -> Any:
        return calls.call(self, node)

    def on_JoinedStr(self, node: ast.JoinedStr) -> Any:
        text = Text()
        for part in node.values:
            if isinstance(part, ast.Constant):
                text.add_text(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                form = self.value(part.format_spec) if part.format_spec is not None else None
                text.add(self.value(part), form)
        return text.simplified()

    def on_FormattedValue(self, node: ast.FormattedValue) -> Any:
        value = self.value(node.value)
        convert: Any = {"r": repr, "s": str, "a": ascii}.get(chr(max(node.conversion, 0)))
        return convert(value) if convert and not has_traced(value) else value

    def on_ListComp(self, node: ast.ListComp) -> Any:
        result = []
        with self.frame:
            self.comprehend(node.generators, lambda: result.append(self.value(node.elt)))
        return self.made(result)

    def on_DictComp(self, node: ast.DictComp) -> Any:
        result = {}
        with self.frame:
            self.comprehend(node.generators, lambda: result.update(
                {self.key(node.key): self.value(node.value)}))
        return self.made(result)

    def comprehend(self, generators: list[Any], action: Callable[..., Any]) -> None:
        if not generators:
            action()
            return
        first = generators[0]
        iterable = self.value(first.iter)
        if has_traced(iterable) and not isinstance(iterable, (list, tuple, Matrix)) or isinstance(
                iterable, RangeOf):
            raise QuadrantsSyntaxError("a comprehension is unrolled while the kernel is compiled: "
                                       "its range is one of numbers, `ti.static(range(3))`")
        for item in self.items(iterable):
            self.bind_static(first.target, item)
            if all(self.static_condition(c) for c in first.ifs):
                self.comprehend(generators[1:], action)

    def static_condition(self, node: ast.Compare) -> Any:
        result = self.value(node)
        if has_traced(result):
            raise QuadrantsSyntaxError("the condition of a comprehension is decided while the "
                                       "kernel is compiled")
        return result

    def items(self, value: Any) -> Any:
        """What a loop that is unrolled runs over."""
        if not isinstance(value, (Storage, TracedArray)):  # whose elements change after the kernel is compiled
            try:
                return iter(value)
            except TypeError:
                pass
        raise QuadrantsTypeError(f"{describe(value)} is not iterable while the kernel is compiled; loop over `range(n)`")

    def bind_static(self, target: ast.expr, item: Any, bind: Callable[..., Any] | None = None) -> None:
        """The names of a loop that is unrolled; `bind(name, item)` binds one."""
        self.at(target)
        if isinstance(target, ast.Name):
            bind(target.id, item) if bind else self.frame.bind(target.id, Bound(item))
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise QuadrantsSyntaxError(f"`{ast.unparse(target)}`: a loop variable is a name")
        items = list(self.items(item))
        if len(items) != len(target.elts):
            raise QuadrantsTypeError(f"{len(items)} values for {len(target.elts)} names")
        for one, part in zip(target.elts, items):
            self.bind_static(one, part, bind)
