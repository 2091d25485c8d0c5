/// Float64.metal, compiled for the host, against its doubles, bit by bit.

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace costate::conversion {
namespace {

using half = _Float16;
template <class To, class From> To as_type(From value) {
  return std::bit_cast<To>(value);
}
int clz(uint64_t value) { return std::countl_zero(value); }

#define constant [[maybe_unused]] static const
#include "conversion/LLVMToMetal/Float64.metal"
#undef constant

using Limits = std::numeric_limits<double>;
constexpr int rounds = 200'000;

uint64_t bitsOf(double x) { return std::bit_cast<uint64_t>(x); }

/// Numbers of all sizes: few of them are far from each other, many are
/// denormals, whole, or nothing but a power of two.
class Numbers {
public:
  double next() {
    switch (random() % 8) {
    case 0:
      return std::bit_cast<double>(random());
    case 1:
      return specials[random() % std::size(specials)];
    case 2:
      return std::bit_cast<double>(random() & 0x801fffffffffffff);
    case 3:
      return std::ldexp(1.0, int(random() % 2100) - 1075);
    case 4:
      return double(int64_t(random()) >> random() % 64);
    case 5:
      return double(int64_t(random() % 4000) - 2000) / 2;
    default:
      return std::ldexp(double(int64_t(random())), int(random() % 100) - 113);
    }
  }
  std::mt19937_64 random{7};

private:
  static constexpr double specials[] = {0.0,
                                        -0.0,
                                        1.0,
                                        -1.0,
                                        0.5,
                                        1.5,
                                        2.5,
                                        Limits::infinity(),
                                        -Limits::infinity(),
                                        Limits::quiet_NaN(),
                                        Limits::max(),
                                        -Limits::max(),
                                        Limits::min(),
                                        Limits::denorm_min(),
                                        0x1.fffffep127,
                                        0x1.ffffffp127,
                                        0x1p-149,
                                        0x1p-150,
                                        0x1.8p-150,
                                        65504.0,
                                        65520.0,
                                        4503599627370495.5};
};

/// The same number, or two that are none.
template <class Number> bool isSame(Number x, Number y) {
  return x == y ? std::signbit(float(x)) == std::signbit(float(y))
                : x != x && y != y;
}

void expectSame(const char *what, double x, double y, uint64_t ours,
                double exact) {
  EXPECT_TRUE(isSame(std::bit_cast<double>(ours), exact))
      << what << " of " << std::hexfloat << x << " and " << y << ": "
      << std::bit_cast<double>(ours) << " for " << exact;
}

} // namespace

TEST(Float64, ArithmeticIsThatOfDoubles) {
  Numbers numbers;
  for (int k = 0; k < rounds && !testing::Test::HasFailure(); ++k) {
    double x = numbers.next(), y = numbers.next();
    uint64_t a = bitsOf(x), b = bitsOf(y);
    expectSame("sum", x, y, costate_f64_add(a, b), x + y);
    expectSame("difference", x, y, costate_f64_sub(a, b), x - y);
    expectSame("product", x, y, costate_f64_mul(a, b), x * y);
    expectSame("quotient", x, y, costate_f64_div(a, b), x / y);
    expectSame("root", x, x, costate_f64_sqrt(a), std::sqrt(x));
    unsigned relation = x < y ? 1 : x == y ? 2 : x > y ? 4 : 8;
    EXPECT_EQ(costate_f64_compare(a, b), relation) << x << " and " << y;
  }
}

TEST(Float64, NumbersThatCancelAreRight) {
  Numbers numbers;
  for (int k = 0; k < rounds && !testing::Test::HasFailure(); ++k) {
    double x = numbers.next();
    double y = std::bit_cast<double>(bitsOf(x) + numbers.random() % 9 - 4);
    expectSame("difference", x, y, costate_f64_sub(bitsOf(x), bitsOf(y)),
               x - y);
    expectSame("quotient", x, y, costate_f64_div(bitsOf(x), bitsOf(y)), x / y);
  }
}

TEST(Float64, WholeNumbersAreThoseOfDoubles) {
  Numbers numbers;
  for (int k = 0; k < rounds && !testing::Test::HasFailure(); ++k) {
    double x = numbers.next();
    expectSame("floor", x, x, costate_f64_floor(bitsOf(x)), std::floor(x));
    expectSame("ceil", x, x, costate_f64_ceil(bitsOf(x)), std::ceil(x));
    expectSame("rint", x, x, costate_f64_rint(bitsOf(x)), std::rint(x));
    uint64_t whole = numbers.random() >> numbers.random() % 64;
    auto number =
        static_cast<int64_t>(numbers.random() % 2 ? whole : 0 - whole);
    expectSame("from u64", 0, 0, costate_f64_from_ulong(whole), double(whole));
    expectSame("from i64", 0, 0, costate_f64_from_long(number), double(number));
    if (std::fabs(x) < 0x1p63) {
      EXPECT_EQ(costate_f64_to_long(bitsOf(x)), int64_t(x)) << x;
    }
    if (x > -1 && x < 0x1p64) {
      EXPECT_EQ(costate_f64_to_ulong(bitsOf(x)), uint64_t(x)) << x;
    }
  }
}

TEST(Float64, OtherFloatsAreRoundedOnce) {
  Numbers numbers;
  for (int k = 0; k < rounds && !testing::Test::HasFailure(); ++k) {
    double x = numbers.next();
    EXPECT_TRUE(isSame(costate_f64_to_float(bitsOf(x)), float(x)))
        << std::hexfloat << x;
    EXPECT_TRUE(isSame(costate_f64_to_half(bitsOf(x)), half(x)))
        << std::hexfloat << x;
    auto single = std::bit_cast<float>(static_cast<uint32_t>(numbers.random()));
    expectSame("from f32", single, 0, costate_f64_from_float(single),
               double(single));
  }
}

} // namespace costate::conversion
