#include "runtime/cpu/Range.h"

#include "base/LengthOrder.h"
#include "base/RangeSums.h"
#include "runtime/Text.h"
#include "runtime/cpu/Copies.h"

#include <algorithm>
#include <chrono>
#include <new>

namespace costate::runtime::cpu {

using Clock = std::chrono::steady_clock;

/// A range that is done by then does not wake other threads, nor does one that
/// they would not shorten by more than it takes to wake them and to wait.
static constexpr std::chrono::microseconds aloneFor{10}, wakingTakes{10};

/// The size of `count` pieces, the last of which may be smaller.
static int64_t pieces(int64_t all, int64_t count) {
  return all / count + (all % count != 0);
}

static int64_t wholes(int64_t size, int64_t of) {
  return (size + of - 1) / of * of;
}

int64_t chunkSize(int64_t workItems, bool deterministic, int64_t lanes) {
  int64_t size = std::max(pieces(workItems, 256),
                          std::min<int64_t>(16, pieces(workItems, 64)));
  if (size > 8)
    size = (size + 7) / 8 * 8; // whole vectors
  size = wholes(size, lanes);
  // The log of a wave should fit into a cache.
  return std::clamp<int64_t>(size, 1, deterministic ? 512 : 32768);
}

namespace {
/// Chunks in a row, of which a runner takes some at a time.
struct alignas(64) Share {
  std::atomic<int64_t> next = 0;
  int64_t end = 0;

  bool hasLeft() const { return next.load(std::memory_order_relaxed) < end; }
  void stop() { next.store(end); }
  /// A part of what is left, so that others find something when they are done.
  bool take(int64_t &from, int64_t &to) {
    int64_t left = end - next.load(std::memory_order_relaxed);
    if (left <= 0)
      return false;
    int64_t count = std::max<int64_t>(1, left / 4);
    from = next.fetch_add(count, std::memory_order_relaxed);
    to = std::min(from + count, end);
    return from < to;
  }
};

/// Each of several runners has a share, so that it works on neighbours, and on
/// the same ones in the next range; whoever is done helps others.
class Shares {
public:
  Shares(int64_t begin, int64_t end, int runners) : all(runners) {
    const int64_t each = (end - begin) / runners,
                  more = (end - begin) % runners;
    for (int64_t runner = 0; Share &share : all) {
      share.next = begin;
      begin = share.end = begin + each + (runner++ < more);
    }
  }

  bool take(int runner, int64_t &from, int64_t &to) {
    for (size_t i = 0; i < all.size(); ++i)
      if (all[(runner + i) % all.size()].take(from, to))
        return true;
    return false;
  }
  bool hasLeft() const { return std::ranges::any_of(all, &Share::hasLeft); }
  /// What comes before `chunk` still runs: the lowest failure is reported.
  void stopAfter(int64_t chunk) {
    for (Share &share : all)
      if (share.end > chunk)
        share.stop();
  }

private:
  std::vector<Share> all;
};

/// Chunks that are being run.
struct Progress {
  Launch &launch;
  const Range &range;
  Copies &copies;
  const bool bySlabs; ///< whether chunks are whole slabs
  const int64_t size; ///< of a chunk
  const int64_t chunks;
  std::vector<double> partialSums = {}; ///< of the chunks [begin, end)
  int64_t begin = 0, end = 0;
  int64_t next = 0;         ///< while one runner is alone
  Shares *shares = nullptr; ///< of what is left for several runners

  bool take(int runner, int64_t alone, int64_t &from, int64_t &to) {
    if (shares)
      return shares->take(runner, from, to);
    from = next;
    next = to = std::min(from + alone, end);
    return from < to;
  }
  bool hasLeft() const { return shares ? shares->hasLeft() : next < end; }
  void stopAfter(int64_t chunk) {
    if (shares)
      shares->stopAfter(chunk);
    else
      next = end;
  }
  void stop() { stopAfter(-1); }
};

enum class Alone : uint8_t { No, AtFirst, Yes };

class Lease {
public:
  Lease(Progress &progress, int runner)
      : launch(progress.launch), worker(launch.workers.take()) {
    worker->launch = &launch;
    worker->runner = runner;
    worker->isAlone = launch.runners == 1;
    worker->hasSlab = worker->isAlone || progress.bySlabs;
    worker->tapeBudget = shareOf(progress);
    worker->reset(launch.tapeBytes);
  }
  ~Lease() {
    launch.noteTape(worker->visible);
    launch.workers.put(std::move(worker));
  }
  CpuWorker &operator*() { return *worker; }

private:
  static int64_t shareOf(const Progress &progress) {
    int64_t sharers =
        std::clamp<int64_t>(progress.chunks, 1, progress.launch.sharers);
    return static_cast<int64_t>(progress.launch.tapeBudget) / sharers;
  }

