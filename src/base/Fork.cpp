#include "base/Fork.h"

#include <chrono>
#include <pthread.h>
#include <thread>

namespace costate {
namespace {

constexpr std::chrono::seconds patience{1};

std::atomic<int> busyThreads = 0;
std::atomic<bool> forking = false;
std::atomic<uint32_t> forks = 0;
bool givenUp = false; ///< on waiting; written while `forking`
std::atomic<bool> torn = false;
thread_local int depth = 0;
thread_local bool forksNow = false;

void waitForBusy() {
  const int own = depth > 0;
  auto end = std::chrono::steady_clock::now() + patience;
  while (busyThreads.load() > own) {
    givenUp = std::chrono::steady_clock::now() >= end;
    if (givenUp)
      return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  givenUp = false;
}

void beforeFork() {
  while (forking.exchange(true))
    forking.wait(true);
  forksNow = true;
  waitForBusy();
}

void open() {
  forksNow = false;
  forking = false;
  forking.notify_all();
}

void afterForkInChild() {
  ++forks;
  busyThreads = depth > 0;
  torn = torn || givenUp;
  open();
}

const int watched = pthread_atfork(beforeFork, open, afterForkInChild);

} // namespace

void Busy::enter() {
  if (depth++ > 0)
    return;
  for (;;) {
    ++busyThreads;
    if (!forking.load() || forksNow)
      return;
    --busyThreads;
    forking.wait(true);
  }
}

void Busy::leave() {
  if (--depth == 0)
    --busyThreads;
}

void Busy::serve() { depth = 1; }

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
