"""`arch=ti.python`: kernels as plain Python give what compiled ones give."""

import dataclasses
import sys
import traceback

import numpy as np
import pytest

import costate as ti


def _results(program):
    """What a program gives compiled and as plain Python."""
    found = []
    for arch in (ti.cpu, ti.python):
        ti.init(arch=arch)
        found.append(program())
    return found


def fields():
    x, v = ti.field(ti.f32, (3, 2)), ti.Vector.field(2, ti.f32, 3)
    count, o = ti.field(ti.i32, ()), ti.field(ti.i32, 4, offset=-2)

    @ti.kernel
    def run(n: ti.i32) -> ti.f32:
        total = 0.0
        ti.loop_config(serialize=True)
        for i, j in x:
            x[i, j] += i * 10 + j
        for I in ti.grouped(x):
            total += x[I]
        for i in range(n):
            u = v[i % 3]
            u[0] = 100       # a copy
            v[i % 3] += ti.Vector([1.0, 2.0]) * i
            count[None] += 2
        for i in ti.static(range(2)):
            v[i].x += 5
            v[i][1] -= 1
        for i in o:
            o[i] = i
        return total

    total = run(5)
    return total, x.to_numpy().tolist(), v.to_numpy().tolist(), count[None], o.to_numpy().tolist()


def atomics():
    x, v, s = ti.field(ti.i32, 4), ti.Vector.field(2, ti.i32, 2), ti.field(ti.i32, ())
    old = ti.field(ti.i32, 8)

    @ti.kernel
    def run():
        for i in range(1):
            old[0] = ti.atomic_add(x[0], 5)
            old[1] = ti.atomic_sub(x[0], 2)
            old[2] = ti.atomic_max(x[0], 7)
            old[3] = ti.atomic_min(s[None], -4)
            old[4] = ti.atomic_or(x[1], 6)
            old[5] = ti.atomic_xor(x[1], 2)
            ti.atomic_add(v[1], ti.Vector([1, 2]))
            ti.atomic_add(v[1][0], 4)
            local = 3
            old[6] = ti.atomic_add(local, 4)
            old[7] = local

    run()
    return [a.to_numpy().tolist() for a in (x, v, s, old)]


def funcs():
    @ti.func
    def change(a, b: ti.template(), c: ti.f32):
        a += 1
        b[1] += a
        return a * 2, b[0] + c

    @ti.func
    def early(n):
        if n > 2:
            return 1
        return 2

    @ti.kernel
    def run(w: ti.math.vec2, n: ti.template()) -> ti.types.vector(6, ti.f32):
        u, k = ti.Vector([1.0, 2.0]), 3
        p, q = change(k, u, 0.5)
        m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]]) @ u
        for i in ti.static(range(n)):
            m += i
        if ti.static(n > 2):
            m *= 2
        return ti.Vector([p, q, u[1], m.norm(), early(k) + early(1), w.dot(m) if k == 3 else 0.0])

    return [round(x, 3) for x in run([1, 2], 3)]


def numbers():
    @ti.kernel
    def run(a: ti.f32, n: ti.i32) -> (ti.f32, ti.i32, ti.f32):
        b: ti.i32 = 7
        c = n
        while c > 1:
            c //= 2
            if c == 3:
                break
        for i in range(10):
            if i % 2:
                continue
            b += i
        x = ti.sin(a) + ti.max(1, 2.5) + ti.select(n > 3, 1.0, 2.0) + ti.math.clamp(a, 0, 1) + abs(-a) + 7 // -2 + n / 2
        return x, b + c + ti.cast(2.9, ti.i32), a

    return [round(x, 4) for x in run(0.1, 14)]


def structs():
    @ti.dataclass
    class Ball:
        mass: ti.f32
        at: ti.math.vec2

        @ti.func
        def weight(self):
            return self.mass * 2

    balls, total = Ball.field(shape=3), ti.field(ti.f32, ())

    @ti.kernel
    def run():
        for i in balls:
            balls[i].mass = i
            balls[i].at = [i, 2 * i]
            balls[i].at[0] += 7
            copy = balls[i]
            copy.mass = 1000
            total[None] += balls[i].weight() + Ball(mass=2, at=ti.math.vec2(0)).weight()

    run()
    return balls.mass.to_numpy().tolist(), balls.at.to_numpy().tolist(), total[None]


def objects():
    @ti.data_oriented
    class Solver:
        def __init__(self):
            self.n, self.y = 3, ti.field(ti.i32, 3)

        @ti.kernel
        def run(self, m: ti.i32) -> ti.i32:
            for i in self.y:
                self.y[i] = self.helper(i) * m
            return self.n

        @ti.func
        def helper(self, i):
            return i + self.n

    @dataclasses.dataclass(frozen=True)
    class Both:
        a: ti.types.ndarray()
        k: ti.i32

    @ti.kernel
    def fill(both: Both):
        for i in both.a:
            both.a[i] = i + both.k

    solver, both = Solver(), Both(ti.ndarray(ti.i32, 3), 4)
    fill(both)
    return solver.run(2), solver.y.to_numpy().tolist(), both.a.to_numpy().tolist()


