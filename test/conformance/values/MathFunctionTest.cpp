/// Functions that are put together from others, and those of bits.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <bit>
#include <limits>

COSTATE_LABEL("*", sample);

using namespace costate;
using namespace costate::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

template <class T> void expectBits(const std::vector<T> &values) {
  Kernel k = kernel("bits", [](ArrayRef<T, 1> x, ArrayRef<T, 2> y) {
    parallel(x.size(), [&](Index i) {
      y(0, i) = popcnt(x(i));
      y(1, i) = clz(x(i));
      y(2, i) = ffs(x(i));
    });
  });
  size_t n = values.size();
  auto x = constant(values);
  auto y = constant(std::vector<T>(3 * n, 77), {3, int64_t(n)});
  k(x, y);
  std::vector<T> got = y.to_host();
  for (size_t i = 0; i < n; ++i) {
    auto bits = std::make_unsigned_t<T>(values[i]);
    EXPECT_EQ(got[i], T(std::popcount(bits))) << bits;
    EXPECT_EQ(got[n + i], T(std::countl_zero(bits))) << bits;
    EXPECT_EQ(got[2 * n + i], bits ? T(std::countr_zero(bits) + 1) : 0) << bits;
  }
}

TEST(MathFunction, AnglesMayBeHuge) {
  Kernel k = kernel("angles", [](ArrayRef<double, 1> x, ArrayRef<double, 2> y) {
    parallel(x.size(), [&](Index i) {
      y(0, i) = sin(x(i));
      y(1, i) = cos(x(i));
    });
  });
  std::vector<double> angles = {1e13, -1.5e14, 1e15, 3e18, -1e100, 1.7e308};
  size_t n = angles.size();
  auto x = constant(angles);
  auto y = constant(std::vector<double>(2 * n, 0), {2, int64_t(n)});
  k(x, y);
  std::vector<double> got = y.to_host();
  for (size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(got[i], std::sin(angles[i]), 1e-14) << angles[i];
    EXPECT_NEAR(got[n + i], std::cos(angles[i]), 1e-14) << angles[i];
  }
}

TEST(MathFunction, RemaindersOfTheLargestNumbers) {
  Kernel k =
      kernel("remainders", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                              ArrayRef<double, 1> z) {
        parallel(x.size(), [&](Index i) { z(i) = fmod(x(i), y(i)); });
      });
  constexpr double most = std::numeric_limits<double>::max();
  std::vector<double> xs, ys;
  for (double x :
       {most, 0.5 * most, std::nextafter(most, 0.0), 0x1.8p1023, 1e305})
    for (double y : {0x1p-1074, 3e-310, 1e-200, 0.3, 7.0, 1.5e200, 0x1p1023,
                     0x1.7p1023, most, inf})
      for (double sign : {1.0, -1.0}) {
        xs.push_back(sign * x);
        ys.push_back(y);
      }
  auto x = constant(xs), y = constant(ys), z = constant(xs);
  k(x, y, z);
  std::vector<double> got = z.to_host();
  for (size_t i = 0; i < xs.size(); ++i) {
    double expected = std::fmod(xs[i], ys[i]);
    EXPECT_EQ(got[i], expected) << xs[i] << " and " << ys[i];
    EXPECT_EQ(std::signbit(got[i]), std::signbit(expected));
  }
}

TEST(MathFunction, BitsAreCounted) {
  expectBits<int>({0, 1, -1, 12, std::numeric_limits<int>::min(), 0x7f00});
  expectBits<uint32_t>({0, 1, ~0u, 0x80000000u, 40});
  expectBits<int64_t>(
      {0, 1, -1, int64_t(1) << 40, 48, std::numeric_limits<int64_t>::min()});
  expectBits<uint64_t>({0, 1, ~uint64_t(0), uint64_t(3) << 62, 96});
  expectBits<int8_t>({0, 1, -1, 12, -128, 127});
  expectBits<uint8_t>({0, 1, 255, 128, 40});
  expectBits<int16_t>({0, 1, -1, 12, -32768, 0x7f00});
  expectBits<uint16_t>({0, 1, 65535, 0x8000, 40});
}

TEST(MathFunction, NumbersOfTheHostAreConverted) {
  Kernel k = kernel("casts", [](ArrayRef<int, 1> y, ArrayRef<double, 1> x) {
    y(0) = cast<int8_t>(300);
    y(1) = cast<uint8_t>(-1);
    y(2) = cast<int>(-2.7);
    y(3) = cast<int8_t>(1e9);
    y(4) = cast<int>(true) + cast<int>('a');
    x(0) = cast<double>(7) / 2 + cast<double>(cast<bool>(3));
    x(1) = cast<float>(0.1);
    x(2) = cast<double>(cast<f16>(0.1f));
    x(3) = cast<double>(cast<uint64_t>(~uint64_t(0)));
  });
  auto y = constant<int>({0, 0, 0, 0, 0});
  auto x = constant<double>({0, 0, 0, 0});
  k(y, x);
  EXPECT_EQ(y.to_host(), (std::vector<int>{44, 255, -2, 127, 98}));
  EXPECT_EQ(x.to_host(),
            (std::vector<double>{4.5, double(0.1f), double(float(f16(0.1f))),
                                 18446744073709551616.0}));
}

