extern "C" {
#include "device/DeviceFma.c"
}

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace costate::compiler {
namespace {

/// The same number or kind of NaN, zeros with their sign.
template <class T> bool areSame(T x, T y) {
  return std::isnan(x) ? std::isnan(y)
                       : x == y && std::signbit(x) == std::signbit(y);
}

template <class T> std::vector<T> numbers(int exponents) {
  std::mt19937_64 random(7);
  std::vector<T> all;
  T infinity = std::numeric_limits<T>::infinity();
  for (T x :
       {T(0), T(1), T(1.5), T(3), T(1) + std::numeric_limits<T>::epsilon(),
        T(2) - std::numeric_limits<T>::epsilon(), infinity}) {
    all.push_back(x);
    all.push_back(-x);
  }
  all.push_back(std::numeric_limits<T>::quiet_NaN());
  for (int k = 0; k < 200; ++k) {
    int exponent = static_cast<int>(random() % exponents) - exponents / 2;
    T mantissa = std::ldexp(T(random() >> 11), -53);
    if (k % 3 == 0) // few bits: products are exact, or lie between two numbers
      mantissa = std::ldexp(std::rint(std::ldexp(mantissa, 27)), -27);
    all.push_back(std::ldexp(random() % 2 ? mantissa : -mantissa, exponent));
  }
  return all;
}

TEST(DeviceFma, OfDoublesIsRoundedOnce) {
  for (int exponents : {4, 60, 600, 2040})
    for (double x : numbers<double>(exponents))
      for (double y : numbers<double>(exponents))
        for (double z :
             {0.0, -0.0, x, -x, y, -x * y, x * y, 1.0, -1e-20 * x,
              std::nextafter(-x * y, 0.0), 0x1p-53 * x * y, 0.9 * x * y}) {
          double expected = std::fma(x, y, z);
          bool overflows = std::isinf(x * y) || std::isinf(expected);
          bool isSmall = std::abs(x * y) < 0x1p-900 ||
                         std::fpclassify(expected) == FP_SUBNORMAL;
          if ((x == 0 || y == 0 || !isSmall) && !overflows)
            ASSERT_TRUE(areSame(costate_device_fma_f64(x, y, z), expected))
                << std::hexfloat << x << " * " << y << " + " << z;
        }
}

/// Where something on the way overflows, it is that of two operations.
TEST(DeviceFma, OfTheLargestDoublesIsThePlainOne) {
  constexpr double most = std::numeric_limits<double>::max();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (double x : {most, -most, infinity, 1.0})
    for (double y : {1.0, 2.0, -1.0, 0x1p-100, 0.0})
      for (double z : {most, -most, infinity, 1.0})
        EXPECT_TRUE(areSame(costate_device_fma_f64(x, y, z), x * y + z))
            << x << " * " << y << " + " << z;
}

TEST(DeviceFma, OfFloatsIsRoundedOnce) {
  for (int exponents : {4, 30, 120})
    for (float x : numbers<float>(exponents))
      for (float y : numbers<float>(exponents))
        for (float z : {0.0f, -0.0f, x, -x, y, -x * y, x * y, 1.0f, -1e-9f * x,
                        std::nextafter(-x * y, 0.0f), 0x1p-24f * x * y})
          ASSERT_TRUE(
              areSame(costate_device_fma_f32(x, y, z), std::fma(x, y, z)))
              << std::hexfloat << x << " * " << y << " + " << z;
}

} // namespace
} // namespace costate::compiler
