#include "property/Batch.h"

#include "property/Generate.h"
#include "property/Program.h"
#include "property/Shrink.h"

#include "costate/costate.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace costate::property {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

volatile std::sig_atomic_t interrupted = 0;

/// Has SIGINT and SIGTERM end the batch, not the process.
class Interrupts {
public:
  Interrupts() {
    interrupted = 0;
    for (size_t k = 0; k < numbers.size(); ++k)
      begin(numbers[k], before[k]);
  }
  ~Interrupts() {
    for (size_t k = 0; k < numbers.size(); ++k)
      std::signal(numbers[k], before[k]);
  }
  Interrupts(const Interrupts &) = delete;

  /// For a child, which the batch ends.
  static void ignore() {
    for (int number : numbers)
      std::signal(number, SIG_IGN);
  }

private:
  using Handler = void (*)(int);

  /// What the process ignores, as one of a script's background does, stays so.
  static void begin(int number, Handler &before) {
    before = std::signal(number, [](int) { interrupted = 1; });
    if (before == SIG_IGN)
      std::signal(number, SIG_IGN);
  }

  static constexpr std::array numbers{SIGINT, SIGTERM};
  std::array<Handler, numbers.size()> before;
};

/// What the processes share. One that dies leaves it as it is.
struct Board {
  struct Worker {
    std::atomic<uint64_t> seed; ///< that it looks at; 0: none
    std::array<std::atomic<uint64_t>, 6> kinds;
    std::atomic<uint64_t> differences;
  };
  static constexpr size_t most = 256;

  std::atomic<uint64_t> next;
  std::atomic<bool> stopped;
  std::array<Worker, most> workers;
};

class SharedBoard {
public:
  SharedBoard() {
    void *memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    board = new (memory) Board();
  }
  ~SharedBoard() { munmap(board, sizeof(Board)); }
  SharedBoard(const SharedBoard &) = delete;
  Board *operator->() const { return board; }

private:
  Board *board;
};

