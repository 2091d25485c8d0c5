#define main mainOfSmoke
#include "../smoke.cpp"
#undef main

#include "Expect.h"

TEST(Examples, Smoke) {
  Weather weather(openDevice(), 16, 6);
  Numbers wind = breeze(16);
  expectSlopes(weather, wind, 1e-6);
  Numbers losses = descend(weather, wind, 25, 0.05);
  EXPECT_LT(losses.back(), 0.3 * losses.front());
  expectSlopes(weather, wind, 1e-6);
}
