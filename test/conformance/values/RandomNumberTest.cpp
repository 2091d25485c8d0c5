/// Random numbers: those of Philox, everywhere and in every sweep.

#include "conformance/Gradients.h"

#include "Labels.h"
#include "base/Philox.h"

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using Words = ArrayRef<uint64_t, 1>;

/// Of Random123, kat_vectors.
TEST(RandomNumbers, AreThoseOfTheAuthors) {
  EXPECT_EQ(philox(0, 0, 0), 0xe169c58d6627e8d5u);
  uint64_t ones = ~uint64_t(0);
  EXPECT_EQ(philox(ones, ones, ones), 0x41c83b0e408f276du);
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            0x94fdccebd16cfe09u);
}

TEST(RandomNumbers, DependOnSeedStreamAndCount) {
  Kernel k = kernel("bits", [](Words seeds, ArrayRef<uint64_t, 2> y) {
    parallel(y.size(0), [&](Index i) {
      Random random(seeds[i % seeds.size()], i - 1);
      FOR (t, 0, y.size(1)) {
        y(i, t) = random.bits();
      }
    });
  });
  std::vector<uint64_t> seeds{0, 42, ~uint64_t(0)};
  auto y = cpu().array<uint64_t>({100, 5});
  k(constant(seeds), y);
  std::vector<uint64_t> all = y.to_host();
  for (uint64_t i = 0; i < 100; ++i)
    for (uint64_t t = 0; t < 5; ++t)
      EXPECT_EQ(all[5 * i + t], philox(seeds[i % 3], i - 1, t))
          << i << ' ' << t;
}

/// In serial code, and a copy goes on where the original is.
TEST(RandomNumbers, AreVariablesOfTheKernel) {
  Kernel k = kernel("copies", [](Words y) {
    Random random(7);
    Expr<uint64_t> first = random.bits();
    Random copy = random;
    y(0) = first;
    y(1) = random.bits();
    y(2) = copy.bits();
    y(3) = cast<uint64_t>(random.below(10));
  });
  auto y = cpu().array<uint64_t>({4});
  k(y);
  EXPECT_EQ(y.to_host(),
            (std::vector<uint64_t>{philox(7, 0, 0), philox(7, 0, 1),
                                   philox(7, 0, 1), philox(7, 0, 2) % 10}));
}

struct Moments {
  double mean = 0, square = 0, least = 0, most = 0;
};

template <class T> Moments moments(const std::vector<T> &values) {
  Moments all{.least = values[0], .most = values[0]};
  for (double value : values) {
    all.mean += value / static_cast<double>(values.size());
    all.square += value * value / static_cast<double>(values.size());
    all.least = std::min(all.least, value);
    all.most = std::max(all.most, value);
  }
  return all;
}

template <class T> class RandomFloats : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(RandomFloats, Floats);

/// 400,000 draws: means lie within 5 standard deviations.
TYPED_TEST(RandomFloats, HaveTheirDistributions) {
  using T = TypeParam;
  Kernel k =
      kernel("draws", [](ArrayRef<T, 2> u, ArrayRef<T, 2> v, ArrayRef<T, 2> g) {
        parallel(u.size(0), [&](Index i) {
          Random random(3, i);
          FOR (t, 0, u.size(1)) {
            u(i, t) = random.uniform<T>();
            v(i, t) = random.uniform<T>(-2, 1);
            g(i, t) = random.normal<T>();
          }
        });
      });
  auto make = [] { return cpu().array<T>({4000, 100}); };
  Array<T> u = make(), v = make(), g = make();
  k(u, v, g);
  Moments uniform = moments(u.to_host()), scaled = moments(v.to_host()),
          normal = moments(g.to_host());
  EXPECT_NEAR(uniform.mean, 0.5, 0.0023);
  EXPECT_NEAR(uniform.square, 1 / 3.0, 0.0024);
  EXPECT_GE(uniform.least, 0);
  EXPECT_LT(uniform.most, 1);
  EXPECT_NEAR(scaled.mean, -0.5, 0.007);
  EXPECT_GE(scaled.least, -2);
  EXPECT_LE(scaled.most, 1);
  EXPECT_NEAR(normal.mean, 0, 0.008);
  EXPECT_NEAR(normal.square, 1, 0.012);
  EXPECT_GT(normal.most, 4);
  EXPECT_LT(normal.most, 9);
}

/// The uniform number that costate::Random draws as number `count`.
double uniformOf(uint64_t seed, uint64_t stream, uint64_t count) {
  return std::ldexp(static_cast<double>(philox(seed, stream, count) >> 11),
                    -53);
}

/// What is drawn decides how long the loops are and what is skipped; the
/// derivatives see the same numbers.
TEST(RandomNumbers, AreTheSameInDerivatives) {
  Kernel k = kernel("walk", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      Random random(11, i);
      Var<double> v = x[i], u = random.uniform();
      WHILE (u < 0.8) {
        v = v * (0.5 + u);
        u = random.uniform();
      }
      FOR (t, 0, random.below(6)) {
        u = random.uniform();
        IF (u < 0.3) {
          CONTINUE;
        }
        v = v * v * u;
      }
      y[i] = v;
    });
  });
  const size_t n = 200;
  auto x = active<double>(randomValues(n, 0.5, 1.5)),
       y = active<double>(std::vector<double>(n));
  y.grad().fill(1);
  x.dual().fill(1);
  k(x, y);
  k.grad(x, y);
  k.jvp(x, y);
  std::vector<double> start = x.to_host(), value = y.to_host(),
                      adjoint = x.grad().to_host(),
                      tangent = y.dual().to_host();
  for (size_t i = 0; i < n; ++i) {
    double v = start[i], d = 1, count = 0;
    auto draw = [&] { return uniformOf(11, i, count++); };
    double u = draw();
    for (; u < 0.8; u = draw()) {
      v *= 0.5 + u;
      d *= 0.5 + u;
    }
    for (uint64_t t = philox(11, i, count++) % 6; t > 0; --t) {
      u = draw();
      if (u < 0.3)
        continue;
      d = 2 * v * d * u;
      v = v * v * u;
    }
    EXPECT_NEAR(value[i], v, 1e-12 * std::abs(v));
    EXPECT_NEAR(adjoint[i], d, 1e-12 * std::abs(d));
    EXPECT_NEAR(tangent[i], d, 1e-12 * std::abs(d));
  }
}

} // namespace
