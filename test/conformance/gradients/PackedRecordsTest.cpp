/// What gradients save in fewer bits than it is computed in.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

/// a <- 0.75 a a, in f16.
f16 stepOf(f16 a) { return f16(0.75f * float(f16(float(a) * float(a)))); }

TEST(PackedRecords, NumbersOf16BitsThatALoopCarries) {
  static constexpr int iterations = 5;
  Kernel k = kernel("halves", [](ArrayRef<f16, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<f16> a = x(i);
      FOR (k, 0, iterations) {
        a = cast<f16>(0.75f) * (a * a);
      }
      y(i) = cast<double>(a);
    });
  });
  std::vector<f16> values;
  for (int n = 0; n < 40; ++n)
    values.push_back(f16(0.9f + 0.013f * float(n)));
  auto x = active(values);
  auto y = active(std::vector<double>(values.size()));
  y.grad().fill(1);
  k.grad(x, y);
  std::vector<float> got = x.grad().to_host();
  for (size_t n = 0; n < values.size(); ++n) {
    double want = 1;
    f16 a = values[n];
    for (int step = 0; step < iterations; ++step, a = stepOf(a))
      want *= 1.5 * double(float(a));
    EXPECT_NEAR(got[n], want, 2e-3 * std::abs(want)) << "element " << n;
  }
}

/// Each y(i) follows from x(i) alone.
void expectSlopesOfTangents(const Kernel &k,
                            const std::vector<double> &values) {
  auto x = active(values), y = active(std::vector<double>(values.size()));
  y.grad().fill(1);
  k.grad(x, y);
  x.dual().fill(1);
  k.jvp(x, y);
  expectNear(x.grad().to_host(), y.dual().to_host());
}

/// How often the inner loop runs follows from a float, so it is saved: in 8
/// bits.
Kernel counted() {
  return kernel("counted", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> a = x(i);
      FOR (k, 0, 6) {
        Index count = cast<int64_t>(a * 100.0) & 7;
        FOR (j, 0, count) {
          a = 0.9 * a + 0.2 * sin(a);
        }
        a += 0.1 * x(i);
      }
      y(i) = a;
    });
  });
}

TEST(PackedRecords, TripCountsWithASmallBound) {
  Kernel k = counted();
  expectSlopesOfTangents(k, randomValues(100, 0.5, 1.5));
}

TEST(PackedRecords, SignedAndUnsignedNumbersOf8And16Bits) {
  Kernel k =
      kernel("rounded", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> a = x(i);
          FOR (k, 0, 6) {
            Expr<double> small = cast<double>(cast<int8_t>(a * 50.0));
            Expr<double> wide = cast<double>(cast<uint16_t>(abs(a) * 40000.0));
            a = a * (1.0 + 0.004 * small) - 1e-6 * wide * a;
          }
          y(i) = a;
        });
      });
  expectSlopesOfTangents(k, randomValues(100, -1.5, 1.5));
}

TEST(PackedRecords, AreAsSmallAsTheReportSays) {
  Kernel k = counted();
  auto x = active<double>({1, 1.2}), y = active<double>({0, 0});
  k.grad(x, y);
  EXPECT_NE(k.report().find(" 9 bytes"), std::string::npos) << k.report();
}

TEST(PackedRecords, SecondDerivativesAreNotNarrow) {
  Kernel k = kernel("squares", [](ArrayRef<f16, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<f16> a = x(i);
      FOR (k, 0, 3) {
        a = a * a;
      }
      y(i) = cast<double>(a);
    });
  });
  auto x = active<f16>({f16(1.0f), f16(1.125f)});
  auto y = active(std::vector<double>(2));
  x.dual().fill(1);
  y.grad().fill(1);
  k.gradient().jvp(x, y);
  std::vector<float> second = x.grad().dual().to_host();
  EXPECT_NEAR(second[0], 56, 1e-3);
  EXPECT_NEAR(second[1], 56 * std::pow(1.125, 6), 0.1);
}

} // namespace
