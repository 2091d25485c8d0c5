#pragma once
/// What device code and the runtime share about sorting iterations by depth: by
/// the turns of their loops, so that lanes of a warp have about as many. C,
/// since device code is C as well.

// NOLINTBEGIN
#ifdef __cplusplus
extern "C" {
#endif

/// Depths below 32 have buckets of their own; above, 32 for each power of two.
enum { SortBuckets = 384, SortGroups = SortBuckets / 32 };

/// What the depths of a range are, for the host: of all iterations together,
/// once as they are, and once as deep as the deepest of their tile before
/// sorting. Passing: iterations that have any effect.
struct SortReport {
  unsigned long long turns, rounds, deepest, passing, iterations;
};

/// One per stream; between launches all 0, but for `ordered`.
struct SortControl {
  unsigned totals[SortBuckets]; ///< iterations in each
  unsigned long long turns, rounds, deepest, passing, ticket;
  unsigned long long ordered; ///< iterations in the order
};

/// What a function that sorts is called with: first it counts, then it places.
struct SortCall {
  struct SortControl *control;
  struct SortReport *report; ///< in the memory of the host
  unsigned *order;           ///< to be filled; null: only the report is
  unsigned *bases;           ///< for each block, where it starts in each bucket
  unsigned long long iterations;
  unsigned long long blocks, rounds; ///< iterations of each thread
  unsigned long long places;
};

/// Of a block.
struct SortMemory {
  unsigned counts[SortBuckets], bins[SortBuckets], groups[SortGroups], last;
  unsigned long long turns, rounds, deepest, passing;
};

/// What a thread keeps.
struct SortWorker {
  const struct SortCall *call;
  struct SortMemory *memory;
  unsigned long long block, thread, threads;
  unsigned long long turns, rounds, deepest, passing;
};

#ifdef __cplusplus
}
#endif
// NOLINTEND
