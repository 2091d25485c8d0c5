#pragma once
/// Kernels that several tests of the API launch.

#include "costate/costate.h"
#include "costate/syntax.h"

#include <vector>

namespace costate::test {

inline Kernel makeSquare() {
  return kernel("square", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
    parallel(from.size(0), [&](Index i) { to(i) = from(i) * from(i); });
  });
}

inline Kernel makeSum() {
  return kernel("sum", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
    parallel(from.size(0), [&](Index i) { total() += from(i); });
  });
}

/// v <- v sin v, n[i] times.
inline Kernel makeLoop() {
  return kernel("loop",
                [](ArrayRef<double, 1> from, ArrayRef<int, 1> iterations,
                   ArrayRef<double, 1> to) {
                  parallel(from.size(0), [&](Index i) {
                    Var<double> v = from(i);
                    FOR (k, 0, iterations(i)) {
                      v = v * sin(v);
                    }
                    to(i) = v;
                  });
                });
}

/// The same with its state in an array, so that it cannot run again from a
/// checkpoint. Its gradient needs what `to` was before.
inline Kernel makeLoopInPlace() {
  return kernel("loop",
                [](ArrayRef<double, 1> from, ArrayRef<int, 1> iterations,
                   ArrayRef<double, 1> to) {
                  parallel(from.size(0), [&](Index i) {
                    to(i) = from(i);
                    FOR (k, 0, iterations(i)) {
                      to(i) = to(i) * sin(to(i));
                    }
                  });
                });
}

/// 100 of them.
inline std::vector<double> risingValues() {
  std::vector<double> values(100);
  for (int i = 0; i < 100; ++i)
    values[i] = 0.5 + 0.01 * i;
  return values;
}

} // namespace costate::test
