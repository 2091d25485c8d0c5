#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <numeric>
#include <sstream>

using namespace costate;
using costate::test::expectError;

namespace {

using X = ArrayRef<double, 1>;

class CheckGradient : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({100}, grad | dual);
  Array<double> y = device.array<double>({100}, grad | dual);

  /// v <- v sin v, n[i] times.
  Kernel loop = kernel("loop", [](X from, ArrayRef<int, 1> iterations, X to) {
    parallel(from.size(), [&](Index i) {
      Var<double> v = from(i);
      FOR (k, 0, iterations(i)) {
        v = v * sin(v);
      }
      to(i) = v;
    });
  });

  void SetUp() override {
    std::vector<double> values(100);
    for (int i = 0; i < 100; ++i)
      values[i] = 0.5 + 0.01 * i;
    x.from_host(values);
  }

  static std::string textOf(const GradientCheck &check) {
    std::ostringstream text;
    text << check;
    return text.str();
  }

  /// Expects that the check fails, and `parts` in its text.
  static void expectWrong(const GradientCheck &check,
                          std::initializer_list<std::string> parts) {
    EXPECT_FALSE(check.ok);
    std::string text = textOf(check);
    for (const std::string &part : parts)
      EXPECT_NE(text.find(part), std::string::npos)
          << "`" << part << "` is not in: " << text;
  }
};

} // namespace

TEST_F(CheckGradient, LeavesTheArgumentsAlone) {
  Array<int> iterations = device.array<int>({100});
  iterations.fill(7);
  std::vector<double> before = x.to_host();
  x.grad().fill(5);
  GradientCheck check = check_gradient(loop, x, iterations, y);
  std::ostringstream text;
  text << check;
  EXPECT_TRUE(check.ok) << text.str();
  EXPECT_NE(check.reverse, 0);
  EXPECT_NE(text.str().find("gradient of `loop`: ok"), std::string::npos);
  EXPECT_EQ(x.to_host(), before);
  EXPECT_EQ(x.grad().to_host()[0], 5);
  Kernel counts = kernel("counts", [](ArrayRef<int, 1> a) { a(0) = 1; });
  expectError(ErrorCode::MissingGradient, {"`counts`"},
              [&] { check_gradient(counts, iterations); });
}

TEST_F(CheckGradient, SinglePrecision) {
  Kernel product =
      kernel("product", [](ArrayRef<float, 1> a, ArrayRef<float, 0> total) {
        parallel(a.size(0), [&](Index i) { total() += a(i) * sin(a(i)); });
      });
  Array<float> a = device.array<float>({500}), total = device.array<float>({});
  a.fill(0.7f);
  EXPECT_TRUE(check_gradient(product, a, total))
      << check_gradient(product, a, total);
}

TEST_F(CheckGradient, MixedPrecision) {
  Kernel narrow =
      kernel("narrow", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) {
          Var<float> v = cast<float>(a(i));
          b(i) = cast<double>(v * sin(v));
        });
      });
  x.fill(0.7);
  EXPECT_TRUE(check_gradient(narrow, x, y)) << check_gradient(narrow, x, y);
}

TEST_F(CheckGradient, KernelsThatOverwriteTheirInput) {
  Kernel power =
      kernel("power", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) {
          FOR (t, 0, 3) {
            a(i) = a(i) * b(i);
          }
          b(i) = sin(a(i)) * b(i);
        });
      });
  x.fill(0.7);
  y.fill(1.3);
  GradientCheck check = check_gradient(power, x, y);
  EXPECT_TRUE(check) << check;
  EXPECT_NE(check.reverse, 0);
  EXPECT_EQ(x.to_host().front(), 0.7);
}

TEST_F(CheckGradient, ATinyGradientBesideLargeOutputs) {
  Kernel tiny = kernel("tiny", [](ArrayRef<double, 1> a,
                                  ArrayRef<double, 1> b) {
    parallel(a.size(0), [&](Index i) { b(i) = 1000.0 + 1e-15 * sin(a(i)); });
  });
  GradientCheck check = check_gradient(tiny, x, y);
  EXPECT_TRUE(check) << check;
  EXPECT_FALSE(check.differences_tell);
  EXPECT_NE(textOf(check).find("rounding hides"), std::string::npos);
}

TEST_F(CheckGradient, ASlopeThatRoundingHides) {
  // Rounding hides the slope from differences: they cannot agree.
  Kernel stairs =
      kernel("stairs", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) { b(i) = (a(i) + 1e15) - 1e15; });
      });
  EXPECT_FALSE(check_gradient(stairs, x, y));
}

