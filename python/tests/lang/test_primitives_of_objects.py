"""`data_oriented(template_primitives=False)`: numbers of objects are read at each launch."""

import dataclasses

import pytest

import costate as ti


@dataclasses.dataclass
class Material:
    stiffness: float
    count: int


@ti.data_oriented(template_primitives=False)
class Solver:
    def __init__(self):
        self.dt, self.n, self.flag, self.name = 0.5, 3, True, "solver"
        self.material = Material(2.0, 1)
        self.x = ti.field(ti.f32, 4, needs_grad=True)
        self.y = ti.field(ti.f32, (), needs_grad=True)
        self.me = self

    @ti.kernel
    def step(self) -> ti.f32:
        total = 0.0
        for i in range(self.n):
            total += self.force(i) * self.dt
        if self.flag:
            total += 100
        return total

    @ti.func
    def force(self, i):
        return self.material.stiffness * i + self.material.count + self.me.dt

    @ti.kernel
    def energy(self):
        for i in self.x:
            self.y[None] += self.dt * self.x[i] ** 2

    @ti.kernel
    def unrolled(self):
        for i in ti.static(range(self.n)):
            self.x[i] = 1


def _expected(s):
    total = sum((s.material.stiffness * i + s.material.count + s.dt) * s.dt for i in range(s.n))
    return total + 100 * s.flag


def test_numbers_are_those_of_the_launch_and_nothing_is_compiled_again():
    s = Solver()
    assert s.step() == _expected(s)
    compiled = len(Solver.step.cache)
    for name, value in (("dt", 0.25), ("n", 4), ("flag", False), ("dt", 2.0)):
        setattr(s, name, value)
        assert s.step() == _expected(s)
    s.material.stiffness, s.material.count = 5.0, 7
    assert s.step() == _expected(s) and len(Solver.step.cache) == compiled
    s.dt = 2     # an integer now
    assert s.step() == _expected(s)


def test_gradients_and_known_launches():
    s = Solver()
    s.x.fill(3)
    for dt in (0.5, 1.5, 0.25):
        s.dt = dt
        s.y[None] = 0
        with ti.ad.Tape(s.y):
            s.energy()
        assert s.x.grad.to_numpy().tolist() == [6 * dt] * 4
        s.energy()
        assert s.y[None] == 2 * 4 * 9 * dt


def test_objects_as_templates():
    @ti.kernel
    def scaled(o: ti.template(), k: ti.f32) -> ti.f32:
        return o.dt * k + o.material.count

    s = Solver()
    assert scaled(s, 2) == 2
    s.dt = 4.0
    assert scaled(s, 2) == 9


def test_static_needs_what_is_known():
    with pytest.raises(ti.QuadrantsCompilationError, match="exist only when the kernel runs|only when the kernel runs"):
        Solver().unrolled()


def test_other_classes_and_options():
    @ti.data_oriented(stable_members=True)
    class Plain:
        def __init__(self):
            self.n, self.x = 2, ti.field(ti.i32, 4)

        @ti.kernel
        def unrolled(self):
            for i in ti.static(range(self.n)):
                self.x[i] = 1

    p = Plain()
    p.unrolled()
    assert p.x.to_numpy().tolist() == [1, 1, 0, 0]
