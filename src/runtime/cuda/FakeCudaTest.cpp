/// What CUDA alone is asked for, without a GPU.

#include "runtime/cuda/FakeCuda.h"
#include "runtime/cuda/CudaDriver.h"

#include <gtest/gtest.h>
#include <thread>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cuda;

namespace {

class CudaCode : public testing::Test {
protected:
  void SetUp() override {
    for (const char *name : {"add$kernel", "fill$kernel"})
      fake.kernels[name].body = [](std::span<const uint64_t>) {};
    Result<std::shared_ptr<gpu::Driver>> opened = openCuda(fake.api(), 0);
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    driver = *opened;
  }
  static void check(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }

  FakeCuda fake;
  std::shared_ptr<gpu::Driver> driver;
  std::shared_ptr<gpu::Module> module;
};

TEST_F(CudaCode, KernelsMayUseMuchSharedMemoryAfterTheyHaveAskedOnce) {
  FunctionObject &kernel = fake.kernels["add$kernel"];
  module = *driver->load({});
  uint64_t word = 0;
  uint64_t words[] = {reinterpret_cast<uint64_t>(&word), 1, 1};
  auto launch = [&](size_t bytes) {
    check(driver->launch(*module, "add", {1, 32}, words, bytes));
    EXPECT_EQ(kernel.shared, bytes);
  };
  launch(0);
  EXPECT_EQ(kernel.limitChanges, 0);
  for (size_t bytes : {46 << 10, 100 << 10, 227 << 10, 227 << 10, 100 << 10})
    launch(bytes);
  EXPECT_EQ(kernel.limitChanges, 3);
  check(driver->synchronize());
}

/// The digit says how many blocks of a multiprocessor it leaves room for.
std::string crowded(const std::string &symbol, int blocks, int privateBytes) {
  std::string depot = "\t.local .align 8 .b8 \t__local_depot0[" +
                      std::to_string(privateBytes) + "];\n";
  return ".visible .entry " + symbol +
         "(\n\t.param .align 8 .b8 words[8]\n)\n" +
         ".maxntid 256\n.minnctapersm " + std::to_string(blocks) + "\n{\n" +
         (privateBytes ? depot : "") + "\tret;\n}\n";
}

TEST_F(CudaCode, KernelsThatLackRegistersHaveThoseOfAThirdBlock) {
  auto spill = [](int always, int crowdedBytes) {
    return [=](const std::string &text) {
      bool isCrowded = text.find("sm 3") != text.npos;
      return always + (isCrowded ? crowdedBytes : 0);
    };
  };
  auto loaded = [&](const std::string &image, const std::string &symbol) {
    auto done = driver->load({.image = image});
    EXPECT_TRUE(done.ok());
    check(driver->prepare(**done, symbol, 0));
    return fake.kernels[symbol + "$kernel"].text;
  };
  int64_t waits = driver->counters().read().synchronizations;
  auto &add = fake.kernels["add$kernel"], &fill = fake.kernels["fill$kernel"];
  std::string image = crowded("add$kernel", 3, 128);
  add.localBytes = spill(128, 200);
  EXPECT_EQ(loaded(image, "add"), crowded("add$kernel", 2, 128));
  add.localBytes = spill(128, 63);
  EXPECT_EQ(loaded(image, "add"), image); // little
  add.localBytes = spill(640, 0);
  EXPECT_EQ(loaded(image, "add"), image); // what it calls has that
  EXPECT_EQ(loaded(crowded("add$kernel", 2, 128), "add"),
            crowded("add$kernel", 2, 128)); // has them already

  add.localBytes = spill(128, 0);
  fill.localBytes = [](const std::string &text) {
    return text.find("sm 3", text.find("fill$kernel")) == text.npos ? 8 : 96;
  };
  std::string function = ".func f()\n{\n\t.local .b8 __local_depot1[96];\n}\n";
  EXPECT_EQ(loaded(image + crowded("fill$kernel", 3, 0) + function, "fill"),
            image + crowded("fill$kernel", 2, 0) + function);
  EXPECT_EQ(driver->counters().read().synchronizations, waits + 5);
}

/// Launches that are told to go together.
class CudaSeries : public CudaCode {
protected:
  void SetUp() override {
    CudaCode::SetUp();
    fake.kernels["add$kernel"].body = [](std::span<const uint64_t> words) {
      *reinterpret_cast<uint64_t *>(words[0]) += words[1];
    };
    module = *driver->load({});
    memory = *driver->allocate(8);
    uint8_t zero = 0;
    check(driver->fill(memory, 8, &zero, 1));
    fake.calls.clear();
  }
  void TearDown() override {
    driver->release(memory);
    module = nullptr;
    EXPECT_EQ(fake.liveGraphs(), 0u) << "their functions are gone";
    EXPECT_EQ(fake.violations, 0u);
  }
  void add(uint64_t value) {
    uint64_t words[] = {reinterpret_cast<uint64_t>(memory), value};
    check(driver->launch(*module, "add", {1, 32}, words));
  }
  void addTogether(std::initializer_list<uint64_t> values) {
    ASSERT_TRUE(driver->beginSeries());
    for (uint64_t value : values)
      add(value);
    check(driver->endSeries());
  }
  uint64_t value() {
    uint64_t now = 0;
    check(driver->download(&now, memory, 8));
    return now;
  }

