#include "rigid/Chain.h"

#include <gtest/gtest.h>

#include <cmath>

namespace costate::rigid {
namespace {

void expectDifferences(const ChainInput &input) {
  Chain chain(Device::best(), input);
  chain.runGradient();
  std::vector<double> gradient = chain.gradient();
  const double h = 1e-5;
  for (size_t k = 0; k < gradient.size(); ++k) {
    chain.move(k, h);
    double after = chain.run();
    chain.move(k, -2 * h);
    double before = chain.run();
    chain.move(k, h);
    EXPECT_NEAR(gradient[k], (after - before) / (2 * h),
                1e-6 * std::max(1.0, std::abs(gradient[k])))
        << k;
  }
}

TEST(Chain, GradientsAgreeWithDifferences) {
  expectDifferences(randomChain(2, 1, 3, false));
  expectDifferences(randomChain(3, 4, 6, false));
}

TEST(Chain, GradientsOfTreesAgreeWithDifferences) {
  expectDifferences(randomChain(3, 7, 6, true));
}

/// A pendulum of one link in its plane: the mass does not matter.
TEST(Chain, APendulumFalls) {
  ChainInput in = randomChain(1, 1, 1, false);
  in.axes = {0, 1, 0};
  in.lengths = {2};
  in.masses = {3};
  in.angles = {0.5};
  Chain chain(Device::best(), in);
  double torque = 3 * 9.81 * std::cos(0.5),
         inertia = 3 * 4 / 4.0 + 3 * 4 / 12.0 + 1e-3;
  double speed = 0.01 * torque / inertia, height = 2 * std::sin(-0.5);
  EXPECT_NEAR(chain.run(), height * height + 0.1 * speed * speed, 1e-12);
}

} // namespace
} // namespace costate::rigid
