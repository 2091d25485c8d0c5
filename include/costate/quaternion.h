#pragma once
/// Quaternions: vectors (w, x, y, z) of four components, the real one first.
/// Rotations are unit quaternions; q and -q are the same rotation.

#include "costate/mat.h"

namespace costate::quaternion {

namespace detail {
using namespace costate::detail;

template <class A>
concept QuaternionLike = FloatTensor<A> && std::same_as<ShapeOf<A>, Shape<4>>;
template <class A>
concept VectorOfThree = FloatTensor<A> && std::same_as<ShapeOf<A>, Shape<3>>;

template <class A>
using Parts =
    std::array<Located<ElementOf<A>>, static_cast<size_t>(ShapeOf<A>::count)>;

template <class A>
Parts<A> partsOf(const A &a, const std::source_location &place) {
  auto all = a.components(place);
  Parts<A> parts;
  for (size_t k = 0; k < all.size(); ++k)
    parts[k] = {all[k], place};
  return parts;
}

template <class T, class... L> auto joined(const L &...parts) {
  using S = Shape<int(sizeof...(L))>;
  return TensorExpr<T, S>(Handles<S>{parts.value()...});
}

} // namespace detail

/// The rotation by nothing.
template <Element T> VecExpr<T, 4> identity(COSTATE_PLACE) {
  return {Source<T>(1, place), 0, 0, 0};
}

/// The product of p and q: the rotation q, and then p.
template <detail::QuaternionLike P, detail::QuaternionLike Q>
  requires std::same_as<detail::ElementOf<P>, detail::ElementOf<Q>>
auto multiply(const P &p, const Q &q, COSTATE_PLACE) {
  auto a = detail::partsOf(p, place);
  auto b = detail::partsOf(q, place);
  return detail::joined<detail::ElementOf<P>>(
      a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
      a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
      a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
      a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]);
}

/// Of a unit quaternion: the inverse rotation.
template <detail::QuaternionLike Q> auto conjugate(const Q &q, COSTATE_PLACE) {
  auto a = detail::partsOf(q, place);
  return detail::joined<detail::ElementOf<Q>>(a[0], -a[1], -a[2], -a[3]);
}

/// The vector `v`, rotated by the unit quaternion `q`.
template <detail::QuaternionLike Q, detail::VectorOfThree V>
  requires std::same_as<detail::ElementOf<Q>, detail::ElementOf<V>>
auto rotate(const Q &q, const V &v, COSTATE_PLACE) {
  using T = detail::ElementOf<Q>;
  auto a = detail::partsOf(q, place);
  VecExpr<T, 3> axis = detail::joined<T>(a[1], a[2], a[3]);
  VecExpr<T, 3> at(v.components(place));
  auto half = detail::partsOf(cross(axis, at, place), place);
  VecExpr<T, 3> twice = detail::joined<T>(half[0] + half[0], half[1] + half[1],
                                          half[2] + half[2]);
  auto from = detail::partsOf(at, place), t = detail::partsOf(twice, place);
  auto more = detail::partsOf(cross(axis, twice, place), place);
  return detail::joined<T>(from[0] + a[0] * t[0] + more[0],
                           from[1] + a[0] * t[1] + more[1],
                           from[2] + a[0] * t[2] + more[2]);
}

/// The matrix of the rotation by the unit quaternion `q`.
template <detail::QuaternionLike Q> auto to_matrix(const Q &q, COSTATE_PLACE) {
  using T = detail::ElementOf<Q>;
  auto [w, x, y, z] = detail::partsOf(q, place);
  auto one = w.same(1), two = w.same(2);
  detail::Table<T, 3, 3> m = {
      {{one - two * (y * y + z * z), two * (x * y - w * z),
        two * (x * z + w * y)},
       {two * (x * y + w * z), one - two * (x * x + z * z),
        two * (y * z - w * x)},
       {two * (x * z - w * y), two * (y * z + w * x),
        one - two * (x * x + y * y)}}};
  return detail::tensorOf<Shape<3, 3>>(m);
}

/// The rotation by `angle` about the unit vector `axis`.
template <detail::VectorOfThree V>
auto from_axis_angle(const V &axis,
                     Operand<std::type_identity_t<detail::ElementOf<V>>> angle,
                     COSTATE_PLACE) {
  using T = detail::ElementOf<V>;
  auto n = detail::partsOf(axis, place);
  detail::Located<T> half =
      n[0].same(0.5) * detail::Located<T>(angle.value, place);
  auto s = sin(half);
  return detail::joined<T>(cos(half), s * n[0], s * n[1], s * n[2]);
}

/// The rotation about `r` by the length of `r`; smooth at 0.
template <detail::VectorOfThree V>
auto from_rotation_vector(const V &r, COSTATE_PLACE) {
  using T = detail::ElementOf<V>;
  auto v = detail::partsOf(r, place);
  auto square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
  // cos(a/2) and sin(a/2) / a are functions of a^2: near 0 by their series.
  detail::Handle small = v[0].same(2.5e-3) > square;
  auto half = v[0].same(0.5) * sqrt(choose(small, square.same(1), square));
  auto series = [&](std::initializer_list<double> coefficients) {
    auto sum = square.same(0);
    bool first = true;
    for (double c : coefficients) {
      sum = first ? square.same(c) : sum * square + square.same(c);
      first = false;
    }
    return sum;
  };
  auto w = choose(small,
                  series({1.0 / 10321920, -1.0 / 46080, 1.0 / 384, -0.125, 1}),
                  cos(half));
  auto s = choose(
      small,
      series({1.0 / 185794560, -1.0 / 645120, 1.0 / 3840, -1.0 / 48, 0.5}),
      sin(half) / (half + half));
  return detail::joined<T>(w, s * v[0], s * v[1], s * v[2]);
}

} // namespace costate::quaternion
