"""The arrays of all programs: as fields and ndarrays, and as arrays of `Dual`."""

import numpy as np

import costate as ti
from steps import members
from steps.duals import Dual, constants, slopes_of, values_of

#: Shapes, components after the indices.
SHAPES = {"a": (3,), "b": (3,), "n": (3,), "v": (2, 2), "m": (2, 2, 2), "p": (2,), "q": (2, 2)}

#: Numbers that the host has.
REGISTERS = 3


class Real:
    """Fields, an ndarray `n`, and a field `s` of structs with the members `p` and `q`."""

    def __init__(self):
        options = {"needs_grad": True, "needs_dual": True}
        self.a, self.b = (ti.field(ti.f64, shape=3, **options) for _ in range(2))
        self.n = ti.ndarray(ti.f64, shape=3, **options)
        self.v = ti.Vector.field(2, ti.f64, shape=2, **options)
        self.m = ti.Matrix.field(2, 2, ti.f64, shape=2, **options)
        self.s = ti.types.struct(p=ti.f64, q=ti.types.vector(2, ti.f64)).field(shape=2, **options)
        self.p, self.q = self.s.p, self.s.q
        self.loss = ti.field(ti.f64, shape=(), **options)
        self.t = ti.field(ti.f64, **options)
        self.bitmasked = ti.root.bitmasked(ti.i, 4)
        self.bitmasked.place(self.t, self.t.grad, self.t.dual)
        from steps.kernels import Kernels, Object, Parameters
        self.kernels = Kernels(self)
        self.object = Object(self)
        self.parameters = Parameters(self.a, self.n, 1.0)

    def start(self, values):
        for name, one in values.items():
            getattr(self, name).from_numpy(one)
            getattr(self, name).grad.fill(0)
        self.loss.fill(0)
        self.host = [0.5] * REGISTERS
        self.bitmasked.deactivate_all()
        for name in members.MEMBERS:
            members.put(self, name, 0)


class Model:
    """The same: each element of a start is a parameter."""

    def __init__(self, values):
        self.count = sum(one.size for one in values.values())
        parameters = iter(np.eye(self.count))
        for name, one in values.items():
            array = constants(one)
            for index in np.ndindex(one.shape):
                array[index].slopes = next(parameters)
            setattr(self, name, array)
        self.loss = Dual(0)
        self.host = [Dual(0.5)] * REGISTERS
        self.replaced = {}    # members that are numbers of the host
        self.t, self.active = constants(np.zeros(4)), set()
        self.members = dict.fromkeys(members.MEMBERS, 0)

    def begin_again(self, before):
        """The elements that are others than before are parameters, with the values that they have."""
        parameters = iter(np.eye(self.count))
        for name, old in before.items():
            array = getattr(self, name)
            for index in np.ndindex(old.shape):
                slopes = next(parameters)
                if array[index] is not old[index]:
                    array[index] = Dual(array[index].value, slopes)

    def member(self, name):
        if name in self.replaced:
            return self.replaced[name]
        return members.MEMBERS[name][0][self.members[name]]

    def gradients(self, values):
        """Of the loss, by name."""
        slopes, position, result = slopes_of(self.loss, self.count), 0, {}
        for name, one in values.items():
            result[name] = slopes[position:position + one.size].reshape(one.shape)
            position += one.size
        return result

    def values(self):
        return {name: values_of(getattr(self, name)) for name in (*SHAPES, "t")}
