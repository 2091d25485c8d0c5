/// Damaged inputs. `costate-fuzz-inputs` goes on for longer.

#include "Labels.h"
#include "inputs/Texts.h"
#include "inputs/Try.h"

#include <gtest/gtest.h>

COSTATE_LABEL("*", host);

using namespace costate::inputs;

TEST(DamagedInput, IsRefusedByName) {
  EXPECT_GT(corpus().size(), 100u);
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    std::string input = inputOf(seed);
    EXPECT_EQ(problemWith(kindOf(seed), input), "") << "seed " << seed << "\n"
                                                    << input.substr(0, 4000);
  }
}
