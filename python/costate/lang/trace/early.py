"""`return` under a condition: a function with one is a loop of one iteration, which `return` leaves."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costate.errors import QuadrantsSyntaxError
from costate.lang.base import dtypes
from costate.lang.base.dtypes import i64, u1
from costate.lang.data.struct import Struct
from costate.lang.trace.places import Variable
from costate.lang.trace.variables import Like
from costate.lang.values.builder import require
from costate.lang.values.expr import Expr, condition_handle

if TYPE_CHECKING:
    from costate.lang.trace.visitor import Visitor
    from costate.lang.values.builder import Builder


def returns_early(node: ast.FunctionDef) -> bool:
    """Whether a function returns inside of a branch or loop."""
    return any(isinstance(inner, ast.Return) for statement in node.body
               if isinstance(statement, (ast.If, ast.For, ast.While)) for inner in ast.walk(statement))


def contains_return(node: Any) -> bool:
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


class Early:
    """Where the results of a function go; without places it collects what they are."""

    def __init__(self, places: list[Any] | None = None, is_tuple: bool = False) -> None:
        self.places = places
        self.is_tuple = is_tuple
        self.values: list[Any] = []
        self.is_needed = False   # a return stands in control flow of run time
        if places is not None:
            b = require("return")
            self.flag = Variable(Expr(b.constant(u1, False), u1), u1)

    def leave(self, value: Any) -> None:
        """Traces a `return`."""
        b = require("return")
        parts = () if value is None else value if isinstance(value, tuple) else (value,)
        if self.places is None:
            self.values.append(value)
            return
        for place, part in zip(self.places, parts, strict=True):
            place.set(part)
        self.flag.set(Expr(b.constant(u1, True), u1))
        b.trace.jump_break(b.loc)

    def after_loop(self) -> None:
        """After a loop in which the function may have returned."""
        if self.places is None:
            return
        b = require("return")
        b.trace.begin_if(condition_handle(self.flag.get()), b.loc)
        b.trace.jump_break(b.loc)
        b.trace.end()


@dataclass(eq=False, repr=False)
class StructLike:
    """What fits structs: that of each member, and the methods."""

    members: dict[str, Any]
    methods: Any


def like_of(visitor: Visitor, column: Any) -> Like | StructLike:
    """What fits all these values."""
    first = column[0]
    if isinstance(first, Struct):
        if any(not isinstance(v, Struct) or v.keys != first.keys for v in column):
            raise QuadrantsSyntaxError(_ONE_TYPE)
        rows = [v.get() for v in column]
        return StructLike({name: like_of(visitor, [r.member(name) for r in rows]) for name in first.keys}, first._methods)
    like = visitor.common(first, first)
    for one in column[1:]:
        shape, other = visitor.common(first, one).shape, visitor.common(one, one).dtype
        like = Like(like.dtype if like.dtype is other else dtypes.promote(like.dtype, other), shape)
    return like


_ONE_TYPE = "a function that returns under a condition returns values of one type everywhere"


def likes_of(visitor: Visitor, values: list[Any]) -> tuple[Any, ...]:
    """The types and shapes of what a function returns, and whether it is a tuple."""
    if all(v is None for v in values):
        return [], True
    rows = [v if isinstance(v, tuple) else (v,) for v in values]
    if len({len(r) for r in rows}) != 1 or any(v is None for r in rows for v in r):
        raise QuadrantsSyntaxError(_ONE_TYPE)
    return [like_of(visitor, column) for column in zip(*rows)], isinstance(values[0], tuple)


def variable_like(visitor: Visitor, like: Like | StructLike) -> Any:
    if isinstance(like, StructLike):
        return Struct({name: variable_like(visitor, one) for name, one in like.members.items()}, like.methods)
    return visitor.zero_variable(like)


def inline(builder: Builder, make_visitor: Callable[..., Any]) -> Any:
    """Traces a function that returns early; `make_visitor()` gives a new one each time."""
    with builder.dry_run():
        visitor = make_visitor()
        visitor.frame.early = collected = Early()
        visitor.run()
    if not collected.is_needed:
        if builder.dry:
            return collected.values[-1] if collected.values else None
        return make_visitor().run()
    likes, is_tuple = likes_of(visitor, collected.values)
    places = [variable_like(visitor, like) for like in likes]
    if builder.dry:
        return _read(places, is_tuple)
    visitor = make_visitor()
    visitor.frame.early = Early(places, is_tuple)
    b = builder
    b.trace.begin_for(b.constant(i64, 0), b.constant(i64, 1), b.constant(i64, 1), b.loc)
    with b.nested():
        visitor.frame.depth = b.depth
        visitor.run()
    b.trace.end()
    return _read(places, is_tuple)


def _read(places: list[Any], is_tuple: bool) -> Any:
    results = tuple(p.get() for p in places)
    return (results if is_tuple else results[0]) if results else None
