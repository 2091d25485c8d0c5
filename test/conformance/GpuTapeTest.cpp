/// Gradients of loops on GPUs, with tapes of every size: what does not fit is
/// computed again, and gives the same bits.

#include "TestDevice.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

#include <functional>

namespace costate::test {
namespace {

/// v <- v + 0.1 sin(3 v): neither contracts nor grows fast.
Var<double> turned(const Var<double> &v) { return v + 0.1 * sin(3.0 * v); }

struct Loops {
  const char *name;
  Kernel kernel;
};

template <class Body> Kernel loopKernel(const char *name, Body body) {
  return kernel(name, [=](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                          ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      body(v, n, i);
      y(i) = v;
    });
  });
}

std::vector<Loops> loops() {
  using Ints = ArrayRef<int, 1>;
  std::vector<Loops> all;
  auto add = [&](const char *name, auto body) {
    all.push_back({name, loopKernel(name, body)});
  };
  add("one", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i)) {
      v = turned(v);
    }
  });
  add("open", [](Var<double> &v, Ints n, Index i) {
    Var<int> k = 0;
    WHILE (k < n(i) & v < 50.0) {
      v = turned(v) + 0.01;
      k += 1;
      IF (v > 40.0) {
        BREAK;
      }
    }
  });
  add("nest", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 8) {
      FOR (j, 0, (k * 7 + cast<int64_t>(n(i))) % 5) {
        v = turned(v);
      }
      v = v * 0.5 + 0.4 * v * v / (1.0 + v * v);
    }
  });
  add("open_in_nest", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 8) {
      Var<double> w = v + 1.0;
      WHILE (w < 1.5 + 0.3 * v) {
        w = w * 1.1 + 0.01 * v;
      }
      v = turned(v) + 0.1 * w;
    }
  });
  add("nest_in_open", [](Var<double> &v, Ints n, Index i) {
    Var<int> k = 0;
    WHILE (k *k < n(i)) {
      FOR (j, 0, k % 4) {
        v = turned(v);
      }
      k += 1;
    }
  });
  add("in_a_row", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 2) {
      v = turned(v);
    }
    v = v * v / 2.0;
    FOR (k, 0, n(i) / 3) {
      v = turned(v) - 0.001;
    }
    Var<double> w = v;
    FOR (k, 0, 4) {
      w = w * sin(w);
    }
    v += w;
  });
  add("branches", [](Var<double> &v, Ints n, Index i) {
    IF (n(i) % 3 != 1) {
      FOR (k, 0, n(i)) {
        IF (v > 1.0) {
          v = v - 0.2 * sin(v);
        }
        ELSE { v = turned(v) * 1.01; }
      }
    }
    ELSE {
      FOR (k, 0, n(i) / 2) {
        v = sin(v) + 0.2;
      }
    }
    IF (v > 0.5) {
      v = v * sin(v);
    }
  });
  add("three_deep", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, n(i) % 7) {
      FOR (c, 0, a + 1) {
        FOR (e, 0, (a + c) % 3) {
          v = turned(v);
        }
        IF (v > 0.7) {
          FOR (e, 0, 2 * c) {
            v = v - 0.1 * v * v;
          }
        }
      }
      v = turned(v);
    }
  });
  add("single_before_a_nest", [](Var<double> &v, Ints n, Index i) {
    Var<float> s = cast<float>(v);
    FOR (k, 0, n(i)) {
      s = s + 0.1f * sin(3.0f * s);
    }
    v = cast<double>(s);
    FOR (k, 0, 3) {
      FOR (j, 0, n(i) % 19) {
        v = turned(v);
      }
      v = v * sin(v) + 0.3;
    }
  });
  return all;
}

struct Case {
  int64_t iterations;
  int longest; ///< turns of a few; others are shorter
};

std::vector<int> turnsOf(Case c) {
  std::vector<int> turns;
  for (int64_t i = 0; i < c.iterations; ++i)
    turns.push_back(i % 37 == 5 ? c.longest : int(i * 7919 % 61));
  return turns;
}

