/// How far off functions are on the device of the tests; `costate-bench
/// accuracy` tries more arguments.

#include "compiler/MathsReference.h"
#include "conformance/TestDevice.h"

#include "Labels.h"
#include "costate/costate.h"

#include <algorithm>
#include <gtest/gtest.h>

COSTATE_LABEL("*Accuracy*", sample);

using namespace costate;
using namespace costate::test;
using compiler::Function;

namespace {

/// In units of the last place, as the documentation has it.
constexpr double largestError = 4;

/// Some devices take numbers below the smallest normal one for 0.
template <class T> bool keepsDenormals(const Device &device) {
  Array<T> x = device.array<T>({1}), y = device.array<T>({1});
  x.fill(std::numeric_limits<T>::denorm_min());
  kernel("positive", [](ArrayRef<T, 1> x, ArrayRef<T, 1> y) {
    parallel(x.size(), [&](Index i) {
      y[i] = select(x[i] > Expr<T>(T(0)), Expr<T>(T(1)), Expr<T>(T(0)));
    });
  })(x, y);
  return y.to_host().front() == 1;
}

template <class T> bool isDenormal(long double value) {
  return value != 0 && std::fabs(value) < std::numeric_limits<T>::min();
}

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
  bool keeps = keepsDenormals<T>(device);
  std::string operation = function.operation;
  bool rounds = operation.ends_with(".divf") || operation.ends_with(".sqrt");
  for (size_t i = 0; i < x.size(); ++i) {
    long double exact = function.reference(x[i], y[i]);
    if (!keeps &&
        (isDenormal<T>(x[i]) || isDenormal<T>(y[i]) || isDenormal<T>(exact)))
      continue;
    EXPECT_LE(compiler::error(got[i], exact), rounds ? 0.5 : largestError)
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

/// Also next to the halves of units, where approximations are rounded wrongly.
TEST(Rounding, OfQuotientsAndRootsIsThatOfTheHost) {
  std::vector<float> x, y;
  std::mt19937 random(1);
  for (int k = -140; k < 128; ++k)
    for (float part : {1.0f, 0x1.fffffep0f, 0x1.000002p0f, 1.5f}) {
      x.insert(x.end(), {std::ldexp(1.0f, k % 60), std::ldexp(part, k)});
      y.insert(y.end(), {std::ldexp(part, k % 50), std::ldexp(part, 7)});
      y[y.size() - size_t(random() % 2) - 1] *= -1;
    }
  for (int k = 0; k < 100000; ++k) {
    x.push_back(std::ldexp(float(random() >> 8), int(random() % 90) - 60));
    y.push_back(std::ldexp(float(random() >> 8) + 1, int(random() % 90) - 60));
  }
  Device device = openDevice();
  Array<float> a = device.array<float>({x.size()}),
               b = device.array<float>({x.size()}),
               quotient = device.array<float>({x.size()}),
               root = device.array<float>({x.size()});
  a.from_host(x);
  b.from_host(y);
  kernel("divide", [](ArrayRef<float, 1> x, ArrayRef<float, 1> y,
                      ArrayRef<float, 1> quotient, ArrayRef<float, 1> root) {
    parallel(x.size(), [&](Index i) {
      quotient[i] = x[i] / y[i];
      root[i] = sqrt(x[i]);
    });
  })(a, b, quotient, root);
  bool keeps = keepsDenormals<float>(device);
  std::vector<float> q = quotient.to_host(), r = root.to_host();
  auto isLost = [&](float value) { return !keeps && isDenormal<float>(value); };
  for (size_t i = 0; i < x.size(); ++i) {
    if (isLost(x[i]) || isLost(y[i]))
      continue;
    if (!isLost(x[i] / y[i]))
      EXPECT_EQ(q[i], x[i] / y[i]) << x[i] << " / " << y[i];
    EXPECT_EQ(r[i], std::sqrt(x[i])) << x[i];
  }
}

} // namespace
