/// One function per operation: scalar code, vectors of every width and, within
/// a few units in the last place, libm agree.

#include "compiler/Compiler.h"
#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace costate::compiler {
namespace {

struct Function {
  const char *operation;
  long double (*reference)(long double, long double);
  bool isBinary = false;
};

#define UNARY(name)                                                            \
  {"math." #name, [](long double x, long double) { return std::name(x); }}
#define BINARY(op, name)                                                       \
  {op, [](long double x, long double y) { return std::name(x, y); }, true}

const Function functions[] = {
    UNARY(sin),   UNARY(cos),   UNARY(tan),   UNARY(asin),  UNARY(acos),
    UNARY(atan),  UNARY(sinh),  UNARY(cosh),  UNARY(tanh),  UNARY(asinh),
    UNARY(acosh), UNARY(atanh), UNARY(exp),   UNARY(exp2),  UNARY(expm1),
    UNARY(log),   UNARY(log2),  UNARY(log10), UNARY(log1p), UNARY(cbrt),
    UNARY(erf),   UNARY(erfc),  UNARY(sqrt),  UNARY(floor), UNARY(ceil),
    UNARY(trunc), UNARY(round), BINARY("math.powf", pow),
    BINARY("costate.atan2", atan2), BINARY("costate.hypot", hypot),
    BINARY("arith.remf", fmod)};

std::string kernelText(const Function &function, const std::string &type) {
  std::string array = "!costate.array<" + type + ", 1>";
  std::string operands = function.isBinary ? "%a, %b" : "%a";
  return "costate.kernel @f(%x: " + array + ", %y: " + array + ", %z: " +
         array + ") {\n  %n = costate.extent %x[0] : " + array +
         "\n  costate.range (%i) in (%n) {\n    %a = costate.load %x[%i] : " +
         array + "\n    %b = costate.load %y[%i] : " + array + "\n    %c = " +
         function.operation + " " + operands + " : " + type +
         "\n    costate.store %c, %z[%i] : " + array + "\n  }\n}\n";
}

template <class T> std::vector<T> samples(unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {
      0,    T(-0.0), 1,      -1,     2,      -2,     T(0.5), T(-0.5), T(1.5),
      T(-1.5), T(2.5), T(0.49999999999999994), 3,    10,     T(1e-10), T(1e5),
      T(-1e5), T(1e10), T(1e22), T(88.7), T(-103), T(709.5), T(710.4), T(-710.4), T(-745), T(1023.5),
      Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
      Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(),
      -Limits::denorm_min(), Limits::min() / 4};
  std::mt19937_64 random(seed);
  std::normal_distribution<double> near(0, 3);
  std::uniform_real_distribution<double> exponent(-12, 12);
  while (values.size() < 2000) {
    values.push_back(T(near(random)));
    values.push_back(T(std::exp(exponent(random))));
    auto bits = static_cast<std::conditional_t<sizeof(T) == 8, uint64_t,
                                               uint32_t>>(random());
    values.push_back(std::bit_cast<T>(bits));
  }
  return values;
}

template <class T> class Compiled {
public:
  explicit Compiled(const Function &function) {
    std::string type = sizeof(T) == 8 ? "f64" : "f32";
    auto program = Program::parse(kernelText(function, type), "maths.mlir", "",
                                  Options());
    EXPECT_TRUE(program) << program.error().text;
    auto compiled = (*program)->compile(Mode::Primal, {});
    EXPECT_TRUE(compiled) << compiled.error().text;
    code = std::move(*compiled);
    device = *runtime::openCpu(1, 0);
  }

  void run(const T *x, const T *y, T *z, uint64_t n) {
    auto slot = [](const T *p) { return reinterpret_cast<uint64_t>(p); };
    uint64_t slots[] = {slot(x), n, slot(y), n, slot(z), n};
    ASSERT_TRUE(device->launch({&code, slots, {}, false}));
    ASSERT_TRUE(device->synchronize());
  }

private:
  runtime::KernelCode code;
  std::shared_ptr<runtime::Device> device;
};

template <class T> bool sameBits(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Distance in units of the last place of the reference.
template <class T> double error(T value, long double exact) {
  T rounded = static_cast<T>(exact);
  if (std::isnan(rounded) || std::isnan(value))
    return std::isnan(rounded) == std::isnan(value) ? 0 : HUGE_VAL;
  if (sameBits(value, rounded))
    return 0;
  // Rounding to infinity or to the largest number is a matter of one unit.
  if (std::isinf(rounded) || std::isinf(value))
    return std::fabs(static_cast<T>(std::isinf(value) ? rounded : value)) >=
                   std::numeric_limits<T>::max() * T(0.9999999)
               ? 1
               : HUGE_VAL;
  if (value == 0 && rounded == 0)
    return HUGE_VAL; // the other zero
  T next = std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity());
  T unit = next - std::fabs(rounded);
  return std::fabs(static_cast<double>((value - exact) / unit));
}

template <class T> void check(const Function &function) {
  std::vector<T> x = samples<T>(1), y = samples<T>(2);
  std::shuffle(y.begin(), y.end(), std::mt19937(3));
  std::vector<T> wide(x.size()), narrow(x.size());
  Compiled<T> compiled(function);
  compiled.run(x.data(), y.data(), wide.data(), x.size());
  for (size_t k = 0; k < x.size(); ++k) // alone: the scalar tail
    compiled.run(&x[k], &y[k], &narrow[k], 1);
  for (size_t k = 0; k < x.size(); ++k) {
    EXPECT_TRUE(sameBits(wide[k], narrow[k]))
        << function.operation << '(' << x[k] << ", " << y[k] << ") is "
        << wide[k] << " in a vector and " << narrow[k] << " alone";
    long double exact = function.reference(x[k], y[k]);
    EXPECT_LE(error(wide[k], exact), 4)
        << function.operation << '(' << x[k] << ", " << y[k] << ") is "
        << wide[k] << ", not " << exact;
  }
}

class Maths : public testing::TestWithParam<Function> {};

TEST_P(Maths, AgreesWithLibmAndBetweenWidthsInF64) { check<double>(GetParam()); }
TEST_P(Maths, AgreesWithLibmAndBetweenWidthsInF32) { check<float>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, Maths, testing::ValuesIn(functions),
                         [](const auto &info) {
                           std::string name = info.param.operation;
                           return name.substr(name.find('.') + 1);
                         });

} // namespace
} // namespace costate::compiler
