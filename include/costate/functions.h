#pragma once
/// Functions that are put together from others: of numbers, and of vectors by
/// component, where a number stands for all components.

#include "costate/vec.h"

namespace costate {

namespace detail {

template <class... A> struct FirstTensorOf {};
template <class A, class... Rest>
struct FirstTensorOf<A, Rest...> : FirstTensorOf<Rest...> {};
template <Tensor A, class... Rest> struct FirstTensorOf<A, Rest...> {
  using type = A;
};
template <class... A>
using FirstElement = ElementOf<typename FirstTensorOf<A...>::type>;
template <class... A>
using FirstShape = ShapeOf<typename FirstTensorOf<A...>::type>;

/// At least one vector, and others of its type or numbers.
template <class... A>
concept VectorOperands =
    (VectorLike<A> || ...) &&
    (BroadcastFor<A, FirstElement<A...>, FirstShape<A...>> && ...);

template <class F, class... A>
  requires NumberOperands<A...>
auto byFormula(F formula, const std::source_location &place, const A &...a) {
  using T = JoinOf<A...>;
  auto result = formula(Located<T>(valueAs<T>(a, place), place)...);
  return Expr<typename decltype(result)::Element>(result.value());
}

template <class F, class... A>
  requires VectorOperands<A...>
auto byFormula(F formula, const std::source_location &place, const A &...a) {
  using T = FirstElement<A...>;
  using S = FirstShape<A...>;
  auto all = [&](const auto &...parts) {
    auto one = [&](size_t k) {
      return formula(Located<T>(parts.all[k], place)...);
    };
    Handles<S> results;
    for (size_t k = 0; k < results.size(); ++k)
      results[k] = one(k).value();
    return TensorExpr<typename decltype(one(0))::Element, S>(results);
  };
  return all(BroadcastOperand<T, S>(a, place)...);
}

template <class T> Located<bool> truth(Handle handle, const Located<T> &like) {
  return {handle, like.where()};
}

/// Whether a remainder other than 0 has not the sign of the divisor.
template <class T>
Handle needsCorrection(const Located<T> &rest, const Located<T> &divisor) {
  Located<T> zero = rest.same(0);
  Located<bool> some = truth(rest.compare(Op::Ne, zero), rest);
  Located<bool> below = truth(rest < zero, rest);
  return some.apply(Op::And, below.apply(Op::Ne, truth(divisor < zero, rest)))
      .value();
}

inline constexpr auto signOf = [](auto x) {
  auto zero = x.same(0), one = x.same(1);
  using T = typename decltype(x)::Element;
  if constexpr (std::is_unsigned_v<T>)
    return choose(x > zero, one, zero);
  else
    return choose(x > zero, one, choose(x < zero, -one, zero));
};
inline constexpr auto modOf = [](auto a, auto b) {
  auto rest = a.apply(Op::Rem, b);
  return choose(needsCorrection(rest, b), rest + b, rest);
};
inline constexpr auto floorDivOf = [](auto a, auto b) {
  using T = typename decltype(a)::Element;
  if constexpr (FloatElement<T>)
    return (a / b).apply(Op::Floor);
  else
    return choose(needsCorrection(a.apply(Op::Rem, b), b), a / b - a.same(1),
                  a / b);
};
inline constexpr auto fractOf = [](auto x) { return x - x.apply(Op::Floor); };
inline constexpr auto mixOf = [](auto a, auto b, auto t) {
  return a * (t.same(1) - t) + b * t;
};
inline constexpr auto clampOf = [](auto x, auto lo, auto hi) {
  using T = typename decltype(x)::Element;
  return Located<T>(pure(Op::Clamp, dtypeOf<T>,
                         {x.value(), lo.value(), hi.value()}, x.where()),
                    x.where());
};
inline constexpr auto smoothstepOf = [](auto lo, auto hi, auto x) {
  auto t = clampOf((x - lo) / (hi - lo), x.same(0), x.same(1));
  return t * t * (x.same(3) - x.same(2) * t);
};
inline constexpr auto isNaNOf = [](auto x) {
  return truth(x.compare(Op::Ne, x), x);
};
inline constexpr auto isInfOf = [](auto x) {
  using T = typename decltype(x)::Element;
  return truth(abs(x) == x.same(std::numeric_limits<T>::infinity()), x);
};
inline constexpr auto isFiniteOf = [](auto x) {
  using T = typename decltype(x)::Element;
  return truth(abs(x) < x.same(std::numeric_limits<T>::infinity()), x);
};
template <Op op>
inline constexpr auto folds =
    [](auto a, auto b, auto c) { return a.apply(op, b).apply(op, c); };
inline constexpr auto ffsOf = [](auto x) {
  // Ones up to the lowest one of x.
  auto upTo = x.apply(Op::Xor, x - x.same(1));
  return choose(x == x.same(0), x.same(0), upTo.apply(Op::Popcnt));
};

template <class... A>
concept AnyNumbers = NumberOperands<A...> || VectorOperands<A...>;
template <class... A>
concept AnyFloats = FloatOperands<A...> ||
                    (VectorOperands<A...> && FloatElement<FirstElement<A...>>);

} // namespace detail

#define COSTATE_FUNCTION1(name, Kind)                                          \
  template <class A>                                                           \
    requires detail::Kind<A>                                                   \
  auto name(const A &a, COSTATE_PLACE)
#define COSTATE_FUNCTION2(name, Kind)                                          \
  template <class A, class B>                                                  \
    requires detail::Kind<A, B>                                                \
  auto name(const A &a, const B &b, COSTATE_PLACE)
#define COSTATE_FUNCTION3(name, Kind)                                          \
  template <class A, class B, class C>                                         \
    requires detail::Kind<A, B, C>                                             \
  auto name(const A &a, const B &b, const C &c, COSTATE_PLACE)

/// -1, 0 or 1; 0 for NaN.
COSTATE_FUNCTION1(sign, AnyNumbers) {
  return detail::byFormula(detail::signOf, place, a);
}
/// The remainder with the sign of b: a - b * floor(a / b); on integers 0 for
/// b = 0.
COSTATE_FUNCTION2(mod, AnyNumbers) {
  return detail::byFormula(detail::modOf, place, a, b);
}
/// a / b rounded down; on integers 0 for b = 0.
COSTATE_FUNCTION2(floor_div, AnyNumbers) {
  return detail::byFormula(detail::floorDivOf, place, a, b);
}
/// a - floor(a)
COSTATE_FUNCTION1(fract, AnyFloats) {
  return detail::byFormula(detail::fractOf, place, a);
}
/// a * (1 - c) + b * c
COSTATE_FUNCTION3(mix, AnyFloats) {
  return detail::byFormula(detail::mixOf, place, a, b, c);
}
/// 0 where c is below a, 1 where it is above b, between them 3 t^2 - 2 t^3.
COSTATE_FUNCTION3(smoothstep, AnyFloats) {
  return detail::byFormula(detail::smoothstepOf, place, a, b, c);
}
COSTATE_FUNCTION3(clamp, VectorOperands) {
  return detail::byFormula(detail::clampOf, place, a, b, c);
}
COSTATE_FUNCTION1(isnan, AnyFloats) {
  return detail::byFormula(detail::isNaNOf, place, a);
}
COSTATE_FUNCTION1(isinf, AnyFloats) {
  return detail::byFormula(detail::isInfOf, place, a);
}
COSTATE_FUNCTION1(isfinite, AnyFloats) {
  return detail::byFormula(detail::isFiniteOf, place, a);
}
/// The place of the lowest bit that is 1, counted from 1; 0 if there is none.
COSTATE_FUNCTION1(ffs, IntegerOperands) {
  return detail::byFormula(detail::ffsOf, place, a);
}
COSTATE_FUNCTION3(min, AnyNumbers) {
  return detail::byFormula(detail::folds<detail::Op::Min>, place, a, b, c);
}
COSTATE_FUNCTION3(max, AnyNumbers) {
  return detail::byFormula(detail::folds<detail::Op::Max>, place, a, b, c);
}

#undef COSTATE_FUNCTION1
#undef COSTATE_FUNCTION2
#undef COSTATE_FUNCTION3

} // namespace costate
