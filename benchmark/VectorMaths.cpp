/// Each function of the language, in ns for an element, beside glibc's scalar
/// and vector ones; exp(sin(x)) over a large array, beside a loop over libm.

#include "Bench.h"

#include "base/HostCode.h"
#include "compiler/MathsReference.h"
#include "costate/costate.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <random>

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

/// A function of glibc's; without an address if there is none.
struct Symbol {
  void *address;
  bool isBinary;
};

Symbol find(const char *library, const std::string &name, bool isBinary) {
  void *handle = dlopen(library, RTLD_NOW);
  return {handle ? dlsym(handle, name.c_str()) : nullptr, isBinary};
}

/// Vectors are passed in registers only where the caller has them, too.
#define CALL_EACH(function, bytes, ...)                                        \
  template <class T>                                                           \
  __VA_ARGS__ void function(Symbol symbol, const T *x, const T *y, T *z,       \
                            size_t count) {                                    \
    typedef T V __attribute__((vector_size(bytes)));                           \
    auto one = reinterpret_cast<V (*)(V)>(symbol.address);                     \
    auto two = reinterpret_cast<V (*)(V, V)>(symbol.address);                  \
    for (size_t k = 0; k < count; k += bytes / sizeof(T)) {                    \
      V a, b;                                                                  \
      std::memcpy(&a, x + k, sizeof a);                                        \
      std::memcpy(&b, y + k, sizeof b);                                        \
      a = symbol.isBinary ? two(a, b) : one(a);                                \
      std::memcpy(z + k, &a, sizeof a);                                        \
    }                                                                          \
  }

#ifdef __x86_64__
CALL_EACH(callAVX512, 64, __attribute__((target("avx512f"))))
CALL_EACH(callAVX2, 32, __attribute__((target("avx2"))))
#endif

template <class T>
void callScalar(Symbol symbol, const T *x, const T *y, T *z, size_t count) {
  auto one = reinterpret_cast<T (*)(T)>(symbol.address);
  auto two = reinterpret_cast<T (*)(T, T)>(symbol.address);
  for (size_t k = 0; k < count; ++k)
    z[k] = symbol.isBinary ? two(x[k], y[k]) : one(x[k]);
}

template <class T> struct Call {
  void (*run)(Symbol, const T *, const T *, T *, size_t) = nullptr;
  Symbol symbol;
};

/// The widest that this machine may use, as costate does.
template <class T> Call<T> vectorCall(const std::string &name, bool isBinary) {
  Call<T> call;
#ifdef __x86_64__
  bool is512 =
      __builtin_cpu_supports("avx512f") && *chosenVectors() == Vectors::AVX512;
  if (!is512 && !__builtin_cpu_supports("avx2"))
    return call;
  std::string symbol = std::string(is512 ? "_ZGVeN" : "_ZGVdN") +
                       std::to_string((is512 ? 64 : 32) / sizeof(T)) +
                       (isBinary ? "vv_" : "v_") + name;
  call = {is512 ? callAVX512<T> : callAVX2<T>,
          find("libmvec.so.1", symbol, isBinary)};
#endif
  return call;
}

/// Where programs have most arguments.
struct Domain {
  const char *operation;
  double from = -10, to = 10;
};

Domain domainOf(const std::string &operation) {
  static constexpr Domain domains[] = {
      {"costate.asin", -0.9, 0.9},  {"costate.acos", -0.9, 0.9},
      {"costate.atanh", -0.9, 0.9}, {"costate.log1p", -0.9, 10},
      {"costate.acosh", 1, 10},     {"costate.log", 0.01, 10},
      {"costate.log2", 0.01, 10},   {"costate.log10", 0.01, 10},
      {"costate.powf", 0.01, 10},   {"costate.rsqrt", 0.01, 10},
      {"math.sqrt", 0.01, 10}};
  for (const Domain &domain : domains)
    if (operation == domain.operation)
      return domain;
  return {""};
}

template <class T> class Timing {
public:
  Timing(const Options &options, const compiler::Function &function)
      : options(options), function(function), x(count), y(count), z(count) {
    Domain domain = domainOf(function.operation);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> in(domain.from, domain.to);
    for (size_t k = 0; k < count; ++k) {
      x[k] = T(in(random));
      y[k] = T(in(random));
    }
  }

  void addTo(Row &row) {
    row.set(type + "_ns", ofKernel());
    std::string name = function.operation;
    name = name.substr(name.find('.') + 1);
    if (name == "powf")
      name = "pow";
    name += sizeof(T) == 8 ? "" : "f";
    row.set(type + "_glibc_ns",
            of({callScalar<T>, find("libm.so.6", name, function.isBinary)}));
    row.set(type + "_libmvec_ns", of(vectorCall<T>(name, function.isBinary)));
  }

private:
  static constexpr size_t count = 1 << 14;

  double nanoseconds(double milliseconds) const {
    return milliseconds * 1e6 / count;
  }

  double ofKernel() {
    Device device = Device::open("cpu", {.threads = 1});
    Array<T> a = device.array<T>({count}), b = device.array<T>({count}),
             c = device.array<T>({count});
    a.from_host(x);
    b.from_host(y);
    Kernel kernel = Kernel::from_ir(compiler::kernelText(function, type));
    kernel(a, b, c);
    return nanoseconds(milliseconds(options, [&] {
      kernel(a, b, c);
      device.synchronize();
    }));
  }

  std::optional<double> of(const Call<T> &call) {
    if (!call.run || !call.symbol.address)
      return std::nullopt;
    return nanoseconds(milliseconds(options, [&] {
      call.run(call.symbol, x.data(), y.data(), z.data(), count);
    }));
  }

  Options options;
  const compiler::Function &function;
  std::vector<T> x, y, z;
  std::string type = sizeof(T) == 8 ? "f64" : "f32";
};

void functionsBeside(const Options &options, Results &results) {
  Options each = options;
  each.minTime = std::min(options.minTime, 0.05);
  for (const compiler::Function &function : compiler::functions) {
    std::string name = function.operation;
    Row &row = results.add(name.substr(name.find('.') + 1), 1);
    Timing<float>(each, function).addTo(row);
    Timing<double>(each, function).addTo(row);
  }
}

void vectorMaths(const Options &options, Results &results) {
  size_t count = options.smoke ? 1000 : 1 << 20;
  measure<double>(options, results, "f64_" + std::to_string(count), count);
  measure<float>(options, results, "f32_" + std::to_string(count), count);
  if (options.device == "cpu")
    functionsBeside(options, results);
}

Registration
    registration("maths",
                 "functions beside glibc's, ns for an element; exp(sin(x)), ms",
                 vectorMaths);

} // namespace
} // namespace costate::bench
