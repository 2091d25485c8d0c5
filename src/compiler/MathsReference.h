#pragma once
/// The functions of the language, where to try them, and how far off a result
/// is: what tests of maths share.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace costate::compiler {

struct Function {
  const char *operation;
  long double (*reference)(long double, long double);
  bool isBinary = false;
};

#define UNARY(name)                                                            \
  {"math." #name, [](long double x, long double) { return std::name(x); }}
#define BINARY(op, name)                                                       \
  {op, [](long double x, long double y) { return std::name(x, y); }, true}

// clang-format off
inline const Function functions[] = {
    UNARY(sin),   UNARY(cos),   UNARY(tan),   UNARY(asin),  UNARY(acos),
    UNARY(atan),  UNARY(sinh),  UNARY(cosh),  UNARY(tanh),  UNARY(asinh),
    UNARY(acosh), UNARY(atanh), UNARY(exp),   UNARY(exp2),  UNARY(expm1),
    UNARY(log),   UNARY(log2),  UNARY(log10), UNARY(log1p), UNARY(cbrt),
    UNARY(erf),   UNARY(erfc),  UNARY(sqrt),  UNARY(floor), UNARY(ceil),
    UNARY(trunc), UNARY(round), BINARY("math.powf", pow),
    BINARY("costate.atan2", atan2), BINARY("costate.hypot", hypot),
    BINARY("arith.remf", fmod)};
// clang-format on

#undef UNARY
#undef BINARY

template <class T> std::vector<T> samples(unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           T(-0.0),
                           1,
                           -1,
                           2,
                           -2,
                           T(0.5),
                           T(-0.5),
                           T(1.5),
                           T(-1.5),
                           T(2.5),
                           T(0.49999999999999994),
                           3,
                           10,
                           T(1e-10),
                           T(1e5),
                           T(-1e5),
                           T(1e10),
                           T(1e22),
                           T(88.7),
                           T(-103),
                           T(709.5),
                           T(710.4),
                           T(-710.4),
                           T(-745),
                           T(1023.5),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::max(),
                           Limits::lowest(),
                           Limits::min(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::min() / 4};
  std::mt19937_64 random(seed);
  std::normal_distribution<double> near(0, 3);
  std::uniform_real_distribution<double> exponent(-12, 12);
  while (values.size() < 2000) {
    values.push_back(T(near(random)));
    values.push_back(T(std::exp(exponent(random))));
    auto bits =
        static_cast<std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>(
            random());
    values.push_back(std::bit_cast<T>(bits));
  }
  return values;
}

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
  T next =
      std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity());
  T unit = next - std::fabs(rounded);
  return std::fabs(static_cast<double>((value - exact) / unit));
}

} // namespace costate::compiler
