/// Deterministic ranges make shared additions at their end; what an iteration
/// adds to its own elements it can read at once.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

constexpr KernelOptions deterministic{.deterministic = true};

TEST(Deterministic, AnIterationReadsWhatItHasAdded) {
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
