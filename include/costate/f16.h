#pragma once
/// Half precision on the host.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace costate {

/// A number of 16 bits: IEEE 754 binary16, with 11 binary digits, up to 65504,
/// and steps of 2^-24 below 2^-14. Converts from any number of C++, rounded
/// once to the nearest one (of two the even one), and to float. Arithmetic on
/// the host is that of float.
struct f16 {
  uint16_t bits = 0;

  constexpr f16() = default;
  template <class A>
    requires std::is_arithmetic_v<A>
  constexpr f16(A value) : bits(rounded(static_cast<double>(value))) {}

  static constexpr f16 from_bits(uint16_t bits) {
    f16 value;
    value.bits = bits;
    return value;
  }

  constexpr operator float() const {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31;
    uint32_t fraction = bits & 0x3ff;
    if (exponent == 31) // inf, NaN
      return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
      float value = static_cast<float>(fraction) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  }

private:
  /// Of a long double this rounds twice, of all others once.
  static constexpr uint16_t rounded(double value) {
    uint64_t all = std::bit_cast<uint64_t>(value);
    uint16_t sign = static_cast<uint16_t>(all >> 48 & 0x8000);
    int exponent = static_cast<int>(all >> 52 & 0x7ff) - 1023;
    uint64_t digits = (all & 0xfffffffffffff) | uint64_t(1) << 52;
    if (exponent == 1024 && digits << 12) // NaN keeps its first digits
      return static_cast<uint16_t>(sign | 0x7e00 | (digits >> 42 & 0x3ff));
    if (exponent > 15)
      return static_cast<uint16_t>(sign | 0x7c00);
    if (exponent < -25)
      return sign;
    int dropped = exponent < -14 ? 28 - exponent : 42;
    uint64_t kept = digits >> dropped, half = uint64_t(1) << (dropped - 1);
    uint64_t rest = digits & (2 * half - 1);
    kept += rest > half || (rest == half && (kept & 1));
    // A carry goes into the exponent, and from there to inf.
    uint64_t bias = exponent < -14 ? 0 : static_cast<uint64_t>(exponent + 14);
    return static_cast<uint16_t>(sign | (kept + (bias << 10)));
  }
};

} // namespace costate

template <> class std::numeric_limits<costate::f16> {
  using f16 = costate::f16;
  static constexpr f16 of(uint16_t bits) { return f16::from_bits(bits); }

public:
  static constexpr bool is_specialized = true, is_signed = true;
  static constexpr bool is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true, is_iec559 = true;
  static constexpr bool is_bounded = true, is_modulo = false;
  static constexpr int radix = 2, digits = 11, digits10 = 3, max_digits10 = 5;
  static constexpr int min_exponent = -13, max_exponent = 16;
  static constexpr int min_exponent10 = -4, max_exponent10 = 4;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr f16 min() noexcept { return of(0x0400); }
  static constexpr f16 max() noexcept { return of(0x7bff); }
  static constexpr f16 lowest() noexcept { return of(0xfbff); }
  static constexpr f16 epsilon() noexcept { return of(0x1400); }
  static constexpr f16 round_error() noexcept { return of(0x3800); }
  static constexpr f16 denorm_min() noexcept { return of(0x0001); }
  static constexpr f16 infinity() noexcept { return of(0x7c00); }
  static constexpr f16 quiet_NaN() noexcept { return of(0x7e00); }
  static constexpr f16 signaling_NaN() noexcept { return of(0x7d00); }
};
