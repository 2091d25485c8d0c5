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
concept NumberOperands =
    AnyTraced<A...> && Joinable<A...> && isNumber<JoinOf<A...>>;
template <class... A>
concept FloatOperands =
    AnyTraced<A...> && Joinable<A...> && FloatElement<JoinOf<A...>>;
template <class... A>
concept IntegerOperands =
    AnyTraced<A...> && Joinable<A...> && isInteger(dtypeOf<JoinOf<A...>>);

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

COSTATE_UNARY(abs, Abs, NumberOperands)
COSTATE_BINARY(min, Min, NumberOperands) ///< of a number and NaN: the number
COSTATE_BINARY(max, Max, NumberOperands)

COSTATE_UNARY(popcnt, Popcnt, IntegerOperands) ///< bits that are 1
COSTATE_UNARY(clz, Clz, IntegerOperands)       ///< bits above the highest 1

COSTATE_BINARY(fmod, Rem, FloatOperands)
#define COSTATE_INSTRUCTION(Name, name, ...)                                   \
  COSTATE_UNARY(name, Name, FloatOperands)
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  COSTATE_FUNCTION_##operands(name, Name)
#define COSTATE_FUNCTION_1(name, op) COSTATE_UNARY(name, op, FloatOperands)
#define COSTATE_FUNCTION_2(name, op) COSTATE_BINARY(name, op, FloatOperands)
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2

#undef COSTATE_UNARY
#undef COSTATE_BINARY

/// a * b + c, rounded once.
template <class A, class B, class C>
  requires detail::FloatOperands<A, B, C>
Expr<detail::JoinOf<A, B, C>>
fma(const A &a, const B &b, const C &c,
    std::source_location place = std::source_location::current()) {
  return detail::call<detail::JoinOf<A, B, C>>(detail::Op::Fma, place, a, b, c);
}

/// min(max(x, lo), hi); on a border its derivative is that of x.
template <class A, class B, class C>
  requires detail::NumberOperands<A, B, C>
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
  if constexpr (FloatElement<T>)
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

/// A number of the host, converted like a traced one.
template <class T, HostNumber A>
Expr<T> cast(A x,
             std::source_location place = std::source_location::current()) {
  using Widest = std::conditional_t<
      std::is_same_v<A, bool>, bool,
      std::conditional_t<
          !std::is_integral_v<A>, double,
          std::conditional_t<std::is_signed_v<A>, int64_t, uint64_t>>>;
  return cast<T>(Expr<Widest>(static_cast<Widest>(x), place), place);
}

/// The number of type T with the same bits; not for f16.
template <class T, detail::Traced A>
  requires(sizeOf(dtypeOf<T>) == sizeOf(dtypeOf<detail::TypeOf<A>>) &&
           detail::isNumber<T> && detail::isNumber<detail::TypeOf<A>> &&
           !std::is_same_v<T, f16> && !std::is_same_v<detail::TypeOf<A>, f16>)
Expr<T> bit_cast(const A &x,
                 std::source_location place = std::source_location::current()) {
  return Expr<T>(
      detail::pure(detail::Op::BitCast, dtypeOf<T>, {x.value(place)}, place));
}

} // namespace costate
