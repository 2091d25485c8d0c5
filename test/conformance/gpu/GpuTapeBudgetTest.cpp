/// Budgets for the tapes of a launch: what they take of the memory of a GPU,
/// and the bits of gradients that save all.

#include "Labels.h"
#include "conformance/gpu/GpuTapes.h"

COSTATE_LABEL("*", waits);

namespace costate::test {
namespace {

constexpr int workItems = 300, longest = 400;

/// One launch of a gradient.
struct Launch {
  Launch(const Device &device, int iterations = longest)
      : device(device), x(device.array<double>({workItems}, grad)),
        y(device.array<double>({workItems}, grad)),
        n(device.array<int>({workItems})) {
    std::vector<double> start;
    for (int i = 0; i < workItems; ++i)
      start.push_back(0.2 + double(i * 31 % 101) / 60);
    x.from_host(start);
    setIterations(iterations);
  }

  void setIterations(int iterations) {
    n.from_host(tripCountsOf({workItems, iterations}));
  }
  std::vector<double> gradientOf(const Kernel &k) {
    x.grad().fill(0);
    y.grad().fill(1);
    k.grad(x, n, y);
    return x.grad().to_host();
  }

  Device device;
  Array<double> x, y;
  Array<int> n;
};

/// Debug kernels have no tiles.
Kernel columns(size_t budget = 0) {
  return kernel(
      "columns",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (k, 0, n(i)) {
            v = rotated(v) + 1e-3 * sin(v);
          }
          y(i) = v;
        });
      },
      {.debug = true, .tape_budget = budget});
}

/// Iterations that are expensive to run again, which a heap is for.
Kernel tiles(size_t budget = 0) {
  return kernel(
      "tiles",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (k, 0, n(i)) {
            v = rotated(rotated(rotated(v)));
            IF (v > 1e6) {
              v = v - 1e6;
            }
          }
          y(i) = v;
        });
      },
      {.tape_budget = budget});
}

Kernel serial(size_t budget = 0) {
  return kernel(
      "serial",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        FOR (i, 0, 4) {
          Var<double> v = x(i);
          FOR (k, 0, n(i) * 20) {
            v = rotated(v) + 1e-3 * sin(v);
          }
          y(i) = v;
        }
        FOR (i, 4, workItems) {
          y(i) = 2.0 * x(i);
        }
      },
      {.tape_budget = budget});
}

/// Iterations that save any amounts, which nobody knows before they run.
Kernel searches(size_t budget = 0) {
  return kernel(
      "searches",
      [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          Var<int> k = 0;
          WHILE (k < n(i)) {
            Var<double> u = v;
            WHILE (u < 1.5) {
              u = u + 0.2 + 0.1 * sin(u * v);
            }
            v = rotated(0.4 * u);
            k += 1;
          }
          y(i) = v;
        });
      },
      {.debug = true, .tape_budget = budget});
}

bool isGpu() { return openDevice().name() != "cpu"; }

/// The bytes that `launch` has at most beside what there was before.
template <class Body> size_t peakOf(const Device &device, Body launch) {
  device.reset_peak_bytes();
  size_t before = device.current_bytes();
  launch();
  return device.peak_bytes() - before;
}

/// Cells, frames, lists of tiles and partial sums; a heap that drains have
/// where there is little memory on the chip.
size_t otherBytes(const Device &device) {
  return (size_t(48) << 10) +
         (kindOf(device) == "vulkan" ? size_t(256) << 10 : 0);
}

void expectWithin(Kernel (*make)(size_t), std::vector<size_t> budgets) {
  if (!isGpu())
    GTEST_SKIP() << "what the tapes of all threads take";
  std::vector<double> whole = Launch(openDevice()).gradientOf(make(0));
  for (size_t budget : budgets) {
    SCOPED_TRACE(budget);
    Device device = openDevice();
    Launch launch(device);
    Kernel k = make(budget);
    for (int times = 0; times < 3; ++times) {
      std::vector<double> found;
      size_t peak = peakOf(device, [&] { found = launch.gradientOf(k); });
      expectSame(found, whole);
      EXPECT_LE(peak, budget + otherBytes(device));
    }
    Device own = openDevice({.tape_budget = budget});
    Launch ofDevice(own);
    std::vector<double> found;
    Kernel plain = make(0);
    size_t peak = peakOf(own, [&] { found = ofDevice.gradientOf(plain); });
    expectSame(found, whole);
    EXPECT_LE(peak, budget + otherBytes(own)) << "of the device";
  }
}

TEST(GpuTapeBudget, OfColumns) {
  expectWithin(columns, {60u << 10, 200u << 10, 1u << 20, 64u << 20});
}

