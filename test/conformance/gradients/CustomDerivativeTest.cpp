/// Functions whose derivative is given: in both modes, in loops, nested, and
/// differentiated again.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;

/// The root r of r^3 + r = a, by Newton's method; the implicit function theorem
/// gives dr/da = 1 / (3 r^2 + 1).
auto root() {
  return custom_derivative(
      [](Expr<double> a) {
        Var<double> r = a;
        Var<double> step = 1.0;
        WHILE (abs(step) > 1e-14) {
          step = (r * r * r + r - a) / (3.0 * r * r + 1.0);
          r -= step;
        }
        return r;
      },
      [](Expr<double>, Expr<double> r) { return 1.0 / (3.0 * r * r + 1.0); });
}

double rootOf(double a) {
  double r = a;
  for (int iteration = 0; iteration < 100; ++iteration)
    r -= (r * r * r + r - a) / (3 * r * r + 1);
  return r;
}

const std::vector<double> points{-3, -0.4, 0, 0.7, 10};

TEST(CustomDerivative, ImplicitFunctions) {
  Kernel k = kernel("implicit", [](X x, X y) {
    auto f = root();
    parallel(x.size(), [&](Index i) { y(i) = f(x(i)); });
  });
  auto x = active(points), y = active(std::vector<double>(5, 0.0));
  expectGradients({x}, {y}, k, x, y);
  k(x, y);
  x.grad().fill(0);
  y.grad().fill(1);
  k.grad(x, y);
  for (size_t i = 0; i < points.size(); ++i) {
    double r = rootOf(points[i]);
    EXPECT_NEAR(y.to_host()[i], r, 1e-13);
    EXPECT_NEAR(x.grad().to_host()[i], 1 / (3 * r * r + 1), 1e-13);
  }
}

/// Nothing of the iteration is saved: the gradient has no tape.
TEST(CustomDerivative, SavesNothing) {
  Kernel k = kernel("implicit", [](X x, X y) {
    auto f = root();
    parallel(x.size(), [&](Index i) { y(i) = f(x(i)); });
  });
  EXPECT_EQ(k.ir(detail::Mode::Gradient).find("tape.push"), std::string::npos);
}

/// r'' = -6 r r'^3, r''' = -6 r'^4 - 18 r r'^2 r''.
TEST(CustomDerivative, SecondOrder) {
  Kernel k = kernel("implicit", [](X x, X y) {
    auto f = root();
    parallel(x.size(), [&](Index i) { y(i) = f(x(i)); });
  });
  auto gradient = Kernel::from_ir(k.ir(detail::Mode::Gradient));
  auto tangent = Kernel::from_ir(k.ir(detail::Mode::Tangent));
  auto third = Kernel::from_ir(gradient.ir(detail::Mode::Tangent));
  std::vector<double> zeros(5, 0.0), ones(5, 1.0);
  auto x = active(points), y = active(zeros), gx = active(zeros),
       gy = active(ones), dx = active(ones), dy = active(zeros);
  x.dual().fill(1);
  gradient.jvp(x, y, gx, gy);
  tangent.jvp(x, y, dx, dy);
  std::vector<double> second = gx.dual().to_host();
  auto x1 = active(ones), y1 = active(zeros), gx1 = active(zeros),
       gy1 = active(zeros);
  x1.dual().fill(0);
  gy.from_host(ones);
  gx.fill(0);
  third.jvp(x, y, gx, gy, x1, y1, gx1, gy1);
  for (size_t i = 0; i < points.size(); ++i) {
    double r = rootOf(points[i]), r1 = 1 / (3 * r * r + 1);
    double r2 = -6 * r * r1 * r1 * r1;
    double r3 = -6 * std::pow(r1, 4) - 18 * r * r1 * r1 * r2;
    EXPECT_NEAR(second[i], r2, 1e-13);
    EXPECT_NEAR(dy.dual().to_host()[i], r2, 1e-13);
    EXPECT_NEAR(gx1.to_host()[i], r2, 1e-13);
    EXPECT_NEAR(gx1.dual().to_host()[i], r3, 1e-12);
  }
}

