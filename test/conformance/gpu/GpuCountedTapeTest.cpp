/// Tapes that have no tiles, and whose size follows from memory: what decides
/// it is counted by a launch in front, and nothing else runs there.

#include "Labels.h"
#include "conformance/gpu/GpuTapes.h"

COSTATE_LABEL("*", waits);

namespace costate::test {
namespace {

using Counted = void (*)(ArrayRef<double, 1>, ArrayRef<int, 1>,
                         ArrayRef<double, 1>);

struct Work {
  uint64_t launches, waits;
};

struct Arrays {
  Array<double> x, y;
  Array<int> n;

  explicit Arrays(const Device &device)
      : x(device.array<double>({70}, grad)),
        y(device.array<double>({70}, grad)), n(device.array<int>({70})) {
    std::vector<double> start;
    for (int i = 0; i < 70; ++i)
      start.push_back(0.2 + i % 13 / 10.0);
    x.from_host(start);
  }

  void count(int most) {
    std::vector<int> counts;
    for (int i = 0; i < 70; ++i)
      counts.push_back(i == 3 ? most : i * 7 % (most + 1));
    counts[0] = most;
    n.from_host(counts);
  }
};

/// The gradient of the sum of `y`, and what it took.
std::vector<double> gradientOf(const Device &device, const Kernel &k,
                               Arrays &arrays, Work *work = nullptr) {
  arrays.x.grad().fill(0);
  arrays.y.grad().fill(1);
  device.reset_statistics();
  k.grad(arrays.x, arrays.n, arrays.y);
  Statistics done = device.statistics();
  if (work)
    *work = {done.launches, done.synchronizations};
  return arrays.x.grad().to_host();
}

/// `counts`: launches that a gradient takes to know its tapes; `runs`: others.
void expectOfCpu(const char *name, Counted body, uint64_t counts, uint64_t runs,
                 KernelOptions options = {}) {
  Kernel k = kernel(name, body, options);
  Device device = openDevice(), cpu = Device::open("cpu");
  Arrays here(device), there(cpu);
  bool isGpu = device.name() != "cpu";
  for (int most : {5, 0, 300, 1, 40}) {
    SCOPED_TRACE(std::to_string(most) + " iterations");
    here.count(most);
    there.count(most);
    std::vector<double> expected = gradientOf(cpu, k, there);
    Work work;
    expectSame(gradientOf(device, k, here, &work), expected);
    if (!isGpu)
      continue;
    EXPECT_EQ(work.launches, counts + runs);
    EXPECT_EQ(work.waits, 1u);
    expectSame(gradientOf(device, k, here, &work), expected);
    EXPECT_EQ(work.launches, runs) << "nothing has changed";
    EXPECT_EQ(work.waits, 0u);
  }
}

TEST(GpuCountedTape, OfSerialCode) {
  expectOfCpu(
      "serial",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        Var<double> v = 0.3;
        FOR (k, 0, n[0]) {
          v = rotated(v) + 0.01 * sin(v * x[k % 70]);
          IF (v > 40.0) {
            v = v - 0.5 * sin(v);
          }
        }
        parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
      },
      1, 3);
}

TEST(GpuCountedTape, OfASum) {
  expectOfCpu(
      "sum",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        Var<int> most = 0, sum = 0;
        FOR (k, 0, 70) {
          most = max(most, n[k]);
        }
        FOR (k, 0, most) {
          sum += n[k % 70] % 3;
        }
        Var<double> v = 0.3;
        FOR (k, 0, sum % 50) {
          FOR (j, 0, n[k] % 5) {
            v = rotated(v);
          }
          v = v + 0.01 * sin(v * x[k]);
        }
        parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
      },
      1, 3);
}

/// Records of segments find room where checkpoints and the rest have been.
TEST(GpuCountedTape, OfCheckpointsInSerialCode) {
  expectOfCpu(
      "checkpoints",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        Var<double> v = 0.3;
        FOR (k, 0, n[0], checkpoints(4)) {
          v = rotated(v) + 0.01 * sin(v * x[cast<int64_t>(k) % 70]);
        }
        parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
      },
      1, 3);
}

