#include "runtime/gpu/Tiles.h"

#include "runtime/FailureText.h"
#include "runtime/Text.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace costate::runtime::gpu {

/// The heap that drains have whatever the budget, where blocks have little
/// shared memory.
static constexpr size_t drainBytes = size_t(256) << 10,
                        leastSharedOfDrain = drainBytes / 2;
/// The heap doubles from one to the next.
static constexpr int mostDrains = 32;
/// Threads of a multiprocessor, fewer of which leave it idle.
static constexpr size_t leastThreads = 256;

/// Threads of a multiprocessor that share a heap, if an iteration takes several
/// rows: what hides the time of memory are rows under way. More only take
/// memory.
static constexpr size_t threadsOfWideIterations = 640;

Result<std::unique_ptr<HostMemory>>
HostMemory::make(std::shared_ptr<Driver> driver, size_t bytes) {
  Result<std::byte *> start = driver->allocateHost(bytes);
  if (!start)
    return start.error();
  std::memset(*start, 0, bytes);
  return std::unique_ptr<HostMemory>(new HostMemory(std::move(driver), *start));
}

HostMemory::~HostMemory() { driver->releaseHost(start); }

Result<std::unique_ptr<TapeNeeds>> TapeNeeds::make(Memory &memory,
                                                   size_t functions) {
  static constexpr uint64_t zero = 0;
  auto needs = std::make_unique<TapeNeeds>(memory);
  size_t bytes = functions * sizeof(TapeNeed);
  if (auto done = needs->device.reserve(bytes); !done)
    return done.error();
  if (auto done =
          memory.driver().fill(needs->device.address(), bytes, &zero, 8);
      !done)
    return done.error();
  auto host = HostMemory::make(memory.real, bytes);
  if (!host)
    return host.error();
  needs->host = std::move(*host);
  auto reports = HostMemory::make(memory.real, functions * sizeof(SortReport));
  if (!reports)
    return reports.error();
  needs->reports = std::move(*reports);
  needs->keptOf.resize(functions);
  for (size_t k = 0; k < functions; ++k)
    needs->histories.push_back({needs->reports->as<SortReport>() + k,
                                needs->reports->onDevice<SortReport>() + k});
  return needs;
}

//===-- Where tapes lie ---------------------------------------------------===//

/// That most tiles do with, if lanes have about as many iterations.
static uint64_t usualRows(const TapeNeed &known, const SortReport &seen) {
  if (seen.deepest == 0 || seen.passing == 0)
    return known.rows;
  double mean = static_cast<double>(seen.iterations) /
                static_cast<double>(seen.passing) /
                static_cast<double>(seen.deepest);
  return static_cast<uint64_t>(std::min(1.0, 1.5 * mean) *
                               static_cast<double>(known.rows));
}

/// Where little is on the chip, the largest part of a heap for sorted ranges
/// would be for few deep tiles; and what an interface keeps back of the chip is
/// no reason to take memory that nobody has granted.
bool Tiles::avoidsHeap(TapeBudget budget, const SharedTapes &tapes,
                       const RangeTapes &range) {
  if (budget.bytes == 0 || (range.usual && !range.isExact && tapes.isLittle()))
    return true;
  return !budget.isChosen && !tapes.ofChip().place(range).wantsHeap;
}

Result<TapePlan> Tiles::plan(const TiledLaunch &launch,
                             const RangeTapes &range) {
  SharedTapes tapes = sharedTapes(launch.function);
  TapePlacement place = tapes.place(range);
  if (place.shared &&
      (!place.wantsHeap || avoidsHeap(launch.budget, tapes, range)))
    return *place.shared;
  auto heap = planHeap(launch, range.tiles, range.known);
  return heap && place.shared && !holds(*heap, range.known) ? *place.shared
                                                            : heap;
}

/// How many blocks run at a time, asked once.
Result<int64_t> Tiles::residentBlocks(const TiledLaunch &launch, int64_t &kept,
                                      const std::string &symbol,
                                      int blockThreads, size_t sharedBytes) {
  if (kept == 0) {
    auto asked = memory.driver().residentBlocks(launch.module, symbol,
                                                blockThreads, sharedBytes);
    if (!asked)
      return asked.error();
    kept = *asked;
  }
  return kept;
}

