#pragma once
/// The memory of one worker's tape.

#include "runtime/MemoryBudget.h"

namespace costate::runtime::cpu {

/// One contiguous piece that grows, moving when it must, and is kept between
/// launches. Used by one thread at a time.
class TapeArena {
public:
  explicit TapeArena(MemoryBudget &budget) : budget(budget) {}
  ~TapeArena() { release(); }
  TapeArena(const TapeArena &) = delete;
  TapeArena &operator=(const TapeArena &) = delete;

  /// Makes the capacity at least `bytes`, keeping the contents. False, with
  /// nothing changed, if the budget or the system refuses.
  bool reserve(size_t bytes);
  /// Gives all memory back.
  void release();

  std::byte *base() const { return pages; }
  size_t capacity() const { return bytes; }

private:
  MemoryBudget &budget;
  std::byte *pages = nullptr;
  size_t bytes = 0;
};

} // namespace costate::runtime::cpu
