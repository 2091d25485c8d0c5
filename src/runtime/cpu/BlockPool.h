#pragma once
/// Memory that is in use for a while, again and again.

#include "base/Fork.h"
#include "runtime/MemoryBudget.h"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

namespace costate::runtime::cpu {

/// What is put back is kept for who takes as much: its pages are there already.
/// A part of the limit at most is kept, and no more than the budget has left.
/// Safe to use from several threads.
class BlockPool final : public IdleMemory {
public:
  explicit BlockPool(MemoryBudget &budget);
  ~BlockPool();
  BlockPool(const BlockPool &) = delete;
  BlockPool &operator=(const BlockPool &) = delete;

  /// What a block of `bytes` takes of the budget; 0 if that overflows.
  static size_t rounded(size_t bytes);
  /// Bytes that others have not taken.
  size_t left() const { return budget.left(); }
  /// Of any contents, aligned to 64 bytes; null if the budget or the system
  /// refuses.
  std::byte *take(size_t bytes);
  /// `bytes`: as it was taken.
  void put(std::byte *block, size_t bytes);

  size_t idleBytes() const override { return idle.load(); }
  void shrink(size_t most) override;

private:
  struct Idle {
    std::byte *block;
    uint64_t age;
  };
  std::byte *takeIdle(size_t bytes);
  void keep(std::byte *block, size_t bytes);

  MemoryBudget &budget;
  std::atomic<size_t> idle = 0;
  Mutex mutex;                               ///< guards what follows
  std::map<size_t, std::deque<Idle>> blocks; ///< by size; the oldest first
  uint64_t age = 0;
};

} // namespace costate::runtime::cpu