  std::byte *memory = nullptr;
};

TEST_F(CudaSeries, WhatComesAgainIsAGraph) {
  for (int round = 1; round <= 6; ++round) {
    addTogether({1, 20, 300, 4000});
    EXPECT_EQ(fake.calls["launchGraph"], size_t(std::max(0, round - 2)));
  }
  EXPECT_EQ(fake.calls["launchKernel"], size_t(3 * 4));
  EXPECT_EQ(fake.calls["instantiate"], 1u);
  EXPECT_EQ(driver->counters().launches, size_t(6 * 4));
  EXPECT_EQ(value(), 6 * 4321u);
}

TEST_F(CudaSeries, WhatIsDifferentHasNoPartInIt) {
  for (uint64_t round = 1; round <= 9; ++round)
    addTogether({1, 20, round});
  for (uint64_t round = 1; round <= 9; ++round)
    addTogether({1, 20}); // too few
  EXPECT_EQ(fake.calls["instantiate"], 0u);
  EXPECT_EQ(value(), 9 * 21u + 45 + 9 * 21u);
}

TEST_F(CudaSeries, TheContextIsEnteredOnce) {
  fake.calls.clear();
  addTogether({1, 2});
  EXPECT_EQ(fake.calls["pushContext"], 1u);
}

TEST_F(CudaSeries, WhateverElseIsAskedForComesAfterIt) {
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(driver->beginSeries());
    EXPECT_FALSE(driver->beginSeries());
    uint64_t seven = 7;
    check(driver->upload(memory, &seven, 8));
    for (int time = 0; time < 3; ++time)
      add(1);
    EXPECT_EQ(value(), 10u);
    for (int time = 0; time < 4; ++time)
      add(2);
    uint64_t other = 1000;
    std::jthread([&] { check(driver->upload(memory, &other, 8)); }).join();
    check(driver->endSeries());
    EXPECT_EQ(value(), 1008u) << "what another thread asks for does not wait";
  }
  EXPECT_GT(fake.calls["launchGraph"], 0u);
}

TEST_F(CudaSeries, WithoutAGraphLaunchesGoOneByOne) {
  for (const char *function : {"beginCapture", "instantiate"}) {
    fake.failing = {{function, unknownError}};
    for (int round = 1; round <= 6; ++round)
      addTogether({1, 2, 3, uint64_t(*function)});
    EXPECT_EQ(fake.calls[function], 1u) << "it is not tried again";
  }
  fake.failing = {};
  EXPECT_EQ(fake.calls["launchGraph"], 0u);
}

TEST_F(CudaSeries, AFailureIsToldInTheEnd) {
  fake.failing = {{"launchKernel", illegalAddress}};
  ASSERT_TRUE(driver->beginSeries());
  add(1);
  Result<> ended = driver->endSeries();
  fake.failing = {};
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::KernelFailed);
}

TEST_F(CudaSeries, LongOnesAreSeveralGraphs) {
  for (int round = 1; round <= 4; ++round) {
    ASSERT_TRUE(driver->beginSeries());
    for (uint64_t time = 0; time < 300; ++time)
      add(time);
    check(driver->endSeries());
  }
  EXPECT_EQ(fake.calls["instantiate"], 3u);
  EXPECT_EQ(value(), 4 * 150 * 299u);
}

TEST_F(CudaSeries, SeriesThatGoOnChangingLeaveRoomForGraphs) {
  for (uint64_t round = 0; round < 9000; ++round) {
    addTogether({1, 2, 1000 + round});
    if (round % 100 == 0)
      addTogether({3, 4, 5});
  }
  EXPECT_EQ(fake.calls["instantiate"], 1u);
  EXPECT_EQ(fake.calls["launchGraph"], 88u);
}

/// Small numbers come by a kernel, which tells when they are there.
TEST_F(CudaSeries, SmallDownloadsNeedNoEvent) {
  uint64_t sent = 0x0102030405060708;
  check(driver->upload(memory, &sent, 8));
  fake.calls.clear();
  EXPECT_EQ(value(), sent);
  uint8_t bytes[3] = {};
  check(driver->download(bytes, memory + 1, 3));
  EXPECT_EQ(bytes[0] | bytes[1] << 8 | bytes[2] << 16, 0x050607);
  EXPECT_EQ(fake.calls["waitForEvent"] + fake.calls["copyToHost"], 0u);
  EXPECT_EQ(driver->counters().synchronizations, 2u);
  fake.failing = {{"queryStream", illegalAddress}};
  fake.kernels["tell4$kernel"].body = [](std::span<const uint64_t>) {};
  EXPECT_FALSE(driver->download(&sent, memory, 8).ok());
  fake.failing = {};
  EXPECT_FALSE(driver->download(&sent, memory, 8).ok()) << "nothing was told";
}

} // namespace
