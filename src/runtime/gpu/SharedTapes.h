#pragma once
/// How the memory that the threads of a block share is dealt out to tapes.

#include "runtime/gpu/Driver.h"

#include <cstdint>
#include <optional>

namespace costate::runtime::gpu {

/// A row of a tape: a word of 4 bytes for each lane.
inline constexpr size_t rowBytes = 128;

/// Of one multiprocessor whose tapes are in shared memory.
struct TapeShares {
  size_t blocks, warpsOfBlock;
  size_t rows; ///< of a warp
};

/// What a range wants of a warp's tape.
struct WantedRows {
  uint64_t rows;
  /// Without them the range cannot run; else it may run turns again, or have a
  /// heap.
  bool isLeast = false;
  uint64_t most = UINT64_MAX; ///< that a tile takes
};

/// Where the tapes of a launch lie.
struct TapePlan {
  Grid grid;
  size_t sharedRows = 0;                  ///< of a warp; 0: on the heap
  uint64_t leastWarps = 0, mostWarps = 0; ///< that share the heap
};

class SharedTapes {
public:
  explicit SharedTapes(const Properties &gpu) : gpu(gpu) {}

  /// Of the largest block.
  int blockThreads() const;
  size_t warpsOfBlock() const {
    return static_cast<size_t>(blockThreads()) / 32;
  }
  /// Whether the warps of the largest block have few rows each.
  bool isLittle() const;
  /// Of `warps` warps, in the largest blocks that get their part of it.
  TapeShares share(size_t warps) const;
  /// For `tiles` of 32 iterations each; nullopt if no warp can have the rows.
  std::optional<TapePlan> plan(uint64_t tiles, WantedRows wanted) const;

private:
  const Properties &gpu;
};

} // namespace costate::runtime::gpu
