#include <cmath>
#include <gtest/gtest.h>

extern "C" {
#include "device/DeviceMaths.c"

float libclc_Z3sinf(float x) { return std::sin(x); }
float libclc_Z3cosf(float x) { return std::cos(x); }
}

namespace costate::compiler {
namespace {

struct Function {
  const char *name;
  float (*device)(float);
  double (*reference)(double);
  double mostError; ///< in units of the last place
};

const Function functions[] = {
    {"sin", _Z3sinf, std::sin, 1.5},       {"cos", _Z3cosf, std::cos, 1.5},
    {"exp", _Z3expf, std::exp, 1.02},      {"exp2", _Z4exp2f, std::exp2, 0.9},
    {"log", _Z3logf, std::log, 0.93},      {"log2", _Z4log2f, std::log2, 1.18},
    {"log10", _Z5log10f, std::log10, 0.95}};

class DeviceMaths : public testing::TestWithParam<Function> {};

double unitOf(double value) {
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// Infinities, NaN and the sign of 0 as well.
bool isRight(float value, double exact, double mostError) {
  auto rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(value))
    return std::isnan(exact) && std::isnan(value);
  if (std::isinf(rounded) || std::isinf(value))
    return value == rounded;
  if (exact == 0)
    return value == 0 && std::signbit(value) == std::signbit(exact);
  return std::abs(value - exact) <= mostError * unitOf(exact);
}

void check(float x) {
  const Function &function = DeviceMaths::GetParam();
  ASSERT_TRUE(isRight(function.device(x), function.reference(double(x)),
                      function.mostError))
      << std::hexfloat << function.name << '(' << x
      << ") = " << function.device(x) << ", not "
      << function.reference(double(x));
}

/// Every 2003rd float: all of them have been compared once.
TEST_P(DeviceMaths, IsAsExactAsItSays) {
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 2003)
    check(ofBits(static_cast<unsigned>(bits)));
}

TEST_P(DeviceMaths, OfSpecialNumbersIsThatOfLibm) {
  for (float x : {0.0f, 1.0f, 1e-45f, 0x1p-126f, 0x1p-127f, 65536.0f, 1e38f,
                  88.72284f, 88.72283f, -103.97208f, -104.1f, 128.0f,
                  127.99999f, -149.0f, -151.0f, INFINITY, NAN})
    for (float sign : {1.0f, -1.0f})
      check(sign * x);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMaths, testing::ValuesIn(functions),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace costate::compiler
