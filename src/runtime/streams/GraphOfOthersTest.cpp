/// Launches that somebody else captures, as PyTorch does, without a GPU.

#include "runtime/gpu/GraphOfOthers.h"
#include "code/KernelCode.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/streams/Fakes.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::streams;

namespace {

/// Adds a number to the first element of an array, and counts in the frame.
KernelCode addCode(const std::string &image, int64_t frameSlots) {
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
  device->image = image;
  device->frameSlots = frameSlots;
  code.device = device;
  return code;
}

class StreamGraphOfOthers : public testing::TestWithParam<Fake> {
protected:
  void SetUp() override {
    fake.kernels["add$kernel"].body = [](std::span<const uint64_t> words) {
      *reinterpret_cast<uint64_t *>(words[firstOwnWord]) +=
          words[firstOwnWord + 1];
      ++*reinterpret_cast<uint64_t *>(words[FrameWord]);
    };
    fake.kernels["fill$kernel"] = {};
    open();
    ASSERT_TRUE(device);
    stream = fake.makeStream();
    number = *device->allocate(8);
    ASSERT_TRUE(device->synchronize().ok());
  }
  void open() {
    Result<std::shared_ptr<gpu::Driver>> driver = GetParam().open(fake);
    ASSERT_TRUE(driver.ok()) << driver.error().text;
    device = *gpu::openGpu("fake", "fake", *driver, {.memoryLimit = 1 << 20});
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

  KernelCode addCode(int64_t frameSlots = 1) {
    return ::addCode(GetParam().image, frameSlots);
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
    FakeGpu::run(stream);
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

  std::unique_ptr<FakeGpu> made = GetParam().make();
  FakeGpu &fake = *made;
  std::shared_ptr<Device> device;
  Stream stream = nullptr;
  GraphRun run = nullptr;
  Buffer number;
  size_t leftBytes = 0; ///< that the device keeps for later launches
};

TEST_P(StreamGraphOfOthers, RepeatsLaunches) {
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

TEST_P(StreamGraphOfOthers, HasMemoryOfItsOwnWhileItLives) {
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

TEST_P(StreamGraphOfOthers, KeepsMemoryThatItHasWrittenTo) {
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

TEST_P(StreamGraphOfOthers, ComesAfterWhatTheDeviceWasAskedFor) {
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

TEST_P(StreamGraphOfOthers, NamesWhatCannotBe) {
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

TEST_P(StreamGraphOfOthers, MayOutliveTheDevice) {
  KernelCode code = addCode();
  begin();
  expectAdded(code, number, 5, true);
  instantiate();
  device->release(number);
  ASSERT_TRUE(device->useStream(std::nullopt).ok());
  open();
  number = *device->allocate(8);
}

INSTANTIATE_TEST_SUITE_P(Fakes, StreamGraphOfOthers, testing::ValuesIn(fakes),
                         nameOfFake<testing::TestParamInfo<Fake>>);

} // namespace
