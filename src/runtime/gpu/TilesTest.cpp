#include "base/DeviceTape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

extern "C" {
unsigned costate_device_tape_kept(unsigned iterations, unsigned unit,
                                  unsigned checkpoint, unsigned rows);
unsigned costate_device_tape_segment(unsigned iterations, unsigned unit,
                                     unsigned checkpoint);
unsigned costate_device_tape_min_rows(unsigned iterations, unsigned unit,
                                      unsigned checkpoint);
}

namespace costate::runtime::gpu {
namespace {

constexpr uint32_t none = ~uint32_t(0);

struct Loop {
  uint32_t iterations, unit, checkpoint;
};

Loop anyLoop(std::mt19937_64 &random) {
  auto upTo = [&](uint32_t most) {
    return static_cast<uint32_t>(random() % (most + 1));
  };
  uint32_t iterations = uint32_t(1) << upTo(22);
  return {iterations + upTo(iterations), 1 + upTo(upTo(1) ? 6 : 300), upTo(12)};
}

/// Rows at the pivot, and while the segment with most rows is undone.
uint32_t rowsOf(const Loop &loop, uint32_t kept) {
  uint32_t rest = loop.iterations - kept;
  if (rest == 0)
    return kept * loop.unit;
  uint32_t segment =
      costate_device_tape_segment(rest, loop.unit, loop.checkpoint);
  uint32_t pieces = (rest + segment - 1) / segment;
  return (kept + segment) * loop.unit + pieces * loop.checkpoint;
}

TEST(Tiles, ALoopFitsIntoTheMinimumOfRows) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 100000; ++k) {
    Loop loop = anyLoop(random);
    uint32_t minRows = costate_device_tape_min_rows(loop.iterations, loop.unit,
                                                    loop.checkpoint);
    for (uint32_t rows : {minRows, minRows + 1, minRows * 2, minRows * 5 / 3}) {
      uint32_t kept = costate_device_tape_kept(loop.iterations, loop.unit,
                                               loop.checkpoint, rows);
      ASSERT_NE(kept, none)
          << loop.iterations << " iterations of " << loop.unit
          << " rows, checkpoints of " << loop.checkpoint << ", in " << rows;
      ASSERT_LE(kept, loop.iterations);
      ASSERT_LE(rowsOf(loop, kept), rows);
    }
  }
}

TEST(Tiles, TheMinimumOfRowsGrowsWithTheRootOfTheTripCount) {
  for (uint32_t iterations : {100, 10000, 1000000})
    EXPECT_LE(costate_device_tape_min_rows(iterations, 1, 1),
              2 * std::sqrt(double(iterations)) + 5);
}

TEST(Tiles, NoTapeHoldsMoreThanCanBeCounted) {
  constexpr uint32_t most = (1u << 30) - 1;
  EXPECT_EQ(costate_device_tape_kept(most, 1, 0, most - 1), none);
  EXPECT_EQ(costate_device_tape_min_rows(most, most, most), most);
}

TEST(Tiles, WhatNoCheckpointCutsNeedsItsRows) {
  EXPECT_EQ(costate_device_tape_kept(4, 100, 1, 99), none);
}

} // namespace
} // namespace costate::runtime::gpu
