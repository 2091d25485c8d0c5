#include "runtime/vulkan/Ranges.h"

#include <gtest/gtest.h>
#include <random>

using namespace costate::runtime::vulkan;

namespace {

TEST(VulkanRanges, PiecesAreAlignedAndDoNotOverlap) {
  std::mt19937 random(1);
  Ranges ranges;
  ranges.add(1000, 1 << 20);
  ranges.add(1000 + (1 << 20), 1 << 18); // its neighbour
  size_t all = ranges.freeBytes();
  std::map<uint64_t, size_t> taken;
  for (int k = 0; k < 20000; ++k) {
    if (random() % 2 && !taken.empty()) {
      auto piece = std::next(taken.begin(), random() % taken.size());
      EXPECT_TRUE(ranges.give(piece->first));
      taken.erase(piece);
      continue;
    }
    size_t bytes = 1 + random() % (1 << 14);
    auto place = ranges.take(bytes);
    if (!place)
      continue;
    ASSERT_EQ(*place % Ranges::alignment, 0u);
    ASSERT_GE(*place, 1000u);
    auto next = taken.lower_bound(*place);
    if (next != taken.end())
      ASSERT_LE(*place + bytes, next->first);
    if (next != taken.begin())
      ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *place);
    taken[*place] = bytes;
  }
  for (auto [place, bytes] : taken)
    EXPECT_TRUE(ranges.give(place));
  EXPECT_EQ(ranges.freeBytes(), all);
  EXPECT_TRUE(ranges.take((1 << 20) - 512)) << "all pieces have joined";
}

TEST(VulkanRanges, NoPieceGoesOverTheEndOfABlock) {
  Ranges ranges;
  ranges.add(0x10000, 4096);
  ranges.add(0x11000, 4096);
  auto first = ranges.take(4096), second = ranges.take(4096);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(ranges.give(*second));
  EXPECT_TRUE(ranges.give(*first));
  EXPECT_FALSE(ranges.take(4097));
}

TEST(VulkanRanges, TheSmallestHoleIsTaken) {
  Ranges ranges;
  ranges.add(0x10000, 1 << 20);
  ranges.add(0x1000000, 4096);
  EXPECT_EQ(ranges.take(4000), 0x1000000u);
  EXPECT_EQ(ranges.take(4000), 0x10000u);
}

TEST(VulkanRanges, BlocksThatAreFreeCanBeRemoved) {
  Ranges ranges;
  ranges.add(0x10000, 4096);
  ranges.add(0x20000, 4096);
  auto place = ranges.take(100);
  ASSERT_TRUE(place);
  auto removed = ranges.removeFree();
  ASSERT_TRUE(removed);
  EXPECT_NE(*removed, *place);
  EXPECT_FALSE(ranges.removeFree());
  EXPECT_TRUE(ranges.give(*place));
  EXPECT_EQ(ranges.removeFree(), *place);
  EXPECT_EQ(ranges.freeBytes(), 0u);
  EXPECT_FALSE(ranges.take(1));
}

TEST(VulkanRanges, WhatWasNotTakenIsNotGivenBack) {
  Ranges ranges;
  ranges.add(0x10000, 4096);
  EXPECT_FALSE(ranges.give(0x10000));
  EXPECT_FALSE(ranges.take(SIZE_MAX));
  EXPECT_FALSE(ranges.take(SIZE_MAX - 4000));
}

} // namespace
