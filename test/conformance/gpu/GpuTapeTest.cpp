/// Gradients of loops on GPUs, with tapes of every size: what does not fit is
/// computed again, and gives the same bits.

#include "Labels.h"
#include "conformance/gpu/GpuTapes.h"

COSTATE_LABEL("*", waits);
COSTATE_LABEL("GpuTapes.OfMultiprocessorsWithLittleMemoryAreThoseOfTheCpu",
              slow);
COSTATE_LABEL("GpuTapes.OfShortLoopsAreOnTheHeapWhereTheChipHasFewRows", slow);

namespace costate::test {
namespace {

class GpuTape : public testing::TestWithParam<size_t> {
protected:
  Loops loop = loops()[GetParam()];
};

// RULE: out-of-tape
TEST_P(GpuTape, HasTheGradientOfTheCpuWhateverFits) {
  // Rows of twice as many lanes hold a quarter of the iterations.
  const int most = hasWideWarps() ? 5000 : 20000;
  for (Case c : {Case{1, 9}, {33, 500}, {1000, 3000}, {70, most}}) {
    SCOPED_TRACE(std::to_string(c.workItems) + " work items");
    std::vector<double> expected =
        gradient(Device::open("cpu"), loop.kernel, c, 1);
    for (size_t budget : {size_t(0), size_t(1) << 20, size_t(64) << 20}) {
      SCOPED_TRACE("budget " + std::to_string(budget));
      expectSame(gradient(openDevice({.tape_budget = budget}), loop.kernel, c),
                 expected);
    }
  }
}

/// Short, for tools that look at each access.
TEST_P(GpuTape, FitsIntoTheMemoryOfABlock) {
  Case c{33, 300};
  expectSame(gradient(openDevice({.tape_budget = 0}), loop.kernel, c),
             gradient(Device::open("cpu"), loop.kernel, c, 1));
}

TEST_P(GpuTape, FollowsDepthsThatChange) {
  Device device = openDevice();
  for (int longest : {10, 4000, 20, 12000, 300})
    expectSame(gradient(device, loop.kernel, {200, longest}, 1),
               gradient(Device::open("cpu"), loop.kernel, {200, longest}, 1));
}

/// Iterations that the host knows: nothing is left over for a drain, and nobody
/// looks whether all has fitted.
TEST(GpuTapes, OfIterationsThatTheHostKnowsTakeOneLaunch) {
  Kernel k = kernel(
      "known", [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n) {
            v = rotated(v);
          }
          FOR (t, 0, n / 2) {
            v = v - 0.01 * sin(v);
          }
          y(i) = v;
        });
      });
  auto run = [&](const Device &device, int iterations) {
    Array<double> x = device.array<double>({1000}, grad),
                  y = device.array<double>({1000}, grad);
    x.fill(0.7);
    y.grad().fill(1);
    device.reset_statistics();
    k.grad(x, iterations, y);
    if (device.name() != "cpu") {
      EXPECT_EQ(device.statistics().launches, 1u);
      EXPECT_EQ(device.statistics().synchronizations, 0u);
      EXPECT_EQ(device.statistics().downloads, 0u);
    }
    return x.grad().to_host();
  };
  for (size_t budget : {0, 1 << 20}) {
    Device device = openDevice({.tape_budget = budget});
    for (int iterations : {0, 1, 60, 400, 100})
      expectSame(run(device, iterations), run(Device::open("cpu"), iterations));
  }
}

/// One record takes nearly all rows, and the loop after it the rest.
TEST(GpuTapes, OfIterationsOfDifferentSizeFitTogether) {
  Kernel k = kernel(
      "wide", [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n) {
            for (int c = 0; c < 24; ++c)
              v = v + 0.1 * sin(3.0 * v);
          }
          FOR (t, 0, 3) {
            v = v * sin(v);
          }
          y(i) = v;
        });
      });
  auto run = [&](const Device &device) {
    Array<double> x = device.array<double>({100}, grad),
                  y = device.array<double>({100}, grad);
    x.fill(0.7);
    y.grad().fill(1);
    k.grad(x, 1, y);
    return x.grad().to_host();
  };
  expectSame(run(openDevice({.tape_budget = 0})), run(Device::open("cpu")));
}

/// As NVIDIA's Vulkan driver gives a multiprocessor: blocks are of fewer warps.
TEST(GpuTapes, OfMultiprocessorsWithLittleMemoryAreThoseOfTheCpu) {
  if (!isOnCpu())
    GTEST_SKIP() << "is about the device of tests";
  Simulated little("shared", "48");
  Device device = Device::open("simt", {.tape_budget = 0});
  for (const Loops &c : loops()) {
    SCOPED_TRACE(c.name);
    for (int longest : {3, 60, 700})
      expectSame(gradient(device, c.kernel, {300, longest}),
                 gradient(Device::open("cpu"), c.kernel, {300, longest}));
  }
}

