#include "base/Fork.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace costate {
namespace {

using Clock = std::chrono::steady_clock;

/// Lets nobody in while it is closed.
class Gate {
public:
  bool tryEnter(bool mayAlways) {
    ++inside;
    if (mayAlways || !closed.load())
      return true;
    --inside;
    return false;
  }
  void leave() { --inside; }

  bool close() { return !closed.exchange(true); }
  void open() {
    closed = false;
    closed.notify_all();
  }
  void waitUntilOpen() { closed.wait(true); }

  /// Whether all threads but `own` have left it until `end`.
  bool isLeft(int own, Clock::time_point end) {
    while (inside.load() > own) {
      if (Clock::now() >= end)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
  }
  void restart(int own) {
    inside = own;
    open();
  }

private:
  std::atomic<int> inside = 0;
  std::atomic<bool> closed = false;
};

//===-- Forks -------------------------------------------------------------===//

constexpr std::chrono::seconds forkPatience{1};

constinit Gate forkGate;
std::atomic<uint32_t> forks = 0;
bool givenUp = false; ///< on waiting; written while a thread forks
std::atomic<bool> torn = false;
thread_local int depth = 0;
thread_local bool forksNow = false;

void beforeFork() {
  while (!forkGate.close())
    forkGate.waitUntilOpen();
  forksNow = true;
  givenUp = !forkGate.isLeft(depth > 0, Clock::now() + forkPatience);
}

void afterForkInParent() {
  forksNow = false;
  forkGate.open();
}

//===-- The end of the process --------------------------------------------===//

constexpr std::chrono::seconds endPatience{3};
/// Somebody may wait for a thread that waits for the end.
constexpr std::chrono::seconds longestStay{5};
constexpr std::chrono::seconds flushPatience{1};

constinit Gate endGate;
thread_local int foreignDepth = 0;
thread_local bool endsProcess = false;

struct EndWaits {
  Mutex mutex;
  std::vector<EndWait *> all;
};

EndWaits &endWaits() {
  static auto &waits = *new EndWaits;
  return waits;
}

/// Whoever reads may have locked a stream for long.
void flushOutput() {
  static std::atomic<bool> done = false;
  try {
    std::thread([] {
      std::cout.flush();
      std::fflush(nullptr);
      done = true;
    }).detach();
  } catch (const std::system_error &) {
    return;
  }
  for (auto end = Clock::now() + flushPatience; !done && Clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

bool waitsHaveEnded(EndWait::Moment end) {
  std::lock_guard lock(endWaits().mutex);
  bool all = true;
  for (EndWait *one : endWaits().all)
    all = one->wait(end) && all;
  return all;
}

namespace {

void atEnd(int status, void *) {
  if (!endGate.close())
    return;
  endsProcess = true;
  auto end = Clock::now() + endPatience;
  if (endGate.isLeft(foreignDepth > 0, end) && waitsHaveEnded(end))
    return;
  flushOutput();
  _exit(status);
}

/// The end of the process destroys first what its thread has of its own. What
/// is registered then comes before all that others have registered.
struct ThreadEnd {
  ~ThreadEnd() { on_exit(atEnd, nullptr); }
};

void watchMainThread() {
  static thread_local bool isWatched = false;
  if (std::exchange(isWatched, true) || gettid() != getpid())
    return;
  static thread_local ThreadEnd end;
  (void)&end;
}

//===-- Both --------------------------------------------------------------===//

void afterForkInChild() {
  ++forks;
  torn = torn || givenUp;
  forksNow = endsProcess = false;
  forkGate.restart(depth > 0);
  endGate.restart(foreignDepth > 0);
}

const bool watched = [] {
  watchMainThread();
  on_exit(atEnd, nullptr);
  return pthread_atfork(beforeFork, afterForkInParent, afterForkInChild) == 0;
}();

} // namespace

void Busy::enter() {
  if (depth++ > 0)
    return;
  while (!forkGate.tryEnter(forksNow))
    forkGate.waitUntilOpen();
}

void Busy::leave() {
  if (--depth == 0)
    forkGate.leave();
}

void Busy::serve() { depth = 1; }

void ForeignWork::enter() {
  if (foreignDepth++ > 0)
    return Busy::enter();
  watchMainThread();
  while (!endGate.tryEnter(endsProcess)) {
    std::this_thread::sleep_for(longestStay);
    endGate.open();
  }
  Busy::enter();
}

void ForeignWork::leave() {
  Busy::leave();
  if (--foreignDepth == 0)
    endGate.leave();
}

EndWait::EndWait(std::function<bool(Moment)> wait) : wait(std::move(wait)) {
  std::lock_guard lock(endWaits().mutex);
  endWaits().all.push_back(this);
}

EndWait::~EndWait() {
  std::lock_guard lock(endWaits().mutex);
  std::erase(endWaits().all, this);
}

uint32_t forkCount() { return forks.load(std::memory_order_relaxed); }

Result<> checkNotTorn() {
  if (!torn)
    return {};
  return Failure{ErrorCode::KernelFailed,
                 "this process was forked while another thread ran or compiled "
                 "a kernel, which took too long to wait for; fork when nothing "
                 "runs, or start processes by `exec` (`spawn` of Python's "
                 "multiprocessing)"};
}

bool Mutex::try_lock() {
  Busy::enter();
  const uint32_t now = forkCount() + 1;
  uint32_t seen = holder.load(std::memory_order_relaxed);
  if (seen != now &&
      holder.compare_exchange_strong(seen, now, std::memory_order_acquire))
    return true;
  Busy::leave();
  return false;
}

void Mutex::lock() {
  Busy::enter();
  const uint32_t now = forkCount() + 1;
  uint32_t seen = 0;
  while (!holder.compare_exchange_strong(seen, now, std::memory_order_acquire))
    if (seen == now) {
      holder.wait(now, std::memory_order_relaxed);
      seen = 0;
    }
}

void Mutex::unlock() {
  holder.store(0, std::memory_order_release);
  holder.notify_one();
  Busy::leave();
}

} // namespace costate
