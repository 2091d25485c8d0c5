#pragma once
/// Memory of one kind, in large blocks that are given out in pieces.

#include "runtime/vulkan/Block.h"
#include "runtime/vulkan/Ranges.h"

#include <functional>

namespace costate::runtime::vulkan {

/// What Vulkan copies from and to.
struct Place {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
};

struct Piece {
  uint64_t address = 0; ///< of the device
  std::byte *host = nullptr;
};

/// Safe to use from several threads. A piece that is given back may be taken
/// again at once.
class Pool {
public:
  Pool(std::shared_ptr<Session> session, PoolKind kind, size_t blockBytes);
  ~Pool();
  Pool(const Pool &) = delete;

  Status allocate(size_t bytes, Piece &piece);
  void release(uint64_t address);
  /// Where `address` is; no buffer: not here.
  Place find(uint64_t address) const;
  /// What device code calls an address of the host; 0: not here.
  uint64_t addressOf(const std::byte *host) const;
  /// Gives back blocks of which nothing is taken, once `wait()` has waited for
  /// what is queued.
  void trim(const std::function<Status()> &wait);

  size_t freeBytes() const;

private:
  Status addBlock(size_t bytes);
  const Block *blockOf(uint64_t address) const;

  std::shared_ptr<Session> session;
  const PoolKind kind;
  const size_t blockBytes;
  mutable std::mutex mutex;
  Ranges ranges;
  std::map<uint64_t, Block> blocks; ///< by address
  std::map<const std::byte *, uint64_t> hosts;
  uint32_t heap = 0; ///< usually
};

} // namespace costate::runtime::vulkan