std::vector<double> gradient(const Device &device, const Kernel &kernel, Case c,
                             int launches = 2) {
  auto size = static_cast<size_t>(c.iterations);
  Array<double> x = device.array<double>({c.iterations}, grad),
                y = device.array<double>({c.iterations}, grad);
  Array<int> n = device.array<int>({c.iterations});
  std::vector<double> start(size);
  for (size_t i = 0; i < size; ++i)
    start[i] = 0.2 + double(i * 31 % 101) / 60;
  x.from_host(start);
  n.from_host(turnsOf(c));
  for (int k = 0; k < launches; ++k) {
    x.grad().fill(0);
    y.grad().fill(1);
    kernel.grad(x, n, y);
  }
  return x.grad().to_host();
}

class GpuTape : public testing::TestWithParam<size_t> {
protected:
  Loops loop = loops()[GetParam()];
};

/// Nothing is added in an order of chance here, and functions are the host's.
void expectSame(const std::vector<double> &found,
                const std::vector<double> &expected) {
  bool sameFunctions = openDevice().name() != "cuda";
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (sameFunctions)
      ASSERT_EQ(found[i], expected[i]) << "entry " << i;
    else
      ASSERT_NEAR(found[i], expected[i], 1e-9 * (1 + std::abs(expected[i])))
          << "entry " << i;
}

TEST_P(GpuTape, HasTheGradientOfTheCpuWhateverFits) {
  for (Case c : {Case{1, 9}, {33, 500}, {1000, 3000}, {70, 20000}}) {
    SCOPED_TRACE(std::to_string(c.iterations) + " iterations");
    std::vector<double> expected =
        gradient(Device::open("cpu"), loop.kernel, c, 1);
    for (size_t budget : {size_t(0), size_t(1) << 20, size_t(64) << 20}) {
      SCOPED_TRACE("budget " + std::to_string(budget));
      expectSame(gradient(openDevice({.tape_budget = budget}), loop.kernel, c),
                 expected);
    }
  }
}

TEST_P(GpuTape, FollowsDepthsThatChange) {
  Device device = openDevice();
  for (int longest : {10, 4000, 20, 12000, 300})
    expectSame(gradient(device, loop.kernel, {200, longest}, 1),
               gradient(Device::open("cpu"), loop.kernel, {200, longest}, 1));
}

/// Turns that the host knows: nothing is left over for a drain, and nobody
/// looks whether all has fitted.
TEST(GpuTapes, OfTurnsThatTheHostKnowsTakeOneLaunch) {
  Kernel k = kernel(
      "known", [](ArrayRef<double, 1> x, Scalar<int> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n) {
            v = turned(v);
          }
          FOR (t, 0, n / 2) {
            v = v - 0.01 * sin(v);
          }
          y(i) = v;
        });
      });
  auto run = [&](const Device &device, int turns) {
    Array<double> x = device.array<double>({1000}, grad),
                  y = device.array<double>({1000}, grad);
    x.fill(0.7);
    y.grad().fill(1);
    device.reset_statistics();
    k.grad(x, turns, y);
    if (device.name() != "cpu") {
      EXPECT_EQ(device.statistics().launches, 1u);
      EXPECT_EQ(device.statistics().synchronizations, 0u);
      EXPECT_EQ(device.statistics().downloads, 0u);
    }
    return x.grad().to_host();
  };
  for (size_t budget : {0, 1 << 20}) {
    Device device = openDevice({.tape_budget = budget});
    for (int turns : {0, 1, 60, 400, 100})
      expectSame(run(device, turns), run(Device::open("cpu"), turns));
  }
}

