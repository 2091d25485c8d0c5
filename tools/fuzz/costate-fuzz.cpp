/// Random kernels of kernel IR: derivatives against each other, against
/// differences, and against what a derivative promises. With a device, random
/// programs of the language, compiled for it.

#include "fuzz/Fuzzer.h"
#include "property/Batch.h"
#include "property/Emit.h"
#include "property/Generate.h"
#include "property/Singles.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

using namespace costate::fuzz;
using Clock = std::chrono::steady_clock;

namespace {

struct Command {
  double minutes = 0, seconds = 0;
  uint64_t seed = 1, count = 0, programs = 0;
  std::optional<uint64_t> kernel;
  std::vector<std::string> replay;
  std::string device;
  unsigned jobs = 0;
  double patience = costate::property::BatchOptions().patience;
  bool coverage = false, goOn = false, lower = false, lanes = false;
  bool singles = false, plans = false, budgets = false;
};

void declare(CLI::App &app, Command &command) {
  auto minutes = app.add_option("--minutes", command.minutes, "for how long");
  app.add_option("--seconds", command.seconds, "for how long")
      ->excludes(minutes);
  app.add_option("--count", command.count,
                 "how many kernels; default: 20000 (1000 on a device), or what "
                 "the time allows");
  app.add_option("--seed", command.seed, "the first one");
  app.add_option("--kernel", command.kernel,
                 "print the kernel of a seed and check all of it");
  app.add_option("--programs", command.programs,
                 "print so many programs of the language, and do nothing else");
  app.add_flag("--lower", command.lower,
               "print the kernel IR of programs from the standard input, for "
               "comparison with that of another front end");
  app.add_option(
      "--replay", command.replay,
      "check kernels of files with values; with --device, programs of "
      "files with the values of --seed, in this process");
  auto device = app.add_option(
      "--device", command.device,
      "instead, programs of the language, compiled and run on this device");
  app.add_option("--jobs", command.jobs,
                 "processes that do so; default: one per core")
      ->needs(device);
  app.add_option("--patience", command.patience,
                 "seconds for one program before it counts as hung")
      ->needs(device)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--lanes", command.lanes,
               "with 1, 2, 4, 8 and 16 lanes, against each other and the "
               "interpreter")
      ->needs(device);
  app.add_flag("--budgets", command.budgets,
               "gradients, within several budgets for tapes")
      ->needs(device);
  app.add_flag("--singles", command.singles,
               "with f32 in the place of f64, for devices without it")
      ->needs(device);
  app.add_flag("--coverage", command.coverage,
               "print which operations were differentiated where");
  app.add_flag("--plans", command.plans,
               "check of each kernel, not of some, that neither plans nor "
               "budgets change its gradient");
  app.add_flag("--go-on", command.goOn, "do not stop at the first finding");
}

// The seed that is looked at, for whoever has to explain a crash.
volatile uint64_t current = 0;

void onCrash(int number) {
  char text[80];
  int length =
      std::snprintf(text, sizeof(text), "\ncostate-fuzz: crash at seed %llu\n",
                    static_cast<unsigned long long>(current));
  (void)!write(STDERR_FILENO, text, size_t(length));
  std::signal(number, SIG_DFL);
  std::raise(number);
}

const char *nameOf(Verdict::Kind kind) {
  static constexpr const char *names[] = {"right", "refused", "racy",
                                          "wild",  "long",    "wrong"};
  return names[kind];
}

std::string describe(const Verdict &verdict) {
  std::string text = nameOf(verdict.kind);
  if (verdict.kind == Verdict::Wrong)
    text += ": " + costate::fuzz::nameOf(verdict.property).str();
  return verdict.text.empty() ? text : text + ": " + verdict.text;
}

void print(const Counts &counts, double seconds) {
  std::cout << counts.kernels << " kernels in " << std::lround(seconds)
            << " s, " << std::lround(double(counts.kernels) / seconds)
            << " per second, "
            << counts.operations / std::max<uint64_t>(1, counts.kernels)
            << " operations on average:";
  for (int kind = 0; kind <= Verdict::Wrong; ++kind)
    std::cout << (kind ? ", " : " ") << counts.byKind[kind] << ' '
              << nameOf(Verdict::Kind(kind));
  std::cout << "\n  gradients: " << counts.pushing << " with records, "
            << counts.reloading << " reload what the kernel stored, "
            << counts.recording << " need versions, " << counts.repeating
            << " repeat writes, " << counts.second
            << " compared in second order; " << counts.judged
            << " numbers judged by differences\n";
  for (auto &[text, count] : counts.refusals)
    std::cout << "  " << count << " refused: " << text << '\n';
}

int fuzz(const Command &command) {
  double limit = command.seconds + 60 * command.minutes;
  uint64_t count = command.count;
  if (count == 0)
    count = limit > 0 ? UINT64_MAX : 20000;
  Clock::time_point start = Clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Fuzzer fuzzer(command.plans ? Properties::of({Property::Cut, Property::Plans})
                              : Properties::of({}));
  bool found = false;
  for (uint64_t k = 0; k < count && (command.goOn || !found); ++k) {
    if (limit > 0 && seconds() >= limit)
      break;
    current = command.seed + k;
    std::optional<Finding> finding = fuzzer.check(current);
    if (!finding)
      continue;
    found = true;
    std::cout << "seed " << finding->seed << ": " << describe(finding->verdict)
              << '\n'
              << finding->text << "found after " << seconds() << " s and "
              << k + 1 << " kernels" << std::endl;
  }
  print(fuzzer.counts, seconds());
  if (command.coverage)
    std::cout << fuzzer.coverage.table();
  return found;
}

