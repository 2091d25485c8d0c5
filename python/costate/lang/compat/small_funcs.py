"""Names of Quadrants that are funcs of a few lines."""

from costate.lang.data.annotations import template
from costate.lang.data.ranges import static
from costate.lang.trace.func import func
from costate.lang.values.decompositions import sym_eig
from costate.lang.values.ops import max as maximum


@func
def make_spd(A: template(), dt: template() = None):
    """The nearest positive semi-definite matrix to a symmetric one: its eigenvalues are at least 0."""
    values, vectors = sym_eig(A, dt)
    scaled = vectors
    for i, j in static([(i, j) for i in range(A.n) for j in range(A.n)]):
        scaled[i, j] = vectors[i, j] * maximum(values[j], 0)
    return scaled @ vectors.transpose()


@func
def volatile_load(x):
    """The value of an element, read where it stands, as all elements are."""
    return x