  Launch &launch;
  std::unique_ptr<CpuWorker> worker;
};
} // namespace

/// Compiled code must leave the tape as it found it; a dry run need not.
static void endChunk(Progress &progress, CpuWorker &worker) {
#ifdef COSTATE_ASSERTIONS
  if (worker.tapeUsed() != 0 && !progress.launch.dryRun)
    progress.launch.fail(
        worker.chunk, {ErrorCode::Internal,
                       "kernel `" + progress.launch.request.code->name +
                           "`: the tape is not empty after a work item; this "
                           "is a defect of Costate"});
#endif
  worker.tapeTop = worker.tape.base();
}

static void failMemory(Launch &launch) {
  launch.fail(-1, {ErrorCode::OutOfMemory,
                   "kernel `" + launch.request.code->name +
                       "`: the system has no memory left for a range; release "
                       "arrays, or use fewer threads"});
}

static void runChunk(Progress &progress, CpuWorker &worker, int64_t chunk) {
  const Range &range = progress.range;
  worker.chunk = chunk;
  worker.copies = progress.copies.beginPart(chunk, worker.runner);
  if (progress.launch.additions)
    worker.additions.chunk = &progress.launch.additions->chunk(chunk);
  int64_t begin = chunk * progress.size;
  range.body(range.frame, &worker, begin,
             std::min(begin + progress.size, range.workItems),
             progress.partialSums.data() +
                 (chunk - progress.begin) * range.sumCount);
}

/// False if the launch must end.
static bool runChunksOf(Progress &progress, CpuWorker &worker, int64_t begin,
                        int64_t end) {
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    runChunk(progress, worker, chunk);
    endChunk(progress, worker);
    if (progress.launch.interruptible.mustEnd())
      return false;
  }
  return true;
}

/// Whether it does not pay to wake others: chunks take as long as those before.
static bool isAlmostDone(const Progress &progress, int64_t done,
                         Clock::duration passed) {
  using Seconds = std::chrono::duration<double>;
  double shared = 1 - 1.0 / progress.launch.runners;
  double left = static_cast<double>(progress.end - done) /
                static_cast<double>(done - progress.begin);
  return Seconds(passed) * left * shared <= Seconds(wakingTakes);
}

/// How many chunks a runner takes at a time that has been alone since `start`,
/// up to chunk `done`; 0: others shall help.
static int64_t nextAlone(const Progress &progress, Alone alone, int64_t done,
                         Clock::time_point start) {
  const int64_t eighth = 1 + (done - progress.begin) / 8;
  if (alone == Alone::Yes)
    return eighth;
  Clock::duration passed = Clock::now() - start;
  if (passed < aloneFor)
    return eighth;
  return isAlmostDone(progress, done, passed) ? 1 + (progress.end - done) / 8
                                              : 0;
}

/// Runs chunks until none is left, or others shall help. Nothing here has a
/// destructor: errors arrive by longjmp.
[[gnu::noinline]] static void runChunks(Progress &progress, CpuWorker &worker,
                                        Alone alone) {
  if (_setjmp(worker.escape) != 0) {
    progress.stopAfter(worker.chunk);
    return;
  }
  const Clock::time_point start = Clock::now();
  int64_t begin, end;
  for (int64_t count = 1;
       count > 0 && progress.take(worker.runner, count, begin, end);) {
    if (!runChunksOf(progress, worker, begin, end))
      return progress.stop();
    if (alone != Alone::No)
      count = nextAlone(progress, alone, end, start);
  }
}

/// `runner`: others that work meanwhile have other numbers.
static void runLeased(Progress &progress, int runner, Alone alone) try {
  if (!progress.hasLeft())
    return;
  Lease worker(progress, runner);
  progress.copies.beginRunner(runner);
  InterruptScope scope(progress.launch.interruptible, leaveCompiled, &*worker);
  runChunks(progress, *worker, alone);
} catch (const std::bad_alloc &) {
  failMemory(progress.launch);
  progress.stop();
}

/// Runs the chunks that are left; tells whether that took several threads.
static bool runAll(Progress &progress) {
  bool single = progress.launch.runners == 1;
  runLeased(progress, 0, single ? Alone::Yes : Alone::AtFirst);
  int64_t left = progress.end - progress.next;
  if (left <= 0)
    return false;
  int runners =
      static_cast<int>(std::min<int64_t>(left, progress.launch.runners));
  Shares shares(progress.next, progress.end, runners);
  progress.shares = &shares;
  progress.launch.engine.team.run(
      runners, [&](int runner) { runLeased(progress, runner, Alone::No); },
      &progress.launch.interruptible);
  progress.shares = nullptr;
  return true;
}

/// Runs the chunks [begin, end) and adds their sums in order.
static bool runWave(Progress &progress, int64_t begin, int64_t end) {
  const Range &range = progress.range;
  progress.next = progress.begin = begin;
  progress.end = end;
  progress.partialSums.assign((end - begin) * range.sumCount,
                              costateNoSum(range.kind));
  bool parallel = runAll(progress);
  for (int64_t chunk = 0; chunk < end - begin; ++chunk)
    costateAddAll(range.kind, range.sumCount, range.sums,
                  progress.partialSums.data() + chunk * range.sumCount);
  return parallel;
}