Result<TapePlan> Tiles::planHeap(const TiledLaunch &launch, uint64_t tiles,
                                 const TapeNeed &known) {
  SharedTapes tapes = sharedTapes(launch.function);
  auto processors =
      static_cast<uint64_t>(memory.driver().properties().multiprocessors);
  auto resident =
      residentBlocks(launch, launch.needs.kept(launch.number).residentBlocks,
                     launch.function.symbol, tapes.blockThreads(), 0);
  if (!resident)
    return resident.error();
  auto blocks = std::min(tiles, static_cast<uint64_t>(*resident));
  uint64_t warps = std::min(blocks * tapes.warpsOfBlock(), tiles);
  if (launch.function.iterationRows > 1)
    warps =
        std::min(warps, tapes.warpsOf(threadsOfWideIterations) * processors);
  TapePlan plan{.grid = {static_cast<int64_t>(blocks), tapes.blockThreads()},
                .leastWarps = tapes.warpsOf(leastThreads) * processors,
                .mostWarps = warps};
  uint64_t wanted = plan.mostWarps * known.rows * rowBytes();
  if (auto done = growHeap(wanted, launch.budget.bytes); !done)
    return done.error();
  return plan;
}

/// Of a launch that only sorts: as many threads as find work.
Result<Grid> Tiles::sortGrid(const TiledLaunch &launch) {
  auto resident = residentBlocks(
      launch, launch.needs.kept(launch.number).sortingBlocks,
      launch.function.sortSymbol, TAPE_BLOCK_THREADS, leastSortMemory);
  if (!resident)
    return resident.error();
  int64_t most =
      chunksOfProcessor * memory.driver().properties().multiprocessors;
  int64_t least =
      (launch.workItems + TAPE_BLOCK_THREADS - 1) / TAPE_BLOCK_THREADS;
  return Grid{std::min({*resident, most, least}), TAPE_BLOCK_THREADS};
}

/// Where tapes lie depends on whether work items are sorted, and sorting on how
/// many blocks there are. A launch of its own has more threads for it, and is
/// had where no drain is needed.
Result<Tiles::Plans> Tiles::planAll(const TiledLaunch &launch, uint64_t tiles,
                                    const TapeNeed &known, bool isExact) {
  SortedLaunch sorted{launch.function, launch.needs.depths(launch.number),
                      static_cast<uint64_t>(launch.workItems)};
  Ordering decided = sorter.decide(sorted);
  RangeTapes range{.tiles = tiles,
                   .known = known,
                   .isExact = isExact,
                   .expensive = launch.function.expensive,
                   .moderatelyExpensive = launch.function.moderatelyExpensive};
  if (decided == Ordering::Sort)
    range.usual = usualRows(known, *sorted.history.report);
  auto tapes = plan(launch, range);
  if (!tapes)
    return tapes.error();
  Plans plans{.tapes = *tapes, .commits = isExact && holds(*tapes, known)};
  plans.sortsApart = decided != Ordering::Keep &&
                     (plans.commits || memory.driver().properties().sortsApart);
  plans.sortGrid = tapes->grid;
  if (plans.sortsApart) {
    auto grid = sortGrid(launch);
    if (!grid)
      return grid.error();
    plans.sortGrid = *grid;
  }
  auto order = sorter.plan(sorted, plans.sortGrid, decided);
  if (!order)
    return order.error();
  plans.order = *order;
  return plans;
}

//===-- The heap ----------------------------------------------------------===//

Tiles::HeapWords Tiles::heapWords() const {
  static_assert(offsetof(TapeControl, heap) == 0 &&
                offsetof(TapeControl, heapRows) == 8);
  return {reinterpret_cast<uint64_t>(heap.address()),
          heap.bytes() / rowBytes()};
}

Result<> Tiles::storeHeap() {
  HeapWords words = heapWords();
  return memory.driver().upload(control.address(), words.data(), sizeof words);
}

Result<> Tiles::growHeap(size_t bytes, size_t most) {
  bytes = std::min(bytes, most);
  if (bytes <= heap.bytes() || bytes <= refused)
    return {};
  size_t before = heap.bytes();
  size_t larger = std::min(std::max(bytes, 2 * before), most);
  for (size_t size : {larger, bytes, bytes / 2, bytes / 4, before})
    if (size && heap.reserve(size))
      break;
  refused = heap.bytes() < bytes ? bytes : 0;
  return storeHeap();
}

