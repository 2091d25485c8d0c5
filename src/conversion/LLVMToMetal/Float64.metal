// Floats of 64 bits, of integers: GPUs of Apple have none. Each function rounds
// once, to nearest even, and knows denormals, infinities and NaN. Numbers are
// their bits.

constant ulong costate_f64_sign = 0x8000000000000000ul;
constant ulong costate_f64_infinity = 0x7ff0000000000000ul;
constant ulong costate_f64_nan = 0x7ff8000000000000ul;
constant ulong costate_f64_fraction = 0x000ffffffffffffful;
constant ulong costate_f64_implicit = 0x0010000000000000ul;

static inline ulong costate_f64_abs(ulong x) { return x & ~costate_f64_sign; }
static inline ulong costate_f64_neg(ulong x) { return x ^ costate_f64_sign; }
static inline bool costate_f64_is_nan(ulong x) {
  return costate_f64_abs(x) > costate_f64_infinity;
}
static inline ulong costate_f64_quiet(ulong x) {
  return x | 0x0008000000000000ul;
}

// Whatever is shifted out leaves a last bit that is set.
static inline ulong costate_f64_shift(ulong x, int by) {
  if (by <= 0)
    return x;
  if (by > 63)
    return x != 0;
  return x >> by | ulong((x << (64 - by)) != 0);
}

// A number with a sign: a significand whose first bit is bit 62, ten bits of it
// to round, and an exponent, which is one less than that of the result.
static inline ulong costate_f64_round(ulong sign, int exponent, ulong x) {
  if (exponent < 0) {
    x = costate_f64_shift(x, -exponent);
    exponent = 0;
  } else if (exponent > 0x7fd ||
             (exponent == 0x7fd && x + 0x200 >= costate_f64_sign)) {
    return sign | costate_f64_infinity;
  }
  ulong below = x & 0x3ff;
  x = (x + 0x200) >> 10;
  if (below == 0x200)
    x &= ~1ul;
  return sign | ((x ? ulong(exponent) << 52 : 0) + x);
}

// The same of any significand but 0; its first bit may be anywhere.
static inline ulong costate_f64_normal(ulong sign, int exponent, ulong x) {
  int shift = int(clz(x)) - 1;
  if (shift < 0)
    return costate_f64_round(sign, exponent + 1, costate_f64_shift(x, 1));
  return costate_f64_round(sign, exponent - shift, x << shift);
}

struct costate_f64_parts {
  ulong significand; // with its first bit at bit 52
  int exponent;
};

// Of a number that is finite and not 0.
static inline costate_f64_parts costate_f64_split(ulong x) {
  costate_f64_parts parts;
  parts.significand = x & costate_f64_fraction;
  parts.exponent = int(x >> 52 & 0x7ff);
  if (parts.exponent) {
    parts.significand |= costate_f64_implicit;
  } else {
    int shift = int(clz(parts.significand)) - 11;
    parts.significand <<= shift;
    parts.exponent = 1 - shift;
  }
  return parts;
}

static inline ulong costate_f64_add(ulong a, ulong b) {
  if (costate_f64_is_nan(a))
    return costate_f64_quiet(a);
  if (costate_f64_is_nan(b))
    return costate_f64_quiet(b);
  if (costate_f64_abs(a) < costate_f64_abs(b)) {
    ulong other = a;
    a = b;
    b = other;
  }
  ulong sign = a & costate_f64_sign;
  bool subtracts = (a ^ b) >> 63 != 0;
  if (costate_f64_abs(a) == costate_f64_infinity)
    return subtracts && costate_f64_abs(b) == costate_f64_infinity
               ? costate_f64_nan
               : a;
  int exponent = int(a >> 52 & 0x7ff), other = int(b >> 52 & 0x7ff);
  ulong x = a & costate_f64_fraction, y = b & costate_f64_fraction;
  x = (exponent ? x | costate_f64_implicit : x) << 9;
  y = (other ? y | costate_f64_implicit : y) << 9;
  exponent = exponent ? exponent : 1;
  other = other ? other : 1;
  y = costate_f64_shift(y, exponent - other);
  ulong sum = subtracts ? x - y : x + y;
  if (sum == 0)
    return subtracts ? 0 : sign;
  return costate_f64_normal(sign, exponent, sum);
}

static inline ulong costate_f64_sub(ulong a, ulong b) {
  return costate_f64_add(a, costate_f64_is_nan(b) ? b : costate_f64_neg(b));
}

