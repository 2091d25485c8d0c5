/// Small programs, each of which some shortcut of a differentiating compiler
/// gets wrong (docs/design/semantics.md). Adjoints of all arrays are seeded
/// with 1 unless a test says otherwise.

#include "conformance/ComplexStep.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <algorithm>

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;
using X = ArrayRef<double, 1>;

/// Runs a kernel and its gradient.
template <class... A> void reverse(const Kernel &k, const A &...arguments) {
  k(arguments...);
  k.grad(arguments...);
}

class CounterExample : public testing::Test {
protected:
  Array<double> x = seeded({0.5, 1.5, -0.8}), y = seeded({0, 0, 0});
  Array<double> s = seeded({0}, {});

  static Array<double> seeded(const Values &values,
                              const std::vector<int64_t> &shape = {3}) {
    Array<double> array = cpu().array<double>(shape, grad | dual);
    array.from_host(values);
    array.grad().fill(1);
    return array;
  }
};

TEST_F(CounterExample, StoresOfAllWorkItemsToOneElement) {
  int line = 0;
  Kernel k = kernel("all_store", [&](X x, X y) {
    line = __LINE__ + 1;
    parallel(x.size(), [&](Index i) { y(0) = x(i); });
  });
  k(x, y);
  expectError(ErrorCode::CannotReplay,
              {here(__FILE__, line), "several work items", "`+=`"},
              [&] { k.grad(x, y); });
  expectNear(x.grad().to_host(), {1, 1, 1});
}

TEST_F(CounterExample, AGradientByHandAfterTheInputHasChanged) {
  Kernel k = kernel("reload", [](X x, X y, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
    parallel(x.size(), [&](Index i) { s() += y(i) * y(i); });
  });
  x.fill(2);
  k(x, y, s);
  x.fill(3);
  expectError(ErrorCode::CannotReplay,
              {"`reload`", "argument 1", "was written since"},
              [&] { k.grad(x, y, s); });
  reverse(k, x, y, s);
  expectNear(x.grad().to_host(), {115, 115, 115}); // 1 + 4 * 27 + 2 * 3
}

TEST_F(CounterExample, AGradientByHandOfAKernelThatReloadsNothing) {
  Kernel k = kernel("forward", [](X x, X y, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) {
      y(i) = x(i) * x(i);
      s() += y(i) * y(i);
    });
  });
  x.fill(2);
  k(x, y, s);
  x.fill(3);
  k.grad(x, y, s);
  expectNear(x.grad().to_host(), {115, 115, 115});
}

/// Which element the branch chooses only the data tells: found in debug mode.
TEST_F(CounterExample, AStoreAndAnAdditionToOneElement) {
  if (!isOnCpu())
    GTEST_SKIP() << "races are looked for on the CPU";
  int line = 0;
  Kernel k = kernel("store_and_add",
                    [&](X x, X y) {
                      parallel(x.size(), [&](Index i) {
                        IF (i == 0) {
                          y(0) = x(i);
                        }
                        line = __LINE__ + 1;
                        ELSE { y(0) += x(i); }
                      });
                    },
                    {.debug = true});
  expectError(ErrorCode::Race, {"`store_and_add`", "argument 2"},
              [&] { k(x, y); });
  expectError(ErrorCode::Race, {"`store_and_add`", "argument 2"},
              [&] { k.grad(x, y); });
}

TEST_F(CounterExample, SquaresOfSquaresInPlace) {
  Kernel k = kernel("squares", [](X x) {
    parallel(x.size(), [&](Index i) {
      FOR (j, 0, 3) {
        x(i) = x(i) * x(i);
      }
    });
  });
  k.grad(initial_state, x);
  expectNear(x.grad().to_host(), {0.0625, 136.6875, -1.6777216}); // 8 x^7
  expectNear(x.to_host(), {0.5, 1.5, -0.8});
}

// RULE: reversed-parts
TEST_F(CounterExample, TwoRangesInPlace) {
  Kernel k = kernel("ranges", [](X x) {
    parallel(x.size(), [&](Index i) { x(i) = x(i) * x(i); });
    parallel(x.size(), [&](Index i) { x(i) = sin(x(i)); });
  });
  k.grad(initial_state, x);
  Values want;
  for (double v : {0.5, 1.5, -0.8})
    want.push_back(2 * v * std::cos(v * v));
  expectNear(x.grad().to_host(), want);
}

// RULE: reversed-parts
TEST_F(CounterExample, ASerialValueBetweenVersions) {
  Kernel k = kernel("between", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += x(i); });
    Expr<double> t = s();
    parallel(x.size(), [&](Index i) { x(i) = t * x(i) * x(i); });
  });
  k.grad(initial_state, x, s);
  expectNear(x.grad().to_host(), {5.34, 7.74, 2.22});
  expectNear(s.grad().to_host(), {4.14});
}

