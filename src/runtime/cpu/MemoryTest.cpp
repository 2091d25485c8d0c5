#include "runtime/cpu/AddLog.h"
#include "runtime/cpu/BlockPool.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/TapeArena.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <vector>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cpu;

TEST(Memory, ATapeKeepsItsContentsWhileItGrows) {
  MemoryBudget budget(1 << 20);
  TapeArena tape(budget);
  ASSERT_TRUE(tape.reserve(100));
  std::memset(tape.base(), 7, 100);
  ASSERT_TRUE(tape.reserve(900 << 10));
  EXPECT_EQ(tape.base()[99], std::byte(7));
  size_t capacity = tape.capacity();
  EXPECT_FALSE(tape.reserve(2 << 20));
  EXPECT_EQ(tape.capacity(), capacity);
  tape.release();
  EXPECT_EQ(budget.current(), 0u);
}

TEST(Memory, SmallBlocksGoBackToTheHeap) {
  MemoryBudget budget(1 << 20);
  BlockPool pool(budget);
  std::byte *block = pool.take(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
  EXPECT_EQ(budget.current(), 128u);
  pool.put(block, 100);
  EXPECT_EQ(budget.current() + pool.idleBytes(), 0u);
  EXPECT_FALSE(pool.take(SIZE_MAX));
  EXPECT_FALSE(pool.take(2 << 20));
  EXPECT_EQ(budget.current(), 0u);
}

#ifndef COSTATE_SANITIZE // which has no idle blocks
TEST(Memory, ABlockThatWasPutBackIsTakenAgain) {
  MemoryBudget budget(64 << 20);
  BlockPool pool(budget);
  std::byte *block = pool.take(1 << 20), *other = pool.take(1 << 20);
  ASSERT_TRUE(block && other);
  EXPECT_EQ(budget.current(), size_t(2 << 20));
  pool.put(block, 1 << 20);
  EXPECT_EQ(budget.current(), size_t(1 << 20));
  EXPECT_EQ(pool.idleBytes(), size_t(1 << 20));
  std::byte *larger = pool.take(2 << 20);
  EXPECT_EQ(pool.idleBytes(), size_t(1 << 20));
  EXPECT_EQ(pool.take(1 << 20), block);
  EXPECT_EQ(pool.idleBytes(), 0u);
  pool.put(larger, 2 << 20);
  for (std::byte *one : {block, other})
    pool.put(one, 1 << 20);
  EXPECT_EQ(budget.current(), 0u);
  EXPECT_EQ(budget.peak(), size_t(4 << 20));
}

TEST(Memory, IdleBlocksTakeAPartOfTheLimitTheOldestGoFirst) {
  MemoryBudget budget(16 << 20);
  BlockPool pool(budget);
  std::vector<std::byte *> blocks;
  for (size_t k = 0; k < 4; ++k)
    blocks.push_back(pool.take((512 << 10) + k * 4096));
  std::byte *large = pool.take(3 << 20);
  pool.put(large, 3 << 20); // more than the part
  EXPECT_EQ(pool.idleBytes(), 0u);
  for (size_t k = 0; k < 4; ++k)
    pool.put(blocks[k], (512 << 10) + k * 4096);
  EXPECT_EQ(pool.idleBytes(), size_t((3 * 512 << 10) + 6 * 4096));
  EXPECT_EQ(pool.take((512 << 10) + 4096), blocks[1]);
}

TEST(Memory, IdleBlocksMakeRoomForOtherMemory) {
  MemoryBudget budget(16 << 20);
  BlockPool pool(budget);
  std::byte *one = pool.take(1 << 20), *other = pool.take(1 << 20);
  pool.put(one, 1 << 20);
  pool.put(other, 1 << 20);
  EXPECT_TRUE(budget.take(14 << 20));
  EXPECT_EQ(pool.idleBytes(), size_t(2 << 20));
  EXPECT_TRUE(budget.take(1 << 20));
  EXPECT_EQ(pool.idleBytes(), size_t(1 << 20));
  EXPECT_TRUE(budget.take(1 << 20));
  EXPECT_EQ(pool.idleBytes(), 0u);
  EXPECT_FALSE(budget.take(1));
}

/// Of a grid of 1 x 14 x 13 x 23 numbers, beside which another one is written.
TEST(Memory, BehindArraysThereAreZeros) {
  std::shared_ptr<Device> device = *openCpu(1, 16 << 20);
  const size_t bytes = 14 * 13 * 23 * 4, behind = 1 << 17;
  for (int round = 0; round < 2; ++round) {
    Buffer one = *device->allocate(bytes), other = *device->allocate(bytes);
    for (Buffer grid : {one, other}) {
      EXPECT_TRUE(std::all_of(
          grid.address, grid.address + bytes + behind,
          [](std::byte one) { return !std::to_integer<int>(one); }));
      std::memset(grid.address, 1, bytes + behind);
    }
    device->release(one);
    device->release(other);
  }
  EXPECT_EQ(device->memory().current, 0u);
}

#ifndef COSTATE_SANITIZE // which has arrays from the heap
TEST(Memory, ArraysBeginAtLinesOfTheirOwn) {
  std::shared_ptr<Device> device = *openCpu(1, 64 << 20);
  std::vector<Buffer> arrays;
  std::set<uintptr_t> lines;
  for (int k = 0; k < 64; ++k) {
    arrays.push_back(*device->allocate(16 << 10));
    auto address = reinterpret_cast<uintptr_t>(arrays.back().address);
    EXPECT_EQ(address % 64, 0u);
    lines.insert(address % 4096);
  }
  EXPECT_EQ(lines.size(), 64u);
  for (Buffer array : arrays)
    device->release(array);
}
#endif

TEST(Memory, ADeviceKeepsWhatWasBorrowedAndHasItForArrays) {
  std::shared_ptr<Device> device = *openCpu(1, 16 << 20);
  Buffer borrowed = *device->borrow(1 << 20);
  EXPECT_EQ(device->memory().current, size_t(1 << 20));
  device->giveBack(borrowed);
  EXPECT_EQ(device->memory().current, 0u);
  EXPECT_EQ(device->borrow(1 << 20)->address, borrowed.address);
  device->giveBack(borrowed);
  Result<Buffer> all = device->allocate(16 << 20);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->address[12345], std::byte(0));
  Result<Buffer> more = device->borrow(1 << 20);
  ASSERT_FALSE(more.ok());
  EXPECT_NE(more.error().text.find("do not fit"), std::string::npos);
  device->release(*all);
  EXPECT_EQ(device->borrow(0)->address, nullptr);
}
#endif

