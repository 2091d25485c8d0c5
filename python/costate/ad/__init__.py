"""Derivatives: recordings, forward mode, gradients of your own, checks."""

from __future__ import annotations as _annotations

from typing import Any as _Any

from costate.ad.check import check_gradient, hessian_vector_product, hvp, report
from costate.ad.custom import grad_for, grad_replaced, no_grad
from costate.ad.forward import FwdMode
from costate.ad.tape import Tape
from costate.lang.base.enums import AutodiffMode, SNodeGradType
from costate.lang.base.marks import mark as _mark
from costate.lang.data.clear import clear_all_gradients
from costate.lang.trace.directives import stop_grad as _stop_grad

__all__ = ["AutodiffMode", "FwdMode", "SNodeGradType", "Tape", "check_gradient",
           "clear_all_gradients", "grad_for", "grad_replaced", "hessian_vector_product", "hvp",
           "no_grad", "report", "stop_grad"]


def stop_grad(x: _Any) -> _Any:
    """In a kernel: the elements of `x` are constants to derivatives, to the end of the block.

    Of a value: that value, as a constant to derivatives.
    """
    return _stop_grad(x)


_mark(stop_grad, by_reference=True, changes_arrays=False)
