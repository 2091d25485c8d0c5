#define main mainOfVolume
#include "../volume.cpp"
#undef main

#include "Expect.h"

TEST(Examples, Volume) {
  Scan scan(openDevice(), 8, 8);
  Numbers parameters(8 * 8 * 8, 0.5);
  expectSlopes(scan, parameters, 1e-5);
  Numbers losses = descend(scan, parameters, 30, 0.4);
  EXPECT_LT(losses.back(), 0.1 * losses.front());
  expectSlopes(scan, parameters, 1e-5);
}
