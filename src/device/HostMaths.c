// Functions for CPUs with fused multiply-add, compiled for each number of
// lanes, LANES: of numbers, if that is 1, else of vectors. Every lane has the
// bits that it would have alone. What is rare (arguments that are large,
// results that are denormal) is decided again for each lane, where any lane
// needs it. Largest errors, in units of the last place, are of all floats and
// of samples of doubles.

#if LANES == 1
typedef float Float;
typedef int Int;
typedef unsigned Bits;
typedef double Double;
typedef long Long;
typedef unsigned long LongBits;
#define TO(type, x) ((type)(x))
#define ANY(condition) (condition)
#else
#define VECTOR __attribute__((ext_vector_type(LANES)))
typedef float Float VECTOR;
typedef int Int VECTOR;
typedef unsigned Bits VECTOR;
typedef double Double VECTOR;
typedef long Long VECTOR;
typedef unsigned long LongBits VECTOR;
#define TO(type, x) __builtin_convertvector(x, type)
#define ANY(condition) (__builtin_reduce_or(condition) != 0)
#endif

#include "Polynomials.h"

#define PURE __attribute__((const))
#define RARELY(condition) __builtin_expect(condition, 0)
#define AS(type, x) __builtin_bit_cast(type, x)
#define ABS(x) __builtin_elementwise_abs(x)
#define SQRT(x) __builtin_elementwise_sqrt(x)
#define TRUNC(x) __builtin_elementwise_trunc(x)
#define JOIN2(a, b, c, d) a##b##c##d
#define JOIN(a, b, c, d) JOIN2(a, b, c, d)
// costate_host_sinf16, costate_host_sind8
#define OF_FLOAT(name) JOIN(costate_host_, name, f, LANES)
#define OF_DOUBLE(name) JOIN(costate_host_, name, d, LANES)

//===-- What is rare, by SLEEF --------------------------------------------===//

// A vector of SLEEF's, or several.
#define PIECES(name, Vector, one, count, symbol)                               \
  one symbol(one) PURE;                                                        \
  __attribute__((noinline)) static Vector name(Vector x) {                     \
    Vector y = x;                                                              \
    for (int k = 0; k < LANES / count; ++k) {                                  \
      one part;                                                                \
      __builtin_memcpy(&part, (const char *)&x + k * sizeof part,              \
                       sizeof part);                                           \
      part = symbol(part);                                                     \
      __builtin_memcpy((char *)&y + k * sizeof part, &part, sizeof part);      \
    }                                                                          \
    return y;                                                                  \
  }

typedef float Floats4 __attribute__((ext_vector_type(4)));
typedef float Floats8 __attribute__((ext_vector_type(8)));
typedef double Doubles2 __attribute__((ext_vector_type(2)));
typedef double Doubles4 __attribute__((ext_vector_type(4)));

#ifdef NEON
#define SLEEF_OF_128 advsimd
#else
#define SLEEF_OF_128 avx2128
#endif

