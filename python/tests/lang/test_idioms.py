"""Ways of writing that programs of Taichi use."""

import math

import numpy as np
import pytest

import costate as ti


def test_matrix_literals_and_parts():
    m = ti.Matrix.field(3, 3, ti.f32, shape=())
    out = ti.Vector.field(3, ti.f32, shape=4)

    @ti.kernel
    def k():
        for _ in range(1):
            a = ti.Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]], ti.f32)
            a[0, :] = ti.Vector([10, 20, 30])
            a[1:, 0] = ti.Vector([-1.0, -2.0])
            row = a[2, :]
            row += 1
            v = ti.Vector([1.0, 2.0, 3.0])
            v.xy = v.yx
            v.z += 10
            w = v
            w *= 2
            b = m[None]
            b[0, 0] += 5
            out[0] = v
            out[1] = w
            out[2] = row
            out[3] = a[:, 0] + a[0, :]
            m[None] = a
            m[None][2, 1] = 100
            m[None][0, 0] += b[0, 0]

    k()
    assert out.to_numpy().tolist() == [[2, 1, 13], [4, 2, 26], [-1, 9, 10], [20, 19, 28]]
    assert m[None].to_list() == [[15, 20, 30], [-1, 5, 6], [-2, 100, 9]]


def test_functions_of_python_take_constant_vectors():
    d = ti.Vector([1, 2])

    @ti.kernel
    def k() -> ti.f32:
        return float(d).norm_sqr() + max(d) + len(d) + sum(d) + round(ti.Vector([1.6, 2])).x

    assert k() == 5 + 2 + 2 + 3 + 2


def test_comprehensions():
    x = ti.field(ti.f32, shape=4)
    fields = [ti.field(ti.i32, shape=2) for _ in range(3)]

    @ti.kernel
    def k() -> ti.f32:
        v = ti.Vector([x[i] * i for i in ti.static(range(4))])
        m = ti.Matrix([[i + j for j in range(2)] for i in range(2)])
        for n in ti.static(range(3)):
            for i in fields[n]:
                fields[n][i] = n * 10 + i
        for f, g in ti.static(zip(fields[:2], (5, 6))):
            f[0] += g
        return v.sum() + m[1, 1]

    x.from_numpy(np.arange(4, dtype=np.float32))
    assert k() == 14 + 2
    assert [f.to_numpy().tolist() for f in fields] == [[5, 1], [16, 11], [20, 21]]


def test_functions_take_functions_fields_and_defaults():
    x = ti.field(ti.f32, shape=3)

    @ti.func
    def double(v):
        return v * 2

    @ti.func
    def apply(f: ti.template(), v, times: ti.template() = 2):
        r = v
        for _ in ti.static(range(times)):
            r = f(r)
        return r

    @ti.func
    def nothing(v):
        v = 3

    @ti.func
    def pair(a, b=10):
        nothing(a)
        return a + b, ti.Vector([a, b])

    @ti.kernel
    def k() -> ti.f32:
        for i in x:
            x[i] = apply(double, 1.0 * i, times=3)
        s, v = pair(1)
        t, w = pair(b=2, a=3)
        return s + t + v.y + w.x

    assert k() == 11 + 5 + 10 + 3
    assert x.to_numpy().tolist() == [0, 8, 16]


def test_shapes():
    x = ti.field(ti.f32, shape=(3, 5))

    @ti.kernel
    def k(a: ti.types.ndarray()) -> ti.i32:
        s = 0
        for i, j in ti.ndrange(*x.shape):
            x[i, j] = i * x.shape[1] + j
        for d in ti.static(range(len(x.shape))):
            s += x.shape[d]
        n, m = a.shape
        return s * 100 + n * 10 + a.shape[1] + m

    assert k(ti.ndarray(ti.f32, shape=(2, 4))) == 800 + 20 + 8
    assert x[2, 4] == 14


def test_booleans():
    flag = ti.field(ti.u1, shape=4)
    out = ti.field(ti.i32, shape=4)

    @ti.kernel
    def k():
        for i in flag:
            flag[i] = i > 1
        for i in flag:
            if flag[i]:
                out[i] = 1
            if not flag[i] and i == 0:
                out[i] = 5
            big = out[i] > 3
            out[i] += big + 1

    k()
    assert out.to_numpy().tolist() == [7, 1, 2, 2]


