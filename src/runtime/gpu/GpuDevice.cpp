#include "runtime/gpu/GpuDevice.h"

#include "base/Fork.h"

#include "runtime/Graph.h"
#include "runtime/gpu/CapturingDriver.h"
#include "runtime/gpu/GraphOfOthers.h"
#include "runtime/gpu/Launch.h"
#include "runtime/gpu/PinnedCopies.h"
#include "runtime/gpu/ValidatingDriver.h"

namespace costate::runtime::gpu {
namespace {

class GpuDevice final : public Device {
public:
  GpuDevice(DeviceInfo info, std::shared_ptr<Driver> driver,
            TapeBudget heapBudget, Sorting sorting)
      : deviceInfo(std::move(info)), sorting(sorting),
        engine(std::move(driver), deviceInfo.memoryLimit, heapBudget, sorting),
        copies(engine.memory) {}
  ~GpuDevice() override { engine.driver().endDropped(); }

  const DeviceInfo &info() const override { return deviceInfo; }

  Result<Buffer> allocate(size_t bytes) override {
    Result<Buffer> buffer = borrow(bytes);
    static constexpr uint8_t zero = 0;
    if (Result<> done = buffer ? fill(*buffer, &zero, 1) : Result<>(); !done)
      return done.error();
    return buffer;
  }
  Result<Buffer> borrow(size_t bytes) override {
    if (bytes == 0)
      return Buffer{};
    ForeignWork work;
    Result<std::byte *> address = at(Place::Aside, [&] {
      Result<std::byte *> made = engine.memory.allocate(bytes);
      if (made)
        return made;
      dropScratch();
      return engine.memory.allocate(bytes);
    });
    if (!address)
      return address.error();
    return Buffer{*address, bytes};
  }
  void release(Buffer buffer) override {
    ForeignWork work;
    if (buffer.address && !leaveToGraph(buffer))
      engine.memory.release(buffer.address, buffer.bytes);
  }
  Result<> adopt(Buffer buffer) override {
    ForeignWork work;
    return buffer.address ? engine.driver().adopt(buffer.address, buffer.bytes)
                          : Result<>();
  }
  void disown(Buffer buffer, bool waits) override {
    ForeignWork work;
    if (buffer.address)
      engine.driver().disown(buffer.address, waits);
  }
  HostCopies *hostCopies() override { return &copies; }
  MemoryUse memory() const override {
    const MemoryBudget &budget = engine.memory.budget;
    return {budget.current(), budget.peak()};
  }
  void resetPeak() override { engine.memory.budget.resetPeak(); }

  Result<> upload(Buffer to, const void *from) override {
    ForeignWork work;
    profile::Timed timed(copyOf("upload", to.bytes));
    return to.bytes ? engine.driver().upload(to.address, from, to.bytes)
                    : Result<>();
  }
  Result<> download(void *to, Buffer from) override {
    if (from.bytes == 0)
      return {};
    ForeignWork work;
    profile::Timed timed(copyOf("download", from.bytes));
    auto done = engine.driver().download(to, from.address, from.bytes);
    return done ? tapeFailure() : done;
  }
  Result<> copy(Rows to, Rows from) override {
    ForeignWork work;
    profile::Timed timed(copyOf("copy", to.size()));
    TimedByGpu byGpu(engine.driver(), copyOf("copy", to.size()));
    return to.size() ? at(Place::InGraph,
                          [&] {
                            return engine.driver().copy(
                                to.address, from.address, CopyShape(to, from));
                          })
                     : Result<>();
  }
  Result<> exchange(Rows one, Rows other) override;
  Result<> fill(Buffer buffer, const void *pattern,
                size_t patternBytes) override {
    ForeignWork work;
    profile::Timed timed(copyOf("fill", buffer.bytes));
    TimedByGpu byGpu(engine.driver(), copyOf("fill", buffer.bytes));
    return buffer.bytes
               ? at(Place::InGraph,
                    [&] {
                      return engine.driver().fill(buffer.address, buffer.bytes,
                                                  pattern, patternBytes);
                    })
               : Result<>();
  }

  Result<LaunchReport> launch(const LaunchRequest &request) override {
    engine.driver().counters().primalLaunches += request.isPrimal();
    if (uint64_t capture = engine.driver().captureOfOthers())
      return launchInGraph(capture, request);
    return gpu::launch(engine, request);
  }
  Result<> synchronize() override {
    ForeignWork work;
    profile::Timed timed(waitFor("all that is queued"));
    auto done = engine.driver().synchronize();
    return done ? tapeFailure() : done;
  }

  Result<> useStream(std::optional<void *> stream) override {
    ForeignWork work;
    std::lock_guard lock(engine.mutex); // not in the middle of a launch
    return engine.driver().useStream(stream);
  }
  Result<> letWait(void *stream) override {
    ForeignWork work;
    std::unique_lock lock(engine.mutex); // not in the middle of a launch
    Result<bool> waits = engine.driver().letWait(stream);
    lock.unlock();
    if (!waits)
      return waits.error();
    return *waits ? Result<>() : synchronize();
  }
  Result<std::shared_ptr<Graph>> capture(std::vector<Step> steps) override;
  Result<MeetingPlace> meetingPlace(int rank) override {
    return engine.driver().meetingPlace(rank);
  }
  Result<std::shared_ptr<Ranks>> join(const Meeting &meeting) override {
    return engine.driver().join(meeting);
  }