/// Several arguments of several types; integers have no derivative.
TEST(CustomDerivative, OfSeveralArguments) {
  // a^n b, with n multiplications
  auto power = custom_derivative(
      [](Expr<double> a, Expr<int> n, Expr<float> b) {
        Var<double> product = cast<double>(b);
        FOR (k, 0, n) {
          product *= a;
        }
        return product;
      },
      [](Expr<double> a, Expr<int> n, Expr<float> b, Expr<double> y) {
        Expr<double> byA = select(a == 0, 0.0, cast<double>(n) * y / a);
        return std::tuple(byA, cast<float>(pow(a, cast<double>(n))));
      });
  Kernel k =
      kernel("power", [&](X a, ArrayRef<int, 1> n, ArrayRef<float, 1> b, X y) {
        parallel(a.size(), [&](Index i) { y(i) = power(a(i), n(i), b(i)); });
      });
  auto a = active<double>({2, -1.5}), y = active<double>({0, 0});
  auto b = active<float>({0.5, 3});
  auto n = constant<int>({3, 2});
  k(a, n, b, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{4, 6.75}));
  y.grad().fill(1);
  k.grad(a, n, b, y);
  EXPECT_EQ(a.grad().to_host(), (std::vector<double>{6, -9}));
  EXPECT_EQ(b.grad().to_host(), (std::vector<float>{8, 2.25}));
  b.dual().fill(1);
  a.dual().fill(1);
  k.jvp(a, n, b, y);
  EXPECT_EQ(y.dual().to_host(), (std::vector<double>{14, -6.75}));
}

/// The result of one iteration is the argument of the next one.
TEST(CustomDerivative, InLoopsAndBranches) {
  Kernel k = kernel("loops", [](ArrayRef<int, 1> iterations, X x, X y) {
    auto f = root();
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (t, 0, iterations(i)) {
        IF (v > 0.2) {
          v = v + sin(f(v * x(i)));
        }
        ELSE { v = f(v) - x(i); }
      }
      Var<int> left = iterations(i);
      WHILE (left > 0) {
        v = f(v) * 1.5;
        left -= 1;
      }
      y(i) = v * f(v);
    });
  });
  auto iterations = constant<int>({0, 1, 4, 7, 3});
  auto x = active(points), y = active(std::vector<double>(5, 0.0));
  expectGradients({x}, {y}, k, iterations, x, y);
}

/// Conditions guard the loads of its arguments.
TEST(CustomDerivative, InConditions) {
  Kernel k = kernel("guarded",
                    [](X x, X y) {
                      auto f = root();
                      parallel(y.size(), [&](Index i) {
                        Var<double> v = 0;
                        IF ((i < x.size()) & (f(x(i)) > 0.1)) {
                          v = f(2.0 * x(i));
                        }
                        y(i) = v;
                      });
                    },
                    {.debug = true});
  auto x = active(points), y = active(std::vector<double>(8, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

/// What has no useful derivative is given one: rounding passes it on, a clip
/// leaks.
TEST(CustomDerivative, StraightThroughAndClips) {
  auto rounded = custom_derivative([](Expr<double> v) { return round(v); },
                                   [](auto...) { return 1.0; });
  auto clip = custom_derivative(
      [](Expr<double> v) { return clamp(v, -1.0, 1.0); },
      [](Expr<double> v, auto) { return select(abs(v) > 1.0, 0.1, 1.0); });
  Kernel k = kernel("clip", [&](X x, X y) {
    parallel(x.size(),
             [&](Index i) { y(i) = 2.0 * rounded(x(i)) + clip(3.0 * x(i)); });
  });
  auto x = active<double>({0.2, 1.7}), y = active<double>({0, 0});
  k(x, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{0.2 * 3.0, 5}));
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 5);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[1], 2.3);
  x.dual().fill(1);
  k.jvp(x, y);
  EXPECT_DOUBLE_EQ(y.dual().to_host()[1], 2.3);
}

