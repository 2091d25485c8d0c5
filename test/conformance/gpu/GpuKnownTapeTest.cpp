/// Tapes that have no tiles, and whose size follows from numbers that the host
/// has: nothing runs to measure them.

#include "Labels.h"
#include "conformance/gpu/GpuTapes.h"

COSTATE_LABEL("*", waits);

namespace costate::test {
namespace {

enum class Waits { Never, ForErrors };
using Known = void (*)(ArrayRef<double, 1>, Scalar<int>, ArrayRef<double, 1>);

/// The gradient of the sum of `y`. On a GPU a launch that only measures would
/// run its function once more.
std::vector<double> gradientOf(const Device &device, const Kernel &k, int n,
                               uint64_t launches, Waits waits) {
  Array<double> x = device.array<double>({70}, grad),
                y = device.array<double>({70}, grad);
  std::vector<double> start;
  for (int i = 0; i < 70; ++i)
    start.push_back(0.2 + i % 13 / 10.0);
  for (int launch = 0; launch < 2; ++launch) {
    x.from_host(start);
    x.grad().fill(0);
    y.grad().fill(1);
    device.reset_statistics();
    k.grad(x, n, y);
    if (device.name() != "cpu")
      EXPECT_EQ(device.statistics().launches, launches);
    if (waits != Waits::ForErrors)
      EXPECT_EQ(device.statistics().synchronizations, 0u);
  }
  return x.grad().to_host();
}

void expectOfCpu(const char *name, Known body, uint64_t launches,
                 Waits waits = Waits::Never) {
  Kernel k = kernel(name, body);
  Device device = openDevice();
  for (int n : {0, 1, 5, 300, 40}) {
    SCOPED_TRACE(std::to_string(n) + " iterations");
    expectSame(gradientOf(device, k, n, launches, waits),
               gradientOf(Device::open("cpu"), k, n, 0, waits));
  }
}

TEST(GpuKnownTape, OfSerialCode) {
  expectOfCpu(
      "serial",
      [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        Var<double> v = 0.3;
        FOR (k, 0, n) {
          v = rotated(v) + 0.01 * sin(v * x[k % 70]);
          IF (v > 40.0) {
            v = v - 0.5 * sin(v);
          }
        }
        parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
      },
      3);
}

/// Iterations of a loop take more with each iteration of the loop around.
TEST(GpuKnownTape, OfATriangle) {
  expectOfCpu(
      "triangle",
      [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        Var<double> v = 0.3;
        FOR (k, 0, n) {
          FOR (j, k / 2, min(k, 12)) {
            v = rotated(v);
          }
          v = v + 0.01 * sin(v * x[k % 70]);
        }
        parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
      },
      3);
}

TEST(GpuKnownTape, OfLargePrivateArrays) {
  expectOfCpu(
      "large",
      [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Local<double, 600> a;
          Var<double> v = x[i];
          FOR (k, 0, n) {
            v = rotated(v) + 1e-3 * sin(a[(k * k) % 600]);
            a[k % 600] = v;
          }
          y[i] = v;
        });
      },
      1);
}

TEST(GpuKnownTape, OfAStepThatMayBeZero) {
  expectOfCpu(
      "step",
      [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x[i];
          FOR (k, 0, 100, n + 1) {
            v = rotated(v);
          }
          y[i] = v;
        });
      },
      1, Waits::ForErrors);
}

} // namespace
} // namespace costate::test
