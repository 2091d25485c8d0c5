#include "runtime/gpu/SharedTapes.h"

#include <gtest/gtest.h>

namespace costate::runtime::gpu {
namespace {

constexpr size_t KiB = 1024;

/// As CUDA has it on an H200, and as NVIDIA's Vulkan driver does.
Properties ample() {
  Properties gpu;
  gpu.multiprocessors = 132;
  gpu.sharedPerBlock = 227 * KiB;
  gpu.sharedPerMultiprocessor = 228 * KiB;
  return gpu;
}

Properties little() {
  Properties gpu = ample();
  gpu.sharedPerBlock = gpu.sharedPerMultiprocessor = 48 * KiB;
  return gpu;
}

constexpr uint64_t many = 100000; // tiles

TEST(SharedTapes, WarpsGetFewerTheMoreRowsTheyWant) {
  Properties gpu = ample();
  SharedTapes tapes(gpu);
  int warps = 1 << 20;
  for (uint64_t rows : {1, 60, 75, 100, 150, 227}) {
    auto plan = tapes.plan(many, {.rows = rows});
    ASSERT_TRUE(plan) << rows;
    EXPECT_GE(plan->sharedRows, rows);
    int here =
        static_cast<int>(plan->grid.blocks) * plan->grid.blockThreads / 32;
    EXPECT_LE(here, warps);
    EXPECT_LE(plan->sharedRows * rowBytes * static_cast<size_t>(here / 132),
              gpu.sharedPerMultiprocessor);
    warps = here;
  }
  EXPECT_FALSE(tapes.plan(many, {.rows = 228}));
}

TEST(SharedTapes, WhatNoTileTakesIsLeftToTheCache) {
  Properties gpu = ample();
  auto all = SharedTapes(gpu).plan(many, {.rows = 20});
  auto exact = SharedTapes(gpu).plan(many, {.rows = 20, .most = 20});
  ASSERT_TRUE(all && exact);
  EXPECT_EQ(exact->sharedRows, 24u);
  EXPECT_GT(all->sharedRows, 60u);
  EXPECT_EQ(exact->grid.blocks, all->grid.blocks);
}

TEST(SharedTapes, WhoCanDoWithFewerRowsHasThoseThatHeTakes) {
  Properties gpu = ample();
  auto plan =
      SharedTapes(gpu).plan(many, {.rows = 20, .isLeast = true, .most = 60});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->sharedRows, 64u);
}

TEST(SharedTapes, WhereThereIsLittleTurnsRunAgainRatherThanWarpsIdle) {
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

TEST(SharedTapes, FewTilesTakeFewBlocks) {
  Properties gpu = ample();
  auto plan = SharedTapes(gpu).plan(5, {.rows = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->grid.blocks, 5);
}

} // namespace
} // namespace costate::runtime::gpu
