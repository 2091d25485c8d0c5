"""Atomic operations on elements of arrays; on local variables they are plain operations."""

from costate.errors import QuadrantsTypeError
from costate.lang import arith, dtypes, ops
from costate.lang.builder import require
from costate.lang.expr import Expr
from costate.lang.matrix import Matrix
from costate.lang.places import Element, ElementGroup, Variable


def _atomic(name, op):
    def function(x, y):
        if isinstance(x, (Element, ElementGroup)):
            return x.fetch(op, _read(y))
        if hasattr(x, "update"):
            return x.update(op, _read(y))
        raise QuadrantsTypeError(f"`{name}` changes a variable or an element of an array, not "
                                 f"{ops.describe(x)}")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"x becomes {name.split('_')[1]} of x and y, atomically; returns the old x."
    function.by_reference = True
    return function


def _read(y):
    return y.get() if hasattr(y, "get") and hasattr(y, "set") else y


atomic_add = _atomic("atomic_add", "add")
atomic_sub = _atomic("atomic_sub", "sub")
atomic_min = _atomic("atomic_min", "min")
atomic_max = _atomic("atomic_max", "max")
atomic_and = _atomic("atomic_and", "and")
atomic_or = _atomic("atomic_or", "or")
atomic_xor = _atomic("atomic_xor", "xor")


def atomic_exchange(x, y):
    """x becomes y, atomically; returns the old x."""
    return x.exchange(_read(y))


def atomic_cas(x, expected, desired):
    """x becomes `desired` if it is `expected`, atomically; returns the old x."""
    return x.compare_exchange(_read(expected), _read(desired))


atomic_exchange.by_reference = atomic_cas.by_reference = True


def atomic_mul(x, y):
    """x becomes x * y, atomically; returns the old x. Has no derivative."""
    if isinstance(x, ElementGroup):
        values = x.entries_of(_read(y))
        return Matrix.of([_multiply(p, e) for p, e in zip(x.places, values, strict=True)], x.shape)
    if isinstance(x, Element):
        return _multiply(x, _read(y))
    old = x.get()
    x.set(ops.mul(old, _read(y)))
    return old


def _multiply(element, value):
    """Tries until nothing has come between; bits are compared, since NaN is not equal to itself."""
    b = require("an atomic operation")
    dtype = element.dtype
    bits = dtypes.by_name(f"u{dtype.bits}") if dtype.is_float else dtype
    factor = Expr(element.value_for_update(value), dtype)
    old, going = Variable(1, dtype), Variable(True, dtypes.u1)
    b.trace.begin_while(b.loc)
    b.trace.begin_while_body(going.get().handle, b.loc)
    with b.nested():
        guess = old.get()
        found = element.compare_exchange(guess, ops.mul(guess, factor))
        old.set(found)
        going.set(arith.ne(ops.bit_cast(found, bits), ops.bit_cast(guess, bits)))
    b.trace.end()
    return old.get()


atomic_mul.by_reference = True
