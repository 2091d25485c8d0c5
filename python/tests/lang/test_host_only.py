"""What belongs to the host and stands in a kernel is filled in, or refused: it would happen once, when the kernel is compiled."""

import numpy as np
import pytest

import costate as ti

SUM = ti.types.struct(a=ti.f32, b=ti.types.vector(2, ti.f32))


def test_fill_is_part_of_the_kernel():
    x, v = ti.field(ti.f32, 4, needs_grad=True), ti.Vector.field(2, ti.f32, 3)
    s = SUM.field(shape=2)
    y = ti.ndarray(ti.f32, 4)

    @ti.kernel
    def k(y: ti.types.ndarray(), a: ti.f32):
        x.fill(3)
        x.grad.fill(1)
        y.fill(2 * a)
        s.fill(4)
        for i in y:
            y[i] += x[i]
        for i in range(2):
            v.fill([i, 2])

    for a in (1, 2):
        for array in (x, v, y, x.grad):
            array.fill(0)
        k(y, a)
        assert x.to_numpy().tolist() == [3] * 4 and y.to_numpy().tolist() == [2 * a + 3] * 4
        assert x.grad[3] == 1 and s[1].a == 4 and s[0].b[1] == 4 and v[2][1] == 2


def test_fill_of_a_sparse_field():
    x = ti.field(ti.f32)
    ti.root.bitmasked(ti.i, 4).place(x)
    x[2] = 1

    @ti.kernel
    def k():
        x.fill(5)

    k()
    assert x.to_numpy().tolist() == [0, 0, 5, 0]


def test_gradients_of_fill(double):
    x, y = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, 3, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def k():
        y.fill(x[1] * x[2])
        for i in y:
            loss[None] += y[i] * x[i]

    x.from_numpy(np.array([2.0, 3.0, 5.0]))
    with ti.ad.Tape(loss):
        k()
    # x1 x2 (x0 + x1 + x2)
    assert x.grad.to_numpy().tolist() == [15, 5 * 10 + 15, 3 * 10 + 15]


@pytest.mark.parametrize("call", ["x.to_numpy()", "x.from_numpy(a)", "x.copy_from(x)", "ti.sync()", "ti.field(ti.f32, 3)",
                                  "ti.ndarray(ti.f32, 3)", "ti.Vector.field(2, ti.f32, shape=3)", "ti.root.dense(ti.i, 3)"])
def test_functions_of_the_host(call, tmp_path):
    file = tmp_path / "host.py"
    file.write_text(f"import costate as ti\nx = ti.field(ti.f32, 3)\na = [1, 2, 3]\n\n@ti.kernel\ndef k():\n    {call}\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ti.QuadrantsSyntaxError, match="is of the host"):
        names["k"]()


def test_functions_of_python_that_use_elements_or_launch():
    x = ti.field(ti.f32, 3)

    @ti.kernel
    def other():
        x[0] = 1

    def write():
        x[0] = 7

    def read(i):
        return x[i]

    @ti.kernel
    def writes():
        write()

    @ti.kernel
    def reads():
        for i in x:
            x[i] = read(i)

    def launch():
        other()

    @ti.kernel
    def launches():
        launch()

    other()
    for kernel, text in ((writes, "@ti.func"), (reads, "@ti.func"), (launches, "Kernels cannot call other kernels")):
        with pytest.raises(ti.QuadrantsSyntaxError, match=text):
            kernel()
    other()
    assert x[0] == 1
