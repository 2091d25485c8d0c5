#include "runtime/cpu/AddLog.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/TapeArena.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

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
