/// The driver of Metal against a fake. What the fake cannot show: that Metal
/// understands these messages.

#include "runtime/metal/MetalDriver.h"

#include "base/DeviceSymbol.h"
#include "base/MetalChip.h"
#include "runtime/metal/FakeMetal.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace costate::runtime::metal {
namespace {

using test::FakeDispatch;
using test::FakeMetal;

class MetalRuntime : public testing::Test {
protected:
  void SetUp() override {
#ifndef __x86_64__
    GTEST_SKIP() << "the fake takes messages as they come on x86-64";
#endif
  }
  std::shared_ptr<gpu::Driver> open() {
    auto driver = openMetal(&FakeMetal::api());
    EXPECT_TRUE(driver.ok()) << driver.error().text;
    return driver ? *driver : nullptr;
  }
  std::shared_ptr<gpu::Module> load(gpu::Driver &driver,
                                    const std::string &text) {
    gpu::DeviceCode code;
    code.image = text;
    auto module = driver.load(code);
    EXPECT_TRUE(module.ok()) << module.error().text;
    return module ? *module : nullptr;
  }
  size_t logged(const std::string &message) const {
    return size_t(std::ranges::count(fake.log, message));
  }

  FakeMetal fake;
};

} // namespace

TEST_F(MetalRuntime, TellsWhatTheGpuHas) {
  auto driver = open();
  const gpu::Properties &gpu = driver->properties();
  EXPECT_EQ(gpu.name, "a fake");
  EXPECT_EQ(gpu.chip, metalChip({}));
  EXPECT_EQ(gpu.memory, size_t(1) << 30);
  EXPECT_EQ(gpu.sharedPerBlock, size_t(30) << 10);
  EXPECT_FALSE(gpu.isHost);
  EXPECT_TRUE(gpu.sortsApart);
}

TEST_F(MetalRuntime, WithoutAGpuThereIsNoDevice) {
  fake.hasDevice = false;
  auto driver = openMetal(&FakeMetal::api());
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::NoDevice);
}

TEST_F(MetalRuntime, OldSystemsAreNamed) {
  fake.hasResidency = false;
  auto driver = openMetal(&FakeMetal::api());
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::NoDevice);
  EXPECT_NE(driver.error().text.find("macOS 15"), std::string::npos);
}

TEST_F(MetalRuntime, MemoryIsThatOfTheGpu) {
  auto driver = open();
  int before = fake.resident;
  std::byte *memory = *driver->allocate(64);
  EXPECT_EQ(fake.resident, before + 1);
  std::vector<int> sent = {1, 2, 3, 4}, back(4);
  ASSERT_TRUE(driver->upload(memory + 16, sent.data(), 16).ok());
  ASSERT_TRUE(driver->copy(memory, memory + 16, CopyShape(16)).ok());
  ASSERT_TRUE(driver->download(back.data(), memory, 16).ok());
  EXPECT_EQ(back, sent);
  int seven = 7;
  ASSERT_TRUE(driver->fill(memory, 8, &seven, 4).ok());
  ASSERT_TRUE(driver->download(back.data(), memory, 16).ok());
  EXPECT_EQ(back, (std::vector<int>{7, 7, 3, 4}));
  std::byte *host = *driver->allocateHost(8);
  EXPECT_EQ(reinterpret_cast<uint64_t>(driver->onDevice(host + 4)),
            reinterpret_cast<uint64_t>(host + 4) + FakeMetal::distance);
  driver->releaseHost(host);
  driver->release(memory);
  EXPECT_EQ(fake.resident, before);
  std::byte theirs;
  EXPECT_FALSE(driver->adopt(&theirs, 1).ok());
}

TEST_F(MetalRuntime, BuffersThatAreNilAreNoMemory) {
  auto driver = open();
  fake.largestBuffer = 1000;
  auto memory = driver->allocate(2000);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::OutOfMemory);
  EXPECT_FALSE(driver->allocateHost(2000).ok());
  EXPECT_TRUE(driver->allocate(500).ok());
}

