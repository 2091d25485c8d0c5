"""The arrays of all programs: as fields and ndarrays, and as arrays of `Dual`."""

import numpy as np

import costate as ti
from steps.duals import Dual, constants, slopes_of, values_of

#: Shapes, components behind the indices.
SHAPES = {"a": (3,), "b": (3,), "n": (3,), "v": (2, 2), "m": (2, 2, 2), "p": (2,), "q": (2, 2)}


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
        from steps.kernels import Kernels
        self.kernels = Kernels(self)

    def start(self, values):
        for name, one in values.items():
            getattr(self, name).from_numpy(one)
            getattr(self, name).grad.fill(0)
        self.loss.fill(0)


class Model:
    """The same: each element of a start is a parameter."""

    def __init__(self, values):
        self.count = sum(one.size for one in values.values())
        position = 0
        for name, one in values.items():
            array = constants(one)
            for index in np.ndindex(one.shape):
                slopes = np.zeros(self.count)
                slopes[position] = 1
                array[index] = Dual(one[index], slopes)
                position += 1
            setattr(self, name, array)
        self.loss = Dual(0)

    def gradients(self, values):
        """Of the loss, by name."""
        slopes, position, result = slopes_of(self.loss, self.count), 0, {}
        for name, one in values.items():
            result[name] = slopes[position:position + one.size].reshape(one.shape)
            position += one.size
        return result

    def values(self):
        return {name: values_of(getattr(self, name)) for name in SHAPES}
