// Where libclc 22 is wrong, for GPUs. At build time its own functions
// get the prefix `libclc`, and these take their names: see CMakeLists.txt.

#define PURE __attribute__((const))

double libclc_Z3sind(double) PURE;
double libclc_Z3tand(double) PURE;
double libclc_Z4asind(double) PURE;
double libclc_Z4atand(double) PURE;
double libclc_Z5expm1d(double) PURE;
double libclc_Z3erfd(double) PURE;
double libclc_Z3powdd(double, double) PURE;
float libclc_Z4erfcf(float) PURE;
float libclc_Z4fmodff(float, float) PURE;
double _Z4log2d(double) PURE;
double _Z4erfcd(double) PURE;
double libclc_Z4fmoddd(double, double) PURE;
double _Z4fmoddd(double, double) PURE;

// Zero loses its sign.
#define KEEP_ZERO(name)                                                        \
  double name(double x) { return x == 0 ? x : libclc##name(x); }

KEEP_ZERO(_Z3sind)
KEEP_ZERO(_Z3tand)
KEEP_ZERO(_Z4asind)
KEEP_ZERO(_Z4atand)
KEEP_ZERO(_Z5expm1d)
KEEP_ZERO(_Z3erfd)

// Denormal results become 0.
float _Z4erfcf(float x) {
  return x > 9.0f ? (float)_Z4erfcd(x) : libclc_Z4erfcf(x);
}

// Products overflow on the way, where a device has no fma.
double _Z4fmoddd(double x, double y) {
  _Bool isLarge = __builtin_fabs(x) >= 0x1p1023;
  double rest = libclc_Z4fmoddd(isLarge ? 0.5 * x : x, y);
  if (!isLarge)
    return rest;
  double size = __builtin_fabs(y), twice = 2 * __builtin_fabs(rest);
  return __builtin_copysign(twice >= size ? twice - size : twice, x);
}

// Denormals count as 0.
float _Z4fmodff(float x, float y) {
  if (__builtin_fabsf(x) < __builtin_fabsf(y))
    return x;
  if (__builtin_fabsf(y) < 0x1p-100f)
    return (float)_Z4fmoddd(x, y);
  return libclc_Z4fmodff(x, y);
}

// Large exponents overflow to anything, in either direction.
static double powerOfTwo(double x, double y) {
  return __builtin_fabs(y) < 0x1p20 ? 0 : y * _Z4log2d(__builtin_fabs(x));
}

static _Bool isOdd(double y) { return __builtin_trunc(0.5 * y) != 0.5 * y; }

double _Z3powdd(double x, double y) {
  double power = powerOfTwo(x, y);
  if (!(__builtin_fabs(power) > 1100))
    return libclc_Z3powdd(x, y);
  if (x < 0 && __builtin_trunc(y) != y)
    return __builtin_nan("");
  double size = power > 0 ? __builtin_inf() : 0;
  return x < 0 && isOdd(y) ? -size : size;
}
