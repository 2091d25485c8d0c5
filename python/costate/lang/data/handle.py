"""`x.snode`."""

from costate.lang.base import runtime
from costate.lang.base.enums import SNodeGradType


class Handle:
    """`x.snode`, as far as tests of Taichi and Quadrants look at it."""

    def __init__(self, field):
        self.field = field

    @property
    def ptr(self):
        return self

    def has_adjoint_checkbit(self):
        return bool(runtime.runtime().config.debug and self.field.needs_grad)

    def get_snode_grad_type(self):
        return {None: SNodeGradType.PRIMAL, "grad": SNodeGradType.ADJOINT,
                "dual": SNodeGradType.DUAL}[getattr(self.field, "which", None)]

    def parent(self, n=1):
        return self.field.parent(n)

    @property
    def shape(self):
        return self.field.shape

    needs_grad = property(lambda self: self.field.needs_grad)