TEST_F(CounterExample, ALaterLaunchOverwritesWhatAnEarlierOneRead) {
  Kernel sum = kernel("sum", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += x(i) * x(i); });
  });
  Kernel clear = kernel(
      "clear", [](X x) { parallel(x.size(), [&](Index i) { x(i) = 0.0; }); });
  Tape tape;
  {
    auto recording = tape.record();
    sum(x, s);
    clear(x);
  }
  tape.backward();
  expectNear(x.grad().to_host(), {1, 3, -1.6});
  expectNear(x.to_host(), {0, 0, 0});
}

TEST_F(CounterExample, TheHostOverwritesWhatAnEarlierLaunchRead) {
  Kernel sum = kernel("sum", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += x(i) * x(i); });
  });
  Tape tape;
  {
    auto recording = tape.record();
    sum(x, s);
    x.fill(2);
    sum(x, s);
  }
  tape.backward();
  expectNear(x.grad().to_host(), {1, 3, -1.6});
  expectNear(x.to_host(), {2, 2, 2});
}

/// What rounding leaves of the sum is up to the order of its additions. The
/// gradient takes the branch that its launch took.
// RULE: order-of-additions
TEST_F(CounterExample, ABranchThatRoundingDecided) {
  Kernel k = kernel("decide",
                    [](X x, ArrayRef<double, 0> s, Scalar<double> limit, X y) {
                      parallel(x.size(), [&](Index i) { s() += x(i); });
                      Expr<double> t = s();
                      parallel(y.size(), [&](Index i) {
                        y(i) = select(t > limit, y(i) * y(i), 3.0 * y(i));
                      });
                    });
  constexpr int n = 20'000;
  Values values(n, 1.0);
  values[n / 3] = 1e16;
  values[2 * n / 3] = -1e16;
  auto x = seeded(values, {n});
  Values sums;
  for (int repeat = 0; repeat < 21; ++repeat) {
    s.fill(0);
    k(x, s, 0, y);
    sums.push_back(s.to_host()[0]);
  }
  std::nth_element(sums.begin(), sums.begin() + 10, sums.end());
  for (int repeat = 0; repeat < 40; ++repeat) {
    s.fill(0);
    y.fill(5);
    y.grad().fill(1);
    Tape tape;
    {
      auto recording = tape.record();
      k(x, s, sums[10], y);
    }
    tape.backward();
    double want = y.to_host()[0] == 25 ? 10 : 3;
    expectNear(y.grad().to_host(), {want, want, want});
  }
}

TEST_F(CounterExample, ALoopThatOverwritesWhatItReads) {
  Kernel k = kernel("overwrite", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = 1.0;
      FOR (j, 0, 4) {
        v = v * x(i);
        x(i) = sin(x(i));
      }
      s() += v;
    });
  });
  x.grad().fill(0);
  k.grad(initial_state, x, s);
  Values want;
  for (double start : {0.5, 1.5, -0.8})
    want.push_back(complexStep(
        [](const std::vector<Complex> &x) {
          Complex a = x[0], b = std::sin(a), c = std::sin(b), d = std::sin(c);
          return a * b * c * d;
        },
        {start})[0]);
  expectNear(x.grad().to_host(), want);
}

TEST_F(CounterExample, ABoundThatItsOwnWorkItemHasStored) {
  Kernel k = kernel("own_bound", [](X x, X y, ArrayRef<int, 1> m) {
    parallel(x.size(), [&](Index i) {
      m(i) = 3;
      Var<double> v = x(i);
      FOR (j, 0, m(i)) {
        v = sin(v);
      }
      y(i) = v;
      m(i) = 0;
    });
  });
  auto m = constant<int>({9, 9, 9});
  reverse(k, x, y, m);
  Values want;
  for (double v : {0.5, 1.5, -0.8})
    want.push_back(1 + std::cos(v) * std::cos(std::sin(v)) *
                           std::cos(std::sin(std::sin(v))));
  expectNear(x.grad().to_host(), want);
  expectNear(y.grad().to_host(), {0, 0, 0});
}

TEST_F(CounterExample, InnerLoopsOfUnequalDepth) {
  Kernel k = kernel("triangle", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (a, 0, 4) {
        FOR (b, a, 4) {
          v = sin(v);
        }
      }
      s() += v;
    });
  });
  reverse(k, x, s);
  Values want;
  for (double v : {0.5, 1.5, -0.8}) {
    double slope = 1;
    for (int iteration = 0; iteration < 10; ++iteration, v = std::sin(v))
      slope *= std::cos(v);
    want.push_back(1 + slope);
  }
  expectNear(x.grad().to_host(), want);
}

TEST_F(CounterExample, AConditionIsNotEvaluatedAfterBreak) {
  Kernel k = kernel("search",
                    [](X x, ArrayRef<double, 0> s) {
                      Var<int> at = 0;
                      WHILE (x(at) < 9) {
                        s() += x(at) * x(at);
                        at += 1;
                        IF (at >= x.size()) {
                          BREAK;
                        }
                      }
                    },
                    {.debug = true});
  reverse(k, x, s);
  expectNear(x.grad().to_host(), {2, 4, -0.6});
  x.dual().fill(1);
  k.jvp(x, s);
  expectNear(s.dual().to_host(), {2 * (0.5 + 1.5 - 0.8)});
}

