"""The classes that programs for Quadrants and Taichi catch."""

import numpy as np
import pytest

import costate as ti


def test_arrays_that_do_not_fit_are_value_and_type_errors():
    @ti.kernel
    def k(x: ti.types.ndarray(dtype=ti.i32, ndim=1)):
        x[0] = 1

    for given in (ti.ndarray(ti.f32, 4), ti.ndarray(ti.i32, (4, 4)), np.zeros(4), ti.field(ti.i32, 4)):
        for kind in (ValueError, TypeError, ti.QuadrantsRuntimeTypeError, RuntimeError):
            with pytest.raises(kind):
                k(given)
    with pytest.raises(ValueError, match="each dimension of the shape once"):
        ti.tensor(ti.f32, shape=(4, 5), layout=(0, 0))


def test_calls_with_a_wrong_number_of_arguments():
    @ti.func
    def f(a, b):
        return a + b

    @ti.kernel
    def too_few():
        f(1)

    @ti.kernel
    def too_many():
        f(1, 2, 3)

    @ti.kernel
    def unknown():
        f(1, c=2)

    for k in (too_few, too_many, unknown):
        with pytest.raises(ti.QuadrantsSyntaxError, match=r"`f\(\)`"):
            k()


@pytest.mark.parametrize("name", ["atomic_and", "atomic_or", "atomic_xor"])
def test_atomics_of_bits_are_of_integers(name):
    x = ti.field(ti.f32, 2)
    atomic = getattr(ti, name)

    @ti.kernel
    def k():
        atomic(x[0], 1)

    with pytest.raises(ti.QuadrantsTypeError, match="has no bits"):
        k()


def test_compare_and_swap_is_of_integers():
    x = ti.field(ti.f32, 2)

    @ti.kernel
    def k():
        ti.atomic_cas(x[0], 1.0, 2.0)

    with pytest.raises(ti.QuadrantsTypeError, match="`atomic_cas` is of integers"):
        k()


def test_indices_of_the_host():
    x = ti.field(ti.f32, 3)
    for kind in (IndexError, AssertionError, ti.QuadrantsIndexError):
        with pytest.raises(kind, match="out of range"):
            x[3]
        with pytest.raises(kind):
            x[3] = 1.0


def test_an_order_that_does_not_fit():
    for kind in (ti.QuadrantsCompilationError, ti.QuadrantsRuntimeError):
        with pytest.raises(kind, match="each of the axes"):
            ti.field(ti.i32, shape=(2, 3), order="ijk")


def test_indices_that_are_known_when_a_kernel_is_compiled():
    x = ti.field(ti.i32, (8, 16))

    @ti.kernel
    def k():
        x[3, 16] = 1

    for kind in (IndexError, AssertionError, ti.QuadrantsCompilationError):
        with pytest.raises(kind, match="index 16 is out of range"):
            k()


@pytest.mark.parametrize("call, text", [(lambda k: k(1), "Missing argument 'b'"), (lambda k: k(1, 2, 3), "Too many arguments"),
                                        (lambda k: k(1, 2, c=3), "Unexpected argument 'c'")])
def test_what_is_wrong_with_the_arguments_of_a_kernel(call, text):
    @ti.kernel
    def k(a: ti.i32, b: ti.i32):
        pass

    for kind in (ti.QuadrantsSyntaxError, TypeError):
        with pytest.raises(kind, match=text):
            call(k)
