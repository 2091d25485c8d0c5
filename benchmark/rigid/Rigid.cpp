/// What rigid body solvers differentiate, in loops with bounds from memory.

#include "Bench.h"
#include "adbench/Data.h"
#include "rigid/Chain.h"
#include "rigid/Cholesky.h"

#include <algorithm>
#include <cmath>

namespace costate::rigid {
namespace {

using bench::milliseconds;
using bench::Options;
using bench::Results;
using bench::Row;

void runCholesky(const Options &options, Results &results, int64_t count,
                 int64_t most) {
  CholeskyInput input = randomCholesky(count, most);
  std::vector<double> factors = plainFactors(input), gradient;
  double baseline =
      milliseconds(options, [&] { gradient = plainGradient(input, factors); });
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Cholesky problem(device, input);
    Row &row = results.add(
        std::to_string(count) + "_of_3_to_" + std::to_string(most), threads);
    problem.runFactors();
    device.reset_peak_bytes();
    size_t before = device.current_bytes();
    problem.runGradient();
    row.set("primal_ms", milliseconds(options, [&] { problem.runFactors(); }));
    row.set("gradient_ms",
            milliseconds(options, [&] { problem.runGradient(); }));
    row.set("baseline_ms", baseline);
    row.set("saved_bytes", double(device.peak_bytes() - before));
    row.set("rel_err", adbench::relativeError(problem.gradient(), gradient));
  }
}

void cholesky(const Options &options, Results &results) {
  if (options.smoke)
    return runCholesky(options, results, 10, 6);
  runCholesky(options, results, 4096, 16);
  runCholesky(options, results, 512, 64);
}

/// A difference along one direction, at a tenth of the steps.
double differenceError(const Device &device, ChainInput input) {
  input.steps = std::max(1, input.steps / 10);
  Chain chain(device, input);
  chain.runGradient();
  std::vector<double> gradient = chain.gradient();
  double product = 0;
  auto move = [&](double by) {
    for (size_t k = 0; k < gradient.size(); ++k)
      chain.move(k, by * std::sin(double(k + 1)));
    return chain.run();
  };
  for (size_t k = 0; k < gradient.size(); ++k)
    product += gradient[k] * std::sin(double(k + 1));
  const double h = 1e-6;
  double after = move(h), before = move(-2 * h);
  return adbench::relativeError({product}, {(after - before) / (2 * h)});
}

void runChain(const Options &options, Results &results, int64_t links,
              int64_t scenes, int steps) {
  ChainInput input = randomChain(scenes, links, steps, /*branches=*/true);
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Chain chain(device, input);
    Row &row = results.add(std::to_string(links) + "_links_" +
                               std::to_string(scenes) + "_scenes",
                           threads);
    chain.run();
    device.reset_peak_bytes();
    size_t before = device.current_bytes();
    chain.runGradient();
    row.set("saved_bytes", double(device.peak_bytes() - before));
    row.set("primal_ms", milliseconds(options, [&] { chain.run(); }));
    row.set("gradient_ms", milliseconds(options, [&] { chain.runGradient(); }));
    row.set("steps", steps);
    row.set("rel_err", differenceError(device, input));
  }
}

void chains(const Options &options, Results &results) {
  if (options.smoke)
    return runChain(options, results, 3, 2, 2);
  runChain(options, results, 1, 4096, 100);
  runChain(options, results, 13, 256, 100);
  runChain(options, results, 30, 16, 100);
}

bench::Registration chainRegistration(
    "chain", "trees of links: kinematics, mass matrix, solve, in time", chains);
bench::Registration
    registration("cholesky",
                 "ragged Cholesky factors, gradient beside one by hand",
                 cholesky);

} // namespace
} // namespace costate::rigid
