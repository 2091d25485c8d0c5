#include "property/Spread.h"

#include "Labels.h"
#include "property/Check.h"

#include <cmath>
#include <gtest/gtest.h>

COSTATE_LABEL("Spread.*", host);

using namespace costate::property;

namespace {

TEST(Spread, IsThatOfEachElement) {
  Spread spread;
  EXPECT_EQ(spread.allowed(0, 0), 0);
  Values wanted = {{1, 2}, {}, {3, NAN, INFINITY}};
  spread.add({{1.25, 2}, {}, {3, NAN, INFINITY}}, wanted);
  spread.add({{0.5, 2}, {}, {3, NAN, 1}}, wanted);
  EXPECT_EQ(spread.allowed(0, 0), 4);
  EXPECT_EQ(spread.allowed(0, 1), 0);
  EXPECT_EQ(spread.allowed(2, 0), 0);
  EXPECT_EQ(spread.allowed(2, 1), 0);
  EXPECT_EQ(spread.allowed(2, 2), INFINITY);
}

TEST(Spread, IntegersHaveNone) {
  Inputs inputs(4, 1);
  Memory other = inputs.memory;
  EXPECT_TRUE(Spread().add(other, inputs.memory));
  for (size_t k = 0; k < other.size(); ++k)
    if (!costate::isFloat(storedArrays()[k].type) && !other[k].bytes.empty())
      other[k].bytes[0] ^= std::byte(1);
  EXPECT_FALSE(Spread().add(other, inputs.memory));
}

} // namespace
