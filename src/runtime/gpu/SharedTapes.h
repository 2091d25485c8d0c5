#pragma once
/// How the memory that the threads of a block share is dealt out to tapes.

#include "base/DeviceTape.h"
#include "runtime/gpu/Driver.h"

#include <cstdint>
#include <optional>

namespace costate::runtime::gpu {

/// Of one multiprocessor whose tapes are in shared memory.
struct TapeShares {
  size_t blocks, warpsOfBlock;
  size_t rows; ///< of a warp
};

/// What a range wants of a warp's tape.
struct WantedRows {
  uint64_t rows;
  /// Without them the range cannot run; else it may run iterations again, or
  /// have a heap.
  bool isLeast = false;
  uint64_t most = UINT64_MAX; ///< that a tile takes
};

/// Where the tapes of a launch lie.
struct TapePlan {
  Grid grid;
  size_t sharedRows = 0;                  ///< of a warp; 0: on the heap
  uint64_t leastWarps = 0, mostWarps = 0; ///< that share the heap
};

/// What is known of the tapes of a range.
struct RangeTapes {
  uint64_t tiles; ///< of a work item for each lane of a warp
  TapeNeed known;
  bool isExact = false; ///< the host knows, not only from earlier launches
  /// Rows that most tiles do with; nullopt: not sorted.
  std::optional<uint64_t> usual = std::nullopt;
  bool expensive = false;           ///< to run again
  bool moderatelyExpensive = false; ///< not where a warp has many rows
};

struct TapePlacement {
  std::optional<TapePlan> shared; ///< nullopt: the range needs a heap
  bool wantsHeap = false;         ///< it takes less time with one
};

class SharedTapes {
public:
  /// `otherBytes`: of a block, for other things than tapes.
  explicit SharedTapes(const Properties &gpu, size_t otherBytes = 0)
      : multiprocessors(static_cast<uint64_t>(gpu.multiprocessors)),
        shape(gpu.shape), mostThreads(gpu.blockThreads), otherBytes(otherBytes),
        bytesOfBlock(gpu.sharedPerBlock - otherBytes),
        bytesOfMultiprocessor(gpu.sharedPerMultiprocessor),
        bytesOfChip(gpu.sharedOfChip) {}
  /// If the interface gave all that the chip has.
  SharedTapes ofChip() const;

  /// Of the largest block.
  int blockThreads() const;
  size_t warpsOfBlock() const {
    return static_cast<size_t>(blockThreads() / shape.lanes);
  }
  /// Of so many threads.
  size_t warpsOf(size_t threads) const {
    return threads / static_cast<size_t>(shape.lanes);
  }
  /// Whether the warps of the largest block have few rows each.
  bool isLittle() const;
  /// Of `warps` warps, in the largest blocks that get their part of it.
  TapeShares share(size_t warps) const;
  /// For so many tiles; nullopt if no warp can have the rows.
  std::optional<TapePlan> plan(uint64_t tiles, WantedRows wanted) const;
  /// Where the tapes of a range had best be.
  TapePlacement place(const RangeTapes &range) const;

private:
  uint64_t multiprocessors;
  GpuShape shape;
  int mostThreads;
  size_t otherBytes, bytesOfBlock, bytesOfMultiprocessor, bytesOfChip;
};

} // namespace costate::runtime::gpu
