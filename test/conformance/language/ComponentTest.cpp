/// Components and elements that are changed in place, and functions that go by
/// component.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using Values = std::vector<double>;

TEST(Component, OfPrivateArraysAtRunTime) {
  Kernel k = kernel("private", [](X x, X y) {
    parallel(y.size(), [&](Index i) {
      Local<Vec<double, 3>, 2> v;
      Local<Mat<double, 2, 3>, 2> m;
      FOR (t, 0, x.size()) {
        v[t % 2][(t + i) % 3] = x(t) * x(t);
        v[(t + 1) % 2][t % 3] += sin(v[t % 2][i % 3]) + x(t);
        v[t % 2][7 + i] = 1e9; // there is none
        m[t % 2](t % 2, (t + i) % 3) -= x(t);
        m[t % 2](i % 2, t % 3) *= 1.0 + v[t % 2][t % 3];
        m[t % 2](1, i % 3) = m[(t + 1) % 2](i % 2, 0) + x(t);
        m[(t + 1) % 2] *= 0.5;
        m[t % 2] /= x(0);
      }
      y(i) =
          dot(v[0], v[1]) + norm_sqr(m[0]) + m[1](i % 2, i % 3) + v[1][7 + i];
    });
  });
  auto x = active<double>({.9, .4, .7, -.6, .3}), y = active<double>({0, 0, 0});
  expectGradients({x}, {y}, k, x, y);
  EXPECT_LT(std::abs(y.to_host()[0]), 100);
}

TEST(Component, OfPrivateArraysHasItsValue) {
  Kernel k = kernel("values", [](ArrayRef<int, 1> y) {
    Local<Vec<int, 3>, 2> v;
    FOR (t, 0, 6) {
      v[t % 2][t % 3] = cast<int>(t + 1);
    }
    FOR (t, 0, 6) {
      y(t) = v[t / 3][t % 3];
    }
  });
  auto y = constant<int>({0, 0, 0, 0, 0, 0});
  k(y);
  EXPECT_EQ(y.to_host(), (std::vector<int>{1, 5, 3, 4, 2, 6}));
}

/// A product is a load and a store.
TEST(Component, OfArraysAreMultiplied) {
  Kernel k = kernel("scaled", [](X x, ArrayRef<Vec<double, 2>, 1> v,
                                 ArrayRef<Mat<double, 2, 2>, 1, SoA> m) {
    parallel(x.size(), [&](Index i) {
      x(i) *= 3.0;
      x(i) /= 2.0;
      v(i) *= vec(2.0, 3.0);
      v(i) /= x(i);
      v(i)[i % 2] *= 10.0;
      m(i) *= 4.0;
      m(i) /= x(i);
      m(i)(i % 2, 1) *= 2.0;
    });
  });
  auto x = constant<double>({2, 4});
  auto v = cpu().array<Vec<double, 2>>({2});
  auto m = cpu().array<Mat<double, 2, 2>>({2}, none, {.layout = SoA});
  v.from_host({{3, 1}, {6, 2}});
  m.from_host({{{{3, 6}, {9, 0}}}, {{{3, 6}, {9, 3}}}});
  k(x, v, m);
  using Rows = std::array<std::array<double, 2>, 2>;
  EXPECT_EQ(x.to_host(), (Values{3, 6}));
  EXPECT_EQ(v.to_host(),
            (std::vector<std::array<double, 2>>{{20, 1}, {2, 10}}));
  EXPECT_EQ(m.to_host(),
            (std::vector<Rows>{{{{4, 16}, {12, 0}}}, {{{2, 4}, {6, 4}}}}));
}

