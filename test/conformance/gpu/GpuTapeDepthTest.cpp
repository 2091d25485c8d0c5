/// Gradients of nests on GPUs, with iterations that are deeper than all rows of
/// a tape.

#include "Labels.h"
#include "conformance/gpu/GpuTapes.h"

COSTATE_LABEL("*", waits);
COSTATE_LABEL("DeepGpuTapes.NeedNoMoreThanTheirBranch", slow);

namespace costate::test {
namespace {

//===-- Iterations that are deeper than all rows --------------------------===//

std::vector<Loops> deepLoops() {
  using Ints = ArrayRef<int, 1>;
  std::vector<Loops> all;
  auto add = [&](const char *name, auto body) {
    all.push_back({name, loopKernel(name, body)});
  };
  add("inner", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, cast<int64_t>(i) % 3 + 1) {
      FOR (c, 0, n(i) - 100 * a) {
        v = rotated(v);
      }
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("many_outer_iterations", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, n(i) / 8) {
      FOR (c, 0, select(a % 300 == 7, n(i), 2)) {
        v = rotated(v);
      }
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("inner_open", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, 3) {
      Var<int> k = 0;
      WHILE (k < n(i) & v < 10000.0) {
        v = rotated(v) + 1e-5;
        k += 1;
      }
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("in_open", [](Var<double> &v, Ints n, Index i) {
    Var<int> k = 0;
    WHILE (k *k < n(i) / 100) {
      FOR (j, 0, n(i) / (k + 1)) {
        v = rotated(v);
      }
      k += 1;
      IF (v < 0.0) {
        v = -v;
      }
    }
  });
  add("in_a_row", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, 3) {
      IF ((cast<int64_t>(i) + a) % 2 == 0) {
        FOR (c, 0, n(i)) {
          v = rotated(v);
        }
      }
      Var<float> s = cast<float>(v);
      FOR (c, 0, n(i) / 2) {
        s = damped(s);
      }
      v = v + sin(cast<double>(s));
    }
    FOR (c, 0, n(i) / 3) {
      v = rotated(v);
    }
  });
  add("middle", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, 2) {
      FOR (c, 0, n(i) / 10) {
        FOR (e, 0, (a + c) % 7) {
          v = rotated(v);
        }
        v = v + 0.1 * sin(v);
      }
      v = rotated(v);
    }
  });
  add("innermost", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, 2) {
      FOR (c, 0, 2) {
        FOR (e, 0, n(i)) {
          v = rotated(v);
        }
        v = v + 0.1 * sin(v);
      }
      v = rotated(v);
    }
  });
  return all;
}

class DeepGpuTape : public testing::TestWithParam<size_t> {
protected:
  Loops loop = deepLoops()[GetParam()];
};

/// Short, for tools that look at each access.
TEST_P(DeepGpuTape, FitsIntoTheMemoryOfABlock) {
  Case c{6, 1500};
  expectSame(gradient(openDevice({.tape_budget = 0}), loop.kernel, c),
             gradient(Device::open("cpu"), loop.kernel, c, 1));
}

/// The drain has no heap, and one warp of a block has a few thousand rows.
TEST_P(DeepGpuTape, HasTheGradientOfTheCpu) {
  Case c{8, 10000};
  std::vector<double> expected =
      gradient(Device::open("cpu"), loop.kernel, c, 1);
  for (size_t budget : {size_t(0), size_t(100) << 10, size_t(1) << 20}) {
    SCOPED_TRACE("budget " + std::to_string(budget));
    expectSame(gradient(openDevice({.tape_budget = budget}), loop.kernel, c),
               expected);
  }
}

/// Memory that a heap could have is of no use to a launch that is queued.
TEST_P(DeepGpuTape, IsRightWhenIterationsGrow) {
  Device device = openDevice();
  for (int longest : {50, 10000, 100})
    expectSame(gradient(device, loop.kernel, {8, longest}, 1),
               gradient(Device::open("cpu"), loop.kernel, {8, longest}, 1));
}

/// Adjoints of what all iterations of all work items read.
TEST(DeepGpuTapes, AddToCommonElements) {
  Kernel k = kernel("common", [](ArrayRef<double, 1> x, ArrayRef<double, 1> w,
                                 ArrayRef<int, 1> n, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (a, 0, 3) {
        FOR (c, 0, n(i)) {
          v = v + w(0) + w(1 + a % 2) * sin(3.0 * v);
        }
        v = v + w(0);
      }
      y(0) += v;
    });
  });
  auto gradients = [&](const Device &device) {
    Array<double> x = device.array<double>({40}, grad),
                  w = device.array<double>({3}, grad),
                  y = device.array<double>({1}, grad);
    Array<int> n = device.array<int>({40});
    x.fill(0.3);
    w.from_host({0.62, 0.1, 0.07});
    n.from_host(tripCountsOf({40, 3000}));
    y.grad().fill(1);
    k.grad(x, w, n, y);
    std::vector<double> all = x.grad().to_host();
    for (double one : w.grad().to_host())
      all.push_back(one);
    return all;
  };
  std::vector<double> expected = gradients(Device::open("cpu"));
  for (size_t budget : {0, 1 << 20}) {
    std::vector<double> found = gradients(openDevice({.tape_budget = budget}));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-7 * std::abs(expected[i])) << i;
  }
}

/// What the host knows is the need of both branches: with it a drain would ask
/// for more rows than there are.
TEST(DeepGpuTapes, NeedNoMoreThanTheirBranch) {
  Kernel k = kernel("branches", [](ArrayRef<double, 1> x, ArrayRef<double, 0> w,
                                   ArrayRef<double, 1> y, Scalar<int> most) {
    parallel(x.size(), [&](Index i) {
      Var<double> a = x(i), c = 0.1, d = 0.2, e = 0.3;
      auto iteration = [&] {
        a = sin(c + sin(a * w()));
        c = sin(d * 1.1);
        d = sin(e + a);
        e = sin(c * 0.9) + d;
      };
      IF (sin(x(i)) > 0) {
        FOR (t, 0, most) {
          iteration();
        }
      }
      ELSE {
        FOR (t, 0, most) {
          iteration();
        }
      }
      y(i) = a + c + d + e;
    });
  });
  auto gradient = [&](const Device &device) {
    std::vector<double> values(128);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = (i / 64 % 2 ? 1 : -1) * (0.1 + 0.001 * double(i));
    Array<double> x = device.array<double>({128}, grad),
                  w = device.array<double>({}, grad),
                  y = device.array<double>({128}, grad);
    x.from_host(values);
    w.fill(0.7);
    y.grad().fill(1);
    k.grad(x, w, y, 24000);
    return w.grad().to_host()[0];
  };
  double expected = gradient(Device::open("cpu"));
  for (size_t budget : {473600, 700000}) {
    size_t bytes = hasWideWarps() ? 2 * budget : budget;
    double found = gradient(openDevice({.tape_budget = bytes}));
    EXPECT_NEAR(found, expected, 1e-10 * std::abs(expected)) << budget;
  }
}

INSTANTIATE_TEST_SUITE_P(Loops, DeepGpuTape,
                         testing::Range(size_t(0), deepLoops().size()),
                         [](const auto &info) {
                           return std::string(deepLoops()[info.param].name);
                         });

} // namespace
} // namespace costate::test
