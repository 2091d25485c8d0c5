/// Gradients whose memory is intact, though nothing proves it; and what only
/// looks like that.

#include "api/TestKernels.h"
#include "conformance/Errors.h"
#include "conformance/TestDevice.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace costate;
using costate::test::expectError;
using testing::ElementsAre;

namespace {
class Intact : public testing::Test {
protected:
  Device device = Device::best();

  Array<double> floats(std::vector<double> values) {
    auto array =
        device.array<double>({static_cast<int64_t>(values.size())}, grad);
    array.from_host(values);
    return array;
  }

  Array<int> integers(std::vector<int> values) {
    auto array = device.array<int>({static_cast<int64_t>(values.size())});
    array.from_host(values);
    return array;
  }

  /// Two launches of `k` leave the same, and the gradient of the first one
  /// would not be that of the second.
  void expectRefusal(const Kernel &k, double start) {
    Array<double> x = floats({start});
    for (int launches = 0; launches < 2; ++launches) {
      k(x);
      x.grad().fill(1);
      expectError(ErrorCode::CannotReplay, {"overwritten before the kernel"},
                  [&] { k.grad(x); });
      EXPECT_EQ(x.grad().to_host()[0], 1);
    }
  }

  Kernel compose =
      kernel("compose", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                           ArrayRef<double, 1> z) {
        parallel(x.size(), [&](Index i) { y(i) = sin(x(i)); });
        parallel(x.size(), [&](Index i) { z(i) = y(i) * y(i); });
      });

  static void grow(ArrayRef<double, 1> q, ArrayRef<int, 1> parent,
                   ArrayRef<double, 2> x) {
    parallel(x.size(1), [&](Index b) {
      FOR (i, 1, q.size()) {
        x(i, b) = x(parent(i), b) * q(i);
      }
    });
  }
  Kernel tree = kernel("tree", grow);

  Array<double> q = floats({2, 3, 5, 7});
  Array<int> parent = integers({0, 0, 1, 1});
  Array<double> x = device.array<double>({4, 2}, grad);

  void launchTree(const Kernel &k) {
    x.from_host({1, 2, 0, 0, 0, 0, 0, 0});
    k(q, parent, x);
    x.grad().from_host({0, 0, 0, 0, 1, 1, 1, 1});
  }
};
} // namespace

TEST_F(Intact, IntermediatesThatSomebodyHasWrittenAgain) {
  Array<double> a = floats({1, 2}), b = floats({0, 0}), c = floats({0, 0});
  compose(a, b, c);
  b.from_host(b.to_host());
  c.grad().fill(1);
  compose.grad(a, b, c);
  EXPECT_NEAR(a.grad().to_host()[1], std::sin(4), 1e-14);
  b.from_host({0, 1});
  expectError(ErrorCode::CannotReplay,
              {"`compose`", "was written since", "IntactTest.cpp",
               "memory holds another value here",
               "element 0 of argument 2 is 0, not 0.84147098480789"},
              [&] { compose.grad(a, b, c); });
}

TEST_F(Intact, WhatNobodyReadsMayBeAnything) {
  Kernel k = kernel("some", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                               ArrayRef<double, 1> z, ArrayRef<int, 1> n) {
    parallel(x.size(), [&](Index i) { y(i) = sin(x(i)); });
    parallel(x.size(), [&](Index i) {
      IF (n(i) > 0) {
        z(i) = y(i) * y(i);
      }
    });
  });
  Array<double> a = floats({1, 1}), b = floats({0, 0}), c = floats({0, 0});
  Array<int> n = integers({1, 0});
  k(a, b, c, n);
  double held = b.to_host()[0];
  b.from_host({held, 7});
  c.grad().fill(1);
  k.grad(a, b, c, n);
  EXPECT_NEAR(a.grad().to_host()[0], std::sin(2), 1e-14);
  b.from_host({7, held});
  expectError(ErrorCode::CannotReplay, {"element 0 of argument 2 is 7, not"},
              [&] { k.grad(a, b, c, n); });
}

TEST_F(Intact, FastMathMayRoundOtherwise) {
  Kernel fast = kernel(
      "compose",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y, ArrayRef<double, 1> z) {
        parallel(x.size(), [&](Index i) { y(i) = sin(x(i)); });
        parallel(x.size(), [&](Index i) { z(i) = y(i) * y(i); });
      },
      {.fast_math = true});
  Array<double> a = floats({1, 2}), b = floats({0, 0}), c = floats({0, 0});
  fast(a, b, c);
  std::vector<double> held = b.to_host();
  b.from_host({std::nextafter(held[0], 2), std::nextafter(held[1], 2)});
  c.grad().fill(1);
  fast.grad(a, b, c);
  EXPECT_NEAR(a.grad().to_host()[1], std::sin(4), 1e-14);
  b.from_host({held[0], held[1] * (1 + 1e-9)});
  expectError(ErrorCode::CannotReplay, {"memory holds another value here"},
              [&] { fast.grad(a, b, c); });
}