def arrays():
    torch = pytest.importorskip("torch")
    a, t, vectors = np.zeros((2, 3), np.float32), torch.zeros(4, dtype=torch.float64), np.ones((2, 3), np.float32)

    @ti.kernel
    def run(x: ti.types.ndarray(), y: ti.types.ndarray(ndim=1), z: ti.types.ndarray(dtype=ti.math.vec3)):
        for i, j in ti.ndrange(x.shape[0], (1, x.shape[1])):
            x[i, j] = i + 10 * j
        for i in y:
            y[i] += i
        for i in z:
            z[i] *= 2 + i

    run(a, t, vectors)
    return a.tolist(), t.tolist(), vectors.tolist()


def quotients():
    @ti.kernel
    def run(a: ti.i32, b: ti.i32, c: ti.f32) -> (ti.i32, ti.i32, ti.i32, ti.f32, ti.f32):
        return ti.raw_div(a, b), ti.raw_mod(a, b), ti.raw_div(-9, 4) * 10 + ti.raw_mod(-9, 4), ti.raw_div(c, 2.0), ti.raw_mod(c, 2.0)

    return [run(a, b, -2.5) for a in (-7, 7) for b in (-2, 2)]


@pytest.mark.parametrize("program", [fields, atomics, funcs, numbers, structs, objects, arrays, quotients], ids=lambda p: p.__name__)
def test_plain_python_gives_the_same(program):
    compiled, plain = _results(program)
    assert compiled == plain


def test_what_debuggers_see():
    ti.init(arch=ti.python)
    x, seen = ti.field(ti.f32, 3), []

    @ti.func
    def inner(i):
        seen.append((sys._getframe().f_lineno, i))
        return i

    @ti.kernel
    def run():
        for i in x:
            x[i] = inner(i)
        y = x[0] / 0

    first = run.function.__code__.co_firstlineno
    with pytest.raises(ZeroDivisionError) as error:
        run()
    assert [i for _, i in seen] == [0, 1, 2] and seen[0][0] == inner.function.__code__.co_firstlineno + 2
    frame = traceback.extract_tb(error.value.__traceback__)[-1]
    assert (frame.filename, frame.lineno, frame.name) == (__file__, first + 4, "run")


def test_names_of_outside_are_those_of_now():
    ti.init(arch=ti.python)
    factor = 2

    @ti.kernel
    def run() -> ti.i32:
        return factor

    assert run() == 2
    factor = 3
    assert run() == 3


def test_derivatives_are_refused():
    ti.init(arch=ti.python)
    x, y = ti.field(ti.f32, 3, needs_grad=True, needs_dual=True), ti.field(ti.f32, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def run():
        for i in x:
            y[None] += x[i]

    def tape():
        with ti.ad.Tape(y):
            run()

    def forward():
        with ti.ad.FwdMode(y, x, seed=[1, 1, 1]):
            run()

    for use in (run.grad, tape, forward):
        with pytest.raises(ti.QuadrantsRuntimeError, match="not possible with `arch=ti.python`"):
            use()
    run()


def test_arguments_are_checked():
    ti.init(arch=ti.python)

    @ti.kernel
    def run(n: ti.i32, x: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        x[0] = n

    for n, x in ((1.5, np.zeros(3, np.float32)), (1, np.zeros(3)), (1, np.zeros((3, 3), np.float32)), (1, 3)):
        with pytest.raises(ti.QuadrantsRuntimeTypeError):
            run(n, x)


def test_what_python_cannot_do_is_refused():
    ti.init(arch=ti.python)
    sparse = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).place(sparse)
    x = ti.field(ti.f32, (2, 2))

    @ti.func
    def assigns(a: ti.template()):
        a = 3

    @ti.kernel
    def by_reference():
        b = 1
        assigns(b)

    @ti.kernel
    def cells():
        for i in sparse:
            sparse[i] = 1

    @ti.kernel
    def one_variable():
        for i in x:
            x[i] = 1

    @ti.kernel
    def decomposes():
        u, sigma, v = ti.svd(ti.Matrix([[1.0, 2.0], [3.0, 4.0]]))

    for kernel, text in ((decomposes, "only possible in a kernel, and not with `arch=ti.python`"), (by_reference, "`a` is a `ti.template\\(\\)` that the function assigns"),
                         (cells, "a loop over the cells of a sparse field"), (one_variable, "one loop variable for 2 dim")):
        with pytest.raises((ti.QuadrantsRuntimeError, ti.QuadrantsSyntaxError), match=text):
            kernel()