/// A factor that is inf or NaN is hidden by a zero adjoint and tangent.
TEST(CustomDerivative, ZeroWins) {
  auto pole =
      custom_derivative([](Expr<double> a, Expr<double>) { return a; },
                        [](Expr<double> a, Expr<double> b, Expr<double>) {
                          return std::tuple(1.0 / (a - a), 0.0 / (b - b));
                        });
  Kernel k = kernel("pole", [&](X x, X z, X w, X y) {
    parallel(1, [&](Index) { y(0) = w(0) * pole(x(0), z(0)); });
  });
  auto x = active<double>({2}), z = active<double>({3}),
       y = active<double>({0});
  auto w = constant<double>({0});
  y.grad().fill(1);
  k.grad(x, z, w, y);
  EXPECT_EQ(x.grad().to_host()[0], 0);
  EXPECT_EQ(z.grad().to_host()[0], 0);
  w.fill(1);
  k.jvp(x, z, w, y);
  EXPECT_EQ(y.dual().to_host()[0], 0);
  x.dual().fill(1);
  k.jvp(x, z, w, y);
  EXPECT_EQ(y.dual().to_host()[0], std::numeric_limits<double>::infinity());
}

/// The derivative of one is another one: cos for sin, by series.
TEST(CustomDerivative, OfOneByAnother) {
  auto series = [](Expr<double> x, double first) {
    Var<double> sum = 0.0, term = first ? Expr<double>(x) : Expr<double>(1.0);
    Var<double> n = first;
    FOR (k, 0, 20) {
      sum += term;
      term *= -x * x / ((n + 1.0) * (n + 2.0));
      n += 2.0;
    }
    return sum;
  };
  auto cosine =
      custom_derivative([=](Expr<double> x) { return series(x, 0); },
                        [](Expr<double> x, Expr<double>) { return -sin(x); });
  auto sine = custom_derivative(
      [=](Expr<double> x) { return series(x, 1); },
      [=](Expr<double> x, Expr<double>) { return cosine(x); });
  Kernel k = kernel("sine", [&](X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = sine(x(i)); });
  });
  auto x = active<double>({0.3, -2}), y = active<double>({0, 0});
  expectGradients({x}, {y}, k, x, y);
  auto second = Kernel::from_ir(k.ir(detail::Mode::Gradient));
  auto gx = active<double>({0, 0}), gy = active<double>({1, 1});
  x.dual().fill(1);
  second.jvp(x, y, gx, gy);
  EXPECT_NEAR(gx.to_host()[1], std::cos(-2), 1e-12);
  EXPECT_NEAR(gx.dual().to_host()[1], -std::sin(-2), 1e-12);
}

/// Used inside of another one, which knows nothing of its derivative.
TEST(CustomDerivative, InsideOfAnother) {
  auto cube = custom_derivative(
      [](Expr<double> a) {
        auto f = root();
        Expr<double> r = f(a);
        return r * r * r + r;
      },
      [](Expr<double>, Expr<double>) { return 1.0; });
  Kernel k = kernel("inside", [&](X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = cube(x(i)) * 2.0; });
  });
  auto x = active(points), y = active(std::vector<double>(5, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

/// In serial code, with numbers, and with generic functions.
TEST(CustomDerivative, GenericFunctionsAndNumbers) {
  auto scaled = custom_derivative(
      [](auto a, auto s) { return a * a * s; },
      [](auto a, auto s, auto) { return std::tuple(2.0f * a * s, a * a); });
  Kernel k = kernel("generic", [&](ArrayRef<float, 0> x, ArrayRef<float, 0> y) {
    Var<float> v = x();
    y() = scaled(v, 3.0f) + scaled(x(), Expr<float>(x()));
  });
  auto x = active<float>({2}, {1}), y = active<float>({0}, {1});
  auto x0 = cpu().array<float>({}, grad | dual),
       y0 = cpu().array<float>({}, grad | dual);
  x0.fill(2);
  k(x0, y0);
  EXPECT_EQ(y0.to_host()[0], 20);
  y0.grad().fill(1);
  k.grad(x0, y0);
  EXPECT_EQ(x0.grad().to_host()[0], 24);
}

} // namespace
