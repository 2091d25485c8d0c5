/// What goes wrong is said in the words of the user, with the place, and
/// nothing is lost.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

COSTATE_LABEL("ErrorConformance.TheFirstOfMany*", waits);
COSTATE_LABEL("ErrorConformance.TheFirstOfMany*", sample);

namespace {

using X = ArrayRef<double, 1>;

/// Where the mistake is: set in front of it.
int line = 0;

/// Expects that the kernel of `body` is refused at `line` of this file.
template <class F> void expectBadKernel(const std::string &text, F &&body) {
  std::string what;
  try {
    kernel("bad", body);
    ADD_FAILURE() << "no error";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::BadKernel);
    what = error.what();
  }
  EXPECT_NE(what.find(here(__FILE__, line)), what.npos) << what;
  EXPECT_NE(what.find(text), what.npos) << what;
}

TEST(ErrorConformance, JumpsInTheWrongPlace) {
  expectBadKernel("`BREAK` outside a loop", [](X x) {
    parallel(x.size(), [&](Index) {
      line = __LINE__ + 1;
      BREAK;
    });
  });
  expectBadKernel("`CONTINUE` outside a loop", [](X x) {
    IF (x(0) > 1) {
      line = __LINE__ + 1;
      CONTINUE;
    }
  });
  expectBadKernel("`BREAK` outside a loop", [](X x) {
    FOR (t, 0, 3) {
      parallel(x.size(), [&](Index) {
        line = __LINE__ + 1;
        BREAK;
      });
    }
  });
}

TEST(ErrorConformance, BlocksInTheWrongPlace) {
  expectBadKernel("without an `IF`", [](X x) {
    x(0) = 1;
    line = __LINE__ + 1;
    ELSE { x(0) = 2; }
  });
  expectBadKernel("without an `IF`", [](X x) {
    IF (x(0) > 1) {
      x(0) = 3;
    }
    ELSE { x(0) = 2; }
    line = __LINE__ + 1;
    ELIF (x(0) > 2) {
      x(0) = 4;
    }
  });
  expectBadKernel("`parallel` inside `parallel`", [](X x) {
    parallel(x.size(), [&](Index) {
      line = __LINE__ + 1;
      parallel(x.size(), [&](Index j) { x(j) = 1; });
    });
  });
}

TEST(ErrorConformance, ValuesInTheWrongPlace) {
  expectBadKernel("outside of the block that computed it", [](X x) {
    Index saved;
    FOR (i, 0, 3) {
      saved = i;
    }
    line = __LINE__ + 1;
    x(saved) = 1;
  });
  expectBadKernel("from outside of `parallel`", [](X x) {
    Var<double> sum = 0;
    line = __LINE__ + 1;
    parallel(x.size(), [&](Index i) { sum += x(i); });
  });
  expectBadKernel("never set", [](X x) {
    Expr<double> nothing;
    line = __LINE__ + 1;
    x(0) = nothing;
  });
  expectBadKernel("no dimension 1", [](X x) {
    line = __LINE__ + 1;
    x(x.size(1)) = 0;
  });
}

TEST(ErrorConformance, ValuesOfAnotherKernel) {
  std::shared_ptr<Var<double>> leaked;
  kernel("leaks", [&](X x) {
    leaked = std::make_shared<Var<double>>(x(0));
    x(1) = *leaked;
  });
  expectBadKernel("another kernel", [&](X x) {
    line = __LINE__ + 1;
    x(0) = *leaked;
  });
  expectError(ErrorCode::BadKernel, {"outside of a kernel"},
              [&] { *leaked = 1; });
}

TEST(ErrorConformance, AnExceptionInAKernelPassesThrough) {
  auto body = [](ArrayRef<double, 1> x) {
    FOR (i, 0, 3) {
      x(i) = 1;
      throw std::runtime_error("mine");
    }
  };
  EXPECT_THROW(kernel("throws", body), std::runtime_error);
  auto x = active<double>({0});
  kernel("fine", [](ArrayRef<double, 1> x) { x(0) = 42; })(x);
  EXPECT_EQ(x.to_host()[0], 42);
}

