#pragma once
/// A kernel with a loop, and what a check says.

#include "api/TestKernels.h"
#include "conformance/Errors.h"

#include <sstream>

namespace costate::test {

using X = ArrayRef<double, 1>;

class CheckGradient : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({100}, grad | dual);
  Array<double> y = device.array<double>({100}, grad | dual);

  Kernel loop = makeLoop();

  void SetUp() override { x.from_host(risingValues()); }

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