/// What an earlier function has run into is not taken for its own by one that
/// is launched for the first time.
TEST(GpuTapes, OfOthersThatDoNotFitAreSaid) {
  Device device = openDevice({.tape_budget = 0});
  if (device.name() == "cpu")
    GTEST_SKIP() << "tapes of the CPU have no budget of their own";
  Kernel first = uncut("first"), second = uncut("second");
  Array<double> x = device.array<double>({64}, grad),
                y = device.array<double>({64}, grad);
  Array<int> n = device.array<int>({64});
  x.fill(0.7);
  n.fill(20);
  first.grad(x, n, y);
  n.fill(1 << 21);
  first.grad(x, n, y);
  n.fill(20);
  EXPECT_THROW(
      {
        second.grad(x, n, y);
        device.synchronize();
      },
      Error);
}

/// From the third launch on, one drain after each sweep, and no waiting.
TEST(GpuTapes, OfDepthsInMemoryTakeADrain) {
  Sorting never("never");
  Device device = openDevice();
  if (device.name() == "cpu")
    GTEST_SKIP() << "the CPU has no drain";
  Loops loop = loops()[3];
  Array<double> x = device.array<double>({500}, grad),
                y = device.array<double>({500}, grad);
  Array<int> n = device.array<int>({500});
  n.from_host(tripCountsOf({500, 300}));
  for (int k = 0; k < 2; ++k) // the second one may make the heap
    loop.kernel.grad(x, n, y);
  device.reset_statistics();
  for (int k = 0; k < 5; ++k)
    loop.kernel.grad(x, n, y);
  EXPECT_EQ(device.statistics().launches, 10u);
  EXPECT_EQ(device.statistics().synchronizations, 0u);
  EXPECT_EQ(device.statistics().uploads + device.statistics().downloads, 0u);
}

/// A record of this loop has two rows.
TEST(GpuTapes, OnTheHeapAreThoseOfTwentyWarpsIfRecordsAreWide) {
  Device device = Device::open("simt", {.threads = 1});
  Loops loop = loops()[0];
  Array<double> x = device.array<double>({2048}, grad),
                y = device.array<double>({2048}, grad);
  Array<int> n = device.array<int>({2048});
  constexpr int iterations = 300;
  n.fill(iterations);
  size_t before = device.current_bytes();
  for (int k = 0; k < 2; ++k)
    loop.kernel.grad(x, n, y);
  device.synchronize();
  size_t tape = 2 * iterations * 128, taken = device.current_bytes() - before;
  EXPECT_GE(taken, 20 * tape);
  EXPECT_LE(taken, 24 * tape);
}

/// A few deep tiles that get deeper from launch to launch, with wide records.
TEST(GpuTapes, OfLaunchesThatGetDeeperFitIntoTheBudget) {
  constexpr int width = 12;
  Kernel k = kernel("deepens", [](ArrayRef<double, 1> x, Scalar<int> deepest,
                                  ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      std::vector<Var<double>> v;
      for (int c = 0; c < width; ++c)
        v.emplace_back(x(i) + 0.1 * c);
      Var<int> iteration = 0,
               iterations = select(i < 64, cast<int>(deepest), 2);
      WHILE (iteration < iterations) {
        for (int c = 0; c < width; ++c)
          v[static_cast<size_t>(c)] += 0.1 * sin(v[static_cast<size_t>(c)]);
        iteration += 1;
      }
      Var<double> sum = 0.0;
      for (int c = 0; c < width; ++c)
        sum += v[static_cast<size_t>(c)];
      y(i) = sum;
    });
  });
  auto gradient = [&](const Device &device, std::vector<int> launches) {
    Array<double> x = device.array<double>({2048}, grad),
                  y = device.array<double>({2048}, grad);
    x.fill(0.7);
    for (int depth : launches) {
      // Rows are twice as wide, and grow with the root of the iterations.
      int deepest = hasWideWarps() ? depth / 4 : depth;
      x.grad().fill(0);
      y.grad().fill(1);
      k.grad(x, deepest, y);
      device.synchronize();
    }
    return x.grad().to_host();
  };
  expectSame(gradient(openDevice(), {2, 800, 1500, 1700}),
             gradient(Device::open("cpu"), {1700}));
}