using CheckProgram = costate::property::Verdict (*)(
    const costate::property::Node &, unsigned seed);

CheckProgram checkOf(const Command &command) {
  namespace property = costate::property;
  if (command.lanes)
    return property::checkLanes;
  if (command.budgets)
    return property::checkBudgets;
  return [](const property::Node &program, unsigned seed) {
    return property::check(program, seed);
  };
}

/// On a device, where a wrong kernel may take its process down.
int fuzzDevice(const Command &command) {
  namespace property = costate::property;
  property::BatchOptions options;
  options.device = command.device;
  options.first = command.kernel.value_or(command.seed);
  options.seconds = command.seconds + 60 * command.minutes;
  options.count = command.count         ? command.count
                  : options.seconds > 0 ? UINT32_MAX
                                        : 1000;
  options.jobs = command.jobs;
  options.patience = command.patience;
  options.checkProgram = checkOf(command);
  options.check = [check = checkOf(command)](unsigned seed) {
    return check(property::generate(seed), seed);
  };
  if (command.kernel) {
    property::Verdict verdict =
        property::checkApart(options, *command.kernel, std::cout);
    std::cout << "// " << property::nameOf(verdict.kind) << '\n';
    return verdict.kind == property::Verdict::Wrong;
  }
  Clock::time_point start = Clock::now();
  property::BatchCounts counts = property::checkBatch(options, std::cout);
  property::print(options, counts,
                  std::chrono::duration<double>(Clock::now() - start).count(),
                  std::cout);
  return !counts.good();
}

std::string quoted(const std::string &text) {
  std::string escaped = "\"";
  for (char c : text)
    escaped += c == '\n'               ? "\\n"
               : c == '"' || c == '\\' ? std::string("\\") + c
                                       : std::string(1, c);
  return escaped + "\"";
}

int showKernel(uint64_t seed) {
  Session session;
  Case subject = generate(session.context(), seed);
  std::cout << textOf(subject) << std::flush;
  Verdict verdict = check(session, subject, seed, Properties::all());
  std::cout << "// " << describe(verdict) << '\n';
  return verdict.kind == Verdict::Wrong;
}

void printPrograms(const Command &command) {
  namespace property = costate::property;
  for (uint64_t k = 0; k < command.programs; ++k)
    std::cout << property::print(property::generate(
                     static_cast<unsigned>(command.seed + k)))
              << '\n';
}

/// A JSON string for each program that can be traced, else null.
void lowerPrograms() {
  namespace property = costate::property;
  std::ostringstream text;
  text << std::cin.rdbuf();
  for (const property::Node &program : property::parse(text.str())) {
    try {
      std::cout << quoted(property::emit(program).ir()) << '\n';
    } catch (const std::exception &error) {
      std::cout << "null\n";
      std::cerr << "costate-fuzz: " << error.what() << '\n';
    }
  }
}

std::optional<std::string> contentsOf(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file)
    return text.str();
  std::cerr << "costate-fuzz: " << path << ": cannot be read\n";
  return std::nullopt;
}

int replayPrograms(const Command &command, const std::string &path) {
  namespace property = costate::property;
  std::optional<std::string> text = contentsOf(path);
  if (!text)
    return 1;
  std::vector<property::Node> programs;
  try {
    programs = property::parse(*text);
  } catch (const std::exception &error) {
    std::cerr << "costate-fuzz: " << path << ": " << error.what() << '\n';
    return 1;
  }
  if (programs.empty())
    std::cerr << "costate-fuzz: " << path << ": no program\n";
  int wrong = programs.empty();
  for (size_t k = 0; k < programs.size(); ++k) {
    unsigned seed = static_cast<unsigned>(command.seed);
    property::Verdict verdict = checkOf(command)(programs[k], seed);
    std::cout << path << ", program " << k + 1 << ": "
              << property::nameOf(verdict.kind)
              << (verdict.text.empty() ? "" : ": ") << verdict.text
              << std::endl; // the next one may end the process
    wrong |= verdict.kind == property::Verdict::Wrong;
  }
  return wrong;
}

int runOnDevice(const Command &command) {
  if (command.singles)
    costate::property::useSingles();
  if (std::string why = costate::property::whyNoDevice(command.device);
      !why.empty()) {
    std::cerr << "costate-fuzz: " << why << '\n';
    return 1;
  }
  if (command.replay.empty())
    return fuzzDevice(command);
  setenv("COSTATE_DEVICE", command.device.c_str(), 1);
  int wrong = 0;
  for (const std::string &path : command.replay)
    wrong |= replayPrograms(command, path);
  return wrong;
}

int replayFile(const std::string &path) {
  std::optional<std::string> text = contentsOf(path);
  if (!text)
    return 1;
  Session session;
  Verdict verdict = replay(session, *text);
  std::cout << path << ": " << describe(verdict) << '\n';
  return verdict.kind == Verdict::Wrong;
}

} // namespace

int main(int argc, char **argv) {
  // What is looked at is what this build compiles.
  setenv("COSTATE_CACHE", "0", 0);
  Command command;
  CLI::App app("Random kernels of kernel IR: are their derivatives right?");
  declare(app, command);
  CLI11_PARSE(app, argc, argv);
  if (!command.device.empty())
    return runOnDevice(command);
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS})
    std::signal(signal, onCrash);
  if (command.kernel)
    return showKernel(*command.kernel);
  if (command.programs) {
    printPrograms(command);
    return 0;
  }
  if (command.lower) {
    lowerPrograms();
    return 0;
  }
  if (command.replay.empty())
    return fuzz(command);
  int wrong = 0;
  for (const std::string &path : command.replay)
    wrong |= replayFile(path);
  return wrong;
}
