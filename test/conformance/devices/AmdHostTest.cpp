/// Kernels for AMD GPUs on the host. All tests of devices run there as well, by
/// COSTATE_DEVICE.

#include "Labels.h"
#include "conformance/Errors.h"

#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>
#include <numeric>

COSTATE_LABEL("*", host);
COSTATE_LABEL("*", slow);

using namespace costate;

namespace {

TEST(AmdHost, OtherChipsAreNotThere) {
  for (const char *name : {"amd-host:gfx803", "amd-host:sm_90"})
    try {
      Device::open(name);
      FAIL() << name;
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::NoDevice);
      EXPECT_NE(std::string(error.what()).find("there is no AMD chip"),
                std::string::npos)
          << error.what();
    }
}

/// Loops of different lengths, whose lanes add to one element: all meet again
/// behind them.
TEST(AmdHost, LanesComeTogetherWhereLoopsEnd) {
  Kernel k = kernel("ragged", [](ArrayRef<int, 1> n, ArrayRef<double, 1> x,
                                 ArrayRef<double, 1> sum) {
    parallel(n.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        v = v * 1.5;
        sum(0) += v;
      }
      sum(1) += v;
    });
  });
  constexpr int count = 300;
  std::vector<int> lengths(count);
  std::vector<double> values(count);
  double sums[2] = {};
  for (int i = 0; i < count; ++i) {
    auto at = static_cast<size_t>(i);
    lengths[at] = i * 7 % 5;
    double v = values[at] = i % 8;
    for (int j = 0; j < lengths[at]; ++j)
      sums[0] += v *= 1.5;
    sums[1] += v;
  }
  for (const char *chip : {"amd-host:gfx942", "amd-host:gfx1100"}) {
    Device device = Device::open(chip, {.validate = true});
    auto n = device.array<int>({count});
    auto x = device.array<double>({count}), sum = device.array<double>({2});
    n.from_host(lengths);
    x.from_host(values);
    k(n, x, sum);
    std::vector<double> got = sum.to_host();
    EXPECT_NEAR(got[0], sums[0], 1e-9) << chip;
    EXPECT_NEAR(got[1], sums[1], 1e-9) << chip;
  }
}

} // namespace
