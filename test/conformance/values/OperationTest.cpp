/// Every operation of the language: its value against C++, its derivatives
/// against differences, its conventions at edges.

#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// One row of results for each function of x in (0.2, 0.9) and z in (1.1, 2).
template <class E, class X, class Z> std::vector<E> functionsOf(X x, Z z) {
  using std::abs, std::sqrt, std::cbrt, std::exp, std::exp2, std::expm1,
      std::log, std::log2, std::log10, std::log1p, std::pow, std::hypot,
      std::sin, std::cos, std::tan, std::asin, std::acos, std::atan, std::atan2,
      std::sinh, std::cosh, std::tanh, std::asinh, std::acosh, std::atanh,
      std::erf, std::erfc, std::fma, std::fmod, std::floor, std::ceil,
      std::trunc, std::round;
  return {x + z,        x - z,       x * z,        x / z,        -x,
          abs(x - z),   sqrt(x),     cbrt(x),      exp(x),       exp2(x),
          expm1(x),     log(x),      log2(x),      log10(x),     log1p(x),
          pow(x, z),    pow(z, x),   hypot(x, z),  sin(x),       cos(x),
          tan(x),       asin(x),     acos(x),      atan(x),      atan2(x, z),
          sinh(x),      cosh(x),     tanh(x),      asinh(x),     acosh(z),
          atanh(x),     erf(x),      erfc(x),      fma(x, z, z), fmod(z, x),
          x * floor(z), x * ceil(z), x * trunc(z), x * round(z)};
}

const size_t functionCount = functionsOf<double>(0.5, 1.5).size();

template <class T> Kernel allFunctions(KernelOptions options = {}) {
  return kernel(
      "functions",
      [](ArrayRef<T, 1> x, ArrayRef<T, 1> z, ArrayRef<T, 2> y) {
        parallel(x.size(0), [&](Index i) {
          Expr<T> a = x(i), b = z(i);
          std::vector<Expr<T>> values = functionsOf<Expr<T>>(a, b);
          for (size_t f = 0; f < values.size(); ++f)
            y(f, i) = values[f];
        });
      },
      options);
}

template <class T>
void expectValues(double tolerance, KernelOptions options = {}) {
  std::vector<T> xs, zs;
  for (double v : randomValues(64, 0.2, 0.9, 3))
    xs.push_back(static_cast<T>(v));
  for (double v : randomValues(64, 1.1, 2, 4))
    zs.push_back(static_cast<T>(v));
  auto x = active(xs), z = active(zs);
  auto y = active(std::vector<T>(64 * functionCount, T(0)),
                  {static_cast<int64_t>(functionCount), 64});
  allFunctions<T>(options)(x, z, y);
  std::vector<T> got = y.to_host();
  for (size_t i = 0; i < xs.size(); ++i) {
    std::vector<T> want = functionsOf<T>(xs[i], zs[i]);
    for (size_t f = 0; f < want.size(); ++f)
      EXPECT_NEAR(got[f * 64 + i], want[f],
                  tolerance * std::max(T(1), std::abs(want[f])))
          << "function " << f << " at " << xs[i] << ", " << zs[i];
  }
}

TEST(Operation, ValuesInDouble) { expectValues<double>(4e-16); }
TEST(Operation, ValuesInFloat) { expectValues<float>(3e-7); }
TEST(Operation, ValuesInFloatWithFastMath) {
  expectValues<float>(1e-6, {.fast_math = true});
}

TEST(Operation, Derivatives) {
  auto x = active(randomValues(3, 0.25, 0.85, 5));
  auto z = active(randomValues(3, 1.15, 1.95, 6));
  auto y = active(std::vector<double>(3 * functionCount, 0.0),
                  {static_cast<int64_t>(functionCount), 3});
  expectGradients({x, z}, {y}, allFunctions<double>(), x, z, y);
}

TEST(Operation, MinMaxClampSelectAndRsqrt) {
  Kernel k = kernel("choose", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Expr<double> v = x(i);
      y(i) = min(v, 0.5) * max(v, 0.25) + clamp(v, -1.0, 1.0) * v +
             select(v > 0, v * v, 3.0 * v) + rsqrt(v * v + 0.1);
    });
  });
  auto x = active<double>({-2.3, -0.4, 0.1, 0.3, 0.7, 1.9});
  auto y = active(std::vector<double>(6, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

// RULE: zeros
TEST(Operation, NothingComesOutOfABranchNotTaken) {
  Kernel k =
      kernel("guarded", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(0), [&](Index i) {
          Expr<double> v = x(i);
          y(i) = select(v > 0, log(v), 0.0) + select(v > 0, sqrt(v), 0.0) +
                 select(v > 0, 1.0 / v, 0.0) + select(v > 0, pow(v, 0.5), 0.0);
        });
      });
  auto x = active<double>({0.0, 1.0}), y = active<double>({0.0, 0.0});
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host()[0], 0);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[1], 1 + 0.5 - 1 + 0.5);
  x.dual().fill(1);
  k.jvp(x, y);
  EXPECT_EQ(y.dual().to_host()[0], 0);
}