TEST(Memory, ALogAddsInTheOrderOfChunks) {
  MemoryBudget budget(64 << 20);
  AddLog log(budget);
  log.beginWave();
  double sum = 0;
  float small = 0;
  // 1e16 + 1 loses the 1: the order shows in the result.
  for (int chunk : {2, 0, 1}) {
    AddLog::Writer writer{&log.chunk(chunk)};
    double value = chunk == 0 ? 1e16 : chunk == 1 ? 1 : -1e16;
    ASSERT_TRUE(log.append(writer, &sum, value));
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(log.append(writer, &small, 1.0f));
  }
  for (int partition = 0; partition < AddLog::partitions; ++partition)
    log.apply(partition);
  EXPECT_EQ(sum, (1e16 + 1) - 1e16);
  EXPECT_EQ(small, 300.0f);
}

TEST(Memory, ALogSeesSumsThatOverflow) {
  MemoryBudget budget(64 << 20);
  AddLog log(budget);
  double sums[] = {1, 1e308, INFINITY};
  float small = 3e38f;
  for (bool watch : {true, false}) {
    log.beginWave();
    AddLog::Writer writer{&log.chunk(0)};
    for (double &sum : sums)
      ASSERT_TRUE(log.append(writer, &sum, 1e308));
    for (int partition = 0; partition < AddLog::partitions; ++partition)
      watch ? log.applyWatched(partition) : log.apply(partition);
    uintptr_t expected = watch ? reinterpret_cast<uintptr_t>(&sums[1]) : 0;
    EXPECT_EQ(log.notFinite(), expected);
  }
  log.beginWave();
  AddLog::Writer writer{&log.chunk(5)};
  ASSERT_TRUE(log.append(writer, &small, 3e38f));
  for (int partition = 0; partition < AddLog::partitions; ++partition)
    log.applyWatched(partition);
  EXPECT_EQ(log.notFinite(), reinterpret_cast<uintptr_t>(&small) | 1);
}

TEST(Memory, ALogStopsAtTheLimit) {
  MemoryBudget budget(100 << 10);
  AddLog log(budget);
  log.beginWave();
  AddLog::Writer writer{&log.chunk(0)};
  double sum = 0;
  int added = 0;
  while (added < 100000 && log.append(writer, &sum, 1.0))
    ++added;
  EXPECT_GT(added, 3000);
  EXPECT_LT(added, 100000);
}

TEST(Memory, WrongThreadCountsAreNamed) {
  EXPECT_FALSE(openCpu(-3, 0).ok());
  EXPECT_FALSE(openCpu(1 << 20, 0).ok());
}