TEST(ErrorConformance, NumbersThatAnArgumentDoesNotHave) {
  Kernel k = kernel("numbers", [](ArrayRef<double, 0> x, Scalar<int> i,
                                  Scalar<uint32_t> u, Scalar<bool> b) {
    x() = cast<double>(i) + cast<double>(u) + cast<double>(b);
  });
  auto x = cpu().array<double>({});
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (double bad : {1.5, nan, inf, 3e9})
    expectError(ErrorCode::BadArgument, {"`numbers`", "argument 2", "i32"},
                [&] { k(x, bad, 0, false); });
  expectError(ErrorCode::BadArgument, {"argument 3", "u32", "-1"},
              [&] { k(x, 0, -1, false); });
  expectError(ErrorCode::BadArgument, {"argument 4", "bool", "2"},
              [&] { k(x, 0, 0, 2); });
  k(x, 3.0, 4, true);
  EXPECT_EQ(x.to_host()[0], 8);
}

// RULE: own-elements
TEST(ErrorConformance, ANeighbourBehindAConditionIsRefusedWithoutDebug) {
  static unsigned store = 0;
  Kernel k = kernel("sweep", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                ArrayRef<double, 0> sum, Scalar<int> last) {
    parallel(y.size(), [&](Index i) {
      IF (i < last) {
        store = __LINE__ + 1;
        y(i) = x(i);
      }
      ELSE {
        line = __LINE__ + 1;
        sum() += y(i - 1) * 2.0;
      }
    });
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({4, 5, 6});
  auto sum = cpu().array<double>({}, grad);
  y.grad().fill(1);
  sum.grad().fill(1);
  expectError(ErrorCode::CannotReplay,
              {"`sweep`", here(__FILE__, line), here(__FILE__, store)},
              [&] { k.grad(x, y, sum, 2); });
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(3, 0));
  EXPECT_EQ(y.grad().to_host(), std::vector<double>(3, 1));
  k.grad(x, y, sum, 3);
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(3, 1));
  EXPECT_EQ(y.grad().to_host(), std::vector<double>(3, 0));
}

// RULE: steps
TEST(ErrorConformance, AStepOfZero) {
  Kernel k = kernel("steps", [](ArrayRef<double, 1> x, ArrayRef<double, 0> sum,
                                Scalar<int> step) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      line = __LINE__ + 1;
      FOR (t, 0, 10, step) {
        v = v * v;
      }
      sum() += v;
    });
  });
  auto x = active<double>({0.9, 0.8});
  auto sum = cpu().array<double>({}, grad);
  sum.grad().fill(1);
  expectError(ErrorCode::KernelFailed, {"`steps`", here(__FILE__, line)},
              [&] { k(x, sum, 0); });
  expectError(ErrorCode::KernelFailed, {"`steps`", here(__FILE__, line)},
              [&] { k.grad(x, sum, 0); });
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(2, 0));
  k.grad(x, sum, 5);
  EXPECT_NEAR(x.grad().to_host()[0], 4 * std::pow(0.9, 3), 1e-14);
}

TEST(ErrorConformance, MoreWorkItemsThanCanBeCounted) {
  Kernel k = kernel(
      "vast", [](ArrayRef<int, 1> x, Scalar<int64_t> n, Scalar<int64_t> m) {
        line = __LINE__ + 1;
        parallel({n, n, m}, [&](Index i, Index, Index) { x(i) += 1; });
      });
  auto x = constant<int>({0, 0});
  int64_t half = int64_t(1) << 32;
  expectError(ErrorCode::KernelFailed, {"`vast`", here(__FILE__, line)},
              [&] { k(x, half, 1); });
  k(x, half, 0);
  k(x, half, -1);
  EXPECT_EQ(x.to_host(), std::vector<int>(2, 0));
  k(x, 2, 3);
  EXPECT_EQ(x.to_host(), std::vector<int>(2, 6));
}

