"""Random programs as Python source text, beside the kernels that C++ makes of them."""
