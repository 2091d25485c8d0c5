/// Linear recurrences, of which `fast_math` makes one iteration of 32, beside a
/// loop on the host.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

/// `v = factor * v + term`
struct Step {
  double factor, term;
};

std::vector<int> lengths() {
  std::vector<int> values;
  for (int n = -3; n < 40; ++n)
    values.push_back(n);
  values.insert(values.end(), {1000, 0, 517});
  return values;
}

template <class T>
void expectRecurrence(Step step, double tolerance, KernelOptions options) {
  Kernel k = kernel(
      "decay",
      [step](ArrayRef<T, 1> x, ArrayRef<int, 1> n, ArrayRef<T, 1> y) {
        parallel(x.size(0), [&](Index i) {
          Var<T> v = x(i);
          FOR (j, 0, n(i)) {
            v = v * static_cast<T>(step.factor) + static_cast<T>(step.term);
          }
          y(i) = v;
        });
      },
      options);
  std::vector<int> depths = lengths();
  std::vector<T> start;
  for (size_t i = 0; i < depths.size(); ++i)
    start.push_back(static_cast<T>(0.25 + 0.125 * static_cast<double>(i % 9)));
  auto x = active(start), y = active(std::vector<T>(depths.size(), T(0)));
  auto n = constant(depths);
  k(x, n, y);
  std::vector<T> values = y.to_host();
  y.grad().fill(1);
  k.grad(x, n, y);
  std::vector<T> slopes = x.grad().to_host();
  for (size_t i = 0; i < depths.size(); ++i) {
    double v = start[i], slope = 1;
    for (int j = 0; j < depths[i]; ++j) {
      v = static_cast<T>(step.factor) * v + static_cast<T>(step.term);
      slope *= static_cast<T>(step.factor);
    }
    EXPECT_NEAR(values[i], v, tolerance * std::max(1.0, std::abs(v)))
        << depths[i] << " iterations, " << options.lanes << " lanes";
    EXPECT_NEAR(slopes[i], slope, tolerance * std::max(1.0, std::abs(slope)))
        << depths[i] << " iterations, " << options.lanes << " lanes";
  }
}

TEST(LinearLoop, WithFastMath) {
  for (Step step : {Step{0.95, 0.01}, Step{-1, 1}, Step{1, 0.125},
                    Step{1.015625, -0.5}, Step{-0.5, 0}, Step{1e-3, 1}})
    for (int lanes : {0, 1, 4, 32}) {
      expectRecurrence<double>(step, 1e-12,
                               {.fast_math = true, .lanes = lanes});
      expectRecurrence<float>(step, 3e-4, {.fast_math = true, .lanes = lanes});
    }
}

/// A value that stays where it is, though eight of its products overflow.
TEST(LinearLoop, WithFactorsThatOverflow) {
  Kernel k = kernel("stay",
                    [](ArrayRef<double, 1> x, Scalar<int> n) {
                      parallel(x.size(0), [&](Index i) {
                        Var<double> v = x(i);
                        FOR (j, 0, n) {
                          v = v * 1e50;
                        }
                        x(i) = v;
                      });
                    },
                    {.fast_math = true});
  auto x = active(std::vector<double>{0, 1e-290, 0});
  k(x, 11);
  EXPECT_EQ(x.to_host()[0], 0);
  EXPECT_NEAR(x.to_host()[1] / 1e260, 1, 1e-10);
}

} // namespace
