/// How far off functions are on the device of the tests; `costate-bench
/// accuracy` tries more arguments.

#include "compiler/MathsReference.h"
#include "conformance/TestDevice.h"

#include "costate/costate.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace costate;
using namespace costate::test;
using compiler::Function;

namespace {

/// In units of the last place, as the documentation has it.
constexpr double largestError = 4;

template <class T> void expectAccurate(const Function &function) {
  std::vector<T> x = compiler::samples<T>(1), y = compiler::samples<T>(2);
  std::shuffle(y.begin(), y.end(), std::mt19937(3));
  Device device = openDevice();
  auto on = [&](const std::vector<T> &values) {
    Array<T> array = device.array<T>({values.size()});
    array.from_host(values);
    return array;
  };
  Array<T> z = on(x);
  Kernel k = Kernel::from_ir(
      compiler::kernelText(function, sizeof(T) == 8 ? "f64" : "f32"));
  k(on(x), on(y), z);
  std::vector<T> got = z.to_host();
  for (size_t i = 0; i < x.size(); ++i) {
    long double exact = function.reference(x[i], y[i]);
    EXPECT_LE(compiler::error(got[i], exact), largestError)
        << x[i] << ", " << y[i] << " give " << got[i] << ", not " << exact;
  }
}

class Accuracy : public testing::TestWithParam<Function> {};

TEST_P(Accuracy, OfF32) { expectAccurate<float>(GetParam()); }
TEST_P(Accuracy, OfF64) { expectAccurate<double>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, Accuracy, testing::ValuesIn(compiler::functions),
                         [](const auto &info) {
                           std::string name = info.param.operation;
                           return name.substr(name.find('.') + 1);
                         });

} // namespace
