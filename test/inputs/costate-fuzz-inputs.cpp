/// Damaged kernels, files and arguments, in processes of their own: whatever
/// happens to one of them, the search goes on.

#include "inputs/Try.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace costate::inputs;
using Clock = std::chrono::steady_clock;

namespace {

/// Shared with the child: what it is at, and what it has to say about that.
struct Progress {
  uint64_t seed;
  char problem[4000];
};

Progress &progress() {
  static auto *shared = static_cast<Progress *>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

constexpr unsigned secondsForOne = 20;

/// Runs `work` in a child; how that ended, empty if well.
template <class F> std::string inChild(F work) {
  progress().problem[0] = 0;
  pid_t child = fork();
  if (child == 0) {
#ifndef COSTATE_SANITIZE // whose shadow takes terabytes of addresses
    rlimit space{size_t(8) << 30, size_t(8) << 30};
    setrlimit(RLIMIT_AS, &space);
#endif
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return progress().problem;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return "takes more than " + std::to_string(secondsForOne) + " seconds";
  return "ends with status " + std::to_string(status);
}

void tryOne(Input kind, const std::string &input) {
  alarm(secondsForOne);
  std::string problem = problemWith(kind, input);
  alarm(0);
  snprintf(progress().problem, sizeof(Progress::problem), "%s",
           problem.c_str());
}

/// Tries the seeds from `first` on until one has a problem or time is over.
std::string trySeeds(uint64_t first, uint64_t count, Clock::time_point end) {
  return inChild([&] {
    for (uint64_t seed = first; seed < first + count; ++seed) {
      progress().seed = seed;
      if (Clock::now() > end)
        return;
      tryOne(kindOf(seed), inputOf(seed));
      if (progress().problem[0])
        return;
    }
    progress().seed = first + count;
  });
}

/// The kind of a problem: its first words.
std::string headOf(const std::string &problem) {
  return problem.substr(0, problem.find(':'));
}

/// Removes pieces while the problem stays the same, for some time.
std::string smallest(Input kind, std::string input, const std::string &head) {
  Clock::time_point end = Clock::now() + std::chrono::seconds(20);
  for (size_t piece = input.size() / 2; piece > 0; piece /= 2)
    for (size_t at = 0; at < input.size() && Clock::now() < end;) {
      std::string candidate = input;
      candidate.erase(at, piece);
      bool same = headOf(inChild([&] { tryOne(kind, candidate); })) == head;
      if (same)
        input = candidate;
      else
        at += piece;
    }
  return input;
}

void report(uint64_t seed, const std::string &problem) {
  std::cout << "seed " << seed << ": " << problem << "\n" << std::flush;
  Input kind = kindOf(seed);
  std::string input = smallest(kind, inputOf(seed), headOf(problem));
  inChild([&] { tryOne(kind, input); });
  std::cout << "smallest input (" << input.size() << " bytes):\n"
            << input.substr(0, 2000) << "\n"
            << progress().problem << "\n\n"
            << std::flush;
}

} // namespace

int main(int argc, char **argv) {
  setenv("COSTATE_CACHE", "0", 0); // a mistake must not be hidden by a file
  uint64_t seed = 1, count = UINT64_MAX / 2;
  double seconds = 30;
  std::string file;
  bool onlyPrints = false;
  CLI::App app("Damaged kernels, files and arguments.");
  app.add_option("--seed", seed, "the first one");
  app.add_option("--count", count, "how many");
  app.add_option("--seconds", seconds, "for how long");
  app.add_option("--try", file, "a text of a kernel");
  app.add_flag("--print", onlyPrints, "only print the input of the first one");
  CLI11_PARSE(app, argc, argv);
  if (onlyPrints) {
    std::cout << inputOf(seed);
    return 0;
  }
  if (!file.empty()) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    std::cout << problemWith(Input::Kernel, text.str()) << "\n";
    return 0;
  }
  auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds));
  uint64_t next = seed, last = seed + count;
  int problems = 0;
  while (next < last && Clock::now() < end && problems < 20) {
    uint64_t batch = std::min<uint64_t>(500, last - next);
    std::string problem = trySeeds(next, batch, end);
    next = progress().seed;
    if (problem.empty())
      continue;
    ++problems;
    report(next, problem);
    ++next;
  }
  std::cout << next - seed << " damaged inputs from seed " << seed
            << " on: " << problems << " problems\n";
  return problems != 0;
}
