#include "runtime/vulkan/Probe.h"

#include <cmath>
#include <map>
#include <mutex>
#include <random>
#include <vector>

namespace costate::runtime::vulkan {
namespace {

constexpr unsigned char code32[] = {
#include "runtime/vulkan/Probe32.inc"
};
constexpr unsigned char code64[] = {
#include "runtime/vulkan/Probe64.inc"
};

/// More than some drivers let a loop make.
constexpr uint64_t manyIterations = 70000;

constexpr int blockThreads = 32;
constexpr size_t threads = 4096;

template <size_t N>
Result<std::shared_ptr<gpu::Module>> load(gpu::Driver &driver,
                                          const unsigned char (&code)[N]) {
  return driver.load({.image = {std::begin(code), std::end(code)}});
}

uint64_t numberOf(const std::byte *address) {
  return reinterpret_cast<uint64_t>(address);
}

/// Memory that is released in the end.
struct Scratch {
  Scratch(gpu::Driver &driver, size_t bytes)
      : driver(driver), place(driver.allocate(bytes)) {}
  ~Scratch() {
    if (place)
      driver.release(*place);
  }
  gpu::Driver &driver;
  Result<std::byte *> place;
};

/// How many iterations a loop of `manyIterations` makes.
Result<uint64_t> tripCountOfLoop(gpu::Driver &driver, gpu::Module &module) {
  Scratch cell(driver, sizeof(uint64_t));
  if (!cell.place)
    return cell.place.error();
  uint64_t words[] = {numberOf(*cell.place), manyIterations}, iterations = 0;
  Result<> done = driver.launch(module, "iterations", {1, 1}, words);
  if (done)
    done = driver.download(&iterations, *cell.place, sizeof iterations);
  return done ? iterations : Result<uint64_t>(done.error());
}

/// a, b and c of each thread, far from where numbers get denormal. Half of the
/// sums a b + c cancel.
template <class T> std::vector<T> numbers() {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<T> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-20, 20);
  auto any = [&] { return std::ldexp(mantissa(random), exponent(random)); };
  std::vector<T> values;
  for (size_t k = 0; k < threads; ++k) {
    T a = any(), b = any();
    T product = a * b;
    values.insert(values.end(), {a, b, k % 2 ? -product : any()});
  }
  return values;
}

struct Exact {
  bool fma = true, quotient = true, root = true;
};

template <class T>
Result<Exact> exactness(gpu::Driver &driver, gpu::Module &module) {
  std::vector<T> in = numbers<T>(), out(in.size());
  size_t bytes = in.size() * sizeof(T);
  Scratch from(driver, bytes), to(driver, bytes);
  if (!from.place || !to.place)
    return from.place ? to.place.error() : from.place.error();
  uint64_t words[] = {numberOf(*from.place), numberOf(*to.place)};
  Result<> done = driver.upload(*from.place, in.data(), bytes);
  if (done)
    done = driver.launch(module, "floats",
                         {threads / blockThreads, blockThreads}, words);
  if (done)
    done = driver.download(out.data(), *to.place, bytes);
  if (!done)
    return done.error();
  Exact exact;
  for (size_t k = 0; k < in.size(); k += 3) {
    exact.fma &= out[k] == std::fma(in[k], in[k + 1], in[k + 2]);
    exact.quotient &= out[k + 1] == in[k] / in[k + 1];
    exact.root &= out[k + 2] == std::sqrt(in[k]);
  }
  return exact;
}

Result<> probeSingle(gpu::Driver &driver, VulkanFeatures &features) {
  auto module = load(driver, code32);
  if (!module)
    return module.error();
  Result<uint64_t> iterations = tripCountOfLoop(driver, **module);
  if (!iterations)
    return iterations.error();
  features.endsLongLoops = *iterations != manyIterations;
  Result<Exact> exact = exactness<float>(driver, **module);
  if (!exact)
    return exact.error();
  features.fma32 = exact->fma;
  features.div32 = exact->quotient;
  features.sqrt32 = exact->root;
  return {};
}

Result<> probeDouble(gpu::Driver &driver, VulkanFeatures &features) {
  auto module = load(driver, code64);
  if (!module)
    return module.error();
  Result<Exact> exact = exactness<double>(driver, **module);
  if (!exact)
    return exact.error();
  features.fma64 = exact->fma;
  features.div64 = exact->quotient;
  features.sqrt64 = exact->root;
  return {};
}

} // namespace

Result<> probe(gpu::Driver &driver, const std::string &name,
               VulkanFeatures &features) {
  static std::mutex mutex;
  static auto &known = *new std::map<std::string, VulkanFeatures>;
  std::lock_guard lock(mutex);
  if (auto found = known.find(name); found != known.end()) {
    features = found->second;
    return {};
  }
  Result<> done = probeSingle(driver, features);
  if (done && features.f64)
    done = probeDouble(driver, features);
  if (done)
    known[name] = features;
  driver.counters().reset();
  return done;
}

} // namespace costate::runtime::vulkan