  Statistics statistics() const override {
    return engine.driver().counters().read();
  }
  void resetStatistics() override { engine.driver().counters().reset(); }

private:
  Result<> tapeFailure() {
    ForeignWork work;
    std::lock_guard lock(engine.mutex);
    Result<> done = engine.tiles.failure();
    for (const auto &[capture, weak] : graphsOfOthers)
      if (std::shared_ptr<GraphOfOthers> graph = weak.lock(); graph && done)
        done = graph->failure();
    return done;
  }

  /// Calls `act`; if somebody else captures the stream in use, elsewhere.
  template <class Act> auto at(Place place, const Act &act) -> decltype(act()) {
    if (!engine.driver().captureOfOthers())
      return act();
    std::lock_guard lock(engine.mutex);
    Excursion excursion(engine.driver(), place);
    if (!excursion.begun)
      return excursion.begun.error();
    auto done = act();
    Result<> back = excursion.end();
    return back || !done ? done : back.error();
  }
  Result<std::shared_ptr<GraphOfOthers>> graphOfOthers(uint64_t capture);
  Result<LaunchReport> launchInGraph(uint64_t capture,
                                     const LaunchRequest &request);
  bool leaveToGraph(Buffer buffer);

  /// Tapes can be made again.
  void dropScratch() {
    ForeignWork work;
    copies.trim();
    std::lock_guard lock(engine.mutex);
    engine.tapes.clear();
    engine.serialTape.clear();
    engine.partials.clear();
    engine.tiles.dropHeap();
  }

  Result<Rows> memoryBetween(const Rows &rows);
  Result<> rehearse(const std::vector<Step> &steps);
  Result<std::shared_ptr<Captured>> keep(const std::vector<Step> &steps);

  DeviceInfo deviceInfo;
  const Sorting sorting;
  Engine engine;
  PinnedCopies copies;
  /// By what captures them, while they are there.
  std::map<uint64_t, std::weak_ptr<GraphOfOthers>> graphsOfOthers;
};

//===-- Graphs ------------------------------------------------------------===//

using Kept = std::vector<std::shared_ptr<void>>;

/// While it lives, no launch has a larger budget.
class GraphBudget {
public:
  GraphBudget(Engine &engine, size_t bytes) : engine(engine) {
    engine.graphBudget = bytes;
  }
  ~GraphBudget() { engine.graphBudget = SIZE_MAX; }
  GraphBudget(const GraphBudget &) = delete;

private:
  Engine &engine;
};

/// What a driver has captured, and the scratch memory that it uses.
class GpuGraph final : public Graph {
public:
  GpuGraph(Engine &engine, Kept kept, std::shared_ptr<Captured> captured,
           size_t budget)
      : engine(engine), kept(std::move(kept)), captured(std::move(captured)),
        budget(budget), heapBytes(engine.tiles.heapBytes()) {}

