"""PyTorch tensors as arguments of kernels, and kernels as functions of PyTorch.

``launch(kernel.launch, x, y, 3)`` passes tensors as they are; nothing is copied.
``torch_function(kernel, outputs=...)`` makes a differentiable function.
"""

from .autograd import torch_function
from .tensors import array_for, array_of, launch, launcher

__all__ = ["array_for", "array_of", "launch", "launcher", "torch_function"]
