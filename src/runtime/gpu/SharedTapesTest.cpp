#include "runtime/gpu/SharedTapes.h"

#include <gtest/gtest.h>

namespace costate::runtime::gpu {
namespace {

constexpr size_t KiB = 1024;

/// As CUDA has it on an H200, and as NVIDIA's Vulkan driver does.
Properties largeGpu() {
  Properties gpu;
  gpu.multiprocessors = 132;
  gpu.sharedPerBlock = 227 * KiB;
  gpu.sharedPerMultiprocessor = 228 * KiB;
  return gpu;
}

Properties little() {
  Properties gpu = largeGpu();
  gpu.sharedPerBlock = gpu.sharedPerMultiprocessor = 48 * KiB;
  return gpu;
}

constexpr uint64_t many = 100000; // tiles

TEST(SharedTapes, WarpsGetFewerTheMoreRowsTheyWant) {
  Properties gpu = largeGpu();
  SharedTapes tapes(gpu);
  int warps = 1 << 20;
  for (uint64_t rows : {1, 60, 75, 100, 150, 227}) {
    auto plan = tapes.plan(many, {.rows = rows});
    ASSERT_TRUE(plan) << rows;
    EXPECT_GE(plan->sharedRows, rows);
    int here =
        static_cast<int>(plan->grid.blocks) * plan->grid.blockThreads / 32;
    EXPECT_LE(here, warps);
    EXPECT_LE(plan->sharedRows * gpu.shape.rowBytes() *
                  static_cast<size_t>(here / 132),
              gpu.sharedPerMultiprocessor);
    warps = here;
  }
  EXPECT_FALSE(tapes.plan(many, {.rows = 228}));
}

/// Half as many warps, with rows twice as wide.
TEST(SharedTapes, WideWarpsHaveTheSameRowsOnAsManyThreads) {
  Properties wide = largeGpu();
  wide.shape.lanes = 64;
  for (uint64_t rows : {1, 60, 100, 200}) {
    auto plan = SharedTapes(largeGpu()).plan(many, {.rows = rows});
    auto other = SharedTapes(wide).plan(many, {.rows = rows});
    ASSERT_TRUE(plan && other) << rows;
    EXPECT_EQ(other->grid.blockThreads % 64, 0) << rows;
    EXPECT_GE(other->sharedRows, rows);
    size_t bytes = other->sharedRows * wide.shape.rowBytes() *
                   static_cast<size_t>(other->grid.blockThreads / 64);
    EXPECT_LE(bytes, wide.sharedPerBlock) << rows;
  }
  EXPECT_FALSE(SharedTapes(wide).plan(many, {.rows = 908}));
}

TEST(SharedTapes, WhatNoTileTakesIsLeftToTheCache) {
  Properties gpu = largeGpu();
  auto all = SharedTapes(gpu).plan(many, {.rows = 20});
  auto exact = SharedTapes(gpu).plan(many, {.rows = 20, .most = 20});
  ASSERT_TRUE(all && exact);
  EXPECT_EQ(exact->sharedRows, 24u);
  EXPECT_GT(all->sharedRows, 60u);
  EXPECT_EQ(exact->grid.blocks, all->grid.blocks);
}

TEST(SharedTapes, WhoCanDoWithFewerRowsHasThoseThatHeTakes) {
  Properties gpu = largeGpu();
  auto plan =
      SharedTapes(gpu).plan(many, {.rows = 20, .isLeast = true, .most = 60});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->sharedRows, 64u);
}

TEST(SharedTapes, WhereThereIsLittleIterationsRunAgainRatherThanWarpsIdle) {
  Properties gpu = little();
  SharedTapes tapes(gpu);
  EXPECT_TRUE(tapes.isLittle());
  EXPECT_FALSE(tapes.plan(many, {.rows = 100}));
  auto least = tapes.plan(many, {.rows = 100, .isLeast = true});
  ASSERT_TRUE(least);
  EXPECT_GE(least->sharedRows, 100u);
  EXPECT_LT(least->grid.blockThreads, tapes.blockThreads());
}

TEST(SharedTapes, WhereThereIsLittleTilesKeepAllRows) {
  Properties gpu = little();
  auto plan = SharedTapes(gpu).plan(many, {.rows = 2, .most = 2});
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->sharedRows, 8u);
}

/// Of a body that is expensive to run again.
TapePlacement placed(const SharedTapes &tapes, uint64_t rows,
                     std::optional<uint64_t> usual = {},
                     bool moderatelyExpensive = false) {
  return tapes.place({.tiles = many,
                      .known = {rows, 4, 0, 0},
                      .isExact = true,
                      .usual = usual,
                      .expensive = true,
                      .moderatelyExpensive = moderatelyExpensive});
}

TEST(SharedTapes, WhatIsExpensiveWantsAHeapIfItDoesNotFit) {
  SharedTapes tapes(largeGpu());
  EXPECT_FALSE(placed(tapes, 64).wantsHeap);
  EXPECT_TRUE(placed(tapes, 1000).wantsHeap);
  EXPECT_TRUE(placed(tapes, 1000).shared);
  EXPECT_FALSE(placed(tapes, 1000, {}, true).wantsHeap);
}

TEST(SharedTapes, IfMostTilesOfASortedRangeFitItWantsNoHeap) {
  SharedTapes tapes(largeGpu());
  for (uint64_t usual : {0, 60, 100})
    EXPECT_FALSE(placed(tapes, 1000, usual).wantsHeap) << usual;
  for (uint64_t usual : {200, 500}) // too few warps, or none
    EXPECT_TRUE(placed(tapes, 1000, usual).wantsHeap) << usual;
}

TEST(SharedTapes, WhatTheChipHasMayBeMoreThanAnInterfaceGives) {
  Properties gpu = little();
  EXPECT_TRUE(placed(SharedTapes(gpu), 64).wantsHeap);
  EXPECT_TRUE(placed(SharedTapes(gpu).ofChip(), 64).wantsHeap); // not known
  gpu.sharedOfChip = 228 * KiB;
  SharedTapes ofChip = SharedTapes(gpu).ofChip(), same(largeGpu());
  for (uint64_t rows : {64, 300, 1000})
    for (std::optional<uint64_t> usual :
         {std::optional<uint64_t>(), std::optional<uint64_t>(60),
          std::optional<uint64_t>(200)}) {
      TapePlacement here = placed(ofChip, rows, usual),
                    there = placed(same, rows, usual);
      EXPECT_EQ(here.wantsHeap, there.wantsHeap);
      EXPECT_EQ(here.shared->sharedRows, there.shared->sharedRows);
    }
}

TEST(SharedTapes, FewTilesTakeFewBlocks) {
  Properties gpu = largeGpu();
  auto plan = SharedTapes(gpu).plan(5, {.rows = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->grid.blocks, 5);
}

} // namespace
} // namespace costate::runtime::gpu
