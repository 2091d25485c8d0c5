"""What the host does by launches: copies of arrays that derivatives see, and rows of blocks."""

from costate.lang.base.dtypes import i64
from costate.lang.data import blocks
from costate.lang.data.annotations import template
from costate.lang.data.ranges import grouped
from costate.lang.data.storage import copy_elements
from costate.lang.launch.kernel import kernel
from costate.lang.trace import sparse


@kernel
def _copy(target: template(), source: template()):
    for index in grouped(source):
        target[index] = source[index]


@copy_elements.given
def copy(target, source):
    """Of the same shapes."""
    _copy(target, source)


@kernel
def _claim(node: template(), block: i64):
    sparse.claim(node, block)


@blocks.claim.given
def claim(node, block):
    """A block of a sparse node gets a row."""
    _claim.run((node, block))
