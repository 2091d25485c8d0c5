/// Gradients of long and of ragged loops, and of one that is left early: time,
/// and bytes saved per iteration.

#include "Bench.h"
#include "Volume.h"

#include "costate/costate.h"
#include "costate/syntax.h"

#include <numeric>

namespace costate::bench {
namespace {

/// x(i) after n(i) iterations of v <- v sin(v) + 0.7
Kernel makeKernel(size_t budget) {
  return kernel(
      "iterations",
      [](ArrayRef<double, 1> x, ArrayRef<int32_t, 1> n, ArrayRef<double, 0> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (k, 0, n(i)) {
            v = v * sin(v) + 0.7;
          }
          y() += v;
        });
      },
      {.tape_budget = budget});
}

/// The tangent in one direction (0) or several, with the primal.
double tangentTime(const Options &options, const Device &device,
                   const Kernel &k, const std::vector<int32_t> &iterations,
                   int directions) {
  Array<double> x = device.array<double>({iterations.size()}, dual,
                                         {.directions = directions});
  Array<double> y = device.array<double>({}, dual, {.directions = directions});
  Array<int32_t> n = device.array<int32_t>({iterations.size()});
  x.fill(0.5);
  x.dual().fill(1);
  n.from_host(iterations);
  k.jvp(x, n, y);
  return milliseconds(options, [&] {
    k.jvp(x, n, y);
    device.synchronize();
  });
}

void measure(const Options &options, Results &results, const std::string &name,
             const std::vector<int32_t> &iterations, size_t budget = 0) {
  double total = std::accumulate(iterations.begin(), iterations.end(), 0.0);
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Array<double> x = device.array<double>({iterations.size()}, grad),
                  y = device.array<double>({}, grad);
    Array<int32_t> n = device.array<int32_t>({iterations.size()});
    x.fill(0.5);
    n.from_host(iterations);
    Kernel k = makeKernel(budget);
    k(x, n, y);
    y.grad().fill(1);
    device.reset_peak_bytes();
    size_t before = device.current_bytes();
    k.grad(x, n, y);
    double saved = double(device.peak_bytes() - before);
    Row &row = results.add(name, threads);
    row.set("primal_ms", milliseconds(options, [&] {
              k(x, n, y);
              device.synchronize();
            }));
    row.set("gradient_ms", milliseconds(options, [&] {
              k.grad(x, n, y);
              device.synchronize();
            }));
    row.set("saved_bytes", saved);
    row.set("peak_bytes", double(device.peak_bytes()));
    row.set("tangent_ms", tangentTime(options, device, k, iterations, 0));
    row.set("tangents_8_ms", tangentTime(options, device, k, iterations, 8));
    row.set("iterations", total);
    if (iterations.size() == 1)
      row.set("bytes_per_iteration", saved / total);
  }
}

/// A loop that is left early, scattering into what the rays pass.
void measureVolume(const Options &options, Results &results) {
  const int64_t n = options.smoke ? 8 : 64, pixels = options.smoke ? 8 : 256;
  std::vector<double> values(size_t(n * n * n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = double(i * 7919 % 1009) / 1009;
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Array<double> density = device.array<double>({n, n, n}, grad),
                  sigma = device.array<double>({}, grad),
                  image = device.array<double>({pixels, pixels}, grad);
    density.from_host(values);
    sigma.fill(0.3);
    Kernel render = volumeRenderer();
    double primal = milliseconds(options, [&] {
      render(density, sigma, image);
      device.synchronize();
    });
    double gradient = milliseconds(options, [&] {
      image.grad().fill(1);
      render.grad(density, sigma, image);
      device.synchronize();
    });
    Row &row = results.add("volume_" + std::to_string(pixels), threads);
    row.set("primal_ms", primal);
    row.set("gradient_ms", gradient);
    row.set("gradient_over_primal", gradient / primal);
    row.set("peak_bytes", double(device.peak_bytes()));
  }
}

void loops(const Options &options, Results &results) {
  int32_t long_ = options.smoke ? 1000 : 10'000'000;
  measure(options, results, "one_of_" + std::to_string(long_), {long_});
  if (options.device == "cpu" && !options.noBudgets) // GPUs have their own
    for (size_t megabytes : {1, 64})
      measure(options, results,
              "one_of_" + std::to_string(long_) + "_in_" +
                  std::to_string(megabytes) + "MB",
              {long_}, megabytes * 1'000'000);
  std::vector<int32_t> ragged(options.smoke ? 100 : 100'000);
  for (size_t i = 0; i < ragged.size(); ++i)
    ragged[i] = int32_t(i * i % 97);
  measure(options, results, "ragged_" + std::to_string(ragged.size()), ragged);
  measureVolume(options, results);
}

Registration registration("loops", "gradients of long and ragged loops", loops);

} // namespace
} // namespace costate::bench
