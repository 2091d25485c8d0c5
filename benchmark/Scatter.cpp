/// Particles add to the cells of a grid: what `deterministic` costs.

#include "Bench.h"

#include "costate/costate.h"

#include <random>

namespace costate::bench {
namespace {

Kernel makeKernel(bool deterministic) {
  return kernel("scatter",
                [](ArrayRef<int32_t, 1> cell, ArrayRef<double, 1> mass,
                   ArrayRef<double, 1> grid) {
                  parallel(mass.size(), [&](Index i) {
                    for (int side = 0; side < 4; ++side)
                      grid(cell(i) + side) += (0.1 + 0.2 * side) * mass(i);
                  });
                },
                {.deterministic = deterministic});
}

void scatter(const Options &options, Results &results) {
  int64_t particles = options.smoke ? 1000 : 1'000'000, cells = particles / 8;
  std::mt19937 random(1);
  std::vector<int32_t> cell(particles);
  for (int32_t &c : cell)
    c = int32_t(random() % (cells - 4));
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Array<int32_t> at = device.array<int32_t>({particles});
    Array<double> mass = device.array<double>({particles}),
                  grid = device.array<double>({cells});
    at.from_host(cell);
    mass.fill(1);
    Row &row = results.add(std::to_string(particles), threads);
    for (bool deterministic : {false, true}) {
      Kernel k = makeKernel(deterministic);
      k(at, mass, grid);
      row.set(deterministic ? "deterministic_ms" : "primal_ms",
              milliseconds(options, [&] {
                k(at, mass, grid);
                device.synchronize();
              }));
    }
  }
}

Registration registration("scatter",
                          "atomic adds of particles, plain and deterministic",
                          scatter);

} // namespace
} // namespace costate::bench