#if LANES == 1
#define FAR_FLOAT(name)                                                        \
  PIECES(far_##name##f, Float, float, 1, Sleef_finz_##name##f1_u10purecfma)
#elif LANES == 4 || defined(NEON)
#define FAR_FLOAT(name)                                                        \
  PIECES(far_##name##f, Float, Floats4, 4,                                     \
         JOIN(Sleef_finz_, name, f4_u10, SLEEF_OF_128))
#elif LANES >= 8
#define FAR_FLOAT(name)                                                        \
  PIECES(far_##name##f, Float, Floats8, 8, Sleef_finz_##name##f8_u10avx2)
#endif
#if LANES == 1
#define FAR_DOUBLE(name)                                                       \
  PIECES(far_##name##d, Double, double, 1, Sleef_finz_##name##d1_u10purecfma)
#elif LANES == 2 || defined(NEON)
#define FAR_DOUBLE(name)                                                       \
  PIECES(far_##name##d, Double, Doubles2, 2,                                   \
         JOIN(Sleef_finz_, name, d2_u10, SLEEF_OF_128))
#else
#define FAR_DOUBLE(name)                                                       \
  PIECES(far_##name##d, Double, Doubles4, 4, Sleef_finz_##name##d4_u10avx2)
#endif

// Added to a number below 2^51 it leaves the nearest integer in the last bits.
static const double toLong = 0x1.8p52;

#if LANES != 2
static const float toInteger = 0x1.8p23f; // below 2^22

//===-- Sines of f32 ------------------------------------------------------===//

FAR_FLOAT(sin)
FAR_FLOAT(cos)

static const float farthestFloat = 0x1p16f, nearestFloat = 0.78f;

typedef struct {
  Float rest, less; // their difference is what is left of quadrants * pi / 2
  Bits quadrants;
} Reduced;

// The first difference is exact; -0 stays.
INLINE static Reduced reduce(Float x) {
  Float shifted = FMA(x, (Float)0x1.45f306p-1f, (Float)toInteger);
  Float quadrants = shifted - toInteger;
  Float first = FMA(quadrants, (Float)-0x1.921fb4p0f, x);
  Float part = quadrants * 0x1.4442d2p-24f;
  Float rest = first - part;
  Float less = part - (first - rest);
  less += FMA(quadrants, (Float)0x1.4442d2p-24f, -part);
  less = FMA(quadrants, (Float)-0x1.ee59dap-50f, less);
  Reduced reduced = {rest, less, AS(Bits, shifted)};
  return reduced;
}

// 0 for what changes no bit of a sine or cosine: its powers are denormal, and
// processors take a hundred cycles for such a product.
INLINE static Float orNothing(Float x) {
  return ABS(x) < 0x1p-30f ? (Float)0.0f : x;
}

INLINE static Float nearSine(Float x, Float less) {
  Float part = orNothing(x), square = part * part;
  Float y = sinePolynomial(square);
  return x - FMA(part * square, -y, less);
}

INLINE static Float nearCosine(Float x, Float less) {
  Float part = orNothing(x), square = part * part;
  Float size = FMA(square, (Float)-0.5f, (Float)1.0f);
  Float rest = FMA(square, (Float)-0.5f, 1.0f - size);
  rest = FMA(part, less, rest);
  return size + FMA(square * square, cosinePolynomial(square), rest);
}

INLINE static Float sineOf(Reduced x) {
  Float sine = nearSine(x.rest, x.less), cosine = nearCosine(x.rest, x.less);
  Float size = (x.quadrants & 1) != 0 ? cosine : sine;
  return AS(Float, AS(Bits, size) ^ (x.quadrants & 2) << 30);
}

Float OF_FLOAT(sin)(Float x) {
  Float size = ABS(x);
  if (!ANY(!(size < nearestFloat)))
    return nearSine(x, (Float)0.0f);
  Float y = sineOf(reduce(x));
  if (RARELY(ANY(!(size <= farthestFloat))))
    return size <= farthestFloat ? y : far_sinf(x);
  return y;
}

Float OF_FLOAT(cos)(Float x) {
  Float size = ABS(x);
  if (!ANY(!(size < nearestFloat)))
    return nearCosine(x, (Float)0.0f);
  Reduced reduced = reduce(x);
  reduced.quadrants += 1;
  Float y = sineOf(reduced);
  if (RARELY(ANY(!(size <= farthestFloat))))
    return size <= farthestFloat ? y : far_cosf(x);
  return y;
}

//===-- Exponentials of f32 -----------------------------------------------===//

// NaN stays.
INLINE static Float within(float least, Float x, float most) {
  x = x < least ? (Float)least : x;
  return x > most ? (Float)most : x;
}

// y 2^n in two steps, so that the second rounds what is denormal.
INLINE static Float scaled(Float y, Float shifted) {
  Int n = AS(Int, AS(Bits, shifted) - AS(unsigned, toInteger)), half = n >> 1;
  return y * AS(Float, AS(Bits, half + 127) << 23) *
         AS(Float, AS(Bits, n - half + 127) << 23);
}

// The same where nothing is denormal.
INLINE static Float scaledByBits(Float y, Float shifted) {
  return AS(Float, AS(Bits, y) + (AS(Bits, shifted) << 23));
}

typedef struct {
  Float size, shifted;
} Scaled;

INLINE static Scaled expParts(Float x) {
  Float shifted = FMA(x, (Float)0x1.715476p0f, (Float)toInteger);
  Float n = shifted - toInteger;
  Float first = FMA(n, (Float)-0x1.62e4p-1f, x);
  Float rest = FMA(n, (Float)-0x1.7f7d1cp-20f, first);
  Float size = 1.0f + rest, less = (1.0f - size) + rest;
  less += FMA(n, (Float)-0x1.7f7d1cp-20f, first - rest);
  Scaled parts = {size + FMA(expPolynomial(rest), rest * rest, less), shifted};
  return parts;
}

INLINE static Scaled exp2Parts(Float x) {
  Float shifted = x + toInteger;
  Float rest = x - (shifted - toInteger);
  Scaled parts = {FMA(exp2Polynomial(rest), rest, (Float)1.0f), shifted};
  return parts;
}

Float OF_FLOAT(exp)(Float x) {
  if (RARELY(ANY(!(ABS(x) < 87.0f)))) {
    Scaled parts = expParts(within(-104.0f, x, 89.0f));
    return scaled(parts.size, parts.shifted);
  }
  Scaled parts = expParts(x);
  return scaledByBits(parts.size, parts.shifted);
}

Float OF_FLOAT(exp2)(Float x) {
  if (RARELY(ANY(!(ABS(x) < 126.0f)))) {
    Scaled parts = exp2Parts(within(-151.0f, x, 128.0f));
    return scaled(parts.size, parts.shifted);
  }
  Scaled parts = exp2Parts(x);
  return scaledByBits(parts.size, parts.shifted);
}

//===-- Logarithms of f32 -------------------------------------------------===//

typedef struct {
  Float rest; // after 1, from sqrt(1/2) to sqrt(2)
  Float exponent;
} Split;

INLINE static Split splitUp(Float x, Float exponent) {
  Bits bits = AS(Bits, x);
  Bits scale = (bits - AS(unsigned, 0x1.6a09e6p-1f)) & 0xff800000u;
  Split split = {AS(Float, bits - scale) - 1.0f,
                 FMA(TO(Float, AS(Int, scale)), (Float)0x1p-23f, exponent)};
  return split;
}

INLINE static Split splitDenormal(Float x) {
  Int isDenormal = x < 0x1p-126f;
  return splitUp(isDenormal ? x * 0x1p23f : x,
                 isDenormal ? (Float)-23.0f : (Float)0.0f);
}

// Of 0, of negative numbers, inf and NaN.
INLINE static Float orSpecial(Float x, Float y) {
  Float none = __builtin_nanf(""), most = __builtin_inff();
  Float special = x > 0.0f ? x : x == 0.0f ? -most : none;
  return ((x > 0.0f) & (x < most)) ? y : special;
}

INLINE static Int isNormalFloat(Float x) {
  return (x >= 0x1p-126f) & (x < __builtin_inff());
}

INLINE static Float logOf(Split s) {
  Float y = FMA(logPolynomial(s.rest), s.rest * s.rest, s.rest);
  return FMA(s.exponent, (Float)0x1.62e43p-1f, y);
}

INLINE static Float log10Of(Split s) {
  Float y = FMA(s.rest, (Float)-0x1.5b235ep-27f,
                log10Polynomial(s.rest) * (s.rest * s.rest));
  y = FMA(s.exponent, (Float)-0x1.ec10cp-27f, y);
  y = FMA(s.rest, (Float)0x1.bcb7b2p-2f, y);
  return FMA(s.exponent, (Float)0x1.344136p-2f, y);
}

#define LOGARITHM(name)                                                        \
  Float OF_FLOAT(name)(Float x) {                                              \
    if (RARELY(ANY(!isNormalFloat(x))))                                        \
      return orSpecial(x, name##Of(splitDenormal(x)));                         \
    return name##Of(splitUp(x, (Float)0.0f));                                  \
  }

LOGARITHM(log)
LOGARITHM(log10)
#undef LOGARITHM

//===-- Functions of f32 by way of f64 ------------------------------------===//

INLINE static Double withinDouble(double least, Double x, double most) {
  x = x < least ? (Double)least : x;
  return x > most ? (Double)most : x;
}

INLINE static Float withSign(Float size, Float sign) {
  return AS(Float, AS(Bits, size) | (AS(Bits, sign) & 0x80000000u));
}

INLINE static Double powerOfTwo(Double shifted) {
  return AS(Double, (AS(LongBits, shifted) << 52) + AS(unsigned long, 1.0));
}

typedef struct {
  Double power, growth;
} Grown;

// power (1 + growth), for x of at most 700, off by 2^-32 of it.
INLINE static Grown expGrown(Double x) {
  Double shifted = FMA(x, (Double)0x1.71547652b82fep+0, (Double)toLong);
  Double rest = FMA(shifted - toLong, (Double)-0x1.62e42fefa39efp-1, x);
  Double y = 0x1.a1aa57cc4c2ddp-13;
  y = FMA(y, rest, (Double)0x1.6d7558f077688p-10);
  y = FMA(y, rest, (Double)0x1.111086231dbafp-7);
  y = FMA(y, rest, (Double)0x1.5554acbb13c35p-5);
  y = FMA(y, rest, (Double)0x1.55555595857d2p-3);
  y = FMA(y, rest, (Double)0x1.00000028876c0p-1);
  y = FMA(y, rest, (Double)0x1.ffffffffec3d2p-1);
  Grown grown = {powerOfTwo(shifted), y * rest};
  return grown;
}

INLINE static Double expLessOne(Double x) {
  Grown grown = expGrown(x);
  return FMA(grown.power, grown.growth, grown.power - 1.0);
}

// For x of at most 1000, off by 2^-33 of it.
INLINE static Double powerOf2(Double x) {
  Double shifted = x + toLong, rest = x - (shifted - toLong);
  Double y = 0x1.00dc322ae1f58p-16;
  y = FMA(y, rest, (Double)0x1.444022683bdd7p-13);
  y = FMA(y, rest, (Double)0x1.5d874ca37746ep-10);
  y = FMA(y, rest, (Double)0x1.3b2a1b4e3086ep-7);
  y = FMA(y, rest, (Double)0x1.c6b08dc5cb4c5p-5);
  y = FMA(y, rest, (Double)0x1.ebfbe0460ff54p-3);
  y = FMA(y, rest, (Double)0x1.62e42fef95ec7p-1);
  return FMA(y, rest, (Double)1.0) * powerOfTwo(shifted);
}

// x = 2^exponent (1 + rest), with rest as above; x > 0 and normal.
typedef struct {
  Double rest, exponent;
} LongSplit;

INLINE static LongSplit splitDouble(Double x) {
  const unsigned long bias = 1023ul << 52;
  LongBits bits = AS(LongBits, x);
  LongBits exponent =
      (bits - AS(unsigned long, 0x1.6a09e667f3bcdp-1) + bias) >> 52;
  LongSplit split = {AS(Double, bits - (exponent << 52) + bias) - 1.0,
                     AS(Double, exponent | AS(unsigned long, 0x1p52)) -
                         (0x1p52 + 1023.0)};
  return split;
}

// 2 atanh(s) / s for the quotient s of rest and rest + 2, and the same by
// log(2); off by 2^-43.
INLINE static Double logSeries(Double square) {
  Double y = 0x1.91a5ad346fce0p-3;
  y = FMA(y, square, (Double)0x1.c61f9fe60fd69p-3);
  y = FMA(y, square, (Double)0x1.24943c2dd821fp-2);
  y = FMA(y, square, (Double)0x1.99999621c69d2p-2);
  y = FMA(y, square, (Double)0x1.5555555675ca7p-1);
  return FMA(y, square, (Double)0x1.fffffffffff0dp+0);
}

INLINE static Double log2Series(Double square) {
  Double y = 0x1.21ba2954c81f4p-2;
  y = FMA(y, square, (Double)0x1.4794b4e032713p-2);
  y = FMA(y, square, (Double)0x1.a61a329cb14d8p-2);
  y = FMA(y, square, (Double)0x1.2776c28e8bbb3p-1);
  y = FMA(y, square, (Double)0x1.ec709dc54067dp-1);
  return FMA(y, square, (Double)0x1.71547652b824fp+1);
}

// log(1 + x), inf for inf, of x below -1 any number.
INLINE static Double logPlusOne(Double x) {
  Double whole = 1.0 + x;
  LongSplit split = splitDouble(whole);
  Double rest = split.exponent == 0.0 ? x : split.rest;
  Double quotient = rest / (2.0 + rest);
  Double y = quotient * logSeries(quotient * quotient);
  y = FMA(split.exponent, (Double)0x1.62e42fefa39efp-1, y);
  y = whole < __builtin_inf() ? y : whole;
  return whole == 0.0 ? (Double)-__builtin_inf() : y;
}

Float OF_FLOAT(expm1)(Float x) {
  Float y = TO(Float, expLessOne(withinDouble(-200.0, TO(Double, x), 200.0)));
  return x == 0.0f ? x : y;
}

Float OF_FLOAT(exp10)(Float x) {
  Double power = TO(Double, x) * 0x1.a934f0979a371p+1;
  return TO(Float, powerOf2(withinDouble(-200.0, power, 200.0)));
}

Float OF_FLOAT(tanh)(Float x) {
  Double size = TO(Double, ABS(x));
  Double y = expLessOne(withinDouble(0.0, size + size, 40.0));
  return withSign(TO(Float, y / (y + 2.0)), x);
}

Float OF_FLOAT(sinh)(Float x) {
  Double y = expLessOne(withinDouble(0.0, TO(Double, ABS(x)), 200.0));
  return withSign(TO(Float, 0.5 * (y + y / (y + 1.0))), x);
}

Float OF_FLOAT(cosh)(Float x) {
  Double y = 1.0 + expLessOne(withinDouble(0.0, TO(Double, ABS(x)), 200.0));
  return TO(Float, 0.5 * (y + 1.0 / y));
}

Float OF_FLOAT(log1p)(Float x) {
  Float y = TO(Float, logPlusOne(TO(Double, x)));
  y = x >= -1.0f ? y : (Float)__builtin_nanf("");
  return x == 0.0f ? x : y;
}

Float OF_FLOAT(asinh)(Float x) {
  Double size = TO(Double, ABS(x)), square = size * size;
  Double y = logPlusOne(size + square / (1.0 + SQRT(1.0 + square)));
  y = size < __builtin_inf() ? y : size;
  return withSign(TO(Float, y), x);
}

Float OF_FLOAT(acosh)(Float x) {
  Double rest = TO(Double, x) - 1.0;
  Float y = TO(Float, logPlusOne(rest + SQRT(rest * (rest + 2.0))));
  return x >= 1.0f ? y : (Float)__builtin_nanf("");
}

Float OF_FLOAT(atanh)(Float x) {
  Double size = TO(Double, ABS(x));
  Float y = TO(Float, 0.5 * logPlusOne(2.0 * size / (1.0 - size)));
  return ABS(x) <= 1.0f ? withSign(y, x) : (Float)__builtin_nanf("");
}

Float OF_FLOAT(hypot)(Float x, Float y) {
  Double a = TO(Double, x), b = TO(Double, y);
  Float size = TO(Float, SQRT(a * a + b * b)), most = __builtin_inff();
  return ((ABS(x) == most) | (ABS(y) == most)) ? most : size;
}

// log2(|x|), inf for inf.
INLINE static Double log2OfSize(Double x) {
  LongSplit split = splitDouble(x);
  Double quotient = split.rest / (2.0 + split.rest);
  Double y = FMA(quotient, log2Series(quotient * quotient), split.exponent);
  y = x < __builtin_inf() ? y : x;
  return x == 0.0 ? (Double)-__builtin_inf() : y;
}

Float OF_FLOAT(log2)(Float x) {
  Float y = TO(Float, log2OfSize(TO(Double, x)));
  return x >= 0.0f ? y : (Float)__builtin_nanf("");
}

Float OF_FLOAT(pow)(Float x, Float y) {
  Float size = ABS(x), half = y * 0.5f, most = __builtin_inff();
  Double power = TO(Double, y) * log2OfSize(TO(Double, size));
  Float z = TO(Float, powerOf2(withinDouble(-200.0, power, 200.0)));
  Int isWhole = TRUNC(y) == y, isOdd = isWhole & (TRUNC(half) != half);
  z = isOdd ? withSign(z, x) : z;
  Int isNone = (x < 0.0f) & (size < most) & !isWhole;
  z = isNone ? (Float)__builtin_nanf("") : z;
  Int isOne = (x == 1.0f) | (y == 0.0f) | ((x == -1.0f) & (ABS(y) == most));
  return isOne ? (Float)1.0f : z;
}

// erf(x) / x for x of up to 1, off by 2^-40 of it.
INLINE static Double erfSeries(Double square) {
  Double y = 0x1.1c92fe0984a13p-20;
  y = FMA(y, square, (Double)-0x1.d2e0ff56b9f6dp-17);
  y = FMA(y, square, (Double)0x1.f586e10e84960p-14);
  y = FMA(y, square, (Double)-0x1.bfe23899e6438p-11);
  y = FMA(y, square, (Double)0x1.56589853b5cf5p-8);
  y = FMA(y, square, (Double)-0x1.b82cbbbd74a59p-6);
  y = FMA(y, square, (Double)0x1.ce2f20adf473dp-4);
  y = FMA(y, square, (Double)-0x1.812746adf835dp-2);
  return FMA(y, square, (Double)0x1.20dd750428d5dp+0);
}

// erfc(x) exp(x^2) (1 + 2 x) as a polynomial in (x - 3) / (x + 3), for x from 0
// to 10.2, off by 2^-34 of it.
INLINE static Double erfcPolynomial(Double x) {
  Double y = 0x1.159a290c8e863p-15;
  y = FMA(y, x, (Double)0x1.09c31420b3081p-13);
  y = FMA(y, x, (Double)-0x1.099d98ab0e559p-13);
  y = FMA(y, x, (Double)-0x1.9e2bfa3cfbe4ep-11);
  y = FMA(y, x, (Double)0x1.f08fa04e110fap-10);
  y = FMA(y, x, (Double)0x1.4c12929adfd72p-9);
  y = FMA(y, x, (Double)-0x1.8576f8b2e076ap-6);
  y = FMA(y, x, (Double)0x1.17c97968d5e13p-4);
  y = FMA(y, x, (Double)-0x1.e88b7de7b3f72p-4);
  y = FMA(y, x, (Double)0x1.09836c3b8c612p-3);
  y = FMA(y, x, (Double)-0x1.85a15c0e32d35p-5);
  y = FMA(y, x, (Double)-0x1.15c084d58182ep-3);
  return FMA(y, x, (Double)0x1.40c522d7dfe08p+0);
}

INLINE static Double erfcOfSize(Double x) {
  x = withinDouble(0.0, x, 10.2);
  Grown grown = expGrown(-(x * x));
  Double one = 1.0 + 2.0 * x, other = x + 3.0, inverse = 1.0 / (one * other);
  Double y = erfcPolynomial((x - 3.0) * one * inverse) * (other * inverse);
  return y * FMA(grown.power, grown.growth, grown.power);
}

Float OF_FLOAT(erf)(Float x) {
  Double size = TO(Double, ABS(x));
  Double y =
      size <= 1.0 ? size * erfSeries(size * size) : 1.0 - erfcOfSize(size);
  return withSign(TO(Float, y), x);
}

Float OF_FLOAT(erfc)(Float x) {
  Double all = TO(Double, x), y = erfcOfSize(ABS(all));
  return TO(Float, all < 0.0 ? 2.0 - y : y);
}

FAR_FLOAT(tan)

Float OF_FLOAT(tan)(Float x) {
  Double all = TO(Double, x);
  Double shifted = FMA(all, (Double)0x1.45f306dc9c883p-1, (Double)toLong);
  Double quadrants = shifted - toLong;
  Double rest = FMA(quadrants, (Double)-0x1.921fb54442d18p+0, all);
  rest = FMA(quadrants, (Double)-0x1.1a62633145c07p-54, rest);
  Double square = rest * rest;
  Double sine = 0x1.6cb63bc760627p-19;
  sine = FMA(sine, square, (Double)-0x1.a00ee381a5160p-13);
  sine = FMA(sine, square, (Double)0x1.11110745abc0dp-7);
  sine = FMA(sine, square, (Double)-0x1.555555493fa21p-3);
  sine = FMA(sine, square, (Double)0x1.fffffffff6751p-1) * rest;
  Double cosine = 0x1.99053297bf029p-16;
  cosine = FMA(cosine, square, (Double)-0x1.6c077e5bed624p-10);
  cosine = FMA(cosine, square, (Double)0x1.55553a72c3847p-5);
  cosine = FMA(cosine, square, (Double)-0x1.ffffffbdaaeb1p-2);
  cosine = FMA(cosine, square, (Double)0x1.ffffffff97421p-1);
  Long isOdd = (AS(LongBits, shifted) & 1) != 0;
  Double over = isOdd ? -cosine : sine, under = isOdd ? sine : cosine;
  Float y = TO(Float, over / under);
  if (RARELY(ANY(!(ABS(x) <= 0x1p30f))))
    return ABS(x) <= 0x1p30f ? y : far_tanf(x);
  return y;
}
#endif // LANES != 2

#if LANES <= 16
//===-- Functions of f64 --------------------------------------------------===//

FAR_DOUBLE(sin)
FAR_DOUBLE(cos)

static const double farthestDouble = 0x1p20, nearestDouble = 0.78;

typedef struct {
  Double rest, less;
  LongBits quadrants;
} LongReduced;

INLINE static LongReduced reduceDouble(Double x) {
  Double shifted = FMA(x, (Double)0x1.45f306dc9c883p-1, (Double)toLong);
  Double quadrants = shifted - toLong;
  Double first = FMA(quadrants, (Double)-0x1.921fb54442d18p+0, x);
  Double part = quadrants * 0x1.1a62633145c07p-54;
  Double rest = first - part;
  Double less = part - (first - rest);
  less += FMA(quadrants, (Double)0x1.1a62633145c07p-54, -part);
  less = FMA(quadrants, (Double)-0x1.f1976b7ed8fbcp-110, less);
  LongReduced reduced = {rest, less, AS(LongBits, shifted)};
  return reduced;
}

INLINE static Double orNothingDouble(Double x) {
  return ABS(x) < 0x1p-60 ? (Double)0.0 : x;
}

INLINE static Double nearSineDouble(Double x, Double less) {
  Double part = orNothingDouble(x);
  Double square = part * part, fourth = square * square;
  Double low =
      FMA(square, (Double)0x1.111111110f89cp-7, (Double)-0x1.5555555555549p-3);
  Double middle = FMA(square, (Double)0x1.71de3578ed85ep-19,
                      (Double)-0x1.a01a019c141b2p-13);
  Double high = FMA(square, (Double)0x1.5d93013c1b68ap-33,
                    (Double)-0x1.ae5e66a4731cap-26);
  Double y = FMA(FMA(high, fourth, middle), fourth, low);
  return x - FMA(part * square, -y, less);
}

INLINE static Double nearCosineDouble(Double x, Double less) {
  Double part = orNothingDouble(x);
  Double square = part * part, fourth = square * square;
  Double low =
      FMA(square, (Double)-0x1.6c16c16c15217p-10, (Double)0x1.555555555554cp-5);
  Double middle = FMA(square, (Double)-0x1.27e4f8116c4b4p-22,
                      (Double)0x1.a01a019cbe0a2p-16);
  Double high = FMA(square, (Double)-0x1.8fb0916dfd732p-37,
                    (Double)0x1.1ee9f044e2507p-29);
  Double y = FMA(FMA(high, fourth, middle), fourth, low);
  Double size = FMA(square, (Double)-0.5, (Double)1.0);
  Double rest = FMA(square, (Double)-0.5, 1.0 - size);
  rest = FMA(part, less, rest);
  return size + FMA(fourth, y, rest);
}

INLINE static Double sineOfDouble(LongReduced x) {
  Double sine = nearSineDouble(x.rest, x.less);
  Double cosine = nearCosineDouble(x.rest, x.less);
  Double size = (x.quadrants & 1) != 0 ? cosine : sine;
  return AS(Double, AS(LongBits, size) ^ (x.quadrants & 2) << 62);
}

Double OF_DOUBLE(sin)(Double x) {
  Double size = ABS(x);
  if (!ANY(!(size < nearestDouble)))
    return nearSineDouble(x, (Double)0.0);
  Double y = sineOfDouble(reduceDouble(x));
  if (RARELY(ANY(!(size <= farthestDouble))))
    return size <= farthestDouble ? y : far_sind(x);
  return y;
}

Double OF_DOUBLE(cos)(Double x) {
  Double size = ABS(x);
  if (!ANY(!(size < nearestDouble)))
    return nearCosineDouble(x, (Double)0.0);
  LongReduced reduced = reduceDouble(x);
  reduced.quadrants += 1;
  Double y = sineOfDouble(reduced);
  if (RARELY(ANY(!(size <= farthestDouble))))
    return size <= farthestDouble ? y : far_cosd(x);
  return y;
}

// (exp(x) - 1 - x) / x^2 for x of up to log(2) / 2.
INLINE static Double expPolynomialDouble(Double x) {
  Double square = x * x, fourth = square * square;
  Double a = FMA(x, (Double)0x1.5555555555558p-3, (Double)0x1.0000000000001p-1);
  Double b = FMA(x, (Double)0x1.111111110f807p-7, (Double)0x1.5555555553d5ep-5);
  Double c =
      FMA(x, (Double)0x1.a01a01b00a9b4p-13, (Double)0x1.6c16c1788dbb9p-10);
  Double d =
      FMA(x, (Double)0x1.71ddf6b9beb31p-19, (Double)0x1.a019b905e0990p-16);
  Double e =
      FMA(x, (Double)0x1.af631d3db5129p-26, (Double)0x1.28918e0d552fcp-22);
  Double low = FMA(b, square, a), middle = FMA(d, square, c);
  return FMA(FMA(e, fourth, middle), fourth, low);
}

typedef struct {
  Double size, shifted;
} LongScaled;

INLINE static LongScaled expPartsDouble(Double x) {
  Double shifted = FMA(x, (Double)0x1.71547652b82fep+0, (Double)toLong);
  Double n = shifted - toLong;
  Double first = FMA(n, (Double)-0x1.62e42fefa3800p-1, x);
  Double rest = FMA(n, (Double)-0x1.ef35793c76730p-45, first);
  Double size = 1.0 + rest, less = (1.0 - size) + rest;
  less += FMA(n, (Double)-0x1.ef35793c76730p-45, first - rest);
  LongScaled parts = {size + FMA(expPolynomialDouble(rest), rest * rest, less),
                      shifted};
  return parts;
}

INLINE static Double scaledDouble(Double y, Double shifted) {
  LongBits n = AS(LongBits, shifted) - AS(unsigned long, toLong) + 4096;
  LongBits half = n >> 1; // 2048 more
  const unsigned long bias = 2048 - 1023;
  return y * AS(Double, (half - bias) << 52) *
         AS(Double, (n - half - bias) << 52);
}

Double OF_DOUBLE(exp)(Double x) {
  if (RARELY(ANY(!(ABS(x) < 708.0)))) {
    Double most = 710.0, least = -746.0;
    Double in = x < least ? least : x;
    LongScaled parts = expPartsDouble(in > most ? most : in);
    return scaledDouble(parts.size, parts.shifted);
  }
  LongScaled parts = expPartsDouble(x);
  return AS(Double,
            AS(LongBits, parts.size) + (AS(LongBits, parts.shifted) << 52));
}
#endif // LANES <= 16
