#pragma once
/// A running launch on the CPU.

#include "runtime/Device.h"
#include "runtime/Interrupt.h"
#include "runtime/cpu/BlockPool.h"
#include "runtime/cpu/ShadowMemory.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/Worker.h"

#include <atomic>
#include <limits>
#include <mutex>

namespace costate::runtime::cpu {

/// What all launches of one device share.
struct Engine {
  Engine(int threads, size_t memoryLimit)
      : threads(threads), budget(memoryLimit), blocks(budget), pool(budget),
        team(threads) {}
  /// Gives the memory of everything idle back.
  void trim() {
    pool.trim();
    blocks.shrink(0);
  }

  const int threads;
  MemoryBudget budget;
  BlockPool blocks;
  WorkerPool pool;
  ThreadPool team;
};

/// Bytes for all tapes of a launch together.
size_t tapeBudgetOf(const Engine &engine, const LaunchRequest &request);

/// Runs `request` from begin to end. If it fails and `code->growsTape`, the
/// adjoints are as they were.
Result<LaunchReport> launch(Engine &engine, const LaunchRequest &request);

/// Work items per chunk of a range, a multiple of `lanes` if there are enough;
/// does not depend on the number of threads.
int64_t chunkSize(int64_t workItems, bool deterministic, int64_t lanes);

} // namespace costate::runtime::cpu

namespace costate::runtime {

/// One pass over the code of a launch. Failures of several chunks: the one of
/// the lowest chunk counts.
struct Launch {
  Launch(cpu::Engine &engine, const LaunchRequest &request, bool dryRun,
         cpu::WorkerPool &workers, int runners, int sharers,
         size_t tapeBytes = 0)
      : engine(engine), request(request), dryRun(dryRun), workers(workers),
        runners(runners), sharers(sharers), tapeBytes(tapeBytes),
        tapeBudget(cpu::tapeBudgetOf(engine, request)) {}

  cpu::Engine &engine;
  const LaunchRequest &request;
  const bool dryRun;        ///< forward sweeps only, to size the tapes
  cpu::WorkerPool &workers; ///< for chunks
  const int runners;        ///< most workers at once
  const int sharers;        ///< so many at most have tapes at once
  const size_t tapeBytes;   ///< that every worker starts with
  const size_t tapeBudget;  ///< for all of them together
  cpu::CpuWorker *serial = nullptr;
  cpu::AddLog *additions = nullptr;
  cpu::ShadowMemory *shadow = nullptr; ///< if arrays are watched
  std::span<const int64_t> extents;    ///< debug: of the range that runs
  std::span<const CopiedArray> copied; ///< of the range that comes next
  std::atomic<size_t> tapePeak = 0;    ///< of the chunks' workers
  Interruptible interruptible;

  void fail(int64_t chunk, Failure reason);
  /// Fails if the program has ended it, whatever else has happened.
  void noteInterrupt();
  void noteTape(size_t bytes);
  bool failed() const { return hasFailed.load(std::memory_order_acquire); }
  const Failure &reason() const { return failure; }

private:
  std::atomic<bool> hasFailed = false;
  std::mutex mutex;
  int64_t failedChunk = std::numeric_limits<int64_t>::max();
  Failure failure{ErrorCode::Internal, ""};
};

} // namespace costate::runtime