  Result<> replay() override {
    ForeignWork work;
    std::lock_guard lock(engine.mutex); // not in the middle of a launch
    // Others may have had more, or dropped it to make room.
    if (auto done = engine.tiles.limitHeap(budget); !done)
      return done;
    if (auto done = engine.tiles.growHeap(heapBytes, budget); !done)
      return done;
    TimedByGpu byGpu(engine.driver(), [] {
      return profile::Span{profile::Kind::Device, "graph"};
    });
    return engine.driver().replay(*captured);
  }

private:
  Engine &engine;
  const Kept kept;
  const std::shared_ptr<Captured> captured;
  const size_t budget, heapBytes;
};

/// The launches of a graph find one heap.
size_t leastBudget(const std::vector<Step> &steps) {
  size_t least = SIZE_MAX;
  for (const Step &step : steps)
    if (auto *launch = std::get_if<KeptLaunch>(&step))
      if (launch->tapeBudget && !launch->adjoints.empty())
        least = std::min(least, launch->tapeBudget);
  return least;
}

Failure named(const KernelCode &code, const Failure &failure) {
  if (failure.code != ErrorCode::CannotCapture)
    return failure;
  return {ErrorCode::CannotCapture,
          "kernel `" + code.name + "` cannot be captured: " + failure.text};
}

Result<> named(const Step &step, Result<> done) {
  auto *launch = std::get_if<KeptLaunch>(&step);
  return done || !launch ? done : named(*launch->code, done.error());
}

Result<> GpuDevice::rehearse(const std::vector<Step> &steps) {
  for (const Step &step : steps)
    if (std::holds_alternative<KeptLaunch>(step))
      if (Result<> done = named(step, perform(*this, step)); !done)
        return done;
  return {};
}

Result<std::shared_ptr<Captured>>
GpuDevice::keep(const std::vector<Step> &steps) {
  if (Result<> begun = engine.memory.real->beginCapture(); !begun)
    return begun.error();
  Result<> done;
  for (size_t k = 0; k < steps.size() && done; ++k)
    done = named(steps[k], perform(*this, steps[k]));
  Result<std::shared_ptr<Captured>> captured = engine.memory.real->endCapture();
  return done ? captured : done.error();
}

Result<std::shared_ptr<Graph>> GpuDevice::capture(std::vector<Step> steps) {
  ForeignWork work;
  std::lock_guard lock(engine.mutex);
  CapturingDriver driver(*engine.memory.real);
  CaptureScope scope(engine.memory, driver);
  GraphBudget budget(engine, leastBudget(steps));
  if (Result<> rehearsed = rehearse(steps); !rehearsed)
    return rehearsed.error();
  driver.keep();
  Result<std::shared_ptr<Captured>> captured = keep(steps);
  if (!captured)
    return captured.error();
  return std::shared_ptr<Graph>(std::make_shared<GpuGraph>(
      engine, engine.memory.keepScratch(), *captured, engine.graphBudget));
}

//===-- Graphs of others --------------------------------------------------===//

Result<std::shared_ptr<GraphOfOthers>>
GpuDevice::graphOfOthers(uint64_t capture) {
  std::erase_if(graphsOfOthers,
                [](const auto &graph) { return graph.second.expired(); });
  if (std::shared_ptr<GraphOfOthers> known = graphsOfOthers[capture].lock())
    return known;
  auto made = std::make_shared<GraphOfOthers>(engine, sorting);
  if (Result<> given = engine.driver().giveToGraph(made); !given)
    return given.error();
  graphsOfOthers[capture] = made;
  return made;
}

Result<LaunchReport> GpuDevice::launchInGraph(uint64_t capture,
                                              const LaunchRequest &request) {
  ForeignWork work;
  std::lock_guard lock(engine.mutex);
  Result<std::shared_ptr<GraphOfOthers>> graph = graphOfOthers(capture);
  if (!graph)
    return graph.error();
  Result<LaunchReport> report = (*graph)->launch(engine, request);
  return report ? report : named(*request.code, report.error());
}

/// Whether `buffer` is for a graph that may use it.
bool GpuDevice::leaveToGraph(Buffer buffer) {
  uint64_t capture = engine.driver().captureOfOthers();
  if (!capture)
    return false;
  std::lock_guard lock(engine.mutex);
  Result<std::shared_ptr<GraphOfOthers>> graph = graphOfOthers(capture);
  if (!graph)
    return false;
  (*graph)->keep(buffer.address);
  engine.memory.budget.give(buffer.bytes);
  return true;
}

//===-- Exchanges ---------------------------------------------------------===//

/// For all of `rows`, or as many as there is room for.
Result<Rows> GpuDevice::memoryBetween(const Rows &rows) {
  size_t count = rows.count;
  Result<std::byte *> made = engine.memory.allocate(rows.size());
  while (!made && made.error().code == ErrorCode::OutOfMemory && count > 1) {
    count = (count + 1) / 2;
    made = engine.memory.allocate(rows.bytes * count);
  }
  if (!made)
    return made.error();
  return Rows(*made, rows.bytes, count, rows.bytes);
}

/// The first `count` of `rows`, or all; `rows` goes on after them.
Rows takeRows(Rows &rows, size_t count) {
  Rows first = rows;
  first.count = std::min(rows.count, count);
  rows.address += first.count * rows.pitch;
  rows.count -= first.count;
  return first;
}

Result<> GpuDevice::exchange(Rows one, Rows other) {
  if (one.size() == 0)
    return {};
  ForeignWork work;
  Result<Rows> room = memoryBetween(one);
  if (!room)
    return room.error();
  Result<> done;
  while (done && one.count > 0) {
    Rows here = takeRows(one, room->count),
         there = takeRows(other, room->count);
    Rows between = *room;
    between.count = here.count;
    done = copy(between, here);
    if (done)
      done = copy(here, there);
    if (done)
      done = copy(there, between);
  }
  engine.memory.release(room->address, room->size());
  return done;
}

} // namespace

Result<std::shared_ptr<Device>> openGpu(std::string name, std::string target,
                                        std::shared_ptr<Driver> driver,
                                        const GpuOptions &options) {
  if (options.validate)
    driver = validating(std::move(driver));
  size_t memoryLimit = options.memoryLimit;
  if (memoryLimit == 0)
    memoryLimit = driver->freeBytes() / 16 * 15;
  TapeBudget budget{
      std::min(options.tapeBudget.value_or(memoryLimit / 2), memoryLimit),
      options.tapeBudget.has_value()};
  DeviceInfo info{std::move(name),
                  driver->properties().residentThreads,
                  memoryLimit,
                  target,
                  driver->properties().isHost,
                  options.tapeBudget.value_or(0),
                  driver->properties().sharedPerBlock};
  return std::shared_ptr<Device>(std::make_shared<GpuDevice>(
      std::move(info), std::move(driver), budget, options.sorting));
}

} // namespace costate::runtime::gpu
