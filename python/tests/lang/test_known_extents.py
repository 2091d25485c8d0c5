"""Extents of fields are constants in the code, those of ndarrays are not; both give the same, whichever extents are 1."""

import numpy as np
import pytest

import costate as ti

PLANES = [(5, 1), (1, 5), (1, 1), (4, 3), (17, 1), (1, 17), (16, 2)]
BOXES = [(3, 1, 4), (1, 4, 1), (4, 1, 1), (1, 1, 3), (1, 1, 1), (9, 2, 1), (2, 1, 9)]


def kernel_of(ndim, kind):
    """Own elements, neighbours, elements whose indices are in memory, components known and not, and a sum."""

    @ti.kernel
    def work(x: kind(), p: kind(3), k: kind(), out: kind(), q: kind(3), total: ti.types.ndarray()):
        for I in ti.grouped(x):
            J, K = I, I
            J[0] = ti.min(I[0] + 1, x.shape[0] - 1)
            K[ti.static(ndim - 1)] = k[I]
            v = x[I] * x[J] + p[I].x * p[K][1]
            if x[I] > 0.5:
                v += p[J][k[I] % 3] * x[K]
            for c in range(k[I]):
                v = ti.sin(v) + p[K][2] * c
            out[I] += v
            q[I] = p[J] * v
            out[K] += 0.25 * x[I]
            total[None] += v

    return work


def result(ndim, shape, is_field):
    """What the kernel leaves, and the gradients of all of it."""
    def kind(components=0):
        if is_field:
            return ti.template()
        return ti.types.ndarray(dtype=ti.types.vector(components, ti.f64), ndim=ndim) if components else ti.types.ndarray(ndim=ndim)

    def array(dtype, components=0):
        grad = dtype == ti.f64
        if is_field:
            made = ti.Vector.field(components, dtype, shape, needs_grad=grad) if components else ti.field(dtype, shape, needs_grad=grad)
        else:
            made = ti.Vector.ndarray(components, dtype, shape, needs_grad=grad) if components else ti.ndarray(dtype, shape, needs_grad=grad)
        shape_of = shape + (components,) * bool(components)
        values = random.random(shape_of) if grad else random.integers(0, shape[-1], shape_of)
        made.from_numpy(values.astype(np.float64 if grad else np.int32))
        if grad:
            made.grad.from_numpy(random.random(shape_of))
        return made

    random = np.random.default_rng(7)
    arrays = [array(ti.f64), array(ti.f64, 3), array(ti.i32), array(ti.f64), array(ti.f64, 3), ti.ndarray(ti.f64, (), needs_grad=True)]
    arrays[-1].grad.fill(0.5)
    work = kernel_of(ndim, kind)
    work(*arrays)
    values = [one.to_numpy() for one in arrays]
    work.grad(*arrays)
    return values + [one.grad.to_numpy() for one in arrays if one is not arrays[2]], work.report()


@pytest.mark.parametrize("shape", PLANES + BOXES)
def test_fields_and_ndarrays_give_the_same(double, shape):
    fields, known = result(len(shape), shape, is_field=True)
    arrays, unknown = result(len(shape), shape, is_field=False)
    assert f"extents are (any, {', '.join(map(str, shape[1:]))})" in known
    assert "extents are (any, " + "any, " * (len(shape) - 1) + "3)" in unknown
    for one, other in zip(fields, arrays, strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


def test_fields_of_any_length_share_their_code():
    lengths = (5, 8)
    points = [ti.Vector.field(3, ti.f32, n) for n in lengths]

    @ti.kernel
    def fill(p: ti.template(), value: ti.f32):
        for i in range(3):
            p[i].y = value

    code = set()
    for value, p in enumerate(points, 1):
        fill(p, value)
        assert p.to_numpy().sum() == 3 * value
        code.add(fill.compiled(p, value)[0].ir())
    assert len(code) == 1 and "array<i64: -1, 3>" in code.pop()
