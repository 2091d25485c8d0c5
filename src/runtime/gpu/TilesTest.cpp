#include "base/DeviceTape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

extern "C" {
unsigned long long costate_device_tape_kept(unsigned long long turns,
                                            unsigned long long unit,
                                            unsigned long long checkpoint,
                                            unsigned long long rows);
unsigned long long costate_device_tape_segment(unsigned long long turns,
                                               unsigned long long unit,
                                               unsigned long long checkpoint);
unsigned long long costate_device_tape_fewest(unsigned long long turns,
                                              unsigned long long unit,
                                              unsigned long long checkpoint);
}

namespace costate::runtime::gpu {
namespace {

constexpr uint64_t none = ~uint64_t(0);

struct Loop {
  uint64_t turns, unit, checkpoint;
};

Loop anyLoop(std::mt19937_64 &random) {
  auto upTo = [&](uint64_t most) { return random() % (most + 1); };
  uint64_t turns = uint64_t(1) << upTo(22);
  return {turns + upTo(turns), 1 + upTo(upTo(1) ? 6 : 300), upTo(12)};
}

/// Rows at the turn, and while the segment with most rows is undone.
uint64_t rowsOf(const Loop &loop, uint64_t kept) {
  uint64_t rest = loop.turns - kept;
  if (rest == 0)
    return kept * loop.unit;
  uint64_t segment =
      costate_device_tape_segment(rest, loop.unit, loop.checkpoint);
  uint64_t pieces = (rest + segment - 1) / segment;
  return (kept + segment) * loop.unit + pieces * loop.checkpoint;
}

TEST(Tiles, ALoopFitsIntoTheFewestRows) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 100000; ++k) {
    Loop loop = anyLoop(random);
    uint64_t fewest =
        costate_device_tape_fewest(loop.turns, loop.unit, loop.checkpoint);
    for (uint64_t rows : {fewest, fewest + 1, fewest * 2, fewest * 5 / 3}) {
      uint64_t kept = costate_device_tape_kept(loop.turns, loop.unit,
                                               loop.checkpoint, rows);
      ASSERT_NE(kept, none)
          << loop.turns << " turns of " << loop.unit << " rows, checkpoints of "
          << loop.checkpoint << ", in " << rows;
      ASSERT_LE(kept, loop.turns);
      ASSERT_LE(rowsOf(loop, kept), rows);
    }
  }
}

TEST(Tiles, TheFewestRowsGrowWithTheRootOfTheTurns) {
  for (uint64_t turns : {100, 10000, 1000000})
    EXPECT_LE(costate_device_tape_fewest(turns, 1, 1),
              2 * std::sqrt(double(turns)) + 5);
}

TEST(Tiles, WhatNoCheckpointCutsNeedsItsRows) {
  EXPECT_EQ(costate_device_tape_kept(4, 100, 1, 99), none);
}

} // namespace
} // namespace costate::runtime::gpu
