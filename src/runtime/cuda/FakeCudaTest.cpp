/// What CUDA alone is asked for, without a GPU.

#include "runtime/cuda/FakeCuda.h"
#include "runtime/cuda/CudaDriver.h"

#include <gtest/gtest.h>

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

} // namespace