TEST(ErrorConformance, AnIndexOutsideInEveryMode) {
  Kernel k = kernel(
      "gather",
      [](ArrayRef<int, 1> at, ArrayRef<double, 2> x, ArrayRef<double, 1> y) {
        parallel(at.size(), [&](Index i) {
          line = __LINE__ + 1;
          y(i) = x(at(i), 1) * x(at(i), 0);
        });
      },
      {.debug = true});
  auto x = active<double>({1, 2, 3, 4, 5, 6}, {3, 2});
  auto y = active<double>(std::vector<double>(50, 0));
  std::vector<int> indices(50, 1);
  for (int bad : {3, -1, std::numeric_limits<int>::min()}) {
    indices[37] = bad;
    auto at = constant<int>(indices);
    std::initializer_list<std::string> parts = {
        "`gather`",
        here(__FILE__, line),
        "index " + std::to_string(bad) + " ",
        "dimension 0",
        "argument 2",
        "extent is 3",
        "in work item 37"};
    expectError(ErrorCode::OutOfRange, parts, [&] { k(at, x, y); });
    expectError(ErrorCode::OutOfRange, parts, [&] { k.grad(at, x, y); });
    expectError(ErrorCode::OutOfRange, parts, [&] { k.jvp(at, x, y); });
  }
}

/// Lanes of a warp that all wait for the one place of an error.
TEST(ErrorConformance, TheFirstOfManyWorkItemsIsNamed) {
  Kernel k = kernel("gather",
                    [](ArrayRef<int, 1> at, ArrayRef<double, 1> x) {
                      parallel(at.size(), [&](Index i) { x(at(i)) = 1; });
                    },
                    {.debug = true});
  std::vector<int> indices(70, 7);
  indices[0] = indices[1] = indices[2] = 0;
  auto at = constant<int>(indices);
  auto x = active<double>({1, 2, 3});
  expectError(ErrorCode::OutOfRange, {"index 7 ", "in work item 3"},
              [&] { k(at, x); });
}

TEST(ErrorConformance, GuardsKeepLoadsInside) {
  Kernel k =
      kernel("guarded",
             [](ArrayRef<double, 1> x, Scalar<int> at, ArrayRef<double, 0> y) {
               Var<int> p = 0;
               WHILE ((p < x.size()) & (x(p) < 100)) {
                 p += 1;
               }
               IF ((at < x.size()) & (x(at) > 0)) {
                 y() = 1;
               }
               y() += cast<double>(p);
             },
             {.debug = true});
  auto x = active<double>({1, 2, 3});
  auto y = cpu().array<double>({});
  k(x, 3, y);
  EXPECT_EQ(y.to_host()[0], 3);
}

TEST(ErrorConformance, AnOverwriteNamesBothLines) {
  Kernel k = kernel("later", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    line = __LINE__ + 1;
    parallel(x.size(), [&](Index i) { y(i) = sin(x(i)); });
    parallel(x.size(), [&](Index i) { x(i) = 0; });
  });
  auto x = active<double>({1, 2}), y = active<double>({0, 0});
  k(x, y);
  expectError(ErrorCode::CannotReplay,
              {here(__FILE__, line), here(__FILE__, line + 1), "argument 1",
               "time index"},
              [&] { k.grad(x, y); });
}

