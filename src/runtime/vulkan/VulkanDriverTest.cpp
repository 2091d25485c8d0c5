#include "runtime/vulkan/VulkanDriver.h"

#include "base/VulkanChip.h"
#include "runtime/vulkan/Adapter.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::vulkan;

namespace {

constexpr unsigned char kernels[] = {
#include "runtime/vulkan/TestKernels.inc"
};

std::string image() { return {std::begin(kernels), std::end(kernels)}; }

/// Turns; llvmpipe ends loops after 65535.
constexpr uint64_t longSpin = 60000;

class VulkanGpu : public testing::Test {
protected:
  void SetUp() override { open({.validate = true}); }
  void TearDown() override {
    if (driver)
      check(driver->synchronize()); // nothing that the layers object to
  }
  void open(Options options) {
    Result<std::shared_ptr<gpu::Driver>> opened =
        openVulkan("", std::move(options));
    if (!opened && opened.error().code == ErrorCode::NoDevice)
      GTEST_SKIP() << opened.error().text;
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    driver = *opened;
  }

  std::byte *allocate(size_t bytes) {
    Result<std::byte *> memory = driver->allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.error().text;
    return memory ? *memory : nullptr;
  }
  std::shared_ptr<gpu::Module> load() {
    Result<std::shared_ptr<gpu::Module>> module =
        driver->load({.image = image()});
    EXPECT_TRUE(module.ok()) << module.error().text;
    return *module;
  }
  template <class T> std::vector<T> read(const std::byte *from, size_t count) {
    std::vector<T> values(count);
    check(driver->download(values.data(), from, count * sizeof(T)));
    return values;
  }
  void add(gpu::Module &module, std::byte *to, size_t count, uint64_t term,
           gpu::Grid grid = {1, 32}) {
    uint64_t words[] = {address(to), count, term};
    check(driver->launch(module, "add", grid, words));
  }
  /// Leaves `turns` at `to`; by default takes long beside everything else.
  void spin(gpu::Module &module, std::byte *to, uint64_t turns = longSpin) {
    uint64_t words[] = {address(to), turns};
    bool isFast = driver->properties().name.starts_with("llvmpipe");
    int times = isFast && turns == longSpin ? 200 : 1;
    for (int k = 0; k < times; ++k)
      check(driver->launch(module, "spin", {1, 1}, words));
  }
  void expectWorking() {
    std::byte *memory = allocate(8);
    uint64_t one = 1;
    check(driver->upload(memory, &one, 8));
    add(*load(), memory, 1, 41);
    EXPECT_EQ(read<uint64_t>(memory, 1)[0], 42u);
    driver->release(memory);
  }
  static uint64_t address(const std::byte *place) {
    return reinterpret_cast<uint64_t>(place);
  }
  static void check(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }

  std::shared_ptr<gpu::Driver> driver;
};

template <class T> std::vector<T> repeated(T value, size_t count) {
  return std::vector<T>(count, value);
}

//===-- Which device ------------------------------------------------------===//

TEST_F(VulkanGpu, TellsWhatItIs) {
  const gpu::Properties &gpu = driver->properties();
  EXPECT_FALSE(gpu.name.empty());
  EXPECT_EQ(gpu.chip.substr(0, 8), "vulkan1.");
  EXPECT_GE(gpu.multiprocessors, 1);
  EXPECT_GE(gpu.residentThreads, gpu.blockThreads);
  EXPECT_GE(gpu.blockThreads, 32);
  EXPECT_GE(gpu.sharedPerBlock, size_t(15) << 10); // 1 is for code
  EXPECT_GT(driver->freeBytes(), size_t(64) << 20);
  EXPECT_LE(driver->freeBytes(), gpu.memory);
}

TEST_F(VulkanGpu, WhatItDoesNotTellIsFoundOut) {
  auto features = parseVulkanChip(driver->properties().chip);
  ASSERT_TRUE(features) << driver->properties().chip;
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(8);
  spin(*module, memory, 80000);
  EXPECT_EQ(read<uint64_t>(memory, 1)[0] < 80000, features->shortLoops);
  EXPECT_EQ(features->largestBlock() >= 512, features->warps);
  driver->release(memory);
}

TEST_F(VulkanGpu, IsFoundByNumberAndByName) {
  std::string name = driver->properties().name;
  std::string part = name.substr(1, 4);
  std::ranges::transform(part, part.begin(), [](char c) {
    return static_cast<char>(std::toupper(c));
  });
  for (const std::string &which : {std::string("0"), name, part}) {
    auto found = openVulkan(which);
    ASSERT_TRUE(found.ok()) << found.error().text;
    EXPECT_FALSE((*found)->properties().name.empty());
  }
}

TEST_F(VulkanGpu, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  for (const char *which : {"-1", "1000", "no such GPU"}) {
    auto other = openVulkan(which);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::NoDevice);
    for (const char *text : {which, "this machine has 0 ("})
      EXPECT_NE(other.error().text.find(text), std::string::npos)
          << other.error().text;
  }
}

