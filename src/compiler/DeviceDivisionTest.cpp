extern "C" {
#include "device/DeviceDivision.c"
}

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace costate::compiler {
namespace {

/// With any number of leading zeros, and next to powers of 2.
std::vector<long> numbers() {
  std::mt19937_64 random(7);
  std::vector<long> all = {std::numeric_limits<long>::min(),
                           std::numeric_limits<long>::max(),
                           1,
                           -1,
                           2,
                           3,
                           10};
  for (int bits = 1; bits < 64; ++bits)
    for (long offset : {-1, 0, 1})
      all.push_back((1L << bits) + offset);
  for (int k = 0; k < 300; ++k)
    all.push_back(static_cast<long>(random() >> k % 64));
  return all;
}

TEST(DeviceDivision, HasTheQuotientsOfTheHost) {
  for (long x : numbers())
    for (long y : numbers()) {
      auto a = static_cast<Natural>(x), b = static_cast<Natural>(y);
      if (y == 0)
        continue;
      ASSERT_EQ(costate_device_div_u64(a, b), a / b) << a << " / " << b;
      if (x != std::numeric_limits<long>::min() || y != -1)
        ASSERT_EQ(costate_device_div_i64(x, y), x / y) << x << " / " << y;
    }
}

} // namespace
} // namespace costate::compiler
