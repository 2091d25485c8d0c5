/// Work items of gradients on GPUs, sorted by depth: the same gradients.

#include "Labels.h"
#include "conformance/TestDevice.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

COSTATE_LABEL("*", waits);
COSTATE_LABEL("Kernels/GpuSorted.HasTheGradientOfTheCpu/*_outlier", slow);
COSTATE_LABEL("GpuSort.MayBeALaunchOfItsOwn", slow);

namespace costate::test {
namespace {

Var<double> rotated(const Var<double> &v) { return v + 0.1 * sin(3.0 * v); }

Kernel ragged() {
  return kernel("ragged", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                             ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (t, 0, n(i)) {
        v = rotated(v);
      }
      y(i) = v;
    });
  });
}

/// What decides stands behind conditions, or is computed.
Kernel gated() {
  return kernel("gated", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                            ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      IF (n(i) > 3) {
        IF (n(i) % 5 != 0) {
          FOR (t, 0, 9) {
            v = rotated(v);
          }
        }
        ELSE {
          FOR (t, 0, min(n(n(i) % 2) * 2 + n(i), 90)) {
            v = rotated(v) * 1.001;
          }
        }
        v = v * v / 2.0;
      }
      Var<int> iterations = 0;
      IF (x(i) > 0.5) {
        iterations = n(i) / 3;
      }
      FOR (k, 0, iterations) {
        v = rotated(v);
      }
      y(i) = v;
    });
  });
}

/// Most work items do nothing at all.
Kernel sparse() {
  return kernel("sparse", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                             ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Expr<double> first = x(i);
      IF (n(i) > 45) {
        Var<double> v = first;
        FOR (t, 0, 12) {
          v = rotated(v);
        }
        y(i) = v;
      }
    });
  });
}

/// The same, with iterations that nobody knows.
Kernel sparseOpen() {
  return kernel("sparse_open", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                  ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      IF (n(i) % 7 == 2) {
        Var<double> v = x(i);
        WHILE (v < 1.9) {
          v = rotated(v) + 0.2;
        }
        y(i) = v;
      }
    });
  });
}

/// Work items with two indices.
Kernel flat() {
  return kernel("flat", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                           ArrayRef<double, 1> y) {
    parallel({7, x.size() / 7}, [&](Index i, Index j) {
      Expr<int64_t> k = i * (x.size() / 7) + j;
      Var<double> v = x(k);
      FOR (t, 0, n(k) / 2) {
        FOR (s, 0, (t + cast<int64_t>(n(k))) % 3) {
          v = rotated(v);
        }
      }
      y(k) = v;
    });
  });
}

using Depths = std::vector<int>;

struct Case {
  const char *name;
  Depths depths;
  friend void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }
};

template <class F> Depths filled(int count, F f) {
  Depths depths;
  for (int i = 0; i < count; ++i)
    depths.push_back(f(i));
  return depths;
}

std::vector<Case> cases() {
  auto ragged = [](int i) { return i * 7919 % 61; };
  auto steep = [](int i) {
    return int(-20 * std::log((i * 7919 % 997 + 1) / 998.0));
  };
  std::vector<Case> all{
      {"ragged", filled(1000, ragged)},
      {"exponential", filled(2100, steep)},
      {"equal", filled(500, [](int) { return 30; })},
      {"empty", {}},
      {"one", {17}},
      {"no iterations", filled(100, [](int) { return 0; })},
      {"less than none", filled(77, [](int i) { return i % 40 - 20; })},
      {"part of a tile", filled(31, ragged)},
      {"a tile and one", filled(33, ragged)},
      {"falling", filled(300, [](int i) { return 300 - i; })}};
  Depths outlier = filled(700, ragged);
  outlier[333] = 20000;
  all.push_back({"outlier", outlier});
  return all;
}

struct Arrays {
  Arrays(const Device &device, const Depths &depths) {
    auto size = static_cast<int64_t>(depths.size());
    x = device.array<double>({size}, grad);
    y = device.array<double>({size}, grad);
    n = device.array<int>({size});
    std::vector<double> start;
    for (size_t i = 0; i < depths.size(); ++i)
      start.push_back(0.2 + double(i * 31 % 101) / 60);
    x.from_host(start);
    n.from_host(depths);
  }

  std::vector<double> gradient(const Kernel &kernel) {
    x.grad().fill(0);
    y.grad().fill(1);
    kernel.grad(x, n, y);
    return x.grad().to_host();
  }

  Array<double> x, y;
  Array<int> n;
};

std::vector<double> onCpu(const Kernel &kernel, const Depths &depths) {
  return Arrays(Device::open("cpu"), depths).gradient(kernel);
}

