#pragma once
/// How the results of a range are made of what its iterations give: words of 8
/// bytes. In C, also for device code.

// NOLINTBEGIN

enum CostateSums {
  costateFloatSums,     ///< of f64
  costateIntegerSums,   ///< of i64, modulo 2^64
  costateIntegerMinima, ///< of i64
};

/// The result of no iterations.
static inline __attribute__((always_inline)) double costateNoSum(long kind) {
  long greatest = 0x7fffffffffffffffl;
  return kind == costateIntegerMinima ? __builtin_bit_cast(double, greatest)
                                      : 0.0;
}

static inline __attribute__((always_inline)) double
costateAddUp(long kind, double a, double b) {
  if (kind == costateFloatSums)
    return a + b;
  long x = __builtin_bit_cast(long, a), y = __builtin_bit_cast(long, b);
  long least = x < y ? x : y;
  unsigned long sum = (unsigned long)x + (unsigned long)y;
  return kind == costateIntegerMinima ? __builtin_bit_cast(double, least)
                                      : __builtin_bit_cast(double, sum);
}

// NOLINTEND
