"""What whole programs of Taichi and Quadrants rely on."""

import numpy as np
import pytest

import costate as ti


def test_a_tape_begins_with_a_loss_of_0():
    x = ti.field(ti.f32, shape=(), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    x[None] = 3

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    for _ in range(3):
        with ti.ad.Tape(loss):
            square()
        assert (loss[None], x.grad[None]) == (9, 6)


def test_a_tape_begins_with_an_ndarray_of_0():
    x = ti.ndarray(ti.f32, shape=2, needs_grad=True)
    loss = ti.ndarray(ti.f32, shape=1, needs_grad=True)
    x.from_numpy(np.array([1, 2], np.float32))
    loss.fill(100)

    @ti.kernel
    def total(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in x:
            loss[0] += x[i] ** 3

    with ti.ad.Tape(loss):
        total(x, loss)
    assert loss[0] == 9
    assert x.grad.to_numpy().tolist() == [3, 12]


def test_a_field_prints_its_elements():
    x = ti.field(ti.i32, shape=3)
    x.from_numpy(np.arange(3, dtype=np.int32))
    assert str(x) == "[0 1 2]"
    assert str(ti.field(ti.f32)) == "<Field: Definition of this field is incomplete>"


def test_fields_of_structs_by_their_members():
    vec2 = ti.types.vector(2, ti.f32)
    sources = ti.Struct.field({"pos": vec2, "q": ti.f32}, shape=3)

    @ti.kernel
    def place():
        for i in sources:
            sources[i].pos = ti.Vector([i, 2 * i])
            sources[i].q = sources[i].pos.sum()

    place()
    assert sources.q.to_numpy().tolist() == [0, 3, 6]
    assert sources[2].pos.to_list() == [2, 4]


@pytest.mark.parametrize("name, instead", [("GUI", "imwrite"), ("ui", "imwrite"), ("Texture", "field"),
                                           ("get_addr", "index")])
def test_names_that_are_not_there_name_another_way(name, instead):
    with pytest.raises(AttributeError, match=f"no attribute `{name}`: .*{instead}"):
        getattr(ti, name)


def test_a_name_that_is_not_there_is_named_in_a_kernel():
    x = ti.field(ti.f32, shape=2)

    @ti.kernel
    def k():
        a = ti.get_addr(x, [0])

    with pytest.raises(ti.CompilationError, match=r"get_addr(.|\n)*\^(.|\n)*pass the index"):
        k()


def test_errors_of_syntax_have_a_text_in_a_traceback():
    import traceback

    @ti.kernel
    def k():
        with open("a"):
            pass

    with pytest.raises(ti.QuadrantsSyntaxError) as caught:
        k()
    assert "not supported in kernels" in traceback.format_exception_only(caught.value)[-1]


def test_what_programs_ask_of_the_core():
    from costate._lib import core
    assert core.with_vulkan() == ti.lang.runtime.is_arch_supported(ti.vulkan)
    assert not core.with_metal() and not ti._lib.core.GGUI_AVAILABLE
    assert ti.rgb_to_hex((1.0, 0.0, 0.5)) == 0xFF007F
    assert ti.hex_to_rgb(0xFF0000) == (1.0, 0.0, 0.0)


def test_a_graph_is_launches_with_arguments_by_name():
    @ti.kernel
    def scale(x: ti.types.ndarray(ndim=1), a: ti.f32):
        for i in x:
            x[i] *= a

    x, a = (ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "x", dtype=ti.f32, ndim=1),
            ti.graph.Arg(ti.graph.ArgKind.SCALAR, "a", dtype=ti.f32))
    builder = ti.graph.GraphBuilder()
    twice = builder.create_sequential()
    twice.dispatch(scale, x, a)
    twice.dispatch(scale, x, a)
    builder.append(twice)
    builder.dispatch(scale, x, 0.5)
    graph = builder.compile()
    value = ti.ndarray(ti.f32, shape=2)
    value.fill(1)
    graph.run({"x": value, "a": 3.0})
    assert value.to_numpy().tolist() == [4.5, 4.5]
    with pytest.raises(RuntimeError, match="an argument `a`, which `run` was not given"):
        graph.run({"x": value})


def test_abs_of_a_vector():
    out = ti.Vector.field(3, ti.f32, shape=())

    @ti.kernel
    def k():
        v = ti.Vector([1.0, -2.0, 3.0, -4.0])
        out[None] = abs((v * 2).xyw)

    k()
    assert out[None].to_list() == [2, 4, 8]


def test_a_tape_names_the_field_without_a_gradient():
    x = ti.field(ti.f32, shape=2, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    volume = ti.field(ti.f32, shape=2)

    @ti.kernel
    def energy():
        for i in x:
            volume[i] = 2 * x[i]
        for i in x:
            loss[None] += volume[i] * x[i]

    with pytest.raises(ti.errors.MissingGradient, match="`volume` of kernel `energy`"):
        with ti.ad.Tape(loss):
            energy()


def test_stop_grad_makes_a_field_a_constant():
    x = ti.field(ti.f32, shape=2, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    volume = ti.field(ti.f32, shape=2, needs_grad=True)
    x.fill(3)

    @ti.kernel
    def energy():
        for i in x:
            volume[i] = 2 * x[i]
        for i in x:
            loss[None] += ti.stop_grad(volume[i]) * x[i]

    with ti.ad.Tape(loss):
        energy()
    assert x.grad.to_numpy().tolist() == [6, 6]


@pytest.fixture
def ray():
    vec3 = ti.types.vector(3, ti.f32)

    @ti.dataclass
    class Ray:
        o: vec3
        t: ti.f32

        @ti.func
        def move(self, s):
            self.o += s
            self.t += 1

    return Ray


def test_a_function_gets_the_value_of_a_struct(ray):
    rays = ray.field(shape=2)
    out = ti.field(ti.f32, shape=6)

    @ti.func
    def assigned(r):
        r.o += 1
        r.t = 5
        return r

    @ti.func
    def moved(r):
        r.move(2.0)
        return r.t

    @ti.func
    def read(r):
        rays[1].t = 7
        return r.t

    @ti.kernel
    def k():
        for _ in range(1):
            a = ray(o=[1, 1, 1], t=1)
            out[0] = assigned(a).o.x
            out[1] = moved(a)
            out[2] = a.t + a.o.x
            out[3] = assigned(rays[0]).t
            out[4] = read(rays[1])
            out[5] = assigned(ray(o=[2, 2, 2], t=1)).o.x

    k()
    assert out.to_numpy().tolist() == [2, 2, 2, 5, 0, 3]
    assert rays.t.to_numpy().tolist() == [0, 7]


def test_a_function_changes_a_struct_that_is_a_template(ray):
    rays = ray.field(shape=2)
    out = ti.field(ti.f32, shape=())

    @ti.func
    def age(r: ti.template()):
        r.t += 1
        r.move(3.0)

    @ti.kernel
    def k():
        for _ in range(1):
            a = ray(o=[1, 1, 1], t=1)
            age(a)
            age(rays[1])
            out[None] = a.t + 10 * a.o.x

    k()
    assert out[None] == 43
    assert rays.t.to_numpy().tolist() == [0, 2]
    assert rays.o.to_numpy()[:, 0].tolist() == [0, 3]


def test_members_of_a_struct_on_the_host_may_be_assigned(ray):
    rays = ray.field(shape=2)
    one = ray(o=[1, 2, 3], t=2)
    one.t = 5
    rays[1] = one
    assert rays.t.to_numpy().tolist() == [0, 5]
    assert repr(rays[1]) == "{'o': [1.0, 2.0, 3.0], 't': 5.0}"
    with pytest.raises(AttributeError, match="no member `s`"):
        one.s = 1


def test_and_and_or_of_integers_give_one_of_them():
    o, z = ti.field(ti.i32, shape=11), ti.field(ti.i32, shape=1)
    z[0] = 5

    @ti.kernel
    def k(n: ti.i32, none: ti.i32):
        for _ in range(1):
            m = z[0]
            o[0] = n and m
            o[1] = m or n
            o[2] = none or m
            o[3] = none and m
            o[4] = m and 8
            o[5] = (n > 2) and m
            o[6] = n and z[0]
            o[7] = none or z[0] or n
            o[8] = (n > 2) and z[0]
            o[9] = n > 2 and m > 3
            if n and z[0] and not none:
                o[10] = 1

    k(8, 0)
    assert o.to_numpy().tolist() == [5, 5, 5, 0, 8, 5, 5, 5, 5, 1, 1]


def test_a_kernel_returns_a_struct():
    vec2 = ti.types.vector(2, ti.f32)
    inner = ti.types.struct(n=ti.i32, v=vec2)
    outer = ti.types.struct(a=ti.f32, b=inner)

    @ti.kernel
    def k(x: ti.f32) -> outer:
        return outer(a=x, b=inner(n=7, v=vec2(x, 2 * x)))

    r = k(3)
    assert (r.a, r.b.n, r.b.v.to_list()) == (3, 7, [3, 6])

    @ti.kernel
    def wrong() -> outer:
        return inner(n=1, v=vec2(0, 0))

    with pytest.raises(ti.TaichiTypeError, match="a struct with the members a, b"):
        wrong()


def test_fields_with_an_offset():
    x = ti.field(ti.f32, shape=(3, 2), offset=(-1, 10), needs_grad=True)
    v = ti.Vector.field(2, ti.f32)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    ti.root.dense(ti.i, 4).place(v, offset=-2)
    p = ti.Struct.field({"a": ti.f32}, shape=2, offset=5)

    @ti.kernel
    def fill():
        for i, j in x:
            x[i, j] = 10 * i + j
        for I in ti.grouped(v):
            v[I] = [I[0], 1]
        for i in p:
            p[i].a = i

    @ti.kernel
    def square():
        for I in ti.grouped(x):
            loss[None] += (I[0] + 2) * x[I] ** 2
        for i in range(-2, 2):
            loss[None] += v[i].x * v[i].y

    fill()
    assert x.to_numpy().tolist() == [[0, 1], [10, 11], [20, 21]]
    assert (x[-1, 10], x[1, 11], v[-2].to_list(), p[6].a) == (0, 21, [-2, 1], 6)
    x[0, 10] = 5
    v[-2][1] = 3
    with ti.ad.Tape(loss):
        square()
    assert x.grad.to_numpy().tolist() == [[0, 2], [20, 44], [120, 126]]
    assert x.grad[0, 11] == 44 and v.to_numpy()[0].tolist() == [-2, 3]
    with pytest.raises(RuntimeError, match="dimensionality of shape and offset"):
        ti.field(ti.f32, shape=3, offset=(1, 2))


def test_a_number_of_a_static_loop_stays_one_if_a_template_takes_it():
    out = ti.field(ti.f32, shape=4)

    @ti.func
    def corner(i, k: ti.template()):
        return ti.Vector([-1 if ti.static(k in (0, 1)) else 1, i])

    @ti.kernel
    def k():
        for i in range(1):
            for c in ti.static(range(4)):
                v = corner(i, c)
                out[c] = v[0]

    k()
    assert out.to_numpy().tolist() == [-1, -1, 1, 1]


def test_an_element_that_the_host_writes_under_a_tape_is_the_only_one_that_is_cut():
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    v = ti.Vector.field(2, ti.f32, shape=2, needs_grad=True)
    p, loss = (ti.field(ti.f32, shape=(), needs_grad=True) for _ in range(2))

    @ti.kernel
    def spread():
        x[0] = p[None] * 2
        x[1] = p[None] * 5
        v[0] = [p[None], p[None] * 3]
        v[1] = [p[None] * 4, p[None]]

    @ti.kernel
    def total():
        loss[None] += x[0] * x[1] + x[2] * x[0] + v[0].sum() + v[1].sum()

    p[None] = 4
    for _ in range(2):
        with ti.ad.Tape(loss):
            spread()
            x[1] = 3.0
            x[-1] = 6
            x[2] = 7.0
            v[1] = [5, 6]
            total()
        assert loss[None] == 8 * 10 + 16 + 11
        assert p.grad[None] == 2 * 10 + 4
        assert str(x.grad) == "[0. 0. 0.]"   # nothing depends on what was there before


def test_assignments_in_expressions():
    o = ti.field(ti.i32, shape=4)

    @ti.kernel
    def k(a: ti.i32):
        for _ in range(1):
            total = 0
            for i in range(3):
                total += (square := i * i)
                o[1] = square
            if (n := a + 1) > 3 and a > 0:
                n += 10
            o[0] = total
            o[2] = n
            o[3] = (m := a) + m

    k(3)
    assert o.to_numpy().tolist() == [5, 4, 14, 6]

    @ti.kernel
    def conditional(a: ti.i32):
        for _ in range(1):
            if a > 3 and (n := a) > 5:
                o[0] = n

    with pytest.raises(ti.QuadrantsSyntaxError, match="after `and`"):
        conditional(3)