TEST_F(CounterExample, AReturnInSerialCodeEmptiesLaterRanges) {
  Kernel k = kernel("leave", [](ArrayRef<double, 0> limit, X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = 3.0 * x(i); });
    Expr<double> scale = limit() * limit();
    IF (limit() > 1) {
      RETURN;
    }
    parallel(x.size(), [&](Index i) { y(i) = scale * x(i) * x(i); });
  });
  auto limit = seeded({0.5}, {});
  reverse(k, limit, x, y);
  expectNear(x.grad().to_host(), {1.25, 1.75, 0.6});
  expectNear(limit.grad().to_host(), {1 + 0.25 + 2.25 + 0.64});
  limit.fill(2);
  x.grad().fill(1);
  y.grad().fill(1);
  reverse(k, limit, x, y);
  expectNear(x.grad().to_host(), {4, 4, 4});
  expectNear(limit.grad().to_host(), {1 + 0.25 + 2.25 + 0.64});
}

// RULE: stores-clear
TEST_F(CounterExample, AnElementIsClearedWhereItsStoreRan) {
  Kernel k = kernel("gate", [](ArrayRef<double, 1> g, X x) {
    parallel(x.size(), [&](Index i) {
      IF (g(i) > 0) {
        x(i) = 2.0 * x(i);
      }
    });
  });
  auto g = constant<double>({1, -1, 0});
  x.grad().from_host({3, 5, 7});
  reverse(k, g, x);
  expectNear(x.grad().to_host(), {6, 5, 7});
}

// RULE: carriers
TEST_F(CounterExample, ACarrierWithoutDerivativeIsNamed) {
  Kernel store = kernel("store", [](X x, X t) {
    parallel(x.size(), [&](Index i) { t(i) = x(i) * x(i); });
  });
  Kernel use = kernel("use", [](X t, ArrayRef<double, 0> s) {
    parallel(t.size(), [&](Index i) { s() += sin(t(i)); });
  });
  auto carrier = constant<double>({0, 0, 0});
  Tape tape;
  {
    auto recording = tape.record();
    store(x, carrier);
    use(carrier, s);
  }
  expectError(ErrorCode::MissingGradient,
              {"`use`", "argument 1", "`store`", "grad"},
              [&] { tape.backward(s); });
  expectError(ErrorCode::MissingGradient, {"`store`", "argument 2", "grad"},
              [&] { store.grad(x, carrier); });
  expectError(ErrorCode::MissingGradient, {"`store`", "argument 2", "dual"},
              [&] { store.jvp(x, carrier); });
  expectNear(x.grad().to_host(), {1, 1, 1});
}

TEST_F(CounterExample, AZeroFactorKeepsItsSecondDerivative) {
  Kernel k = kernel("product", [](X x, X y, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += y(i) * sqrt(x(i)); });
  });
  x.from_host({0.5, 1.5, 0.8});
  x.dual().fill(1);
  y.dual().fill(1);
  k.jvp(x, y, s);
  k.gradient().jvp(x, y, s);
  Values want;
  for (double v : {0.5, 1.5, 0.8})
    want.push_back(1 / (2 * std::sqrt(v)));
  expectNear(x.grad().dual().to_host(), want);
  expectNear(y.grad().dual().to_host(), want);
}

TEST_F(CounterExample, ASecondDerivativeNeedsTheTangentsOfStores) {
  Kernel k = kernel("reload", [](X x, X y, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
    parallel(x.size(), [&](Index i) { s() += y(i) * y(i); });
  });
  x.dual().fill(1);
  y.dual().fill(1);
  k(x, y, s);
  expectError(ErrorCode::CannotReplay, {"`reload`", "argument 2"},
              [&] { k.gradient().jvp(x, y, s); });
  k.jvp(x, y, s);
  k.gradient().jvp(x, y, s);
  expectNear(x.grad().dual().to_host(), {5, 29, 9.68}); // 12 x^2 + 2
}

TEST_F(CounterExample, APowerOfOneHasASecondDerivativeAtZero) {
  Kernel k = kernel("power", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += pow(x(i), 1.0); });
  });
  x.from_host({0, 1, 0});
  x.dual().fill(1);
  k.jvp(x, s);
  k.gradient().jvp(x, s);
  expectNear(x.grad().to_host(), {2, 2, 2});
  expectNear(x.grad().dual().to_host(), {0, 0, 0});
}

TEST_F(CounterExample, AnInfiniteSlopeOnTheSideThatIsNotChosen) {
  Kernel k = kernel("logarithm", [](X x, ArrayRef<double, 0> s) {
    parallel(x.size(),
             [&](Index i) { s() += select(x(i) > 0, log(x(i)), 0.0); });
  });
  x.from_host({0, 1.5, 0.8});
  reverse(k, x, s);
  expectNear(x.grad().to_host(), {1, 1 + 1 / 1.5, 2.25});
  for (double tangent : {0.0, 1.0}) {
    x.dual().from_host({tangent, 0, 1});
    s.dual().fill(0);
    k.jvp(x, s);
    expectNear(s.dual().to_host(), {1.25});
  }
}

} // namespace
