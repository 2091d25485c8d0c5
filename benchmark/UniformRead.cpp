/// Derivatives by a number that all work items read: one sum over all of them.
/// By hand in CUDA: cuda/reductions.cu.

#include "Bench.h"

#include "costate/costate.h"

#include <cmath>

namespace costate::bench {
namespace {

/// `each`: y(i) += w w x(i); else loss() += w w x(i).
template <class T> Kernel makeKernel(bool each, bool deterministic) {
  KernelOptions options{.deterministic = deterministic};
  if (each)
    return kernel(
        "each",
        [](ArrayRef<T, 0> w, ArrayRef<T, 1> x, ArrayRef<T, 1> y) {
          parallel(x.size(), [&](Index i) { y(i) += w() * w() * x(i); });
        },
        options);
  return kernel(
      "sum",
      [](ArrayRef<T, 0> w, ArrayRef<T, 1> x, ArrayRef<T, 0> loss) {
        parallel(x.size(), [&](Index i) { loss() += w() * w() * x(i); });
      },
      options);
}

template <class T>
void measure(const Options &options, const Device &device, size_t items,
             bool each, bool deterministic, Row &row) {
  Array<T> w = device.array<T>({}, grad), x = device.array<T>({items});
  AnyArray y = each ? AnyArray(device.array<T>({items}, grad))
                    : AnyArray(device.array<T>({}, grad));
  std::vector<T> values(items);
  double exact = 0;
  for (size_t i = 0; i < items; ++i) {
    values[i] = T(i % 1021) / 1021 - T(0.3);
    exact += 2 * 0.75 * double(values[i]);
  }
  x.from_host(values);
  w.fill(T(0.75));
  Array<T>(y).grad().fill(1);
  Kernel k = makeKernel<T>(each, deterministic);
  row.set("primal_ms",
          steadyMilliseconds(options, device, [&] { k(w, x, y); }));
  w.grad().fill(0);
  k.grad(w, x, y);
  double first = w.grad().to_host()[0];
  row.set("rel_err",
          std::fabs(first - exact) / std::max(1.0, std::fabs(exact)));
  row.set("gradient_ms",
          steadyMilliseconds(options, device, [&] { k.grad(w, x, y); }));
  row.set("graph_ms",
          graphMilliseconds(options, device, [&] { k.grad(w, x, y); }));
  Statistics before = device.statistics();
  k.grad(w, x, y);
  row.set("launches", double(device.statistics().launches - before.launches));
}

template <class T>
void measureAll(const Options &options, Results &results, size_t items) {
  std::string type = sizeof(T) == 8 ? "f64" : "f32";
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    for (bool each : {false, true})
      for (bool deterministic : {false, true}) {
        std::string name = std::to_string(items) + "-" + type +
                           (each ? "-each" : "-sum") +
                           (deterministic ? "-deterministic" : "");
        measure<T>(options, device, items, each, deterministic,
                   results.add(name, threads));
      }
  }
}

void uniformRead(const Options &options, Results &results) {
  std::vector<size_t> sizes{size_t(1) << 16, size_t(1) << 20, size_t(1) << 22};
  if (options.smoke)
    sizes = {1000};
  if (options.items)
    sizes = {options.items};
  for (size_t items : sizes) {
    measureAll<float>(options, results, items);
    measureAll<double>(options, results, items);
  }
}

Registration registration("uniform-read",
                          "gradients by a number that all work items read",
                          uniformRead);

} // namespace
} // namespace costate::bench