/// The status of a process that has ended by `limit`: one that waits for a
/// driver may not.
std::optional<int> await(pid_t process, Clock::time_point limit) {
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (Clock::now() >= limit)
      return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

void end(pid_t process) {
  kill(process, SIGKILL);
  await(process, Clock::now() + std::chrono::seconds(2));
}

/// Runs `body` in a child, which then ends without destructors: those of a GPU
/// that is lost may hang.
template <class F> pid_t inChild(F body) {
  std::cout.flush();
  pid_t child = fork();
  if (child < 0)
    throw std::system_error(errno, std::generic_category(),
                            "no process can be started");
  if (child != 0)
    return child;
  try {
    body();
  } catch (const std::exception &error) {
    std::cerr << error.what() << std::endl;
    _exit(EXIT_FAILURE);
  }
  std::cout.flush();
  _exit(0);
}

std::string describe(uint64_t seed, const std::string &text) {
  return text + "\nseed " + std::to_string(seed) + "\n" +
         print(generate(static_cast<unsigned>(seed))) + "\n";
}

/// All at once, as far as the system can: several processes write.
void write(int file, const std::string &text) {
  (void)!::write(file, text.data(), text.size());
}

/// What kernels of this process print from now on goes nowhere. Returns the
/// output as it was.
int silenceKernels() {
  std::cout.flush();
  int shown = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
  if (shown < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
    throw std::system_error(errno, std::generic_category(),
                            "the output of kernels cannot go to /dev/null");
  close(nowhere);
  return shown;
}

//===-- One worker --------------------------------------------------------===//

class Work {
public:
  Work(const BatchOptions &options, Board &board, size_t index)
      : options(options), board(board), mine(board.workers[index]) {}

  /// Until all is done, or a program was wrong: after that, an error of the
  /// GPU may concern all launches.
  void run() {
    setenv("COSTATE_DEVICE", options.device.c_str(), 1);
    // NVIDIA's driver would keep each kernel on disk, and none comes again.
    setenv("CUDA_CACHE_DISABLE", "1", 0);
    int findings = silenceKernels();
    while (!board.stopped && takeSeed()) {
      Verdict verdict = options.check(static_cast<unsigned>(mine.seed));
      ++mine.kinds[verdict.kind];
      mine.differences += static_cast<uint64_t>(verdict.differences);
      if (isFinding(verdict))
        write(findings, describe(mine.seed, verdict.text));
      mine.seed = 0;
      if (isFinding(verdict))
        return;
    }
  }

private:
  static bool isFinding(const Verdict &verdict) {
    return verdict.kind == Verdict::Wrong || verdict.kind == Verdict::Invalid;
  }

  bool takeSeed() {
    uint64_t taken = board.next++;
    if (taken >= options.count)
      return false;
    mine.seed = options.first + taken;
    return true;
  }

  const BatchOptions &options;
  Board &board;
  Board::Worker &mine;
};

//===-- One program -------------------------------------------------------===//

constexpr const char *hangs = "it hangs";

struct Answer {
  bool isGiven;
  std::string text; ///< or how the process ended without one
};

/// A process of its own, whose answer is what `body` returns.
class Apart {
public:
  template <class F>
  Apart(F body, double patience)
      : limit(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(patience))) {
    int ends[2];
    if (::pipe(ends) != 0)
      throw std::system_error(errno, std::generic_category(),
                              "no pipe can be made");
    child = inChild([&] {
      std::string answer = body();
      (void)!::write(ends[1], answer.data(), answer.size());
    });
    close(ends[1]);
    pipe = ends[0];
  }
  ~Apart() {
    if (isOpen())
      stop();
  }
  Apart(const Apart &) = delete;

  /// Something to read, or the end of the process.
  pollfd news() const { return {pipe, POLLIN, 0}; }

  /// Takes in what has come; the answer, or how the process ended without one,
  /// once that is known.
  std::optional<Answer> look() {
    char part[4096];
    for (pollfd readable = news(); poll(&readable, 1, 0) > 0;) {
      ssize_t bytes = read(pipe, part, sizeof part);
      if (bytes <= 0)
        return ended();
      text.append(part, static_cast<size_t>(bytes));
    }
    if (Clock::now() < limit)
      return std::nullopt;
    stop();
    return Answer{false, hangs};
  }

private:
  bool isOpen() const { return pipe >= 0; }

  void stop() {
    close(std::exchange(pipe, -1));
    end(child);
  }

  Answer ended() {
    close(std::exchange(pipe, -1));
    std::optional<int> status =
        await(child, Clock::now() + std::chrono::seconds(10));
    if (status && WIFSIGNALED(*status))
      return {false,
              std::string("it crashes: ") + strsignal(WTERMSIG(*status))};
    if (status && WEXITSTATUS(*status) != 0)
      return {false,
              "it ends with status " + std::to_string(WEXITSTATUS(*status))};
    return {true, text};
  }

  pid_t child;
  int pipe;
  Clock::time_point limit;
  std::string text;
};

/// Until one of them has news, or a moment has passed.
void awaitNews(const std::vector<std::unique_ptr<Apart>> &processes) {
  std::vector<pollfd> news;
  for (auto &process : processes)
    news.push_back(process->news());
  poll(news.data(), news.size(), /*milliseconds=*/50);
}

/// What `body` returns, in a process of its own, or how that ended.
template <class F> Answer answerOf(F body, double patience) {
  std::vector<std::unique_ptr<Apart>> one;
  one.push_back(std::make_unique<Apart>(body, patience));
  for (;;) {
    awaitNews(one);
    if (std::optional<Answer> answer = one[0]->look())
      return *answer;
  }
}

/// In a process that answers with the verdict of `check`.
template <class F> auto answering(const BatchOptions &options, F check) {
  return [&options, check] {
    setenv("COSTATE_DEVICE", options.device.c_str(), 1);
    Verdict verdict = check();
    return std::string(1, char('0' + verdict.kind)) + verdict.text;
  };
}

/// None if the process hangs.
std::optional<Verdict> verdictOf(const Answer &answer) {
  auto &[isGiven, text] = answer;
  if (!isGiven && text == hangs)
    return std::nullopt;
  if (!isGiven)
    return Verdict{Verdict::Wrong, text};
  if (text.empty())
    return Verdict{Verdict::Wrong, "its process ends without a verdict"};
  return Verdict{Verdict::Kind(text[0] - '0'), text.substr(1)};
}

/// That of `check`, in a process of its own; none if that hangs.
template <class F>
std::optional<Verdict> verdictOf(const BatchOptions &options, F check) {
  return verdictOf(answerOf(answering(options, check), options.patience));
}

size_t jobsOf(const BatchOptions &options) {
  return options.jobs ? options.jobs
                      : std::max(1u, std::thread::hardware_concurrency());
}

//===-- All of them -------------------------------------------------------===//

class Batch {
public:
  Batch(const BatchOptions &options, std::ostream &out)
      : options(options), out(out) {
    children.resize(std::min(jobsOf(options), Board::most));
  }

  BatchCounts run() {
    for (size_t k = 0; k < children.size(); ++k)
      begin(k);
    while (std::ranges::any_of(children, &Child::runs)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      watchTime();
      for (size_t k = 0; k < children.size(); ++k)
        if (children[k].runs())
          look(k);
      if (mustEnd())
        cutOff();
    }
    judgeStuck();
    return sum();
  }

private:
  struct Child {
    pid_t process = 0;
    uint64_t seed = 0; ///< that it was seen at
    Clock::time_point since;
    bool runs() const { return process != 0; }
  };

  void watchTime() {
    if (interrupted)
      grace = 0;
    bool isOver = interrupted || (options.seconds > 0 &&
                                  secondsSince(start) >= options.seconds);
    if (!isOver || board->stopped)
      return;
    board->stopped = true;
    over = Clock::now();
  }

  bool mustEnd() const { return board->stopped && secondsSince(over) >= grace; }

  void begin(size_t k) {
    pid_t parent = getpid();
    auto work = [&, parent] {
      Interrupts::ignore();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() == parent)
        Work(options, *board.operator->(), k).run();
    };
    children[k] = {inChild(work), 0, Clock::now()};
  }

  void look(size_t k) {
    Child &child = children[k];
    int status = 0;
    if (waitpid(child.process, &status, WNOHANG) == child.process)
      return ended(k, status);
    uint64_t seed = board->workers[k].seed;
    if (seed != child.seed) {
      child.seed = seed;
      child.since = Clock::now();
    } else if (secondsSince(child.since) > options.patience) {
      end(child.process);
      return isStuck(k);
    }
  }

  /// Perhaps it only waits for what another one runs on the GPU.
  void isStuck(size_t k) {
    uint64_t seed = board->workers[k].seed.exchange(0);
    if (!seed) {
      ++counts.hung;
      return lost(k, hangs);
    }
    stuck.push_back(seed);
    children[k] = {};
    goOn(k);
  }

  /// Those that hang beside others, one by one.
  void judgeStuck() {
    for (uint64_t seed : stuck) {
      std::optional<Verdict> verdict;
      if (!interrupted)
        verdict = verdictOf(options, [&] {
          return options.check(static_cast<unsigned>(seed));
        });
      if (!verdict) {
        ++counts.hung;
        out << describe(seed, hangs) << std::flush;
        continue;
      }
      ++counts.kinds[verdict->kind];
      out << describe(seed, std::string("hangs beside others; alone it is ") +
                                nameOf(verdict->kind) +
                                (verdict->text.empty() ? "" : ": ") +
                                verdict->text)
          << std::flush;
    }
  }

  /// Those that have not ended in time.
  void cutOff() {
    for (Child &child : children)
      if (child.runs())
        kill(child.process, SIGKILL);
    auto limit = Clock::now() + std::chrono::seconds(2);
    for (size_t k = 0; k < children.size(); ++k)
      if (children[k].runs()) {
        await(children[k].process, limit);
        children[k] = {};
        nameUnfinished(board->workers[k].seed.exchange(0));
      }
  }

  void nameUnfinished(uint64_t seed) {
    if (!seed)
      return;
    ++counts.unfinished;
    out << "seed " << seed << " has not ended in time\n" << std::flush;
  }

  void ended(size_t k, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      children[k] = {};
      return goOn(k);
    }
    ++counts.crashed;
    lost(k, WIFSIGNALED(status)
                ? std::string("it crashes: ") + strsignal(WTERMSIG(status))
                : "its process ends with status " +
                      std::to_string(WEXITSTATUS(status)));
  }

  /// The program of a process that has not come back.
  void lost(size_t k, const std::string &how) {
    uint64_t seed = board->workers[k].seed.exchange(0);
    out << (seed ? describe(seed, how) : how + " before its first program\n")
        << std::flush;
    children[k] = {};
    if (seed)
      goOn(k);
  }

  void goOn(size_t k) {
    if (!board->stopped && board->next < options.count)
      begin(k);
  }

  BatchCounts sum() {
    for (Board::Worker &worker : board->workers) {
      for (size_t kind = 0; kind < counts.kinds.size(); ++kind)
        counts.kinds[kind] += worker.kinds[kind];
      counts.differences += worker.differences;
    }
    return counts;
  }

  const BatchOptions &options;
  std::ostream &out;
  SharedBoard board;
  std::vector<Child> children;
  std::vector<uint64_t> stuck; ///< seeds
  BatchCounts counts;
  Clock::time_point start = Clock::now(), over;
  double grace = options.grace;
  Interrupts interrupts;
};

