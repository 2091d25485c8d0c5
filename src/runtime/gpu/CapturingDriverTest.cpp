#include "runtime/gpu/CapturingDriver.h"

#include "runtime/simt/SimtDevice.h"

#include <gtest/gtest.h>
#include <thread>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::gpu;

namespace {

void addOne(const uint64_t *words, int64_t, int64_t, std::byte *) {
  ++*reinterpret_cast<uint64_t *>(words[0]);
}

class Capturing : public testing::Test {
protected:
  void SetUp() override {
    memory = *real->allocate(16);
    write(memory, 5);
    write(memory + 8, 7);
    DeviceCode code;
    code.addresses["addOne"] = reinterpret_cast<void *>(addOne);
    module = *driver.load(code);
  }
  void TearDown() override { real->release(memory); }

  void write(std::byte *to, uint64_t value) {
    ASSERT_TRUE(real->upload(to, &value, 8).ok());
  }
  uint64_t read(const std::byte *from) {
    uint64_t value = 0;
    EXPECT_TRUE(real->download(&value, from, 8).ok());
    return value;
  }
  Result<> launch() {
    uint64_t word = reinterpret_cast<uint64_t>(memory);
    return driver.launch(*module, "addOne", {1, 1}, {&word, 1}, 0);
  }
  static void expectRefused(const Result<> &result, const char *part) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::CannotCapture);
    EXPECT_NE(result.error().text.find(part), std::string::npos)
        << result.error().text;
  }
  template <class T> static Result<> without(const Result<T> &result) {
    return result.ok() ? Result<>() : result.error();
  }

  std::shared_ptr<Driver> real = simt::createDriver({});
  CapturingDriver driver{*real};
  std::shared_ptr<Module> module;
  std::byte *memory = nullptr;
  uint64_t value = 9;
};

TEST_F(Capturing, ARehearsalHasMemoryButRunsNothing) {
  EXPECT_TRUE(launch().ok());
  EXPECT_TRUE(driver.copy(memory + 8, memory, 8).ok());
  EXPECT_EQ(read(memory), 5u);
  EXPECT_EQ(read(memory + 8), 7u);
  std::byte *scratch = *driver.allocate(8);
  EXPECT_TRUE(driver.upload(scratch, &value, 8).ok());
  EXPECT_EQ(read(scratch), 9u);
  EXPECT_TRUE(driver.fill(scratch, 8, "x", 1).ok());
  EXPECT_EQ(read(scratch), 0x7878787878787878u);
  driver.release(scratch);
}

TEST_F(Capturing, NothingIsLeftToAllocateAfterIt) {
  driver.keep();
  expectRefused(without(driver.allocate(8)), "capture it again");
  expectRefused(without(driver.load({})), "capture it again");
  expectRefused(driver.upload(memory, &value, 8), "capture it again");
}

TEST_F(Capturing, WhoeverWaitsIsRefused) {
  for (int stage : {0, 1}) {
    expectRefused(driver.download(&value, memory, 8), "outside of the graph");
    expectRefused(driver.synchronize(), "outside of the graph");
    if (stage == 0)
      driver.keep();
  }
}

TEST_F(Capturing, WhatIsKeptRunsWithEachReplayAndNothingElseDoes) {
  driver.keep();
  ASSERT_TRUE(real->beginCapture().ok());
  EXPECT_TRUE(launch().ok());
  const Rows rows(memory, 2, 2, 4);
  EXPECT_TRUE(driver.copy(memory + 8, memory, {rows, rows}).ok());
  std::jthread([&] { EXPECT_TRUE(real->fill(memory, 16, "", 1).ok()); }).join();
  Result<std::shared_ptr<Captured>> captured = real->endCapture();
  EXPECT_EQ(read(memory), 0u) << "another thread does not capture";
  for (uint64_t times : {1, 2}) {
    EXPECT_TRUE(real->replay(**captured).ok());
    EXPECT_EQ(read(memory), times);
    EXPECT_EQ(read(memory + 8), times);
  }
}

} // namespace
