#pragma once
/// Iterations in the order of their depth, so that lanes of a warp have about
/// as many turns. Code: DeviceSort.c.

#include "base/DeviceSort.h"
#include "runtime/gpu/Memory.h"

namespace costate::runtime::gpu {

/// When iterations are sorted: never, if it pays, or, for tests, always.
enum class Sorting { Never, IfItPays, Always };
/// COSTATE_SORT: `never` or `always`; else as `usual`.
Result<Sorting> chosenSorting(Sorting usual);

/// What is known of the depths of one function.
struct SortHistory {
  SortReport *report;   ///< of the last launch that has looked; all 0: none has
  SortReport *onDevice; ///< the same, for device code
  uint64_t launches = 0;
  int64_t residentBlocks = 0; ///< of what sorts; 0: not known yet
};

/// Whether sorting takes less time than it saves.
bool sortingPays(const SortReport &seen, const SortCosts &costs,
                 uint64_t iterations);

/// Where an order will be, and how many iterations it has: those without effect
/// are left out. Null: as they are, all.
struct Order {
  const unsigned *places = nullptr;
  const unsigned long long *size = nullptr;
};

struct SortedLaunch {
  Module &module;
  const DeviceFunction &function;
  SortHistory &history;
  const uint64_t *words; ///< of the function
  uint64_t iterations;
};

/// Sorts for the launches of one stream.
class Sorter {
public:
  Sorter(Memory &memory, Sorting when)
      : when(when), memory(memory), control(memory), places(memory) {}

  /// Queues a sort if the last look at the depths says that it pays, a look
  /// now and then if not. `budget`: bytes that it may take.
  Result<Order> sort(const SortedLaunch &launch, size_t budget);
  size_t bytes() const { return places.bytes(); }
  void clear() {
    places.clear();
    refused = 0;
  }

private:
  struct Plan {
    uint64_t chunk = 0; ///< iterations
    uint64_t chunks = 0;
    bool keeps = false; ///< depths of a chunk
    size_t sharedBytes = 0;
  };

  bool isWanted(const SortedLaunch &launch) const;
  bool reserve(size_t bytes, size_t budget);
  Result<> prepare();
  Result<Plan> plan(const SortedLaunch &launch);
  Result<> queue(const SortedLaunch &launch, const Plan &plan,
                 const SortCall &call);

  const Sorting when;
  Memory &memory;
  Scratch control, places;
  size_t refused = 0;
};

} // namespace costate::runtime::gpu