/// Running a sine again is more expensive than a word there, and cheaper
/// elsewhere. Where another interface would give more, memory has to be
/// granted.
TEST(GpuTapes, OfShortLoopsAreOnTheHeapWhereTheChipHasFewRows) {
  Sorting never("never");
  Kernel k = kernel("short", [](ArrayRef<float, 1> x, ArrayRef<int, 1> n,
                                ArrayRef<float, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<float> v = x(i);
      FOR (m, 0, 16) {
        FOR (j, 0, n(i)) {
          v = 0.9f * sin(v) + 0.3f;
        }
        v = 0.5f * v * v + 0.4f;
      }
      y(i) = v;
    });
  });
  auto taken = [&](const char *kilobytes, const char *ofChip = "0",
                   std::optional<size_t> budget = {}) {
    Simulated shared("shared", kilobytes);
    Simulated chip("chip", ofChip);
    Device device = Device::open("simt", {.threads = 1, .tape_budget = budget});
    Array<float> x = device.array<float>({2048}, grad),
                 y = device.array<float>({2048}, grad);
    Array<int> n = device.array<int>({2048});
    n.fill(15);
    size_t before = device.current_bytes();
    for (int launch = 0; launch < 2; ++launch)
      k.grad(x, n, y);
    device.synchronize();
    return device.current_bytes() - before;
  };
  constexpr size_t warp = 32 * 16 * 16 * sizeof(float);
  constexpr size_t drain = 256 << 10;
  EXPECT_LT(taken("228"), 2 * warp);
  EXPECT_GT(taken("48"), 16 * warp);
  EXPECT_LT(taken("48", "228"), drain + 2 * warp);
  EXPECT_GT(taken("48", "64"), 16 * warp);
  EXPECT_GT(taken("48", "228", 1 << 30), 16 * warp);
}

/// A product of derivatives, from every iteration of every work item: 64 of
/// them by another device, the others are the same.
TEST(GpuTapes, OfManyGiBAreRightAtBothEnds) {
  Device device = openDevice();
  size_t most = size_t(24) << 30;
  if (device.name() == "cpu" || device.name() == "simt" ||
      device.memory_limit() < 2 * most)
    GTEST_SKIP() << "needs a GPU with " << 2 * most << " bytes";
  device = openDevice({.tape_budget = most});
  Kernel k = kernel(
      "many", [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n) {
            v = v + 1e-4 * sin(3.0 * v) * cos(v);
          }
          y(i) = v;
        });
      });
  constexpr int64_t distinct = 64, many = 400000;
  constexpr int iterations = 20000;
  auto gradients = [&](const Device &on, int64_t count) {
    Array<double> x = on.array<double>({count}, grad),
                  y = on.array<double>({count}, grad);
    std::vector<double> start(static_cast<size_t>(count));
    for (size_t i = 0; i < start.size(); ++i)
      start[i] = 0.1 + 0.01 * static_cast<double>(i % distinct);
    x.from_host(start);
    y.grad().fill(1);
    k.grad(x, iterations, y);
    return x.grad().to_host();
  };
  std::vector<double> expected = gradients(Device::open("cpu"), distinct);
  std::vector<double> found = gradients(device, many);
  EXPECT_GT(device.peak_bytes(), size_t(5) << 30);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i % distinct],
                1e-9 * std::abs(expected[i % distinct]))
        << i;
}

TEST(GpuTapes, ThatFitNowhereAreAnErrorOnce) {
  Device device = openDevice({.tape_budget = 0});
  if (device.name() == "cpu")
    GTEST_SKIP() << "tapes of the CPU have no budget of their own";
  Kernel k = uncut("uncut");
  Array<double> x = device.array<double>({64}, grad),
                y = device.array<double>({64}, grad);
  Array<int> n = device.array<int>({64});
  x.fill(0.7);
  auto launch = [&](int iterations) {
    x.grad().fill(0);
    y.grad().fill(1);
    n.fill(iterations);
    k.grad(x, n, y);
    return x.grad().to_host();
  };
  std::vector<double> right = launch(20);
  try {
    launch(1 << 21);
    FAIL() << "so many iterations fit into the memory of a block";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
    for (const char *part : {"`uncut`", "GpuTapes.h", "tape_budget"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << error.what();
  }
  EXPECT_EQ(launch(20), right);
}

INSTANTIATE_TEST_SUITE_P(Loops, GpuTape,
                         testing::Range(size_t(0), loops().size()),
                         [](const auto &info) {
                           return std::string(loops()[info.param].name);
                         });

} // namespace
} // namespace costate::test
