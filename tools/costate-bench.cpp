/// Runs benchmarks by name; prints a table and writes one JSON object per case.

#include "Bench.h"

#include "costate/cache.h"
#include "costate/profile.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>

using namespace costate::bench;

static void list() {
  for (const Bench &bench : registry())
    std::printf("%s\n", bench.name.c_str());
}

static std::filesystem::path defaultData() {
  const char *folder = std::getenv("COSTATE_DATA");
  return folder ? folder : "";
}

static std::vector<int> defaultThreads(const Options &options) {
  if (!options.isHost())
    return {1};
  int cores = std::max(1u, std::thread::hardware_concurrency());
  return cores == 1 ? std::vector{1} : std::vector{1, cores};
}

static std::string knownNames() {
  std::string text;
  for (const Bench &bench : registry())
    text += "\n  " + bench.name + "  " + bench.summary;
  return text;
}

static const Bench &find(const std::string &name) {
  for (const Bench &bench : registry())
    if (bench.name == name)
      return bench;
  throw std::runtime_error("there is no benchmark `" + name + "`; there are" +
                           knownNames());
}

static int run(const std::vector<std::string> &names, const Options &options,
               const std::string &json) {
  std::vector<Bench> chosen;
  for (const std::string &name : names)
    chosen.push_back(find(name));
  Results results(options.device, options.label, json);
  for (const Bench &bench : chosen) {
    results.begin(bench.name);
    bench.function(options, results);
  }
  results.write();
  results.print();
  return 0;
}

int main(int argc, char **argv) {
  Options options;
  options.data = defaultData();
  std::vector<std::string> names;
  std::string json;
  std::string trace;
  bool listOnly = false;

  std::sort(registry().begin(), registry().end(),
            [](const Bench &a, const Bench &b) { return a.name < b.name; });
  CLI::App app("Benchmarks:" + knownNames());
  app.add_option("name", names, "benchmarks to run");
  app.add_option("--device", options.device, "device to run on");
  app.add_option("--data", options.data, "folder with input files");
  app.add_option("--json", json, "file for the results");
  app.add_option("--label", options.label,
                 "of the results, beside those of other runs");
  app.add_option("--trace", trace,
                 "file for all launches, compilations, copies and waits, as "
                 "Perfetto shows them");
  app.add_option("--threads", options.threads, "numbers of threads")
      ->check(CLI::PositiveNumber);
  app.add_option("--items", options.items,
                 "items of benchmarks that have some");
  app.add_option("--min-time", options.minTime, "seconds per measurement");
  app.add_flag("--processor-time", options.processor,
               "of all threads together, where the machine has other work");
  app.add_flag("--no-budgets", options.noBudgets,
               "tapes have what memory they want only");
  app.add_flag("--times-only", options.timesOnly,
               "without what shows that results are right");
  app.add_flag("--smoke", options.smoke, "run the smallest case once");
  app.add_flag("--list", listOnly, "print the names of the benchmarks");
  CLI11_PARSE(app, argc, argv);

  costate::use_cache({.enabled = false}); // times of compilation are measured
  if (options.threads.empty())
    options.threads = defaultThreads(options);
  if (listOnly || names.empty()) {
    list();
    return listOnly ? 0 : 1;
  }
  try {
    std::optional<costate::Profile> profile;
    if (!trace.empty())
      profile.emplace(trace);
    return run(names, options, json);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "costate-bench: %s\n", error.what());
    return 1;
  }
}