def test_unsigned_numbers_wrap():
    out = ti.field(ti.u32, shape=3)

    @ti.kernel
    def k():
        a = ti.u32(0)
        out[0] = a - 1
        out[1] = ti.cast(-1, ti.u32) >> 28
        h = ti.u32(2166136261)
        for i in ti.static(range(4)):
            h = (h ^ ti.u32(i)) * ti.u32(16777619)
        out[2] = h

    k()
    h = 2166136261
    for i in range(4):
        h = (h ^ i) * 16777619 % 2**32
    assert out.to_numpy().tolist() == [2**32 - 1, 15, h]


def test_vector_conditions():
    @ti.kernel
    def k(a: ti.math.vec3, b: ti.math.vec3) -> ti.i32:
        r = 0
        if all(a == b):
            r += 1
        if any(a > b):
            r += 10
        if (a >= b).all():
            r += 100
        if not (a != b).any():
            r += 1000
        s = ti.select(a > b, a, b)
        return r + int(s.sum()) * 10000

    assert k([1, 2, 3], [1, 2, 3]) == 61101
    assert k([1, 5, 3], [1, 2, 4]) == 100010


def test_structs_of_arrays_in_closures():
    class Config:
        n = 4
        gravity = ti.Vector([0.0, -9.8])
        names = {"a": 2.0}

    config = Config()
    x = ti.Vector.field(2, ti.f32, shape=config.n)

    @ti.kernel
    def k():
        for i in range(config.n):
            x[i] += config.gravity * config.names["a"]

    k()
    assert x[3].y == pytest.approx(-19.6)


def test_inheritance():
    @ti.data_oriented
    class Base:
        def __init__(self):
            self.x = ti.field(ti.i32, shape=3)

        @ti.func
        def value(self, i):
            return i

        @ti.kernel
        def run(self):
            for i in self.x:
                self.x[i] = self.value(i)

    @ti.data_oriented
    class Child(Base):
        @ti.func
        def value(self, i):
            return i * 10

    a, b = Base(), Child()
    a.run(), b.run()
    assert a.x.to_numpy().tolist() == [0, 1, 2] and b.x.to_numpy().tolist() == [0, 10, 20]


def test_kernels_made_in_a_loop():
    results = []
    for n in range(3):
        x = ti.field(ti.i32, shape=())

        @ti.kernel
        def k():
            x[None] = n * 7

        k()
        results.append(x[None])
    assert results == [0, 7, 14]


def test_static_methods_of_classes():
    @ti.data_oriented
    class A:
        @staticmethod
        @ti.func
        def twice(v):
            return 2 * v

        @staticmethod
        @ti.kernel
        def k(v: ti.i32) -> ti.i32:
            return A.twice(v)

    assert A.k(4) == 8


def test_loop_hints():
    x = ti.field(ti.f32, shape=8)

    @ti.kernel
    def k():
        ti.loop_config(block_dim=64, parallelize=8)
        for i in x:
            x[i] += 1
        ti.block_local(x)
        for i in range(8):
            x[i] += 1
        ti.loop_config(serialize=True)
        for i in range(1, 8):
            x[i] = x[i - 1] + 1

    k()
    assert x.to_numpy().tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


