"""Single elements that the host writes while a tape records: launches, so that derivatives see them."""

import numpy as np

from costate import _core
from costate.lang import runtime
from costate.lang.dtypes import i64

_kernels = {}


@runtime.on_reset
def _forget():
    _kernels.clear()


def _kernel(dtype, rank):
    """A kernel (value, indices, array) that stores the value."""
    if (dtype, rank) not in _kernels:
        loc = _core.Loc(__file__, 1, 1)
        trace = _core.Trace("host_write", loc)
        try:
            value = trace.scalar(dtype.core)
            indices = [trace.scalar(i64.core) for _ in range(rank)]
            array = trace.array(dtype.core, rank)
            trace.store(array, dtype.core, indices, value, loc)
            _kernels[dtype, rank] = trace.finish(runtime.runtime().kernel_options())
        finally:
            trace.abandon()
    return _kernels[dtype, rank]


def put(array, dtype, host, positions):
    """Stores the elements of `host` at these positions, each an index of the first dimensions."""
    kernel = _kernel(dtype, host.ndim)
    for position in positions:
        for index, value in np.ndenumerate(host[position]):
            kernel.launch(value.item(), *position, *index, array)
