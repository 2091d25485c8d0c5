#pragma once
/// Launches that the program ends while they run.

#include "base/Result.h"

#include <atomic>
#include <pthread.h>

namespace costate::runtime {

/// Asked on the thread that launches, now and then while a launch takes long;
/// true ends it. May do what any function may do.
using InterruptCheck = bool (*)();
/// From here on; without one nothing of this file has an effect.
void setInterruptCheck(InterruptCheck check);

/// Work of one thread and of those that help it. The thread that makes it asks.
class Interruptible {
public:
  bool isInterrupted() const {
    return interrupted.load(std::memory_order_relaxed);
  }
  /// Whether those that work for it should stop. Asks if it is time for that.
  bool mustEnd();

private:
  bool isTimeToAsk() const;

  std::atomic<bool> interrupted = false;
  const pthread_t asker = pthread_self();
};

/// As long as it lives, compiled code that this thread runs is left by
/// `leave(data)`, a longjmp, when `work` must end.
class InterruptScope {
public:
  InterruptScope(Interruptible &work, void (*leave)(void *), void *data);
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;

  Interruptible &work;
  void (*const leave)(void *);
  void *const data;

private:
  InterruptScope *const around;
};

Failure interruptedFailure(const std::string &kernel);

} // namespace costate::runtime
