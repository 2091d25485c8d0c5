/// Deterministic ranges make shared additions at their end; what a work item
/// adds to its own elements it can read at once.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

constexpr KernelOptions deterministic{.deterministic = true};

TEST(Deterministic, AWorkItemReadsWhatItHasAdded) {
  auto body = [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      x(i) += 0.5;
      y(i) = sin(x(i));
    });
  };
  Kernel plain = kernel("plain", body);
  Kernel same = kernel("same", body, deterministic);
  auto x = active<double>({0.25, 1, -2}), y = active<double>({0, 0, 0});
  same(x, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{std::sin(0.75), std::sin(1.5),
                                              std::sin(-1.5)}));
  expectGradients({x}, {y}, plain, x, y);
  expectGradients({x}, {y}, same, x, y);
}

TEST(Deterministic, PairsOfElements) {
  Kernel k = kernel(
      "pairs",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y, ArrayRef<double, 1> z) {
        parallel(x.size(0), [&](Index i) {
          y(2 * i) = sin(x(i));
          y(2 * i + 1) = cos(x(i));
          z(i) = y(2 * i) * y(2 * i) * y(2 * i + 1);
        });
      },
      deterministic);
  auto x = active<double>({0.25, 1, -2});
  auto y = active(std::vector<double>(6, 0.0)), z = active<double>({0, 0, 0});
  expectGradients({x}, {y, z}, k, x, y, z);
}

/// Sums of a range with tapes, on a device that has tapes of other launches.
TEST(Deterministic, BitsDoNotDependOnEarlierLaunches) {
  Kernel k = kernel(
      "history",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> w, ArrayRef<int, 1> n,
         ArrayRef<double, 1> y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n(i)) {
            v = v + w(0) * sin(v);
            y(i) = v;
          }
        });
      },
      deterministic);
  auto gradient = [&](const Device &device, int iterations) {
    auto x = device.array<double>({4000}, grad),
         w = device.array<double>({1}, grad),
         y = device.array<double>({4000}, grad);
    std::vector<double> start;
    for (int i = 0; i < 4000; ++i)
      start.push_back(1.5 + std::sin(i));
    x.from_host(start);
    w.fill(0.1);
    auto n = device.array<int>({4000});
    n.fill(iterations);
    y.grad().fill(1);
    k.grad(x, w, n, y);
    return w.grad().to_host();
  };
  Device used = openDevice();
  gradient(used, 20);
  EXPECT_EQ(gradient(used, 30), gradient(openDevice(), 30));
}

TEST(Deterministic, RefusesWhatItCannotTellApart) {
  Kernel reads = kernel(
      "reads",
      [](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(at.size(0), [&](Index i) {
          x(at(i)) += 1;
          y(i) = x(at(i));
        });
      },
      deterministic);
  Kernel stores = kernel(
      "stores",
      [](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y,
         ArrayRef<double, 1> z) {
        parallel(at.size(0), [&](Index i) {
          x(at(i)) = sin(y(i));
          z(i) = x(at(i)) * x(at(i));
        });
      },
      deterministic);
  auto at = constant<int>({2, 0, 1});
  auto x = active<double>({1, 2, 3}), y = active<double>({4, 5, 6}),
       z = active<double>({0, 0, 0});
  auto codeOf = [](auto &&launch) {
    try {
      launch();
    } catch (const Error &error) {
      return error.code();
    }
    return ErrorCode::Internal;
  };
  EXPECT_EQ(codeOf([&] { reads(at, x, y); }), ErrorCode::BadKernel);
  EXPECT_EQ(codeOf([&] { stores.grad(at, x, y, z); }), ErrorCode::CannotReplay);
}

} // namespace
