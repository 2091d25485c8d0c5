/// Launches that somebody else captures, as PyTorch does, without a GPU.

#include "runtime/gpu/GraphOfOthers.h"
#include "code/KernelCode.h"
#include "runtime/cuda/CudaDriver.h"
#include "runtime/cuda/FakeCuda.h"
#include "runtime/gpu/GpuDevice.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cuda;

namespace {

/// Adds a number to the first element of an array, and counts in the frame.
KernelCode addCode(int64_t frameSlots = 1) {
  KernelCode code;
  code.name = "add";
  code.sites = {Loc("hand.cpp", 7, 3)};
  code.entry = [](Launch *launch, Worker *, const uint64_t *arguments) {
    uint64_t words[firstOwnWord + 2] = {};
    words[firstOwnWord] = arguments[0];
    words[firstOwnWord + 1] = arguments[1];
    costate_device_run(launch, 0, words, 1);
  };
  auto device = std::make_shared<gpu::DeviceCode>();
  device->functions = {
      {.symbol = "add", .serial = true, .words = firstOwnWord + 2}};
  device->frameSlots = frameSlots;
  code.device = device;
  return code;
}

class CudaGraphOfOthers : public testing::Test {
protected:
  void SetUp() override {
    fake.kernels["add$kernel"].body = [](std::span<const uint64_t> words) {
      *reinterpret_cast<uint64_t *>(words[firstOwnWord]) +=
          words[firstOwnWord + 1];
      ++*reinterpret_cast<uint64_t *>(words[FrameWord]);
    };
    fake.kernels["fill$kernel"] = {};
    Result<std::shared_ptr<gpu::Driver>> driver = openCuda(fake.api(), 0);
    ASSERT_TRUE(driver.ok()) << driver.error().text;
    device = *gpu::openGpu("cuda", "cuda", *driver, {.memoryLimit = 1 << 20});
    stream = fake.makeStream();
    number = *device->allocate(8);
    ASSERT_TRUE(device->synchronize().ok());
  }
  void TearDown() override {
    end();
    device->release(number);
    EXPECT_EQ(device->memory().current, leftBytes);
    (void)device->synchronize();
    device = nullptr;
    fake.api().destroyStream(stream);
    EXPECT_EQ(fake.liveStreams(), 0u);
    EXPECT_EQ(fake.liveAllocations(), 0u);
    EXPECT_EQ(fake.livePinned(), 0u);
    EXPECT_EQ(fake.violations, 0u) << "it would have spoilt the graph";
  }

  void begin() {
    fake.api().beginCapture(stream, CaptureMode::ThreadLocal);
    Result<> done = device->useStream(stream);
    EXPECT_TRUE(done.ok()) << done.error().text;
  }
  void instantiate() {
    GraphHandle graph = nullptr;
    fake.api().endCapture(stream, &graph);
    fake.api().instantiate(&run, graph, 0);
    fake.api().destroyGraph(graph);
  }
  void replay() {
    fake.api().launchGraph(run, stream);
    FakeCuda::run(stream);
  }
  /// Of the graph.
  void end() {
    if (run)
      fake.api().destroyGraphRun(std::exchange(run, nullptr));
    (void)device->useStream(std::nullopt);
    device->release(*device->allocate(8));
  }

  Result<LaunchReport> add(const KernelCode &code, Buffer to, uint64_t value) {
    uint64_t arguments[] = {reinterpret_cast<uint64_t>(to.address), value};
    return device->launch(
        {.code = &code, .arguments = arguments, .adjoints = {}});
  }
  void expectAdded(const KernelCode &code, Buffer to, uint64_t value,
                   bool isInGraph) {
    Result<LaunchReport> report = add(code, to, value);
    ASSERT_TRUE(report.ok()) << report.error().text;
    EXPECT_EQ(report->isInGraph, isInGraph);
  }
  uint64_t inMemory() const {
    return *reinterpret_cast<uint64_t *>(number.address);
  }
  static void expectRefused(const Result<> &result, const char *words) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::CannotCapture);
    EXPECT_NE(result.error().text.find(words), std::string::npos)
        << result.error().text;
  }

  FakeCuda fake;
  std::shared_ptr<Device> device;
  Stream stream = nullptr;
  GraphRun run = nullptr;
  Buffer number;
  size_t leftBytes = 0; ///< that the device keeps for later launches
};

