#include "runtime/cpu/Worker.h"

#include <algorithm>

namespace costate::runtime::cpu {

void CpuWorker::show(size_t bytes) {
  visible = bytes;
  tapeBase = tape.base();
  tapeEnd = tapeBase + visible;
}

void CpuWorker::reset(size_t bytes) {
  tapeTop = tape.base();
  show(std::min(bytes, tape.capacity()));
  workItem = -1;
  additions = {};
}

/// Small tapes double. Pages of large ones move without copying, so these grow
/// in finer steps, to waste less memory.
static size_t enlarged(size_t bytes) {
  constexpr size_t large = 16u << 20;
  return bytes < large ? 2 * bytes : bytes + bytes / 4;
}

bool CpuWorker::grow(size_t bytes) {
  size_t used = tapeUsed(), need = 0;
  size_t most = static_cast<size_t>(tapeBudget);
  if (__builtin_add_overflow(used, bytes, &need) || need > most)
    return false;
  size_t roomy = std::min(std::max({need, enlarged(visible), smallTape}), most);
  if (need > tape.capacity() && !tape.reserve(roomy) && !tape.reserve(need))
    return false;
  tapeTop = tape.base() + used;
  show(std::min(roomy, tape.capacity()));
  return true;
}

void leaveCompiled(void *worker) {
  longjmp(static_cast<CpuWorker *>(worker)->escape, 1);
}

std::unique_ptr<CpuWorker> WorkerPool::take() {
  {
    std::lock_guard lock(mutex);
    if (!workers.empty()) {
      std::unique_ptr<CpuWorker> worker = std::move(workers.back());
      workers.pop_back();
      return worker;
    }
  }
  return std::make_unique<CpuWorker>(budget);
}

void WorkerPool::put(std::unique_ptr<CpuWorker> worker) {
  std::lock_guard lock(mutex);
  workers.push_back(std::move(worker));
}

std::unique_ptr<AddLog> WorkerPool::takeLog() {
  std::lock_guard lock(mutex);
  if (logs.empty())
    return std::make_unique<AddLog>(budget);
  std::unique_ptr<AddLog> log = std::move(logs.back());
  logs.pop_back();
  return log;
}

void WorkerPool::putLog(std::unique_ptr<AddLog> log) {
  std::lock_guard lock(mutex);
  logs.push_back(std::move(log));
}

void WorkerPool::trim() {
  std::lock_guard lock(mutex);
  for (std::unique_ptr<CpuWorker> &worker : workers)
    worker->tape.release();
  logs.clear();
}

} // namespace costate::runtime::cpu