// The upper half of a product; its last bit is set if there is a lower half.
static inline ulong costate_f64_product(ulong a, ulong b) {
  ulong low = (a & 0xffffffff) * (b & 0xffffffff);
  ulong one = (a >> 32) * (b & 0xffffffff), other = (a & 0xffffffff) * (b >> 32);
  ulong middle = (low >> 32) + (one & 0xffffffff) + (other & 0xffffffff);
  ulong high = (a >> 32) * (b >> 32) + (one >> 32) + (other >> 32) +
               (middle >> 32);
  return high | ulong((middle << 32 | (low & 0xffffffff)) != 0);
}

static inline ulong costate_f64_mul(ulong a, ulong b) {
  if (costate_f64_is_nan(a))
    return costate_f64_quiet(a);
  if (costate_f64_is_nan(b))
    return costate_f64_quiet(b);
  ulong sign = (a ^ b) & costate_f64_sign;
  a = costate_f64_abs(a);
  b = costate_f64_abs(b);
  if (a == costate_f64_infinity || b == costate_f64_infinity)
    return a == 0 || b == 0 ? costate_f64_nan : sign | costate_f64_infinity;
  if (a == 0 || b == 0)
    return sign;
  costate_f64_parts x = costate_f64_split(a), y = costate_f64_split(b);
  return costate_f64_normal(
      sign, x.exponent + y.exponent - 0x3ff,
      costate_f64_product(x.significand << 10, y.significand << 11));
}

static inline ulong costate_f64_div(ulong a, ulong b) {
  if (costate_f64_is_nan(a))
    return costate_f64_quiet(a);
  if (costate_f64_is_nan(b))
    return costate_f64_quiet(b);
  ulong sign = (a ^ b) & costate_f64_sign;
  a = costate_f64_abs(a);
  b = costate_f64_abs(b);
  if (a == costate_f64_infinity)
    return b == costate_f64_infinity ? costate_f64_nan
                                     : sign | costate_f64_infinity;
  if (b == costate_f64_infinity)
    return sign;
  if (b == 0)
    return a == 0 ? costate_f64_nan : sign | costate_f64_infinity;
  if (a == 0)
    return sign;
  costate_f64_parts x = costate_f64_split(a), y = costate_f64_split(b);
  int exponent = x.exponent - y.exponent + 0x3fe;
  if (x.significand < y.significand) {
    --exponent;
    x.significand <<= 1;
  }
  ulong quotient = 1, rest = x.significand - y.significand;
  for (int bit = 0; bit < 62; ++bit) {
    rest <<= 1;
    quotient <<= 1;
    if (rest >= y.significand) {
      rest -= y.significand;
      quotient |= 1;
    }
  }
  return costate_f64_round(sign, exponent, quotient | ulong(rest != 0));
}

static inline ulong costate_f64_sqrt(ulong a) {
  if (costate_f64_is_nan(a))
    return costate_f64_quiet(a);
  if (costate_f64_abs(a) == 0 || a == costate_f64_infinity)
    return a;
  if (a & costate_f64_sign)
    return costate_f64_nan;
  costate_f64_parts x = costate_f64_split(a);
  int exponent = x.exponent - 0x3ff;
  // Two bits of the number for each one of the root: 55 of them.
  ulong left = x.significand << (exponent & 1 ? 11 : 10), root = 0, rest = 0;
  for (int bit = 0; bit < 55; ++bit) {
    rest = rest << 2 | left >> 62;
    left <<= 2;
    root <<= 1;
    if (rest > root << 1) {
      rest -= (root << 1) + 1;
      root |= 1;
    }
  }
  return costate_f64_normal(0, (exponent >> 1) + 0x3fe + 7,
                            root << 1 | ulong(rest != 0));
}

// Bits: less, equal, greater, not ordered.
static inline uint costate_f64_compare(ulong a, ulong b) {
  if (costate_f64_is_nan(a) || costate_f64_is_nan(b))
    return 8;
  if (costate_f64_abs(a) == 0 && costate_f64_abs(b) == 0)
    return 2;
  // In the order of integers.
  ulong x = a >> 63 ? ~a : a | costate_f64_sign;
  ulong y = b >> 63 ? ~b : b | costate_f64_sign;
  return x < y ? 1 : x == y ? 2 : 4;
}