TEST_F(Intact, Trees) {
  launchTree(tree);
  tree.grad(q, parent, x);
  EXPECT_THAT(q.grad().to_host(), ElementsAre(0, 36, 9, 9));
  EXPECT_THAT(x.grad().to_host(), ElementsAre(36, 36, 0, 0, 0, 0, 0, 0));
}

TEST_F(Intact, WhatIsLeftOfSumsMayBeAsFarAwayAsTheyAreRounded) {
  Kernel fast = kernel(
      "cancel",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y, ArrayRef<double, 1> z) {
        parallel(1, [&](Index i) { y(i) = (x(0) - 1.0) + x(1); });
        parallel(1, [&](Index i) { z(i) = y(i) * y(i); });
      },
      {.fast_math = true});
  Array<double> a = floats({1 + 0x1p-30, 0x1p-54}), b = floats({0}),
                c = floats({0});
  fast(a, b, c);
  double held = b.to_host()[0];
  b.from_host({held + 0x1p-52});
  c.grad().fill(1);
  fast.grad(a, b, c);
  EXPECT_NEAR(a.grad().to_host()[0], 0x1p-29, 0x1p-47);
  for (double far : {held + 0x1p-48, held - 0x1p-48, HUGE_VAL}) {
    b.from_host({far});
    expectError(ErrorCode::CannotReplay, {"memory holds another value here"},
                [&] { fast.grad(a, b, c); });
  }
}

TEST_F(Intact, FunctionsOfWhatIsLeftOfSumsBeginAnew) {
  Kernel fast = kernel(
      "invert",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y, ArrayRef<double, 1> z) {
        parallel(x.size(), [&](Index i) { y(i) = 1.0 / (x(i) - 1.0); });
        parallel(x.size(), [&](Index i) { z(i) = y(i) * y(i); });
      },
      {.fast_math = true});
  Array<double> a = floats({1 + 0x1p-40}), b = floats({0}), c = floats({0});
  fast(a, b, c);
  b.from_host({0x1p40 + 0x1p20});
  c.grad().fill(1);
  expectError(ErrorCode::CannotReplay, {"memory holds another value here"},
              [&] { fast.grad(a, b, c); });
}

TEST_F(Intact, WhatOverwritesMayNotBeAsSmallAsRounding) {
  Kernel fast = kernel(
      "twice",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y, ArrayRef<double, 1> z) {
        parallel(1, [&](Index i) { y(i) = x(0) - x(1); });
        parallel(1, [&](Index i) { z(i) = y(i) * y(i); });
        parallel(1, [&](Index i) { y(i) = 2.0 * y(i); });
      },
      {.fast_math = true});
  Array<double> a = floats({1, 1 + 0x1p-52}), b = floats({0}), c = floats({0});
  fast(a, b, c);
  c.grad().fill(1);
  expectError(ErrorCode::CannotReplay, {"overwritten before the kernel"},
              [&] { fast.grad(a, b, c); });
}

TEST_F(Intact, TreesWhoseLevelsAreRangesOfALoop) {
  Kernel levels = kernel("levels", [](ArrayRef<double, 1> q, ArrayRef<int, 1> p,
                                      ArrayRef<double, 1> x) {
    FOR (level, 1, 3) {
      parallel(2, [&](Index k) {
        Index i = 2 * level + k;
        x(i) = x(p(i)) * q(i);
      });
    }
  });
  Array<double> factors = floats({0, 0, 2, 3, 5, 7}),
                values = floats({1, 1, 0, 0, 0, 0});
  Array<int> parents = integers({0, 0, 0, 1, 3, 3});
  levels(factors, parents, values);
  values.grad().from_host({0, 0, 0, 0, 1, 1});
  levels.grad(factors, parents, values);
  EXPECT_THAT(factors.grad().to_host(), ElementsAre(0, 0, 0, 12, 3, 3));
  EXPECT_THAT(values.grad().to_host(), ElementsAre(0, 36, 0, 0, 0, 0));
  values.from_host({1, 2, 2, 3, 15, 21});
  expectError(ErrorCode::CannotReplay,
              {"only what they find is kept", "memory holds another value"},
              [&] { levels.grad(factors, parents, values); });
  expectError(ErrorCode::CannotReplay, {"only what they find is kept"},
              [&] { levels.grad(initial_state, factors, parents, values); });
}

