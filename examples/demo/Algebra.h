#pragma once
/// Vectors and matrices of traced numbers: plain structs, which cost nothing in
/// the compiled kernel.

#include <costate/costate.h>

namespace pony {
using costate::ArrayRef, costate::Expr, costate::Index;
using Real = Expr<double>;

struct Vec2 {
  Real x, y;
};

struct Mat2 {
  Real xx, xy; ///< first row
  Real yx, yy;
};

inline Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
inline Vec2 operator*(Real s, Vec2 a) { return {s * a.x, s * a.y}; }
inline Mat2 operator+(Mat2 a, Mat2 b) {
  return {a.xx + b.xx, a.xy + b.xy, a.yx + b.yx, a.yy + b.yy};
}
inline Mat2 operator*(Real s, Mat2 a) {
  return {s * a.xx, s * a.xy, s * a.yx, s * a.yy};
}
inline Vec2 operator*(Mat2 a, Vec2 b) {
  return {a.xx * b.x + a.xy * b.y, a.yx * b.x + a.yy * b.y};
}
inline Mat2 operator*(Mat2 a, Mat2 b) {
  return {a.xx * b.xx + a.xy * b.yx, a.xx * b.xy + a.xy * b.yy,
          a.yx * b.xx + a.yy * b.yx, a.yx * b.xy + a.yy * b.yy};
}

inline Mat2 diagonal(Real s) { return {s, 0.0, 0.0, s}; }
inline Mat2 transpose(Mat2 a) { return {a.xx, a.yx, a.xy, a.yy}; }
inline Real determinant(Mat2 a) { return a.xx * a.yy - a.xy * a.yx; }
inline Mat2 outer(Vec2 a, Vec2 b) { ///< a bᵀ
  return {a.x * b.x, a.x * b.y, a.y * b.x, a.y * b.y};
}

/// A quantity of the particles at every step: (step, particle, component).
using Series = ArrayRef<double, 3>;

inline Vec2 loadVec(Series s, Index t, Index p) {
  return {s(t, p, 0), s(t, p, 1)};
}
inline Mat2 loadMat(Series s, Index t, Index p) {
  return {s(t, p, 0), s(t, p, 1), s(t, p, 2), s(t, p, 3)};
}
inline void store(Series s, Index t, Index p, Vec2 value) {
  s(t, p, 0) = value.x;
  s(t, p, 1) = value.y;
}
inline void store(Series s, Index t, Index p, Mat2 value) {
  s(t, p, 0) = value.xx;
  s(t, p, 1) = value.xy;
  s(t, p, 2) = value.yx;
  s(t, p, 3) = value.yy;
}

} // namespace pony
