// Functions of f32 for which libclc 22 takes two to four times as many
// instructions, divides or reads tables. They take its names; see
// LibclcFixes.c. Largest errors are of all floats, in units of the last place.
// Reductions: W. J. Cody and W. Waite, Software Manual for the Elementary
// Functions (1980), chapters 5, 6 and 8.

typedef float Float;
#include "Polynomials.h"

#define PURE __attribute__((const))

float libclc_Z3sinf(float) PURE;
float libclc_Z3cosf(float) PURE;

INLINE static unsigned bitsOf(float x) {
  return __builtin_bit_cast(unsigned, x);
}

INLINE static float ofBits(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}

// Added to a number below 2^22 it leaves the nearest integer in the last bits.
static const float toInteger = 0x1.8p23f;

//===-- Sines -------------------------------------------------------------===//

// Larger ones are left to libclc.
static const float farthest = 0x1p16f;

typedef struct {
  float rest; // of quadrants * pi/2
  unsigned quadrants;
} Reduced;

// The first part of pi/2 has bits to spare, so that the first difference is
// exact.
INLINE static Reduced reduce(float x) {
  float shifted = FMA(x, 0x1.45f306p-1f, toInteger);
  float quadrants = shifted - toInteger;
  float rest = FMA(quadrants, -0x1.921fbp0f, x);
  rest = FMA(quadrants, -0x1.5110b4p-22f, rest);
  rest = FMA(quadrants, -0x1.846988p-48f, rest);
  Reduced reduced = {rest, bitsOf(shifted)};
  return reduced;
}

INLINE static float nearSine(float x) {
  float square = x * x;
  float y = sinePolynomial(square);
  return FMA(y, FMA(x, square, 0.0f), x); // -0 stays
}

INLINE static float nearCosine(float x) {
  float square = x * x;
  float y = FMA(cosinePolynomial(square), square, -0.5f);
  return FMA(y, square, 1.0f);
}

INLINE static float sineOf(Reduced x) {
  float sine = nearSine(x.rest), cosine = nearCosine(x.rest); // no branch
  float size = x.quadrants & 1 ? cosine : sine;
  return ofBits(bitsOf(size) ^ (x.quadrants & 2) << 30);
}

INLINE float costate_device_near_sin(float x) { return sineOf(reduce(x)); }

INLINE float costate_device_near_cos(float x) {
  Reduced reduced = reduce(x);
  ++reduced.quadrants;
  return sineOf(reduced);
}

// 1.487.
float _Z3sinf(float x) {
  float y = costate_device_near_sin(x);
#ifdef COSTATE_VULKAN // drivers drop additions of 0, and take denormals for 0
  y = __builtin_fabsf(x) < 0x1p-12f ? x : y;
#endif
  return __builtin_fabsf(x) <= farthest ? y : libclc_Z3sinf(x);
}

// 1.489.
float _Z3cosf(float x) {
  float y = costate_device_near_cos(x);
  return __builtin_fabsf(x) <= farthest ? y : libclc_Z3cosf(x);
}

//===-- Exponentials ------------------------------------------------------===//

// NaN stays.
INLINE static float within(float least, float x, float most) {
  x = x < least ? least : x;
  return x > most ? most : x;
}

// y 2^n in two steps, so that the second rounds what is denormal.
INLINE static float scaled(float y, float shifted) {
  int n = (int)(bitsOf(shifted) - bitsOf(toInteger)), half = n >> 1;
  return y * ofBits((unsigned)(half + 127) << 23) *
         ofBits((unsigned)(n - half + 127) << 23);
}

// 1.013.
float _Z3expf(float x) {
  x = within(-104.0f, x, 89.0f);
  float shifted = FMA(x, 0x1.715476p0f, toInteger);
  float n = shifted - toInteger;
  float rest = FMA(n, -0x1.7f7d1cp-20f, FMA(n, -0x1.62e4p-1f, x));
  float y = expPolynomial(rest);
  return scaled(FMA(y, rest * rest, rest) + 1.0f, shifted);
}

// 0.88.
float _Z4exp2f(float x) {
  x = within(-151.0f, x, 128.0f);
  float shifted = x + toInteger;
  float rest = x - (shifted - toInteger);
  float y = exp2Polynomial(rest);
  return scaled(FMA(y, rest, 1.0f), shifted);
}

//===-- Logarithms --------------------------------------------------------===//

typedef struct {
  float rest; // after 1, from sqrt(1/2) to sqrt(2)
  float exponent;
} Split;

INLINE static Split splitUp(float x) {
  int isDenormal = x < 0x1p-126f;
  unsigned bits = bitsOf(isDenormal ? x * 0x1p23f : x);
  unsigned exponent = (bits - bitsOf(0x1.6a09e6p-1f)) & 0xff800000u;
  Split split = {
      ofBits(bits - exponent) - 1.0f,
      FMA((float)(int)exponent, 0x1p-23f, isDenormal ? -23.0f : 0.0f)};
  return split;
}

// Of 0, of negative numbers, inf and NaN.
INLINE static float orSpecial(float x, float y) {
  float special = x > 0 ? x : x == 0 ? -__builtin_inff() : __builtin_nanf("");
  return x > 0 && x < __builtin_inff() ? y : special;
}

// 0.92.
float _Z3logf(float x) {
  Split s = splitUp(x);
  float y = logPolynomial(s.rest);
  y = FMA(y, s.rest * s.rest, s.rest);
  return orSpecial(x, FMA(s.exponent, 0x1.62e43p-1f, y));
}

// 1.172.
float _Z4log2f(float x) {
  Split s = splitUp(x);
  float y = log2Polynomial(s.rest);
  y = FMA(s.rest, 0x1.4ae0cp-26f, y * (s.rest * s.rest));
  return orSpecial(x, s.exponent + FMA(s.rest, 0x1.715476p0f, y));
}

// 0.943.
float _Z5log10f(float x) {
  Split s = splitUp(x);
  float y = log10Polynomial(s.rest);
  y = FMA(s.rest, -0x1.5b235ep-27f, y * (s.rest * s.rest));
  y = FMA(s.exponent, -0x1.ec10cp-27f, y);
  y = FMA(s.rest, 0x1.bcb7b2p-2f, y);
  return orSpecial(x, FMA(s.exponent, 0x1.344136p-2f, y));
}