TEST(MathFunction, BitsAreKept) {
  Kernel k = kernel("bits", [](ArrayRef<double, 1> x, ArrayRef<int64_t, 1> n,
                               ArrayRef<float, 1> f, ArrayRef<uint32_t, 1> u,
                               ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      n(i) = bit_cast<int64_t>(stop_gradient(x(i)));
      u(i) = bit_cast<uint32_t>(f(i)) +
             bit_cast<uint32_t>(bit_cast<int>(1.0f * f(i)));
      y(i) = x(i) * bit_cast<double>(n(i) ^ (int64_t(1) << 63));
    });
  });
  std::vector<double> values = {1.5, -0.0, 3e-310, inf};
  auto x = active(values), y = active(std::vector<double>(4, 0));
  auto n = constant(std::vector<int64_t>(4, 0));
  auto f = constant<float>({1.5f, -2.0f, 1e-40f, 7.0f});
  auto u = constant(std::vector<uint32_t>(4, 0));
  k(x, n, f, u, y);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(n.to_host()[i], std::bit_cast<int64_t>(values[i]));
    EXPECT_EQ(u.to_host()[i], 2 * std::bit_cast<uint32_t>(f.to_host()[i]));
  }
  EXPECT_EQ(y.to_host()[0], -1.5 * 1.5);
  y.grad().fill(1);
  k.grad(x, n, f, u, y);
  EXPECT_EQ(x.grad().to_host()[0], -1.5); // its bits are constants
}

TEST(MathFunction, BitsOfActiveValuesAreRefused) {
  Kernel k = kernel("bits", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    y(0) = cast<double>(bit_cast<int64_t>(x(0)));
  });
  auto x = active<double>({1}), y = active<double>({0});
  k(x, y);
  std::string place = here(__FILE__, __LINE__ - 4);
  for (bool reverse : {true, false})
    expectError(ErrorCode::NotDifferentiable,
                {place, "`bit_cast` reads the bits",
                 "write `bit_cast<T>(stop_gradient(x))`"},
                [&] { reverse ? k.grad(x, y) : k.jvp(x, y); });
}

TEST(MathFunction, RemaindersOfIntegersHaveTheSignOfTheDivisor) {
  Kernel k = kernel("mod", [](ArrayRef<int, 1> a, ArrayRef<int, 1> b,
                              ArrayRef<int, 2> y, ArrayRef<uint32_t, 1> u) {
    parallel(a.size(), [&](Index i) {
      y(0, i) = mod(a(i), b(i));
      y(1, i) = floor_div(a(i), b(i));
      u(i) = mod(cast<uint32_t>(a(i)), 10u) + sign(cast<uint32_t>(b(i))) * 100u;
      y(2, i) = sign(a(i));
    });
  });
  int lowest = std::numeric_limits<int>::min();
  auto a = constant<int>({7, -7, 7, -7, 6, 5, lowest});
  auto b = constant<int>({3, 3, -3, -3, -3, 0, -1});
  auto y = constant(std::vector<int>(21, 0), {3, 7});
  auto u = constant(std::vector<uint32_t>(7, 0));
  k(a, b, y, u);
  EXPECT_EQ(y.to_host(),
            (std::vector<int>{1,  2, -2,     -1, 0,  0, 0,  2, -3, -3, 2,
                              -2, 0, lowest, 1,  -1, 1, -1, 1, 1,  -1}));
  EXPECT_EQ(u.to_host(),
            (std::vector<uint32_t>{107, 109, 107, 109, 106, 5, 108}));
}

TEST(MathFunction, NumbersAreClassified) {
  for (bool fast : {false, true}) {
    Kernel k = kernel("classify",
                      [](ArrayRef<double, 1> x, ArrayRef<int, 1> y) {
                        parallel(x.size(), [&](Index i) {
                          Expr<double> v = x(i) * 1.0;
                          y(i) = cast<int>(isnan(v)) + cast<int>(isinf(v)) * 2 +
                                 cast<int>(isfinite(v)) * 4;
                        });
                      },
                      {.fast_math = fast});
    auto x = constant<double>({std::nan(""), inf, -inf, 0, 1e308, 5e-324});
    auto y = constant(std::vector<int>(6, 0));
    k(x, y);
    EXPECT_EQ(y.to_host(), (std::vector<int>{1, 2, 2, 4, 4, 4}));
  }
}

