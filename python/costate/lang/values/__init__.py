"""Numbers, vectors and matrices, of Python and of kernels."""
