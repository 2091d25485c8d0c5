/// Which threads of a GPU run which work items: the same results.

#include "conformance/TestDevice.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

namespace costate::test {
namespace {

Kernel stencil() {
  return kernel("stencil", [](ArrayRef<double, 3> x, ArrayRef<double, 3> y) {
    Index rows = x.size(1);
    parallel({x.size(0), rows, x.size(2)}, [&](Index i, Index j, Index k) {
      Expr<double> before = x(i, max(j - 1, 0), k),
                   after = x(i, min(j + 1, rows - 1), k);
      y(i, j, k) = x(i, j, k) * before - 3.0 * after;
    });
  });
}

/// What the kernel and its gradient leave on a device.
std::vector<double> outcome(const Device &device,
                            const std::vector<int64_t> &extents) {
  auto x = device.array<double>(extents, grad),
       y = device.array<double>(extents, grad);
  std::vector<double> start;
  for (int64_t k = 0; k < extents[0] * extents[1] * extents[2]; ++k)
    start.push_back(0.5 + double(k * 31 % 101) / 64);
  x.from_host(start);
  Kernel k = stencil();
  k(x, y);
  x.grad().fill(0);
  y.grad().from_host(start);
  k.grad(x, y);
  std::vector<double> all = y.to_host();
  for (const std::vector<double> &more :
       {x.grad().to_host(), y.grad().to_host()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

void expectThatOfCpu() {
  for (const std::vector<int64_t> &extents :
       std::vector<std::vector<int64_t>>{{1, 1, 1},
                                         {2, 1, 40},
                                         {5, 3, 2},
                                         {1, 2, 700},
                                         {13, 17, 31},
                                         {4, 40, 129}})
    EXPECT_EQ(outcome(openDevice(), extents),
              outcome(Device::open("cpu"), extents))
        << testing::PrintToString(extents);
}

TEST(GpuGrid, EveryWorkItemHasOneThread) { expectThatOfCpu(); }

TEST(GpuGrid, AlsoWhereFewThreadsHaveRegisters) {
  Simulated few("registers", "few");
  expectThatOfCpu();
}

} // namespace
} // namespace costate::test
