#pragma once
/// What tests on a device of Vulkan share.

#include "runtime/vulkan/VulkanDriver.h"

#include <gtest/gtest.h>
#include <vector>

namespace costate::runtime::vulkan {

inline constexpr unsigned char kernels[] = {
#include "runtime/vulkan/TestKernels.inc"
};

inline std::string image() { return {std::begin(kernels), std::end(kernels)}; }

/// Iterations; llvmpipe ends loops after 65535.
inline constexpr uint64_t longSpin = 60000;

class VulkanGpu : public testing::Test {
protected:
  void SetUp() override { open({.validate = true}); }
  void TearDown() override {
    if (driver)
      check(driver->synchronize()); // nothing that the layers object to
  }
  void open(Options options) {
    Result<std::shared_ptr<gpu::Driver>> opened =
        openVulkan("", std::move(options));
    if (!opened && opened.error().code == ErrorCode::NoDevice)
      GTEST_SKIP() << opened.error().text;
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    driver = *opened;
  }

  std::byte *allocate(size_t bytes) {
    Result<std::byte *> memory = driver->allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.error().text;
    return memory ? *memory : nullptr;
  }
  std::shared_ptr<gpu::Module> load() {
    Result<std::shared_ptr<gpu::Module>> module =
        driver->load({.image = image()});
    EXPECT_TRUE(module.ok()) << module.error().text;
    return *module;
  }
  template <class T> std::vector<T> read(const std::byte *from, size_t count) {
    std::vector<T> values(count);
    check(driver->download(values.data(), from, count * sizeof(T)));
    return values;
  }
  void add(gpu::Module &module, std::byte *to, size_t count, uint64_t term,
           gpu::Grid grid = {1, 32}) {
    uint64_t words[] = {address(to), count, term};
    check(driver->launch(module, "add", grid, words));
  }
  /// Leaves `iterations` at `to`; by default takes long beside everything else.
  void spin(gpu::Module &module, std::byte *to,
            uint64_t iterations = longSpin) {
    uint64_t words[] = {address(to), iterations};
    bool isFast = driver->properties().name.starts_with("llvmpipe");
    int times = isFast && iterations == longSpin ? 200 : 1;
    for (int k = 0; k < times; ++k)
      check(driver->launch(module, "spin", {1, 1}, words));
  }
  void expectWorking() {
    std::byte *memory = allocate(8);
    uint64_t one = 1;
    check(driver->upload(memory, &one, 8));
    add(*load(), memory, 1, 41);
    EXPECT_EQ(read<uint64_t>(memory, 1)[0], 42u);
    driver->release(memory);
  }
  static uint64_t address(const std::byte *place) {
    return reinterpret_cast<uint64_t>(place);
  }
  static void check(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }

  std::shared_ptr<gpu::Driver> driver;
};

template <class T> std::vector<T> repeated(T value, size_t count) {
  return std::vector<T>(count, value);
}

} // namespace costate::runtime::vulkan
