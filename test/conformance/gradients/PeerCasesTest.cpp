/// Programs without much of a loop on which other systems are known to have
/// returned wrong gradients, or none. Every answer has a closed form.

#include "conformance/ComplexStep.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;

TEST(PeerCases, ComponentsAreStoredOneByOne) {
  Kernel k =
      kernel("components", [](ArrayRef<double, 1> x, ArrayRef<double, 2> y) {
        parallel(x.size(), [&](Index i) {
          y(i, 0) = 2.0 * x(i);
          y(i, 1) = 3.0 * x(i);
          y(i, 2) = 4.0 * x(i);
        });
      });
  auto x = active<double>({1, 1, 1}), y = active(Values(9, 0.0), {3, 3});
  expectClosedForm({x}, {y}, {{9, 9, 9}}, k, x, y);
}

struct Vector {
  Var<double> x, y, z;
};

TEST(PeerCases, ComponentsOfALocalVectorChangeOneByOne) {
  Kernel k = kernel("mixing", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                 ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Vector v{x(0), x(1), x(2)};
      FOR (j, 0, n(i)) {
        v.x = v.x + v.y * v.z;
        v.y = v.y + 0.5 * v.x;
        v.z = v.z * v.x;
      }
      y(i) = v.x + v.y * v.z;
    });
  });
  Values start{0.5, -0.25, 1.5};
  auto mixed = [](const std::vector<Complex> &at) {
    Complex sum = 0;
    for (int n : {0, 1, 4}) {
      Complex x = at[0], y = at[1], z = at[2];
      for (int j = 0; j < n; ++j) {
        x += y * z;
        y += 0.5 * x;
        z *= x;
      }
      sum += x + y * z;
    }
    return sum;
  };
  auto x = active(start), y = active<double>({0, 0, 0});
  expectClosedForm({x}, {y}, {complexStep(mixed, start)}, k, x,
                   constant<int>({0, 1, 4}), y);
}

TEST(PeerCases, TwoWaysToWriteASumHaveOneGradient) {
  Kernel inMemory =
      kernel("in_memory", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          FOR (j, 0, y.size()) {
            x(i) += y(j);
          }
        });
      });
  Kernel inVariable =
      kernel("in_variable", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> sum = 0.0;
          FOR (j, 0, y.size()) {
            sum += y(j);
          }
          x(i) += sum;
        });
      });
  auto x = active<double>({0, 0, 0, 0, 0}), y = active<double>({1, 2, 3});
  for (const Kernel &k : {inMemory, inVariable})
    expectClosedForm({y}, {x}, {{5, 5, 5}}, k, x, y);
}

template <class T> struct Three {
  T x, y, z;
};

/// A filter that weighs neighbours by how little they differ, as a function of
/// C++ that returns three values after a loop.
Three<Var<double>> filtered(ArrayRef<double, 2> in, Index i, Expr<int> radius) {
  Three<Var<double>> sum{0.0, 0.0, 0.0};
  Var<double> weights = 0.0;
  Expr<int64_t> r = cast<int64_t>(radius);
  FOR (d, -r, r + 1) {
    Index at = clamp(i + d, Index(0), in.size(0) - 1);
    Expr<double> difference = in(at, 0) - in(i, 0);
    Expr<double> weight = exp(-difference * difference);
    sum.x += weight * in(at, 0);
    sum.y += weight * in(at, 1);
    sum.z += weight * in(at, 2);
    weights += weight;
  }
  sum.x /= weights;
  sum.y /= weights;
  sum.z /= weights;
  return sum;
}

TEST(PeerCases, AFunctionReturnsAVectorAfterALoop) {
  constexpr int n = 6, radius = 2;
  Kernel k = kernel("filter", [](ArrayRef<double, 2> in, Scalar<int> radius,
                                 ArrayRef<double, 2> out) {
    parallel(in.size(0), [&](Index i) {
      Three<Var<double>> v = filtered(in, i, radius);
      out(i, 0) = v.x;
      out(i, 1) = 2.0 * v.y;
      out(i, 2) = v.z * v.x;
    });
  });
  auto model = [&](const std::vector<Complex> &in) {
    Complex total = 0;
    for (int i = 0; i < n; ++i) {
      Complex sum[3] = {0, 0, 0}, weights = 0;
      for (int d = -radius; d <= radius; ++d) {
        int at = std::clamp(i + d, 0, n - 1);
        Complex difference = in[3 * at] - in[3 * i];
        Complex weight = std::exp(-difference * difference);
        for (int c = 0; c < 3; ++c)
          sum[c] += weight * in[3 * at + c];
        weights += weight;
      }
      for (Complex &v : sum)
        v /= weights;
      total += sum[0] + 2.0 * sum[1] + sum[2] * sum[0];
    }
    return total;
  };
  Values start = randomValues(3 * n, -1, 1);
  auto in = active(start, {n, 3}), out = active(Values(3 * n, 0.0), {n, 3});
  expectClosedForm({in}, {out}, {complexStep(model, start)}, k, in, radius,
                   out);
}

