#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <new>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

namespace costate::runtime::cpu {

using Clock = std::chrono::steady_clock;

/// Whoever waits looks around for so long before sleeping.
static constexpr std::chrono::microseconds awakeFor{50};
/// Where threads cannot be made, that is tried again so much later.
static constexpr std::chrono::seconds retryAfter{1};

static constexpr std::chrono::milliseconds askAfter{100};

namespace {
/// Lives in the frame of its caller.
struct Job {
  const std::function<void(int)> &work;
  const int count;
  std::atomic<int> next = 0;
  std::atomic<int> helpers = 0; ///< at work; changes while the team is locked
  Job *following = nullptr;

  bool isOpen() const { return next.load(std::memory_order_relaxed) < count; }
  void takePart() {
    for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      work(i);
  }
};

/// No signal of the program is handled by the threads made meanwhile.
class NoSignals {
public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int fault :
         {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGURG})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};
} // namespace

template <class Condition> static bool soon(const Condition &condition) {
  for (Clock::time_point end = Clock::now() + awakeFor; Clock::now() < end;) {
    for (int i = 0; i < 32; ++i)
      if (condition())
        return true;
    std::this_thread::yield();
  }
  return condition();
}

struct ThreadPool::Team {
  explicit Team(int helpers) { threads.reserve(helpers); }

  void add(Job &job);
  void finish(Job &job, Interruptible *asked);
  void enlarge(int wanted);
  void waitUntilBegun();
  void help();
  void stop();

  const uint32_t forks = forkCount();

private:
  Job *openJob();

  std::mutex mutex; ///< guards what follows
  std::condition_variable posted, left;
  std::atomic<uint32_t> jobsPosted = 0;
  std::atomic<int> begun = 0; ///< threads
  Job *jobs = nullptr;
  bool stopping = false;
  std::vector<std::thread> threads;
  Clock::time_point retryAt = Clock::time_point::min();
};

Job *ThreadPool::Team::openJob() {
  Job *job = jobs;
  while (job && !job->isOpen())
    job = job->following;
  return job;
}

void ThreadPool::Team::enlarge(int wanted) {
  std::lock_guard lock(mutex);
  if (std::ssize(threads) >= wanted || Clock::now() < retryAt)
    return;
  NoSignals none;
  try {
    while (std::ssize(threads) < wanted)
      threads.emplace_back([this] { help(); });
  } catch (const std::system_error &) {
    retryAt = Clock::now() + retryAfter;
  } catch (const std::bad_alloc &) {
    retryAt = Clock::now() + retryAfter;
  }
  waitUntilBegun();
}

/// glibc ends the process if there is no memory for what a thread has of its
/// own when it begins: no thread is still to begin when memory ends later.
void ThreadPool::Team::waitUntilBegun() {
  const int made = static_cast<int>(threads.size());
  for (int ready; (ready = begun.load()) < made;)
    begun.wait(ready);
}

void ThreadPool::Team::add(Job &job) {
  {
    std::lock_guard lock(mutex);
    job.following = jobs;
    jobs = &job;
    ++jobsPosted;
  }
  for (int i = 1; i < job.count; ++i)
    posted.notify_one();
}

void ThreadPool::Team::finish(Job &job, Interruptible *asked) {
  soon([&] { return job.helpers.load() == 0; });
  std::unique_lock lock(mutex);
  Job **place = &jobs;
  while (*place != &job)
    place = &(*place)->following;
  *place = job.following;
  while (
      !left.wait_for(lock, askAfter, [&] { return job.helpers.load() == 0; }))
    if (asked) {
      lock.unlock();
      asked->mustEnd();
      lock.lock();
    }
}

void ThreadPool::Team::help() {
  Busy::serve();
  ++begun;
  begun.notify_one();
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (Job *job = openJob()) {
      ++job->helpers;
      lock.unlock();
      job->takePart();
      lock.lock();
      if (--job->helpers == 0)
        left.notify_all();
      continue;
    }
    const uint32_t seen = jobsPosted;
    lock.unlock();
    soon([&] { return jobsPosted.load() != seen; });
    lock.lock();
    posted.wait(lock, [&] { return stopping || jobsPosted.load() != seen; });
  }
}

void ThreadPool::Team::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  posted.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

ThreadPool::~ThreadPool() {
  if (!team || team->forks != forkCount())
    return; // a team of the parent has no threads here
  team->stop();
  delete team;
}

ThreadPool::Team *ThreadPool::currentTeam() try {
  std::lock_guard lock(mutex);
  if (!team || team->forks != forkCount())
    team = new Team(helpers);
  return team;
} catch (const std::bad_alloc &) {
  return nullptr;
}

void ThreadPool::run(int count, const std::function<void(int)> &work,
                     Interruptible *asked) {
  Team *helping = helpers > 0 && count > 1 ? currentTeam() : nullptr;
  Job job{work, count};
  if (!helping)
    return job.takePart();
  helping->enlarge(std::min(helpers, count - 1));
  helping->add(job);
  job.takePart();
  helping->finish(job, asked);
}

int processorCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace costate::runtime::cpu
