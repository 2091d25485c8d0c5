"""`ti.algorithms`: sorting and sums of fields, on the host."""

import numpy as np


def parallel_sort(keys, values=None):
    """Sorts the field `keys`, and `values` with it; equal keys keep their order."""
    found = keys.to_numpy()
    order = np.argsort(found, kind="stable")
    keys.from_numpy(found[order])
    if values is not None:
        values.from_numpy(values.to_numpy()[order])


class PrefixSumExecutor:
    """`PrefixSumExecutor(n).run(x)` replaces x[i] by x[0] + ... + x[i], for i < n."""

    def __init__(self, length):
        self.length = length

    def run(self, input_arr):
        x = input_arr.to_numpy()
        x[:self.length] = np.cumsum(x[:self.length], dtype=x.dtype)
        input_arr.from_numpy(x)
