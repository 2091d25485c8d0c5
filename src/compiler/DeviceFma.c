// Products and sums that are rounded once, of operations that round. For
// devices whose own ones round twice; see CMakeLists.txt. S. Boldo, G.
// Melquiond, Emulation of a FMA and correctly rounded sums: proved algorithms
// using rounding to odd, IEEE Transactions on Computers 57(4), 2008.

#define INLINE __attribute__((always_inline))

typedef struct {
  double value, rest;
} Pair;

INLINE static Pair sumOf(double a, double b) {
  double sum = a + b, part = sum - a;
  return (Pair){sum, (a - (sum - part)) + (b - part)};
}

// T. J. Dekker, A floating-point technique for extending the available
// precision, Numerische Mathematik 18, 1971.
INLINE static Pair productOf(double a, double b) {
  double splitter = 134217729.0; // 2^27 + 1
  double x = splitter * a, y = splitter * b;
  double high = x - (x - a), low = a - high;
  double top = y - (y - b), bottom = b - top;
  double product = a * b;
  double rest =
      ((high * top - product) + high * bottom + low * top) + low * bottom;
  return (Pair){product, rest};
}

// Rounded to odd.
INLINE static double oddSumOf(double a, double b) {
  Pair sum = sumOf(a, b);
  long bits = __builtin_bit_cast(long, sum.value);
  if (sum.rest == 0 || bits & 1)
    return sum.value;
  bits += (sum.rest > 0) == (sum.value > 0) ? 1 : -1;
  return __builtin_bit_cast(double, bits);
}

INLINE static double magnitude(double value) {
  return __builtin_bit_cast(double, __builtin_bit_cast(long, value) &
                                        0x7fffffffffffffffl);
}

// Of numbers up to 2^995. Exact as long as nothing of it is below 2^-1022.
INLINE static double smallFma(double a, double b, double c) {
  Pair product = productOf(a, b);
  Pair low = sumOf(c, product.rest);
  Pair high = sumOf(product.value, low.value);
  if (high.value == 0 && high.rest == 0 && low.rest == 0)
    return product.value + c; // the sign of the zero
  return high.value + oddSumOf(low.rest, high.rest);
}

double costate_device_fma_f64(double a, double b, double c) {
  double largest = 0x1p+995;
  _Bool isLarge = !(magnitude(a) < largest && magnitude(b) < largest &&
                    magnitude(a * b) < largest && magnitude(c) < largest);
  _Bool isFirst = magnitude(a) > magnitude(b);
  double down = isLarge ? 0x1p-110 : 1.0, up = isLarge ? 0x1p+110 : 1.0;
  double x = isFirst ? down * a : a, y = isFirst ? b : down * b, z = down * c;
  if (!(magnitude(x * y) < largest && magnitude(z) < largest))
    return a * b + c; // inf or NaN
  return up * smallFma(x, y, z);
}

INLINE float costate_device_fma_f32(float a, float b, float c) {
  double product = (double)a * b;
  double plain = product + c;
  if (!(magnitude(plain) < 0x1p+900))
    return (float)plain;
  Pair sum = sumOf(product, c);
  if (sum.rest == 0)
    return (float)plain;
  return (float)oddSumOf(product, c);
}
