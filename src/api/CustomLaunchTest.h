#pragma once
/// A recording, arrays of the CPU, and functions of the user.

#include "api/TestKernels.h"
#include "conformance/Errors.h"

#include <cmath>

namespace costate::test {

class CustomLaunches : public testing::Test {
protected:
  using Values = std::vector<double>;
  static constexpr int n = 6;

  Array<double> make(double value = 0) {
    Array<double> array = device.array<double>({n}, grad | dual);
    array.fill(value);
    return array;
  }
  /// Of one element.
  static double at(const Array<double> &array) { return array.to_host()[2]; }

  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = make(0.5), y = make(), z = make();
  Array<double> loss = device.array<double>({}, grad);
  Tape tape;

  Kernel square = makeSquare();
  Kernel sine =
      kernel("sine", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = sin(from(i)); });
      });
  Kernel sum = makeSum();
  /// adjoint of `from` += by * adjoint of `to`, which is consumed
  Kernel pull =
      kernel("pull", [](ArrayRef<double, 1> by, ArrayRef<double, 1> to,
                        ArrayRef<double, 1> from) {
        parallel(by.size(0), [&](Index i) {
          from(i) += by(i) * to(i);
          to(i) = 0;
        });
      });

  /// y = exp(x), by the host; its derivative is y.
  CustomLaunch exponential() {
    return {.name = "exponential",
            .reads = {x},
            .writes = {y},
            .unneeded = {x},
            .primal =
                [this] {
                  Values values = x.to_host();
                  for (double &value : values)
                    value = std::exp(value);
                  y.from_host(values);
                },
            .gradient = [this] { pull(y, y.grad(), x.grad()); },
            .tangent =
                [this] {
                  Values values = x.to_host(), tangents = x.dual().to_host();
                  for (int i = 0; i < n; ++i) {
                    values[i] = std::exp(values[i]);
                    tangents[i] *= values[i];
                  }
                  y.from_host(values);
                  y.dual().from_host(tangents);
                }};
  }
};

} // namespace costate::test
