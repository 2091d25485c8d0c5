/// How much time of the processor does it take until a new kernel and its
/// gradient can run?
///
/// Straight code of n operations in one work item, and 60 operations under d
/// nested loops:
///
///     v = sin(v) * c + x;  v = v / (1 + v * v);  ...
///
/// The time should grow with the number of operations: `slope` is that of
/// log(time) over log(operations). `cached_ms`: where another process has
/// compiled both before. And 20 uses of a function of 300 operations that is
/// part of the kernel (`inlined`), or called.

#include "Bench.h"

#include "costate/cache.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <unistd.h>

namespace costate::bench {
namespace {

using Real = Expr<double>;

/// Five operations and a use of `x`.
Real iteration(Real v, Real x, int round) {
  Real a = round % 2 ? sin(v) : cos(v);
  Real b = a * (0.5 + 0.01 * round) + x;
  return b / (1.0 + b * b);
}

void body(Var<double> &v, Real x, int operations) {
  for (int round = 0; round < operations / 6; ++round)
    v = iteration(v, x, round);
}

void nest(Var<double> &v, Real x, Index iterations, int depth, int operations) {
  if (depth == 0)
    return body(v, x, operations);
  FOR (k, 0, iterations) {
    nest(v, x, iterations, depth - 1, operations);
  }
}

Kernel makeKernel(int depth, int operations) {
  return kernel("generated", [=](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                 Scalar<int64_t> iterations) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      nest(v, Real(x(i)), Index(iterations), depth, operations);
      y(i) = v;
    });
  });
}

/// From nothing to the end of the first launches.
double coldMs(const Options &options, Device &device, int depth,
              int operations) {
  Array<double> x = device.array<double>({1}, grad),
                y = device.array<double>({1}, grad);
  return processorMilliseconds(options, [&] {
    Kernel k = makeKernel(depth, operations);
    k(x, y, 1);
    k.grad(x, y, 1);
  });
}

/// A cache for compiled code while it lives.
class Cache {
public:
  Cache() { use_cache({.folder = folder.string()}); }
  ~Cache() {
    use_cache({.enabled = false});
    std::filesystem::remove_all(folder);
  }
  Cache(const Cache &) = delete;

private:
  std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                 ("costate-bench-" + std::to_string(getpid()));
};

/// The same, with code that is in files; none where caches are switched off.
std::optional<double> cachedMs(const Options &options, Device &device,
                               int depth, int operations) {
  Cache cache;
  if (cache_statistics().folder.empty())
    return std::nullopt;
  Options once = options;
  once.smoke = true;
  coldMs(once, device, depth, operations);
  return coldMs(options, device, depth, operations);
}

/// A kernel that uses a large function so often; `named` ones are called.
Kernel makeCalls(int times, bool named) {
  auto large = [](Real v, Real x) {
    for (int round = 0; round < 50; ++round)
      v = iteration(v, x, round);
    return v;
  };
  auto called = function("large", large);
  return kernel("calls", [&](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      for (int k = 0; k < times; ++k)
        v = named ? called(v, x(0)) : large(v, x(0));
      y(i) = v;
    });
  });
}

void callTimes(const Options &options, Results &results, Device &device,
               bool named) {
  Array<double> x = device.array<double>({1}, grad),
                y = device.array<double>({1}, grad);
  Kernel k = makeCalls(1, named);
  std::string name = named ? "called" : "inlined";
  double primal = processorMilliseconds(options, [&] {
    k = makeCalls(20, named);
    k(x, y);
  });
  double both = processorMilliseconds(options, [&] {
    k = makeCalls(20, named);
    k(x, y);
    k.grad(x, y);
  });
  results.add(name + "_primal", 1).set("compile_ms", primal);
  results.add(name + "_both", 1).set("compile_ms", both);
}

/// Least squares through the points (log x, log y).
double slope(const std::vector<double> &x, const std::vector<double> &y) {
  double n = double(x.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double u = std::log(x[i]), v = std::log(y[i]);
    sx += u;
    sy += v;
    sxx += u * u;
    sxy += u * v;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void series(const Options &options, Results &results, const std::string &name,
            const std::vector<int> &sizes, auto &&measure,
            auto &&measureCached) {
  std::vector<double> x, y;
  for (int size : sizes) {
    x.push_back(size);
    y.push_back(measure(size));
    Row &row = results.add(name + "_" + std::to_string(size), 1);
    row.set("compile_ms", y.back());
    row.set("cached_ms", measureCached(size));
    if (options.smoke)
      return;
  }
  results.add(name, 1).set("slope", slope(x, y));
}

void compileTime(const Options &options, Results &results) {
  Device device = Device::open(options.device, {.threads = 1});
  coldMs(options, device, 0, 6); // what a process pays once
  series(
      options, results, "ops", {100, 130, 200, 500, 1000, 2000},
      [&](int operations) { return coldMs(options, device, 0, operations); },
      [&](int operations) { return cachedMs(options, device, 0, operations); });
  series(
      options, results, "nesting", {1, 2, 4, 8},
      [&](int depth) { return coldMs(options, device, depth, 60); },
      [&](int depth) { return cachedMs(options, device, depth, 60); });
  for (bool named : {false, true})
    callTimes(options, results, device, named);
}

Registration registration("compile",
                          "cold compile time against operations and nesting",
                          compileTime);

} // namespace
} // namespace costate::bench
