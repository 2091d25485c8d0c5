"""`x.snode`."""

from __future__ import annotations

from typing import Any

from costate.lang.base import runtime
from costate.lang.base.enums import SNodeGradType


class Handle:
    """`x.snode`, as far as tests of Taichi and Quadrants look at it."""

    def __init__(self, field: Any) -> None:
        self.field = field

    @property
    def ptr(self) -> Handle:
        return self

    def has_adjoint_checkbit(self) -> bool:
        return bool(runtime.runtime().config.debug and self.field.needs_grad)

    def get_snode_grad_type(self) -> SNodeGradType:
        return {None: SNodeGradType.PRIMAL, "grad": SNodeGradType.ADJOINT,
                "dual": SNodeGradType.DUAL}[getattr(self.field, "which", None)]

    def parent(self, n: Any = 1) -> Any:
        return self.field.parent(n)

    @property
    def shape(self) -> Any:
        return self.field.shape

    needs_grad = property(lambda self: self.field.needs_grad)
