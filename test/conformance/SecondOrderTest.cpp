/// Derivatives of derivatives.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;
using detail::Mode;

namespace {

/// v <- v sin(v) while below a bound that the loop itself moves, so records
/// hold varied values and the number of turns differs.
Kernel turningKernel() {
  return kernel("turning", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      Var<int> turns = 0;
      WHILE (v *v < 9.0 + 0.1 * v) {
        IF (v > 1.0) {
          v = v * exp(0.3 * v);
        }
        ELSE { v = v + sin(v) * x(i); }
        turns += 1;
        IF (turns > 6) {
          BREAK;
        }
      }
      y(i) = v * x(i);
    });
  });
}

TEST(SecondOrder, TheTextOfAGradientWithATapeHasATangent) {
  Kernel k = turningKernel();
  Kernel gradient = Kernel::from_ir(k.ir(Mode::Gradient), "turning.grad");
  const std::vector<double> start = {0.4, 0.9, 1.3, 2.2},
                            direction = {1, -0.5, 2, 0.7};
  auto x = active(start), y = active<double>({0, 0, 0, 0});
  auto gx = active<double>({0, 0, 0, 0}), gy = active<double>({1, 1, 1, 1});
  auto gradientAt = [&](double along) {
    std::vector<double> at = start;
    for (size_t i = 0; i < at.size(); ++i)
      at[i] += along * direction[i];
    x.from_host(at);
    gx.fill(0);
    gy.fill(1);
    gradient(x, y, gx, gy);
    return gx.to_host();
  };
  auto below = gradientAt(-1e-5), above = gradientAt(1e-5),
       middle = gradientAt(0);
  x.dual().from_host(direction);
  gx.fill(0);
  gy.fill(1);
  gradient.jvp(x, y, gx, gy);
  EXPECT_EQ(gx.to_host(), middle);
  for (size_t i = 0; i < start.size(); ++i) {
    double difference = (above[i] - below[i]) / 2e-5;
    EXPECT_NEAR(gx.dual().to_host()[i], difference,
                1e-6 * std::max(1.0, std::abs(difference)));
  }
}

TEST(SecondOrder, TheGradientOfTheTextOfAGradientIsRefusedByName) {
  Kernel gradient =
      Kernel::from_ir(turningKernel().ir(Mode::Gradient), "turning.grad");
  auto x = active<double>({1}), y = active<double>({0}),
       gx = active<double>({0}), gy = active<double>({1});
  expectError(ErrorCode::NotDifferentiable,
              {"a gradient has no gradient", "take its forward derivative"},
              [&] { gradient.grad(x, y, gx, gy); });
}

} // namespace
