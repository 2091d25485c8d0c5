#define main mainOfCloth
#include "../cloth.cpp"
#undef main

#include "Expect.h"

TEST(Examples, Cloth) {
  Cloth cloth(openDevice(), 5, 30);
  Numbers velocities(3 * 5 * 5);
  expectSlopes(cloth, velocities);
  Numbers losses = descend(cloth, velocities, 40, 0.2);
  EXPECT_LT(losses.back(), 0.03 * losses.front());
  expectSlopes(cloth, velocities);
}
