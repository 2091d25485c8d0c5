#include "conformance/TestDevice.h"

#include "Labels.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

COSTATE_LABEL("*", sample);

namespace costate::test {
namespace {

/// In each of `iterations` iterations more loops run, some of them not at all.
Kernel nest() {
  return kernel("nest", [](ArrayRef<double, 1> y, Scalar<int64_t> iterations) {
    parallel(y.size(), [&](Index i) {
      Var<double> sum = 0.0;
      FOR (k, 0, iterations) {
        FOR (j, 0, (i + k) % 7) {
          sum += 1.0 / (sum + 1.0);
        }
        IF (k % 5 == i % 5) {
          FOR (j, 0, 3) {
            sum += cast<double>(j);
          }
        }
      }
      y(i) = sum;
    });
  });
}

double sumOf(int64_t i, int64_t iterations) {
  double sum = 0;
  for (int64_t k = 0; k < iterations; ++k) {
    for (int64_t j = 0; j < (i + k) % 7; ++j)
      sum += 1.0 / (sum + 1.0);
    for (int64_t j = 0; k % 5 == i % 5 && j < 3; ++j)
      sum += static_cast<double>(j);
  }
  return sum;
}

/// Some drivers end loops: what a kernel computes is right, or it is named.
TEST(LongLoops, AreRightOrAnErrorThatNamesTheKernel) {
  Device device = openDevice();
  Kernel k = nest();
  Array<double> y = device.array<double>({40});
  for (int64_t iterations : {100, 4000, 9000, 12000, 40000, 100}) {
    try {
      k(y, iterations);
      device.synchronize();
    } catch (const Error &error) {
      EXPECT_EQ(kindOf(device), "vulkan");
      EXPECT_GT(iterations, 4000);
      EXPECT_EQ(error.code(), ErrorCode::KernelFailed);
      EXPECT_NE(std::string(error.what()).find("`nest."), std::string::npos)
          << error.what();
      continue;
    }
    std::vector<double> got = y.to_host();
    for (int64_t i = 0; i < 40; ++i)
      EXPECT_NEAR(got[size_t(i)], sumOf(i, iterations),
                  1e-9 * sumOf(i, iterations))
          << iterations << " iterations";
  }
}

} // namespace
} // namespace costate::test