TEST_F(MetalRuntime, LaunchesRunInOrder) {
  auto driver = open();
  auto module = load(*driver, "// bytes of block memory: 48\nkernel void ...");
  EXPECT_EQ(logged("setMathMode: 0"), 1u);
  EXPECT_EQ(logged("setLanguageVersion: " + std::to_string((3 << 16) + 2)), 1u);
  std::vector<uint64_t> seen;
  fake.run = [&](const FakeDispatch &work) {
    seen.push_back(FakeMetal::onHost<uint64_t>(work.words)[1]);
    EXPECT_EQ(*FakeMetal::onHost<unsigned>(work.locks), 0u);
  };
  for (uint64_t k = 0; k < 3; ++k) {
    uint64_t words[] = {5, k};
    ASSERT_TRUE(driver->launch(*module, "f", {7, 64}, words, 20).ok());
  }
  EXPECT_TRUE(seen.empty()); // queued
  ASSERT_TRUE(driver->synchronize().ok());
  EXPECT_EQ(seen, (std::vector<uint64_t>{0, 1, 2}));
  const FakeDispatch &work = fake.dispatches.front();
  EXPECT_EQ(work.kernel, metalName(deviceSymbol("f")));
  EXPECT_EQ(work.blocks.width, 7u);
  EXPECT_EQ(work.threads.width, 64u);
  EXPECT_EQ(work.threads.height, 1u);
  EXPECT_EQ(work.blockBytes, 80u); // a multiple of 16
  EXPECT_EQ(logged("memoryBarrierWithScope:"), 3u);
  EXPECT_EQ(logged("setMaxTotalThreadsPerThreadgroup: 64"), 1u);
}

TEST_F(MetalRuntime, WhatIsCapturedRunsWhenItIsReplayed) {
  auto driver = open();
  auto module = load(*driver, "kernel void ...");
  uint64_t word = 1;
  ASSERT_TRUE(driver->beginCapture().ok());
  ASSERT_TRUE(driver->launch(*module, "f", {1, 32}, {&word, 1}).ok());
  auto captured = driver->endCapture();
  ASSERT_TRUE(captured.ok());
  ASSERT_TRUE(driver->synchronize().ok());
  EXPECT_TRUE(fake.dispatches.empty());
  for (int k = 0; k < 2; ++k)
    ASSERT_TRUE(driver->replay(**captured).ok());
  ASSERT_TRUE(driver->synchronize().ok());
  EXPECT_EQ(fake.dispatches.size(), 2u);
}

TEST_F(MetalRuntime, ErrorsAreTold) {
  auto driver = open();
  fake.compileError = "line 3 is wrong";
  gpu::DeviceCode code;
  auto module = driver->load(code);
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.error().text.find("line 3 is wrong"), std::string::npos);
  fake.compileError.clear();
  auto good = load(*driver, "kernel void ...");
  fake.runError = "page fault";
  uint64_t word = 1;
  ASSERT_TRUE(driver->launch(*good, "f", {1, 32}, {&word, 1}).ok());
  Result<> done = driver->synchronize();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::KernelFailed);
  EXPECT_NE(done.error().text.find("page fault"), std::string::npos);
}

TEST_F(MetalRuntime, NothingIsLeft) {
  {
    auto driver = open();
    auto module = load(*driver, "kernel void ...");
    uint64_t word = 1;
    ASSERT_TRUE(driver->launch(*module, "f", {1, 32}, {&word, 1}).ok());
    std::byte *memory = *driver->allocate(64);
    driver->release(memory);
  }
  EXPECT_EQ(fake.live, 0);
}

TEST(MetalOfTheSystem, IsNamedWhereItIsMissing) {
#ifdef __APPLE__
  GTEST_SKIP();
#endif
  auto driver = openMetal();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::NoDevice);
  EXPECT_NE(driver.error().text.find("macOS"), std::string::npos);
}

} // namespace costate::runtime::metal