Result<> Tiles::limitHeap(size_t most) {
  bool hasDrain =
      memory.driver().properties().sharedPerBlock < leastSharedOfDrain;
  if (heap.bytes() <= std::max(most, hasDrain ? drainBytes : 0))
    return {};
  heap.clear();
  refused = 0;
  return storeHeap();
}

void Tiles::dropHeap() {
  sorter.clear();
  if (heap.bytes() == 0)
    return;
  heap.clear();
  refused = 0;
  (void)storeHeap();
}

/// Rows of each warp: on the heap as DeviceTape.c divides it.
uint64_t Tiles::rowsOf(const TapePlan &plan, const TapeNeed &known) const {
  if (plan.sharedRows)
    return plan.sharedRows;
  uint64_t rows = heap.bytes() / rowBytes();
  uint64_t warps = std::max(rows / std::max<uint64_t>(known.minRows, 1),
                            std::max<uint64_t>(plan.leastWarps, 1));
  return rows / std::min(warps, std::max<uint64_t>(plan.mostWarps, 1));
}

/// Whether every tile fits that does with `known.minRows` rows.
bool Tiles::holds(const TapePlan &plan, const TapeNeed &known) const {
  return rowsOf(plan, known) >= known.minRows;
}

//===-- Launches ----------------------------------------------------------===//

Result<> Tiles::prepare() {
  static constexpr uint64_t zero = 0;
  if (control.address())
    return reserveDrain();
  if (auto done = control.reserve(sizeof(TapeControl)); !done)
    return done;
  if (auto done = memory.driver().fill(control.address(), sizeof(TapeControl),
                                       &zero, 8);
      !done)
    return done;
  auto host = HostMemory::make(memory.real, sizeof(TapeFailure));
  if (!host)
    return host.error();
  raised = std::move(*host);
  return reserveDrain();
}

Result<> Tiles::reserveDrain() {
  if (memory.driver().properties().sharedPerBlock >= leastSharedOfDrain ||
      heap.bytes() > 0)
    return {};
  if (auto done = heap.reserve(drainBytes); !done)
    return done;
  // Filled in: launches shall not copy.
  auto halves = std::bit_cast<std::array<uint32_t, 4>>(heapWords());
  for (size_t k = 0; k < halves.size(); ++k)
    if (auto done =
            memory.driver().fill(control.address() + 4 * k, 4, &halves[k], 4);
        !done)
      return done;
  return {};
}

/// No more than there are tiles: they share the heap.
int64_t Tiles::drainBlocks(uint64_t tiles) const {
  return static_cast<int64_t>(std::min<uint64_t>(
      tiles,
      static_cast<uint64_t>(memory.driver().properties().multiprocessors)));
}

/// Where a sweep, and a drain, leave what does not fit.
Result<> Tiles::prepareLists(TapeCall &call) {
  size_t bytes = 2 * sizeof(uint64_t) * call.tiles;
  if (lists.bytes() < bytes)
    if (auto done = lists.reserve(std::max(bytes, 2 * lists.bytes())); !done)
      return done;
  call.list = reinterpret_cast<unsigned long long *>(lists.address());
  call.failed = call.list + call.tiles;
  static constexpr uint64_t zero = 0;
  return call.marksTiles
             ? memory.driver().fill(lists.address(), bytes / 2, &zero, 8)
             : Result<>();
}

/// Room for the sums of the sweep's blocks, and of those of each drain.
Result<> Tiles::prepareSums(const TiledLaunch &launch, uint64_t tiles,
                            int64_t blocks, int drains) {
  static constexpr uint64_t zero = 0;
  if (launch.function.sums == 0)
    return {};
  int64_t count = blocks + drains * drainBlocks(tiles);
  auto bytes = static_cast<size_t>(8 * count * launch.function.sums);
  if (auto done = launch.partials.reserve(bytes); !done)
    return done;
  launch.words[PartialsWord] =
      reinterpret_cast<uint64_t>(launch.partials.address());
  launch.words[PartialCountWord] = static_cast<uint64_t>(count);
  if (drains < mostDrains) // all of them run
    return {};
  return memory.driver().fill(launch.partials.address(), bytes, &zero, 8);
}