/// At x = 0 the derivative of every function here is infinite, but its branch
/// is not taken.
TEST(PeerCases, InfinityInABranchNotTakenHasNoEffect) {
  Kernel chosen =
      kernel("chosen", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Expr<double> v = x(i);
          y(i) = select(v > 0, log(v), 0.0) + select(v > 0, sqrt(v), 0.0) +
                 select(v > 0, 1.0 / v, 3.0 * v) +
                 select(v > 0, pow(v, 0.25), 0.0);
        });
      });
  Kernel branched =
      kernel("branched", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Expr<double> v = x(i);
          Var<double> sum = 3.0 * v;
          IF (v > 0) {
            sum = log(v) + sqrt(v) + 1.0 / v + pow(v, 0.25);
          }
          y(i) = sum;
        });
      });
  auto x = active<double>({0, 1, 4}), y = active<double>({0, 0, 0});
  Values expected{3, 1 + 0.5 - 1 + 0.25,
                  0.25 + 0.25 - 0.0625 + 0.25 * std::pow(4, -0.75)};
  for (const Kernel &k : {chosen, branched})
    expectClosedForm({x}, {y}, {expected}, k, x, y);
}

TEST(PeerCases, ALengthOfZeroContributesNothingWhereItIsNotUsed) {
  Kernel k =
      kernel("safe_length", [](ArrayRef<double, 2> x, ArrayRef<double, 1> y) {
        parallel(x.size(0), [&](Index i) {
          Expr<double> square = x(i, 0) * x(i, 0) + x(i, 1) * x(i, 1);
          y(i) =
              select(square > 0, sqrt(square), 0.0) + hypot(x(i, 0), x(i, 1));
        });
      });
  auto x = active<double>({0, 0, 3, 4}, {2, 2}), y = active<double>({0, 0});
  expectClosedForm({x}, {y}, {{0, 0, 1.2, 1.6}}, k, x, y);
}

class MutatedBound : public testing::Test {
protected:
  /// x^(n(i) + 1)
  Kernel power = kernel("power", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                    ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        v = v * x(i);
      }
      y(i) = v;
    });
  });
  Array<double> x = active<double>({2, 3}), y = active<double>({0, 0});
  Array<int> n = constant<int>({1, 3});
};

TEST_F(MutatedBound, AGradientByHandIsThatAtTheCurrentContents) {
  power(x, n, y);
  n.from_host({40, 0});
  y.grad().fill(1);
  power.grad(x, n, y);
  EXPECT_EQ(x.grad().to_host(), (Values{41 * std::pow(2, 40), 1}));
}

// RULE: by-hand
TEST_F(MutatedBound, AGradientThatReloadsWhatIsNotOfThisBoundIsRefused) {
  Kernel reload =
      kernel("reload", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                          ArrayRef<double, 1> y, ArrayRef<double, 0> sum) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (j, 0, n(i)) {
            v = v * x(i);
          }
          y(i) = v;
        });
        parallel(x.size(), [&](Index i) { sum() += y(i) * y(i); });
      });
  Array<double> sum = cpu().array<double>({}, grad);
  reload(x, n, y, sum);
  n.from_host({2, 0});
  sum.grad().fill(1);
  expectError(ErrorCode::CannotReplay,
              {"`reload`", "argument 2", "was written since"},
              [&] { reload.grad(x, n, y, sum); });
  EXPECT_EQ(x.grad().to_host(), (Values{0, 0}));
}

TEST_F(MutatedBound, ARecordingKeepsTheBoundOfItsLaunch) {
  Tape tape;
  {
    auto recording = tape.record();
    power(x, n, y);
    n.from_host({40, 0});
  }
  n.from_host({0, 2});
  y.grad().fill(1);
  tape.backward();
  EXPECT_EQ(x.grad().to_host(), (Values{2 * 2, 4 * 27}));
  EXPECT_EQ(n.to_host(), (std::vector<int>{0, 2}));
}

TEST(PeerCases, TheLeastOfManyIsTheOneThatWasKept) {
  Kernel k = kernel("least", [](ArrayRef<double, 2> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> least = x(i, 0);
      FOR (j, 1, x.size(1)) {
        Expr<double> v = x(i, j);
        IF (v <= least) {
          least = v;
        }
      }
      y(i) = least * least;
    });
  });
  // In a tie the last one is kept.
  auto x = active<double>({5, 2, 7, 2, 3, -4, 1, 0, 9, 9, 9, 9}, {3, 4});
  auto y = active<double>({0, 0, 0});
  expectClosedForm({x}, {y}, {{0, 0, 0, 4, 0, -8, 0, 0, 0, 0, 0, 18}}, k, x, y);
}

/// The gradient needs y(j) + z(j), which it computes again.
TEST(PeerCases, WhatALoopCarriesLinearlyTakesNoMemoryPerIteration) {
  Kernel k = kernel("carry", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                ArrayRef<double, 1> z, Scalar<int> n,
                                ArrayRef<double, 1> out) {
    parallel(x.size(), [&](Index i) {
      Var<double> carry = 0.0;
      FOR (j, 0, n) {
        carry = carry + x(i) * (y(j % 10) + z(j % 10));
      }
      out(i) = carry;
    });
  });
  Device device = openDevice();
  auto x = device.array<double>({100}, grad),
       y = device.array<double>({10}, grad),
       z = device.array<double>({10}, grad),
       out = device.array<double>({100}, grad);
  x.fill(2);
  y.fill(3);
  z.fill(4);
  out.grad().fill(1);
  auto bytesOf = [&](int iterations) {
    k(x, y, z, iterations, out);
    out.grad().fill(1);
    device.reset_peak_bytes();
    size_t before = device.current_bytes();
    k.grad(x, y, z, iterations, out);
    return device.peak_bytes() - before;
  };
  size_t few = bytesOf(10), many = bytesOf(10'000);
  EXPECT_EQ(few, many);
  EXPECT_EQ(x.grad().to_host()[99], 7.0 * (10 + 10'000));
  EXPECT_EQ(z.grad().to_host()[9], 100 * 2.0 * (1 + 1000));
}

} // namespace
