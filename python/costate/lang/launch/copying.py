"""Copies of arrays that derivatives see."""

from costate.lang.data.annotations import template
from costate.lang.data.ranges import grouped
from costate.lang.data.storage import copy_elements
from costate.lang.launch.kernel import kernel


@kernel
def _copy(target: template(), source: template()):
    for index in grouped(source):
        target[index] = source[index]


@copy_elements.given
def copy(target, source):
    """Of the same shapes."""
    _copy(target, source)
