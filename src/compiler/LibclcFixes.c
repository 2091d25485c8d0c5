// Where libclc 22 is wrong, or slow, for GPUs. At build time its own functions
// get the prefix `libclc`, and these take their names: see CMakeLists.txt.

#define PURE __attribute__((const))
#define INLINE __attribute__((always_inline))

double libclc_Z3sind(double) PURE;
double libclc_Z3tand(double) PURE;
double libclc_Z4asind(double) PURE;
double libclc_Z4atand(double) PURE;
double libclc_Z5expm1d(double) PURE;
double libclc_Z3erfd(double) PURE;
double libclc_Z3powdd(double, double) PURE;
float libclc_Z3sinf(float) PURE;
float libclc_Z3cosf(float) PURE;
float libclc_Z3expf(float) PURE;
float libclc_Z4exp2f(float) PURE;
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

// Denormal results become 0. Half the exponent is exact, and so is the
// square's.
float _Z3expf(float x) {
  _Bool isSmall = x < -86.0f;
  float y = libclc_Z3expf(isSmall ? 0.5f * x : x);
  return isSmall ? y * y : y;
}

float _Z4exp2f(float x) {
  _Bool isSmall = x < -125.0f;
  float y = libclc_Z4exp2f(isSmall ? 0.5f * x : x);
  return isSmall ? y * y : y;
}

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

// Sines: libclc takes three times as many instructions, which bring numbers up
// to 2^23 into [-pi/4, pi/4], and is off by 2 ulp. W. J. Cody and W. Waite,
// Software Manual for the Elementary Functions (1980), chapter 8: pi/2 in three
// parts, of which the first has bits to spare. The minimax polynomials are off
// by 2^-32. All numbers up to 2^16 were tried: less than 1.49 ulp.
static const float farthest = 0x1p16f;

typedef struct {
  float rest; // of quadrants * pi/2
  int quadrants;
} Reduced;

INLINE static Reduced reduce(float x) {
  const float toInteger = 0x1.8p23f;
  float shifted = __builtin_elementwise_fma(x, 0x1.45f306p-1f, toInteger);
  float quadrants = shifted - toInteger;
  float rest = __builtin_elementwise_fma(quadrants, -0x1.921fbp0f, x);
  rest = __builtin_elementwise_fma(quadrants, -0x1.5110b4p-22f, rest);
  rest = __builtin_elementwise_fma(quadrants, -0x1.846988p-48f, rest);
  return (Reduced){rest, __builtin_bit_cast(int, shifted)};
}

INLINE static float nearSine(float x) {
  float square = x * x;
  float y = 0x1.7cd428p-19f;
  y = __builtin_elementwise_fma(y, square, -0x1.a05bb2p-13f);
  y = __builtin_elementwise_fma(y, square, 0x1.111176p-7f);
  y = __builtin_elementwise_fma(y, square, -0x1.555556p-3f);
  return __builtin_elementwise_fma(
      y, __builtin_elementwise_fma(x, square, 0.0f), x); // -0 stays
}

INLINE static float nearCosine(float x) {
  float square = x * x;
  float y = 0x1.99e80cp-16f;
  y = __builtin_elementwise_fma(y, square, -0x1.6c0c28p-10f);
  y = __builtin_elementwise_fma(y, square, 0x1.55554ap-5f);
  y = __builtin_elementwise_fma(y, square, -0.5f);
  return __builtin_elementwise_fma(y, square, 1.0f);
}

INLINE static float sineOf(Reduced x) {
  float sine = nearSine(x.rest), cosine = nearCosine(x.rest); // no branch
  float size = x.quadrants & 1 ? cosine : sine;
  unsigned sign = (unsigned)(x.quadrants & 2) << 30;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, size) ^ sign);
}

INLINE float costate_device_near_sin(float x) { return sineOf(reduce(x)); }

INLINE float costate_device_near_cos(float x) {
  Reduced reduced = reduce(x);
  ++reduced.quadrants;
  return sineOf(reduced);
}

float _Z3sinf(float x) {
  float y = costate_device_near_sin(x);
  return __builtin_fabsf(x) <= farthest ? y : libclc_Z3sinf(x);
}

float _Z3cosf(float x) {
  float y = costate_device_near_cos(x);
  return __builtin_fabsf(x) <= farthest ? y : libclc_Z3cosf(x);
}
