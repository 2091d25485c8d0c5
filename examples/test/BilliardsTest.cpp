#define main mainOfBilliards
#include "../billiards.cpp"
#undef main

#include "Expect.h"

TEST(Examples, Billiards) {
  Games games(openDevice(), 24);
  Numbers shots = games.firstShots();
  expectSlopes(games, shots, 1e-6);
  double best = std::ranges::min(games.losses());
  descend(games, shots, 40, 0.01);
  EXPECT_LT(std::ranges::min(games.losses()), 0.3 * best);
  expectSlopes(games, shots, 1e-6);
}
