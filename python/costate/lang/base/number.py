"""Numbers of the host through which derivatives pass: elements that are read, and what kernels return, while a `Tape` or
`FwdMode` is active."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Rational
from typing import Any, Protocol

import numpy as np

from costate.errors import NotDifferentiable


class Node(Protocol):
    """What a recording knows of a number."""

    @property
    def alive(self) -> bool:
        """Whether derivatives of what is computed now are wanted."""

    def made(self, value: float, operands: list[tuple[Any, float]]) -> Any:
        """The number with this value, whose derivative by the number of each node is given."""

    def lost(self, why: str) -> Any:
        """The node of what is computed from the number in a way that nobody knows the derivative of."""


class Number(float):
    """A float that knows where it comes from; without a `node` it is a constant."""

    __slots__ = ("node",)
    node: Any

    def __new__(cls, value: float = 0.0, node: Any = None) -> Number:
        made = float.__new__(cls, value)
        made.node = node
        return made

    @property
    def alive(self) -> bool:
        return self.node is not None and self.node.alive

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    real = property(lambda self: self)

    def conjugate(self) -> Number:
        return self

    def __pos__(self) -> Number:
        return self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def item(self) -> float:
        return float(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _of_numpy(getattr(ufunc, method), ufunc.__name__ if method == "__call__" else "", inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        chosen = _CHOICES.get(function.__name__)
        if chosen and not options and len(args) == 3 and all(isinstance(x, (int, float, np.generic)) for x in args):
            return chosen(*args)
        return _of_numpy(function, "", args, options)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        for one in _numbers_in(args):
            one.node.refuse("computes with a tensor of PyTorch, which does not see where it comes from")
        return function(*plain(args), **plain(options or {}))


class ReadArray(np.ndarray[Any, Any]):
    """A NumPy array that the host has read, and what was computed from it: nobody knows its derivatives."""

    node: Any

    def __array_finalize__(self, other: Any) -> None:
        self.node = getattr(other, "node", None)

    @property
    def alive(self) -> bool:
        return self.node is not None and bool(self.node.alive)

    def __array_wrap__(self, array: np.ndarray[Any, Any], context: Any = None, return_scalar: bool = False) -> Any:
        return _marked(array[()] if return_scalar else array, self.node)

    def __getitem__(self, index: Any) -> Any:
        return _marked(super().__getitem__(index), self.node)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return _marked(super().__array_function__(function, types, args, options), self.node)

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()


def _marked(x: Any, node: Any) -> Any:
    """An array or number that was computed from a ReadArray."""
    if node is None or not node.alive:
        return np.asarray(x) if isinstance(x, np.ndarray) else x
    if isinstance(x, (float, np.floating)):
        return Number(float(x), node)
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype.kind != "f":
        return np.asarray(x)
    made = x.view(ReadArray)
    made.node = node
    return made


def is_alive(x: Any) -> bool:
    """Whether derivatives pass through a number, or an array of them."""
    return type(x) in (Number, ReadArray) and x.alive


def plain(x: Any) -> Any:
    """The same without what is known of numbers, in lists and the like too."""
    if type(x) is Number:
        return float(x)
    if type(x) in (list, tuple):
        return type(x)(map(plain, x))
    return {k: plain(v) for k, v in x.items()} if type(x) is dict else x


def _numbers_in(x: Any) -> list[Number]:
    """Those through which derivatives pass."""
    if isinstance(x, (list, tuple)):
        return [found for one in x for found in _numbers_in(one)]
    return [x] if is_alive(x) else []


def is_short(x: float) -> bool:
    """Whether a number is one that programs write, as likely as not."""
    return not math.isfinite(x) or (x * 4096).is_integer()


def of_math(x: float) -> dict[float, str]:
    """What functions of Python's `math`, which see a plain float, give of a number; without short numbers."""
    found = {}
    for name in _MATH:
        try:
            value = getattr(math, name)(x)
        except (ValueError, OverflowError):
            continue
        if not is_short(value):
            found[value] = name
    return found


def depending(value: float, *operands: tuple[Any, Callable[[], float]]) -> Any:
    """`value`, with a function for its derivative by each operand."""
    known = [(x.node, slope()) for x, slope in operands if is_alive(x)]
    return known[0][0].made(value, known) if known else value


def _as_float(x: Number, other: Any) -> Any:
    """The other operand: beside fractions and the like a number would be a plain float, and complex numbers have no derivatives."""
    if type(other) is complex and x.alive:
        x.node.refuse("is an operand beside a complex number")
    return float(other) if isinstance(other, Rational) and not isinstance(other, int) else other


