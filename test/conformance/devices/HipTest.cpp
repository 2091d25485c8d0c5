/// Kernels on their way to an AMD GPU: what HIP is given, in a library that is
/// none (FakeHip.h) and runs no kernel. `amd-host` shows what they compute.

#include "Labels.h"

#include "costate/costate.h"
#include "costate/syntax.h"

#include "runtime/gpu/GpuDevice.h"
#include "runtime/hip/FakeHip.h"
#include "runtime/hip/HipDriver.h"

#include <gtest/gtest.h>

COSTATE_LABEL("*", host);
COSTATE_LABEL("*", slow);

using namespace costate;
using runtime::hip::FakeHip;

namespace {

class HipGpu : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    fake.memory = size_t(256) << 20;
    fake.chip = GetParam() + ":sramecc+:xnack-";
    bool isNew = GetParam() == "gfx1100";
    fake.lanes = isNew ? 32 : 64;
    fake.chipNumber = isNew ? 0x41 : 0x4c;
    auto driver = runtime::hip::openHip(fake.api(), 0);
    ASSERT_TRUE(driver.ok()) << driver.error().text;
    std::string chip = (*driver)->properties().chip;
    device = Device(*runtime::gpu::openGpu(
        "hip", chip, *driver,
        {.memoryLimit = size_t(64) << 20, .validate = true}));
  }
  void expectRan(size_t kernels) {
    device->synchronize();
    EXPECT_GE(fake.ran.size(), kernels);
    EXPECT_EQ(fake.wrongWords, 0u);
  }

  FakeHip fake;
  std::optional<Device> device;
};

TEST_P(HipGpu, TakesCodeForItsChip) {
  Kernel twice =
      kernel("twice", [](ArrayRef<float, 1> x, ArrayRef<float, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = 2.0f * x(i); });
      });
  auto x = device->array<float>({1000}, grad),
       y = device->array<float>({1000}, grad);
  twice(x, y);
  expectRan(1);
  size_t before = fake.ran.size();
  twice.grad(x, y);
  expectRan(before + 1);
}

TEST_P(HipGpu, TakesGradientsWithTapes) {
  Kernel powers = kernel("powers", [](ArrayRef<int, 1> n, ArrayRef<double, 1> x,
                                      ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> value = x(i);
      FOR (k, 0, n(i)) {
        value = sin(value) * value;
      }
      y(i) = value;
    });
  });
  auto n = device->array<int>({1000});
  auto x = device->array<double>({1000}, grad),
       y = device->array<double>({1000}, grad);
  powers(n, x, y);
  powers.grad(n, x, y);
  expectRan(2);
}

INSTANTIATE_TEST_SUITE_P(Chips, HipGpu, testing::Values("gfx942", "gfx1100"),
                         [](const auto &info) { return info.param; });

} // namespace