void openWithoutDriver() {
  auto opened = openVulkan("");
  bool isNamed = !opened && opened.error().code == ErrorCode::NoDevice;
  if (!opened)
    std::fprintf(stderr, "%s\n", opened.error().text.c_str());
  std::exit(isNamed ? 0 : 1);
}

TEST(VulkanGpuDeathTest, AMachineWithoutDriverIsToldSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("VK_DRIVER_FILES", "/nowhere.json", 1);
  setenv("VK_ICD_FILENAMES", "/nowhere.json", 1);
  EXPECT_EXIT(openWithoutDriver(), testing::ExitedWithCode(0),
              "Vulkan finds no driver|there is no Vulkan on this machine");
  unsetenv("VK_DRIVER_FILES");
  unsetenv("VK_ICD_FILENAMES");
}

//===-- Work --------------------------------------------------------------===//

TEST_F(VulkanGpu, NothingIsAnAmountToo) {
  EXPECT_EQ(allocate(0), nullptr);
  uint64_t zero = 0;
  check(driver->upload(nullptr, &zero, 0));
  check(driver->download(&zero, nullptr, 0));
  check(driver->copy(nullptr, nullptr, 0));
  check(driver->fill(nullptr, 0, &zero, 8));
  check(driver->launch(*load(), "add", {0, 32}, {}));
  driver->release(nullptr);
  check(driver->synchronize());
}

TEST_F(VulkanGpu, ALaunchReachesEveryElementOnce) {
  constexpr size_t count = 50001;
  std::byte *memory = allocate(count * 8);
  uint64_t zero = 0;
  check(driver->fill(memory, count * 8, &zero, 8));
  std::shared_ptr<gpu::Module> module = load();
  for (gpu::Grid grid : {gpu::Grid{1, 1}, {100, 32}, {count / 32 + 1, 32}})
    add(*module, memory, count, 5, grid);
  module = nullptr;
  EXPECT_EQ(read<uint64_t>(memory, count), repeated(uint64_t(15), count));
  driver->release(memory);
}

TEST_F(VulkanGpu, BlocksHaveTheThreadsAndTheMemoryOfTheLaunch) {
  const gpu::Properties &gpu = driver->properties();
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(8 * 3 * static_cast<size_t>(gpu.blockThreads));
  uint64_t word = address(memory);
  for (int threads : {1, 32, gpu.blockThreads})
    for (size_t shared : {size_t(0), size_t(1024), gpu.sharedPerBlock}) {
      check(driver->launch(*module, "sizes", {3, threads}, {&word, 1}, shared));
      auto all = 3 * static_cast<size_t>(threads);
      uint64_t expected = static_cast<uint64_t>(threads) << 32 |
                          std::max<size_t>(1, shared / 4);
      EXPECT_EQ(read<uint64_t>(memory, all), repeated(expected, all));
    }
  driver->release(memory);
}