// RULE: own-elements
TEST(ErrorConformance, StoresOfSeveralWorkItemsAreRefusedWithoutDebug) {
  Kernel k = kernel("last", [](ArrayRef<double, 2> x, ArrayRef<double, 1> y) {
    parallel({x.size(0), x.size(1)}, [&](Index i, Index j) {
      line = __LINE__ + 1;
      y(i) = x(i, j);
    });
  });
  auto x = active<double>({1, 2, 3, 4}, {2, 2}), y = active<double>({0, 0});
  k(x, y);
  expectError(ErrorCode::CannotReplay, {here(__FILE__, line), "`+=`"},
              [&] { k.grad(x, y); });
}

/// A range whose work item 5 wants more tape than the device has.
class OutOfMemory : public testing::TestWithParam<bool> {
protected:
  Kernel deep =
      kernel("deep",
             [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                ArrayRef<int, 1> n, ArrayRef<double, 1> z) {
               // State in an array cannot run again from a checkpoint.
               parallel(x.size(), [&](Index i) {
                 y(i) = x(i);
                 line = __LINE__ + 1;
                 FOR (k, 0, n(i)) {
                   y(i) = y(i) * sin(y(i)) + 0.1;
                 }
               });
               parallel(x.size(), [&](Index i) { z(i) = y(i) * y(i) * x(i); });
             },
             {.deterministic = GetParam()});
  Device device = openDevice({.memory_limit = 16 << 20});
  Array<double> x = device.array<double>({64}, grad),
                y = device.array<double>({64}, grad),
                z = device.array<double>({64}, grad);
  Array<int> n = device.array<int>({64});
};

// RULE: out-of-tape
TEST_P(OutOfMemory, InATapeChangesNothing) {
  if (!isOnCpu())
    GTEST_SKIP() << "warps of a GPU run again what does not fit";
  x.fill(1.3);
  std::vector<int> iterations(64, 100);
  iterations[5] = 4000000;
  n.from_host(iterations);
  std::vector<double> before = randomValues(64, -1, 1);
  x.grad().from_host(before);
  y.grad().from_host(before);
  z.grad().fill(1);
  deep(x, y, n, z);
  std::vector<double> values = z.to_host();
  for (int repeat = 0; repeat < 2; ++repeat)
    expectError(ErrorCode::OutOfMemory,
                {"`deep`", here(__FILE__, line), "COSTATE_MEMORY_LIMIT"},
                [&] { deep.grad(initial_state, x, y, n, z); });
  EXPECT_EQ(x.grad().to_host(), before);
  EXPECT_EQ(y.grad().to_host(), before);
  EXPECT_EQ(z.grad().to_host(), std::vector<double>(64, 1));
  EXPECT_EQ(z.to_host(), values);

  iterations[5] = 3;
  n.from_host(iterations);
  deep(x, y, n, z);
  deep.grad(initial_state, x, y, n, z);
  EXPECT_NE(x.grad().to_host(), before);
}

// RULE: serial-values
TEST(ErrorConformance, OutOfMemoryInSerialCode) {
  Kernel k = kernel("serial", [](ArrayRef<double, 0> x, ArrayRef<double, 0> y,
                                 Scalar<int> iterations) {
    y() = x();
    line = __LINE__ + 1;
    FOR (t, 0, iterations) {
      y() = y() * sin(y()) + 0.1;
    }
  });
  Device device = openDevice({.memory_limit = 16 << 20});
  auto x = device.array<double>({}, grad), y = device.array<double>({}, grad);
  x.fill(1.3);
  y.grad().fill(1);
  expectError(ErrorCode::OutOfMemory,
              {"`serial`", here(__FILE__, line), "the serial code needs"},
              [&] { k.grad(initial_state, x, y, 4000000); });
  EXPECT_EQ(x.grad().to_host()[0], 0);
  EXPECT_EQ(y.grad().to_host()[0], 1);
  k.grad(initial_state, x, y, 1);
  EXPECT_NEAR(x.grad().to_host()[0], std::sin(1.3) + 1.3 * std::cos(1.3),
              1e-14);
}

INSTANTIATE_TEST_SUITE_P(Ranges, OutOfMemory, testing::Bool());

} // namespace