TEST(GpuTapeBudget, OfLoopsOfUnknownLengthInSuchLoops) {
  size_t least = (hasWideWarps() ? 120u : 60u) << 10;
  expectWithin(searches, {least, 200u << 10, 1u << 20, 64u << 20});
}

TEST(GpuTapeBudget, OfTiles) {
  expectWithin(tiles, {1u << 10, 100u << 10, 1u << 20, 64u << 20});
}

TEST(GpuTapeBudget, OfSerialCode) {
  expectWithin(serial, {10u << 10, 60u << 10, 1u << 20});
}

TEST(GpuTapeBudget, OfWorkItemsThatRunOneAfterTheOther) {
  if (!isGpu())
    GTEST_SKIP() << "what the tapes of all threads take";
  Launch launch(openDevice());
  std::vector<double> whole = launch.gradientOf(columns());
  Kernel k = columns(1 << 20);
  expectSame(launch.gradientOf(k), whole);
  EXPECT_EQ(k.report().find("within the tape budget"), std::string::npos)
      << "all iterations of 32 work items fit";
}

TEST(GpuTapeBudget, TooSmallChangesNothing) {
  if (!isGpu())
    GTEST_SKIP() << "what the tapes of all threads take";
  Launch launch(openDevice());
  launch.x.grad().fill(3);
  launch.y.grad().fill(1);
  Kernel k = columns(1000);
  try {
    k.grad(launch.x, launch.n, launch.y);
    FAIL() << "does not fit";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
    std::string text = error.what();
    for (const char *part : {"GpuTapeBudgetTest.cpp:",
                             "do not fit into the tape budget of 1000 "
                             "bytes: ",
                             " work items of the range need "})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(launch.x.grad().to_host(), std::vector<double>(workItems, 3));
  EXPECT_EQ(launch.y.grad().to_host(), std::vector<double>(workItems, 1));
}

/// What is known of one budget, or of other iterations, serves no other.
TEST(GpuTapeBudget, SizesAreOfOneBudget) {
  Launch launch(openDevice());
  std::map<int, std::vector<double>> whole;
  for (int most : {400, 30, 200})
    whole[most] = (launch.setIterations(most), launch.gradientOf(columns()));
  Kernel small = columns(60 << 10), large = columns(300 << 10);
  for (int round = 0; round < 2; ++round)
    for (int most : {400, 30, 200, 400})
      for (const Kernel *k : {&small, &large, &small}) {
        launch.setIterations(most);
        expectSame(launch.gradientOf(*k), whole[most]);
      }
}

/// A heap that others have made does not serve a launch that may have less.
TEST(GpuTapeBudget, OfSeveralKernelsOfADevice) {
  if (!isGpu())
    GTEST_SKIP() << "what the tapes of all threads take";
  Device device = openDevice();
  Launch launch(device);
  Kernel small = tiles(40 << 10), large = tiles(64 << 20), any = tiles();
  std::vector<double> whole = launch.gradientOf(any);
  for (int round = 0; round < 3; ++round)
    for (const Kernel *k : {&large, &small, &any, &small}) {
      expectSame(launch.gradientOf(*k), whole);
      std::string report = k->report();
      size_t at = report.find("all tapes of the last launch: ");
      if (k == &small && at != std::string::npos)
        EXPECT_EQ(report.find("MiB", at), std::string::npos) << report;
    }
}

TEST(GpuTapeBudget, HoldsInGraphs) {
  if (!isGpu())
    GTEST_SKIP() << "what the tapes of all threads take";
  Device device = openDevice();
  Launch launch(device);
  Kernel small = tiles(40 << 10), large = tiles(64 << 20);
  std::vector<double> whole = launch.gradientOf(large);
  launch.gradientOf(small);
  Graph graph = device.capture([&] {
    for (const Kernel *k : {&large, &small}) {
      launch.x.grad().fill(0);
      launch.y.grad().fill(1);
      k->grad(launch.x, launch.n, launch.y);
    }
  });
  for (int round = 0; round < 3; ++round) {
    graph.replay();
    expectSame(launch.x.grad().to_host(), whole);
    expectSame(launch.gradientOf(large), whole);
  }
}

/// Without a budget, what memory there is serves.
TEST(GpuTapeBudget, TakesThePlaceOfMemoryThatIsNotThere) {
  if (!isGpu())
    GTEST_SKIP() << "what the tapes of all threads take";
  std::vector<double> whole = Launch(openDevice(), 20000).gradientOf(columns());
  Device device = openDevice({.memory_limit = 3 << 20});
  Launch launch(device, 20000);
  for (int times = 0; times < 2; ++times)
    expectSame(launch.gradientOf(columns()), whole);
  EXPECT_LE(device.peak_bytes(), size_t(3) << 20);
}

} // namespace
} // namespace costate::test