TEST_F(VulkanGpu, ManyLaunchesRunInOrder) {
  constexpr size_t count = 64, launches = 5000;
  std::byte *memory = allocate(count * 8), *other = allocate(count * 8);
  uint64_t zero = 0;
  check(driver->fill(memory, count * 8, &zero, 8));
  std::shared_ptr<gpu::Module> module = load();
  driver->counters().reset();
  for (size_t k = 0; k < launches; ++k) {
    add(*module, memory, count, 1);
    check(driver->copy(other, memory, count * 8));
    std::swap(memory, other);
  }
  EXPECT_EQ(driver->counters().launches, launches);
  EXPECT_EQ(driver->counters().synchronizations, 0u);
  EXPECT_EQ(read<uint64_t>(memory, count), repeated(uint64_t(launches), count));
  driver->release(memory);
  driver->release(other);
}

TEST_F(VulkanGpu, TheHostDoesNotWaitForWorkThatIsQueued) {
  std::byte *memory = allocate(24);
  std::shared_ptr<gpu::Module> module = load();
  auto now = [] { return std::chrono::steady_clock::now(); };
  spin(*module, memory, 1);           // assembles the kernel
  driver->release(allocate(1 << 20)); // asks the system for it
  check(driver->synchronize());
  driver->counters().reset();
  auto share = [&] { // of the time until all is done
    auto start = now();
    spin(*module, memory);
    uint64_t two = 2;
    double value = 1.1;
    check(driver->upload(memory + 8, &two, 8));
    check(driver->fill(memory + 16, 8, &value, 8));
    driver->release(allocate(1 << 20));
    std::chrono::duration<double> queued = now() - start;
    EXPECT_EQ(driver->counters().synchronizations, 0u);
    EXPECT_EQ(read<uint64_t>(memory, 1)[0], longSpin);
    driver->counters().reset();
    return queued / (now() - start);
  };
  double least = share();
  for (int k = 0; k < 4 && least > 0.5; ++k) // others may have the processor
    least = std::min(least, share());
  EXPECT_LT(least, 0.5);
  driver->release(memory);
}

TEST_F(VulkanGpu, WorkStartsWithoutAnybodyWaitingForIt) {
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(16);
  Result<std::byte *> cell = driver->allocateHost(8);
  ASSERT_TRUE(cell.ok());
  auto *seen = reinterpret_cast<volatile uint64_t *>(*cell);
  *seen = 0;
  spin(*module, memory);
  add(*module, driver->onDevice(*cell), 1, 7); // behind a busy device
  while (*seen == 0)
    std::this_thread::yield();
  EXPECT_EQ(*seen, 7u);
  driver->releaseHost(*cell);
  driver->release(memory);
}

TEST_F(VulkanGpu, MemoryIsReusedInTheOrderOfTheStream) {
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(8);
  spin(*module, memory);
  driver->release(memory);
  std::byte *again = allocate(8);
  EXPECT_EQ(again, memory);
  uint64_t two = 2;
  check(driver->upload(again, &two, 8));
  EXPECT_EQ(read<uint64_t>(again, 1)[0], 2u);
  driver->release(again);
}

TEST_F(VulkanGpu, MemoryOfTheHostIsSharedWithTheDevice) {
  std::shared_ptr<gpu::Module> module = load();
  for (size_t bytes : {size_t(8), size_t(3) << 20}) {
    Result<std::byte *> host = driver->allocateHost(bytes);
    ASSERT_TRUE(host.ok()) << host.error().text;
    auto *values = reinterpret_cast<uint64_t *>(*host);
    size_t count = bytes / 8;
    for (size_t k = 0; k < count; ++k)
      values[k] = k;
    add(*module, driver->onDevice(*host), count, 3, {4, 32});
    check(driver->synchronize());
    EXPECT_EQ(values[0], 3u);
    EXPECT_EQ(values[count - 1], count + 2);
    add(*module, driver->onDevice(*host + bytes - 8), 1, 4);
    driver->releaseHost(*host); // waits
  }
}

