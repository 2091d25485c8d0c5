#pragma once
/// Workers: what a thread needs while it runs compiled code.

#include "base/Fork.h"
#include "code/KernelCode.h"
#include "runtime/cpu/AddLog.h"
#include "runtime/cpu/TapeArena.h"

#include <csetjmp>
#include <memory>
#include <vector>

namespace costate::runtime::cpu {

struct CpuWorker : Worker {
  explicit CpuWorker(MemoryBudget &budget)
      : Worker{nullptr, nullptr, nullptr, -1, false, false, nullptr, INT64_MAX},
        tape(budget) {}

  /// Empties the tape and shows compiled code its first `bytes`; the rest of
  /// the capacity is handed out by costate_tape_grow, so that `visible` tells
  /// what a launch has needed.
  void reset(size_t bytes);
  size_t tapeUsed() const { return static_cast<size_t>(tapeTop - tape.base()); }
  /// Room for `bytes` more; false if memory runs out.
  bool grow(size_t bytes);

  TapeArena tape;
  size_t visible = 0;
  Launch *launch = nullptr;
  AddLog::Writer additions;
  int64_t chunk = -1; ///< -1: serial code
  int runner = 0;     ///< those that work on a range at a time are numbered
  jmp_buf escape;     ///< the way out of compiled code

private:
  void show(size_t bytes);
};

/// Leaves the compiled code that the CpuWorker `worker` runs.
void leaveCompiled(void *worker);

/// Idle workers and logs. Safe to use from several threads.
class WorkerPool {
public:
  explicit WorkerPool(MemoryBudget &budget) : budget(budget) {}
  std::unique_ptr<CpuWorker> take();
  void put(std::unique_ptr<CpuWorker> worker);
  std::unique_ptr<AddLog> takeLog();
  void putLog(std::unique_ptr<AddLog> log);
  /// Gives the memory of everything idle back.
  void trim();

private:
  MemoryBudget &budget;
  Mutex mutex;
  std::vector<std::unique_ptr<CpuWorker>> workers;
  std::vector<std::unique_ptr<AddLog>> logs;
};

} // namespace costate::runtime::cpu