/// One record takes nearly all rows, and the loop behind it the rest.
TEST(GpuTapes, OfTurnsOfDifferentSizeFitTogether) {
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

/// What an earlier function has run into is not taken for its own by one that
/// is launched for the first time.
TEST(GpuTapes, OfOthersThatDoNotFitAreSaid) {
  Device device = openDevice({.tape_budget = 1 << 20});
  if (device.name() == "cpu")
    GTEST_SKIP() << "tapes of the CPU have no budget of their own";
  auto uncut = [](const char *name) {
    return loopKernel(name, [](Var<double> &v, ArrayRef<int, 1> n, Index i) {
      FOR (a, 0, n(i) % 3 + 1) {
        FOR (c, 0, n(i)) {
          v = turned(v);
        }
        v = v * sin(v);
      }
    });
  };
  Kernel first = uncut("first"), second = uncut("second");
  Array<double> x = device.array<double>({64}, grad),
                y = device.array<double>({64}, grad);
  Array<int> n = device.array<int>({64});
  x.fill(0.7);
  n.fill(20);
  first.grad(x, n, y);
  n.fill(200000);
  first.grad(x, n, y);
  n.fill(20);
  EXPECT_THROW(
      {
        second.grad(x, n, y);
        device.synchronize();
      },
      Error);
}

/// From the third launch on, one drain behind each sweep, and no waiting.
TEST(GpuTapes, OfDepthsInMemoryTakeADrain) {
  Device device = openDevice();
  if (device.name() == "cpu")
    GTEST_SKIP() << "the CPU has no drain";
  Loops loop = loops()[2];
  Array<double> x = device.array<double>({500}, grad),
                y = device.array<double>({500}, grad);
  Array<int> n = device.array<int>({500});
  n.from_host(turnsOf({500, 300}));
  for (int k = 0; k < 2; ++k) // the second one may make the heap
    loop.kernel.grad(x, n, y);
  device.reset_statistics();
  for (int k = 0; k < 5; ++k)
    loop.kernel.grad(x, n, y);
  EXPECT_EQ(device.statistics().launches, 10u);
  EXPECT_EQ(device.statistics().synchronizations, 0u);
  EXPECT_EQ(device.statistics().uploads + device.statistics().downloads, 0u);
}

/// The turns of the inner loop cannot be cut: they fit nowhere.
TEST(GpuTapes, ThatFitNowhereAreAnErrorOnce) {
  Device device = openDevice({.tape_budget = 0});
  if (device.name() == "cpu")
    GTEST_SKIP() << "tapes of the CPU have no budget of their own";
  Kernel k =
      loopKernel("uncut", [](Var<double> &v, ArrayRef<int, 1> n, Index i) {
        FOR (a, 0, n(i) % 3 + 1) {
          FOR (c, 0, n(i)) {
            v = turned(v);
          }
          v = v * sin(v);
        }
      });
  Array<double> x = device.array<double>({64}, grad),
                y = device.array<double>({64}, grad);
  Array<int> n = device.array<int>({64});
  x.fill(0.7);
  auto launch = [&](int turns) {
    x.grad().fill(0);
    y.grad().fill(1);
    n.fill(turns);
    k.grad(x, n, y);
    return x.grad().to_host();
  };
  std::vector<double> right = launch(20);
  try {
    launch(200000);
    FAIL() << "200,000 turns fit into the memory of a block";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
    for (const char *part : {"`uncut`", "GpuTapeTest.cpp", "tape_budget"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << error.what();
  }
  EXPECT_EQ(launch(20), right);
}

TEST(GpuTapes, OfAGraphFollowDepthsThatChange) {
  Device device = openDevice();
  Loops loop = loops()[0];
  Array<double> x = device.array<double>({300}, grad),
                y = device.array<double>({300}, grad);
  Array<int> n = device.array<int>({300});
  std::vector<double> start;
  for (int i = 0; i < 300; ++i)
    start.push_back(0.2 + double(i * 31 % 101) / 60);
  x.from_host(start);
  n.from_host(turnsOf({300, 50}));
  loop.kernel.grad(x, n, y); // says how deep tapes are
  Graph graph = device.capture([&] {
    x.grad().fill(0);
    y.grad().fill(1);
    loop.kernel.grad(x, n, y);
  });
  for (int longest : {50, 9000, 200}) {
    n.from_host(turnsOf({300, longest}));
    graph.replay();
    expectSame(x.grad().to_host(),
               gradient(Device::open("cpu"), loop.kernel, {300, longest}, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Loops, GpuTape,
                         testing::Range(size_t(0), loops().size()),
                         [](const auto &info) {
                           return std::string(loops()[info.param].name);
                         });

} // namespace
} // namespace costate::test
