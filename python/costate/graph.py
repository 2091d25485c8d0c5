"""`ti.graph`: launches that are put together first and run later, with arguments by name."""

from __future__ import annotations as _annotations

from enum import Enum
from typing import Any as _Any

from costate.absent import message
from costate.errors import QuadrantsRuntimeError
from costate.lang.base.streams import graph_parallel as parallel, graph_parallel_context as parallel_context  # noqa: F401
from costate.lang.launch.kernel import Kernel as _Kernel
from costate.lang.syntax.graph_loops import do_while  # noqa: F401


class ArgKind(Enum):
    """What an argument is."""

    SCALAR = "SCALAR"
    NDARRAY = "NDARRAY"
    MATRIX = "MATRIX"
    TEXTURE = "TEXTURE"
    RWTEXTURE = "RWTEXTURE"


class Arg:
    """An argument of a graph; `Graph.run` gives its value."""

    def __init__(self, tag: ArgKind, name: str, dtype: _Any = None, ndim: int = 0, field_dim: _Any = None, element_shape: _Any = (),
                 shape: _Any = (), channel_format: _Any = None, num_channels: _Any = None) -> None:
        if tag in (ArgKind.TEXTURE, ArgKind.RWTEXTURE):
            raise QuadrantsRuntimeError(f"`{name}` is a texture, which kernels do not have; pass an "
                                        "ndarray")
        self.tag, self.name, self.dtype, self.ndim = tag, name, dtype, ndim


class Sequential:
    """Launches one after the other."""

    def __init__(self) -> None:
        self.nodes: list[tuple[_Kernel, tuple[_Any, ...]]] = []

    def dispatch(self, kernel: _Kernel, *args: _Any) -> None:
        """Adds a launch; its arguments are `Arg`s, or lists of them for vectors."""
        self.nodes.append((kernel, args))

    def append(self, node: Sequential) -> None:
        """Adds a sequence."""
        self.nodes.extend(node.nodes)


class GraphBuilder(Sequential):
    """`dispatch(kernel, *args)` for each launch, then `compile()`."""

    def create_sequential(self) -> Sequential:
        return Sequential()

    def compile(self) -> Graph:
        return Graph(list(self.nodes))


class Graph:
    """The launches of a builder."""

    def __init__(self, nodes: list[tuple[_Kernel, tuple[_Any, ...]]]) -> None:
        self.nodes = nodes

    def run(self, args: dict[str, _Any]) -> None:
        """Launches all, with the arguments in a dictionary by their names."""
        for kernel, given in self.nodes:
            kernel(*[_value(one, args) for one in given])


def _value(arg: _Any, args: dict[str, _Any]) -> _Any:
    if isinstance(arg, (list, tuple)):
        return [_value(one, args) for one in arg]
    if not isinstance(arg, Arg):
        return arg
    if arg.name not in args:
        raise QuadrantsRuntimeError(f"the graph has an argument `{arg.name}`, which `run` was "
                                    f"not given; it was given {list(args)}")
    return args[arg.name]


def __getattr__(name: str) -> None:
    raise AttributeError(message("costate.graph", name))
