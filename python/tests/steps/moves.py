"""The steps of a program. Each is made by `random(rng)` and runs as `real(world)` and `model(world)`."""

import numpy as np

import costate as ti
from steps import members
from steps.duals import Dual, constants
from steps.kernels import MODELS
from steps.world import REGISTERS, SHAPES

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


def _register(rng):
    return int(rng.integers(REGISTERS))


def _argument(rng):
    """A number, or the name of one that the host has."""
    return f"h{_register(rng)}" if rng.random() < 0.4 else _number(rng)


def _given(w, argument):
    return w.host[int(argument[1:])] if isinstance(argument, str) else argument


@step(10)
class Launch(Step):
    launches = True

    def __init__(self, rng):
        self.name, self.k = str(rng.choice(list(MODELS))), _argument(rng)

    def real(self, w):
        w.kernels.all[self.name](_given(w, self.k))

    def model(self, w):
        MODELS[self.name](w, _given(w, self.k))


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
    """x[i] += value"""

    def __init__(self, rng):
        self.name, self.k = str(rng.choice(SCALARS)), _number(rng)
        self.index = _index(rng, self.name)

    def real(self, w):
        getattr(w, self.name)[self.index] += self.k

    def model(self, w):
        array = getattr(w, self.name)
        array[self.index] = array[self.index] + self.k


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
        target[self.places[1]] = source[self.places[0]]


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
        w.replaced.pop(self.name, None)


@step(1)
class Returned(Step):
    """a[i] = what a kernel returns"""

    launches = True

    def __init__(self, rng):
        self.i, self.k = int(rng.integers(3)), _argument(rng)

    def real(self, w):
        w.a[self.i] = w.kernels.total(_given(w, self.k))

    def model(self, w):
        w.a[self.i] = _total(w, _given(w, self.k))


def _total(w, k):
    return sum(w.a[i] * w.b[i] for i in range(3)) * k


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


# -- numbers of the host, which carry derivatives ---------------------------------------


@step(5)
class Read(Step):
    """h = x[i], a number or a component"""

    launches = True

    def __init__(self, rng):
        self.name, self.register = str(rng.choice(ALL)), _register(rng)
        self.index = _index(rng, self.name)

    def real(self, w):
        element = getattr(w, self.name)[self.index[0]]
        w.host[self.register] = element[self.index[1:]] if len(self.index) > 1 else element

    def model(self, w):
        w.host[self.register] = getattr(w, self.name)[self.index]


@step(3)
class Result(Step):
    """h = what a kernel returns, a number or a component"""

    launches = True

    def __init__(self, rng):
        self.register, self.k, self.component = _register(rng), _argument(rng), int(rng.integers(3))

    def real(self, w):
        k = _given(w, self.k)
        w.host[self.register] = w.kernels.total(k) if self.component == 2 else w.kernels.pair(k)[self.component]

    def model(self, w):
        k = _given(w, self.k)
        results = (w.a[0] * k).sin() if self.component == 0 else w.b[1] * k
        w.host[self.register] = _total(w, k) if self.component == 2 else results


OPERATIONS = {
    "sum": (lambda a, b, k: 0.5 * a + b * k, lambda a, b, k: a * 0.5 + b * k),
    "product": (lambda a, b, k: ti.sin(a * b), lambda a, b, k: (a * b).sin()),
    "sine": (lambda a, b, k: np.sin(k * a), lambda a, b, k: (a * k).sin()),
    "quotient": (lambda a, b, k: k / (1.5 + a ** 2), lambda a, b, k: a.quotient() * k),
    "vector": (lambda a, b, k: ti.Vector([a, k]).dot(ti.Vector([b, -b])) * 0.25, lambda a, b, k: (a * b + b * -k) * 0.25),
    "larger": (lambda a, b, k: max(a, b), lambda a, b, k: b if b.value > a.value else a),
    "condition": (lambda a, b, k: a if a > k else 1 - b, lambda a, b, k: a if a.value > k else b * -1 + 1),
    "constant": (lambda a, b, k: float(a) * k, lambda a, b, k: Dual(a.value * k)),
}


@step(4)
class Compute(Step):
    """h = a function of such numbers"""

    launches = True

    def __init__(self, rng):
        self.name, self.k = str(rng.choice(list(OPERATIONS))), _number(rng)
        self.registers = [_register(rng) for _ in range(3)]

    def _apply(self, w, function):
        target, a, b = self.registers
        w.host[target] = function(w.host[a], w.host[b], self.k)

    def real(self, w):
        self._apply(w, OPERATIONS[self.name][0])

    def model(self, w):
        self._apply(w, OPERATIONS[self.name][1])


@step(4)
class Write(Step):
    """x[i] = h or x[i] *= h, of numbers and components"""

    launches = True

    def __init__(self, rng):
        self.name, self.register, self.scales = str(rng.choice(ALL)), _register(rng), bool(rng.integers(2))
        self.index = _index(rng, self.name)

    def real(self, w):
        array, h = getattr(w, self.name), w.host[self.register]
        i, component = self.index[0], self.index[1:]
        if not component:
            array[i] = array[i] * h if self.scales else h
        elif self.scales:
            array[i][component] *= h
        else:
            array[i][component] = h

    def model(self, w):
        array, h = getattr(w, self.name), w.host[self.register]
        array[self.index] = array[self.index] * h if self.scales else h


@step(3)
class Group(Step):
    """Several elements from numbers: fill, from_numpy of a list, a vector, a struct"""

    launches = True

    def __init__(self, rng):
        self.how, self.k = str(rng.choice(("fill", "list", "vector", "struct"))), _number(rng)
        self.registers, self.i = [_register(rng) for _ in range(3)], int(rng.integers(2))

    def real(self, w):
        a, b, c = (w.host[r] for r in self.registers)
        if self.how == "fill":
            w.n.fill(a)
        elif self.how == "list":
            w.b.from_numpy([a, self.k, b])
        elif self.how == "vector":
            w.v[self.i] = ti.Vector([a, b]) * self.k
        else:
            w.s[self.i] = {"p": a, "q": [b, c]}

    def model(self, w):
        a, b, c = (w.host[r] for r in self.registers)
        if self.how == "fill":
            for i in range(3):
                w.n[i] = a
        elif self.how == "list":
            w.b[0], w.b[1], w.b[2] = a, Dual(self.k), b
        elif self.how == "vector":
            w.v[self.i, 0], w.v[self.i, 1] = a * self.k, b * self.k
        else:
            w.p[self.i], w.q[self.i, 0], w.q[self.i, 1] = a, b, c


@step(2)
class Vector(Step):
    """A kernel with a vector of numbers of the host as an argument"""

    launches = True

    def __init__(self, rng):
        self.registers, self.k = [_register(rng) for _ in range(2)], _argument(rng)

    def real(self, w):
        w.kernels.toward(ti.Vector([w.host[r] for r in self.registers]), _given(w, self.k))

    def model(self, w):
        k = _given(w, self.k)
        for i in range(2):
            for c, r in enumerate(self.registers):
                w.v[i, c] = w.v[i, c] + (w.host[r] + w.v[i, c] * -1) * k


@step(1)
class MemberNumber(Step):
    """The number of a dataclass that is an argument"""

    launches = True

    def __init__(self, rng):
        self.register = _register(rng)

    def real(self, w):
        w.parameters.k = w.host[self.register]

    def model(self, w):
        w.replaced["parameter k"] = w.host[self.register]