Result<> Tiles::start(const TiledLaunch &launch, const std::string &symbol,
                      Grid grid, size_t sharedBytes, uint64_t firstPartial,
                      TapeCall &call, const SortCall &sort) {
  call.blocks = static_cast<uint64_t>(grid.blocks);
  call.blockThreads = static_cast<uint64_t>(grid.blockThreads);
  launch.words[TicketWord] = call.commits ? launch.ticket : 0;
  launch.words[FirstPartialWord] = firstPartial;
  std::memcpy(launch.callWords(), &call, sizeof call);
  if (launch.function.sorts)
    std::memcpy(launch.sortWords(), &sort, sizeof sort);
  return memory.driver().launch(
      launch.module, symbol, grid,
      {launch.words, static_cast<size_t>(launch.function.words)}, sharedBytes);
}

Result<> Tiles::sortApart(const TiledLaunch &launch, const Plans &plans,
                          TapeCall call) {
  call.sortsOnly = 1;
  return start(launch, launch.function.sortSymbol, plans.sortGrid,
               std::max(plans.order.sharedBytes, leastSortMemory), 0, call,
               plans.order.call);
}

Result<> Tiles::sweep(const TiledLaunch &launch, const Plans &plans,
                      TapeCall &call) {
  const DeviceFunction &function = launch.function;
  const TapePlan &plan = plans.tapes;
  size_t shared = plan.sharedRows * rowBytes() *
                  static_cast<size_t>(plan.grid.blockThreads / lanes());
  shared = std::max(shared, sumMemory);
  const std::string &symbol =
      plan.sharedRows ? function.sharedSymbol : function.symbol;
  if (!plans.sortsApart)
    return start(launch, symbol, plan.grid,
                 std::max(shared, plans.order.sharedBytes), 0, call,
                 plans.order.call);
  if (auto done = sortApart(launch, plans, call); !done)
    return done;
  return start(launch, symbol, plan.grid, shared, 0, call);
}

Result<> Tiles::drain(const TiledLaunch &launch, TapeCall &call,
                      uint64_t firstPartial) {
  const Properties &gpu = memory.driver().properties();
  const DeviceFunction &function = launch.function;
  size_t shared = (gpu.sharedPerBlock - function.blockBytes) / 1024 * 1024;
  call.drains = call.commits = call.lowMemory = 1;
  call.sufficient = 0;
  call.drainRows = shared / rowBytes();
  return start(launch, function.drainSymbol,
               {drainBlocks(call.tiles), sharedTapes(function).blockThreads()},
               shared, firstPartial, call);
}

uint64_t Tiles::nameOf(const TiledLaunch &launch) {
  std::optional<uint64_t> &number = launch.needs.kept(launch.number).name;
  if (number)
    return *number;
  std::string name = "kernel `" + launch.code.name + "`" +
                     siteText(launch.code, launch.function.tapeSite);
  auto known = std::ranges::find(names, name);
  if (known == names.end())
    known = names.insert(names.end(), name);
  number = static_cast<uint64_t>(known - names.begin());
  return *number;
}

Result<> Tiles::run(const TiledLaunch &launch) {
  auto perTile = static_cast<uint64_t>(lanes());
  auto tiles =
      (static_cast<uint64_t>(launch.workItems) + perTile - 1) / perTile;
  if (auto done = limitHeap(launch.budget.bytes); !done)
    return done;
  if (auto done = prepare(); !done)
    return done;
  TapeCall call{};
  std::memcpy(&call, launch.callWords(), offsetof(TapeCall, control));
  TapeNeed known = *launch.needs.onHost(launch.number);
  bool isExact = call.hostRows > 0;
  if (isExact)
    known = {call.hostRows, call.hostMinRows, 0, 0};
  if (known.rows == 0)
    if (auto done = failureOfOthers(); !done)
      return done;
  auto plans = planAll(launch, tiles, known, isExact);
  if (!plans)
    return plans.error();
  const TapePlan &plan = plans->tapes;
  const SortPlan &order = plans->order;
  call.control = reinterpret_cast<TapeControl *>(control.address());
  call.need = launch.needs.onDevice(launch.number);
  call.report = launch.needs.report(launch.number);
  call.failure = raised->onDevice<TapeFailure>();
  call.function = nameOf(launch);
  call.tiles = tiles;
  call.workItems = static_cast<uint64_t>(launch.workItems);
  call.order = order.call.order;
  if (order.sorts())
    call.ordered = &order.call.control->ordered;
  bool sumsInOrder = launch.function.sums && isExact;
  call.inOrder = sumsInOrder || memory.driver().properties().endsLoops;
  call.sharedRows = plan.sharedRows;
  call.leastWarps = plan.leastWarps;
  call.mostWarps = plan.mostWarps;
  call.commits = plans->commits;
  call.sufficient = call.commits && rowsOf(plan, known) >= known.rows;
  call.lowMemory = call.commits && !call.sufficient;
  call.marksTiles = sumsInOrder && !call.commits;
  if (!call.commits)
    if (auto done = prepareLists(call); !done)
      return done;
  int drains = call.commits ? 0 : known.rows ? 1 : mostDrains;
  if (auto done = prepareSums(launch, tiles, plan.grid.blocks, drains); !done)
    return done;
  if (auto done = sweep(launch, *plans, call); !done || call.commits)
    return done;
  auto blocks = static_cast<uint64_t>(plan.grid.blocks);
  if (auto done = drain(launch, call, blocks); !done)
    return done;
  return known.rows ? Result<>() : repeat(launch, call, blocks);
}