TEST(Component, ProductsOfElementsHaveDerivatives) {
  Kernel k = kernel("product", [](X x, X y) {
    parallel(y.size(), [&](Index i) {
      FOR (t, 0, x.size()) {
        y(i) *= x(t);
        y(i) /= 1.0 + x((t + i) % x.size()) * x(t);
      }
    });
  });
  auto x = active<double>({1.5, 0.5, 2}), y = active<double>({1, 2});
  k(x, y);
  Values product = y.to_host();
  EXPECT_NEAR(product[0], 1.5 / (3.25 * 1.25 * 5), 1e-15);
  x.grad().fill(0);
  y.grad().fill(1);
  y.from_host({1, 2});
  k.grad(initial_state, x, y);
  EXPECT_NEAR(y.grad().to_host()[0], product[0], 1e-15);
  EXPECT_NEAR(y.grad().to_host()[1], product[1] / 2, 1e-15);
  // The derivatives of y(0) and y(1) by x(t), divided by these.
  auto first = [](double x) { return 1 / x - 2 * x / (1 + x * x); };
  auto second = [](const Values &x, size_t t) {
    double next = x[(t + 1) % 3], last = x[(t + 2) % 3];
    return 1 / x[t] - next / (1 + x[t] * next) - last / (1 + x[t] * last);
  };
  Values start = x.to_host(), slope = x.grad().to_host();
  for (size_t t = 0; t < 3; ++t)
    EXPECT_NEAR(slope[t],
                product[0] * first(start[t]) + product[1] * second(start, t),
                1e-14);
}

TEST(Component, ChosenOneByOne) {
  Kernel k = kernel("chosen", [](X x, X y) {
    Vec<double, 3> a(x(0), x(1), x(2)), b(x(3), x(4), x(5));
    Vec<double, 3> larger = select(a > b, a * a, sin(b));
    Vec<double, 3> step = select(a > b, 1.0, 0.0);
    Vec<double, 3> kept = select(b < 0.5, b, 0.25);
    FOR (i, 0, 3) {
      y(i) = larger[i] + step[i] + 10.0 * kept[i];
    }
  });
  auto x = active<double>({.9, .1, .7, .2, .3, .8}),
       y = active<double>({0, 0, 0});
  k(x, y);
  Values got = y.to_host();
  EXPECT_NEAR(got[0], .81 + 1 + 2, 1e-15);
  EXPECT_NEAR(got[1], std::sin(.3) + 3, 1e-15);
  EXPECT_NEAR(got[2], std::sin(.8) + 2.5, 1e-15);
  expectGradients({x}, {y}, k, x, y);
}

TEST(Component, FunctionsTakeNumbersOnEitherSide) {
  Kernel k = kernel("sides", [](X x, X y) {
    Vec<double, 2> v(x(0), x(1));
    Vec<double, 2> sum = max(0.6, v) + max(v, 0.6) + pow(2.0, v) +
                         atan2(x(1), v) + min(x(0), v) + hypot(v, 3) +
                         min(v, 0.6, v * 2.0) + fmod(v, 0.3);
    sum += sinh(v) + cosh(v) + asinh(v) + acosh(v + 1.0) + atanh(v) + expm1(v) +
           log1p(v) + log10(v) + cbrt(v) + erf(v) + erfc(v);
    y(0) = sum[0];
    y(1) = sum[1];
  });
  Values start = {.5, .75};
  auto x = active<double>(start), y = active<double>({0, 0});
  k(x, y);
  for (size_t i = 0; i < 2; ++i) {
    double v = start[i];
    double expected = 2 * std::max(.6, v) + std::pow(2, v) +
                      std::atan2(.75, v) + std::min(.5, v) + std::hypot(v, 3) +
                      std::min(v, .6) + std::fmod(v, .3) + std::sinh(v) +
                      std::cosh(v) + std::asinh(v) + std::acosh(v + 1) +
                      std::atanh(v) + std::expm1(v) + std::log1p(v) +
                      std::log10(v) + std::cbrt(v) + 1;
    EXPECT_NEAR(y.to_host()[i], expected, 1e-13);
  }
  auto at = active<double>({.52, .77});
  expectGradients({at}, {y}, k, at, y);
}

TEST(Component, OfIntegersAreShifted) {
  Kernel k = kernel("shifts", [](ArrayRef<Vec<int, 2>, 1> v) {
    v(0) = (v(0) << vec(1, 2)) + (v(1) >> 1);
    v(1) = 256 >> v(1);
  });
  auto v = cpu().array<Vec<int, 2>>({2});
  v.from_host({{3, 5}, {8, -5}});
  k(v);
  EXPECT_EQ(v.to_host()[0], (std::array{10, 17}));
  EXPECT_EQ(v.to_host()[1], (std::array{1, 0}));
}

} // namespace