TEST_F(VulkanGpu, UploadsAndDownloadsOfAnySize) {
  for (size_t bytes : {size_t(1), size_t(3), size_t(16384), size_t(16385),
                       size_t(65536), size_t(65537), size_t(4) << 20,
                       (size_t(4) << 20) + 1, (size_t(37) << 20) + 5}) {
    std::vector<uint8_t> sent(bytes);
    for (size_t k = 0; k < bytes; ++k)
      sent[k] = static_cast<uint8_t>(k * 7 + k / 251);
    std::vector<uint8_t> changed = sent;
    std::byte *memory = allocate(bytes + 8);
    check(driver->upload(memory + 1, changed.data(), bytes));
    std::ranges::fill(changed, uint8_t(0xcc));
    EXPECT_EQ(read<uint8_t>(memory + 1, bytes), sent);
    driver->release(memory);
  }
}

TEST_F(VulkanGpu, UploadsThatAreFarAheadWait) {
  std::shared_ptr<gpu::Module> module = load();
  constexpr size_t bytes = size_t(5) << 20;
  std::byte *memory = allocate(8), *to = allocate(8 * bytes);
  spin(*module, memory);
  for (uint8_t k = 0; k < 8; ++k)
    check(driver->upload(to + k * bytes, repeated(k, bytes).data(), bytes));
  std::vector<uint8_t> got = read<uint8_t>(to, 8 * bytes);
  for (uint8_t k = 0; k < 8; ++k)
    EXPECT_EQ(got[(k + 1) * bytes - 1], k);
  driver->release(memory);
  driver->release(to);
}

TEST_F(VulkanGpu, FillsOfEveryPatternAndAlignment) {
  constexpr size_t room = 256;
  std::byte *memory = allocate(room);
  uint64_t pattern = 0x8877665544332211, dots = 0xeeeeeeeeeeeeeeee;
  for (size_t unit : {1, 2, 4, 8})
    for (size_t at : {0, 1, 2, 3, 4, 5, 8, 11})
      for (size_t count : {1, 2, 3, 5, 16}) {
        check(driver->fill(memory, room, &dots, 8));
        check(driver->fill(memory + at, unit * count, &pattern, unit));
        std::vector<uint8_t> expected(room, 0xee);
        for (size_t k = 0; k < count; ++k)
          std::memcpy(&expected[at + k * unit], &pattern, unit);
        ASSERT_EQ(read<uint8_t>(memory, room), expected)
            << unit << " bytes at " << at << ", " << count << " times";
      }
  driver->release(memory);
}

TEST_F(VulkanGpu, ThreadsShareIt) {
  std::shared_ptr<gpu::Module> module = load();
  auto work = [&](uint64_t number) {
    constexpr size_t count = 1000;
    std::byte *memory = allocate(count * 8);
    check(driver->fill(memory, count * 8, &number, 8));
    for (int k = 0; k < 50; ++k)
      add(*module, memory, count, number);
    EXPECT_EQ(read<uint64_t>(memory, count), repeated(51 * number, count));
    driver->release(memory);
  };
  std::vector<std::jthread> threads;
  for (uint64_t k = 1; k <= 8; ++k)
    threads.emplace_back(work, k);
}

/// A driver that tells of registers.
VkResult tellRegisters(VkDevice, const VkPipelineExecutableInfoKHR *,
                       uint32_t *count, VkPipelineExecutableStatisticKHR *all) {
  *count = 2;
  if (!all)
    return VK_SUCCESS;
  std::strcpy(all[0].name, "Binary Size");
  std::strcpy(all[1].name, "Register Count");
  all[1].format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR;
  all[1].value.u64 = 78;
  return VK_SUCCESS;
}

