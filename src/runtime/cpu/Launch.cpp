#include "runtime/cpu/Launch.h"

#include "runtime/Text.h"
#include "runtime/cpu/Snapshot.h"

namespace costate::runtime {

void Launch::fail(int64_t chunk, Failure reason) {
  std::lock_guard lock(mutex);
  if (chunk >= failedChunk)
    return;
  failedChunk = chunk;
  failure = std::move(reason);
  hasFailed.store(true, std::memory_order_release);
}

void Launch::noteInterrupt() {
  constexpr int64_t beforeAll = -2;
  if (interruptible.isInterrupted())
    fail(beforeAll, interruptedFailure(request.code->name));
}

void Launch::noteTape(size_t bytes) {
  size_t seen = tapePeak.load();
  while (seen < bytes && !tapePeak.compare_exchange_weak(seen, bytes)) {
  }
}

} // namespace costate::runtime

namespace costate::runtime::cpu {

size_t tapeBudgetOf(const Engine &engine, const LaunchRequest &request) {
  if (request.tapeBudget)
    return request.tapeBudget;
  // Tapes grow in steps; buffers of the launch come out of the same memory.
  return request.code->fitsBudget ? engine.budget.left() / 8 * 7 : INT64_MAX;
}

/// Adjoints up to this size are copied before a launch that may run out of
/// memory; for larger ones the launch measures its tapes first.
static constexpr size_t snapshotLimit = 1u << 20;

namespace {
/// Takes a serial worker, and a log if need be, for as long as it lives.
class Resources {
public:
  Resources(Engine &engine, bool deterministic, ShadowMemory *shadow)
      : engine(engine), shadow(shadow), serial(engine.pool.take()),
        log(deterministic ? engine.pool.takeLog() : nullptr) {}
  ~Resources() {
    engine.pool.put(std::move(serial));
    if (log)
      engine.pool.putLog(std::move(log));
  }

