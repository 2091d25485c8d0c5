/// stop_gradient(x) is x, and a constant to every derivative.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;

/// y = x * stop(x) + sin(stop(x^2)): dy/dx = x, and nothing more.
Kernel product() {
  return kernel("product", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      Expr<double> v = x(i);
      y(i) = v * stop_gradient(v) + sin(stop_gradient(v * v));
    });
  });
}

TEST(StopGradient, IsAConstantInBothModes) {
  Kernel k = product();
  auto x = active<double>({0.5, -2}), y = active<double>({0, 0});
  k(x, y);
  EXPECT_DOUBLE_EQ(y.to_host()[1], 4 + std::sin(4));
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{0.5, -2}));
  x.dual().fill(1);
  k.jvp(x, y);
  EXPECT_EQ(y.dual().to_host(), (std::vector<double>{0.5, -2}));
}

/// Of v * stop(v) the gradient is stop(v): its derivative is 0.
TEST(StopGradient, IsAConstantInHigherDerivatives) {
  auto x = active<double>({0.5, -2}), y = active<double>({0, 0});
  auto gx = active<double>({0, 0}), gy = active<double>({1, 1});
  auto k = Kernel::from_ir(product().ir(detail::Mode::Gradient));
  x.dual().fill(1);
  k.jvp(x, y, gx, gy);
  EXPECT_EQ(gx.to_host(), (std::vector<double>{0.5, -2}));
  EXPECT_EQ(gx.dual().to_host(), (std::vector<double>{0, 0}));
}

/// A truncated sum: only the last iteration of the loop has a derivative.
TEST(StopGradient, CutsLoops) {
  Kernel k = kernel("cut", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = 1.0;
      FOR (t, 0, 5) {
        v = stop_gradient(v) * x(i);
      }
      y(i) = v;
    });
  });
  auto x = active<double>({1.5, -0.5}), y = active<double>({0, 0});
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  x.dual().fill(1);
  k.jvp(x, y);
  for (int i : {0, 1}) {
    double v = i ? -0.5 : 1.5;
    EXPECT_DOUBLE_EQ(y.to_host()[i], std::pow(v, 5));
    EXPECT_DOUBLE_EQ(x.grad().to_host()[i], std::pow(v, 4));
    EXPECT_DOUBLE_EQ(y.dual().to_host()[i], std::pow(v, 4));
  }
}

/// What only feeds a constant needs no gradient, whatever its derivative is.
TEST(StopGradient, NothingComesThrough) {
  Kernel k = kernel("after", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      y(i) = x(i) + stop_gradient(sqrt(x(i)) + 1.0 / (1.0 + x(i)));
    });
  });
  auto x = active<double>({0}), y = active<double>({0});
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host()[0], 1);
  auto into = constant<double>({0}); // written by constants only
  Kernel copy = kernel("copy", [](X x, X y, X z) {
    parallel(x.size(), [&](Index i) {
      y(i) = stop_gradient(x(i));
      z(i) = x(i);
    });
  });
  copy.grad(x, into, y);
}

TEST(StopGradient, OfSinglePrecisionAndIntegers) {
  Kernel k = kernel("types", [](ArrayRef<float, 1> x, ArrayRef<int, 1> n,
                                ArrayRef<float, 1> y) {
    parallel(1, [&](Index) {
      y(0) = x(0) * stop_gradient(x(0)) * cast<float>(stop_gradient(n(0)));
    });
  });
  auto x = active<float>({3}), y = active<float>({0});
  auto n = constant<int>({2});
  k(x, n, y);
  EXPECT_EQ(y.to_host()[0], 18);
  y.grad().fill(1);
  k.grad(x, n, y);
  EXPECT_EQ(x.grad().to_host()[0], 6);
}

} // namespace