// RULE: zeros
TEST(Operation, ZeroAdjointHidesInfinity) {
  Kernel k = kernel("edges", [](ArrayRef<double, 1> x, ArrayRef<double, 1> w,
                                ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Expr<double> v = x(i);
      y(i) = w(i) * (sqrt(v) + 1.0 / (1.0 + acos(1.0 - v)) + pow(v, 0.3));
    });
  });
  auto x = active<double>({0.0}), y = active<double>({0.0});
  auto w = constant<double>({0.0});
  k(x, w, y);
  y.grad().fill(1);
  k.grad(x, w, y);
  EXPECT_EQ(x.grad().to_host()[0], 0);
}

TEST(Operation, IntegersAreTotal) {
  Kernel k = kernel("integers", [](ArrayRef<int, 1> a, ArrayRef<int, 1> b,
                                   ArrayRef<int, 2> y) {
    parallel(a.size(0), [&](Index i) {
      y(0, i) = a(i) / b(i);
      y(1, i) = a(i) % b(i);
      y(2, i) = a(i) << b(i);
      y(3, i) = a(i) >> b(i);
      y(4, i) = (a(i) & b(i)) + (a(i) | b(i)) - (a(i) ^ b(i)) + ~a(i);
      y(5, i) = min(a(i), b(i)) - max(a(i), b(i)) + abs(b(i)) - a(i);
    });
  });
  int lowest = std::numeric_limits<int>::min();
  auto a = constant<int>({7, -7, 7, lowest, 5}),
       b = constant<int>({2, 2, 0, -1, 33});
  auto y = constant(std::vector<int>(30, 0), {6, 5});
  k(a, b, y);
  std::vector<int> got = y.to_host();
  auto row = [&](int r) {
    return std::vector<int>(got.begin() + 5 * r, got.begin() + 5 * r + 5);
  };
  EXPECT_EQ(row(0), (std::vector<int>{3, -3, 0, lowest, 0}));
  EXPECT_EQ(row(1), (std::vector<int>{1, -1, 0, 0, 5}));
  EXPECT_EQ(row(2), (std::vector<int>{28, -28, 7, 0, 10}));
  EXPECT_EQ(row(3), (std::vector<int>{1, -2, 7, -1, 2}));
}

TEST(Operation, UnsignedAndWideIntegers) {
  Kernel k =
      kernel("unsigned", [](ArrayRef<uint32_t, 1> a, ArrayRef<uint64_t, 1> b,
                            ArrayRef<int64_t, 1> c, ArrayRef<bool, 1> d) {
        parallel(1, [&](Index i) {
          a(i) = (a(i) + 1u) / 2u - 5u;
          b(i) = b(i) % 1000u + (b(i) >> 60);
          c(i) = c(i) >> 1;
          d(i) = (a(i) > 5u) & ~(b(i) == 0u);
        });
      });
  auto a = constant<uint32_t>({4});
  auto b = constant<uint64_t>({0xF000000000000001ull});
  auto c = constant<int64_t>({-9});
  auto d = constant<bool>({false});
  k(a, b, c, d);
  EXPECT_EQ(a.to_host()[0], uint32_t(2) - 5u);
  EXPECT_EQ(b.to_host()[0], 0xF000000000000001ull % 1000 + 15);
  EXPECT_EQ(c.to_host()[0], -5);
  EXPECT_EQ(d.to_host()[0], true);
}

TEST(Operation, FloatToIntegerSaturates) {
  Kernel k =
      kernel("convert", [](ArrayRef<double, 1> x, ArrayRef<int, 1> y,
                           ArrayRef<uint32_t, 1> u, ArrayRef<int64_t, 1> w) {
        parallel(x.size(0), [&](Index i) {
          y(i) = cast<int>(x(i));
          u(i) = cast<uint32_t>(x(i));
          w(i) = cast<int64_t>(x(i));
        });
      });
  auto x = constant<double>({1.9, -1.9, 1e20, -inf, std::nan("")});
  auto y = constant(std::vector<int>(5, 7));
  auto u = constant(std::vector<uint32_t>(5, 7));
  auto w = constant(std::vector<int64_t>(5, 7));
  k(x, y, u, w);
  int most = std::numeric_limits<int>::max(),
      least = std::numeric_limits<int>::min();
  EXPECT_EQ(y.to_host(), (std::vector<int>{1, -1, most, least, 0}));
  EXPECT_EQ(u.to_host(), (std::vector<uint32_t>{1, 0, ~0u, 0, 0}));
  EXPECT_EQ(w.to_host()[2], std::numeric_limits<int64_t>::max());
}

TEST(Operation, MinAndMaxIgnoreNaN) {
  Kernel k = kernel("nan", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(1, [&](Index) {
      y(0) = min(x(0), x(1));
      y(1) = max(x(1), x(0));
    });
  });
  auto x = active<double>({std::nan(""), 2}), y = active<double>({0, 0});
  k(x, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{2, 2}));
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{0, 2}));
}

TEST(Operation, MixedPrecision) {
  Kernel k = kernel("mixed", [](ArrayRef<float, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> wide = cast<double>(x(i)) * 3.0;
      y(i) = wide * cast<double>(cast<float>(wide));
    });
  });
  auto x = active<float>({0.5f, 2.0f});
  auto y = active<double>({0, 0});
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_NEAR(x.grad().to_host()[0], 18 * 0.5, 1e-5);
  EXPECT_NEAR(x.grad().to_host()[1], 18 * 2.0, 1e-5);
}

} // namespace