/// What did not fit is to be drained.
Result<> Tiles::list(const TapeNeed &need) {
  TapeControl cells{};
  cells.listed = need.failed;
  cells.seenRows = need.rows;
  cells.seenMinRows = need.minRows;
  constexpr size_t from = offsetof(TapeControl, next);
  static_assert(offsetof(TapeControl, seenMinRows) + 8 == sizeof cells);
  return memory.driver().upload(control.address() + from, &cells.next,
                                sizeof cells - from);
}

/// What is raised after a first launch shall be of that launch.
Result<> Tiles::failureOfOthers() {
  profile::Timed timed(waitFor("tapes of launches before"));
  auto done = memory.driver().synchronize();
  return done ? failure() : done;
}

/// Each time with a larger heap, while there is one.
Result<> Tiles::repeat(const TiledLaunch &launch, TapeCall &call,
                       uint64_t firstPartial) {
  Driver &driver = memory.driver();
  auto *failure = raised->as<TapeFailure>();
  for (int drains = 1;; ++drains) {
    if (auto done = driver.synchronize(); !done)
      return done;
    if (!failure->raised)
      return {};
    size_t before = heap.bytes();
    size_t wanted = (failure->rows + failure->rows / 8) * rowBytes();
    if (auto done = growHeap(std::max(wanted, 2 * before), launch.budget.bytes);
        !done)
      return done;
    if (heap.bytes() == before || drains == mostDrains)
      return this->failure();
    if (auto done = clearError(); !done)
      return done;
    std::swap(call.list, call.failed);
    if (auto done = list(*launch.needs.onHost(launch.number)); !done)
      return done;
    firstPartial += call.blocks;
    if (auto done = drain(launch, call, firstPartial); !done)
      return done;
  }
}

//===-- Errors ------------------------------------------------------------===//

Result<> Tiles::clearError() {
  static constexpr uint64_t zero = 0;
  raised->as<TapeFailure>()->raised = 0;
  return memory.driver().fill(control.address() + offsetof(TapeControl, error),
                              8, &zero, 8);
}

Failure Tiles::failureOf(const TapeFailure &raised) const {
  return {ErrorCode::OutOfMemory,
          names[raised.function] +
              ": out of memory for the values that this loop saves for its "
              "gradient: " +
              std::to_string(lanes()) + " work items need " +
              bytesText(raised.rows * rowBytes()) + ", tapes have " +
              bytesText(heap.bytes()) +
              "; gradients that it has added to are unusable, and later "
              "launches did nothing; raise the budget (`tape_budget`, "
              "COSTATE_TAPE_BUDGET) or the limit "
              "(DeviceOptions::memory_limit, COSTATE_MEMORY_LIMIT), or split "
              "the loop over several launches"};
}

Result<> Tiles::failure() {
  if (!raised || !raised->as<TapeFailure>()->raised)
    return {};
  Failure failure = failureOf(*raised->as<TapeFailure>());
  if (auto done = clearError(); !done)
    return done;
  return failure;
}

} // namespace costate::runtime::gpu
