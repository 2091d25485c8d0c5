/// Gradients that need tapes, as kernels of a GPU: time, memory, what a launch
/// asks of the host, and the same within budgets. By hand in CUDA:
/// cuda/tape_protocol.cu; cuda/compare.py puts them side by side.

#include "Bench.h"
#include "TapeWorks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace costate::bench {
namespace {

size_t itemsFor(const Options &options) {
  if (options.items)
    return options.items;
  return options.smoke ? 512 : options.isHost() ? 1 << 15 : 1 << 20;
}

/// Launches that nobody waits for, unless they do: the least time of the host
/// for each, and what the device has done.
class Queued {
public:
  template <class F> void run(const Device &device, F &&launch) {
    device.synchronize();
    before = device.statistics();
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < launches; ++k)
      launch();
    std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    milliseconds = std::min(milliseconds, taken.count() / launches);
    after = device.statistics();
    device.synchronize();
  }

  double each(uint64_t Statistics::*count) const {
    return double(after.*count - before.*count) / launches;
  }

  double milliseconds = INFINITY;

private:
  static constexpr int launches = 50;
  Statistics before, after;
};

void addCosts(const Options &options, const Device &device,
              const BoundWork &bound, Row &row) {
  Queued gradient, primal;
  for (int round = 0; round < (options.isHost() ? 1 : 5); ++round) {
    gradient.run(device, [&] { bound.gradient(); });
    if (!options.isHost())
      primal.run(device, [&] { bound.primal(); });
  }
  row.set("launches", gradient.each(&Statistics::launches));
  row.set("synchronizations", gradient.each(&Statistics::synchronizations));
  row.set("host_copies", gradient.each(&Statistics::uploads) +
                             gradient.each(&Statistics::downloads));
  if (options.isHost())
    return;
  row.set("primal_host_ms", primal.milliseconds);
  row.set("gradient_host_ms", gradient.milliseconds);
}

template <class O>
constexpr bool hasBudget = requires(O options) { options.tape_budget = 1; };

template <class O> O withBudget(O options, size_t bytes) {
  if constexpr (hasBudget<O>)
    options.tape_budget = bytes;
  return options;
}

//===-- Rows --------------------------------------------------------------===//

size_t differing(const std::vector<float> &a, const std::vector<float> &b) {
  size_t count = 0;
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k)
    count += std::memcmp(&a[k], &b[k], sizeof(float)) != 0;
  return count;
}

/// Of the first items of a work, on the CPU.
std::vector<float> onCpu(const TapeWork &work, size_t items) {
  BoundWork bound(work, Device::open("cpu"), items);
  bound.clear();
  bound.gradient();
  return bound.gradients();
}

/// How many gradients have other bits than the CPU's; of bodies with the same
/// arithmetic there.
double differingFromCpu(const TapeWork &work,
                        const std::vector<float> &gradients) {
  size_t items = work.x.size(), some = std::min<size_t>(items, 4096);
  std::vector<float> expected = onCpu(work, some);
  size_t count =
      differing({gradients.begin(), gradients.begin() + ptrdiff_t(some)},
                {expected.begin(), expected.begin() + ptrdiff_t(some)});
  if (!work.scale.empty())
    count += differing({gradients.begin() + ptrdiff_t(items), gradients.end()},
                       {expected.begin() + ptrdiff_t(some), expected.end()});
  return double(count);
}

struct Measured {
  std::vector<float> gradients;
  size_t heap = 0;
};

Measured measure(const Options &options, const TapeWork &work,
                 const Device &device, Row &row) {
  Measured result;
  BoundWork bound(work, device);
  row.set("primal_ms",
          steadyMilliseconds(options, device, [&] { bound.primal(); }));
  device.synchronize();
  device.reset_peak_bytes();
  size_t before = device.current_bytes();
  row.set("gradient_ms",
          steadyMilliseconds(options, device, [&] { bound.gradient(); }));
  row.set("graph_ms",
          graphMilliseconds(options, device, [&] { bound.gradient(); }));
  result.heap = device.current_bytes() - before;
  bound.clear();
  bound.gradient(); // sorted, if that pays
  result.gradients = bound.gradients();
  row.set("saved_bytes", double(device.peak_bytes() - before));
  row.set("heap_bytes", double(result.heap));
  row.set("rel_err", relativeError(work, result.gradients));
  if (options.device != "cpu")
    addCosts(options, device, bound, row);
  return result;
}

/// The same where tapes may take `part` of what they took; below what one warp
/// needs there is an error, and then the device goes on.
template <class O>
void measureWithin(const Options &options, const TapeWork &work, double part,
                   const Measured &free, Row &row) {
  if constexpr (hasBudget<O>) {
    size_t budget = size_t(part * double(free.heap));
    Device device = Device::open(options.device, withBudget(O(), budget));
    row.set("budget_bytes", double(budget));
    try {
      Measured within = measure(options, work, device, row);
      row.set("differing", double(differing(within.gradients, free.gradients)));
    } catch (const Error &error) {
      std::fprintf(stderr, "%s: %s\n", row.name.c_str(), error.what());
      row.set("refused", 1);
    }
  }
}

std::string budgetName(double part) {
  return part == 0 ? "none" : "1/" + std::to_string(std::lround(1 / part));
}

void measureAll(const Options &options, Results &results,
                const TapeWork &work) {
  std::string name = work.name + "-" + nameOf(work.body);
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Row &row = results.add(name, threads);
    Measured free = measure(options, work, device, row);
    if (work.body == TapeBody::Proof && options.device != "cpu" &&
        !options.timesOnly)
      row.set("differing_from_cpu", differingFromCpu(work, free.gradients));
    if (!hasBudget<DeviceOptions> || options.device == "cpu" ||
        options.noBudgets)
      continue;
    std::vector<double> parts{1, 0.25, 1.0 / 64, 0.001, 0};
    if (free.heap == 0) // on chip
      parts = {0};
    for (double part : parts)
      measureWithin<DeviceOptions>(
          options, work, part, free,
          results.add(name + " " + budgetName(part), threads));
  }
}

template <class Make>
void measureBodies(const Options &options, Results &results, Make make) {
  for (TapeBody body : {TapeBody::Fast, TapeBody::Accurate, TapeBody::Proof})
    measureAll(options, results, make(body, itemsFor(options)));
}

void uniform(const Options &options, Results &results) {
  for (int iterations :
       options.smoke ? std::vector{64} : std::vector{64, 256, 1024})
    measureBodies(options, results, [&](TapeBody body, size_t items) {
      return uniformWork(body, items, iterations);
    });
}

void ragged(const Options &options, Results &results) {
  measureBodies(options, results, exponentialWork);
  measureBodies(options, results, rareWork);
}

void nest(const Options &options, Results &results) {
  measureBodies(options, results, nestWork);
}

void whileLoops(const Options &options, Results &results) {
  measureBodies(options, results, whileWork);
}

Registration registrations[] = {
    {"tape-uniform", "tapes of loops with equal iterations", uniform},
    {"tape-ragged", "tapes of loops with iterations from an array", ragged},
    {"tape-nest", "tapes of loops in loops", nest},
    {"tape-while", "tapes of loops that end when they have converged",
     whileLoops}};

} // namespace
} // namespace costate::bench
