"""Kernels that pause: `@kernel(graph=True, checkpoints=True)`, `GraphStatus`, `resume`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from costate.errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from costate.lang.base.dtypes import i32
from costate.lang.launch.kernel import Kernel, pausing
from costate.lang.syntax.graph_checkpoints import FROM, Checkpoints
from costate.lang.syntax.source import Source


@dataclass(frozen=True)
class GraphStatus:
    """Whether a kernel has paused, and the label of the checkpoint that paused it."""

    yielded: bool
    checkpoint: int | None = None


@pausing.given
class PausingKernel(Kernel):
    """A kernel with checkpoints, in each of which it may pause; `resume` goes on from one."""

    _labels: list[int]

    def __init__(self, function: Any, options: dict[str, Any] | None = None) -> None:
        super().__init__(function, options)
        extra = inspect.Parameter(FROM, inspect.Parameter.KEYWORD_ONLY, default=-1, annotation=i32)
        self.signature = self.signature.replace(parameters=[*self.signature.parameters.values(), extra])
        self.names = tuple(self.signature.parameters)

    def _value(self, expression: ast.expr) -> Any:
        """What an expression means where the kernel was written, or None."""
        names = {**self.function.__globals__, **inspect.getclosurevars(self.function).nonlocals}
        try:
            return eval(compile(ast.fix_missing_locations(ast.Expression(expression)), "<label>", "eval"), names)
        except Exception:
            return None

    def read_source(self) -> Source:
        source = super().read_source()
        found = Checkpoints(source.node, self._value, lambda node, text: QuadrantsSyntaxError(source.show(node, text)))
        source.node.args.kwonlyargs.append(ast.arg(FROM))
        self._labels = found.labels
        return source

    def annotations(self) -> dict[Any, Any]:
        return {**super().annotations(), FROM: i32, "return": i32}

    def _status(self, paused: int) -> GraphStatus:
        return GraphStatus(False) if paused < 0 else GraphStatus(True, self._labels[paused])

    def __call__(self, *args: Any, **options: Any) -> GraphStatus:
        return self._status(super().__call__(*args, **{FROM: -1, **options}))

    def position(self, label: Any) -> int:
        """The number of the checkpoint with a label."""
        _ = self.source
        if label not in self._labels:
            raise QuadrantsRuntimeError(f"`{self.__name__}` has no checkpoint {label}; it has {', '.join(map(str, self._labels)) or 'none'}")
        return self._labels.index(label)

    def resume(self, *args: Any, from_checkpoint: Any, **options: Any) -> GraphStatus:
        """Launches again, without what comes before the checkpoint with this label."""
        return self(*args, **{FROM: self.position(from_checkpoint), **options})

    def __get__(self, instance: Any, owner: Any) -> Any:
        bound = super().__get__(instance, owner)
        return self if instance is None else BoundPausing(self, bound)


class BoundPausing:
    """Such a kernel of an object."""

    def __init__(self, original: PausingKernel, bound: Kernel) -> None:
        self.original, self.bound = original, bound

    def __call__(self, *args: Any, **options: Any) -> GraphStatus:
        return self.original._status(self.bound(*args, **{FROM: -1, **options}))

    def resume(self, *args: Any, from_checkpoint: Any, **options: Any) -> GraphStatus:
        return self(*args, **{FROM: self.original.position(from_checkpoint), **options})


@contextmanager
def checkpoint(cp_id: Any, yield_on: Any) -> Iterator[None]:
    """In a kernel, `with ti.checkpoint(label, yield_on=flag):` pauses it where `flag` is not 0 after the body. Outside nothing."""
    yield
