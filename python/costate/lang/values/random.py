"""Random numbers: counter-based, the same in a kernel and in its derivatives."""

from __future__ import annotations

import math
import random as _python
from typing import TYPE_CHECKING, Any

from costate import _core
from costate.errors import QuadrantsCompilationError
from costate.lang.base import dtypes, runtime
from costate.lang.base.dtypes import f32, f64, u64
from costate.lang.base.marks import mark
from costate.lang.values import arith, ops
from costate.lang.values.builder import current, require
from costate.lang.values.expr import Expr

if TYPE_CHECKING:
    from costate.lang.values.builder import Builder

Op = _core.Op
_host = _python.Random(0)


@runtime.on_init.add
def _seed() -> None:
    """Starts the sequence of all kernels."""
    _host.seed(int(runtime.runtime().config.random_seed))


def next_key() -> int:
    """The key of a launch."""
    return _host.getrandbits(63)


class Stream:
    """The random numbers of a work item."""

    def __init__(self, builder: Builder, key: Any, work_item: Any) -> None:
        self.key, self.work_item = key, work_item
        self.drawn = builder.trace.declare(u64.core, builder.constant(u64, 0), builder.loc)

    def bits(self, b: Builder) -> Expr:
        drawn = b.trace.read(u64.core, self.drawn, b.loc)
        result = b.pure(Op.philox, u64, self.key, self.work_item, drawn)
        more = b.pure(Op.add, u64, drawn, b.constant(u64, 1))
        b.trace.assign(self.drawn, more, b.loc)
        return Expr(result, u64)


def _bits() -> Any:
    b = require("random numbers")
    if b.dry:
        b.act()
        return Expr(b.constant(u64, 0), u64)
    if b.random is None:
        raise QuadrantsCompilationError("random numbers in a function of Python that an operator of an object calls; draw them in "
                                        "the kernel itself or in a `@ti.func`")
    b.has_drawn = True
    return b.random.bits(b)


def random(dtype: Any = float) -> Any:
    """A number in [0, 1), of an integer type any number of that type."""
    dtype = dtypes.cook(dtype)
    if current() is None:
        return _host.random() if dtype.is_float else _host.getrandbits(dtype.bits - 1)
    bits = _bits()
    if not dtype.is_float:
        return arith.cast(bits, dtype)
    digits = 53 if dtype is f64 else 24
    made = f64 if dtype is f64 else f32
    top = arith.pure(Op.shr, u64, bits, 64 - digits)
    return arith.cast(arith.mul(arith.cast(top, made), 2.0 ** -digits), dtype)


def randn(dtype: Any = float) -> Any:
    """A number with the normal distribution of mean 0 and variance 1."""
    dtype = dtypes.cook(dtype)
    if current() is None:
        return _host.gauss(0, 1)
    u, v = random(dtype), random(dtype)
    radius = ops.sqrt(arith.mul(-2.0, ops.log(arith.sub(1.0, u))))
    return arith.mul(radius, ops.cos(arith.mul(2 * math.pi, v)))


for _function in (random, randn):
    mark(_function, draws=True)
