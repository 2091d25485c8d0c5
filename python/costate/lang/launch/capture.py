"""`capture`: launches that are kept, to be repeated for less than they cost one by one."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from costate import _core
from costate.errors import CannotCapture
from costate.lang.base import dtypes, runtime
from costate.lang.base.explain import in_python
from costate.lang.base.state import state
from costate.lang.base.threads import get_ident
from costate.lang.data import snode, storage

if TYPE_CHECKING:
    from costate.lang.launch.arguments import Values
    from costate.lang.launch.specialisation import Specialisation

#: Of one graph, for different arguments.
MOST_VARIANTS = 16
_PACKAGE = __file__.rpartition("lang")[0]
_MODES = {"primal": "", "grad": ", gradient", "jvp": ", tangent"}


def _text(loc: _core.Loc) -> str:
    return f"{loc.file}:{loc.line}"


@dataclass(eq=False, repr=False)
class Launch:
    """A launch of the program, and the line that asks for it."""

    found: Specialisation
    mode: str
    loc: _core.Loc

    def __str__(self) -> str:
        return f"{self.found.name}{_MODES[self.mode]} ({_text(self.loc)})"


class Captured:
    """What a function has launched and filled with certain arguments, which it keeps alive."""

    left = False

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.kept = args, options
        self.generation = runtime.generation
        self.device = runtime.device()
        self.loc = _core.Loc.caller()
        self.launches: list[Launch] = []
        self.fields: list[Callable[[], Any]] = []
        self.tensors: dict[int, tuple[Any, Any]] = {}   # what is known of tensors of PyTorch, and these
        storage.flush()
        with self._active(), self._explained():
            self.core = self.device.capture(lambda: function(*args, **options))
        self._require_current()
        self.names = {one.found.name: one.found.names for one in self.launches}
        self.is_checked = any(one.found.debug for one in self.launches)
        self.blocks = {block for one in self.launches for block in one.found.blocks}   # of sparse fields
        self.destroyed = snode.destroyed()

    @contextmanager
    def _active(self) -> Iterator[None]:
        if state.forward is not None:
            raise CannotCapture("a graph inside of FwdMode; call `k.jvp(...)` in the function that is captured")
        before, state.capture = state.capture, self
        state.listen()
        try:
            yield
        finally:
            state.capture = before
            state.listen()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says where the program asks for what cannot be captured."""
        with in_python(kernels={}):
            try:
                yield
            except CannotCapture as error:
                place = self._place_of(str(error)) or _place_in(error) or _text(self.loc)
                error.args = (f"{error.args[0]} (at {place})",)
                raise

    def _place_of(self, text: str) -> str | None:
        """Of the launch that a message about the whole is about."""
        return next((_text(one.loc) for one in self.launches if text.startswith(f"kernel `{one.found.name}` cannot be captured")),
                    None)

    def meet(self, found: Specialisation, values: Values, mode: str) -> None:
        """A kernel is about to be launched."""
        if found.needs_random and mode != "grad":
            raise CannotCapture(f"kernel `{found.name}` draws random numbers, and each replay would draw the same; launch it "
                                "outside of `capture`")
        if found.returns:
            raise CannotCapture(f"kernel `{found.name}` returns a value, for which the host would have to wait; let it write "
                                "an array, and read that after the replay")
        for known, tensor in ((getattr(tensor, "_costate"), tensor) for tensor in values.tensors.values()):
            if known.is_copied:
                raise CannotCapture(f"kernel `{found.name}` is given a tensor on `{tensor.device}`, which a launch copies; "
                                    "pass one on the device of `init`")
            self.tensors[id(known)] = known, tensor
        self.launches.append(Launch(found, mode, _core.Loc.caller()))
        self.fields += found.fields

    def _require_current(self) -> None:
        if self.generation != runtime.generation:
            raise CannotCapture("a graph ends with `init` and `reset`; capture it again")

    def _require_blocks(self) -> None:
        """That sparse fields lie where they did."""
        if self.destroyed != snode.destroyed() and any(getattr(holder(), "is_directory", False) for holder in self.fields):
            raise CannotCapture("a graph with sparse fields ends where `deactivate_all` gives their memory back, or a tree of fields "
                                "is destroyed; capture it again")

    def _before(self) -> None:
        self._require_current()
        self._require_blocks()
        if state.forward is not None:
            raise CannotCapture("FwdMode cannot see what a graph replays; call the kernels themselves, or capture `k.jvp(...)` "
                                "and replay it outside")
        storage.flush()
        me = get_ident()
        for holder in self.fields:
            field = holder()
            if field is not None and field._user != me:
                storage.claim(field)
        for known, tensor in self.tensors.values():
            known.before_backward(tensor)
            if not known.fits(tensor):
                raise CannotCapture(f"the tensor of shape {tuple(tensor.shape)} has other memory than when the graph was captured; "
                                    "capture it again")

    def replay(self) -> None:
        self._before()
        try:
            with in_python(kernels=self.names):
                self.core.replay()
                if self.is_checked:
                    self.device.synchronize()
            for one in self.blocks:
                one.check()
        finally:
            for known, tensor in self.tensors.values():
                known.after(tensor)


def _place_in(error: BaseException) -> str | None:
    """The innermost line of the program in the traceback of an error."""
    found, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _key(value: Any) -> Any:
    """What a graph depends on: numbers and texts by value, everything else by identity."""
    if isinstance(value, (numbers.Number, np.generic, str, bytes)):
        return type(value), repr(value)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(_key, value))
    is_number = dtypes.is_tensor(value) and value.dim() == 0 and value.device.type == "cpu"
    return id(value), value.item() if is_number else None


class Graph:
    """What `capture` has kept. Arrays and kernels stay alive as long as it does."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._function = function
        self._first = Captured(function, args, options)
        self._others: dict[Any, Captured] = {self._key_of(args, options): self._first}

    @staticmethod
    def _key_of(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return _key(args), tuple((name, _key(value)) for name, value in sorted(options.items()))

    def _of(self, args: tuple[Any, ...], options: dict[str, Any]) -> Captured:
        key = self._key_of(args, options)
        known = self._others.pop(key, None)
        if known is None:
            known = Captured(self._function, args, options)
            if len(self._others) >= MOST_VARIANTS:
                del self._others[next(iter(self._others))]
        self._others[key] = known    # the last in use stands last
        return known

    def replay(self, *args: Any, **options: Any) -> None:
        """Launches everything once more, in order, with what arrays hold by then.

        Without arguments with those of `capture`. With others the function is captured for them too, and that is kept: for
        arrays that are exchanged, or a few different numbers.
        """
        (self._of(args, options) if args or options else self._first).replay()

    def __len__(self) -> int:
        """The number of launches and fills."""
        return len(self._first.core)

    def report(self) -> str:
        """The launches, and the lines of the program that ask for them."""
        fills = len(self) - len(self._first.launches)
        lines = [f"graph: {len(self._first.launches)} launches, {fills} fills", *map(str, self._first.launches)]
        return "\n  ".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<graph of {len(self)} launches and fills>"


def capture(function: Callable[..., Any], *args: Any, **options: Any) -> Graph:
    """Calls `function(*args)`, and keeps what it launches (kernels, their gradients and tangents) and what it fills instead
    of doing it; `replay()` of the result does it, as often as wanted.

    Code of the host runs once, here. CannotCapture for what a replay cannot repeat: elements that the host reads or
    writes, values that kernels return, new arrays, random numbers, a `Tape`.
    """
    return Graph(function, args, options)
