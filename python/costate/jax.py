"""Kernels, and functions that launch several, as functions of JAX: `costate.jax.function`."""

from costate.interop.jax import function

__all__ = ["function"]
