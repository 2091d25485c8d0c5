/// Many small launches, one by one and as a graph: what the host costs.

#include "Bench.h"

#include "costate/costate.h"

namespace costate::bench {
namespace {

constexpr int launches = 16; // and as many gradients

Kernel smooth() {
  return kernel("smooth", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
    parallel(a.size() - 2, [&](Index i) {
      b(i + 1) = 0.5 * a(i + 1) + 0.25 * (a(i) + a(i + 2));
    });
  });
}

void measure(const Options &options, const Device &device, Row &row,
             int64_t size) {
  Kernel k = smooth();
  Array<double> a = device.array<double>({size}, grad);
  Array<double> b = device.array<double>({size}, grad);
  a.fill(1);
  a.grad().fill(1);
  auto step = [&] {
    for (int n = 0; n < launches; n += 2) {
      k(a, b);
      k(b, a);
    }
    for (int n = 0; n < launches; n += 2) {
      k.grad(b, a);
      k.grad(a, b);
    }
  };
  row.set("gradient_ms", steadyMilliseconds(options, device, step));
  device.reset_statistics();
  step();
  Statistics seen = device.statistics();
  row.set("waits", double(seen.synchronizations));
  row.set("copies", double(seen.uploads + seen.downloads + seen.copies));
  Graph graph = device.capture(step);
  row.set("graph_ms",
          steadyMilliseconds(options, device, [&] { graph.replay(); }));
}

void graphs(const Options &options, Results &results) {
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    for (int64_t size : {1000, 1'000'000}) {
      measure(options, device, results.add(std::to_string(size), threads),
              size);
      if (options.smoke)
        break;
    }
  }
}

Registration registration("graph", "32 small launches, one by one and captured",
                          graphs);

} // namespace
} // namespace costate::bench
