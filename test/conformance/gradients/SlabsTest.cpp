/// Adjoints of what work items with the same first index share: the same bits
/// for any number of threads, since each thread has whole slabs.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

constexpr int64_t rows = 40, points = 300, inner = 3;

/// y(k, i) = product over j of sin(w(k, j) x(i) + b(k)).
Kernel makeKernel() {
  using X = ArrayRef<double, 1>;
  using Rows = ArrayRef<double, 2>;
  return kernel("slabs", [](Rows w, X b, X x, Rows y) {
    parallel({y.size(0), y.size(1)}, [&](Index k, Index i) {
      Var<double> v = 1.0;
      FOR (j, 0, w.size(1)) {
        v *= sin(w(k, j) * x(i) + b(k));
      }
      y(k, i) = v;
    });
  });
}

std::vector<double> gradient(int threads) {
  Device device = openDevice({.threads = threads});
  auto w = device.array<double>({rows, inner}, grad);
  auto b = device.array<double>({rows}, grad),
       x = device.array<double>({points});
  auto y = device.array<double>({rows, points}, grad);
  w.from_host(randomValues(rows * inner, -1, 1));
  b.from_host(randomValues(rows, -1, 1));
  x.from_host(randomValues(points, -1, 1));
  Kernel k = makeKernel();
  y.grad().fill(1);
  k.grad(w, b, x, y);
  std::vector<double> all = w.grad().to_host();
  for (double slope : b.grad().to_host())
    all.push_back(slope);
  return all;
}

TEST(Slabs, HaveTheSameBitsForAnyNumberOfThreads) {
  if (!isOnCpu())
    GTEST_SKIP() << "threads of the CPU";
  std::vector<double> alone = gradient(1);
  for (int threads : {2, 5})
    for (int repeat = 0; repeat < 3; ++repeat)
      EXPECT_EQ(gradient(threads), alone) << threads << " threads";
}

TEST(Slabs, HaveTheGradientOfDifferences) {
  auto w = active({0.3, 0.7, -0.4, 0.9}, {2, 2}), b = active({0.5, -0.2});
  auto x = constant(std::vector<double>{0.1, 0.4, -0.3, 0.8, 0.6});
  auto y = active(std::vector<double>(10, 0), {2, 5});
  expectGradients({w, b}, {y}, makeKernel(), w, b, x, y);
}

} // namespace
