#pragma once
// Polynomials of f32 on reduced arguments: minimax, off by less than 2^-27 of
// the function. Whoever includes this says what Float is.

#define INLINE __attribute__((always_inline))
#define FMA __builtin_elementwise_fma

// (sin(x) - x) / x^3 for x of up to pi / 4.
INLINE static inline Float sinePolynomial(Float square) {
  Float y = 0x1.7cd428p-19f;
  y = FMA(y, square, (Float)-0x1.a05bb2p-13f);
  y = FMA(y, square, (Float)0x1.111176p-7f);
  return FMA(y, square, (Float)-0x1.555556p-3f);
}

// (cos(x) - 1 + x^2 / 2) / x^4 for x of up to pi / 4.
INLINE static inline Float cosinePolynomial(Float square) {
  Float y = 0x1.99e80cp-16f;
  y = FMA(y, square, (Float)-0x1.6c0c28p-10f);
  return FMA(y, square, (Float)0x1.55554ap-5f);
}

// (exp(x) - 1 - x) / x^2 for x of up to log(2) / 2.
INLINE static inline Float expPolynomial(Float x) {
  Float y = 0x1.6a4748p-10f;
  y = FMA(y, x, (Float)0x1.1239a2p-7f);
  y = FMA(y, x, (Float)0x1.5558b6p-5f);
  y = FMA(y, x, (Float)0x1.555492p-3f);
  return FMA(y, x, (Float)0x1.fffffcp-2f);
}

// (2^x - 1) / x for x of up to 1/2.
INLINE static inline Float exp2Polynomial(Float x) {
  Float y = 0x1.4172d8p-13f;
  y = FMA(y, x, (Float)0x1.5f0978p-10f);
  y = FMA(y, x, (Float)0x1.3b2ddap-7f);
  y = FMA(y, x, (Float)0x1.c6af7ap-5f);
  y = FMA(y, x, (Float)0x1.ebfbdcp-3f);
  return FMA(y, x, (Float)0x1.62e43p-1f);
}

// (log(1 + x) - x) / x^2, and of log2 and log10, for 1 + x from sqrt(1/2) to
// sqrt(2).
INLINE static inline Float logPolynomial(Float x) {
  Float y = -0x1.383ebcp-4f;
  y = FMA(y, x, (Float)0x1.087e6p-3f);
  y = FMA(y, x, (Float)-0x1.0f4f0ep-3f);
  y = FMA(y, x, (Float)0x1.226b2ap-3f);
  y = FMA(y, x, (Float)-0x1.542402p-3f);
  y = FMA(y, x, (Float)0x1.99a428p-3f);
  y = FMA(y, x, (Float)-0x1.000438p-2f);
  y = FMA(y, x, (Float)0x1.55555p-2f);
  return FMA(y, x, (Float)-0x1.fffff8p-2f);
}

INLINE static inline Float log2Polynomial(Float x) {
  Float y = -0x1.c39b8ap-4f;
  y = FMA(y, x, (Float)0x1.7f281cp-3f);
  y = FMA(y, x, (Float)-0x1.87f7eep-3f);
  y = FMA(y, x, (Float)0x1.a2c9dcp-3f);
  y = FMA(y, x, (Float)-0x1.eaa24ap-3f);
  y = FMA(y, x, (Float)0x1.277f44p-2f);
  y = FMA(y, x, (Float)-0x1.715afep-2f);
  y = FMA(y, x, (Float)0x1.ec7094p-2f);
  return FMA(y, x, (Float)-0x1.71547p-1f);
}

INLINE static inline Float log10Polynomial(Float x) {
  Float y = -0x1.108156p-5f;
  y = FMA(y, x, (Float)0x1.cd07cap-5f);
  y = FMA(y, x, (Float)-0x1.d7938ep-5f);
  y = FMA(y, x, (Float)0x1.f84c1ap-5f);
  y = FMA(y, x, (Float)-0x1.276a48p-4f);
  y = FMA(y, x, (Float)0x1.63d068p-4f);
  y = FMA(y, x, (Float)-0x1.bcbf52p-4f);
  y = FMA(y, x, (Float)0x1.287a7p-3f);
  return FMA(y, x, (Float)-0x1.bcb7aap-3f);
}
