/// Products of derivatives are 0 where the adjoint is, also where several of
/// them share the guard, as on CPUs.

#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using X = ArrayRef<double, 1>;

/// The adjoints of x by those of y.
std::vector<double> adjoints(const Kernel &k, const std::vector<double> &x,
                             const std::vector<double> &seeds) {
  Device device = Device::open("cpu");
  auto in = device.array<double>({int64_t(x.size())}, grad),
       out = device.array<double>({int64_t(seeds.size())}, grad);
  in.from_host(x);
  out.grad().from_host(seeds);
  k.grad(in, out);
  return in.grad().to_host();
}

TEST(Guards, OfAPowerAreOne) {
  Kernel k = kernel("cubes", [](X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i) * x(i); });
  });
  EXPECT_EQ(adjoints(k, {inf, inf, 0, 1e-200, 2}, {0, 1, 1, 1e-300, 1}),
            (std::vector<double>{0, inf, 0, 0, 12}));
}

TEST(Guards, OfOtherFactorsAreTheirs) {
  Kernel k = kernel("products", [](X x, X y) {
    parallel(1, [&](Index) { y(0) = x(0) * x(1) * x(2); });
  });
  EXPECT_EQ(adjoints(k, {1, inf, 0}, {1})[0], 0);
}

TEST(Guards, OfTermsWithOtherAdjointsAreTheirs) {
  Kernel k = kernel("sums", [](X x, X y) {
    parallel(1, [&](Index) {
      Expr<double> v = x(0);
      y(0) = v * x(1);
      y(1) = v * x(2);
    });
  });
  EXPECT_EQ(adjoints(k, {1, 2, 3}, {0, 5})[0], 15);
  EXPECT_EQ(adjoints(k, {1, 2, 3}, {5, 0})[0], 10);
}

} // namespace