def _binary(name: str, left: Callable[[Any, Any, Any], float], right: Callable[[Any, Any, Any], float]) -> None:
    """An operator, with the derivatives of c = a op b."""
    forward, backward = getattr(float, f"__{name}__"), getattr(float, f"__r{name}__")

    def apply(self: Number, other: Any) -> Any:
        value = forward(self, _as_float(self, other))
        if type(value) is not float:
            return value
        return depending(value, (self, lambda: _slope(left, float(self), float(other), value)),
                         (other, lambda: _slope(right, float(self), float(other), value)))

    def reflected(self: Number, other: Any) -> Any:
        value = backward(self, _as_float(self, other))
        if type(value) is not float:
            return value
        return depending(value, (self, lambda: _slope(right, float(other), float(self), value)))
    setattr(Number, f"__{name}__", apply)
    setattr(Number, f"__r{name}__", reflected)


def _quotient(a: float, b: float) -> float:
    """a / b, of which 0 / 0 is 0, as where it is a factor of a derivative."""
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else 0.0


def _power_slope(a: float, b: float) -> float:
    return 0.0 if b == 0 else b * a ** (b - 1) if a else math.inf if b < 1 else float(b == 1)


def _exponent_slope(a: float, b: float, c: float) -> float:
    return c * math.log(a) if a > 0 else 0.0


_binary("add", lambda a, b, c: 1.0, lambda a, b, c: 1.0)
_binary("sub", lambda a, b, c: 1.0, lambda a, b, c: -1.0)
_binary("mul", lambda a, b, c: float(b), lambda a, b, c: float(a))
_binary("truediv", lambda a, b, c: _quotient(1.0, b), lambda a, b, c: -_quotient(c, b))
_binary("mod", lambda a, b, c: 1.0, lambda a, b, c: -float(a // b))
_binary("pow", lambda a, b, c: _power_slope(a, b), lambda a, b, c: _exponent_slope(a, b, c))


def _unary(name: str, slope: Callable[[float], float]) -> None:
    function = getattr(float, f"__{name}__")

    def apply(self: Number) -> Any:
        return depending(function(self), (self, lambda: slope(self)))
    setattr(Number, f"__{name}__", apply)


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0))


_unary("neg", lambda x: -1.0)
_unary("abs", _sign)

