#pragma once
/// The functions of the language, where to try them, and how far off a result
/// is: what tests of maths share.

#include "base/HostFunctions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace costate::compiler {

struct Function {
  const char *operation;
  long double (*reference)(long double, long double);
  bool isBinary = false;
  const char *operands = isBinary ? "%a, %b" : "%a"; ///< in kernelText
};

inline const Function functions[] = {
#define COSTATE_INSTRUCTION(Name, name, doc)                                   \
  {"math." #name, [](long double x, long double) { return std::name(x); }},
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  COSTATE_FUNCTION_##operands("costate." #mnemonic, name)
#define COSTATE_FUNCTION_1(op, name)                                           \
  {op, [](long double x, long double) { return host::name(x); }},
#define COSTATE_FUNCTION_2(op, name)                                           \
  {op, [](long double x, long double y) { return host::name(x, y); }, true},
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2
    {"arith.remf", [](long double x, long double y) { return std::fmod(x, y); },
     true},
    {"arith.divf", [](long double x, long double y) { return x / y; }, true},
    {"math.fma", [](long double x, long double y) { return std::fma(x, y, x); },
     true, "%a, %b, %a"}};

/// Kernel IR: `z[i]` is the function of `x[i]`, or of that and `y[i]`.
inline std::string kernelText(const Function &function,
                              const std::string &type) {
  std::string array = "!costate.array<" + type + ", 1>";
  return "costate.kernel @f(%x: " + array + ", %y: " + array +
         ", %z: " + array + ") {\n  %n = costate.extent %x[0] : " + array +
         "\n  costate.range (%i) in (%n) {\n    %a = costate.load %x[%i] : " +
         array + "\n    %b = costate.load %y[%i] : " + array +
         "\n    %c = " + function.operation + " " + function.operands + " : " +
         type + "\n    costate.store %c, %z[%i] : " + array + "\n  }\n}\n";
}

/// Edges first; of the rest a third is around 0, a third of any size between
/// 1e-5 and 1e5, and a third has random bits.
template <class T> std::vector<T> samples(unsigned seed, size_t count = 2000) {
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
  while (values.size() < count) {
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
