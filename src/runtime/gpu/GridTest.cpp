/// How many threads a range is given, without a GPU.

#include "code/KernelCode.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/streams/Fakes.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;

namespace {

/// A range of as many work items as its argument says.
KernelCode codeOf(gpu::DeviceFunction function) {
  KernelCode code;
  code.name = "add";
  code.sites = {Loc("hand.cpp", 7, 3)};
  code.entry = [](Launch *launch, Worker *, const uint64_t *arguments) {
    uint64_t words[firstOwnWord] = {};
    costate_device_run(launch, 0, words, static_cast<int64_t>(arguments[0]));
  };
  function.symbol = "add";
  function.words = firstOwnWord;
  auto device = std::make_shared<gpu::DeviceCode>();
  device->functions = {std::move(function)};
  code.device = device;
  return code;
}

/// A GPU that runs 4,096 threads at a time, in 64 blocks of whatever size.
class Grids : public testing::Test {
protected:
  void SetUp() override {
    fake.kernels["add$kernel"].body = [this](std::span<const uint64_t> words) {
      perThread = words[PerThreadWord];
      rest = words[RestWord];
    };
    fake.kernels["fill$kernel"] = {};
    auto driver = cuda::openCuda(fake.api(), 0);
    ASSERT_TRUE(driver.ok()) << driver.error().text;
    device = *gpu::openGpu("fake", "fake", *driver, {.memoryLimit = 1 << 20});
  }

  /// How many threads run so many work items.
  int64_t threads(const KernelCode &code, uint64_t workItems) {
    auto done = device->launch(
        {.code = &code, .arguments = {&workItems, 1}, .adjoints = {}});
    EXPECT_TRUE(done.ok()) << done.error().text;
    EXPECT_TRUE(device->synchronize().ok());
    const streams::FunctionObject &kernel = fake.kernels["add$kernel"];
    int64_t found = int64_t(kernel.blocks) * kernel.blockThreads;
    EXPECT_EQ(perThread * uint64_t(found) + rest, workItems);
    return found;
  }

  cuda::FakeCuda fake;
  std::shared_ptr<Device> device;
  uint64_t perThread = 0, rest = 0;
};

/// None waits for one that has two.
TEST_F(Grids, EachOfFewWorkItemsHasAThread) {
  for (auto function :
       {gpu::DeviceFunction{}, {.addsUp = true}, {.accumulates = true}}) {
    KernelCode code = codeOf(function);
    for (int64_t items : {2, 100, 128, 129, 255, 511, 513, 1000, 1025, 3990}) {
      SCOPED_TRACE(items);
      int64_t found = threads(code, static_cast<uint64_t>(items));
      EXPECT_GE(found, items);
      EXPECT_LT(found, items + fake.kernels["add$kernel"].blockThreads);
    }
  }
}

TEST_F(Grids, ThreadsThatKeepWhatTheyFindAreNoMoreThanRun) {
  KernelCode code = codeOf({.accumulates = true});
  EXPECT_EQ(threads(code, 4096), 4096);
  EXPECT_EQ(threads(code, 5000), 4096);
}

} // namespace