//===-- The smallest one --------------------------------------------------===//

/// Looks for the first of some programs that is wrong in a certain way, several
/// at a time, each in a process of its own.
class Search {
public:
  Search(const BatchOptions &options, unsigned seed, std::string kind)
      : options(options), seed(seed), kind(std::move(kind)) {}

  std::optional<size_t> operator()(const std::vector<Node> &programs) {
    first = programs.size();
    for (size_t next = 0; next < first || !processes.empty();) {
      for (; next < first && processes.size() < jobsOf(options); ++next)
        begin(programs[next], next);
      awaitNews(processes);
      look();
    }
    return first < programs.size() ? std::optional(first) : std::nullopt;
  }

private:
  void begin(const Node &program, size_t number) {
    auto check = [&] { return options.checkProgram(program, seed); };
    processes.push_back(
        std::make_unique<Apart>(answering(options, check), options.patience));
    numbers.push_back(number);
  }

  /// Ends those after the first that is known to fail.
  void look() {
    for (size_t k = processes.size(); k-- > 0;) {
      std::optional<Answer> answer = processes[k]->look();
      if (answer && isWrong(*answer))
        first = std::min(first, numbers[k]);
      if (!answer && numbers[k] < first)
        continue;
      processes.erase(processes.begin() + long(k));
      numbers.erase(numbers.begin() + long(k));
    }
  }