/// The element of a float array at `address`, as AddLog::notFinite gives it.
/// Arrays do not overlap.
static std::string elementAt(const LaunchRequest &request, uintptr_t address) {
  const std::vector<Parameter> &parameters = request.code->parameters;
  uintptr_t size = address & AddLog::ofHalf ? sizeof(f16)
                   : address & 1            ? sizeof(float)
                                            : sizeof(double);
  uintptr_t base = 0;
  size_t owner = 0;
  address &= ~(AddLog::ofHalf | 1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    uintptr_t start = request.arguments[slotOf(*request.code, i)];
    if (parameters[i].rank >= 0 && start <= address && start >= base) {
      base = start;
      owner = i;
    }
  }
  return elementText(request, owner,
                     static_cast<int64_t>((address - base) / size),
                     Naming::OfParameter);
}

static void applyAdditions(Progress &progress, bool parallel) {
  AddLog &log = *progress.launch.additions;
  const LaunchRequest &request = progress.launch.request;
  // Only the search for inf and NaN has texts with numbers.
  bool watch =
      std::ranges::any_of(request.code->texts, [](const std::string &text) {
        return text.find('%') != text.npos;
      });
  auto apply = [&](int partition) {
    watch ? log.applyWatched(partition) : log.apply(partition);
  };
  if (parallel)
    progress.launch.engine.team.run(AddLog::partitions, apply);
  else
    for (int partition = 0; partition < AddLog::partitions; ++partition)
      apply(partition);
  if (uintptr_t address = log.notFinite())
    progress.launch.fail(
        progress.begin,
        {ErrorCode::NotFinite, "kernel `" + request.code->name +
                                   "`: the additions to " +
                                   elementAt(request, address) +
                                   " give inf or nan; add smaller numbers"});
}

static void runDeferred(Progress &progress) {
  AddLog &log = *progress.launch.additions;
  for (int64_t begin = 0; begin < progress.chunks && !progress.launch.failed();
       begin += AddLog::chunks) {
    log.beginWave();
    bool parallel = runWave(progress, begin,
                            std::min(begin + AddLog::chunks, progress.chunks));
    progress.launch.noteInterrupt();
    if (!progress.launch.failed())
      applyAdditions(progress, parallel);
  }
}

/// Whether there are enough slabs for all threads; where sums are added up in
/// the order of chunks, for most processors.
static bool isBySlabs(const Launch &launch, const Range &range) {
  constexpr int64_t many = 32;
  if (launch.additions || range.slab <= 0)
    return false;
  int64_t slabs = range.workItems / range.slab;
  return slabs >= (range.sumCount ? many : launch.runners);
}

/// Work items of a chunk that are enough for lanes to choose neighbours from,
/// if each of several runners still has many chunks.
static int64_t enoughForLanes(const Launch &launch, const Range &range) {
  constexpr int64_t shares = 16;
  int64_t each = range.workItems / launch.runners;
  return std::min(orderedBlock, launch.runners == 1 ? each : each / shares);
}

/// Where nothing is added up in the order of chunks, few work items are shared
/// out among all threads, even if that takes more vectors.
static int64_t chunkSizeOf(const Launch &launch, const Range &range,
                           bool bySlabs, bool hasParts) {
  bool deterministic = launch.additions != nullptr;
  int64_t size = chunkSize(range.workItems, deterministic, range.lanes);
  if (hasParts)
    size = wholes(std::max(size, pieces(range.workItems, Copies::mostParts)),
                  range.lanes);
  if (bySlabs)
    return wholes(size, range.slab);
  if (hasParts || deterministic || range.sumCount || range.lanes == 1)
    return size;
  size = std::max(size, wholes(enoughForLanes(launch, range), range.lanes));
  int64_t each = (range.workItems + launch.runners - 1) / launch.runners;
  return std::clamp<int64_t>(each, 1, size);
}

bool runRange(Launch &launch, const Range &range) noexcept try {
  profile::Timed timed(
      [&] { return launch.request.partAt(profile::Kind::Range, range.site); });
  Copies copies(launch.engine.blocks, std::exchange(launch.copied, {}),
                range.workItems, !launch.additions && !launch.dryRun,
                launch.runners);
  bool bySlabs = isBySlabs(launch, range);
  int64_t size = chunkSizeOf(launch, range, bySlabs, copies.hasParts());
  Progress progress{launch,  range, copies,
                    bySlabs, size,  pieces(range.workItems, size)};
  std::fill_n(range.sums, range.sumCount, costateNoSum(range.kind));
  if (launch.additions)
    runDeferred(progress);
  else
    runWave(progress, 0, progress.chunks);
  launch.noteInterrupt();
  if (!launch.failed())
    copies.addUp(progress.chunks, launch.engine.team);
  return !launch.failed();
} catch (const std::bad_alloc &) {
  failMemory(launch);
  return false;
}

} // namespace costate::runtime::cpu