void expectSame(const std::vector<double> &found,
                const std::vector<double> &expected) {
  bool sameFunctions = !hasOwnFunctions(openDevice());
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (sameFunctions)
      ASSERT_EQ(found[i], expected[i]) << "entry " << i;
    else
      ASSERT_NEAR(found[i], expected[i], 1e-9 * (1 + std::abs(expected[i])))
          << "entry " << i;
}

uint64_t launchesOf(const Device &device, Arrays &arrays,
                    const Kernel &kernel) {
  arrays.x.grad().fill(0);
  arrays.y.grad().fill(1);
  device.reset_statistics();
  kernel.grad(arrays.x, arrays.n, arrays.y);
  EXPECT_EQ(device.statistics().synchronizations, 0u);
  EXPECT_EQ(device.statistics().uploads + device.statistics().downloads, 0u);
  return device.statistics().launches;
}

class GpuSorted
    : public testing::TestWithParam<std::tuple<Kernel (*)(), Case>> {};

TEST_P(GpuSorted, HasTheGradientOfTheCpu) {
  Sorting always("always");
  Kernel k = std::get<0>(GetParam())();
  const Depths &depths = std::get<1>(GetParam()).depths;
  std::vector<double> expected = onCpu(k, depths);
  for (size_t budget : {0, 5000, 1 << 22}) {
    SCOPED_TRACE("budget " + std::to_string(budget));
    Device device = openDevice({.tape_budget = budget});
    Arrays arrays(device, depths);
    for (int launch = 0; launch < 3; ++launch)
      expectSame(arrays.gradient(k), expected);
  }
}

std::string
nameOf(const testing::TestParamInfo<std::tuple<Kernel (*)(), Case>> &test) {
  std::string name =
      std::get<0>(test.param)().name() + "_" + std::get<1>(test.param).name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, GpuSorted,
                         testing::Combine(testing::Values(&ragged, &gated,
                                                          &flat, &sparse,
                                                          &sparseOpen),
                                          testing::ValuesIn(cases())),
                         nameOf);

/// The CPU does not, nor do devices of Vulkan whose blocks are one warp; others
/// of Vulkan take a launch more.
bool sorts() {
  std::string kind = kindOf(openDevice());
  return kind != "cpu" && kind != "vulkan";
}

/// Memory that gradients keep for later ones, beside tapes.
size_t keptBytes(const char *sorting, const Kernel &k, const Depths &depths) {
  Sorting chosen(sorting);
  Device device = openDevice({.tape_budget = 0});
  Arrays arrays(device, depths);
  size_t before = device.current_bytes();
  for (int launch = 0; launch < 2; ++launch)
    arrays.gradient(k);
  return device.current_bytes() - before;
}

TEST(GpuSort, KeepsTheOrder) {
  if (!sorts())
    GTEST_SKIP() << "this device does not sort";
  Depths depths = filled(20000, [](int i) { return i % 9; });
  for (const Kernel &k : {ragged(), sparse(), sparseOpen()}) {
    SCOPED_TRACE(k.name());
    size_t sorted = keptBytes("always", k, depths);
    EXPECT_GE(sorted, keptBytes("never", k, depths) + 4 * depths.size());
  }
}

/// Beside the sweep there is one more launch, a drain or one that sorts.
TEST(GpuSort, TakesNoLaunchOfItsOwnIfThereIsADrain) {
  if (!sorts())
    GTEST_SKIP() << "this device does not sort";
  Sorting always("always");
  Device device = openDevice();
  Kernel k = ragged();
  Arrays arrays(device, cases()[0].depths);
  arrays.gradient(k);
  for (int launch = 0; launch < 3; ++launch)
    EXPECT_EQ(launchesOf(device, arrays, k), 2u);
}

/// Where none differ, those without effect are left out all the same.
TEST(GpuSort, LeavesOutWorkItemsWithoutEffect) {
  if (!sorts())
    GTEST_SKIP() << "this device does not sort";
  Sorting always("always");
  for (const Kernel &k : {sparse(), sparseOpen()}) {
    Device device = openDevice();
    Arrays arrays(device, cases()[0].depths);
    arrays.gradient(k);
    EXPECT_EQ(launchesOf(device, arrays, k), 2u);
  }
}

TEST(GpuSort, NeedsLittleBlockMemory) {
  Sorting always("always");
  const Depths depths = cases()[0].depths;
  for (const Kernel &k : {ragged(), sparse()})
    for (const char *kilobytes : {"3", "6", "8", "10"}) {
      SCOPED_TRACE(k.name() + ", KiB: " + kilobytes);
      Simulated little("shared", kilobytes);
      Device device = Device::open("simt", {.threads = 1});
      Arrays arrays(device, depths);
      for (int launch = 0; launch < 2; ++launch)
        EXPECT_EQ(arrays.gradient(k), onCpu(k, depths));
    }
}

