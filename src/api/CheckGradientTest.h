#pragma once
/// A kernel with a loop, and what a check says.

#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <sstream>

namespace costate::test {

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

} // namespace costate::test
