#include "runtime/vulkan/VulkanGpu.h"

#include <thread>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::vulkan;

namespace {

TEST_F(VulkanGpu, AGraphRunsAsOftenAsItIsReplayed) {
  constexpr size_t count = 1000;
  std::byte *memory = allocate(count * 8), *copy = allocate(count * 8);
  std::shared_ptr<gpu::Module> module = load();
  check(driver->prepare(*module, "add", 0));
  uint64_t zero = 0, pattern = 0x1122334455667788;
  check(driver->beginCapture());
  check(driver->fill(memory, 8, &pattern, 8));
  add(*module, memory + 8, count - 1, 3, {8, 32});
  const Rows even(memory, 8, count / 2, 16), odd(memory + 8, 8, count / 2, 16);
  check(driver->copy(copy, memory, {even, even}));
  check(driver->copy(copy + 8, memory + 8, {odd, odd}));
  EXPECT_EQ(driver->upload(memory, &zero, 8).error().code,
            ErrorCode::CannotCapture);
  std::jthread([&] {
    check(driver->fill(memory, count * 8, &zero, 1));
  }).join();
  Result<std::shared_ptr<gpu::Captured>> graph = driver->endCapture();
  ASSERT_TRUE(graph.ok()) << graph.error().text;
  EXPECT_EQ(read<uint64_t>(memory, count), repeated(zero, count));
  module = nullptr;
  driver->counters().reset();
  for (int k = 0; k < 100; ++k)
    check(driver->replay(**graph));
  graph = std::shared_ptr<gpu::Captured>();
  EXPECT_EQ(driver->counters().synchronizations, 0u);
  EXPECT_EQ(driver->counters().launches, 100u);
  std::vector<uint64_t> expected = repeated(uint64_t(300), count);
  expected[0] = pattern;
  EXPECT_EQ(read<uint64_t>(copy, count), expected);
  driver->release(memory);
  driver->release(copy);
}

TEST_F(VulkanGpu, AGraphOutlivesItsDriver) {
  check(driver->beginCapture());
  Result<std::shared_ptr<gpu::Captured>> graph = driver->endCapture();
  ASSERT_TRUE(graph.ok());
  check(driver->synchronize());
  driver = nullptr;
}

} // namespace
