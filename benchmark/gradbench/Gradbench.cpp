/// Two problems of GradBench: k-means, which needs products with a Hessian, and
/// the particle, whose loop is as long as it falls.

#include "Bench.h"
#include "adbench/Data.h"
#include "gradbench/KMeans.h"
#include "gradbench/Particle.h"

namespace costate::gradbench {
namespace {

using bench::milliseconds;
using bench::Options;
using bench::Results;
using bench::Row;

constexpr double bestControl = 0.2071918746486116; ///< as the authors give it

void runKMeans(const Options &options, Results &results, int64_t k, int64_t n,
               int64_t d) {
  KMeansInput input = randomKMeans(k, n, d);
  KMeansReference reference;
  double baseline =
      milliseconds(options, [&] { reference = plainKMeans(input); });
  for (int threads : options.threads) {
    KMeans problem(Device::open(options.device, {.threads = threads}), input);
    Row &row = results.add("kmeans_k" + std::to_string(k) + "_n" +
                               std::to_string(n) + "_d" + std::to_string(d),
                           threads);
    problem.runCost();
    problem.runHessianProduct();
    row.set("primal_ms", milliseconds(options, [&] { problem.runCost(); }));
    row.set("gradient_ms",
            milliseconds(options, [&] { problem.runHessianProduct(); }));
    row.set("baseline_ms", baseline);
    row.set("rel_err", std::max(adbench::relativeError(problem.gradient(),
                                                       reference.gradient),
                                adbench::relativeError(problem.diagonal(),
                                                       reference.diagonal)));
  }
}

void runParticle(const Options &options, Results &results) {
  for (int threads : options.threads) {
    Particle particle(Device::open(options.device, {.threads = threads}));
    double control = particle.bestControl();
    Row &row = results.add("particle", threads);
    row.set("gradient_ms",
            milliseconds(options, [&] { particle.land(control); }));
    row.set("steps", particle.land(control).steps);
    row.set("rel_err", adbench::relativeError({control}, {bestControl}));
  }
}

void gradbench(const Options &options, Results &results) {
  runParticle(options, results);
  if (options.smoke)
    return runKMeans(options, results, 3, 100, 2);
  for (int64_t k : {10, 100, 1000})
    runKMeans(options, results, k, 10'000, 8);
}

bench::Registration registration("gradbench",
                                 "k-means and the particle of GradBench",
                                 gradbench);

} // namespace
} // namespace costate::gradbench