TEST_F(CudaGraphOfOthers, RepeatsLaunches) {
  KernelCode code = addCode();
  begin();
  expectAdded(code, number, 5, true);
  expectAdded(code, number, 2, true);
  EXPECT_EQ(inMemory(), 0u) << "captured work has run";
  instantiate();
  replay();
  replay();
  EXPECT_EQ(inMemory(), 14u);
}

TEST_F(CudaGraphOfOthers, HasMemoryOfItsOwnWhileItLives) {
  KernelCode code = addCode(), larger = addCode(100);
  begin();
  size_t before = fake.liveAllocations();
  expectAdded(code, number, 5, true);
  expectAdded(larger, number, 2, true);
  EXPECT_EQ(fake.liveAllocations(), before + 3) << "two frames and cells";
  instantiate();
  replay();
  EXPECT_EQ(inMemory(), 7u);
  end();
  ASSERT_TRUE(device->synchronize().ok());
  EXPECT_EQ(fake.liveAllocations(), before);
}

TEST_F(CudaGraphOfOthers, KeepsMemoryThatItHasWrittenTo) {
  KernelCode code = addCode();
  begin();
  Result<Buffer> passing = device->allocate(8);
  ASSERT_TRUE(passing.ok()) << passing.error().text;
  expectAdded(code, *passing, 3, true);
  ASSERT_TRUE(device->copy(number, *passing).ok());
  device->release(*passing);
  instantiate();
  for (int repeated = 0; repeated < 2; ++repeated) {
    *reinterpret_cast<uint64_t *>(number.address) = 0;
    replay();
    EXPECT_EQ(inMemory(), 3u) << "it is cleared with each replay";
  }
}

TEST_F(CudaGraphOfOthers, ComesAfterWhatTheDeviceWasAskedFor) {
  KernelCode code = addCode();
  expectAdded(code, number, 5, false);
  EXPECT_EQ(inMemory(), 0u);
  begin();
  EXPECT_EQ(inMemory(), 5u) << "the host has not waited";
  expectAdded(code, number, 2, true);
  ASSERT_TRUE(device->useStream(std::nullopt).ok());
  instantiate();
  expectAdded(code, number, 1, false);
  ASSERT_TRUE(device->synchronize().ok());
  EXPECT_EQ(inMemory(), 6u);
  leftBytes = device->memory().current - 8;
}

TEST_F(CudaGraphOfOthers, NamesWhatCannotBe) {
  KernelCode code = addCode();
  auto checking = std::make_shared<gpu::DeviceCode>(*code.device);
  checking->mayFail = true;
  code.device = checking;
  uint64_t value = 0;
  begin();
  Result<LaunchReport> report = add(code, number, 1);
  expectRefused(report ? Result<>() : report.error(), "kernel `add` cannot be");
  expectRefused(device->download(&value, number), "send data");
  expectRefused(device->upload(number, &value), "receive data");
  expectRefused(device->synchronize(), "finish its work");
  instantiate();
  replay();
  EXPECT_EQ(inMemory(), 0u);
}

TEST_F(CudaGraphOfOthers, MayOutliveTheDevice) {
  KernelCode code = addCode();
  begin();
  expectAdded(code, number, 5, true);
  instantiate();
  device->release(number);
  ASSERT_TRUE(device->useStream(std::nullopt).ok());
  device = *gpu::openGpu("cuda", "cuda", *openCuda(fake.api(), 0),
                         {.memoryLimit = 1 << 20});
  number = *device->allocate(8);
}

} // namespace