TEST_F(VulkanGpu, ResidentBlocksFollowFromRegistersAndSharedMemory) {
  driver = nullptr;
  open({.change =
            [](Api &api) {
              api.vkGetPipelineExecutableStatisticsKHR = tellRegisters;
            },
        .changeAdapter =
            [](Adapter &adapter) {
              adapter.tellsStatistics = true;
              adapter.properties.multiprocessors = 100;
              adapter.properties.residentThreads = 204800;
              adapter.properties.blockThreads = 1024;
              adapter.properties.sharedPerMultiprocessor = size_t(100) << 10;
            }});
  std::shared_ptr<gpu::Module> module = load();
  auto blocks = [&](int threads, size_t shared) {
    auto resident = driver->residentBlocks(*module, "add", threads, shared);
    EXPECT_TRUE(resident.ok()) << resident.error().text;
    return *resident / 100;
  };
  EXPECT_EQ(blocks(256, 0), 3);
  EXPECT_EQ(blocks(128, 0), 6);
  EXPECT_EQ(blocks(32, 0), 25);
  EXPECT_EQ(blocks(128, size_t(24) << 10), 4);
  EXPECT_EQ(blocks(1024, 0), 1) << "never none";
}

//===-- Graphs ------------------------------------------------------------===//

TEST_F(VulkanGpu, AGraphRunsAsOftenAsItIsReplayed) {
  constexpr size_t count = 1000;
  std::byte *memory = allocate(count * 8), *copy = allocate(count * 8);
  std::shared_ptr<gpu::Module> module = load();
  check(driver->prepare(*module, "add", 0));
  uint64_t zero = 0, pattern = 0x1122334455667788;
  check(driver->beginCapture());
  check(driver->fill(memory, 8, &pattern, 8));
  add(*module, memory + 8, count - 1, 3, {8, 32});
  check(driver->copy(copy, memory, count * 8));
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

TEST_F(VulkanGpu, AModuleOutlivesItsDriver) {
  std::shared_ptr<gpu::Module> module = load();
  driver = nullptr;
  module = nullptr;
  SetUp();
  expectWorking();
}

//===-- Errors ------------------------------------------------------------===//

TEST_F(VulkanGpu, TooLargeAnAllocationIsAnErrorAndFreedMemoryComesBack) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, driver->properties().memory}) {
    Result<std::byte *> memory = driver->allocate(bytes);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.error().code, ErrorCode::OutOfMemory);
    EXPECT_NE(memory.error().text.find("release arrays"), std::string::npos)
        << memory.error().text;
    expectWorking();
  }
}

VkResult (*realAllocate)(VkDevice, const VkMemoryAllocateInfo *,
                         const VkAllocationCallbacks *, VkDeviceMemory *);
size_t allocated, allocations;

/// A GPU with 300 MiB.
VkResult allocateLittle(VkDevice device, const VkMemoryAllocateInfo *info,
                        const VkAllocationCallbacks *callbacks,
                        VkDeviceMemory *memory) {
  if (allocated + info->allocationSize > size_t(300) << 20)
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  allocated += info->allocationSize;
  ++allocations;
  return realAllocate(device, info, callbacks, memory);
}
void (*realFree)(VkDevice, VkDeviceMemory, const VkAllocationCallbacks *);
void freeAll(VkDevice device, VkDeviceMemory memory,
             const VkAllocationCallbacks *callbacks) {
  if (--allocations == 0)
    allocated = 0;
  else
    allocated -= std::min(allocated, size_t(100) << 20);
  realFree(device, memory, callbacks);
}

TEST_F(VulkanGpu, BlocksThatAreFreeMakeRoomForLargerOnes) {
  driver = nullptr;
  allocated = allocations = 0;
  open({.validate = true, .change = [](Api &api) {
          realAllocate = std::exchange(api.vkAllocateMemory, allocateLittle);
          realFree = std::exchange(api.vkFreeMemory, freeAll);
        }});
  constexpr size_t mebi = size_t(1) << 20;
  std::byte *first = allocate(100 * mebi), *second = allocate(100 * mebi);
  EXPECT_FALSE(driver->allocate(150 * mebi).ok());
  driver->release(first);
  driver->release(second);
  driver->release(allocate(150 * mebi));
  expectWorking();
}

