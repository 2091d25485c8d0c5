#pragma once
/// Additions of floats whose order is open.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace costate::interpreter {

/// Sums rounded to nearest, or stochastically: to one of the two numbers around
/// the exact sum, each the likelier the closer it is. Runs with several seeds
/// then differ from each other, and from one that rounds to nearest, about as
/// much as orders of the additions do, also where all addends are the same.
class Roundings {
public:
  /// 0: to nearest.
  explicit Roundings(uint64_t seed) : state(seed), isStochastic(seed != 0) {}

  /// `a` plus `b`, which rounded to nearest are `nearest`.
  template <class T> T sum(T a, T b, T nearest) {
    if (!isStochastic || !std::isfinite(double(nearest)))
      return nearest;
    double error = errorOf(a, b, nearest);
    if (error == 0)
      return nearest;
    T other = neighbour(nearest, error > 0);
    bool isOther = chance() < error / (double(other) - double(nearest));
    return isOther ? other : nearest;
  }

private:
  /// `a` plus `b` minus `nearest` (Knuth's TwoSum).
  static double errorOf(double a, double b, double nearest) {
    double sum = a + b, part = sum - a;
    double lost = (a - (sum - part)) + (b - part);
    return (sum - nearest) + lost;
  }

  /// Of a number that is not 0, as a sum of 0 is exact.
  template <class T> static T neighbour(T value, bool above) {
    using Bits = std::conditional_t<
        sizeof(T) == 8, uint64_t,
        std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    Bits bits = std::bit_cast<Bits>(value);
    bits += static_cast<Bits>((value > 0) == above ? 1 : -1);
    return std::bit_cast<T>(bits);
  }

  /// From 0 to 1, by SplitMix64.
  double chance() {
    uint64_t bits = state += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return double((bits ^ (bits >> 31)) >> 11) * 0x1p-53;
  }

  uint64_t state;
  bool isStochastic;
};

} // namespace costate::interpreter
