#include "runtime/vulkan/VulkanGpu.h"

#include "runtime/vulkan/Adapter.h"

#include <algorithm>
#include <cstring>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::vulkan;

namespace {

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

TEST_F(VulkanGpu, MemoryOfSomebodyElseIsRefused) {
  uint64_t here = 0;
  auto *address = reinterpret_cast<std::byte *>(&here);
  for (const Result<> &refused :
       {driver->fill(address, 8, &here, 8), driver->upload(address, &here, 8),
        driver->download(&here, address, 8)})
    EXPECT_EQ(refused.error().code, ErrorCode::Internal);
}

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

} // namespace