/// As by Vulkan, whose sweeps have no code that sorts.
TEST(GpuSort, MayBeALaunchOfItsOwn) {
  Sorting always("always");
  Simulated apart("sort", "apart");
  for (const Kernel &k : {ragged(), gated(), flat(), sparse(), sparseOpen()})
    for (const Case &c : cases()) {
      SCOPED_TRACE(k.name() + ", " + c.name);
      Device device = Device::open("simt");
      Arrays arrays(device, c.depths);
      for (int launch = 0; launch < 2; ++launch)
        EXPECT_EQ(arrays.gradient(k), onCpu(k, c.depths));
    }
  Device device = Device::open("simt");
  Arrays arrays(device, cases()[0].depths);
  Kernel k = ragged();
  arrays.gradient(k);
  EXPECT_EQ(launchesOf(device, arrays, k), 3u);
}

TEST(GpuSort, IsNotDoneIfNotAskedFor) {
  if (isOnCpu())
    GTEST_SKIP() << "the CPU does not sort";
  Sorting never("never");
  Device device = openDevice();
  Kernel k = ragged();
  Arrays arrays(device, cases()[0].depths);
  for (int run = 0; run < 2; ++run) // the second one may make a heap
    arrays.gradient(k);
  EXPECT_EQ(launchesOf(device, arrays, k), 2u);
}

TEST(GpuSort, FollowsDepthsThatChange) {
  Sorting always("always");
  Device device = openDevice();
  Kernel k = ragged();
  std::vector<Case> all = cases();
  for (size_t round = 0; round < 3; ++round)
    for (size_t c : {0, 1, 10, 5, 9, 2, 0}) {
      SCOPED_TRACE(all[c].name);
      expectSame(Arrays(device, all[c].depths).gradient(k),
                 onCpu(k, all[c].depths));
    }
}

class GpuSortGraph : public testing::TestWithParam<Kernel (*)()> {};

TEST_P(GpuSortGraph, FollowsDepthsThatChange) {
  Sorting always("always");
  Device device = openDevice();
  Kernel k = GetParam()();
  Depths depths = cases()[0].depths;
  Arrays arrays(device, depths);
  arrays.gradient(k);
  arrays.gradient(k);
  Graph graph = device.capture([&] {
    arrays.x.grad().fill(0);
    arrays.y.grad().fill(1);
    k.grad(arrays.x, arrays.n, arrays.y);
    arrays.y.grad().fill(1);
    k.grad(arrays.x, arrays.n, arrays.y);
  });
  Arrays larger(device, filled(5000, [](int i) { return i % 100; }));
  larger.gradient(k); // needs more memory than the graph has
  larger.gradient(k);
  for (int factor : {3, 0, 5, 1}) {
    Depths other = depths;
    for (int &depth : other)
      depth = (depth * factor) % 90;
    arrays.n.from_host(other);
    graph.replay();
    std::vector<double> expected = onCpu(k, other);
    for (double &value : expected)
      value *= 2; // each time added
    expectSame(arrays.x.grad().to_host(), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, GpuSortGraph,
                         testing::Values(&ragged, &sparse, &sparseOpen));

/// All work items add to one element, and to one adjoint.
Kernel weighted(KernelOptions options) {
  return kernel(
      "weighted",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> w,
         ArrayRef<double, 1> sum) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n(i)) {
            v = v + 0.1 * sin(w(t % 3) * v);
          }
          sum(0) += v;
        });
      },
      options);
}

std::vector<std::vector<double>> weightGradients(const Device &device,
                                                 const Kernel &k) {
  Arrays arrays(device, cases()[0].depths);
  Array<double> w = device.array<double>({3}, grad),
                sum = device.array<double>({1}, grad);
  w.fill(0.9);
  std::vector<std::vector<double>> all;
  for (int launch = 0; launch < 3; ++launch) {
    w.grad().fill(0);
    sum.grad().fill(1);
    k.grad(arrays.x, arrays.n, w, sum);
    all.push_back(w.grad().to_host());
  }
  return all;
}

TEST(GpuSort, ChangesOnlyTheOrderOfSums) {
  Sorting always("always");
  std::vector<double> expected =
      weightGradients(Device::open("cpu"), weighted({}))[0];
  for (const std::vector<double> &found :
       weightGradients(openDevice(), weighted({})))
    for (size_t k = 0; k < found.size(); ++k)
      EXPECT_NEAR(found[k], expected[k], 1e-11 * std::abs(expected[k]));
}

TEST(GpuSort, LeavesSumsOfDeterministicKernelsAsTheyAre) {
  Sorting always("always");
  auto all = weightGradients(openDevice(), weighted({.deterministic = true}));
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], all[0]);
}

} // namespace
} // namespace costate::test
