#include "runtime/gpu/Sort.h"

#include "base/ChosenWord.h"

#include <algorithm>

namespace costate::runtime::gpu {

/// Some drivers make code anew for each size of block memory.
static constexpr size_t sharedUnit = 4096;

/// Launches of a function from one look at its depths to the next.
static constexpr uint64_t lookEvery = 32;

/// A block knows the kept ones by 16 bits.
static constexpr uint64_t largestKept = 1 << 16;

/// Issue slots of a lane, of which an H200 has 33e12 a second: of what blocks
/// wait for each other, and per work item, to look at it and to place it.
static constexpr double waitSlots = 220e6;
static constexpr double lookSlots = 250, placeSlots = 100;

Result<Sorting> chosenSorting(Sorting usual) {
  return chosenWord("COSTATE_SORT", usual,
                    {{"never", Sorting::Never}, {"always", Sorting::Always}});
}

bool sortingPays(const SortReport &seen, const SortCosts &costs,
                 uint64_t workItems) {
  if (seen.workItems == 0 || seen.rounds <= seen.iterations)
    return false;
  auto share =
      static_cast<double>(workItems) / static_cast<double>(seen.workItems);
  double idle = share * static_cast<double>(seen.rounds - seen.iterations);
  double iterations = share * static_cast<double>(seen.iterations);
  auto passing = share * static_cast<double>(seen.passing);
  double sort = waitSlots + lookSlots * static_cast<double>(workItems) +
                placeSlots * passing;
  double uncoalesced =
      passing * static_cast<double>(costs.uncoalescedWorkItem) +
      iterations * static_cast<double>(costs.uncoalescedIteration);
  return idle * static_cast<double>(costs.iteration) > sort + uncoalesced;
}

static uint64_t ceilOf(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

Ordering Sorter::decide(const SortedLaunch &launch) {
  const Properties &gpu = memory.driver().properties();
  bool fits = launch.workItems > lanes() &&
              launch.workItems < uint64_t(1) << 32 &&
              gpu.blockThreads >= TAPE_BLOCK_THREADS &&
              gpu.sharedPerBlock >= leastSortMemory;
  if (when == Sorting::Never || !launch.function.sorts || !fits)
    return Ordering::Keep;
  bool isDue = launch.history.launches++ % lookEvery == 0;
  bool pays = when == Sorting::Always ||
              sortingPays(*launch.history.report, launch.function.sortCosts,
                          launch.workItems);
  if (pays && reserve(launch.workItems))
    return Ordering::Sort;
  return isDue && !memory.isCapturing() ? Ordering::Look : Ordering::Keep;
}

Result<> Sorter::prepare() {
  static constexpr uint64_t zero = 0;
  static_assert(sizeof(SortControl) % 8 == 0);
  if (control.address())
    return {};
  auto done = control.reserve(sizeof(SortControl));
  return done ? memory.driver().fill(control.address(), sizeof(SortControl),
                                     &zero, 8)
              : done;
}

uint64_t Sorter::mostChunks(uint64_t workItems) const {
  int64_t most =
      chunksOfProcessor * memory.driver().properties().multiprocessors;
  return std::min(ceilOf(workItems, lanes()), static_cast<uint64_t>(most));
}

/// Before it is known how many blocks there will be.
bool Sorter::reserve(uint64_t workItems) {
  uint64_t words = mostChunks(workItems) * (SortBuckets + 1) + workItems;
  size_t bytes = words * sizeof(unsigned);
  if (bytes <= places.bytes())
    return true;
  if (refused && bytes >= refused)
    return false;
  if (places.reserve(bytes))
    return true;
  refused = bytes;
  return false;
}

/// A chunk for each block, if there are enough work items.
void Sorter::divide(SortCall &call, Grid grid) const {
  call.blocks = static_cast<uint64_t>(grid.blocks);
  call.blockThreads = static_cast<uint64_t>(grid.blockThreads);
  uint64_t most =
      std::min<uint64_t>({mostChunks(call.workItems), call.blocks,
                          ceilOf(call.workItems, call.blockThreads)});
  call.chunk = lanes() * ceilOf(call.workItems, lanes() * most);
  call.chunks = ceilOf(call.workItems, call.chunk);
}

/// Whether there is block memory for the work items of a chunk.
void Sorter::keep(SortPlan &plan, size_t otherBytes) const {
  const Properties &gpu = memory.driver().properties();
  uint64_t neighbours =
      ceilOf(plan.call.blocks, static_cast<uint64_t>(gpu.multiprocessors));
  size_t share =
      std::min(gpu.sharedPerMultiprocessor / neighbours, gpu.sharedPerBlock);
  size_t bytes = sizeof(SortMemory) + 2 * sizeof(unsigned) * plan.call.chunk;
  size_t reserved = reservedPerBlock + otherBytes;
  if (bytes + reserved > share || plan.call.chunk > largestKept)
    return;
  size_t rounded = ceilOf(bytes, sharedUnit) * sharedUnit;
  plan.call.keeps = 1;
  plan.sharedBytes = rounded + reserved <= share ? rounded : bytes;
}

Result<SortPlan> Sorter::plan(const SortedLaunch &launch, Grid grid,
                              Ordering decided) {
  if (decided == Ordering::Keep)
    return SortPlan();
  if (auto done = prepare(); !done)
    return done.error();
  SortPlan plan{.sharedBytes = sizeof(SortMemory)};
  SortCall &call = plan.call;
  call.control = reinterpret_cast<SortControl *>(control.address());
  call.report = launch.history.onDevice;
  call.workItems = launch.workItems;
  divide(call, grid);
  if (decided == Ordering::Look)
    return plan;
  call.bases = reinterpret_cast<unsigned *>(places.address());
  call.before = call.bases + call.chunks * SortBuckets;
  call.order = call.before + call.chunks;
  keep(plan, launch.function.blockBytes);
  return plan;
}

} // namespace costate::runtime::gpu
