#pragma once
/// Functions of traced values. An argument may be a host number where another
/// one is traced; the result has the widest type among the traced arguments.

#include "costate/expr.h"

namespace costate {

namespace detail {

template <class T, class... A>
concept AllOperands = (OperandFor<A, T> && ...);

/// The type that a function of `A...` computes in: that of the first traced
/// argument to which all others convert, or of the numbers if none is traced.
template <class List, class... A> struct Join {};
template <class... A> struct List {};

template <class First, class... Rest, class... A>
struct Join<List<First, Rest...>, A...> : Join<List<Rest...>, A...> {};
template <class First, class... Rest, class... A>
  requires(Traced<First> && AllOperands<TypeOf<First>, A...>)
struct Join<List<First, Rest...>, A...> {
  using type = TypeOf<First>;
};
template <class... A>
  requires(std::is_arithmetic_v<A> && ...)
struct Join<List<>, A...> {
  using type = std::common_type_t<A...>;
};
template <class... A> using JoinOf = typename Join<List<A...>, A...>::type;

template <class... A>
concept Joinable = requires { typename JoinOf<A...>; };
template <class... A>
concept AnyTraced = (Traced<A> || ...);

template <class... A>
concept Numbers = AnyTraced<A...> && Joinable<A...> && isNumber<JoinOf<A...>>;
template <class... A>
concept Floats =
    AnyTraced<A...> && Joinable<A...> && std::is_floating_point_v<JoinOf<A...>>;

template <class T, class... A>
Expr<T> call(Op op, Loc loc, const A &...arguments) {
  return Expr<T>(pure(op, dtypeOf<T>, {valueAs<T>(arguments, loc)...}, loc));
}

} // namespace detail

#define COSTATE_UNARY(name, op, Kind)                                          \
  template <detail::Kind A>                                                    \
  Expr<detail::JoinOf<A>> name(const A &a,                                     \
                               std::source_location place =                    \
                                   std::source_location::current()) {          \
    return detail::call<detail::JoinOf<A>>(detail::Op::op, place, a);          \
  }
#define COSTATE_BINARY(name, op, Kind)                                         \
  template <class A, class B>                                                  \
    requires detail::Kind<A, B>                                                \
  Expr<detail::JoinOf<A, B>> name(const A &a, const B &b,                      \
                                  std::source_location place =                 \
                                      std::source_location::current()) {       \
    return detail::call<detail::JoinOf<A, B>>(detail::Op::op, place, a, b);    \
  }

COSTATE_UNARY(abs, Abs, Numbers)
COSTATE_BINARY(min, Min, Numbers) ///< of a number and NaN: the number
COSTATE_BINARY(max, Max, Numbers)

COSTATE_UNARY(floor, Floor, Floats)
COSTATE_UNARY(ceil, Ceil, Floats)
COSTATE_UNARY(round, Round, Floats) ///< halves away from zero
COSTATE_UNARY(trunc, Trunc, Floats)
COSTATE_BINARY(fmod, Rem, Floats)

COSTATE_UNARY(sqrt, Sqrt, Floats)
COSTATE_UNARY(rsqrt, Rsqrt, Floats)
COSTATE_UNARY(cbrt, Cbrt, Floats)
COSTATE_UNARY(exp, Exp, Floats)
COSTATE_UNARY(exp2, Exp2, Floats)
COSTATE_UNARY(expm1, Expm1, Floats)
COSTATE_UNARY(log, Log, Floats)
COSTATE_UNARY(log2, Log2, Floats)
COSTATE_UNARY(log10, Log10, Floats)
COSTATE_UNARY(log1p, Log1p, Floats)
COSTATE_BINARY(pow, Pow, Floats)
COSTATE_BINARY(hypot, Hypot, Floats)

COSTATE_UNARY(sin, Sin, Floats)
COSTATE_UNARY(cos, Cos, Floats)
COSTATE_UNARY(tan, Tan, Floats)
COSTATE_UNARY(asin, Asin, Floats)
COSTATE_UNARY(acos, Acos, Floats)
COSTATE_UNARY(atan, Atan, Floats)
COSTATE_BINARY(atan2, Atan2, Floats)
COSTATE_UNARY(sinh, Sinh, Floats)
COSTATE_UNARY(cosh, Cosh, Floats)
COSTATE_UNARY(tanh, Tanh, Floats)
COSTATE_UNARY(asinh, Asinh, Floats)
COSTATE_UNARY(acosh, Acosh, Floats)
COSTATE_UNARY(atanh, Atanh, Floats)
COSTATE_UNARY(erf, Erf, Floats)
COSTATE_UNARY(erfc, Erfc, Floats)

#undef COSTATE_UNARY
#undef COSTATE_BINARY

/// a * b + c, rounded once.
template <class A, class B, class C>
  requires detail::Floats<A, B, C>
Expr<detail::JoinOf<A, B, C>>
fma(const A &a, const B &b, const C &c,
    std::source_location place = std::source_location::current()) {
  return detail::call<detail::JoinOf<A, B, C>>(detail::Op::Fma, place, a, b, c);
}

/// min(max(x, lo), hi); on a border its derivative is that of x.
template <class A, class B, class C>
  requires detail::Numbers<A, B, C>
Expr<detail::JoinOf<A, B, C>>
clamp(const A &x, const B &lo, const C &hi,
      std::source_location place = std::source_location::current()) {
  return detail::call<detail::JoinOf<A, B, C>>(detail::Op::Clamp, place, x, lo,
                                               hi);
}

/// `a` where the condition holds, else `b`; both are evaluated.
template <class A, class B>
  requires detail::Joinable<A, B>
Expr<detail::JoinOf<A, B>>
select(Operand<bool> condition, const A &a, const B &b,
       std::source_location place = std::source_location::current()) {
  using T = detail::JoinOf<A, B>;
  return Expr<T>(detail::pure(detail::Op::Select, dtypeOf<T>,
                              {condition.value, detail::valueAs<T>(a, place),
                               detail::valueAs<T>(b, place)},
                              place));
}

/// `x`, which counts as a constant in every derivative.
template <detail::Traced A>
Expr<detail::TypeOf<A>>
stop_gradient(const A &x,
              std::source_location place = std::source_location::current()) {
  using T = detail::TypeOf<A>;
  if constexpr (std::is_floating_point_v<T>)
    return detail::call<T>(detail::Op::StopGradient, place, x);
  else
    return Expr<T>(x, place);
}

/// `x` converted to T: float to integer rounds towards zero and saturates,
/// NaN gives 0; anything but 0 gives true.
template <class T, detail::Traced A>
Expr<T> cast(const A &x,
             std::source_location place = std::source_location::current()) {
  return Expr<T>(detail::valueAs<T>(x, place));
}

} // namespace costate
