#include "runtime/gpu/Sort.h"

#include <cstdlib>
#include <cstring>

namespace costate::runtime::gpu {

/// Launches of a function from one look at its depths to the next.
static constexpr uint64_t lookEvery = 32;

/// Some drivers make code anew for each size.
static constexpr size_t sharedUnit = 4096;
/// A block knows the kept ones by 16 bits.
static constexpr uint64_t largestKept = 1 << 16;

/// Issue slots of a lane, of which an H200 has 33e12 a second: of the launch,
/// and per iteration, to look at it and to place it.
static constexpr double launchSlots = 220e6;
static constexpr double lookSlots = 250, placeSlots = 100;

Result<Sorting> chosenSorting(Sorting usual) {
  const char *text = std::getenv("COSTATE_SORT");
  if (!text || !*text)
    return usual;
  if (text == std::string("never"))
    return Sorting::Never;
  if (text == std::string("always"))
    return Sorting::Always;
  return Failure{ErrorCode::BadArgument,
                 "COSTATE_SORT is `" + std::string(text) +
                     "`; it must be `never` or `always`"};
}

bool sortingPays(const SortReport &seen, const SortCosts &costs,
                 uint64_t iterations) {
  if (seen.iterations == 0 || seen.rounds <= seen.turns)
    return false;
  auto share =
      static_cast<double>(iterations) / static_cast<double>(seen.iterations);
  double idle = share * static_cast<double>(seen.rounds - seen.turns);
  double turns = share * static_cast<double>(seen.turns);
  auto passing = share * static_cast<double>(seen.passing);
  double sort = launchSlots + lookSlots * static_cast<double>(iterations) +
                placeSlots * passing;
  double stray = passing * static_cast<double>(costs.strayItem) +
                 turns * static_cast<double>(costs.strayTurn);
  return idle * static_cast<double>(costs.turn) > sort + stray;
}

bool Sorter::isWanted(const SortedLaunch &launch) const {
  return when == Sorting::Always ||
         sortingPays(*launch.history.report, launch.function.sortCosts,
                     launch.iterations);
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

bool Sorter::reserve(size_t bytes, size_t budget) {
  if (bytes <= places.bytes())
    return true;
  if (bytes > budget || (refused && bytes >= refused))
    return false;
  if (places.reserve(bytes))
    return true;
  refused = bytes;
  return false;
}

/// As many blocks as run at a time, each with as many iterations.
Result<Sorter::Plan> Sorter::plan(const SortedLaunch &launch) {
  Driver &driver = memory.driver();
  const Properties &gpu = driver.properties();
  int64_t &resident = launch.history.residentBlocks;
  if (resident == 0) {
    auto blocks =
        driver.residentBlocks(launch.module, launch.function.sortSymbol,
                              SortBlockThreads, sizeof(SortMemory));
    if (!blocks)
      return blocks.error();
    resident = std::max<int64_t>(1, *blocks);
  }
  auto ceil = [](uint64_t a, uint64_t b) { return (a + b - 1) / b; };
  auto most = static_cast<uint64_t>(resident);
  uint64_t least = ceil(launch.iterations, SortBlockThreads);
  Plan plan;
  plan.chunk = 32 * ceil(launch.iterations, 32 * std::min(most, least));
  plan.chunks = ceil(launch.iterations, plan.chunk);
  uint64_t neighbours = ceil(most, static_cast<uint64_t>(gpu.multiprocessors));
  size_t share = gpu.sharedPerMultiprocessor / neighbours;
  size_t bytes = sizeof(SortMemory) + 2 * sizeof(unsigned) * plan.chunk;
  if (size_t rounded = ceil(bytes, sharedUnit) * sharedUnit;
      rounded + reservedPerBlock <= share && rounded <= gpu.sharedPerBlock)
    bytes = rounded;
  plan.keeps = bytes + reservedPerBlock <= share &&
               bytes <= gpu.sharedPerBlock && plan.chunk <= largestKept;
  plan.sharedBytes = plan.keeps ? bytes : sizeof(SortMemory);
  return plan;
}

Result<> Sorter::queue(const SortedLaunch &launch, const Plan &plan,
                       const SortCall &call) {
  auto own = static_cast<size_t>(launch.function.sortWords);
  constexpr size_t size = sizeof call / 8;
  std::vector<uint64_t> words(launch.words, launch.words + own - size);
  words.resize(own);
  std::memcpy(words.data() + own - size, &call, sizeof call);
  return memory.driver().launch(
      launch.module, launch.function.sortSymbol,
      {static_cast<int64_t>(plan.chunks), SortBlockThreads}, words,
      plan.sharedBytes);
}

Result<Order> Sorter::sort(const SortedLaunch &launch, size_t budget) {
  const Properties &gpu = memory.driver().properties();
  bool fits = launch.iterations > 32 && launch.iterations < uint64_t(1) << 32 &&
              gpu.blockThreads >= SortBlockThreads &&
              gpu.sharedPerBlock >= sizeof(SortMemory);
  if (when == Sorting::Never || launch.function.sortSymbol.empty() || !fits)
    return Order();
  auto plan = this->plan(launch);
  if (!plan)
    return plan.error();
  size_t basesBytes = plan->chunks * SortBuckets * sizeof(unsigned);
  size_t bytes =
      basesBytes + (plan->chunks + launch.iterations) * sizeof(unsigned);
  bool isDue = launch.history.launches++ % lookEvery == 0;
  bool sorts = isWanted(launch) && reserve(bytes, budget);
  if (!sorts && (!isDue || memory.isCapturing()))
    return Order();
  if (auto done = prepare(); !done)
    return done.error();
  SortCall call{.control = reinterpret_cast<SortControl *>(control.address()),
                .report = launch.history.onDevice,
                .order = nullptr,
                .bases = nullptr,
                .before = nullptr,
                .iterations = launch.iterations,
                .chunks = plan->chunks,
                .chunk = plan->chunk,
                .keeps = sorts && plan->keeps};
  if (sorts) {
    call.bases = reinterpret_cast<unsigned *>(places.address());
    call.before = call.bases + plan->chunks * SortBuckets;
    call.order = call.before + plan->chunks;
  }
  if (auto done = queue(launch, *plan, call); !done)
    return done.error();
  return sorts ? Order{call.order, &call.control->ordered} : Order();
}

} // namespace costate::runtime::gpu