VkResult (*realCreate)(VkDevice, const VkBufferCreateInfo *,
                       const VkAllocationCallbacks *, VkBuffer *);
VkResult createPlain(VkDevice device, const VkBufferCreateInfo *info,
                     const VkAllocationCallbacks *callbacks, VkBuffer *buffer) {
  VkBufferCreateInfo plain = *info;
  plain.flags = 0;
  return realCreate(device, &plain, callbacks, buffer);
}

struct Bound {
  VkDevice device;
  Api api;
  std::vector<VkSparseMemoryBind> pieces;
} bound;

/// On a device that binds nothing sparsely: one more allocation.
VkResult bindAll(VkQueue queue, uint32_t, const VkBindSparseInfo *info,
                 VkFence fence) {
  const VkSparseBufferMemoryBindInfo &all = *info->pBufferBinds;
  bound.pieces.assign(all.pBinds, all.pBinds + all.bindCount);
  VkMemoryRequirements needs;
  bound.api.vkGetBufferMemoryRequirements(bound.device, all.buffer, &needs);
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo wanted{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
  wanted.allocationSize = needs.size;
  VkDeviceMemory memory = VK_NULL_HANDLE; // never freed
  if (auto status =
          bound.api.vkAllocateMemory(bound.device, &wanted, nullptr, &memory))
    return status;
  if (auto status =
          bound.api.vkBindBufferMemory(bound.device, all.buffer, memory, 0))
    return status;
  return bound.api.vkQueueSubmit(queue, 0, nullptr, fence);
}

TEST_F(VulkanGpu, AnArrayMayBeLargerThanAnAllocation) {
  static constexpr size_t mebi = size_t(1) << 20;
  if (!driver->properties().name.starts_with("llvmpipe"))
    GTEST_SKIP() << "memory of this device is not one type";
  driver = nullptr;
  open({.change =
            [](Api &api) {
              bound.api = api;
              realCreate = std::exchange(api.vkCreateBuffer, createPlain);
              api.vkQueueBindSparse = bindAll;
              api.vkGetBufferMemoryRequirements =
                  [](VkDevice device, VkBuffer buffer,
                     VkMemoryRequirements *needs) {
                    bound.device = device;
                    bound.api.vkGetBufferMemoryRequirements(device, buffer,
                                                            needs);
                  };
            },
        .changeAdapter =
            [](Adapter &adapter) {
              adapter.mostBytes = 5 * mebi;
              adapter.mostSparseBytes = 64 * mebi;
            }});
  constexpr size_t bytes = 13 * mebi, count = bytes / 8;
  std::byte *memory = allocate(bytes);
  size_t end = 0;
  for (const VkSparseMemoryBind &piece : bound.pieces) {
    EXPECT_EQ(piece.resourceOffset, end);
    EXPECT_LE(piece.size, 5 * mebi);
    end += piece.size;
  }
  EXPECT_GE(end, bytes);
  uint64_t five = 5;
  check(driver->fill(memory, bytes, &five, 8));
  add(*load(), memory, count, 2, {64, 32});
  EXPECT_EQ(read<uint64_t>(memory, count), repeated(uint64_t(7), count));
  driver->release(memory);
  Result<std::byte *> tooLarge = driver->allocate(65 * mebi);
  ASSERT_FALSE(tooLarge.ok());
  EXPECT_NE(tooLarge.error().text.find("at most 64 MiB at a time"),
            std::string::npos)
      << tooLarge.error().text;
}

VkResult lose(VkQueue, uint32_t, const VkSubmitInfo *, VkFence) {
  return VK_ERROR_DEVICE_LOST;
}

TEST_F(VulkanGpu, ALostDeviceIsAnErrorAndNoCrash) {
  driver = nullptr;
  open({.change = [](Api &api) { api.vkQueueSubmit = lose; }});
  std::byte *memory = allocate(8);
  uint64_t zero = 0;
  (void)driver->upload(memory, &zero, 8);
  Result<> done = driver->synchronize();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::KernelFailed);
  EXPECT_NE(done.error().text.find("VK_ERROR_DEVICE_LOST"), std::string::npos);
  EXPECT_NE(done.error().text.find("opened again"), std::string::npos);
  for (const Result<> &again :
       {driver->fill(memory, 8, &zero, 8), driver->download(&zero, memory, 8),
        driver->copy(memory, memory, 8), driver->synchronize()})
    EXPECT_EQ(again.error().code, ErrorCode::KernelFailed);
  EXPECT_EQ(driver->allocate(8).error().code, ErrorCode::KernelFailed);
  EXPECT_EQ(driver->load({.image = image()}).error().code,
            ErrorCode::KernelFailed);
  driver = nullptr;
  open({});
  expectWorking();
}

