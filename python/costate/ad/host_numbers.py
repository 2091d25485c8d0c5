"""Numbers of the host in derivatives: of a `Tape` as entries of the recording, in `FwdMode` as tangents.

Both have three functions: `read` says that the host has got numbers from an array, `cell` gives a kernel a number as an array of
rank 0, and `stored` says that the host has written numbers into an array.
"""

from __future__ import annotations

import heapq
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from costate import _core
from costate.errors import BadArgument, MissingGradient, NotDifferentiable
from costate.lang.base import callers, dtypes
from costate.lang.base.number import Number, is_alive, is_short, not_differentiable, of_math
from costate.lang.base.state import state
from costate.lang.data import storage
from costate.lang.launch.scalar_slopes import cell_of, require_leaf
from costate.lang.values.matrix import Matrix

if TYPE_CHECKING:
    from costate.ad.tape import Tape
    from costate.lang.launch.arguments import ScalarParameter


_THROUGH_ARRAY = ("has gone through a NumPy array or a tensor (`numpy.array(...)` of it is a constant, elements `x[i]` and "
                  "`y.copy_from(x)` have derivatives)")


def _nothing() -> None:
    """What a read does when it runs again."""


def _part(array: _core.Array, index: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The numbers at an index of the outermost dimensions."""
    result = np.empty(array.shape[len(index):], dtypes.of_core(array.dtype).np)
    if index:
        array.read_at(index, result)
    else:
        array.read(result)
    return result


def _put(array: _core.Array, index: tuple[int, ...], values: np.ndarray[Any, Any]) -> None:
    if index:
        array.write_at(index, values)
    else:
        array.write(values)


def _product(a: float, b: float) -> float:
    """0 times inf is 0 in derivatives."""
    return a * b if a and b else 0.0


class Node:
    """A number, and what it was computed from: [(node, derivative)]. It is made after these."""

    __slots__ = ("numbers", "order", "operands", "adjoint", "waits", "value", "now", "what", "active", "plain")

    def __init__(self, numbers: TapeNumbers, value: float, operands: list[tuple[Node, float]], what: str,
                 plain: tuple[_core.Array, ...] = ()) -> None:
        self.active = not plain      # whether it comes from an array with a gradient
        self.plain = plain           # arrays without one that it comes from
        for node, _ in operands:
            self.active |= node.active
            self.plain += tuple(one for one in node.plain if all(one is not other for other in self.plain))
        self.numbers, self.value, self.operands, self.what = numbers, value, operands, what
        self.order = numbers.count()
        numbers.of_math.nodes.append((value, what))
        if operands:
            numbers.repeat(self.renew)
        self.adjoint, self.waits = 0.0, False
        self.now = value     # if it is read, where the program runs again

    alive = property(lambda self: self.numbers.alive)

    def made(self, value: float, operands: list[tuple[Node, float]]) -> Number:
        lost = next((node for node, _ in operands if not isinstance(node, Node)), None)
        return Number(value, lost or Node(self.numbers, value, operands, operands[0][0].what))

    def lost(self, why: str) -> Lost:
        return Lost(self.numbers, self.what, why)

    def refuse(self, why: str) -> NoReturn:
        raise not_differentiable(f"a number that comes from {self.what}", why)

    def renew(self) -> None:
        """The program runs again with other numbers."""
        self.now = self.value + sum(_product(node.now - node.value, slope) for node, slope in self.operands)

    def add(self, adjoint: float) -> None:
        self.adjoint += adjoint
        if adjoint and self.operands and not self.waits:
            self.waits = True
            heapq.heappush(self.numbers.waiting, (-self.order, self))

    def pass_on(self) -> None:
        self.waits = False
        for node, slope in self.operands:
            node.add(_product(self.adjoint, slope))


class Lost:
    """The node of a number whose derivative nobody knows."""

    def __init__(self, numbers: Any, what: str, why: str) -> None:
        self.numbers, self.what, self.why = numbers, what, why

    alive = property(lambda self: self.numbers.alive)

    def made(self, value: float, operands: Any) -> Number:
        return Number(value, self)

    def lost(self, why: str) -> Lost:
        return self

    def refuse(self, why: str) -> NoReturn:
        raise not_differentiable(f"a number that comes from {self.what}", self.why)


class OfMath:
    """What `math` has computed of numbers, without a word: plain floats that are equal to that."""

    MOST = 100_000

    def __init__(self) -> None:
        self.nodes: list[Any] = []     # not looked at yet
        self.passed: set[float] = set()   # constants of the program
        self.known: dict[float, tuple[str, str, bool]] = {}    # a function, what it is of, whether that is a short number

    def check(self, given: Any) -> None:
        """Refuses a plain float that is one of these."""
        if type(given) is not float or given in self.passed:
            return
        self.passed.add(given)
        if not (self.nodes or self.known):
            return
        if len(self.known) + len(self.passed) > self.MOST:
            self.known.clear()
            self.passed.clear()
        for value, what in self.nodes[-self.MOST // 30:]:
            self.known.update({y: (name, what, is_short(value)) for y, name in of_math(value).items()})
        self.nodes.clear()
        if given in self.known:
            self._tell(given, *self.known[given])

    @staticmethod
    def _tell(given: float, name: str, what: str, by_chance: bool) -> None:
        """Of a short number a constant of the program may be the same function."""
        text = (f"{given} is `math.{name}` of a number that comes from {what}, which `math` takes for a constant; use "
                f"`numpy.{NAMES.get(name, name)}` or a function of `costate`, or `costate.stop_gradient(...)` for a constant")
        if not by_chance:
            raise NotDifferentiable(text)
        callers.warn(text)


#: Names of functions of `math` that NumPy has under others.
NAMES = {name: "arc" + name[1:] for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}


class TapeNumbers:
    """Those of a `Tape`. The adjoint of a number is known when all is reversed that was recorded after it was made."""

    def __init__(self, tape: Tape) -> None:
        self._tape = weakref.ref(tape)
        self.made = 0
        self.of_math = OfMath()
        self.waiting: list[tuple[int, Node]] = []
        self.required: set[tuple[int, int]] = set()       # arrays without a gradient that were read, and their versions
        self.constants: dict[int, tuple[Any, str]] = {}   # arrays without a gradient that hold such numbers

    @property
    def alive(self) -> bool:
        tape = self._tape()
        return tape is not None and not tape.left

    def count(self) -> int:
        self.made += 1
        return self.made

    def pass_on(self, order: int = 0) -> None:
        """Passes the adjoints of all numbers on that were made after the one of this order."""
        while self.waiting and -self.waiting[0][0] > order:
            heapq.heappop(self.waiting)[1].pass_on()

    def repeat(self, function: Any, *args: Any) -> None:
        """What is done again where gradients are compared with differences."""
        tape = self._tape()
        if tape is not None and tape.grad_check:
            tape.insert(function, args)

    # -- from arrays -----------------------------------------------------------------

    def read(self, array: _core.Array, index: tuple[int, ...], values: list[float], what: str) -> list[Any]:
        """The numbers that stand in an array, at an index of its outermost dimensions."""
        if not array.has_grad:
            return self._read_plain(array, values, what)
        nodes = [Node(self, value, [], what) for value in values]

        def gradient() -> None:
            self.pass_on(nodes[-1].order)
            if any(node.adjoint for node in nodes):
                part = _part(array.grad, index)
                part += np.reshape([node.adjoint for node in nodes], part.shape).astype(part.dtype)
                _put(array.grad, index, part)
        _record(f"read of {what}", gradient, reads=[array])
        self.repeat(_read_again, nodes, array, index)
        return [Number(value, node) for value, node in zip(values, nodes)]

    def whole(self, array: _core.Array, what: str) -> Any:
        """The node of a NumPy array or tensor that the host gets, or None."""
        return Lost(self, what, _THROUGH_ARRAY) if array.has_grad else None

    def tensor(self, tensor: Any, values: list[float]) -> list[Any]:
        """The numbers of a tensor of PyTorch that requires a gradient."""
        require_leaf(tensor)
        from costate.interop.tensors import array_for
        array = array_for(tensor)
        state.tape.meet(tensor)
        return self.read(array, (), values, "a tensor of PyTorch")

    def _read_plain(self, array: _core.Array, values: list[float], what: str) -> list[Any]:
        """Of an array without a gradient: constants, unless launches have written what has one there."""
        tape = self._tape()
        met = tape and tape.arrays.get(id(array))
        if not met or met[1] == array.version:
            return values
        return [Number(value, Node(self, value, [], what, (array,))) for value in values]

    # -- to kernels ------------------------------------------------------------------

    def cell(self, number: Any, value: float, parameter: ScalarParameter) -> Any:
        """An array of rank 0 in place of a number, or None if it is a constant."""
        node = self._node(number)
        if node is None:
            self.of_math.check(number)
            return None
        array, data = cell_of(value, parameter.dtype, grad=True), np.array(value, parameter.dtype.np)

        def gradient() -> None:
            node.add(float(array.grad.to_numpy()))
        _record(f"number from {node.what}", gradient, lambda: array.write(data), writes=[array])
        return array

    def _node(self, number: Any) -> Any:
        if not is_alive(number):
            return None
        node = number.node
        if node.numbers is not self:
            raise BadArgument(f"a number that comes from {node.what} belongs to the `Tape` of another thread; pass "
                              "`float(...)` of it")
        if isinstance(node, Lost):
            node.refuse("")
        for array in node.plain:
            self._require_constants(array, node.what)
        return node if node.active else None

    def _require_constants(self, array: _core.Array, what: str) -> None:
        """An array without a gradient was read: `backward` tells whether it held what has one."""
        if (id(array), array.version) not in self.required:
            self.required.add((id(array), array.version))
            _record(f"read of {what}", _nothing, reads=[array])

    # -- to arrays -------------------------------------------------------------------

    def check_plain(self, given: Any) -> None:
        """Plain floats that are passed or written."""
        for one in given[:16]:
            self.of_math.check(one)

    def stored(self, array: _core.Array, index: tuple[int, ...], given: list[Any], what: str) -> None:
        """The host has written these numbers at an index of the outermost dimensions: one for all, or one each, which is
        repeated."""
        nodes = [self._node(one) for one in given]
        if not any(nodes):
            self.check_plain(given)
            return
        if not array.has_grad:
            self.constants[id(array)] = array, what
            return
        tape = self._tape()
        is_loss = tape is not None and isinstance(tape.loss, storage.Storage) and tape.loss.core() is array

        def gradient() -> None:
            part = _part(array.grad, index).astype(np.float64).reshape(-1, len(nodes)).sum(axis=0)
            for node, adjoint in zip(nodes, part):
                if node is not None:
                    node.add(float(adjoint))
        _record(f"number in {what}", gradient, reads=[array], writes=[array] if is_loss else [])
        self.repeat(_store_again, nodes, array, index)

    def refuse_constants(self, arguments: list[Any], name: str) -> None:
        """A kernel is launched with arrays that hold numbers, and have no gradient."""
        for one in arguments:
            if id(one) in self.constants:
                raise MissingGradient(f"kernel `{name}` uses {self.constants[id(one)][1]}, which holds a number that derivatives pass "
                                      "through and has no gradient; make it with `needs_grad=True`, or write `float(...)` of the "
                                      "number")

    def refuse_derivatives(self, given: Any, name: str) -> None:
        """A function with a gradient of its own is called with these arguments, whose adjoints it tells nobody."""
        if isinstance(given, Matrix):
            given = given.entries
        if isinstance(given, (tuple, list, dict)):
            for one in given.values() if isinstance(given, dict) else given:
                self.refuse_derivatives(one, name)
        elif self._node(given) is not None:
            given.node.refuse(f"is an argument of `{name}`, which has a gradient of its own")

    def end(self) -> None:
        """Numbers may live longer."""
        for one in (self.waiting, self.required, self.constants, self.of_math.nodes, self.of_math.known,
                    self.of_math.passed):
            one.clear()


def _record(name: str, gradient: Any, primal: Any = _nothing, reads: Any = (), writes: Any = ()) -> None:
    arrays = list(reads or writes)
    _core.CustomLaunch(name=name, reads=list(reads), writes=list(writes), unneeded=arrays, repeatable=True, primal=primal,
                       gradient=gradient)()


def _read_again(nodes: list[Node], array: _core.Array, index: tuple[int, ...]) -> None:
    storage.flush()
    for node, value in zip(nodes, _part(array, index).reshape(-1).tolist()):
        node.now = value


def _store_again(nodes: list[Any], array: _core.Array, index: tuple[int, ...]) -> None:
    storage.flush()
    part = _part(array, index)
    for k, node in enumerate(nodes):
        if node is not None:
            part.reshape(-1, len(nodes))[:, k] = node.now
    _put(array, index, part)


class Again:
    """Numbers of a `Tape` where its program runs again: launches are the same, with other numbers."""

    def tensor(self, tensor: Any, values: list[float]) -> list[Any]:
        return values

    def cell(self, number: Any, value: float, parameter: ScalarParameter) -> Any:
        node = number.node if type(number) is Number else None
        return cell_of(node.now, parameter.dtype) if isinstance(node, Node) else None


class HiddenNumbers:
    """Those that a function with a gradient of its own reads: they may leave it, but nobody asks that for their adjoints."""

    def __init__(self, numbers: TapeNumbers) -> None:
        self.numbers = numbers

    def read(self, array: _core.Array, index: tuple[int, ...], values: list[float], what: str) -> list[Any]:
        if not array.has_grad:
            return values
        node = Lost(self.numbers, what, "leaves a function with a gradient of its own")
        return [Number(value, node) for value in values]

    def whole(self, array: _core.Array, what: str) -> Any:
        return Lost(self.numbers, what, "leaves a function with a gradient of its own") if array.has_grad else None

    def stored(self, array: _core.Array, index: tuple[int, ...], given: list[Any], what: str) -> None:
        """The gradient of the function is all that counts."""

    def check_plain(self, given: list[Any]) -> None:
        """The same."""


class Tangent:
    """A number in `FwdMode`."""

    def __init__(self, numbers: ForwardNumbers, tangent: float, what: str) -> None:
        self.numbers, self.tangent, self.what = numbers, tangent, what

    alive = property(lambda self: self.numbers.alive)

    def made(self, value: float, operands: list[tuple[Any, float]]) -> Any:
        lost = next((node for node, _ in operands if isinstance(node, Lost)), None)
        if lost is not None:
            return Number(value, lost)
        tangent = sum(_product(node.tangent, slope) for node, slope in operands)
        return self.numbers.number(value, tangent, self.what)

    def lost(self, why: str) -> Lost:
        return Lost(self.numbers, self.what, why)

    def refuse(self, why: str) -> NoReturn:
        raise not_differentiable(f"a number that comes from {self.what}", why)


class ForwardNumbers:
    """Those of `FwdMode`."""

    def __init__(self, mode: Any) -> None:
        self._mode = weakref.ref(mode)
        self.of_math = OfMath()

    def check_plain(self, given: Any) -> None:
        for one in given[:16]:
            self.of_math.check(one)

    @property
    def alive(self) -> bool:
        mode = self._mode()
        return mode is not None and not mode.left

    def read(self, array: _core.Array, index: tuple[int, ...], values: list[float], what: str) -> list[Any]:
        if not array.has_dual:
            return values
        storage.flush()
        tangents = _part(array.dual, index).reshape(-1).tolist()
        return [self.number(value, tangent, what) for value, tangent in zip(values, tangents)]

    def number(self, value: float, tangent: float, what: str) -> Any:
        if not tangent:
            return value
        self.of_math.nodes.append((value, what))
        return Number(value, Tangent(self, tangent, what))

    def whole(self, array: _core.Array, what: str) -> Any:
        return Lost(self, what, _THROUGH_ARRAY) if array.has_dual and np.any(array.dual.to_numpy()) else None

    def tensor(self, tensor: Any, values: list[float]) -> list[Any]:
        """Numbers of PyTorch have no tangent here."""
        return values

    def _tangent(self, number: Any) -> float:
        if not is_alive(number):
            return 0.0
        if isinstance(number.node, Lost):
            number.node.refuse("")
        return float(number.node.tangent) if number.node.numbers is self else 0.0

    def cell(self, number: Any, value: float, parameter: ScalarParameter) -> Any:
        tangent = self._tangent(number)
        if not tangent:
            self.of_math.check(number)
            return None
        array = cell_of(value, parameter.dtype, dual=True)
        array.dual.fill(tangent)
        return array

    def stored(self, array: _core.Array, index: tuple[int, ...], given: list[Any], what: str) -> None:
        tangents = list(map(self._tangent, given))
        if not any(tangents):
            self.check_plain(given)
            return
        if not array.has_dual:
            raise MissingGradient(f"{what} has no tangent, and a number that is written there has one; make it with "
                                  "`needs_dual=True`, or write `float(...)` of the number")
        storage.flush()
        part = _part(array.dual, index)
        part.reshape(-1, len(tangents))[:] = tangents
        _put(array.dual, index, part)
