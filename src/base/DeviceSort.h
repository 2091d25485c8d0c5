#pragma once
/// What device code and the runtime share about sorting work items by depth: by
/// the iterations of their loops, so that lanes of a warp have about as many.
/// C, since device code is C as well.

#include "base/DeviceTape.h"

// NOLINTBEGIN
#ifdef __cplusplus
extern "C" {
#endif

/// Depths below 32 have buckets of their own; above, 32 for each power of two.
enum { SortBuckets = 384, SortGroups = SortBuckets / 32 };
enum { SortStats = 4 };

/// What the depths of a range are, for the host: of all work items together,
/// once as they are, and once as deep as the deepest of their tile before
/// sorting. Passing: work items that have any effect.
struct SortReport {
  unsigned long long iterations, rounds, deepest, passing, workItems;
};

/// One per stream; between launches all 0, but for `ordered`.
struct SortControl {
  unsigned totals[SortBuckets]; ///< work items in each
  unsigned long long iterations, rounds, passing, deepest;
  /// High half: chunks that have been taken, or asked for; low: counted.
  unsigned long long progress;
  unsigned long long left;   ///< blocks that need nothing of the above any more
  unsigned long long placed; ///< chunks
  unsigned long long passed; ///< blocks that know that all chunks are placed
  unsigned long long ordered; ///< work items in the order
};

/// What a function whose work items may be sorted is called with, after its
/// other words.
struct SortCall {
  struct SortControl *control;
  struct SortReport *report; ///< in the memory of the host
  unsigned *order;           ///< to be filled; null: only the report is
  unsigned *bases;           ///< for each chunk, where it starts in each bucket
  unsigned *before;          ///< for each chunk, the one its block took before
  unsigned long long workItems;
  unsigned long long blocks, blockThreads; ///< of the launch
  unsigned long long chunks;               ///< 0: nothing is to be done
  unsigned long long chunk; ///< work items of one, a multiple of the lanes
  unsigned long long keeps; ///< a block has memory for those of a chunk
};

/// Of a block; after it, if it keeps a chunk, `keys` and `sorted`, a word for
/// each work item.
struct SortMemory {
  unsigned bins[SortBuckets];   ///< of a chunk: how many; then places
  unsigned starts[SortBuckets]; ///< in the order
  unsigned moved[SortBuckets];  ///< the kept chunk: from `sorted` to the order
  unsigned groups[SortGroups];
  unsigned chunk, size, isLast; ///< size: of the kept chunk
  unsigned long long stats[SortStats][TAPE_BLOCK_THREADS / 32];
};

/// What a thread keeps.
struct SortWorker {
  const struct SortCall *call;
  struct SortMemory *memory;
  unsigned *keys, *sorted;
  unsigned runs; ///< there is anything to be done
  unsigned thread, threads, chunk;
  unsigned latest;  ///< chunk to be placed after the kept one; none: all ones
  unsigned kept;    ///< the chunk that is kept; none: all ones
  unsigned reports; ///< the block tells the host
  unsigned places;  ///< all chunks are counted
  unsigned counted; ///< chunks, by this block
  unsigned left;    ///< blocks that have left before, in the first thread
  unsigned long long iterations, rounds, passing,
      deepest; ///< of a chunk; then all
};

#ifdef __cplusplus
}
#endif
// NOLINTEND
