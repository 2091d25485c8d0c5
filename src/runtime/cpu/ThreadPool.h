#pragma once
/// The threads of a device.

#include "base/Fork.h"
#include "runtime/Interrupt.h"

#include <functional>

namespace costate::runtime::cpu {

/// Threads are made when they are first needed, and anew in a process that was
/// forked. Where the system gives no more, those that are there do the work.
class ThreadPool {
public:
  /// `threads` counts the one that calls `run`.
  explicit ThreadPool(int threads) : helpers(threads - 1) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return helpers + 1; }
  /// Calls `work`, which must not throw, with 0 to `count` - 1, and returns
  /// when all have returned. Safe to call from several threads, which take
  /// part in their own work only. Asks `asked` while it waits.
  void run(int count, const std::function<void(int)> &work,
           Interruptible *asked = nullptr);

private:
  struct Team;
  Team *currentTeam();

  const int helpers;
  Mutex mutex;
  Team *team = nullptr;
};

/// Of the processors that this process may use.
int processorCount();

} // namespace costate::runtime::cpu
