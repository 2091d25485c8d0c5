#define main mainOfChain
#include "../chain.cpp"
#undef main

#include "Expect.h"

TEST(Examples, Chain) {
  Arm arm(openDevice(), 6);
  Numbers angles = firstAngles(6);
  expectSlopes(arm, angles);
  Numbers losses = descend(arm, angles, 150, 0.03);
  EXPECT_LT(losses.back(), 0.1 * losses.front());
  expectSlopes(arm, angles);
}