/// Of a child that uses the driver of its parent: 0 if all fails as it should.
int statusOfChild(std::shared_ptr<gpu::Driver> &driver, std::byte *memory) {
  pid_t child = fork();
  if (child == 0) {
    alarm(30); // better killed than waited for
    uint64_t zero = 0;
    bool fine = openVulkan("").error().code == ErrorCode::NoDevice;
    for (const Result<> &refused :
         {driver->fill(memory, 8, &zero, 8), driver->synchronize(),
          driver->download(&zero, memory, 8)})
      fine &= !refused && refused.error().code == ErrorCode::NoDevice;
    driver = nullptr;
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(VulkanGpu, AChildOfTheProcessIsToldThatItHasNone) {
  std::byte *memory = allocate(8);
  uint64_t zero = 0;
  check(driver->upload(memory, &zero, 8));
  EXPECT_EQ(statusOfChild(driver, memory), 0);
  expectWorking();
}

std::atomic<bool> maySubmit = true, isSubmitting = false;
PFN_vkQueueSubmit realSubmit = nullptr;

VkResult submitLater(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                     VkFence fence) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  isSubmitting = !maySubmit;
  while (!maySubmit && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  return realSubmit(queue, count, infos, fence);
}

/// By a thread of the parent, which has locked what the child uses.
TEST_F(VulkanGpu, AChildIsToldSoWhileWorkIsBeingSubmitted) {
  driver = nullptr;
  open({.change = [](Api &api) {
    realSubmit = std::exchange(api.vkQueueSubmit, submitLater);
  }});
  std::byte *memory = allocate(8);
  uint64_t zero = 0;
  std::shared_ptr<gpu::Module> module = load();
  spin(*module, memory);
  maySubmit = false;
  check(driver->fill(memory, 8, &zero, 8)); // behind a busy device
  while (!isSubmitting)
    std::this_thread::yield();
  EXPECT_EQ(statusOfChild(driver, memory), 0);
  maySubmit = true;
  expectWorking();
  driver->release(memory);
}

TEST_F(VulkanGpu, WhatIsNoCodeIsAnError) {
  for (const std::string &text : {std::string(), std::string("nonsense"),
                                  image().substr(0, 401), "\n" + image()}) {
    Result<std::shared_ptr<gpu::Module>> module = driver->load({.image = text});
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(module.error().code, ErrorCode::Internal);
  }
  expectWorking();
}

TEST_F(VulkanGpu, AKernelThatIsNotThereIsAnError) {
  Result<> launched = driver->launch(*load(), "other", {1, 32}, {});
  ASSERT_FALSE(launched.ok());
  EXPECT_NE(launched.error().text.find("`other`"), std::string::npos);
  expectWorking();
}

TEST_F(VulkanGpu, AGridThatIsTooLargeIsAnError) {
  std::shared_ptr<gpu::Module> module = load();
  uint64_t words[3] = {};
  auto threads = driver->properties().blockThreads;
  for (gpu::Grid grid :
       {gpu::Grid{1, 2 * threads}, gpu::Grid{int64_t(1) << 40, 32}}) {
    Result<> launched = driver->launch(*module, "add", grid, words);
    ASSERT_FALSE(launched.ok());
    EXPECT_EQ(launched.error().code, ErrorCode::Internal);
    EXPECT_NE(launched.error().text.find("`add`"), std::string::npos);
    expectWorking();
  }
}

TEST_F(VulkanGpu, MemoryOfSomebodyElseIsRefused) {
  uint64_t here = 0;
  auto *address = reinterpret_cast<std::byte *>(&here);
  for (const Result<> &refused :
       {driver->fill(address, 8, &here, 8), driver->upload(address, &here, 8),
        driver->download(&here, address, 8)})
    EXPECT_EQ(refused.error().code, ErrorCode::Internal);
}

TEST_F(VulkanGpu, ThereAreNoStreamsOfTheUser) {
  int stream = 0;
  EXPECT_EQ(driver->useStream(&stream).error().code, ErrorCode::BadArgument);
  check(driver->useStream(std::nullopt));
}

//===-- Validation and the store ------------------------------------------===//

void (*realCopy)(VkCommandBuffer, VkBuffer, VkBuffer, uint32_t,
                 const VkBufferCopy *);
void copyTooMuch(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                 uint32_t count, const VkBufferCopy *region) {
  VkBufferCopy wrong = *region;
  wrong.srcOffset = VkDeviceSize(1) << 40;
  realCopy(commands, from, to, count, &wrong);
}

void (*realBarrier)(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                    VkDependencyFlags, uint32_t, const VkMemoryBarrier *,
                    uint32_t, const VkBufferMemoryBarrier *, uint32_t,
                    const VkImageMemoryBarrier *);

/// What the layers say of two fills in a row.
std::string defectsOf(void (*change)(Api &)) {
  auto opened = openVulkan("", {.validate = true, .change = change});
  if (!opened)
    return "";
  gpu::Driver &driver = **opened;
  std::byte *memory = *driver.allocate(64);
  uint32_t zero = 0;
  (void)driver.beginCapture();
  (void)driver.fill(memory, 64, &zero, 4);
  (void)driver.copy(memory + 8, memory, 8);
  (void)driver.endCapture();
  Result<> done = driver.synchronize();
  (void)driver.synchronize();
  return done ? "" : done.error().text;
}

TEST_F(VulkanGpu, TheValidationLayersAreLive) {
  auto layers = Instance::open(true);
  ASSERT_TRUE(layers.ok());
  std::string core = defectsOf([](Api &api) {
    realCopy = std::exchange(api.vkCmdCopyBuffer, copyTooMuch);
  });
  if (core.empty())
    GTEST_SKIP() << "there are no validation layers";
  EXPECT_NE(core.find("validation: "), std::string::npos);
  EXPECT_NE(core.find("VUID-vkCmdCopyBuffer"), std::string::npos) << core;
  std::string order = defectsOf([](Api &api) {
    realBarrier = std::exchange(api.vkCmdPipelineBarrier,
                                [](VkCommandBuffer, VkPipelineStageFlags,
                                   VkPipelineStageFlags, VkDependencyFlags,
                                   uint32_t, const VkMemoryBarrier *, uint32_t,
                                   const VkBufferMemoryBarrier *, uint32_t,
                                   const VkImageMemoryBarrier *) {});
  });
  EXPECT_NE(order.find("SYNC-HAZARD"), std::string::npos) << order;
}

TEST_F(VulkanGpu, WhatIsAssembledIsKept) {
  std::map<std::string, std::string, std::less<>> kept;
  CodeStore store{
      .find = [&](std::string_view key) -> std::optional<std::string> {
        auto found = kept.find(key);
        if (found == kept.end())
          return std::nullopt;
        return found->second;
      },
      .put = [&](std::string_view key,
                 std::string_view code) { kept[std::string(key)] = code; }};
  for (int k = 0; k < 2; ++k) {
    driver = nullptr;
    open({.validate = true, .store = store});
    expectWorking();
  }
}

} // namespace
