"""`ti.graph`: launches that are put together first and run later, with arguments by name."""

from enum import Enum

from costate.absent import message
from costate.errors import QuadrantsRuntimeError
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

    def __init__(self, tag, name, dtype=None, ndim=0, field_dim=None, element_shape=(), shape=(), channel_format=None,
                 num_channels=None):
        if tag in (ArgKind.TEXTURE, ArgKind.RWTEXTURE):
            raise QuadrantsRuntimeError(f"`{name}` is a texture, which kernels do not have; pass an "
                                        "ndarray")
        self.tag, self.name, self.dtype, self.ndim = tag, name, dtype, ndim


class Sequential:
    """Launches one after the other."""

    def __init__(self):
        self.nodes = []

    def dispatch(self, kernel, *args):
        """Adds a launch; its arguments are `Arg`s, or lists of them for vectors."""
        self.nodes.append((kernel, args))

    def append(self, node):
        """Adds a sequence."""
        self.nodes.extend(node.nodes)


class GraphBuilder(Sequential):
    """`dispatch(kernel, *args)` for each launch, then `compile()`."""

    def create_sequential(self):
        return Sequential()

    def compile(self):
        return Graph(list(self.nodes))


class Graph:
    """The launches of a builder."""

    def __init__(self, nodes):
        self.nodes = nodes

    def run(self, args):
        """Launches all, with the arguments in a dictionary by their names."""
        for kernel, given in self.nodes:
            kernel(*[_value(one, args) for one in given])


def _value(arg, args):
    if isinstance(arg, (list, tuple)):
        return [_value(one, args) for one in arg]
    if not isinstance(arg, Arg):
        return arg
    if arg.name not in args:
        raise QuadrantsRuntimeError(f"the graph has an argument `{arg.name}`, which `run` was "
                                    f"not given; it was given {list(args)}")
    return args[arg.name]


def __getattr__(name):
    raise AttributeError(message("costate.graph", name))
