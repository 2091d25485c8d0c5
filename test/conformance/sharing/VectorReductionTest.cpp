/// Sums of vectors, matrices and structs over a range.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <array>
#include <cstring>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using M = ArrayRef<double, 2>;
using Values = std::vector<double>;

struct Momentum {
  Vec<double, 2> linear;
  Var<double> angular;
  Mat<double, 2, 2> inertia;
};
COSTATE_STRUCT(Momentum, linear, angular, inertia)

using V = ArrayRef<Vec<double, 3>, 1>;

/// In one pass over the range; `inWorkItem`: in a loop.
Kernel sumsOfVectors(bool inWorkItem) {
  return kernel("vectors", [&](V x, M w, ArrayRef<Vec<double, 3>, 0> centre,
                               ArrayRef<Mat<double, 3, 3>, 0> moment,
                               ArrayRef<Momentum, 0> all) {
    auto body = [&] {
      centre() = sum(elements(w),
                     [&](Index i, Index j) { return w(i, j) * sin(x(j)); });
      moment() = sum(x.size(), [&](Index i) { return outer(x(i), x(i)); });
      all() = sum(x.size(), [&](Index i) {
        Momentum one;
        one.linear = vec(x(i).x(), x(i).y() * x(i).z());
        one.angular = exp(x(i).x());
        one.inertia(0, 1) = x(i).y();
        one.inertia(1, 1) = 1.0;
        return one;
      });
    };
    if (inWorkItem)
      parallel(1, [&](Index) { body(); });
    else
      body();
  });
}

void expectSumsOfVectors(bool inWorkItem, int64_t n) {
  Kernel k = sumsOfVectors(inWorkItem);
  Device device = cpu();
  auto x = device.array<Vec<double, 3>>({n}, grad | dual);
  auto w = device.array<double>({2, n}, grad | dual);
  auto centre = device.array<Vec<double, 3>>({}, grad | dual);
  auto moment = device.array<Mat<double, 3, 3>>({}, grad | dual);
  auto all = device.array<Momentum>({}, grad | dual);
  std::vector<std::array<double, 3>> points(static_cast<size_t>(n));
  Values numbers = randomValues(3 * size_t(n), -1, 1);
  std::memcpy(points.data(), numbers.data(), numbers.size() * sizeof(double));
  Values weights = randomValues(2 * size_t(n), -1, 1, 5);
  x.from_host(points);
  w.from_host(weights);
  k(x, w, centre, moment, all);
  std::array<double, 3> expected{};
  std::array<std::array<double, 3>, 3> products{};
  Host<Momentum> momentum{};
  for (size_t i = 0; i < points.size(); ++i) {
    auto [a, b, c] = points[i];
    for (size_t k = 0; k < 3; ++k) {
      expected[k] +=
          (weights[i] + weights[size_t(n) + i]) * std::sin(points[i][k]);
      for (size_t j = 0; j < 3; ++j)
        products[k][j] += points[i][k] * points[i][j];
    }
    momentum.linear[0] += a;
    momentum.linear[1] += b * c;
    momentum.angular += std::exp(a);
    momentum.inertia[0][1] += b;
    momentum.inertia[1][1] += 1;
  }
  double near = 1e-12 * double(n);
  Host<Momentum> got = all.to_host()[0];
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(centre.to_host()[0][k], expected[k], near);
    for (size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(moment.to_host()[0][k][j], products[k][j], near);
  }
  EXPECT_NEAR(got.linear[1], momentum.linear[1], near);
  EXPECT_NEAR(got.angular, momentum.angular, near);
  EXPECT_NEAR(got.inertia[0][1], momentum.inertia[0][1], near);
  EXPECT_EQ(got.inertia[1][1], double(n));
  EXPECT_EQ(got.inertia[1][0], 0);
  // d/dx of the sum of sines, of x x^T against G, of the rest.
  centre.grad().fill({1, 2, 3});
  moment.grad().fill({{{1, 0, 2}, {0, 0, 0}, {0, 1, 0}}});
  all.grad().fill({{1, 2}, 3, {{{0, 4}, {0, 0}}}});
  k.grad(x, w, centre, moment, all);
  auto slope = x.grad().to_host();
  for (size_t i = 0; i < points.size(); i += 97) {
    auto [a, b, c] = points[i];
    double both = weights[i] + weights[size_t(n) + i];
    EXPECT_NEAR(slope[i][0],
                both * std::cos(a) + 2 * a + 2 * c + 1 + 3 * std::exp(a),
                1e-13);
    EXPECT_NEAR(slope[i][1], 2 * both * std::cos(b) + c + 2 * c + 4, 1e-13);
    EXPECT_NEAR(slope[i][2], 3 * both * std::cos(c) + 2 * a + b + 2 * b, 1e-13);
  }
  if (n < 100) {
    GradientCheck check = check_gradient(k, x, w, centre, moment, all);
    EXPECT_TRUE(check.ok) << check;
  }
}

