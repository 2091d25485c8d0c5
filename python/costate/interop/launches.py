"""A function of Python that launches several kernels, as if it were one kernel."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from costate import _core, errors
from costate.lang.base import runtime
from costate.lang.base.state import state
from costate.lang.data.annotations import ndarray
from costate.lang.data.ranges import grouped
from costate.lang.launch.kernel import kernel

#: What launches one compiled kernel.
Way = Callable[[_core.Kernel, Sequence[Any]], object]

#: What changes elements of an argument, in kernel IR.
_WRITE = re.compile(r"costate\.(?:(?:store|atomic_\w+|compare_exchange) [^\[\n]*%arg(\d+)\[|copy %\w+ to %arg(\d+))")


@functools.lru_cache(maxsize=1024)
def written(core: _core.Kernel) -> tuple[int, ...]:
    """The arguments that a kernel writes, by position: known before it is launched."""
    return tuple(sorted({int(one or other) for one, other in _WRITE.findall(core.ir())}))


runtime.on_reset.add(written.cache_clear)


@kernel
def _copy(to: ndarray(), source: ndarray()):  # type: ignore[no-untyped-def, valid-type]
    for index in grouped(source):
        to[index] = source[index]


def copy(to: _core.Array, source: _core.Array) -> None:
    """On the device."""
    if to.size:
        _copy.run((to, source))


class Launches:
    """What it launches is found by running it: for the values, the gradient, tangents, and the derivative of the gradient."""

    def __init__(self, function: Callable[..., Any], results: Sequence[int], require_result: Callable[[int], None]) -> None:
        self.function, self.results, self.require_result = function, results, require_result
        self.name = getattr(function, "__name__", "function")
        self.constants: dict[int, tuple[_core.Array, int]] = {}   # what kernels find elsewhere than in arguments
        self.seen: dict[int, Any] = {}

    # -- as of a kernel --------------------------------------------------------------

    def launch(self, *arrays: Any) -> None:
        self._run(arrays, lambda core, passed: core.launch(*passed))

    def jvp(self, *arrays: Any) -> None:
        self._run(arrays, lambda core, passed: core.jvp(*passed))

    def grad(self, *arrays: Any, initial_state: bool = True) -> None:
        tape = _core.Tape()
        self.record(tape, arrays)
        tape.backward()

    def record(self, tape: _core.Tape, arrays: Sequence[Any]) -> None:
        with tape.record():
            self.launch(*arrays)

    def gradient(self) -> _Gradient:
        return _Gradient(self)

    def tangent(self) -> _Tangent:
        return _Tangent(self)

    # -- one run ---------------------------------------------------------------------

    def _run(self, arrays: Sequence[Any], way: Way) -> None:
        with self._surrounding(_Run(self, arrays, way)):
            self.function(*arrays)

    @contextlib.contextmanager
    def _surrounding(self, run: _Run) -> Iterator[None]:
        if state.tape is not None or state.forward is not None or state.sequence is not None:
            raise errors.BadArgument(f"function `{self.name}`, which is one of another library, is called inside of a `Tape`, "
                                     "`FwdMode` or another such function")
        state.sequence = run
        state.listen()
        try:
            yield
        finally:
            state.sequence = None
            state.listen()

    def refuse(self, what: str) -> None:
        raise errors.NotDifferentiable(f"function `{self.name}`, which is one of another library, {what}")


class _Run:
    """The surroundings of the launches of one run."""

    def __init__(self, launches: Launches, arrays: Sequence[Any], way: Way) -> None:
        self.launches, self.way = launches, way
        self.arrays = {i: a for i, a in enumerate(arrays) if isinstance(a, _core.Array)}

    def launch(self, called: Any, args: tuple[Any, ...]) -> None:
        core, passed, own, after = called.prepared(args)
        if called.return_kinds()[0] is not None:    # known once the kernel is compiled
            self.launches.refuse(f"launches kernel `{called.__name__}`, which returns a value; let it store that in an array")
        if own.key:
            self.launches.refuse(f"launches kernel `{called.__name__}`, which draws random numbers; pass them as an argument")
        if core is None:
            return
        others = [a for a in passed if isinstance(a, _core.Array) and not self._places(a)]
        self._check(called, others, own.seen)
        for k in written(core):
            self._check_write(called, passed[k])
        before = [a.version for a in others]
        self.way(core, passed)
        for action in after:
            action()
        if before != [a.version for a in others]:
            self._refuse_write(called)

    def _places(self, array: _core.Array) -> list[int]:
        """Which arguments of the function an array is."""
        return [i for i, one in self.arrays.items() if array.same_as(one)]

    def _check_write(self, called: Any, array: _core.Array) -> None:
        places = self._places(array)
        if not places:
            self._refuse_write(called)
        if not any(i in self.launches.results for i in places):
            self.launches.require_result(places[0])

    def _refuse_write(self, called: Any) -> None:
        self.launches.refuse(f"launches kernel `{called.__name__}`, which writes an array that is no argument of the function; "
                             "pass it as one, and name it in `outputs` or `updates`")

    def _check(self, called: Any, others: Sequence[_core.Array], seen: Any) -> None:
        known = self.launches
        for array in others:
            _, version = known.constants.setdefault(id(array), (array, array.version))
            if version != array.version:
                self._changed(called, "an array that is no argument of the function")
        if seen is not None and seen.places:
            known.seen.setdefault(id(seen), seen)
        if not all(one.holds() for one in known.seen.values()):
            self._changed(called, "a member of an object")

    def _changed(self, called: Any, what: str) -> None:
        raise errors.CannotReplay(f"function `{self.launches.name}` launches kernel `{called.__name__}`, which reads {what} that has "
                                  "changed since the first call; pass it as an argument")


class _Tangent:
    """The tangent, of which there are tangents."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches

    def jvp(self, *arrays: Any) -> None:
        self.launches._run(arrays, lambda core, passed: core.tangent().jvp(*passed))


class _Gradient:
    """The gradient, of which there are tangents: launch by launch, from what arrays held before each."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.done: list[tuple[_core.Kernel, Sequence[Any], list[tuple[_core.Array, _core.Array]]]] = []

    def jvp(self, *arrays: Any, initial_state: bool = True) -> None:
        """Leaves arrays as they were."""
        self.launches._run(arrays, self._note)
        for core, passed, saved in reversed(self.done):
            for array, before in saved:
                self._restore(array, before)
            core.gradient().jvp(*passed, initial_state=True)

    def _note(self, core: _core.Kernel, passed: Sequence[Any]) -> None:
        arrays = _apart(passed)
        kept = [self._kept(a) for a in arrays]
        versions = [a.version for a in arrays]
        core.jvp(*passed)
        self.done.append((core, passed, [(a, k) for a, k, version in zip(arrays, kept, versions) if a.version != version]))

    def _kept(self, array: _core.Array) -> _core.Array:
        kept = _core.Array(array.device, array.dtype, list(array.shape), dual=array.has_dual)
        self._restore(kept, array)
        return kept

    @staticmethod
    def _restore(array: _core.Array, before: _core.Array) -> None:
        copy(array, before)
        if array.has_dual:
            copy(array.dual, before.dual)


def _apart(passed: Sequence[Any]) -> list[_core.Array]:
    """The arrays, each once."""
    found: list[_core.Array] = []
    for a in passed:
        if isinstance(a, _core.Array) and not any(a.same_as(one) for one in found):
            found.append(a)
    return found