TEST(MathFunction, ValuesOfNumbers) {
  Kernel k = kernel("values", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    Expr<double> a = x(0), b = x(1);
    y(0) = sign(a) + 10.0 * sign(b) + 100.0 * sign(a - a);
    y(1) = mod(a, 2.0);
    y(2) = mod(b, 2.0);
    y(3) = mod(b, -2.0);
    y(4) = floor_div(b, 2.0);
    y(5) = fract(b);
    y(6) = mix(a, b, 0.25);
    y(7) = smoothstep(0.0, 4.0, a);
    y(8) = smoothstep(0.0, 4.0, b) + smoothstep(0.0, 0.5, a);
    y(9) = min(a, b, -7.0) + max(a, b, 1.0) + min(3, a, b);
  });
  auto x = constant<double>({1, -2.75}), y = active(std::vector<double>(10, 0));
  k(x, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{-9, 1, 1.25, -.75, -2, .25, .0625,
                                              .15625, 1, -7 + 1 - 2.75}));
}

TEST(MathFunction, DerivativesOfNumbers) {
  Kernel k =
      kernel("derivatives", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Expr<double> v = x(i);
          y(i) = sign(v) * v + mod(v * v, 0.7) * v + mod(-v, 0.3 + v * v) +
                 floor_div(v, 0.4) * v + fract(3.0 * v) * v +
                 mix(v, v * v, sin(v)) + smoothstep(-1.0, 2.0, v) +
                 max(v, v * v, 0.5 * v) + min(v, 1.0, 2.0 * v);
        });
      });
  auto x = active<double>({-2.31, -0.43, 0.17, 0.56, 1.72});
  auto y = active(std::vector<double>(5, 0));
  expectGradients({x}, {y}, k, x, y);
}

/// Mesa's driver computes sines of numbers that it knows, and then folds the
/// comparisons of exponents within the arcus tangent.
TEST(MathFunction, ADriverMayKnowTheirArguments) {
  Kernel k = kernel("known", [](ArrayRef<double, 1> y, ArrayRef<double, 1> s) {
    Expr<double> a = 0.127, b = 0.83;
    VecExpr<double, 3> sums =
        sum(Index(0), [&](Index) { return vec(sin(a), b, sin(a) * b); });
    Var<double> t = sums[0] - 0.5 * sums[1] + 0.25 * sums[2];
    y(0) += atan2(s(0), 1.61 + sin(Expr<double>(-0.11629)));
    parallel(4, [&](Index) { y(3) += sin(a) + sin(t); });
  });
  for (double value : {-3.0, -0.3, 0.7, 1e-30}) {
    auto y = constant<double>({1, 2, 3, 4}), s = constant<double>({value});
    k(y, s);
    std::vector<double> got = y.to_host();
    double angle = std::atan2(value, 1.61 + std::sin(-0.11629));
    EXPECT_NEAR(got[0], 1 + angle, 1e-14) << value;
    EXPECT_NEAR(got[3], 4 + 4 * std::sin(0.127), 1e-14);
  }
}

TEST(MathFunction, VectorsGoByComponent) {
  Kernel k = kernel("vectors", [](ArrayRef<double, 1> x,
                                  ArrayRef<double, 1> y) {
    Vec<double, 3> v(x(0), x(1), x(2));
    Vec<double, 3> w = mod(v, 2.0) * sign(v) + fract(v) + mix(v, 1.0, 0.5) +
                       smoothstep(-3.0, 3.0, v) + clamp(v, -1.0, 1.0) +
                       floor_div(v, 2.0) + rsqrt(v * v) + atan2(v, 2.0) +
                       trunc(v) + tan(v) + asin(v / 4) + acos(v / 4) + atan(v) +
                       exp2(v) + log2(v * v);
    w += select(any(isnan(v)) | any(isinf(v)) | ~all(isfinite(v)), v, 0.0 * v);
    for (int k = 0; k < 3; ++k)
      y(k) = w[k];
    Vec<double, 2> s = swizzle<2, 0>(v);
    y(3) = s.x() * s.y() * s.y();
  });
  auto x = active<double>({1.25, -2.75, 0.6}),
       y = active(std::vector<double>(4, 0));
  k(x, y);
  auto of = [](double v) {
    double rest = v - 2 * std::floor(v / 2), t = (v + 3) / 6;
    return rest * (v < 0 ? -1 : 1) + v - std::floor(v) + (v + 1) / 2 +
           t * t * (3 - 2 * t) + std::clamp(v, -1.0, 1.0) + std::floor(v / 2) +
           1 / std::abs(v) + std::atan2(v, 2) + std::trunc(v) + std::tan(v) +
           std::asin(v / 4) + std::acos(v / 4) + std::atan(v) + std::exp2(v) +
           std::log2(v * v);
  };
  std::vector<double> got = y.to_host();
  EXPECT_NEAR(got[0], of(1.25), 1e-14);
  EXPECT_NEAR(got[1], of(-2.75), 1e-14);
  EXPECT_NEAR(got[3], 0.6 * 1.25 * 1.25, 1e-14);
  expectGradients({x}, {y}, k, x, y);
}

} // namespace
