#include "Labels.h"
#include "runtime/vulkan/VulkanGpu.h"

#include "base/VulkanChip.h"
#include "runtime/vulkan/Adapter.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <map>

COSTATE_LABEL("VulkanGpuDeathTest.*", starts);

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::vulkan;

namespace {

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
  EXPECT_TRUE(gpu.sortsApart); // there is no other code that sorts
}

TEST_F(VulkanGpu, WhatItDoesNotTellIsFoundOut) {
  auto features = parseVulkanChip(driver->properties().chip);
  ASSERT_TRUE(features) << driver->properties().chip;
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(8);
  spin(*module, memory, 80000);
  EXPECT_EQ(read<uint64_t>(memory, 1)[0] < 80000, features->endsLongLoops);
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

TEST_F(VulkanGpu, WhatIsLeftOutHasToBeAFeature) {
  setenv("COSTATE_VULKAN_WITHOUT", "f65", 1);
  auto opened = openVulkan("");
  unsetenv("COSTATE_VULKAN_WITHOUT");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::NoDevice);
  EXPECT_NE(opened.error().text.find("COSTATE_VULKAN_WITHOUT=`f65`"),
            std::string::npos)
      << opened.error().text;
}

/// NVIDIA's driver gives a part of it.
TEST_F(VulkanGpu, ItIsKnownWhatAChipOfNvidiaHasOfBlockMemory) {
  const gpu::Properties &gpu = driver->properties();
  if (gpu.name.starts_with("NVIDIA"))
    EXPECT_GT(gpu.sharedOfChip, gpu.sharedPerMultiprocessor);
  else
    EXPECT_EQ(gpu.sharedOfChip, 0u);
}

TEST_F(VulkanGpu, AModuleOutlivesItsDriver) {
  std::shared_ptr<gpu::Module> module = load();
  driver = nullptr;
  module = nullptr;
  SetUp();
  expectWorking();
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