  bool isWrong(const Answer &answer) const {
    Verdict verdict =
        verdictOf(answer).value_or(Verdict{Verdict::Wrong, hangs});
    return verdict.kind == Verdict::Wrong && kindOf(verdict) == kind;
  }

  const BatchOptions &options;
  unsigned seed;
  std::string kind;
  size_t first = 0;
  std::vector<std::unique_ptr<Apart>> processes;
  std::vector<size_t> numbers; ///< of their programs
};

} // namespace

Verdict BatchOptions::checkSeed(unsigned seed) {
  return property::check(generate(seed), seed);
}

const char *nameOf(Verdict::Kind kind) {
  static constexpr const char *names[] = {"right",  "refused", "wild",
                                          "racing", "invalid", "wrong"};
  return names[kind];
}

uint64_t BatchCounts::all() const {
  return std::accumulate(kinds.begin(), kinds.end(),
                         crashed + hung + unfinished);
}

bool BatchCounts::good() const {
  return of(Verdict::Wrong) + of(Verdict::Invalid) + crashed + hung == 0;
}

std::string whyNoDevice(const std::string &device) {
  return answerOf(
             [&]() -> std::string {
               try {
                 Device::open(device);
                 return "";
               } catch (const Error &error) {
                 return error.what();
               }
             },
             BatchOptions().patience)
      .text;
}

BatchCounts checkBatch(const BatchOptions &options, std::ostream &out) {
  return Batch(options, out).run();
}

Verdict checkApart(const BatchOptions &options, uint64_t seed,
                   std::ostream &out) {
  Node program = generate(static_cast<unsigned>(seed));
  unsigned number = static_cast<unsigned>(seed);
  out << print(program) << std::endl;
  auto check = [&] { return options.checkProgram(program, number); };
  Verdict verdict =
      verdictOf(options, check).value_or(Verdict{Verdict::Wrong, hangs});
  if (verdict.kind != Verdict::Wrong)
    return verdict;
  out << "// " << verdict.text << "\n// the smallest one:" << std::endl;
  Search search(options, number, kindOf(verdict));
  Node smallest = shrink(program, std::ref(search), jobsOf(options));
  out << print(smallest) << std::endl;
  return verdict;
}

void print(const BatchOptions &options, const BatchCounts &counts,
           double seconds, std::ostream &out) {
  uint64_t compiled = counts.of(Verdict::Right) + counts.of(Verdict::Refused) +
                      counts.of(Verdict::Wild);
  out << counts.all() << " programs from seed " << options.first
      << " on, device " << options.device << ", in "
      << static_cast<uint64_t>(seconds) << " s: " << compiled
      << " compiled and run, of them " << counts.of(Verdict::Right)
      << " right, " << counts.of(Verdict::Refused)
      << " right without gradient, " << counts.of(Verdict::Wild)
      << " with values too large to compare; " << counts.of(Verdict::Racing)
      << " racing, " << counts.of(Verdict::Invalid) << " invalid, "
      << counts.of(Verdict::Wrong) << " wrong, " << counts.crashed
      << " crashed, " << counts.hung << " hung, " << counts.unfinished
      << " not ended in time; " << counts.differences
      << " entries judged by differences\n";
}

} // namespace costate::property
