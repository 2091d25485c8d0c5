#include "api/CheckGradientTest.h"

using namespace costate;
using namespace costate::test;

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