  Engine &engine;
  ShadowMemory *const shadow; ///< null if no array is watched
  std::unique_ptr<CpuWorker> serial;
  std::unique_ptr<AddLog> log;
};

/// What one pass has needed, in bytes.
struct Needs {
  size_t serial = 0;
  size_t chunks = 0;
};
} // namespace

/// Nothing here has a destructor: errors arrive by longjmp.
[[gnu::noinline]] static void callEntry(Launch &launch) {
  if (_setjmp(launch.serial->escape) == 0)
    launch.request.code->entry(&launch, launch.serial,
                               launch.request.arguments.data());
}

static Result<Needs> runPass(Launch &launch, Resources &resources,
                             size_t serialBytes = 0) {
  CpuWorker &serial = *resources.serial;
  launch.serial = &serial;
  launch.additions = resources.log.get();
  launch.shadow = resources.shadow;
  serial.launch = &launch;
  serial.chunk = -1;
  serial.tapeBudget = static_cast<int64_t>(launch.tapeBudget);
  serial.reset(serialBytes);
  {
    InterruptScope scope(launch.interruptible, leaveCompiled, &serial);
    callEntry(launch);
  }
  launch.noteInterrupt();
  if (launch.failed())
    return launch.reason();
#ifdef COSTATE_ASSERTIONS
  if (!launch.dryRun && serial.tapeUsed() != 0)
    return Failure{
        ErrorCode::Internal,
        "kernel `" + launch.request.code->name +
            "`: the tape of its serial code is not empty at the end; "
            "this is a defect of Costate"};
#endif
  return Needs{serial.visible, launch.tapePeak.load()};
}

static Result<LaunchReport> runOnce(Engine &engine,
                                    const LaunchRequest &request,
                                    Resources &resources, int runners) {
  Launch launch(engine, request, false, engine.pool, runners, runners);
  Result<Needs> needs = runPass(launch, resources);
  if (!needs)
    return needs.error();
  return LaunchReport{std::max(needs->serial, needs->chunks)};
}

/// Fills `workers` with up to `count` workers whose tapes hold `bytes`.
static int reserveWorkers(Engine &engine, WorkerPool &workers, int count,
                          size_t bytes) {
  int reserved = 0;
  for (; reserved < count; ++reserved) {
    std::unique_ptr<CpuWorker> worker = engine.pool.take();
    bool fits = worker->tape.reserve(bytes);
    if (!fits) {
      engine.trim();
      fits = worker->tape.reserve(bytes);
    }
    if (!fits) {
      engine.pool.put(std::move(worker));
      break;
    }
    workers.put(std::move(worker));
  }
  return reserved;
}

namespace {
struct Attempt {
  Result<LaunchReport> report;
  bool clean = true; ///< if it failed, no adjoint has changed
};
} // namespace

/// Measures the tapes without writing an adjoint, then runs on workers that
/// have them, fewer than there are threads if memory is short.
static Attempt runMeasured(Engine &engine, const LaunchRequest &request,
                           Resources &resources, int runners) {
  Launch dry(engine, request, true, engine.pool, runners, runners);
  Result<Needs> needs = runPass(dry, resources);
  if (!needs)
    return {needs.error()};
  WorkerPool workers(engine.budget);
  int count = reserveWorkers(engine, workers, runners, needs->chunks);
  if (count == 0)
    return {
        Failure{ErrorCode::OutOfMemory,
                "kernel `" + request.code->name +
                    "`: out of memory for the values saved for its gradient: " +
                    bytesText(needs->chunks) + " per thread, limit " +
                    bytesText(engine.budget.limit()) +
                    "; other launches hold the rest"}};
  Launch real(engine, request, false, workers, count, runners, needs->chunks);
  Result<Needs> used = runPass(real, resources, needs->serial);
  for (int i = 0; i < count; ++i)
    engine.pool.put(workers.take());
  if (!used)
    return {used.error(), false};
  return {LaunchReport{std::max(needs->serial, needs->chunks)}};
}

static size_t totalBytes(std::span<const Buffer> buffers) {
  size_t bytes = 0;
  for (const Buffer &buffer : buffers)
    bytes += buffer.bytes;
  return bytes;
}

/// Whether tapes may not fit: threads that share a small budget may lack even
/// those of code that does not grow them. Code without records knows no dry
/// run, and would write adjoints in it.
static bool mayRunOut(const LaunchRequest &request, int runners) {
  const KernelCode &code = *request.code;
  if (code.recordBytes == 0)
    return false;
  return code.growsTape || (request.tapeBudget &&
                            request.tapeBudget / static_cast<size_t>(runners) <
                                code.smallTapes());
}

static Attempt runProtected(Engine &engine, const LaunchRequest &request,
                            ShadowMemory *shadow, int runners) {
  Resources resources(engine, request.deterministic, shadow);
  bool measures = mayRunOut(request, runners);
  bool mayFail = measures || request.deterministic;
  if (mayFail && totalBytes(request.adjoints) <= snapshotLimit)
    if (std::unique_ptr<Snapshot> snapshot =
            Snapshot::take(engine.blocks, request.adjoints)) {
      Attempt attempt{runOnce(engine, request, resources, runners)};
      if (!attempt.report)
        snapshot->restore();
      return attempt;
    }
  if (measures)
    return runMeasured(engine, request, resources, runners);
  return {runOnce(engine, request, resources, runners), false};
}

static Result<std::unique_ptr<ShadowMemory>>
makeShadow(Engine &engine, const LaunchRequest &request) {
  if (request.code->watched.empty())
    return std::unique_ptr<ShadowMemory>();
  auto shadow = ShadowMemory::make(engine.budget, request);
  if (shadow)
    return shadow;
  engine.trim();
  return ShadowMemory::make(engine.budget, request);
}

Result<LaunchReport> launch(Engine &engine, const LaunchRequest &request) {
  auto shadow = makeShadow(engine, request);
  if (!shadow)
    return shadow.error();
  if (request.adjoints.empty()) {
    Resources resources(engine, request.deterministic, shadow->get());
    return runOnce(engine, request, resources, engine.threads);
  }
  auto outOfMemory = [](Attempt &attempt) {
    return !attempt.report &&
           attempt.report.error().code == ErrorCode::OutOfMemory;
  };
  Attempt attempt =
      runProtected(engine, request, shadow->get(), engine.threads);
  bool maySaveLess =
      request.tapeBudget && !request.code->fitsBudget && !request.isLastResort;
  if (outOfMemory(attempt) && attempt.clean && !maySaveLess) {
    // One worker alone may have the memory that several could not share.
    engine.trim();
    attempt = runProtected(engine, request, shadow->get(), 1);
  }
  if (outOfMemory(attempt))
    engine.trim();
  // Who refuses does so before any gradient is written.
  if (attempt.report || attempt.clean ||
      attempt.report.error().code == ErrorCode::CannotReplay)
    return attempt.report;
  return Failure{attempt.report.error().code,
                 attempt.report.error().text +
                     "; the gradients that this launch wrote are not usable"};
}

} // namespace costate::runtime::cpu
