"""The steps of a program. Each is made by `random(rng)` and runs as `real(world)` and `model(world)`."""

import numpy as np

from steps import members
from steps.duals import Dual, constants
from steps.kernels import MODELS
from steps.world import SHAPES

SCALARS, ALL = ("a", "b", "n", "p"), tuple(SHAPES)
KINDS = []


def step(weight):
    """Puts a class of steps among those that programs are made of, that often."""
    def add(cls):
        KINDS.extend([cls] * weight)
        return cls
    return add


class Step:
    #: Whether FwdMode has the same derivative.
    forward = True
    #: Whether the thread has to make it that records.
    launches = False

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


def _number(rng):
    return float(np.round(rng.uniform(-1.5, 1.5), 3))


def _index(rng, name, count=None):
    return tuple(int(rng.integers(n)) for n in SHAPES[name][:count])


def _indices(name):
    """How many dimensions are not components."""
    return 1


@step(10)
class Launch(Step):
    launches = True

    def __init__(self, rng):
        self.name, self.k = str(rng.choice(list(MODELS))), _number(rng)

    def real(self, w):
        w.kernels.all[self.name](self.k)

    def model(self, w):
        MODELS[self.name](w, self.k)


@step(3)
class Element(Step):
    """x[i] = value, of numbers, vectors and matrices."""

    def __init__(self, rng):
        self.name = str(rng.choice(ALL))
        self.index = _index(rng, self.name, 1)
        self.values = np.round(rng.uniform(-1.5, 1.5, SHAPES[self.name][1:]), 3)

    def real(self, w):
        value = self.values.tolist() if self.values.shape else float(self.values)
        getattr(w, self.name)[self.index] = value

    def model(self, w):
        array = getattr(w, self.name)
        array[self.index] = constants(self.values) if self.values.shape else Dual(self.values)


@step(3)
class Augmented(Step):
    """x[i] += value: what it reads is a constant."""

    def __init__(self, rng):
        self.name, self.k = str(rng.choice(SCALARS)), _number(rng)
        self.index = _index(rng, self.name)

    def real(self, w):
        getattr(w, self.name)[self.index] += self.k

    def model(self, w):
        array = getattr(w, self.name)
        array[self.index] = Dual(array[self.index].value + self.k)


@step(3)
class Component(Step):
    """x[i][k] = value, also by the name of the component."""

    def __init__(self, rng):
        self.name, self.k, self.named = str(rng.choice(("v", "m", "q"))), _number(rng), bool(rng.integers(2))
        self.index = _index(rng, self.name)

    def real(self, w):
        element = getattr(w, self.name)[self.index[0]]
        if self.named and len(self.index) == 2:
            setattr(element, "xy"[self.index[1]], self.k)
        else:
            element[self.index[1:]] = self.k

    def model(self, w):
        getattr(w, self.name)[self.index] = Dual(self.k)


@step(1)
class Row(Step):
    """x[i][k, :] = values of a matrix."""

    def __init__(self, rng):
        self.index, self.values = _index(rng, "m", 2), [_number(rng), _number(rng)]

    def real(self, w):
        w.m[self.index[0]][self.index[1], :] = self.values

    def model(self, w):
        w.m[self.index] = constants(self.values)


@step(1)
class Struct(Step):
    """s[i] = a whole struct, or members of one."""

    def __init__(self, rng):
        self.i, self.k, self.values = int(rng.integers(2)), _number(rng), [_number(rng), _number(rng)]
        self.whole = bool(rng.integers(2))

    def real(self, w):
        if self.whole:
            w.s[self.i] = {"p": self.k, "q": self.values}
        else:
            w.s[self.i].p = self.k
            w.s[self.i].q[1] = self.k

    def model(self, w):
        w.p[self.i] = Dual(self.k)
        if self.whole:
            w.q[self.i] = constants(self.values)
        else:
            w.q[self.i, 1] = Dual(self.k)


@step(2)
class Whole(Step):
    """fill and from_numpy."""

    def __init__(self, rng):
        self.name, self.k, self.fills = str(rng.choice(ALL)), _number(rng), bool(rng.integers(2))

    def real(self, w):
        array = getattr(w, self.name)
        if self.fills:
            array.fill(self.k)
        else:
            array.from_numpy(np.full(SHAPES[self.name], self.k))

    def model(self, w):
        setattr(w, self.name, constants(np.full(SHAPES[self.name], self.k)))


@step(1)
class Copy(Step):
    """copy_from, which has a derivative."""

    launches = True

    def __init__(self, rng):
        self.names = [str(n) for n in rng.choice(("a", "b"), 2, replace=False)]

    def real(self, w):
        getattr(w, self.names[0]).copy_from(getattr(w, self.names[1]))

    def model(self, w):
        setattr(w, self.names[0], getattr(w, self.names[1]).copy())


@step(2)
class Carry(Step):
    """A number that goes through the host."""

    def __init__(self, rng):
        self.names = [str(n) for n in rng.choice(SCALARS, 2)]
        self.places = [_index(rng, n) for n in self.names]

    def real(self, w):
        source, target = (getattr(w, n) for n in self.names)
        target[self.places[1]] = source[self.places[0]]

    def model(self, w):
        source, target = (getattr(w, n) for n in self.names)
        target[self.places[1]] = Dual(source[self.places[0]].value)


@step(1)
class Loss(Step):
    """loss[None] = value"""

    launches = True

    def __init__(self, rng):
        self.k = _number(rng)

    def real(self, w):
        w.loss[None] = self.k

    def model(self, w):
        w.loss = Dual(self.k)


@step(2)
class Custom(Step):
    """b = a * a with a gradient of the user's, which is `factor` times the value of `a`."""

    forward, launches = False, True

    def __init__(self, rng):
        self.factor = float(rng.integers(1, 5))

    def real(self, w):
        w.kernels.squared(self.factor)

    def model(self, w):
        for i in range(3):
            w.b[i] = (w.a[i] * w.a[i]).scaled(self.factor / 2)


@step(4)
class Member(Step):
    """object.name = value"""

    def __init__(self, rng):
        self.name = str(rng.choice(list(members.MEMBERS)))
        self.number = int(rng.integers(len(members.MEMBERS[self.name][0])))

    def real(self, w):
        members.put(w, self.name, self.number)

    def model(self, w):
        w.members[self.name] = self.number


@step(1)
class Returned(Step):
    """a[i] = what a kernel returns"""

    launches = True

    def __init__(self, rng):
        self.i, self.k = int(rng.integers(3)), _number(rng)

    def real(self, w):
        w.a[self.i] = w.kernels.total(self.k)

    def model(self, w):
        w.a[self.i] = Dual(sum(w.a[i].value * w.b[i].value for i in range(3)) * self.k)


@step(1)
class Sparse(Step):
    """An element of a sparse field."""

    def __init__(self, rng):
        self.i, self.k = int(rng.integers(4)), _number(rng)

    def real(self, w):
        w.t[self.i] = self.k

    def model(self, w):
        w.t[self.i] = Dual(self.k)
        w.active.add(self.i)
