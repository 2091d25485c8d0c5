#pragma once
/// Work items in the order of their depth, so that lanes of a warp have about
/// as many iterations: a launch sorts them before it runs them, or one in front
/// of it does. Code: DeviceSort.c.

#include "base/DeviceSort.h"
#include "runtime/gpu/Memory.h"

namespace costate::runtime::gpu {

/// When work items are sorted: never, if it pays, or, for tests, always.
enum class Sorting { Never, IfItPays, Always };
/// COSTATE_SORT: `never` or `always`; else as `usual`.
Result<Sorting> chosenSorting(Sorting usual);

/// What is known of the depths of one function.
struct SortHistory {
  SortReport *report;   ///< of the last launch that has looked; all 0: none has
  SortReport *onDevice; ///< the same, for device code
  uint64_t launches = 0;
};

/// Whether sorting takes less time than it saves.
bool sortingPays(const SortReport &seen, const SortCosts &costs,
                 uint64_t workItems);

/// What a launch does about the order of its work items.
enum class Ordering { Keep, Look, Sort };

/// A launch of a function whose work items may be sorted.
struct SortedLaunch {
  const DeviceFunction &function;
  SortHistory &history;
  uint64_t workItems;
};

/// Chunks of work items for each multiprocessor, at most: each has as many
/// counts as there are buckets.
inline constexpr int64_t chunksOfProcessor = 4;

/// Of a block that sorts without keeping a chunk.
inline constexpr size_t leastSortMemory = 8192;
static_assert(leastSortMemory >= sizeof(SortMemory));

/// With what it is called for that, and the block memory that it needs.
struct SortPlan {
  SortCall call{};
  size_t sharedBytes = 0;
  bool sorts() const { return call.order != nullptr; }
};

/// Sorts for the launches of one stream.
class Sorter {
public:
  Sorter(Memory &memory, Sorting when)
      : when(when), memory(memory), control(memory), places(memory) {}

  /// Sort, if the last look at the depths says that it pays, and there is
  /// memory for it; a look now and then, if not. Asked once for each launch.
  Ordering decide(const SortedLaunch &launch);
  /// What has been decided, by blocks of `grid`.
  Result<SortPlan> plan(const SortedLaunch &launch, Grid grid,
                        Ordering decided);
  size_t bytes() const { return places.bytes(); }
  void clear() {
    places.clear();
    refused = 0;
  }

private:
  uint64_t lanes() const { ///< of a warp
    return static_cast<uint64_t>(memory.driver().properties().shape.lanes);
  }
  uint64_t mostChunks(uint64_t workItems) const;
  bool reserve(uint64_t workItems);
  Result<> prepare();
  void divide(SortCall &call, Grid grid) const;
  void keep(SortPlan &plan, size_t otherBytes) const;

  const Sorting when;
  Memory &memory;
  Scratch control, places;
  size_t refused = 0;
};

} // namespace costate::runtime::gpu