TEST(Reduction, SumsOfVectors) {
  for (bool inWorkItem : {false, true})
    for (int64_t n : {1, 6, 5000})
      expectSumsOfVectors(inWorkItem, n);
}

TEST(Reduction, SumsOfVectorsHaveTheSameBitsForAnyNumberOfThreads) {
  Kernel k = kernel("k", [](V x, ArrayRef<Vec<double, 3>, 0> out) {
    out() = sum(x.size(), [&](Index i) { return sin(x(i)); });
  });
  std::vector<std::array<double, 3>> points(100000);
  Values numbers = randomValues(300000, -1, 1);
  std::memcpy(points.data(), numbers.data(), numbers.size() * sizeof(double));
  std::array<double, 3> sums{};
  for (int threads : {1, 2, 3}) {
    Device device = openDevice({.threads = threads});
    auto x = device.array<Vec<double, 3>>({100000});
    auto out = device.array<Vec<double, 3>>({});
    x.from_host(points);
    k(x, out);
    if (threads == 1)
      sums = out.to_host()[0];
    EXPECT_EQ(out.to_host()[0], sums) << threads;
  }
}

/// Of integers and truth values, and of members by reference.
TEST(Reduction, SumsOfOtherVectors) {
  Kernel k = kernel(
      "k", [](ArrayRef<Vec<int, 2>, 1> x, ArrayRef<Vec<int, 2>, 0> total,
              ArrayRef<Vec<int64_t, 2>, 1> counts, ArrayRef<Vec<f16, 2>, 1> h,
              ArrayRef<Vec<f16, 2>, 0> halves, ArrayRef<Momentum, 1> m,
              ArrayRef<Momentum, 0> all) {
        total() = sum(x.size(), [&](Index i) { return x(i); });
        counts(0) = sum(x.size(), [&](Index i) { return x(i) > 0; });
        halves() = sum(h.size(), [&](Index i) { return h(i); });
        all() = sum(elements(m), [&](Index i) { return m(i); });
        parallel(1, [&](Index) {
          counts(1) = sum(x.size(), [&](Index i) { return x(i) > 1; });
        });
      });
  Device device = cpu();
  auto x = device.array<Vec<int, 2>>({3});
  auto total = device.array<Vec<int, 2>>({});
  auto counts = device.array<Vec<int64_t, 2>>({2});
  auto h = device.array<Vec<f16, 2>>({3});
  auto halves = device.array<Vec<f16, 2>>({});
  auto m = device.array<Momentum>({3}), all = device.array<Momentum>({});
  x.from_host({{1, 2}, {-3, 4}, {5, 0}});
  h.fill({f16(0.5), f16(2)});
  m.fill({{1, 2}, 3, {{{4, 5}, {6, 7}}}});
  k(x, total, counts, h, halves, m, all);
  EXPECT_EQ(total.to_host()[0], (std::array{3, 6}));
  EXPECT_EQ(counts.to_host()[0], (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(counts.to_host()[1], (std::array<int64_t, 2>{1, 2}));
  EXPECT_EQ(double(halves.to_host()[0][0]), 1.5);
  EXPECT_EQ(double(halves.to_host()[0][1]), 6);
  EXPECT_EQ(all.to_host()[0].inertia[1][0], 18);
  EXPECT_EQ(all.to_host()[0].angular, 9);
}

} // namespace
