#pragma once
/// Which C++ values may stand where a kernel expects a value of type T.

#include "costate/detail/record.h"

#include <bit>
#include <concepts>
#include <source_location>
#include <utility>

namespace costate {
template <class T> class Expr;
template <class T> class Var;
template <class T> class ElementRef;
template <class T> class LocalElement;
template <class T> class Scalar;
} // namespace costate

namespace costate::detail {

template <class A> struct TracedType {};
template <class T> struct TracedType<Expr<T>> {
  using type = T;
};
template <class T> struct TracedType<Var<T>> {
  using type = T;
};
template <class T> struct TracedType<ElementRef<T>> {
  using type = T;
};
template <class T> struct TracedType<LocalElement<T>> {
  using type = T;
};
template <class T> struct TracedType<Scalar<T>> {
  using type = T;
};

/// An Expr, Var, ElementRef, LocalElement or Scalar.
template <class A>
concept Traced = requires { typename TracedType<A>::type; };
template <Traced A> using TypeOf = typename TracedType<A>::type;

/// A number of the host that may become a T: any for floating T, integers for
/// integer T, bools for bool.
template <class A, class T>
concept Literal =
    HostNumber<A> &&
    (std::is_same_v<T, bool> ? std::is_same_v<A, bool>
                             : !std::is_same_v<A, bool> &&
                                   (FloatElement<T> || std::is_integral_v<A>));

/// Whether every number of `from` is one of `to`, of the same kind.
constexpr bool sameOrWider(DType from, DType to) {
  if (from == to)
    return true;
  if (isFloat(from) || isFloat(to))
    return isFloat(from) && isFloat(to) && from < to;
  if (!isInteger(from) || !isInteger(to))
    return false;
  return sizeOf(from) < sizeOf(to) && (isUnsigned(from) || !isUnsigned(to));
}

/// `long long` counts as narrower than `long`, so that operators on both are
/// not ambiguous.
template <class T>
inline constexpr bool canonical =
    dtypeOf<T> != DType::I64 && dtypeOf<T> != DType::U64
        ? true
        : std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>;

template <class A, class T>
concept Widens = Traced<A> && sameOrWider(dtypeOf<TypeOf<A>>, dtypeOf<T>);

/// May be an operand where the operator computes in T.
template <class A, class T>
concept OperandFor =
    Literal<A, T> ||
    (Widens<A, T> && (canonical<T> || std::is_same_v<TypeOf<A>, T>));

/// May initialise or be assigned to a T.
template <class A, class T>
concept SourceFor = Literal<A, T> || Widens<A, T>;

/// May be an index or an extent.
template <class A>
concept IndexFor =
    Literal<A, int64_t> || (Traced<A> && isInteger(dtypeOf<TypeOf<A>>));

template <class T> uint64_t bitsOf(T value) {
  if constexpr (std::is_same_v<T, f16>)
    return value.bits;
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value;
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}

template <class T, class A> Handle literal(A value, Loc loc) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    if (!std::in_range<T>(+value)) // + makes a number of a char
      return unfitting(dtypeOf<T>, loc);
  return constant(dtypeOf<T>, bitsOf(static_cast<T>(value)), loc);
}

/// The value of `source` here and now, converted to T.
template <class T, class A> Handle valueAs(const A &source, Loc loc) {
  if constexpr (Traced<A>) {
    Handle value = source.value(loc);
    if constexpr (dtypeOf<TypeOf<A>> == dtypeOf<T>)
      return value;
    else
      return pure(Op::Cast, dtypeOf<T>, {value}, loc);
  } else {
    return literal<T>(source, loc);
  }
}

/// A value in the kernel, and the place in the source that uses it.
struct Input {
  Handle value;
  Loc loc;
};

} // namespace costate::detail
