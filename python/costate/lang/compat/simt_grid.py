"""`qd.simt.grid`."""

from costate.lang.trace.groups import grid_fence as mem_fence

memfence = mem_fence
