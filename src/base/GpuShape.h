#pragma once
/// How the threads of a kind of GPU run together. Passes, the library of device
/// functions and the runtime all ask here.

#include <cstddef>

namespace costate {

struct GpuShape {
  int lanes = 32; ///< of a warp: a power of two from 32 on
  /// Blocks may have several warps, whose lanes meet without the others; else a
  /// block is one warp, and its barrier that of the block.
  bool hasWarps = true;
  /// A barrier of a block waits also for threads that have ended.
  bool waitsForEnded = false;
  /// Blocks add up in memory of their own what lanes add to few elements
  /// (base/CommonSums.h).
  bool addsInBlocks = false;
  /// A kernel for each place of tapes (base/DeviceTape.h), drains included.
  bool knowsPlaces = false;

  /// Of a row of a tape: a word of 4 bytes for each lane.
  constexpr size_t rowBytes() const { return 4 * static_cast<size_t>(lanes); }
};

/// Of all of NVIDIA's.
inline constexpr GpuShape nvidiaShape{.addsInBlocks = true};

} // namespace costate
