#pragma once
/// Values that are found by iteration, with derivatives in closed form.

#include "costate/custom_derivative.h"
#include "costate/mat.h"

#include <cmath>
#include <limits>

namespace costate::detail {

/// `value`, with the derivative of `like`. Where no derivative is asked for,
/// `like` is not computed.
template <class T>
Located<T> attach(const Located<T> &value, const Located<T> &like,
                  const std::source_location &place) {
  auto function = [](Expr<T> value, Expr<T>) { return value; };
  auto partials = [place](Expr<T>, Expr<T>, Expr<T>) {
    return std::tuple(Expr<T>(0, place), Expr<T>(1, place));
  };
  return {
      CustomDerivative(function, partials, place)(Expr<T>(value), Expr<T>(like))
          .value(place),
      place};
}

/// 0, with the derivative of `like`.
template <class T>
Located<T> change(const Located<T> &like, const std::source_location &place) {
  return attach(like.same(0), like, place);
}

template <class T, size_t M, size_t N>
using Rows = std::array<std::array<Located<T>, N>, M>;

template <class T, size_t M, size_t N, class F>
Rows<T, M, N> changed(const Rows<T, M, N> &a, const F &function) {
  Rows<T, M, N> result;
  for (size_t i = 0; i < M; ++i)
    for (size_t j = 0; j < N; ++j)
      result[i][j] = function(a[i][j], i, j);
  return result;
}

template <class T, size_t M, size_t K, size_t N>
Rows<T, M, N> times(const Rows<T, M, K> &a, const Rows<T, K, N> &b) {
  Rows<T, M, N> result;
  for (size_t i = 0; i < M; ++i)
    for (size_t j = 0; j < N; ++j) {
      result[i][j] = a[i][0] * b[0][j];
      for (size_t k = 1; k < K; ++k)
        result[i][j] = result[i][j] + a[i][k] * b[k][j];
    }
  return result;
}

template <class T, size_t M, size_t N>
Rows<T, N, M> transposed(const Rows<T, M, N> &a) {
  Rows<T, N, M> result;
  for (size_t i = 0; i < M; ++i)
    for (size_t j = 0; j < N; ++j)
      result[j][i] = a[i][j];
  return result;
}

/// `found` as a function of `a`, given its differential: `differential(a, e,
/// found)` is the change of `found` for the change `e` of `a`. What is attached
/// is a step of the midpoint rule from here along that change, so derivatives
/// of the first two orders are exact. Higher ones are refused, in the name of
/// `what`.
template <class T, size_t M, size_t N, size_t K, size_t L, class F>
Rows<T, K, L>
function(const char *what, const Rows<T, M, N> &a, const Rows<T, K, L> &found,
         const std::source_location &place, const F &differential) {
  limitOrder(2, what, place);
  auto half = [&](const Located<T> &value, const Located<T> &like) {
    return attach(value, like.same(0.5) * like, place);
  };
  Rows<T, M, N> e = changed(
      a, [&](const auto &x, size_t, size_t) { return change(x, place); });
  Rows<T, K, L> whole = differential(a, e, found);
  Rows<T, K, L> middle = changed(found, [&](const auto &x, size_t i, size_t j) {
    return half(x, whole[i][j]);
  });
  Rows<T, M, N> between =
      changed(a, [&](const auto &x, size_t, size_t) { return half(x, x); });
  Rows<T, K, L> step = differential(between, e, middle);
  return changed(found, [&](const auto &x, size_t i, size_t j) {
    return attach(x, step[i][j], place);
  });
}

/// Constants to every derivative: `value`, and in derivatives `near(gap)`,
/// where `gap` is what costs the least precision if derivatives divide by it
/// once or twice.
template <class T, class F>
Located<T> nearby(const Located<T> &value, const F &near) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  return {pure(Op::ByOrder, dtypeOf<T>,
               {value.value(), near(value.same(std::sqrt(epsilon))).value(),
                near(value.same(std::cbrt(epsilon))).value()},
               value.where()),
          value.where()};
}

/// 1 / x, bounded where |x| is in the order of the rounding of `scale`.
template <class T>
Located<T> bounded(const Located<T> &x, const Located<T> &scale) {
  Located<T> least =
      x.same(8 * double(std::numeric_limits<T>::epsilon())) * scale;
  Located<T> square = x * x + least * least;
  return choose(square == x.same(0), x.same(0), x / square);
}

} // namespace costate::detail
