#pragma once
/// What a fork may not cut in two.

#include "base/Result.h"

#include <atomic>
#include <cstdint>

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
  static void enter();
  static void leave();
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
