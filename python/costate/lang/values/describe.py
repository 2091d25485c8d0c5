"""What messages call values."""

from __future__ import annotations

from typing import Any


def describe(x: Any) -> str:
    known: str | None = getattr(type(x), "description", None)
    if isinstance(known, str):
        return known
    name = type(x).__name__
    if name == "Expr":
        return f"a number of type {x.dtype}"
    if name in ("Matrix", "FieldElement"):
        return f"a {'vector' if x.ndim == 1 else 'matrix'} of shape {x.shape}"
    if name == "TracedArray" or name.endswith("Ndarray"):
        return "an array (its elements are `x[i]`)"
    if name == "ScalarField":
        return "a field (its elements are `x[i]`, of a field of shape () `x[None]`)"
    return f"the type `{x.__name__}`" if isinstance(x, type) else f"a value of type `{name}`"
