"""Kernels, and functions that launch several, as functions of arrays that another library owns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from costate import _core, errors
from costate.lang.data.annotations import NdarrayType
from costate.lang.launch.arguments import ArrayParameter, ScalarParameter, TemplateParameter, VectorParameter
from costate.lang.launch.kernel import Kernel

from .launches import Launches, written

#: How an output is made: like the argument of that number; of that shape; or what
#: a function of the other arguments returns, a shape or a tensor to start with.
Output = Union[int, Sequence[int], Callable[..., Any]]


class Plan:
    """What the calls of one function have in common."""

    library: str   # whose functions they are

    def __init__(self, kernel: Any, outputs: Mapping[int, Output],
                 updates: Sequence[int], steps: int | None = None, **options: Any) -> None:
        self.kernel = kernel
        self.steps, self.options = steps, options  # of a recording of several launches
        self.is_core = isinstance(kernel, _core.Kernel)
        self.name = kernel.name if self.is_core else kernel.__name__
        self.is_function = not self.is_core and not isinstance(kernel, Kernel)
        self.title = f"function `{self.name}`" if self.is_function else f"kernel `{self.name}`"
        self.instance = () if self.is_core or self.is_function or kernel.instance is None else (kernel.instance,)
        self.types = self._types()
        self.outputs = dict(outputs)
        self.updates = tuple(updates)
        if steps is None and options or steps is not None and steps < 1:
            raise errors.BadArgument(f"the function of {self.title} launches it {steps} times; give `steps`, "
                                     "from 1 on, with `snapshots` or `budget`")
        for position in (*self.outputs, *self.updates):
            if not hasattr(position, "__index__"):
                raise errors.BadArgument(f"`outputs` and `updates` name arguments of {self.title} by their numbers, counted from 0, "
                                         f"and {position!r} is none")
        self.results = sorted([*self.outputs, *self.updates])
        self.sequence = Launches(kernel, self.results, self.require_result) if self.is_function else None
        self.inputs = [i for i in range(len(self.types)) if i not in self.outputs]
        self.signature = self._signature()
        self.names = list(self.signature.parameters)
        self.defaults = {p.name: p.default for p in self.signature.parameters.values() if p.default is not p.empty}
        self.replays = steps is not None or self.is_function  # the gradient needs what arrays held before the launch
        self._check()

    def _types(self) -> Sequence[Any]:
        if self.is_core:
            return self.kernel.arguments  # type: ignore[no-any-return]
        if not self.is_function:
            return self.kernel.parameters[len(self.instance):]  # type: ignore[no-any-return]
        parameters = inspect.signature(self.kernel).parameters.values()
        return [ArrayParameter(p.name, NdarrayType()) for p in parameters]

    def _check(self) -> None:
        for position in self.results:
            if not 0 <= position < len(self.types) or not self.is_array(position):
                raise errors.BadArgument(
                    f"{self.title} has no array argument {position} (counted "
                    "from 0) that could be an output")
        if len(set(self.results)) != len(self.results):
            raise errors.BadArgument("an argument is an output or an update, not both")
        if not self.results:
            raise errors.BadArgument(
                f"the function of {self.title} has no output; name the "
                "arguments that the kernel writes in `outputs` or `updates`")

    def _signature(self) -> inspect.Signature:
        """Of the inputs."""
        if self.is_core:
            return inspect.Signature([inspect.Parameter(f"argument_{i}", inspect.Parameter.POSITIONAL_ONLY) for i in self.inputs])
        signature = inspect.signature(self.kernel) if self.is_function else self.kernel.signature
        parameters = list(signature.parameters.values())[len(self.instance):]
        return inspect.Signature([parameters[i].replace(annotation=inspect.Parameter.empty) for i in self.inputs])

    def is_scalar(self, position: int) -> bool:
        kind = self.types[position]
        return kind.rank < 0 if self.is_core else isinstance(kind, ScalarParameter)

    def is_number(self, position: int) -> bool:
        """Whether it is a scalar or vector."""
        return self.is_scalar(position) or not self.is_core and isinstance(self.types[position], VectorParameter)

    def is_array(self, position: int) -> bool:
        kind = self.types[position]
        return kind.rank >= 0 if self.is_core else isinstance(kind, ArrayParameter) and not kind.kind.members

    def takes_tensor(self, position: int) -> bool:
        return self.is_array(position) or not self.is_core and isinstance(self.types[position], TemplateParameter)

    def needs_grad(self, position: int) -> bool:
        """Whether the kernel takes no array without a gradient."""
        return not self.is_core and self.is_array(position) and bool(self.types[position].kind.needs_grad)

    def components(self, position: int) -> tuple[int, ...]:
        """The extents of an element, the last ones of the tensor."""
        return () if self.is_core or not self.is_array(position) else self.types[position].kind.element_shape or ()

    def components_like(self, position: int, like: Any) -> tuple[int, ...]:
        """The same, where the kernel takes elements of any extents: those of another tensor."""
        count = 0 if self.is_core else self.types[position].kind.element_dim or 0
        return self.components(position) or tuple(like.shape[like.ndim - count:])

    def whole_shape(self, position: int, shape: Sequence[int]) -> tuple[int, ...]:
        """That of the tensor, of a shape that may count elements."""
        shape, components = tuple(shape), self.components(position)
        ndim = None if self.is_core else self.types[position].kind.ndim
        ends = bool(components) and shape[-len(components):] == components
        if not components or (ends and (ndim is None or len(shape) == ndim + len(components))):
            return shape
        if ndim is None or len(shape) == ndim:
            return shape + components
        raise errors.BadArgument(
            f"argument {position} (counted from 0) of kernel `{self.name}` has {ndim} dimensions of elements of shape "
            f"{components}; `outputs` gives it the shape {shape}: give {shape[:ndim]} or {shape[:ndim] + components}")

    def indices_of(self, position: int, tensor: Any) -> tuple[int, ...]:
        """The shape of a tensor without that of an element."""
        components = len(self.components(position))
        if not self.is_core and self.is_array(position):
            components = components or self.types[position].kind.element_dim or 0
        return tuple(tensor.shape[:tensor.ndim - components])

    def arguments(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The inputs in order."""
        if not named and len(given) == len(self.inputs):
            return tuple(given)
        values = dict(zip(self.names, given))
        wrong = [name for name in named if name not in self.names or name in values]
        values.update(named)
        absent = [name for name in self.names if name not in values and name not in self.defaults]
        if len(given) > len(self.inputs) or wrong or absent:
            what = f"`{(wrong or absent)[0]}` is {'given twice or unknown' if wrong else 'missing'}" if wrong or absent else "too many"
            raise TypeError(f"{self.name}() takes {len(self.inputs)} arguments ({len(given) + len(named)} given): {what}")
        return tuple(values[name] if name in values else self.defaults[name] for name in self.names)

    def place(self, inputs: Sequence[Any], outputs: Mapping[int, Any]) -> list[Any]:
        """All arguments, in the order of the kernel."""
        values = dict(zip(self.inputs, inputs))
        return [outputs[i] if i in outputs else values[i] for i in range(len(self.types))]

    def prepared(self, values: Sequence[Any], own: Any = None) -> tuple[Any, Sequence[Any], Any, list[Callable[[], None]]]:
        """(what launches, its arguments, what it has found elsewhere, what happens after a launch), or with what another
        launch has found. A kernel that writes an input is refused."""
        if self.sequence is not None:
            return self.sequence, values, None, []   # which looks at each of its launches
        core, passed, found, after = ((self.kernel, values, None, []) if self.is_core else
                                      self.kernel.prepared((*self.instance, *values), own))
        for k in () if core is None else written(core):
            for i, value in enumerate(values):
                if value is passed[k]:
                    self.require_result(i)
        return core, passed, found, after

    def require_result(self, position: int) -> None:
        """Of an argument that is written."""
        if position not in self.results:
            raise errors.BadArgument(
                f"{self.title} writes argument {position} (counted from 0), which the function of {self.library} takes for an "
                "input; name it in `outputs`, or in `updates` if the kernel also reads what it held before")


class Constants:
    """What kernels find elsewhere than in their arguments, for calls that know nothing of each other: it stays what it was at
    the first one."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning
        self.known: dict[int, tuple[Any, list[int], Any]] = {}

    def check(self, core: Any, own: Any, fields: Sequence[_core.Array]) -> None:
        versions = [field.version for field in fields]
        if own is not None and own.key:
            self.refuse("draws random numbers; pass them as an argument")
        _, before, _ = self.known.setdefault(id(core), (core, versions, own and own.seen))
        if versions != before or not all(seen.holds() for _, _, seen in self.known.values() if seen is not None):
            self.refuse("reads a field or a member of an object that has changed since the first call; pass it as an argument")

    def refuse(self, text: str) -> None:
        raise errors.CannotReplay(f"{self.beginning} {text}")
