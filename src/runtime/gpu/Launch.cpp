#include "runtime/gpu/Launch.h"

#include "base/Fork.h"
#include "base/RangeSums.h"
#include "runtime/Interrupt.h"
#include "runtime/Message.h"
#include "runtime/Text.h"

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <functional>

namespace costate::runtime {

/// What the host code of a launch calls functions of the device for.
enum class Pass {
  Count,   ///< nothing of the device runs: the host knows what tapes need
  Measure, ///< what decides how large tapes get
  Run,
};

using gpu::TapeSizes;

/// One pass over the host code of a launch.
struct Launch {
  gpu::Engine &engine;
  const LaunchRequest &request;
  const gpu::DeviceCode &code;
  gpu::LoadedCode &loaded;
  Pass pass;
  size_t tapeBytes;       ///< of one thread
  size_t tapeThreads;     ///< that have one; measuring: that would need one
  size_t serialBytes = 0; ///< of the tape of the serial code
  gpu::BudgetShares shares = {};
  bool trustsHost = true; ///< with what it has told
  TapeSizes counted = {}; ///< so far
  std::span<const int64_t> extents = {};
  std::jmp_buf escape = {};
  Failure failure{ErrorCode::Internal, ""};
};

} // namespace costate::runtime

namespace costate::runtime::gpu {

static constexpr int usualBlockThreads = 128;
/// Of functions with so many registers that fewer threads run at a time.
static constexpr int blockThreadsOfCrowds[] = {2 * usualBlockThreads,
                                               usualBlockThreads};
/// Of blocks that add up, there should be few: each of them is waited for.
static constexpr int blockThreadsOfSums[] = {sumBlockThreads,
                                             sumBlockThreads / 2};
/// The cell for errors, and after it the ticket of sums, parts that are waited
/// for, and the need of each function.
static constexpr size_t ticketOffset = 120, partsOffset = 128,
                        needOffset = partsOffset + 8 * costateFewParts;
static_assert(sizeof(DeviceErrorCell) <= ticketOffset);

//===-- Errors of threads -------------------------------------------------===//

static Result<> clearCells(Engine &engine) {
  static constexpr uint64_t zero = 0;
  return engine.driver().fill(engine.cells.address(), engine.cells.bytes(),
                              &zero, 8);
}

/// Lines of one function that are kept.
static constexpr uint64_t messageRoom = 1 << 14;

/// Tells the threads where their lines go.
static Result<> openMessages(Engine &engine) {
  if (auto done = engine.messages.reserve(messageRoom * sizeof(DeviceMessage));
      !done)
    return done;
  DeviceErrorCell cell{};
  cell.room = messageRoom;
  cell.messages = reinterpret_cast<DeviceMessage *>(engine.messages.address());
  constexpr size_t from = offsetof(DeviceErrorCell, printed);
  return engine.driver().upload(engine.cells.address() + from, &cell.printed,
                                sizeof cell - from);
}

/// In the order of the work items.
static Result<> printMessages(Launch &launch, uint64_t printed) {
  Engine &engine = launch.engine;
  if (launch.request.quiet)
    return openMessages(engine);
  std::vector<DeviceMessage> messages(std::min(printed, messageRoom));
  if (auto done =
          engine.driver().download(messages.data(), engine.messages.address(),
                                   messages.size() * sizeof(DeviceMessage));
      !done)
    return done;
  std::vector<std::pair<int64_t, size_t>> order;
  for (const DeviceMessage &message : messages)
    order.emplace_back(message.workItem, order.size());
  std::ranges::sort(order);
  for (auto [workItem, number] : order) {
    const DeviceMessage &message = messages[number];
    printMessage(*launch.request.code, message.site, message.text,
                 {message.words, static_cast<size_t>(message.count)},
                 {workItem, launch.extents});
  }
  if (printed > messageRoom)
    std::printf("kernel `%s`: %llu more lines, for which there is no room\n",
                launch.request.code->name.c_str(),
                static_cast<unsigned long long>(printed - messageRoom));
  return openMessages(engine);
}

/// What the threads have reported or printed, if they can.
static Result<> reported(Launch &launch) {
  if (!launch.code.mayFail && !launch.code.prints)
    return {};
  Engine &engine = launch.engine;
  DeviceErrorCell cell;
  if (auto done =
          engine.driver().download(&cell, engine.cells.address(), sizeof cell);
      !done)
    return done;
  if (launch.code.prints && launch.pass == Pass::Run && cell.printed > 0)
    if (auto done = printMessages(launch, cell.printed); !done)
      return done;
  if (cell.kind == DeviceErrorCell::None)
    return {};
  if (auto done = clearCells(engine); !done)
    return done;
  return deviceFailure(launch.request, cell, launch.extents);
}

//===-- Room for tapes ----------------------------------------------------===//

static Failure tapeFailure(const Engine &engine, const LaunchRequest &request,
                           int64_t site, const std::string &who, size_t bytes) {
  const KernelCode &code = *request.code;
  std::string need = who + " " + bytesText(bytes);
  return {ErrorCode::OutOfMemory,
          "kernel `" + code.name + "`" + siteText(code, site) + ": " +
              (request.tapeBudget
                   ? tapeBudgetText(request.tapeBudget, need, false)
                   : tapeMemoryText(engine.memory.budget, need))};
}

/// What of the budget of a launch, if it has one, is left beside `used`.
static size_t budgetLeft(const LaunchRequest &request, size_t used) {
  size_t budget = request.tapeBudget ? request.tapeBudget : SIZE_MAX;
  return budget - std::min(budget, used);
}

/// Lanes of one.
static size_t warpOf(const Engine &engine) {
  return static_cast<size_t>(engine.driver().properties().shape.lanes);
}

static size_t wholeWarps(size_t threads, size_t warp) {
  return (threads + warp - 1) / warp * warp;
}

/// Threads, in whole warps, of which each may have so many bytes.
static size_t threadsWithin(size_t budget, size_t bytes, size_t warp) {
  return budget / bytes / warp * warp;
}

/// Room for tapes of `bytes` for as many threads as memory allows, a warp at
/// least; returns their number. It decides the bits of sums: deterministic
/// kernels do not make do with the tapes that other launches have left.
static Result<size_t> reserveTapes(Engine &engine, const LaunchRequest &request,
                                   const TapeSizes &needs) {
  size_t bytes = needs.thread, warp = warpOf(engine);
  size_t threads = wholeWarps(needs.threads, warp);
  if (bytes == 0)
    return threads;
  threads = std::min(
      threads, threadsWithin(budgetLeft(request, needs.serial), bytes, warp));
  size_t fitting = threadsWithin(engine.tapes.bytes(), bytes, warp);
  if (threads > 0 && fitting >= threads)
    return threads;
  for (; threads >= warp; threads /= 2) {
    if (!request.deterministic && fitting >= threads / 2 && fitting >= warp)
      return fitting;
    if (bytes > SIZE_MAX / threads)
      continue;
    threads = threads / warp * warp;
    if (Result<> done = engine.tapes.reserve(bytes * threads); done)
      return threads;
  }
  return tapeFailure(engine, request, needs.threadSite,
                     std::to_string(warp) + " work items of the range need",
                     bytes * warp);
}

/// Room for tapes of `needs`, on as many threads as memory allows.
static Result<> reserveOnce(Engine &engine, const LaunchRequest &request,
                            TapeSizes &needs) {
  auto serial = budgetLeft(request, 0) < needs.serial
                    ? Result<>(Failure{ErrorCode::OutOfMemory, ""})
                    : engine.serialTape.reserve(needs.serial);
  if (!serial)
    return tapeFailure(engine, request, needs.serialSite,
                       "the serial code needs", needs.serial);
  auto threads = reserveTapes(engine, request, needs);
  if (!threads)
    return threads.error();
  needs.threads = *threads;
  return {};
}

/// Where memory is short, tapes of other launches give way.
static Result<> reserve(Engine &engine, const LaunchRequest &request,
                        TapeSizes &needs) {
  auto done = reserveOnce(engine, request, needs);
  size_t least = needs.serial + warpOf(engine) * needs.thread;
  if (done || engine.memory.isCapturing() || budgetLeft(request, 0) < least)
    return done;
  engine.tapes.clear();
  engine.serialTape.clear();
  engine.tiles.dropHeap();
  return reserveOnce(engine, request, needs);
}

/// Of a function in tiles, beside the other tapes of the launch.
static TapeBudget heapBudget(const Launch &launch) {
  const Engine &engine = launch.engine;
  size_t used = launch.serialBytes + launch.tapeBytes * launch.tapeThreads;
  TapeBudget budget = engine.heapBudget;
  if (launch.request.tapeBudget)
    budget = {budgetLeft(launch.request, used), true};
  budget.bytes = std::min(budget.bytes, engine.graphBudget);
  return budget;
}

//===-- What the host code calls ------------------------------------------===//

/// Whether `result` is none; what failed is kept for the end of the launch.
static bool failed(Launch &launch, const Result<> &result) {
  if (result)
    return false;
  launch.failure = result.error();
  return true;
}

static size_t numberOf(const Launch &launch, const DeviceFunction &function) {
  return static_cast<size_t>(&function - launch.code.functions.data());
}

static size_t mostThreads(const Launch &launch,
                          const DeviceFunction &function) {
  bool alone =
      function.serial || (function.ordered && launch.request.deterministic);
  if (alone)
    return 1;
  auto resident =
      static_cast<size_t>(launch.engine.driver().properties().residentThreads);
  bool usesTape = function.pushes && launch.pass == Pass::Run;
  return usesTape ? std::min(resident, launch.tapeThreads) : resident;
}

static int blockThreads(const Launch &launch, int wanted) {
  return std::min(wanted, launch.engine.driver().properties().blockThreads);
}

/// Blocks that run at the same time, with as many threads as can. Of blocks
/// that add up, the last one adds what the others have left: none should start
/// late.
static Result<Grid> fullGrid(Launch &launch, const DeviceFunction &function,
                             std::span<const int> sizes) {
  auto &known = launch.loaded.fullGrids;
  known.resize(launch.code.functions.size(), Grid{0, 0});
  Grid &full = known[numberOf(launch, function)];
  if (full.blocks)
    return full;
  for (int wanted : sizes) {
    int threads = blockThreads(launch, wanted);
    auto resident = launch.engine.driver().residentBlocks(
        *launch.loaded.module, function.symbol, threads, 0);
    if (!resident)
      return resident.error();
    if (*resident * threads > full.blocks * full.blockThreads)
      full = {*resident, threads};
  }
  return full;
}

/// Blocks for all work items, but at most so many: fewer threads than work
/// items would leave two of them to some, and the others would wait.
static Grid blocksFor(int64_t workItems, int64_t most, int blockThreads) {
  int64_t all = (workItems + blockThreads - 1) / blockThreads;
  return {std::min(all, most), blockThreads};
}

/// Whether the threads of a function may take any work items.
static bool takesAny(const DeviceFunction &function) {
  return !function.addsUp && !function.accumulates && !function.pushes;
}

/// As often do others get room in which they can begin.
constexpr int64_t sharedRounds = 8;

/// Where a thread takes one work item after another, all threads run at the
/// same time, or the neighbours of a work item, which share memory with it, run
/// much later. Threads that need too many registers for that take one each.
static Result<Grid> gridOfMany(Launch &launch, const DeviceFunction &function,
                               int64_t mostThreads, int64_t workItems) {
  int usual = blockThreads(launch, usualBlockThreads);
  int64_t threads = std::min(mostThreads, workItems);
  Grid most = blocksFor(workItems, mostThreads / usual, usual);
  if (threads <= usual || function.tiles ||
      (!function.addsUp && !takesAny(function)))
    return most;
  auto full = fullGrid(launch, function,
                       function.addsUp ? std::span(blockThreadsOfSums)
                                       : std::span(blockThreadsOfCrowds));
  if (!full)
    return full;
  int size = full->blockThreads;
  if (function.addsUp)
    return blocksFor(workItems, std::min(full->blocks, mostThreads / size),
                     size);
  Driver &driver = launch.engine.driver();
  bool isFull = full->blocks * size >= threads;
  if (isFull && !driver.isShared())
    return most;
  return blocksFor(workItems,
                   isFull ? sharedRounds * full->blocks
                          : driver.properties().mostBlocks,
                   size);
}

//===-- Blocks that the kernel asks for -----------------------------------===//

static Failure blockFailure(const Launch &launch,
                            const DeviceFunction &function,
                            const std::string &text) {
  const KernelCode &code = *launch.request.code;
  return {ErrorCode::BadKernel, "kernel `" + code.name + "`" +
                                    siteText(code, function.site) + ": " +
                                    text};
}

/// Why `function` cannot run on the device; empty: it can.
static std::string blockFault(const Launch &launch,
                              const DeviceFunction &function,
                              int64_t workItems) {
  const Properties &gpu = launch.engine.driver().properties();
  int64_t most = gpu.blockThreads, wanted = function.blockDim;
  if (function.hasBlocks && wanted > most)
    return "blocks of " + std::to_string(wanted) + " work items: this device " +
           "has " + std::to_string(most) + " at most";
  if (static_cast<size_t>(function.sharedBytes) > gpu.sharedPerBlock)
    return "the shared arrays of a block take " +
           bytesText(static_cast<size_t>(function.sharedBytes)) +
           "; this device has " + bytesText(gpu.sharedPerBlock) +
           ": make them smaller, or use an array";
  if (function.hasBlocks && mostThreads(launch, function) == 1)
    return "a deterministic kernel adds floats atomically in one thread, so "
           "there are no blocks: add in a shared array in a fixed order, or "
           "leave `deterministic` out";
  if (function.hasBlocks && gpu.shape.waitsForEnded && workItems % wanted != 0)
    return std::to_string(workItems) +
           " work items are no multiple of a block "
           "of " +
           std::to_string(wanted) +
           ", and all threads of a block must "
           "come to its barriers on this device: run more work items, and "
           "leave out by a condition what the last ones do";
  return "";
}

/// Blocks of so many work items as the kernel says, or as there can be where
/// none depends on another.
static Result<Grid> chosenGrid(const Launch &launch,
                               const DeviceFunction &function,
                               int64_t workItems) {
  std::string fault = blockFault(launch, function, workItems);
  if (!fault.empty())
    return blockFailure(launch, function, fault);
  if (mostThreads(launch, function) == 1)
    return Grid{1, 1};
  const Properties &gpu = launch.engine.driver().properties();
  Grid grid = blocksFor(
      workItems, gpu.mostBlocks,
      static_cast<int>(std::min<int64_t>(function.blockDim, gpu.blockThreads)));
  return Grid{std::max<int64_t>(grid.blocks, 1), grid.blockThreads};
}

static Result<Grid> gridOf(Launch &launch, const DeviceFunction &function,
                           int64_t workItems) {
  if (function.blockDim)
    return chosenGrid(launch, function, workItems);
  auto most = static_cast<int64_t>(mostThreads(launch, function));
  int64_t threads = std::min(most, workItems);
  if (threads == 1)
    return Grid{1, 1};
  auto grid = gridOfMany(launch, function, most, workItems);
  if (!grid || threads > grid->blockThreads)
    return grid;
  // whole warps: code is made for a size
  size_t size = wholeWarps(static_cast<size_t>(threads), warpOf(launch.engine));
  return Grid{1, static_cast<int>(size)};
}

static Result<> clearSums(Launch &launch, const DeviceFunction &function) {
  if (function.sums == 0)
    return {};
  double none =
      costateNoSum(function.least ? costateLeastPair : costateFloatSums);
  return launch.engine.driver().fill(
      launch.engine.frame.address() + 8 * function.sumSlot,
      8 * static_cast<size_t>(function.sums), &none, 8);
}

/// Whether the host has told how much `function` pushes, and that is all that
/// there is to know of it.
static bool isTold(const Launch &launch, const DeviceFunction &function) {
  return launch.pass == Pass::Count ||
         (launch.pass == Pass::Measure && launch.trustsHost &&
          function.needWord >= 0 && !function.counts);
}

/// Which function runs; null for none.
static const std::string *chosen(const Launch &launch,
                                 const DeviceFunction &function) {
  if (launch.pass != Pass::Measure)
    return &function.symbol;
  if (function.measuredInPlace || !(function.pushes || function.counts))
    return nullptr;
  return function.measure.empty() ? &function.symbol : &function.measure;
}

static std::byte *needCell(Launch &launch, const DeviceFunction &function) {
  return launch.engine.cells.address() + needOffset +
         8 * numberOf(launch, function);
}

/// Whether one block can wait for the parts of the sum that others leave: all
/// fit onto the GPU at a time (`fullGrid`), and start in order if others have
/// it. A thread that reports an error leaves none.
static bool awaitsParts(const Launch &launch, const DeviceFunction &function,
                        Grid grid) {
  return function.oneSum && !launch.code.mayFail &&
         launch.engine.driver().properties().blocksProgress &&
         grid.blocks > 1 && grid.blocks <= costateFewParts;
}

static void setWords(Launch &launch, const DeviceFunction &function, Grid grid,
                     int64_t workItems, uint64_t *words) {
  auto address = [](std::byte *place) {
    return reinterpret_cast<uint64_t>(place);
  };
  Engine &engine = launch.engine;
  int64_t threads = grid.blocks * grid.blockThreads;
  words[WorkItemsWord] = static_cast<uint64_t>(workItems);
  words[TapeBaseWord] = address(engine.tapes.address());
  words[TapeBytesWord] = launch.tapeBytes;
  words[PartialsWord] = address(engine.partials.address());
  words[PartialCountWord] = static_cast<uint64_t>(grid.blocks);
  words[FirstPartialWord] = 0;
  words[TicketWord] = address(engine.cells.address() + ticketOffset);
  words[FrameWord] = address(engine.frame.address());
  words[ErrorsWord] = address(engine.cells.address());
  words[NeedWord] = address(needCell(launch, function));
  if (awaitsParts(launch, function, grid))
    words[PartialsWord] = words[TicketWord] =
        address(engine.cells.address() + partsOffset);
  words[PerThreadWord] = static_cast<uint64_t>(workItems / threads);
  words[RestWord] = static_cast<uint64_t>(workItems % threads);
  if (function.budgetWord >= 0)
    words[function.budgetWord] =
        function.serial ? launch.shares.serial : launch.shares.thread;
}

static Result<> runFunction(Launch &launch, const DeviceFunction &function,
                            const std::string &symbol, uint64_t *words,
                            int64_t workItems) {
  Engine &engine = launch.engine;
  auto chosenGrid = gridOf(launch, function, workItems);
  if (!chosenGrid)
    return chosenGrid.error();
  Grid grid = *chosenGrid;
  int64_t threads = grid.blocks * grid.blockThreads;
  if (launch.pass == Pass::Measure && function.pushes && !function.serial)
    launch.tapeThreads =
        std::max(launch.tapeThreads, static_cast<size_t>(threads));
  if (function.sums) {
    size_t count = static_cast<size_t>(function.sums * grid.blocks);
    if (auto done = engine.partials.reserve(8 * count); !done)
      return done;
  }
  setWords(launch, function, grid, workItems, words);
  TimedByGpu byGpu(engine.driver(), [&] {
    return launch.request.partAt(profile::Kind::Device, function.site);
  });
  if (function.tiles)
    return engine.tiles.run(
        {*launch.loaded.module, *launch.request.code, function,
         *launch.loaded.needs, numberOf(launch, function), words, workItems,
         engine.partials, words[TicketWord], heapBudget(launch)});
  if (auto done =
          engine.driver().launch(*launch.loaded.module, symbol, grid,
                                 {words, static_cast<size_t>(function.words)},
                                 static_cast<size_t>(function.sharedBytes));
      !done)
    return done;
  return reported(launch);
}

/// What the host has told of `function`.
static Result<> count(Launch &launch, const DeviceFunction &function,
                      const uint64_t *words, int64_t workItems) {
  if (function.needWord < 0)
    return {};
  TapeSizes &counted = launch.counted;
  uint64_t bytes = words[function.needWord];
  if (function.serial) {
    constexpr uint64_t most = uint64_t(1) << 62; // of each of them
    if (!function.afterPivot)
      counted.serial = std::min(counted.serial + bytes, most);
    counted.serialSite = function.tapeSite;
    return {};
  }
  auto grid = gridOf(launch, function, workItems);
  if (!grid)
    return grid.error();
  counted.threads = std::max(
      counted.threads, static_cast<size_t>(grid->blocks * grid->blockThreads));
  if (bytes > counted.thread)
    counted.threadSite = function.tapeSite;
  counted.thread = std::max(counted.thread, bytes);
  return {};
}

static Result<> measure(Launch &launch, const DeviceFunction &function,
                        uint64_t *words, int64_t workItems) {
  static constexpr uint64_t zero = 0;
  Driver &driver = launch.engine.driver();
  std::byte *cell = needCell(launch, function);
  if (auto done = driver.fill(cell, 8, &zero, 8); !done)
    return done;
  size_t threads = std::exchange(launch.tapeThreads, 0);
  auto measured =
      runFunction(launch, function, function.measure, words, workItems);
  launch.counted.threads = std::exchange(launch.tapeThreads, threads);
  return measured ? driver.download(&launch.counted.thread, cell, 8) : measured;
}

/// Room for the tapes of `function`, whose words are known only now.
static Result<> measureInPlace(Launch &launch, const DeviceFunction &function,
                               uint64_t *words, int64_t workItems) {
  bool isKnown = function.needWord >= 0;
  launch.pass = isKnown ? Pass::Count : Pass::Measure;
  launch.counted = {};
  auto found = isKnown ? count(launch, function, words, workItems)
                       : measure(launch, function, words, workItems);
  launch.pass = Pass::Run;
  if (!found)
    return found;
  TapeSizes needs = launch.counted;
  needs.threadSite = function.tapeSite;
  needs.threads = std::max(needs.threads, launch.tapeThreads);
  needs.thread = std::max<uint64_t>(needs.thread, launch.tapeBytes);
  needs.serial = launch.serialBytes;
  auto reserved = reserveTapes(launch.engine, launch.request, needs);
  if (!reserved)
    return reserved.error();
  launch.tapeBytes = needs.thread;
  launch.tapeThreads = *reserved;
  return {};
}

static Result<> runChosen(Launch &launch, const DeviceFunction &function,
                          uint64_t *words, int64_t workItems) {
  if (isTold(launch, function))
    return workItems &&
                   !(function.measuredInPlace && launch.pass == Pass::Measure)
               ? count(launch, function, words, workItems)
               : Result<>();
  const std::string *symbol = chosen(launch, function);
  if (!symbol)
    return {};
  if (workItems == 0)
    return clearSums(launch, function);
  if (function.measuredInPlace)
    if (auto done = measureInPlace(launch, function, words, workItems); !done)
      return done;
  return runFunction(launch, function, *symbol, words, workItems);
}

[[gnu::noinline]] static bool run(Launch &launch, int64_t number,
                                  uint64_t *words, int64_t workItems) {
  const DeviceFunction &function =
      launch.code.functions[static_cast<size_t>(number)];
  if (workItems < 0) {
    launch.failure = countFailure(*launch.request.code, function.site);
    return false;
  }
  return !failed(launch, runChosen(launch, function, words, workItems));
}

[[gnu::noinline]] static bool read(Launch &launch, int64_t slot,
                                   uint64_t &bits) {
  profile::Timed timed(waitFor("a number that decides what runs"));
  return !failed(launch,
                 launch.engine.driver().download(
                     &bits, launch.engine.frame.address() + 8 * slot, 8));
}

[[gnu::noinline]] static bool copy(Launch &launch, void *to, const void *from,
                                   int64_t bytes) {
  bool skipped = launch.pass == Pass::Count ||
                 (launch.pass == Pass::Measure && !launch.code.countsWritten);
  return bytes <= 0 || skipped ||
         !failed(launch, launch.engine.driver().copy(
                             static_cast<std::byte *>(to),
                             static_cast<const std::byte *>(from),
                             static_cast<size_t>(bytes)));
}

//===-- The launch --------------------------------------------------------===//

static Result<LoadedCode *>
codeOf(Engine &engine, const std::shared_ptr<const DeviceCode> &code) {
  auto isGone = [](const auto &loaded) { return loaded.second.code.expired(); };
  auto known = engine.loaded.find(code.get());
  bool isNew = known == engine.loaded.end();
  if (!isNew && isGone(*known))
    engine.loaded.erase(known); // another one was there
  // Unloading waits, which would spoil a graph.
  if (isNew && !engine.memory.isCapturing())
    std::erase_if(engine.loaded, isGone);
  LoadedCode &loaded = engine.loaded[code.get()];
  if (!loaded.module) {
    auto module = engine.driver().load(*code);
    if (!module)
      return module.error();
    loaded = {code, *module, nullptr, {}, {}};
  }
  bool tiles = std::ranges::any_of(code->functions, &DeviceFunction::tiles);
  if (tiles && !loaded.needs) {
    auto needs = TapeNeeds::make(engine.memory, code->functions.size());
    if (!needs)
      return needs.error();
    loaded.needs = std::move(*needs);
  }
  return &loaded;
}

static Result<> prepare(Engine &engine, const DeviceCode &code) {
  if (auto done =
          engine.frame.reserve(8 * static_cast<size_t>(code.frameSlots));
      !done)
    return done;
  size_t bytes = needOffset + 8 * code.functions.size();
  if (engine.cells.bytes() >= bytes)
    return {};
  if (auto done = engine.cells.reserve(bytes); !done)
    return done;
  return clearCells(engine);
}

/// Nothing here has a destructor: errors arrive by longjmp.
[[gnu::noinline]] static bool callEntry(Launch &launch) {
  if (_setjmp(launch.escape) != 0)
    return false;
  launch.request.code->entry(&launch, nullptr, launch.request.arguments.data());
  return true;
}

/// The tape of the serial code is empty.
static Result<> resetSerialTape(Launch &launch) {
  if (!launch.code.pushes)
    return {};
  Engine &engine = launch.engine;
  uint64_t top = reinterpret_cast<uint64_t>(engine.serialTape.address());
  if (launch.pass == Pass::Measure)
    top = 0;
  return engine.driver().fill(engine.frame.address(), 8, &top, 8);
}

/// A dry run leaves the reverse sweep out: its loops shall find no iterations.
static Result<> clearFrame(Launch &launch) {
  static constexpr uint64_t zero = 0;
  auto bytes = 8 * static_cast<size_t>(launch.code.frameSlots);
  if (launch.pass != Pass::Measure || bytes == 0)
    return {};
  Engine &engine = launch.engine;
  return engine.driver().fill(engine.frame.address(), bytes, &zero, 8);
}

static Result<> prepareFrame(Launch &launch) {
  if (launch.pass == Pass::Count)
    return {};
  if (auto done = clearFrame(launch); !done)
    return done;
  return resetSerialTape(launch);
}

static Result<> pass(Launch &launch) {
  if (auto done = prepareFrame(launch); !done)
    return done;
  Interruptible host;
  InterruptScope scope(
      host, [](void *left) { longjmp(static_cast<Launch *>(left)->escape, 1); },
      &launch);
  bool isDone = callEntry(launch);
  if (host.isInterrupted() || launch.failure.code == ErrorCode::Interrupted)
    return interruptedFailure(launch.request.code->name);
  if (!isDone)
    return launch.failure;
  return {};
}

/// `sizes`, and what functions have counted.
static TapeSizes largest(const DeviceCode &code, TapeSizes sizes,
                         std::span<const uint64_t> needs) {
  uint64_t serial = 0; // each of them tells what all before it need as well
  for (size_t k = 0; k < needs.size(); ++k) {
    const DeviceFunction &function = code.functions[k];
    if (function.serial && function.pushes)
      sizes.serialSite = function.tapeSite;
    if (function.serial)
      serial = std::max(serial, needs[k]);
    else if (needs[k] > sizes.thread) {
      sizes.thread = needs[k];
      sizes.threadSite = function.tapeSite;
    }
  }
  sizes.serial += serial;
  return sizes;
}

/// Asks the host code alone, without a wait.
static Result<TapeSizes> count(Launch &&launch) {
  if (auto done = pass(launch); !done)
    return done.error();
  return launch.counted;
}

/// Runs what decides how large tapes get, and waits for what they come to.
static Result<TapeSizes> measure(Launch &&launch) {
  Engine &engine = launch.engine;
  if (auto done = clearCells(engine); !done)
    return done.error();
  if (auto done = pass(launch); !done)
    return done.error();
  std::vector<uint64_t> needs(launch.code.functions.size());
  profile::Timed timed(waitFor("the sizes of tapes"));
  if (auto done = engine.driver().download(
          needs.data(), engine.cells.address() + needOffset, 8 * needs.size());
      !done)
    return done.error();
  TapeSizes sizes = largest(launch.code, launch.counted, needs);
  sizes.threads = std::max(sizes.threads, launch.tapeThreads);
  return sizes;
}

/// Bytes of one lane, as far as the host knows yet.
static size_t deepestTile(const DeviceCode &code, const LoadedCode &loaded) {
  size_t most = 0;
  for (size_t k = 0; k < code.functions.size(); ++k)
    if (code.functions[k].tiles)
      most = std::max<size_t>(most, 4 * loaded.needs->onHost(k)->rows);
  return most;
}

/// Bytes for the tapes of a launch; those of other launches give way.
static size_t bytesForTapes(const Engine &engine,
                            const LaunchRequest &request) {
  if (request.tapeBudget)
    return request.tapeBudget;
  size_t held = engine.tapes.bytes() + engine.serialTape.bytes() +
                engine.tiles.heapBytes();
  return (engine.memory.budget.left() + held) / 8 * 7;
}

static BudgetShares sharesOf(const DeviceCode &code, size_t bytes,
                             size_t threads) {
  auto pushes = [&](bool serial) {
    return std::ranges::any_of(code.functions, [&](const auto &function) {
      return function.pushes && function.serial == serial;
    });
  };
  if (pushes(true) && pushes(false))
    bytes /= 2;
  return {bytes / threads, bytes};
}

/// How many threads have a share is known when they have been counted once.
/// What is not in loops is not a part of the shares.
static Result<TapeSizes>
measureShares(Engine &engine, const LaunchRequest &request,
              const std::function<Result<TapeSizes>(BudgetShares)> &measure) {
  size_t bytes = bytesForTapes(engine, request), warp = warpOf(engine);
  size_t threads =
      static_cast<size_t>(engine.driver().properties().residentThreads);
  BudgetShares shares = sharesOf(*request.code->device, bytes, threads);
  for (int corrections = 0;;) {
    auto needs = measure(shares);
    if (!needs)
      return needs;
    needs->shares = shares;
    size_t counted = std::max(wholeWarps(needs->threads, warp), warp);
    uint64_t least = needs->serial + warp * needs->thread;
    if (counted < threads) {
      threads = counted;
      shares = sharesOf(*request.code->device, bytes, threads);
    } else if (least <= bytes || corrections == 2) {
      return needs;
    } else {
      ++corrections;
      uint64_t excess = least - bytes;
      shares.serial -= std::min(shares.serial, excess);
      shares.thread -= std::min(shares.thread, excess / warp + 8);
    }
  }
}

const TapeSizes *CountedSizes::find(std::span<const uint64_t> from) const {
  auto found = std::ranges::find_if(last, [&](const auto &known) {
    return std::ranges::equal(known.first, from);
  });
  return from.empty() || found == last.end() ? nullptr : &found->second;
}

void CountedSizes::keep(std::span<const uint64_t> from,
                        const TapeSizes &sizes) {
  constexpr size_t most = 16;
  if (from.empty())
    return;
  std::erase_if(last, [&](const auto &known) {
    return std::ranges::equal(known.first, from);
  });
  if (last.size() == most)
    last.pop_front();
  last.emplace_back(std::vector(from.begin(), from.end()), sizes);
}

/// What the host knows is enough, and may be more than it takes: where memory
/// has no room for that, all tapes are measured.
static Result<TapeSizes> reserve(Engine &engine, const LaunchRequest &request,
                                 const DeviceCode &code, LoadedCode &loaded) {
  auto launch = [&](Pass pass, bool trustsHost,
                    BudgetShares shares = {}) -> Launch {
    return {engine, request, code, loaded, pass, 0, 0, 0, shares, trustsHost};
  };
  auto measured = [&](bool trustsHost) {
    if (!request.code->fitsBudget)
      return measure(launch(Pass::Measure, trustsHost));
    return measureShares(engine, request, [&](BudgetShares shares) {
      return measure(launch(Pass::Measure, trustsHost, shares));
    });
  };
  if (!code.pushes)
    return TapeSizes();
  if (const TapeSizes *known = loaded.counted.find(request.countedFrom)) {
    TapeSizes needs = *known;
    if (reserve(engine, request, needs))
      return needs;
  }
  bool tells =
      std::ranges::any_of(code.functions, [](const DeviceFunction &function) {
        return function.needWord >= 0;
      });
  for (bool trustsHost = tells;; trustsHost = false) {
    bool isTold = trustsHost && code.knowsNeeds && !request.code->fitsBudget;
    auto needs =
        isTold ? count(launch(Pass::Count, true)) : measured(trustsHost);
    if (!needs)
      return needs;
    loaded.counted.keep(request.countedFrom, *needs);
    auto done = reserve(engine, request, *needs);
    if (done || !trustsHost)
      return done ? needs : done.error();
  }
}

static Result<LaunchReport> launchLocked(Engine &engine,
                                         const LaunchRequest &request) {
  const DeviceCode &code = *request.code->device;
  Result<LoadedCode *> loaded = codeOf(engine, request.code->device);
  if (!loaded)
    return loaded.error();
  if (auto done = prepare(engine, code); !done)
    return done.error();
  auto needs = reserve(engine, request, code, **loaded);
  if (!needs) {
    if (request.isUntouched)
      *request.isUntouched = true;
    return needs.error();
  }
  if (code.prints) // what measures has cleared the cells
    if (auto done = openMessages(engine); !done)
      return done.error();
  Launch real{engine,         request,       code,
              **loaded,       Pass::Run,     needs->thread,
              needs->threads, needs->serial, needs->shares};
  if (auto done = pass(real); !done)
    return done.error();
  bool tiles = std::ranges::any_of(code.functions, &DeviceFunction::tiles);
  return LaunchReport{
      .tapeBytes = std::max(
          {real.tapeBytes, size_t(needs->serial), deepestTile(code, **loaded)}),
      .allBytes = needs->serial + real.tapeBytes * real.tapeThreads +
                  (tiles ? engine.tiles.heapBytes() : 0)};
}

Result<LaunchReport> launch(Engine &engine, const LaunchRequest &request) {
  ForeignWork work;
  std::lock_guard lock(engine.mutex);
  bool isSeries = engine.driver().beginSeries();
  Result<LaunchReport> report = launchLocked(engine, request);
  Result<> ended = isSeries ? engine.driver().endSeries() : Result<>();
  return report && !ended ? ended.error() : report;
}

} // namespace costate::runtime::gpu

using costate::runtime::Launch;

extern "C" {

void costate::runtime::costate_device_run(Launch *launch, int64_t function,
                                          uint64_t *words, int64_t workItems) {
  if (!gpu::run(*launch, function, words, workItems))
    longjmp(launch->escape, 1);
}

void costate::runtime::costate_device_begin_range(Launch *launch,
                                                  const int64_t *extents,
                                                  int64_t rank) {
  launch->extents = {extents, static_cast<size_t>(rank)};
}

uint64_t costate::runtime::costate_device_read(Launch *launch, int64_t slot) {
  uint64_t bits = 0;
  if (!gpu::read(*launch, slot, bits))
    longjmp(launch->escape, 1);
  return bits;
}

void costate::runtime::costate_device_copy(Launch *launch, void *to,
                                           const void *from, int64_t bytes) {
  if (!gpu::copy(*launch, to, from, bytes))
    longjmp(launch->escape, 1);
}

} // extern "C"
