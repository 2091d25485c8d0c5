/// Functions of f32 by themselves, beside CUDA's: cuda/sine.cu.

#include "Bench.h"

#include "costate/costate.h"
#include "costate/syntax.h"

#include <bit>
#include <cmath>

namespace costate::bench {
namespace {

constexpr int iterations = 64;

struct Function {
  std::string name;
  bool isSine, isFast;

  Expr<float> operator()(Expr<float> x) const {
    return isSine ? sin(x) : cos(x);
  }
  KernelOptions options() const { return {.fast_math = isFast}; }
};

const Function functions[] = {{"sin-fast", true, true},
                              {"cos-fast", false, true},
                              {"sin-accurate", true, false},
                              {"cos-accurate", false, false}};

Kernel repeated(const Function &f) {
  return kernel(
      "repeated",
      [&](ArrayRef<float, 1> x, ArrayRef<float, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<float> v = x(i);
          FOR (k, 0, iterations) {
            v = 2.5f * f(v);
          }
          y(i) = v;
        });
      },
      f.options());
}

Kernel once(const Function &f) {
  return kernel(
      "once",
      [&](ArrayRef<float, 1> x, ArrayRef<float, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = f(x(i)); });
      },
      f.options());
}

/// In (-3, 3), or of any bits.
std::vector<float> numbers(size_t items, bool anyBits) {
  std::vector<float> values(items);
  for (uint32_t i = 0; i < items; ++i) {
    uint32_t bits = i * 2654435761u;
    values[i] = anyBits ? std::bit_cast<float>(bits)
                        : 6.0f * float(bits >> 8) / float(1 << 24) - 3.0f;
  }
  return values;
}

/// Of the bits; as the yardstick's, of so few digits that JSON has them all.
double checksum(const std::vector<float> &values) {
  uint64_t sum = 0;
  for (float value : values)
    sum = sum * 31 +
          (std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value));
  return double(sum >> 35);
}

void sines(const Options &options, Results &results) {
  size_t items = options.items      ? options.items
                 : options.smoke    ? 1024
                 : options.isHost() ? 1 << 14
                                    : 1 << 20;
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Array<float> x = device.array<float>({items}),
                 y = device.array<float>({items});
    for (const Function &f : functions) {
      Row &row = results.add(f.name, threads);
      Kernel k = repeated(f), bits = once(f);
      x.from_host(numbers(items, false));
      row.set("primal_ms",
              steadyMilliseconds(options, device, [&] { k(x, y); }));
      x.from_host(numbers(items, true));
      bits(x, y);
      row.set("checksum", checksum(y.to_host()));
    }
  }
}

Registration registration("sine",
                          "sines and cosines of f32, iteration after iteration",
                          sines);

} // namespace
} // namespace costate::bench
