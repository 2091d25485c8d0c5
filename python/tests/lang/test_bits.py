"""Numbers from the bits of others."""

import numpy as np

import costate as ti


def test_all_numbers_of_16_bits():
    @ti.kernel
    def k(x: ti.types.ndarray(), u: ti.types.ndarray(), i: ti.types.ndarray(), from_u: ti.types.ndarray(),
          from_i: ti.types.ndarray()):
        for n in x:
            u[n] = ti.bit_cast(x[n], ti.u16)
            i[n] = ti.bit_cast(x[n], ti.i16)
            from_u[n] = ti.bit_cast(u[n], ti.f16)
            from_i[n] = ti.bit_cast(i[n], ti.f16)

    bits = np.arange(65536, dtype=np.uint16)
    x, u, i = bits.view(np.float16), np.zeros_like(bits), np.zeros(65536, np.int16)
    from_u, from_i = np.zeros_like(x), np.zeros_like(x)
    k(x, u, i, from_u, from_i)
    is_number = ~np.isnan(x)
    for found in (u, i, from_u, from_i):
        assert (found.view(np.uint16)[is_number] == bits[is_number]).all()
        assert np.isnan(found.view(np.float16)[~is_number]).all()
