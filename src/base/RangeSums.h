#pragma once
/// How the results of a range are made of what its work items give: words of 8
/// bytes. In C, also for device code.

// NOLINTBEGIN

enum CostateSums {
  costateFloatSums,     ///< of f64
  costateIntegerSums,   ///< of i64, modulo 2^64
  costateIntegerMinima, ///< of i64
  costateLeastPair,     ///< two i64: the least key, and its least place
};

/// So many parts of a sum a warp adds up, and may wait for.
enum { costateFewParts = 256 };

/// The result of no work items.
static inline __attribute__((always_inline)) double costateNoSum(long kind) {
  long greatest = 0x7fffffffffffffffl;
  return kind >= costateIntegerMinima ? __builtin_bit_cast(double, greatest)
                                      : 0.0;
}

/// But for pairs.
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

/// Whether pair `a` comes before pair `b`.
static inline __attribute__((always_inline)) int
costateIsLess(const double *a, const double *b) {
  long key = __builtin_bit_cast(long, a[0]);
  long other = __builtin_bit_cast(long, b[0]);
  long place = __builtin_bit_cast(long, a[1]);
  return key < other ||
         (key == other && place < __builtin_bit_cast(long, b[1]));
}

/// `count` words more, which are one pair or so many sums.
static inline __attribute__((always_inline)) void
costateAddAll(long kind, long count, double *sums, const double *terms) {
  if (kind == costateLeastPair) {
    int isLess = costateIsLess(terms, sums);
    for (long k = 0; k < 2; ++k)
      sums[k] = isLess ? terms[k] : sums[k];
    return;
  }
  for (long k = 0; k < count; ++k)
    sums[k] = costateAddUp(kind, sums[k], terms[k]);
}

// NOLINTEND
