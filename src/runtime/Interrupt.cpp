#include "runtime/Interrupt.h"

#include "code/RuntimeFunctions.h"

#include "base/Fork.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

namespace costate::runtime {
namespace {

/// Whoever has worked for so many ticks is reminded at each further one.
constexpr std::chrono::milliseconds tick{100};
constexpr int patience = 3;
/// Without work for so many, the clock stands until there is some.
constexpr int idleTicks = 20;

/// Programs that do not know it ignore it.
constexpr int reminder = SIGURG;

std::atomic<InterruptCheck> interruptCheck = nullptr;
struct sigaction formerAction;

/// A thread that runs compiled code.
struct Runner {
  ~Runner();
  std::atomic<InterruptScope *> scope = nullptr;
  std::atomic<uint64_t> generation = 0; ///< of its outermost scope
  std::atomic<bool> isDue = false;
  pid_t thread = 0;
  uint32_t forks = 0;
  bool isKnown = false;
  Runner *next = nullptr;
  uint64_t seenGeneration = 0; ///< by the clock, as what follows
  int ticks = 0;
};
thread_local Runner runner;

/// Of one process: a fork has another one.
struct ReminderClock {
  std::atomic<bool> isAsleep = false;
  uint32_t forks = forkCount();
  Runner *runners = nullptr;
};
Mutex clockMutex; ///< guards the list
std::atomic<ReminderClock *> reminderClock = nullptr;

bool remind(Runner &runner) {
  bool works = runner.scope.load() != nullptr;
  uint64_t generation = runner.generation.load();
  bool isSame = works && generation == runner.seenGeneration;
  runner.ticks = isSame ? runner.ticks + 1 : 0;
  runner.seenGeneration = generation;
  if (runner.ticks >= patience)
    tgkill(getpid(), runner.thread, reminder);
  return works;
}

void runClock(ReminderClock *own) {
  Busy::serve(); // it holds up no fork, and no fork it
  for (int idle = 0;; ++idle) {
    std::this_thread::sleep_for(tick);
    {
      std::lock_guard lock(clockMutex);
      for (Runner *one = own->runners; one; one = one->next)
        if (remind(*one))
          idle = 0;
    }
    if (idle < idleTicks)
      continue;
    own->isAsleep = true;
    own->isAsleep.wait(true);
    idle = 0;
  }
}

ReminderClock *startClock() try {
  auto *made = new ReminderClock;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread(runClock, made).detach();
  } catch (const std::system_error &) {
    // No thread, no reminders.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
} catch (const std::bad_alloc &) {
  return nullptr;
}

void makeKnown(Runner &runner) {
  std::lock_guard lock(clockMutex);
  ReminderClock *clock = reminderClock.load();
  if (!clock || clock->forks != forkCount())
    reminderClock = clock = startClock();
  if (!clock)
    return;
  runner.forks = forkCount();
  runner.thread = gettid();
  runner.isKnown = true;
  runner.next = clock->runners;
  clock->runners = &runner;
}

Runner::~Runner() {
  if (!isKnown || forks != forkCount())
    return;
  std::lock_guard lock(clockMutex);
  Runner **place = &reminderClock.load()->runners;
  while (*place != this)
    place = &(*place)->next;
  *place = next;
}

//===-- Where compiled code stands ----------------------------------------===//

/// Never released: a signal may look at it at any time.
struct CodePiece {
  std::atomic<uintptr_t> begin = 0, end = 0;
  CodePiece *next = nullptr;
};
std::atomic<CodePiece *> pieces = nullptr;
Mutex piecesMutex;

bool isCompiledCode(uintptr_t address) {
  for (CodePiece *piece = pieces.load(); piece; piece = piece->next)
    if (piece->begin.load() <= address && address < piece->end.load())
      return true;
  return false;
}

uintptr_t addressIn(void *context) {
  auto &machine = static_cast<ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

/// Compiled code holds no lock and owns no memory, so it may be left anywhere;
/// what it calls is left alone, and looks at `isDue` after each chunk.
void onReminder(int number, siginfo_t *info, void *context) {
  if (info->si_code != SI_TKILL) {
    if (formerAction.sa_flags & SA_SIGINFO)
      formerAction.sa_sigaction(number, info, context);
    else if (formerAction.sa_handler != SIG_DFL &&
             formerAction.sa_handler != SIG_IGN)
      formerAction.sa_handler(number);
    return;
  }
  const int error = errno;
  InterruptScope *scope = runner.scope.load();
  runner.isDue = true;
  if (scope && isCompiledCode(addressIn(context)) && scope->work.mustEnd())
    scope->leave(scope->data);
  errno = error;
}

} // namespace

void addCompiledCode(uintptr_t begin, uintptr_t end) {
  std::lock_guard lock(piecesMutex);
  CodePiece *piece = pieces.load();
  while (piece && piece->begin.load())
    piece = piece->next;
  if (!piece) {
    piece = new CodePiece;
    piece->next = pieces.load();
    pieces = piece;
  }
  piece->end = end;
  piece->begin = begin;
}

void removeCompiledCode(uintptr_t begin) {
  std::lock_guard lock(piecesMutex);
  for (CodePiece *piece = pieces.load(); piece; piece = piece->next)
    if (piece->begin.load() == begin) {
      piece->end = 0;
      piece->begin = 0;
      return;
    }
}

void setInterruptCheck(InterruptCheck check) {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = onReminder;
    // Not blocked after a longjmp.
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    return sigaction(reminder, &action, &formerAction) == 0;
  }();
  if (installed)
    interruptCheck = check;
}

bool Interruptible::isTimeToAsk() const {
  return runner.isDue.load(std::memory_order_relaxed) &&
         pthread_equal(asker, pthread_self());
}

bool Interruptible::mustEnd() {
  if (isInterrupted() || !isTimeToAsk())
    return isInterrupted();
  runner.isDue = false;
  InterruptScope *scope = runner.scope.exchange(nullptr);
  InterruptCheck check = interruptCheck.load();
  if (check && check())
    interrupted = true;
  runner.scope = scope;
  return isInterrupted();
}

InterruptScope::InterruptScope(Interruptible &work, void (*leave)(void *),
                               void *data)
    : work(work), leave(leave), data(data), around(runner.scope.load()) {
  if (!interruptCheck.load(std::memory_order_relaxed))
    return;
  if (!runner.isKnown || runner.forks != forkCount())
    makeKnown(runner);
  if (!around) {
    runner.isDue.store(false, std::memory_order_relaxed);
    ++runner.generation;
  }
  runner.scope = this;
  ReminderClock *clock = reminderClock.load(std::memory_order_relaxed);
  if (clock && clock->isAsleep.load() && clock->isAsleep.exchange(false))
    clock->isAsleep.notify_one();
}

InterruptScope::~InterruptScope() { runner.scope = around; }

Failure interruptedFailure(const std::string &kernel) {
  return {ErrorCode::Interrupted, "kernel `" + kernel +
                                      "` was interrupted; the arrays that it "
                                      "writes are not usable"};
}

} // namespace costate::runtime
