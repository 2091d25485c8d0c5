#pragma once
/// The registry of benchmarks behind costate-bench.
///
/// ```cpp
/// static void saxpy(const bench::Options &options, bench::Results &results) {
///   for (int threads : options.threads) {
///     bench::Row &row = results.add("1000000", threads);
///     row.set("primal_ms", bench::milliseconds(options, [&] { ... }));
///   }
/// }
/// static bench::Registration registration("saxpy", "y = a x + y", saxpy);
/// ```

#include "costate/device.h"
#include "costate/error.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace costate::bench {

struct Options {
  std::string device = "cpu";
  std::string label;          ///< of the results, beside those of other runs
  std::filesystem::path data; ///< empty: none was given or found
  std::vector<int> threads;   ///< numbers of threads to measure with
  double minTime = 0.3;       ///< seconds that one measurement repeats for
  bool smoke = false;         ///< the smallest case only, each thing once
  bool processor = false;     ///< its time, all threads together
  bool noBudgets = false;     ///< of tapes
  bool timesOnly = false;     ///< without what shows that results are right
  size_t items = 0; ///< of benchmarks that have items; 0: as they like
  bool isHost() const { return device == "cpu" || device == "simt"; }
};

/// One case of one benchmark. Metrics keep the order in which they were set.
struct Row {
  std::string bench, name, device;
  int threads;
  std::vector<std::pair<std::string, double>> metrics;
  void set(const std::string &metric, double value) {
    metrics.emplace_back(metric, value);
  }
  void set(const std::string &metric, std::optional<double> value) {
    if (value)
      set(metric, *value);
  }
};

class Results {
public:
  /// `file`: where cases are written as soon as they are complete, so that they
  /// stay if a later one fails; empty: nowhere.
  explicit Results(std::string device, std::string label = "",
                   std::filesystem::path file = {})
      : device(std::move(device)), label(std::move(label)),
        file(std::move(file)) {}
  void begin(std::string bench) { current = std::move(bench); }
  /// `name`: the stem of the input file, or the size.
  Row &add(const std::string &name, int threads) {
    write();
    return rows.emplace_back(Row{current, name, device, threads, {}});
  }
  /// An aligned table per benchmark; a column for each metric.
  void print() const;
  /// One JSON object per line.
  void write() const;

private:
  std::string device, label, current;
  std::filesystem::path file;
  std::deque<Row> rows; // references stay valid
};

using Function = void (*)(const Options &, Results &);

struct Bench {
  std::string name, summary;
  Function function;
};

/// All benchmarks, by name.
std::vector<Bench> &registry();

struct Registration {
  Registration(const char *name, const char *summary, Function function) {
    registry().push_back({name, summary, function});
  }
};

/// Milliseconds, of the processor: all threads together.
inline double processorNow() {
  return 1e3 * double(std::clock()) / CLOCKS_PER_SEC;
}

/// Milliseconds, of the clock that the options choose.
inline double now(const Options &options) {
  if (options.processor)
    return processorNow();
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(time).count();
}

/// The least of repeated runs of `f`, which ends with its work done, by `now`,
/// a clock in milliseconds.
template <class F, class Now>
double leastOf(const Options &options, F &&f, Now now) {
  double best = 1e300, total = 0;
  do {
    double start = now();
    f();
    double taken = now() - start;
    best = std::min(best, taken);
    total += taken;
  } while (!options.smoke && total < 1e3 * options.minTime);
  return best;
}

template <class F> double milliseconds(const Options &options, F &&f) {
  return leastOf(options, f, [&] { return now(options); });
}

/// Of the processor, all threads together.
template <class F> double processorMilliseconds(const Options &options, F &&f) {
  return leastOf(options, f, processorNow);
}

/// One of many launches that nobody waits for in between: the best mean of
/// several rows of them.
template <class F>
double steadyMilliseconds(const Options &options, const Device &device,
                          F &&launch) {
  auto row = [&](int launches) {
    double start = now(options);
    for (int k = 0; k < launches; ++k)
      launch();
    device.synchronize();
    return (now(options) - start) / launches;
  };
  row(1); // compiles, and makes room
  double best = row(1);
  if (options.smoke)
    return best;
  constexpr double rowMilliseconds = 20;
  int launches = std::clamp(int(rowMilliseconds / row(2)), 1, 200);
  for (double total = 0; total < 1e3 * options.minTime;) {
    double mean = row(launches);
    best = std::min(best, mean);
    total += mean * launches;
  }
  return best;
}

/// The same, captured: without what the host does for each launch. None where
/// the device cannot capture it.
template <class F>
std::optional<double> graphMilliseconds(const Options &options,
                                        const Device &device, F &&launch) {
  constexpr int launches = 20;
  try {
    auto graph = device.capture([&] {
      for (int k = 0; k < launches; ++k)
        launch();
    });
    return steadyMilliseconds(options, device, [&] { graph.replay(); }) /
           launches;
  } catch (const Error &error) {
    if (error.code() != ErrorCode::CannotCapture)
      throw;
    return std::nullopt;
  }
}

} // namespace costate::bench