static inline ulong costate_f64_from_ulong(ulong x) {
  return x ? costate_f64_normal(0, 0x43c, x) : 0;
}
static inline ulong costate_f64_from_long(long x) {
  if (x >= 0)
    return costate_f64_from_ulong(ulong(x));
  return costate_f64_normal(costate_f64_sign, 0x43c, 0ul - ulong(x));
}

// Towards zero; numbers that do not fit become some number.
static inline ulong costate_f64_to_ulong(ulong x) {
  int exponent = int(x >> 52 & 0x7ff) - 0x3ff;
  ulong size = (x & costate_f64_fraction) | costate_f64_implicit;
  if (exponent < 0)
    return 0;
  size = exponent > 63    ? costate_f64_sign
         : exponent >= 52 ? size << (exponent - 52)
                          : size >> (52 - exponent);
  return x >> 63 ? 0ul - size : size;
}
static inline ulong costate_f64_to_long(ulong x) {
  return costate_f64_to_ulong(x);
}

static inline ulong costate_f64_from_float(float value) {
  uint x = as_type<uint>(value);
  ulong sign = ulong(x >> 31) << 63;
  uint exponent = x >> 23 & 0xff, fraction = x & 0x7fffff;
  if (exponent == 0xff)
    return sign | costate_f64_infinity | ulong(fraction) << 29 |
           (fraction ? 0x0008000000000000ul : 0);
  if (exponent)
    return sign | ulong(exponent + 0x380) << 52 | ulong(fraction) << 29;
  return fraction ? costate_f64_normal(sign, 0x3a7, fraction) : sign;
}

// To a float; if it is not exact, `odd`: the last bit is set, else to nearest.
static inline float costate_f64_narrow(ulong x, bool odd) {
  uint sign = uint(x >> 63) << 31;
  int exponent = int(x >> 52 & 0x7ff);
  ulong fraction = x & costate_f64_fraction;
  if (exponent == 0x7ff)
    return as_type<float>(sign | 0x7f800000u |
                          (fraction ? 0x400000u | uint(fraction >> 29) : 0u));
  if (exponent == 0)
    return as_type<float>(sign | (odd && fraction ? 1u : 0u));
  // The first bit at bit 30.
  uint y = uint(costate_f64_shift(fraction | costate_f64_implicit, 22));
  exponent -= 0x381;
  if (exponent < 0) {
    y = uint(costate_f64_shift(y, -exponent));
    exponent = 0;
  } else if (exponent > 0xfd ||
             (exponent == 0xfd && !odd && y + 0x40 >= 0x80000000u)) {
    return as_type<float>(sign | (odd ? 0x7f7fffffu : 0x7f800000u));
  }
  uint below = y & 0x7f;
  if (odd) {
    y = y >> 7 | uint(below != 0);
  } else {
    y = (y + 0x40) >> 7;
    if (below == 0x40)
      y &= ~1u;
  }
  return as_type<float>(sign + ((y ? uint(exponent) << 23 : 0u) + y));
}

static inline float costate_f64_to_float(ulong x) {
  return costate_f64_narrow(x, false);
}
static inline half costate_f64_to_half(ulong x) {
  return half(costate_f64_narrow(x, true));
}

// Whole numbers. Up to 52 bits are behind the point.
static inline ulong costate_f64_truncate(ulong x) {
  int exponent = int(x >> 52 & 0x7ff) - 0x3ff;
  if (exponent >= 52)
    return costate_f64_is_nan(x) ? costate_f64_quiet(x) : x;
  if (exponent < 0)
    return x & costate_f64_sign;
  return x & ~(costate_f64_fraction >> exponent);
}
constant ulong costate_f64_one = 0x3ff0000000000000ul;
static inline ulong costate_f64_floor(ulong x) {
  ulong whole = costate_f64_truncate(x);
  bool isAbove = x >> 63 && costate_f64_compare(whole, x) == 4;
  return isAbove ? costate_f64_sub(whole, costate_f64_one) : whole;
}
static inline ulong costate_f64_ceil(ulong x) {
  return costate_f64_neg(costate_f64_floor(costate_f64_neg(x)));
}
static inline ulong costate_f64_rint(ulong x) {
  const ulong even = 0x4330000000000000ul; // 2^52
  ulong size = costate_f64_abs(x);
  if (size >= even)
    return costate_f64_is_nan(x) ? costate_f64_quiet(x) : x;
  ulong whole = costate_f64_sub(costate_f64_add(size, even), even);
  return whole | (x & costate_f64_sign);
}
