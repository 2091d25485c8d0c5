"""`ti.BufferView`: a part of an ndarray as an argument."""

import numpy as np
import pytest

import costate as ti


def _numbers(n=10):
    x = ti.ndarray(ti.f32, n)
    x.from_numpy(np.arange(n, dtype=np.float32))
    return x


def test_a_part_is_read_and_written():
    x = _numbers()

    @ti.kernel
    def double(v: ti.BufferView[ti.f32]) -> ti.i32:
        for i in range(v.size):
            v[i] *= 2
        return v.shape[0]

    assert double(ti.BufferView(x, 2, 3)) == 3 and double(x[8:]) == 2 and double(x[:1]) == 1
    assert x.to_numpy().tolist() == [0, 1, 4, 6, 8, 5, 6, 7, 16, 18]


def test_other_parts_of_one_array_are_other_arguments():
    x = _numbers()

    @ti.kernel
    def add(a: ti.BufferView, b: ti.BufferView, n: ti.i32):
        for i in a:
            ti.atomic_add(a[i], b[i] + n)

    for _ in range(3):    # known launches, too
        for start in (0, 2):
            add(x[start:start + 2], x[6:8], 10)
    assert x.to_numpy()[:5].tolist() == [48, 52, 50, 54, 4]


def test_parts_of_parts_in_kernels_and_funcs():
    x = _numbers()

    @ti.func
    def total(v: ti.template()):
        s = 0.0
        for i in range(v.size):
            s += v[i]
        return s

    @ti.kernel
    def sums(v: ti.BufferView, whole: ti.types.ndarray(), n: ti.i32):
        for _ in range(1):
            a, b = v.subview(1, n), v[2:4]
            result[None] = ti.Vector([total(a), total(b), total(b[1:]), total(ti.BufferView(whole, n, 2))])

    result = ti.Vector.field(4, ti.f32, ())
    sums(x[2:8], x, 3)
    assert result[None].to_list() == [3 + 4 + 5, 4 + 5, 5, 3 + 4]
    part = x[2:8].subview(1, 4)
    assert (part.offset, part.size, part.shape, part[1:3].offset, part.get_ndarray()) == (3, 4, (4,), 4, x)


def test_vectors_and_vectors_as_elements():
    x = ti.Vector.ndarray(2, ti.f32, 4)

    @ti.kernel
    def fill(v: ti.BufferView):
        v.fill(3)
        for i in range(v.size):
            v[i][1] += i

    fill(x[1:3])
    assert x.to_numpy().tolist() == [[0, 0], [3, 3], [3, 4], [0, 0]]


@pytest.mark.parametrize("make, error, text", [
    (lambda x: ti.BufferView(x, 8, 3), ValueError, "offset=8, size=3, of 10"), (lambda x: ti.BufferView(x, -1, 3), ValueError, "offset=-1"),
    (lambda x: x[2:8].subview(4, 3), ValueError, "of 6 elements"), (lambda x: ti.BufferView(x[1:], 0, 1), TypeError, "view.subview"),
    (lambda x: ti.BufferView(ti.ndarray(ti.f32, 4, needs_grad=True), 0, 1), TypeError, "no gradients"),
    (lambda x: ti.BufferView(ti.field(ti.f32, 4), 0, 1), TypeError, "part of an ndarray"), (lambda x: x[1:][0], TypeError, "in kernels"),
    (lambda x: x[::2], ValueError, "step=1"), (lambda x: ti.ndarray(ti.f32, (2, 2))[:1], TypeError, "1D"), (lambda x: setattr(x[1:], "offset", 2), AttributeError, "offset")])
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make(_numbers())


def test_other_arguments_are_refused():
    @ti.kernel
    def double(v: ti.BufferView[ti.f32]):
        v[0] *= 2

    for given in (_numbers(), 3, ti.ndarray(ti.i32, 4)[1:]):
        with pytest.raises(ti.QuadrantsRuntimeTypeError, match="not a `BufferView`|Expect element type f32"):
            double(given)


@pytest.mark.parametrize("index", [-1, 3])
def test_debug_checks_the_bounds_of_the_part(index):
    ti.init(arch=ti.cpu, debug=True)
    x = _numbers()

    @ti.kernel
    def read(v: ti.BufferView, k: ti.i32) -> ti.f32:
        return v[k]

    assert read(x[2:5], 2) == 4
    with pytest.raises(ti.QuadrantsAssertionError, match=f"BufferView Out Of Range: index={index}, of a view with offset=2, size=3"):
        read(x[2:5], index)


@pytest.mark.parametrize("start, size", [(-1, 2), (7, 4), (11, 0)])
def test_debug_checks_the_bounds_of_parts_that_kernels_make(start, size):
    ti.init(arch=ti.cpu, debug=True)

    @ti.kernel
    def read(x: ti.types.ndarray(), start: ti.i32, size: ti.i32) -> ti.f32:
        return ti.BufferView(x, start, size)[size - 1]

    assert read(_numbers(), 7, 3) == 9
    with pytest.raises(ti.QuadrantsAssertionError, match="subview Out Of Range"):
        read(_numbers(), start, size)


def test_names_of_a_few_lines():
    x = ti.field(ti.i32, 2)

    @ti.kernel
    def run() -> ti.types.matrix(2, 2, ti.f32):
        x[0] = ti.volatile_load(x[1]) + 3
        return ti.make_spd(ti.Matrix([[1.0, 2.0], [2.0, 1.0]]), ti.f32)

    assert np.allclose(run().to_numpy(), 1.5) and x[0] == 3


@pytest.mark.parametrize("name", ["clock_counter", "tools.write_vtk", "global_thread_idx", "dump_compile_config",
                                  "types.argpack"])
def test_absent_names_say_what_to_do(name):
    module, _, last = name.rpartition(".")
    with pytest.raises(AttributeError, match=f"has no attribute `{last}`: .+"):
        getattr(getattr(ti, module) if module else ti, last)


@pytest.mark.parametrize("arch", [ti.cpu, ti.python])
def test_elements_in_plain_python(arch):
    ti.init(arch=arch)
    x = ti.ndarray(ti.i32, 8)

    @ti.kernel
    def k(view: ti.BufferView):
        for i in range(view.shape[0]):
            view[i] = i + 1

    k(x[2:5])
    assert x.to_numpy().tolist() == [0, 0, 1, 2, 3, 0, 0, 0]
