#include "runtime/vulkan/VulkanGpu.h"

#include "runtime/vulkan/Adapter.h"

#include <utility>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::vulkan;

namespace {

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

} // namespace
