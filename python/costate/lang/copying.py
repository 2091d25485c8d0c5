"""Copies of arrays that derivatives see."""

from costate.lang.annotations import template
from costate.lang.calls import grouped
from costate.lang.kernel import kernel


@kernel
def copy(target: template(), source: template()):
    for index in grouped(source):
        target[index] = source[index]