#: The derivative of each function of one number x, whose value is y.
SLOPES: dict[str, Callable[[float, float], float]] = {
    "sin": lambda x, y: math.cos(x),
    "cos": lambda x, y: -math.sin(x),
    "tan": lambda x, y: 1 + y * y,
    "asin": lambda x, y: _quotient(1, math.sqrt(1 - x * x)),
    "acos": lambda x, y: -_quotient(1, math.sqrt(1 - x * x)),
    "atan": lambda x, y: 1 / (1 + x * x),
    "sinh": lambda x, y: math.cosh(x),
    "cosh": lambda x, y: math.sinh(x),
    "tanh": lambda x, y: 1 - y * y,
    "asinh": lambda x, y: 1 / math.hypot(1, x),
    "acosh": lambda x, y: _quotient(1, math.sqrt(x * x - 1)),
    "atanh": lambda x, y: _quotient(1, 1 - x * x),
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "exp10": lambda x, y: y * math.log(10),
    "expm1": lambda x, y: y + 1,
    "log": lambda x, y: _quotient(1, x),
    "log2": lambda x, y: _quotient(1 / math.log(2), x),
    "log10": lambda x, y: _quotient(1 / math.log(10), x),
    "log1p": lambda x, y: _quotient(1, 1 + x),
    "sqrt": lambda x, y: _quotient(0.5, y),
    "rsqrt": lambda x, y: -0.5 * y / x,
    "cbrt": lambda x, y: _quotient(1 / 3, y * y),
    "erf": lambda x, y: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "erfc": lambda x, y: -2 / math.sqrt(math.pi) * math.exp(-x * x),
    "square": lambda x, y: 2 * x,
    "reciprocal": lambda x, y: -y * y,
    "negative": lambda x, y: -1.0,
    "positive": lambda x, y: 1.0,
    "absolute": lambda x, y: _sign(x),
    "fabs": lambda x, y: _sign(x),
    "deg2rad": lambda x, y: math.pi / 180,
    "radians": lambda x, y: math.pi / 180,
    "rad2deg": lambda x, y: 180 / math.pi,
    "degrees": lambda x, y: 180 / math.pi,
}
_MATH = tuple(name for name in SLOPES if hasattr(math, name) and name != "fabs")
SLOPES |= {"arc" + name[1:]: SLOPES[name] for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
#: The same of functions c of two numbers.
PAIRS: dict[str, tuple[Callable[..., float], Callable[..., float]]] = {
    "add": (lambda a, b, c: 1.0, lambda a, b, c: 1.0),
    "subtract": (lambda a, b, c: 1.0, lambda a, b, c: -1.0),
    "multiply": (lambda a, b, c: float(b), lambda a, b, c: float(a)),
    "divide": (lambda a, b, c: _quotient(1.0, b), lambda a, b, c: -_quotient(c, b)),
    "power": (lambda a, b, c: _power_slope(a, b), _exponent_slope),
    "remainder": (lambda a, b, c: 1.0, lambda a, b, c: -float(a // b)),
    "fmod": (lambda a, b, c: 1.0, lambda a, b, c: -float(math.trunc(a / b))),
    "hypot": (lambda a, b, c: _quotient(a, c), lambda a, b, c: _quotient(b, c)),
    "arctan2": (lambda a, b, c: _quotient(b, a * a + b * b), lambda a, b, c: -_quotient(a, a * a + b * b)),
    "maximum": (lambda a, b, c: float(a >= b), lambda a, b, c: float(a < b)),
    "minimum": (lambda a, b, c: float(a <= b), lambda a, b, c: float(a > b)),
}
PAIRS |= {"float_power": PAIRS["power"], "fmax": PAIRS["maximum"], "fmin": PAIRS["minimum"]}
#: Functions of NumPy that choose one of their arguments.
_CHOICES: dict[str, Callable[..., Any]] = {
    "clip": lambda x, lo, hi: min(max(x, lo), hi),
    "where": lambda condition, a, b: a if condition else b,
}
#: Functions of NumPy with a derivative of 0.
_STEPS = {"floor", "ceil", "rint", "trunc", "sign", "floor_divide"}


def _slope(function: Callable[..., float], *args: float) -> float:
    try:
        return function(*args)
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def of_one(name: str, x: Any, value: float) -> Any:
    """`value` is that of a function of one number."""
    return depending(value, (x, lambda: _slope(SLOPES[name], float(x), value)))


def of_two(name: str, a: Any, b: Any, value: float) -> Any:
    left, right = PAIRS[name]
    x, y = float(a), float(b)
    return depending(value, (a, lambda: _slope(left, x, y, value)), (b, lambda: _slope(right, x, y, value)))


def _of_numpy(function: Any, name: str, inputs: Any, options: Any) -> Any:
    result = function(*plain(inputs), **plain(options))
    known = [*_numbers_in(inputs), *_numbers_in(list(options.values()))]
    if not known or name in _STEPS or np.asarray(result).dtype.kind != "f":
        return result
    if np.ndim(result) == 0 and not options and all(isinstance(x, (int, float, np.number)) for x in inputs):
        if name in SLOPES and len(inputs) == 1:
            return of_one(name, inputs[0], float(result))
        if name in PAIRS and len(inputs) == 2:
            return of_two(name, inputs[0], inputs[1], float(result))
    return _marked(result, known[0].node.lost(f"`numpy.{function.__name__}` has taken"))


def array_of(numbers: list[Any], array: np.ndarray[Any, Any]) -> Any:
    """An array of numbers, of which derivatives know no more where they come from."""
    known = _numbers_in(numbers)
    return _marked(array, known[0].node.lost("is in a NumPy array")) if known else array


def read_array(array: np.ndarray[Any, Any], node: Any) -> Any:
    """What the host gets of an array through which derivatives pass."""
    return _marked(array, node)


def refuse_constant(x: Any, how: str) -> None:
    """A number is about to be compiled into a kernel."""
    if is_alive(x):
        x.node.refuse(how)


def refuse_array(x: Any, name: str) -> None:
    """An array that the host has read is about to be passed as an argument."""
    if type(x) is ReadArray:
        refuse_constant(x, f"is passed as `{name}`")


def lost_text(what: str, why: str) -> str:
    return (f"{what} {why}, so that its derivative would be lost; use operators and functions of `numpy` and "
            "`costate` on numbers, compute it in a kernel, or make it a constant with `float(...)`")


def not_differentiable(what: str, why: str) -> NotDifferentiable:
    return NotDifferentiable(lost_text(what, why))
