#pragma once
/// Kernels over a domain with halos along its first axis, for tests of ranks.

#include "costate/costate.h"
#include "costate/syntax.h"

namespace costate::test {

/// Reads two neighbours of each element that is not in the halo.
inline Kernel neighbours() {
  return kernel("neighbours", [](ArrayRef<double, 2> u, ArrayRef<double, 2> v,
                                 Scalar<int64_t> width) {
    parallel({u.size(0) - 2 * width, u.size(1)}, [&](Index k, Index j) {
      Index i = k + width;
      v(i, j) = u(i, j) + 0.3 * u(i - width, j) * u(i + width, j);
    });
  });
}

inline Kernel squares() {
  return kernel("squares", [](ArrayRef<double, 2> u, ArrayRef<double, 0> loss,
                              Scalar<int64_t> width) {
    parallel({u.size(0) - 2 * width, u.size(1)}, [&](Index i, Index j) {
      loss() += u(i + width, j) * u(i + width, j);
    });
  });
}

} // namespace costate::test
