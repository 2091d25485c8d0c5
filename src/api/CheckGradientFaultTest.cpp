#include "api/CheckGradientTest.h"

using namespace costate;
using namespace costate::test;

namespace {

/// (1 - x)^2 + 100 (y - x^2)^2, with `wrong` times x added to what is taken
/// for its gradient by x.
Kernel rosenbrock(double level, double wrong = 0) {
  auto square = custom_derivative(
      [](Expr<double> v) { return v * v; },
      [wrong](Expr<double> v, Expr<double>) { return 2.0 * v + wrong; });
  return kernel("rosenbrock", [=](X p, ArrayRef<double, 0> f) {
    Expr<double> valley = p(1) - p(0) * p(0);
    f() = level + square(1.0 - p(0)) + 100.0 * valley * valley;
  });
}

} // namespace

TEST_F(CheckGradient, RefusesWhatIsLeftToChance) {
  // What another work item does is not done yet in the primal, and is done when
  // the gradient looks.
  Kernel k = kernel(
      "peek",
      [](ArrayRef<int, 1> at, X from, X to, ArrayRef<int, 1> done) {
        parallel(from.size(), [&](Index i) {
          done(i) = 1;
          Var<double> v = 0.0;
          IF (done(at(i)) == 1) {
            v = sin(from(i));
          }
          to(i) = v;
        });
      },
      KernelOptions{.lanes = 1}); // one work item after the other
  const int n = 3000;
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  auto at = device.array<int>({n}), done = device.array<int>({n});
  auto from = device.array<double>({n}), to = device.array<double>({n});
  from.fill(0.5);
  at.from_host(order);
  GradientCheck right = check_gradient(k, at, from, to, done);
  EXPECT_TRUE(right) << right;
  order[77] = 78;
  at.from_host(order);
  expectError(ErrorCode::CannotReplay, {"`peek`", "one work item of the range"},
              [&] { check_gradient(k, at, from, to, done); });
}

TEST_F(CheckGradient, SaysThatTheModesDiffer) {
  GradientCheck check;
  check.kernel = "peek";
  check.forward_error = 1;
  check.worst.array = "argument 2";
  check.worst.index = {77};
  check.entries = 8;
  check.all_entries = 3000;
  expectWrong(check, {"`peek`: WRONG", "forward mode differ", "races",
                      "of 3000", "element 77 of argument 2"});
}

TEST_F(CheckGradient, FindsTheEntryAtAJump) {
  Kernel k = kernel("jump", [](ArrayRef<double, 2> a, ArrayRef<double, 0> b) {
    parallel({a.size(0), a.size(1)}, [&](Index i, Index j) {
      Var<double> v = a(i, j);
      IF (v < 0.5) {
        v += 1.0;
      }
      b() += v * v;
    });
  });
  auto a = device.array<double>({40, 50}), b = device.array<double>({});
  a.fill(2);
  EXPECT_TRUE(check_gradient(k, a, b)) << check_gradient(k, a, b);
  a.mutable_data()[31 * 50 + 7] = 0.5;
  expectWrong(check_gradient(k, a, b), {"element (31, 7) of argument 1",
                                        "both modes agree", "kink", "of 2000"});
}

TEST_F(CheckGradient, FindsAKinkInASmallArray) {
  Kernel k = kernel("clamped", [](X a, X b) {
    parallel(a.size(), [&](Index i) { b(i) = clamp(a(i), 0.0, 1.0); });
  });
  auto a = device.array<double>({5}), b = device.array<double>({5});
  a.from_host({0.5, 0.25, 0, 0.75, 2});
  GradientCheck check = check_gradient(k, a, b);
  expectWrong(check, {"element 2 of argument 1"});
  EXPECT_EQ(check.entries, 5u);
  EXPECT_NEAR(check.worst.difference, check.worst.reverse / 2, 1e-6);
}

TEST_F(CheckGradient, FindsWhatRoundingLeavesOfAWrongSlope) {
  // The steps add as much to the slope as its derivative knows of.
  Kernel k = kernel("steps", [](X a, ArrayRef<double, 0> b) {
    parallel(a.size(), [&](Index i) {
      Var<double> v = cast<double>(cast<int64_t>(1e9 * a(i)));
      b() += 1e-6 * (a(i) + 1e-9 * v);
    });
    b() += 1000;
  });
  auto b = device.array<double>({});
  expectWrong(check_gradient(k, x, b), {"both modes agree", "integer"});
}

TEST_F(CheckGradient, AtAMinimum) {
  auto p = device.array<double>({2}), f = device.array<double>({});
  for (double level : {0.0, 1.0, 100.0})
    for (double off : {0.0, 1e-15, 1e-12, -1e-9, 1e-6, -1e-3}) {
      p.from_host({1 + off, 1});
      GradientCheck check = check_gradient(rosenbrock(level), p, f);
      EXPECT_TRUE(check) << level << " " << off << "\n" << check;
      EXPECT_TRUE(check.differences_tell);
    }
}

TEST_F(CheckGradient, FindsAWrongGradientAtAMinimum) {
  auto p = device.array<double>({2}), f = device.array<double>({});
  for (double level : {0.0, 1.0})
    for (double off : {0.0, 1e-12, -1e-9, 1e-6})
      for (double wrong : {1.0, 1e-3, 1e-6}) {
        p.from_host({1 + off, 1});
        GradientCheck check = check_gradient(rosenbrock(level, wrong), p, f);
        EXPECT_FALSE(check) << level << " " << off << " " << wrong << "\n"
                            << check;
      }
}

TEST_F(CheckGradient, FindsAWrongFactorNearAMinimum) {
  auto square =
      custom_derivative([](Expr<double> v) { return v * v; },
                        [](Expr<double> v, Expr<double>) { return 3.0 * v; });
  Kernel k = kernel("factor", [&](X a, ArrayRef<double, 0> b) {
    parallel(a.size(), [&](Index i) { b() += square(a(i) - 1.0); });
  });
  auto a = device.array<double>({3}), b = device.array<double>({});
  for (double off : {1e-8, -1e-6, 1e-3}) {
    a.fill(1 + off);
    EXPECT_FALSE(check_gradient(k, a, b)) << off;
  }
}

TEST_F(CheckGradient, WhereTermsCancel) {
  // At the mean, sums in another order leave another rest.
  Kernel k = kernel("spread", [](X a, X mean, ArrayRef<double, 0> b) {
    parallel(a.size(), [&](Index i) {
      Expr<double> rest = a(i) - mean(0);
      b() += rest * rest;
    });
  });
  std::vector<double> values = x.to_host();
  double sum = 0;
  for (double &value : values)
    sum += value = std::sin(100 * value);
  auto mean = device.array<double>({1}), b = device.array<double>({});
  x.from_host(values);
  mean.fill(sum / 100);
  EXPECT_TRUE(check_gradient(k, x, mean, b)) << check_gradient(k, x, mean, b);
}

TEST_F(CheckGradient, AtAMinimumInSinglePrecision) {
  Kernel k = kernel("bowls", [](ArrayRef<float, 1> a, ArrayRef<float, 0> b) {
    parallel(a.size(0), [&](Index i) { b() += cosh(a(i) - 1.0f); });
  });
  auto a = device.array<float>({20}), b = device.array<float>({});
  a.fill(1);
  EXPECT_TRUE(check_gradient(k, a, b)) << check_gradient(k, a, b);
}
