#pragma once
/// A recording, arrays of the CPU, and kernels to record.

#include "api/TestKernels.h"
#include "conformance/Errors.h"

namespace costate::test {

class Tapes : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = device.array<double>({10}, grad);
  Array<double> y = device.array<double>({10}, grad);
  Array<double> z = device.array<double>({10}, grad);
  Array<double> loss = device.array<double>({}, grad);
  Tape tape;

  Kernel square = makeSquare();
  Kernel sum = makeSum();
  /// s(t + 1) = sin(s(t))
  Kernel step = kernel("step", [](ArrayRef<double, 2> s, Scalar<int> t) {
    parallel(s.size(1), [&](Index i) { s(t + 1, i) = sin(s(t, i)); });
  });

  void SetUp() override { x.fill(3); }
};

} // namespace costate::test