TEST_F(CheckGradient, ReadsWell) {
  Kernel k = kernel("wave", [](ArrayRef<double, 2> a, ArrayRef<double, 0> b) {
    parallel({a.size(0), a.size(1)},
             [&](Index i, Index j) { b() += 0.25 * a(i, j); });
  });
  auto a = device.array<double>({1, 3}), b = device.array<double>({});
  GradientCheck check = check_gradient(k, a, b);
  check.reverse = check.forward = check.difference = 0.125;
  check.worst.reverse = check.worst.forward = check.worst.difference = -2;
  check.worst.index = {0, 2};
  check.forward_error = check.worst.forward_error = 3e-16;
  check.difference_error = check.worst.difference_error = 1e-12;
  check.step = 1e-4;
  EXPECT_EQ(
      textOf(check),
      "gradient of `wave`: ok, along a random direction:\n"
      "  reverse      1.250000000000000e-01\n"
      "  forward      1.250000000000000e-01  relative error 3.0e-16 (at most "
      "1.0e-09)\n"
      "  difference   1.250000000000000e-01  relative error 1.0e-12 (at most "
      "1.0e-05), step 1.0e-04\n"
      "worst of 3 entries looked at, of 3: element (0, 2) of argument 1\n"
      "  reverse     -2.000000000000000e+00\n"
      "  forward     -2.000000000000000e+00  relative error 3.0e-16 (at most "
      "1.0e-09)\n"
      "  difference  -2.000000000000000e+00  relative error 1.0e-12 (at most "
      "1.0e-05)\n");
}

TEST_F(CheckGradient, FindsTheEntryInWhichTheModesDiffer) {
  // What another work item does is not done yet in the primal, and is done when
  // the gradient looks.
  Kernel k = kernel(
      "peek", [](ArrayRef<int, 1> at, X from, X to, ArrayRef<int, 1> done) {
        parallel(from.size(), [&](Index i) {
          done(i) = 1;
          Var<double> v = 0.0;
          IF (done(at(i)) == 1) {
            v = sin(from(i));
          }
          to(i) = v;
        });
      });
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
  GradientCheck wrong = check_gradient(k, at, from, to, done);
  expectWrong(wrong, {"`peek`: WRONG", "forward mode differ", "races",
                      "of 3000", "of argument 2"});
  EXPECT_EQ(wrong.worst.argument, 2);
  EXPECT_EQ(wrong.worst.index, std::vector<int64_t>{77});
  EXPECT_EQ(wrong.worst.forward, 0);
  EXPECT_NEAR(wrong.worst.forward, wrong.worst.difference, 1e-6);
  EXPECT_GT(wrong.worst.forward_error, 0.9);
}

TEST_F(CheckGradient, RefusesWhatOtherWorkItemsWrite) {
  Kernel k = kernel("scatter", [](ArrayRef<int, 1> at, X from, X to) {
    parallel(from.size(), [&](Index i) { to(at(i)) = sin(from(i)); });
  });
  auto at = device.array<int>({3});
  auto from = device.array<double>({3}), to = device.array<double>({3});
  at.from_host({2, 0, 1});
  EXPECT_TRUE(check_gradient(k, at, from, to));
  at.from_host({2, 0, 2});
  expectError(
      ErrorCode::CannotReplay,
      {"`scatter` at", "CheckGradientTest.cpp:", "several work items", "as at"},
      [&] { check_gradient(k, at, from, to); });
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

TEST_F(CheckGradient, LooksAtSomeEntriesOfALargeArray) {
  Kernel k = kernel("squares", [](X a, ArrayRef<double, 0> b) {
    parallel(a.size(), [&](Index i) { b() += a(i) * a(i); });
  });
  auto a = device.array<double>({200000}), b = device.array<double>({});
  a.fill(1.5);
  GradientCheck check = check_gradient(k, a, b);
  EXPECT_TRUE(check) << check;
  EXPECT_EQ(check.entries, 8u);
  EXPECT_EQ(check.all_entries, 200000u);
}

TEST_F(CheckGradient, ThatFailsLeavesTheArgumentsAlone) {
  Kernel k =
      kernel("gather",
             [](ArrayRef<int, 1> at, X from, X to, ArrayRef<int, 1> count) {
               parallel(at.size(), [&](Index i) {
                 count(i) += 1;
                 from(i) = from(i) * from(at(i));
                 to(i) = from(i);
               });
             },
             {.debug = true});
  auto at = device.array<int>({100}), count = device.array<int>({100});
  for (int i = 0; i < 100; ++i)
    at.mutable_data()[i] = i;
  x.grad().fill(3);
  y.dual().fill(4);
  std::vector<double> before = x.to_host();
  auto expectUntouched = [&] {
    EXPECT_EQ(x.to_host(), before);
    EXPECT_EQ(y.to_host(), std::vector<double>(100, 0));
    EXPECT_EQ(x.grad().to_host(), std::vector<double>(100, 3));
    EXPECT_EQ(y.dual().to_host(), std::vector<double>(100, 4));
    EXPECT_EQ(count.to_host(), std::vector<int>(100, 0));
  };
  GradientCheck check = check_gradient(k, at, x, y, count);
  EXPECT_TRUE(check) << check;
  expectUntouched();
  at.mutable_data()[50] = 100;
  expectError(ErrorCode::OutOfRange, {"`gather`"},
              [&] { check_gradient(k, at, x, y, count); });
  expectUntouched();
  at.mutable_data()[50] = 51;
  expectError(ErrorCode::Race, {"`gather`"},
              [&] { check_gradient(k, at, x, y, count); });
  expectUntouched();
}

TEST_F(CheckGradient, TakesAKernelAndNotItsDerivative) {
  auto iterations = device.array<int>({100});
  expectError(ErrorCode::BadArgument, {"`loop`", "derivative"},
              [&] { check_gradient(loop.gradient(), x, iterations, y); });
}