TEST_F(Intact, TreesWhoseRootIsAnotherAreRefused) {
  launchTree(tree);
  std::vector<double> values = x.to_host();
  values[1] = 3;
  x.from_host(values);
  expectError(ErrorCode::CannotReplay,
              {"overwritten before", "memory holds another value here"},
              [&] { tree.grad(q, parent, x); });
  EXPECT_THAT(q.grad().to_host(), ElementsAre(0, 0, 0, 0));
}

TEST_F(Intact, WhatIsReadBeforeItIsWrittenIsRefused) {
  parent.from_host({0, 2, 1, 1});
  launchTree(tree);
  expectError(ErrorCode::CannotReplay,
              {"overwritten before", "reads this element before it writes it"},
              [&] { tree.grad(q, parent, x); });
}

TEST_F(Intact, FixedPointsWithAnotherDerivativeAreRefused) {
  expectRefusal(
      kernel("clamp", [](ArrayRef<double, 1> a) { a(0) = min(a(0), 1.0); }), 5);
  expectRefusal(
      kernel("square", [](ArrayRef<double, 1> a) { a(0) = a(0) * a(0); }), -1);
  expectRefusal(kernel("branch",
                       [](ArrayRef<double, 1> a) {
                         IF (a(0) > 1.0) {
                           a(0) = 1.0;
                         }
                       }),
                5);
  expectRefusal(kernel("halve",
                       [](ArrayRef<double, 1> a) {
                         WHILE (a(0) > 1.0) {
                           a(0) = 0.5 * a(0);
                         }
                       }),
                5);
}

TEST_F(Intact, ConditionsByWayOfAnotherElementAreRefused) {
  Kernel k = kernel("other", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b,
                                ArrayRef<int, 1> n) {
    b(n(0)) = a(0);
    IF (b(n(1)) > 1.0) {
      a(0) = 1.0;
    }
    b(0) = 3.0;
  });
  Array<double> a = floats({5}), b = floats({0});
  Array<int> n = integers({0, 0});
  k(a, b, n);
  k(a, b, n);
  expectError(ErrorCode::CannotReplay, {"overwritten before"},
              [&] { k.grad(a, b, n); });
}

TEST_F(Intact, AdditionsThatAreMadeAgainBeginWithWhatWasThere) {
  Kernel k = kernel("again", [](ArrayRef<double, 1> a, ArrayRef<double, 1> y,
                                ArrayRef<double, 1> w) {
    parallel(a.size(), [&](Index i) { a(i) = 2.0; });
    parallel(a.size(), [&](Index i) {
      a(i) += w(i);
      FOR (k, 0, 2) {
        a(i) = y(i) * a(i);
      }
    });
  });
  Array<double> a = floats({0}), y = floats({-1}), w = floats({-1});
  k(a, y, w);
  a.grad().fill(1);
  expectError(ErrorCode::CannotReplay, {"memory holds another value"},
              [&] { k.grad(a, y, w); });
  y.fill(1);
  w.fill(0);
  k(a, y, w);
  k.grad(a, y, w);
  EXPECT_EQ(y.grad().to_host()[0], 4);
}

TEST_F(Intact, ChangesAsSmallAsTheRoundingOfSumsAreRefused) {
  Kernel k = kernel("drift", [](ArrayRef<double, 1> a, ArrayRef<double, 1> s,
                                ArrayRef<double, 1> y) {
    s(0) = 0.0;
    parallel(a.size(), [&](Index i) { s(0) += a(i); });
    parallel(a.size(), [&](Index i) { y(i) = sin(1e13 * s(0)); });
    s(0) = s(0) * (1 + 1e-12);
  });
  Array<double> a = floats({1, 1}), s = floats({0}), y = floats({0, 0});
  k(a, s, y);
  y.grad().fill(1);
  expectError(ErrorCode::CannotReplay, {"overwritten before the kernel"},
              [&] { k.grad(a, s, y); });
}

TEST_F(Intact, IndicesThatLeadNowhereAnyMoreAreRefused) {
  Kernel k = kernel("lead", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b,
                               ArrayRef<int, 1> n) {
    b(n(0)) = a(0) * a(0);
    n(0) = -1'000'000'000;
    parallel(a.size(), [&](Index i) { a(i) += b(i) * b(i); });
  });
  Array<double> a = floats({2}), b = floats({0});
  Array<int> n = integers({0});
  k(a, b, n);
  b.from_host(b.to_host());
  expectError(ErrorCode::CannotReplay, {}, [&] { k.grad(a, b, n); });
}

TEST_F(Intact, NobodyLooksIfThatIsAskedFor) {
  Kernel k = kernel("trusted", grow, {.gradients = Gradients::Unchecked});
  launchTree(k);
  q.from_host({2, 3, 5, 8});
  k.grad(q, parent, x);
  EXPECT_EQ(q.grad().to_host()[2], 9);
}
