#pragma once
/// Memory as it comes from a driver.

#include "runtime/vulkan/Session.h"

namespace costate::runtime::vulkan {

/// Of the device: for device code. Host: that the host reads and writes as
/// well. Written: that the host writes and the device reads.
enum class PoolKind { Device, Host, Written };

/// A buffer with one range of addresses, and all the memory behind it: several
/// allocations where one cannot be as large.
struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::vector<VkDeviceMemory> memory;
  uint64_t address = 0;
  size_t bytes = 0;
  std::byte *host = nullptr; ///< of what the host can see

  Status open(Session &session, PoolKind kind, size_t size);
  void close(const Session &session) const;
};

/// The largest of a kind.
size_t largestBlock(const Session &session, PoolKind kind);

/// Where its memory comes from, if `allowed` allows; -1: there is none.
int memoryTypeFor(const Session &session, PoolKind kind,
                  uint32_t allowed = ~0u);

} // namespace costate::runtime::vulkan
