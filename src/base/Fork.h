#pragma once
/// What neither a fork nor the end of the process may cut in two.

#include "base/Result.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

namespace costate {

/// As long as one lives, a fork by another thread waits, at most a second. So
/// in the child no work is half done.
class Busy {
public:
  Busy() { enter(); }
  ~Busy() { leave(); }
  Busy(const Busy &) = delete;
  Busy &operator=(const Busy &) = delete;

  /// Of a thread that works for others, which are busy, from here on.
  static void serve();

private:
  friend class Mutex;
  friend class ForeignWork;
  static void enter();
  static void leave();
};

/// Work with what is destroyed when the process ends: compilers and drivers.
/// The end waits for it, some seconds at most, and then does without destroying
/// anything. Other threads that want to begin meanwhile stay where they are.
class ForeignWork {
public:
  ForeignWork() { enter(); }
  ~ForeignWork() { leave(); }
  ForeignWork(const ForeignWork &) = delete;
  ForeignWork &operator=(const ForeignWork &) = delete;

private:
  static void enter();
  static void leave();
};

/// Of such work that threads of others do.
class EndWait {
public:
  using Moment = std::chrono::steady_clock::time_point;
  /// At the end `wait` is called, when nobody else works. It may wait until
  /// that moment; false if there is still work then.
  explicit EndWait(std::function<bool(Moment)> wait);
  ~EndWait();
  EndWait(const EndWait &) = delete;

private:
  friend bool waitsHaveEnded(Moment);
  const std::function<bool(Moment)> wait;
};

/// How often this process and those that it comes from were forked.
uint32_t forkCount();
/// A failure in a process that was forked in the middle of work that took too
/// long to wait for: what it shares with its parent may be half done.
Result<> checkNotTorn();

/// Held by busy threads only; one that a thread of the parent held when this
/// process was forked is free.
class Mutex {
public:
  void lock();
  bool try_lock();
  void unlock();

private:
  std::atomic<uint32_t> holder = 0; ///< 0: none; else the forks when taken + 1
};

} // namespace costate
