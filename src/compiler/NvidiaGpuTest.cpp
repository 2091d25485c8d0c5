#include "compiler/NvidiaCode.h"
#include "runtime/cuda/CudaDriver.h"

#include <algorithm>
#include <random>

namespace costate::compiler {
namespace {

/// With a GPU: code that is emitted here, and runs there.
class NvidiaGpu : public testing::Test {
protected:
  void SetUp() override {
    auto opened = runtime::cuda::openCuda(0);
    if (!opened)
      GTEST_SKIP() << opened.error().text;
    driver = *opened;
  }

  void run(const std::string &ir, const std::string &symbol, uint64_t threads,
           std::span<const uint64_t> words) {
    auto module = driver->load({.image = ptx(ir, driver->properties().chip)});
    ASSERT_TRUE(module.ok()) << module.error().text;
    runtime::gpu::Grid grid{static_cast<int64_t>((threads + 127) / 128), 128};
    auto launched = driver->launch(**module, symbol, grid, words);
    ASSERT_TRUE(launched.ok()) << launched.error().text;
  }
  template <class T> std::byte *upload(const std::vector<T> &values) {
    auto memory = driver->allocate(values.size() * sizeof(T));
    EXPECT_TRUE(memory.ok());
    EXPECT_TRUE(
        driver->upload(*memory, values.data(), values.size() * sizeof(T)));
    return *memory;
  }
  template <class T> std::vector<T> download(std::byte *memory, size_t count) {
    std::vector<T> values(count);
    auto done = driver->download(values.data(), memory, count * sizeof(T));
    EXPECT_TRUE(done.ok()) << done.error().text;
    driver->release(memory);
    return values;
  }
  static uint64_t word(std::byte *address) {
    return reinterpret_cast<uint64_t>(address);
  }
  template <class T> void expectAccurate(const Function &function);

  std::shared_ptr<runtime::gpu::Driver> driver;
};

TEST_F(NvidiaGpu, ThreadsKnowTheirNumberAndAddAtomically) {
  constexpr uint64_t count = 100 * 128;
  std::byte *out = upload(std::vector<double>(count));
  std::byte *sum = upload(std::vector<double>(1));
  std::byte *total = upload(std::vector<uint64_t>(1));
  uint64_t words[] = {word(out), word(sum), word(total)};
  run(sums, "sums", count, words);
  std::vector<double> sines = download<double>(out, count);
  double expected = 0;
  for (uint64_t i = 0; i < count; ++i) {
    EXPECT_LE(error(sines[i], std::sin(static_cast<long double>(i))), 4) << i;
    expected += sines[i];
  }
  EXPECT_NEAR(download<double>(sum, 1)[0], expected, 1e-10);
  EXPECT_EQ(download<uint64_t>(total, 1)[0], count * count);
}

TEST_F(NvidiaGpu, AGridAddsUpInOneLaunchTimeAndAgain) {
  for (uint64_t blocks : {1u, 7u, 1000u, 7u}) {
    uint64_t count = blocks * 128;
    std::byte *partials = upload(std::vector<double>(2 * blocks));
    std::byte *ticket = upload(std::vector<uint64_t>(1));
    std::byte *to = upload(std::vector<double>(2));
    uint64_t words[] = {word(partials), blocks, word(ticket), word(to)};
    run(gridSums, "sums", count, words);
    std::vector<double> once(2);
    ASSERT_TRUE(driver->download(once.data(), to, 16));
    run(gridSums, "sums", count, words);
    EXPECT_EQ(download<double>(to, 2), once);
    EXPECT_EQ(download<uint64_t>(ticket, 1)[0], 0u);
    long double sines = 0;
    for (uint64_t k = 0; k < count; ++k)
      sines += std::sin(static_cast<long double>(k));
    EXPECT_NEAR(once[0], static_cast<double>(sines), 1e-10) << blocks;
    EXPECT_EQ(once[1], static_cast<double>(count));
    driver->release(partials);
  }
}

TEST_F(NvidiaGpu, AWarpFindsItsMaximum) {
  constexpr uint64_t count = 10 * 128;
  std::mt19937_64 random(1);
  for (uint64_t largest : {uint64_t(1), uint64_t(UINT32_MAX), UINT64_MAX}) {
    std::vector<uint64_t> values(count), expected(count);
    for (uint64_t &value : values)
      value = largest == UINT64_MAX ? random() : random() % (largest + 1);
    for (uint64_t k = 0; k < count; ++k)
      expected[k] = *std::max_element(values.begin() + k / 32 * 32,
                                      values.begin() + k / 32 * 32 + 32);
    std::byte *memory = upload(values);
    uint64_t words[] = {word(memory)};
    run(warpMaximum, "f", count, words);
    EXPECT_EQ(download<uint64_t>(memory, count), expected) << largest;
  }
}

/// In units of the last place.
constexpr double largestError = 4;

template <class T> void NvidiaGpu::expectAccurate(const Function &function) {
  constexpr bool isF64 = sizeof(T) == 8;
  std::vector<T> x = samples<T>(1), y = samples<T>(2);
  std::shuffle(y.begin(), y.end(), std::mt19937(3));
  std::byte *a = upload(x), *b = upload(y), *c = upload(x);
  uint64_t words[] = {word(a), word(b), word(c), x.size()};
  run(callOf(function, isF64), "f", x.size(), words);
  std::vector<T> z = download<T>(c, x.size());
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    long double exact = function.reference(x[k], y[k]);
    double off = error(z[k], exact);
    worst = std::max(worst, off);
    EXPECT_LE(off, largestError)
        << function.operation << '(' << x[k] << ", " << y[k] << ") is " << z[k]
        << ", not " << exact;
  }
  std::string name =
      std::string(function.operation) + (isF64 ? ".f64" : ".f32");
  RecordProperty(name, std::to_string(worst));
  driver->release(a);
  driver->release(b);
}

TEST_F(NvidiaGpu, FunctionsAreAsExactAsDocumented) {
  for (const Function &function : functions) {
    if (!isCalled(function))
      continue;
    expectAccurate<float>(function);
    expectAccurate<double>(function);
  }
}

} // namespace
} // namespace costate::compiler
