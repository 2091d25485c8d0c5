/// What a device counts, and that nobody waits where nobody has to.

#include "Labels.h"
#include "conformance/TestDevice.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

COSTATE_LABEL("*", waits);

using namespace costate;

namespace {

class DeviceStatistics : public testing::Test {
protected:
  bool isGpu() const { return device.name() != "cpu"; }
  Device device = test::openDevice();
};

TEST_F(DeviceStatistics, TellCopiesFillsAndWaits) {
  Array<double> x = device.array<double>({100});
  Array<double> none = device.array<double>({0});
  device.reset_statistics();
  EXPECT_EQ(device.statistics(), Statistics());
  x.from_host(std::vector<double>(100, 2));
  x.fill(3);
  x.to_host();
  none.fill(3);
  none.to_host();
  device.synchronize();
  Statistics seen = device.statistics();
  EXPECT_EQ(seen.uploads, 1u);
  EXPECT_EQ(seen.fills, 1u);
  EXPECT_EQ(seen.downloads, 1u);
  EXPECT_EQ(seen.copies, 0u);
  EXPECT_EQ(seen.launches, 0u);
  EXPECT_EQ(seen.synchronizations, isGpu() ? 2u : 0u);
}

TEST_F(DeviceStatistics, LaunchesOfAPrimalNeitherCopyNorWait) {
  Kernel step = kernel("step", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                  Scalar<double> h) {
    Var<double> last = y(0);
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (k, 0, 3) {
        v = v + h * sin(v);
      }
      y(i) = v + last;
    });
  });
  Array<double> x = device.array<double>({1000}),
                y = device.array<double>({1000});
  step(x, y, 0.1);
  device.reset_statistics();
  for (int i = 0; i < 10; ++i)
    step(x, y, 0.1);
  Statistics seen = device.statistics();
  EXPECT_EQ(seen.launches, isGpu() ? 20u : 10u);
  seen.launches = 0;
  EXPECT_EQ(seen, Statistics());
}

TEST_F(DeviceStatistics, SumsOverARangeTakeNoLaunchesOfTheirOwn) {
  Kernel scale =
      kernel("scale", [](ArrayRef<double, 1> x, ArrayRef<double, 0> a,
                         ArrayRef<double, 1> y) {
        Var<double> s = exp(a()), t = sin(a());
        parallel(x.size(), [&](Index i) { y(i) = s * x(i) + t; });
      });
  Array<double> x = device.array<double>({1000}, grad),
                y = device.array<double>({1000}, grad),
                a = device.array<double>({}, grad);
  x.fill(2);
  a.fill(0);
  scale(x, a, y);
  y.grad().fill(1);
  scale.grad(x, a, y);
  EXPECT_NEAR(a.grad().to_host()[0], 1000 * (2 + 1), 1e-9);
  y.grad().fill(1);
  device.reset_statistics();
  scale.grad(x, a, y);
  Statistics seen = device.statistics();
  // What s and t are, the range, and what they add to the adjoint of a.
  EXPECT_EQ(seen.launches, isGpu() ? 3u : 1u);
  seen.launches = 0;
  EXPECT_EQ(seen, Statistics());
}

} // namespace
