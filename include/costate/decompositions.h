#pragma once
/// Decompositions of matrices of 2 and 3 rows. Those of 3 rows have derivatives
/// in closed form, up to the second order; nothing of the iteration is saved.

#include "costate/detail/jacobi.h"

namespace costate {

/// a == u * diagonal(sigma) * transpose(v)
template <class T, int N> struct Svd {
  MatExpr<T, N, N> u;
  VecExpr<T, N> sigma;
  MatExpr<T, N, N> v;
};
/// a == rotation * stretch
template <class T, int N> struct Polar {
  MatExpr<T, N, N> rotation, stretch;
};
/// a == vectors * diagonal(values) * transpose(vectors)
template <class T, int N> struct SymEig {
  VecExpr<T, N> values;
  MatExpr<T, N, N> vectors;
};

namespace detail {

template <class A>
concept Decomposable =
    FloatSquare<A> && std::is_floating_point_v<ElementOf<A>> &&
    (rowsOf<A> == 2 || rowsOf<A> == 3);

template <class T> Table<T, 2, 2> rotation(const Located<T> &angle) {
  Located<T> c = cos(angle), s = sin(angle);
  return {{{c, -s}, {s, c}}};
}
template <class T>
Located<T> binary(Op op, const Located<T> &a, const Located<T> &b,
                  const std::source_location &place) {
  return {pure(op, dtypeOf<T>, {a.value(), b.value()}, place), place};
}

/// Rows of [a b; c d] as parts that a rotation keeps apart.
template <class T> struct Halves {
  Halves(const Table<T, 2, 2> &m)
      : e(half(m[0][0] + m[1][1])), f(half(m[0][0] - m[1][1])),
        g(half(m[1][0] + m[0][1])), h(half(m[1][0] - m[0][1])) {}
  static Located<T> half(const Located<T> &x) { return x.same(0.5) * x; }
  Located<T> e, f, g, h;

  /// The largest singular value.
  Located<T> size() const {
    Located<T> sum = length(constantOf(e), constantOf(h)) +
                     length(constantOf(f), constantOf(g));
    return choose(sum == sum.same(0), sum.same(1), sum);
  }
  static Located<T> length(const Located<T> &x, const Located<T> &y) {
    return binary(Op::Hypot, x, y, x.where());
  }
  /// `x`, in derivatives with a distance from 0 where (x, y) is short: its
  /// length is the distance of two values.
  Located<T> keptAway(const Located<T> &x, const Located<T> &y) const {
    Located<T> at = constantOf(x), zero = x.same(0), none = x.same(-0.0);
    Located<T> far = length(at, constantOf(y)), scale = size();
    return x + nearby(none, [&](const Located<T> &gap) {
             Located<T> step = gap * scale;
             return choose(step > far, choose(zero > at, -step, step), none);
           });
  }
};

/// The changes of u, of sigma and of v, one below the other, for the change `e`
/// of their product.
template <class T>
Table<T, 7, 3> svdDifferential(const Table<T, 3, 3> &e,
                               const Table<T, 7, 3> &found) {
  Table<T, 3, 3> u{found[0], found[1], found[2]},
      v{found[4], found[5], found[6]};
  const auto &s = found[3];
  Table<T, 3, 3> p = times(times(transposed(u), e), v);
  Located<T> zero = s[0].same(0), half = s[0].same(0.5), scale = abs(s[0]);
  Table<T, 3, 3> x{}, y{};
  for (size_t i = 0; i < 3; ++i) {
    x[i][i] = y[i][i] = zero;
    for (size_t j = i + 1; j < 3; ++j) {
      Located<T> sum = (p[i][j] + p[j][i]) * bounded(s[j] - s[i], scale);
      Located<T> rest = (p[i][j] - p[j][i]) * bounded(s[j] + s[i], scale);
      x[i][j] = half * (sum + rest);
      y[i][j] = half * (sum - rest);
      x[j][i] = -x[i][j];
      y[j][i] = -y[i][j];
    }
  }
  Table<T, 3, 3> du = times(u, x), dv = times(v, y);
  return {du[0], du[1], du[2], {p[0][0], p[1][1], p[2][2]},
          dv[0], dv[1], dv[2]};
}

/// The change of the rotation r of the polar decomposition of `a`:
/// r * [k], where (trace(s) - s) * k is the axis of transpose(r) * e.
template <class T>
Table<T, 3, 3> polarDifferential(const Table<T, 3, 3> &a,
                                 const Table<T, 3, 3> &e,
                                 const Table<T, 3, 3> &r) {
  Table<T, 3, 3> back = transposed(r), s = times(back, a), m = times(back, e);
  Located<T> trace = s[0][0] + s[1][1] + s[2][2], zero = trace.same(0),
             half = trace.same(0.5);
  Table<T, 3, 3> k = changed(s, [&](const auto &, size_t i, size_t j) {
    Located<T> even = half * (s[i][j] + s[j][i]);
    return i == j ? trace - even : -even;
  });
  Table<T, 3, 3> adjugated = adjugate(k);
  Located<T> determinant = expanded(k, adjugated);
  Located<T> scale =
      choose(determinant == zero, zero, trace.same(1) / determinant);
  Table<T, 3, 1> w{
      {{m[2][1] - m[1][2]}, {m[0][2] - m[2][0]}, {m[1][0] - m[0][1]}}};
  Table<T, 3, 1> axis = times(adjugated, w);
  Located<T> x = axis[0][0] * scale, y = axis[1][0] * scale,
             z = axis[2][0] * scale;
  return times(r,
               Table<T, 3, 3>{{{zero, -z, y}, {z, zero, -x}, {-y, x, zero}}});
}

/// The changes of the values, in the first row, and of the vectors.
template <class T>
Table<T, 4, 3> eigDifferential(const Table<T, 3, 3> &e,
                               const Table<T, 4, 3> &found) {
  const auto &values = found[0];
  Table<T, 3, 3> q{found[1], found[2], found[3]};
  Table<T, 3, 3> p = times(times(transposed(q), e), q);
  Located<T> scale = abs(values[0]) + abs(values[2]);
  Table<T, 3, 3> x = changed(p, [&](const auto &one, size_t i, size_t j) {
    return i == j ? one.same(0) : one * bounded(values[j] - values[i], scale);
  });
  Table<T, 3, 3> dq = times(q, x);
  return {{{p[0][0], p[1][1], p[2][2]}, dq[0], dq[1], dq[2]}};
}

} // namespace detail

/// The singular value decomposition, of 2 or 3 rows: u and v are rotations, and
/// the values descend; the last one has the sign of the determinant. Where two
/// values are equal, u and v are not unique: their derivatives are bounded
/// there, and those of sums of values and of u * transpose(v) are right.
template <detail::Decomposable A>
Svd<detail::ElementOf<A>, detail::rowsOf<A>> svd(const A &a, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  using detail::Op;
  auto m = detail::tableOf<T>(a, place);
  if constexpr (detail::rowsOf<A> == 2) {
    detail::Halves<T> parts(m);
    auto e = parts.keptAway(parts.e, parts.h),
         f = parts.keptAway(parts.f, parts.g);
    auto q = parts.length(e, parts.h), r = parts.length(f, parts.g);
    auto a1 = detail::binary(Op::Atan2, parts.g, f, place);
    auto a2 = detail::binary(Op::Atan2, parts.h, e, place);
    auto u = detail::rotation(parts.half(a2 + a1));
    auto v = detail::rotation(parts.half(a1 - a2));
    return {detail::tensorOf<Shape<2, 2>>(u),
            VecExpr<T, 2>(Expr<T>(q + r), Expr<T>(q - r)),
            detail::tensorOf<Shape<2, 2>>(v)};
  } else {
    auto size = detail::sizeOf<T>(m);
    m = detail::dividedBy<T>(size, m);
    auto found =
        detail::function("svd", m, detail::jacobiSvd(m, place), place,
                         [](const auto &, const auto &e, const auto &at) {
                           return detail::svdDifferential<T>(e, at);
                         });
    detail::Table<T, 3, 3> u{found[0], found[1], found[2]},
        v{found[4], found[5], found[6]};
    detail::Table<T, 1, 3> sigma{
        {{found[3][0] * size, found[3][1] * size, found[3][2] * size}}};
    return {detail::tensorOf<Shape<3, 3>>(u), detail::tensorOf<Shape<3>>(sigma),
            detail::tensorOf<Shape<3, 3>>(v)};
  }
}

/// A rotation times a symmetric matrix, of 2 or 3 rows. Derivatives are right
/// for repeated singular values too; the rotation has derivative 0 where it is
/// not unique because the two smallest values add up to 0.
template <detail::Decomposable A>
Polar<detail::ElementOf<A>, detail::rowsOf<A>> polar_decompose(const A &a,
                                                               COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  constexpr int n = detail::rowsOf<A>;
  auto m = detail::tableOf<T>(a, place);
  detail::Table<T, n, n> r;
  if constexpr (n == 2) {
    detail::Halves<T> parts(m);
    r = detail::rotation(
        detail::binary(detail::Op::Atan2, parts.h, parts.e, place));
  } else {
    auto unit = detail::dividedBy<T>(detail::sizeOf<T>(m), m);
    auto found = detail::jacobiSvd(unit, place);
    detail::Table<T, 3, 3> u{found[0], found[1], found[2]},
        v{found[4], found[5], found[6]};
    r = detail::function("polar_decompose", unit,
                         detail::times(u, detail::transposed(v)), place,
                         [](const auto &m, const auto &e, const auto &at) {
                           return detail::polarDifferential<T>(m, e, at);
                         });
  }
  auto s = detail::times(detail::transposed(r), m);
  auto even = detail::changed(s, [&](const auto &one, size_t i, size_t j) {
    return i == j ? one : one.same(0.5) * (s[i][j] + s[j][i]);
  });
  return {detail::tensorOf<Shape<n, n>>(r),
          detail::tensorOf<Shape<n, n>>(even)};
}

/// Eigenvalues, ascending, and eigenvectors of a symmetric matrix of 2 or 3
/// rows; `a` counts as (a + transpose(a)) / 2. Where two values are equal,
/// their vectors are not unique: derivatives are bounded there, and those of
/// sums of values are right.
template <detail::Decomposable A>
SymEig<detail::ElementOf<A>, detail::rowsOf<A>> sym_eig(const A &a,
                                                        COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  constexpr int n = detail::rowsOf<A>;
  auto given = detail::tableOf<T>(a, place);
  auto m = detail::changed(given, [&](const auto &one, size_t i, size_t j) {
    return i == j ? one : one.same(0.5) * (given[i][j] + given[j][i]);
  });
  if constexpr (n == 2) {
    detail::Halves<T> parts(m);
    auto f = parts.keptAway(parts.f, parts.g), r = parts.length(f, parts.g);
    // Of the larger value; the other one is rotated by 90 degrees.
    auto angle =
        parts.half(detail::binary(detail::Op::Atan2, parts.g, f, place));
    auto c = cos(angle), s = sin(angle);
    detail::Table<T, 2, 2> q{{{s, c}, {-c, s}}};
    return {VecExpr<T, 2>(Expr<T>(parts.e - r), Expr<T>(parts.e + r)),
            detail::tensorOf<Shape<2, 2>>(q)};
  } else {
    auto size = detail::sizeOf<T>(m);
    m = detail::dividedBy<T>(size, m);
    auto found =
        detail::function("sym_eig", m, detail::jacobiEig(m, place), place,
                         [](const auto &, const auto &e, const auto &at) {
                           return detail::eigDifferential<T>(e, at);
                         });
    detail::Table<T, 1, 3> values{
        {{found[0][0] * size, found[0][1] * size, found[0][2] * size}}};
    detail::Table<T, 3, 3> q{found[1], found[2], found[3]};
    return {detail::tensorOf<Shape<3>>(values),
            detail::tensorOf<Shape<3, 3>>(q)};
  }
}

} // namespace costate