def test_negative_numbers_and_precedence():
    @ti.kernel
    def k(a: ti.i32, b: ti.f32) -> ti.f32:
        return -a ** 2 + -b * 2 - (-a) // 2 + (-7) % 3 + a % -3

    assert k(5, 0.5) == -25 - 1 - (-5 // 2) + (-7) % 3 + 5 % -3


def test_large_and_small_constants():
    @ti.kernel
    def k() -> ti.f64:
        a = ti.cast(1 << 40, ti.i64)
        b = 1e-30
        return ti.cast(a, ti.f64) * b

    assert k() == pytest.approx((1 << 40) * 1e-30)


def test_game_of_life():
    n = 8
    alive, count = ti.field(ti.i32, shape=(n, n)), ti.field(ti.i32, shape=(n, n))

    @ti.func
    def neighbours(i, j):
        return sum([alive[(i + a) % n, (j + b) % n] for a in ti.static((-1, 0, 1))
                    for b in ti.static((-1, 0, 1)) if a != 0 or b != 0])

    @ti.kernel
    def step():
        for i, j in alive:
            count[i, j] = neighbours(i, j)
        for i, j in alive:
            c = count[i, j]
            alive[i, j] = 1 if c == 3 or (c == 2 and alive[i, j]) else 0

    board = np.zeros((n, n), np.int32)
    board[1, 2] = board[2, 3] = board[3, 1] = board[3, 2] = board[3, 3] = 1
    alive.from_numpy(board)
    for _ in range(4):
        step()
    assert (alive.to_numpy() == np.roll(board, (1, 1), (0, 1))).all()


def test_mandelbrot():
    n = 16
    pixels = ti.field(ti.f32, shape=(2 * n, n))

    @ti.func
    def complex_sqr(z):
        return ti.Vector([z[0]**2 - z[1]**2, z[1] * z[0] * 2])

    @ti.kernel
    def paint(t: float):
        for i, j in pixels:
            c = ti.Vector([-0.8, ti.cos(t) * 0.2])
            z = ti.Vector([i / n - 1, j / n - 0.5]) * 2
            iterations = 0
            while z.norm() < 20 and iterations < 50:
                z = complex_sqr(z) + c
                iterations += 1
            pixels[i, j] = 1 - iterations * 0.02

    paint(0.3)

    def expected(i, j):
        z, c, k = complex(i / n - 1, j / n - 0.5) * 2, complex(-0.8, math.cos(0.3) * 0.2), 0
        while abs(z) < 20 and k < 50:
            z, k = z * z + c, k + 1
        return 1 - k * 0.02
    found = pixels.to_numpy()
    wrong = sum(abs(found[i, j] - expected(i, j)) > 0.021 for i in range(2 * n) for j in range(n))
    assert wrong <= 2


def test_notebooks_and_exec():
    """Cells of a notebook register their text with linecache, as here."""
    import linecache
    text = "@ti.kernel\ndef cell(a: ti.i32) -> ti.i32:\n    return a + 1\n"
    linecache.cache["<ipython-input-1>"] = (len(text), None, text.splitlines(True), "<ipython-input-1>")
    space = {"ti": ti}
    exec(compile(text, "<ipython-input-1>", "exec"), space)
    assert space["cell"](1) == 2


def test_decorators_with_parentheses_and_docstrings():
    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        """Doubles.

        Over several lines.
        """
        # a comment
        return (a
                * 2)

    assert k(4) == 8 and k.__name__ == "k" and "Doubles" in k.__doc__


def test_returns_in_static_branches():
    @ti.func
    def f(v, mode: ti.template()):
        if ti.static(mode == 0):
            return v
        elif ti.static(mode == 1):
            return v * 10
        return v * 100

    @ti.kernel
    def k() -> ti.i32:
        return f(1, 0) + f(1, 1) + f(1, 2)

    assert k() == 111


def test_matrices_of_the_maths_module():
    @ti.kernel
    def k() -> ti.f32:
        m = ti.math.rotation2d(0.5)
        v = m @ ti.math.vec2(1, 0)
        c = ti.math.cmul(ti.Vector([1.0, 2.0]), ti.Vector([3.0, 4.0]))
        r = ti.math.refract(ti.math.vec2(0.6, -0.8), ti.math.vec2(0, 1), 0.5)
        t = (ti.math.translate(1.0, 2.0, 3.0) @ ti.math.vec4(0, 0, 0, 1)).z
        q = ti.math.rot_by_axis(ti.math.vec3(0, 0, 1), math.pi / 2) @ ti.math.vec4(1, 0, 0, 1)
        return v.y + c.x + r.x + t + q.xyz.norm() + ti.math.distance(v, v) + ti.math.eye(3).trace()

    assert k() == pytest.approx(math.sin(0.5) - 5 + 0.3 + 3 + 1 + 3, rel=1e-5)


def test_a_field_and_its_gradient_as_templates():
    x = ti.field(ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def add(a: ti.template(), b: ti.template()):
        for I in ti.grouped(a):
            a[I] += 2 * b[I]

    x.grad.fill(1)
    add(x, x.grad)
    assert x.to_numpy().tolist() == [2, 2, 2]


def test_nested_ternaries_and_chains():
    out = ti.field(ti.f32, shape=5)
    x = ti.field(ti.f32, shape=5)

    @ti.kernel
    def k():
        for i in out:
            out[i] = x[i] if i < 2 else (x[i - 1] * 2 if i < 4 else ti.sqrt(x[i]))

    x.from_numpy(np.array([1, 2, 3, 4, 25], np.float32))
    k()
    assert out.to_numpy().tolist() == [1, 2, 4, 6, 5]


def test_private_names_of_classes():
    @ti.data_oriented
    class Counter:
        def __init__(self):
            self.__n = 3

        @ti.func
        def __twice(self, x):
            return 2 * x

        @ti.kernel
        def k(self, __a: ti.i32) -> ti.i32:
            __b = __a + self.__n
            return self.__twice(__b)

    assert Counter().k(4) == 14
