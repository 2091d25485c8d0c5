// Products and sums that are rounded once, of operations that round. For
// devices whose own ones round twice; see CMakeLists.txt. S. Boldo, G.
// Melquiond, Emulation of a FMA and correctly rounded sums: proved algorithms
// using rounding to odd, IEEE Transactions on Computers 57(4), 2008.
//
// No branches: each call becomes a part of somebody's code, and there are many.

#define INLINE __attribute__((always_inline))

typedef struct {
  double value, rest;
} Pair;

INLINE static long bitsOf(double value) {
  return __builtin_bit_cast(long, value);
}

INLINE static double ofBits(long bits) {
  return __builtin_bit_cast(double, bits);
}

INLINE static Pair sumOf(double a, double b) {
  double sum = a + b, part = sum - a;
  return (Pair){sum, (a - (sum - part)) + (b - part)};
}

// Rounded to 26 bits, so that the rest has as many.
INLINE static double highOf(double a) {
  return ofBits((bitsOf(a) + (1l << 26)) & -(1l << 27));
}

// T. J. Dekker, A floating-point technique for extending the available
// precision, Numerische Mathematik 18, 1971.
INLINE static Pair productOf(double a, double b) {
  double high = highOf(a), low = a - high;
  double top = highOf(b), bottom = b - top;
  double product = a * b;
  double rest =
      ((high * top - product) + high * bottom + low * top) + low * bottom;
  return (Pair){product, rest};
}

// Rounded to odd. Where the sum is no number, so is what is left over.
INLINE static double oddSumOf(double a, double b) {
  Pair sum = sumOf(a, b);
  long bits = bitsOf(sum.value);
  int isExact = !(sum.rest < 0 || sum.rest > 0);
  long towardsRest = (bits ^ bitsOf(sum.rest)) >> 63 | 1;
  return ofBits(isExact | (bits & 1) ? bits : bits + towardsRest);
}

// Exact as long as nothing of it is below 2^-1022, nor within 2^-26 of what is
// too large: there something on the way is no number, and the plain one serves.
// A zero has the sign of the plain one, too.
double costate_device_fma_f64(double a, double b, double c) {
  Pair product = productOf(a, b);
  Pair low = sumOf(c, product.rest);
  Pair high = sumOf(product.value, low.value);
  double exact = high.value + oddSumOf(low.rest, high.rest);
  unsigned long size = (unsigned long)bitsOf(exact) << 1;
  int isOther = size - 1 >= 0xffdffffffffffffful; // 0, inf or NaN
  return isOther ? product.value + c : exact;
}

INLINE float costate_device_fma_f32(float a, float b, float c) {
  return (float)oddSumOf((double)a * b, c);
}
