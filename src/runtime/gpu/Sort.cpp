#include "runtime/gpu/Sort.h"

#include <cstdlib>
#include <cstring>

namespace costate::runtime::gpu {

static constexpr int blockThreads = 512;
static constexpr uint64_t blocksOfProcessor = 4;
/// Launches of a function from one look at its depths to the next.
static constexpr uint64_t lookEvery = 32;

/// As many iterations as take the time of two launches.
static constexpr uint64_t launchIterations = 1 << 17;
/// Issue slots of a lane per iteration, of which an H200 has 33e12 a second: to
/// look at it twice, and to place it.
static constexpr double lookSlots = 700, placeSlots = 200;

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
  double sort =
      lookSlots * static_cast<double>(iterations) + placeSlots * passing +
      (lookSlots + placeSlots) * static_cast<double>(launchIterations);
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

Result<> Sorter::queue(const SortedLaunch &launch, SortCall call) {
  auto own = static_cast<size_t>(launch.function.sortWords);
  constexpr size_t size = sizeof call / 8;
  std::vector<uint64_t> words(launch.words, launch.words + own - size);
  words.resize(own);
  std::memcpy(words.data() + own - size, &call, sizeof call);
  return memory.driver().launch(
      launch.module, launch.function.sortSymbol,
      {static_cast<int64_t>(call.blocks), blockThreads}, words,
      sizeof(SortMemory));
}

Result<Order> Sorter::sort(const SortedLaunch &launch, size_t budget) {
  bool fits = launch.iterations > 32 && launch.iterations < uint64_t(1) << 32;
  if (when == Sorting::Never || launch.function.sortSymbol.empty() || !fits)
    return Order();
  auto ceil = [](uint64_t a, uint64_t b) { return (a + b - 1) / b; };
  auto processors =
      static_cast<uint64_t>(memory.driver().properties().multiprocessors);
  uint64_t rounds =
      ceil(launch.iterations, blockThreads * blocksOfProcessor * processors);
  uint64_t blocks = ceil(launch.iterations, rounds * blockThreads);
  size_t baseBytes = blocks * SortBuckets * sizeof(unsigned);
  size_t bytes = baseBytes + launch.iterations * sizeof(unsigned);
  bool isDue = launch.history.launches++ % lookEvery == 0;
  bool sorts = isWanted(launch) && reserve(bytes, budget);
  if (!sorts && (!isDue || memory.isCapturing()))
    return Order();
  if (auto done = prepare(); !done)
    return done.error();
  SortCall call{.control = reinterpret_cast<SortControl *>(control.address()),
                .report = launch.history.report,
                .order = nullptr,
                .bases = nullptr,
                .iterations = launch.iterations,
                .blocks = blocks,
                .rounds = rounds,
                .places = 0};
  if (!sorts) {
    auto done = queue(launch, call);
    return done ? Result<Order>(Order()) : done.error();
  }
  call.bases = reinterpret_cast<unsigned *>(places.address());
  call.order = call.bases + blocks * SortBuckets;
  for (uint64_t step : {0, 1}) {
    call.places = step;
    if (auto done = queue(launch, call); !done)
      return done.error();
  }
  return Order{call.order, &call.control->ordered};
}

} // namespace costate::runtime::gpu
