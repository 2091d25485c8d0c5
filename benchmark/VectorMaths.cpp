/// exp(sin(x)) over a large array, beside a loop over libm: what vector maths
/// is worth.

#include "Bench.h"

#include "costate/costate.h"

#include <cmath>

namespace costate::bench {
namespace {

template <class T> Kernel makeKernel() {
  return kernel("exp_sin", [](ArrayRef<T, 1> x, ArrayRef<T, 1> y) {
    parallel(x.size(), [&](Index i) { y(i) = exp(sin(x(i))); });
  });
}

template <class T>
void measure(const Options &options, Results &results, const std::string &name,
             size_t count) {
  std::vector<T> in(count), out(count);
  for (size_t i = 0; i < count; ++i)
    in[i] = T(i % 10000) * T(1e-3);
  double baseline = milliseconds(options, [&] {
    for (size_t i = 0; i < count; ++i)
      out[i] = std::exp(std::sin(in[i]));
  });
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Array<T> x = device.array<T>({count}, grad),
             y = device.array<T>({count}, grad);
    x.from_host(in);
    Kernel k = makeKernel<T>();
    k(x, y);
    Row &row = results.add(name, threads);
    row.set("primal_ms", milliseconds(options, [&] {
              k(x, y);
              device.synchronize();
            }));
    y.grad().fill(1);
    k.grad(x, y);
    row.set("gradient_ms", milliseconds(options, [&] {
              k.grad(x, y);
              device.synchronize();
            }));
    row.set("baseline_ms", baseline);
  }
}

void vectorMaths(const Options &options, Results &results) {
  size_t count = options.smoke ? 1000 : 1 << 20;
  measure<double>(options, results, "f64_" + std::to_string(count), count);
  measure<float>(options, results, "f32_" + std::to_string(count), count);
}

Registration registration("maths", "exp(sin(x)) beside libm", vectorMaths);

} // namespace
} // namespace costate::bench