TEST(GpuCountedTape, OfAWhile) {
  expectOfCpu(
      "open",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        Var<double> v = 0.3;
        Var<int> k = 0;
        WHILE (k < n[0] & v < 10000.0) {
          v = rotated(v) + 0.01 * sin(v * x[cast<int64_t>(k) % 70]);
          k += 1;
        }
        parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
      },
      1, 3);
}

TEST(GpuCountedTape, OfLargePrivateArrays) {
  expectOfCpu(
      "large",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Local<double, 600> a;
          Var<double> v = x[i];
          FOR (k, 0, n[i]) {
            v = rotated(v) + 1e-3 * sin(a[(k * k) % 600]);
            a[k % 600] = v;
          }
          y[i] = v;
        });
      },
      1, 1);
}

TEST(GpuCountedTape, OfDeterministicKernels) {
  expectOfCpu(
      "deterministic",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x[i];
          FOR (k, 0, n[i]) {
            v = rotated(v) + 0.01 * sin(x[(k + i) % 70]);
          }
          y[i] = v;
        });
      },
      1, 1, {.deterministic = true});
}

/// Sizes are kept for as long as nobody has written what they follow from.
Kernel counted() {
  return kernel("counted", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                              ArrayRef<double, 1> y) {
    Var<double> v = 0.3;
    FOR (k, 0, n[0] + n[1]) {
      v = rotated(v) + 0.01 * sin(v * x[k % 70]);
    }
    parallel(x.size(), [&](Index i) { y[i] = v * x[i] + x[i]; });
  });
}

Kernel grower() {
  return kernel("grow", [](ArrayRef<int, 1> n) {
    parallel(1, [&](Index i) { n[i] = 40 * n[i]; });
  });
}

// RULE: counting
TEST(GpuCountedTape, AfterALaunchThatWritesWhatItFollowsFrom) {
  Kernel k = counted(), grow = grower();
  Device device = openDevice(), cpu = Device::open("cpu");
  Arrays here(device), there(cpu);
  here.count(2);
  there.count(2);
  for (int launch = 0; launch < 3; ++launch) {
    expectSame(gradientOf(device, k, here), gradientOf(cpu, k, there));
    grow(here.n);
    grow(there.n);
  }
}

TEST(GpuCountedTape, OfWhatARecordingPutsBack) {
  Kernel k = counted();
  Kernel shrink = kernel("shrink", [](ArrayRef<int, 1> n, Scalar<int> at) {
    parallel(1, [&](Index) { n[at] = n[at] / 1000; });
  });
  auto gradient = [&](const Device &device) {
    Arrays arrays(device);
    Array<double> z = device.array<double>({70}, grad),
                  loss = device.array<double>({}, grad);
    Kernel sum = kernel("sum", [](ArrayRef<double, 1> y, ArrayRef<double, 1> z,
                                  ArrayRef<double, 0> loss) {
      parallel(y.size(), [&](Index i) { loss() += y[i] * z[i]; });
    });
    arrays.count(20000);
    Tape tape;
    {
      auto recording = tape.record();
      k(arrays.x, arrays.n, arrays.y);
      shrink(arrays.n, 0); // two copies: they are put back in place
      shrink(arrays.n, 1);
      k(arrays.x, arrays.n, z);
      sum(arrays.y, z, loss);
    }
    for (int pass = 0; pass < 2; ++pass)
      tape.backward(loss);
    return arrays.x.grad().to_host();
  };
  std::vector<double> found = gradient(openDevice()),
                      expected = gradient(Device::open("cpu"));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::abs(expected[i]));
}

TEST(GpuCountedTape, OfMemoryThatOthersWrite) {
  Kernel k = counted();
  Device device = openDevice(), cpu = Device::open("cpu");
  if (device.name() == "cuda" || device.name() == "vulkan")
    GTEST_SKIP() << "the host cannot write memory of the device";
  Arrays here(device), there(cpu);
  here.count(2);
  there.count(2);
  LentMemory lent = here.n.lend(/*writable=*/true);
  for (int most : {2, 3000, 1, 5000}) {
    static_cast<int *>(lent.address)[0] = most;
    std::vector<int> counts = there.n.to_host();
    counts[0] = most;
    there.n.from_host(counts);
    expectSame(gradientOf(device, k, here), gradientOf(cpu, k, there));
  }
}

} // namespace
} // namespace costate::test
