// Quotients of 64-bit integers by those of 32 bits and by subtraction, for
// devices whose own ones are wrong; see CMakeLists.txt.

#define PURE __attribute__((const, noinline))

typedef unsigned long Natural;

PURE Natural costate_device_div_u64(Natural x, Natural y) {
  if ((x | y) >> 32 == 0)
    return (unsigned)x / (unsigned)y;
  if (y > x || y == 0)
    return 0;
  int shift = __builtin_clzl(y) - __builtin_clzl(x);
  Natural quotient = 0;
#pragma clang loop unroll(disable)
  for (Natural part = y << shift; shift >= 0; --shift, part >>= 1) {
    quotient <<= 1;
    if (x >= part) {
      x -= part;
      quotient |= 1;
    }
  }
  return quotient;
}

static Natural magnitude(long x) {
  return x < 0 ? -(Natural)x : (Natural)x;
}

PURE long costate_device_div_i64(long x, long y) {
  Natural quotient = costate_device_div_u64(magnitude(x), magnitude(y));
  return (long)((x < 0) != (y < 0) ? -quotient : quotient);
}
