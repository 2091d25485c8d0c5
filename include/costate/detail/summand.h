#pragma once
/// What may be summed up: numbers, vectors, matrices, and structs of floats.

#include "costate/struct.h"

namespace costate::detail {

/// What may be summed up: the types of its numbers, and a value of as many
/// sums.
template <class A> struct Summand {
  static_assert(sizeof(A) == 0,
                "a sum is one of numbers, vectors, matrices, or "
                "structs of them with COSTATE_STRUCT");
};
/// Of truth values, how many hold.
template <class T>
using SumType = std::conditional_t<std::is_same_v<T, bool>, int64_t, T>;

template <Traced A> struct Summand<A> {
  using T = TypeOf<A>;
  static constexpr std::array types{dtypeOf<T>};
  static std::array<Handle, 1> numbers(const A &term, Loc loc) {
    return {valueAs<T>(term, loc)};
  }
  static auto value(const std::array<Handle, 1> &sums) {
    return Expr<SumType<T>>(sums[0]);
  }
};
/// A number of the host is the same for all terms.
template <Element A> struct Summand<A> {
  static constexpr std::array types{dtypeOf<A>};
  static std::array<Handle, 1> numbers(const A &term, Loc loc) {
    return {literal<A>(term, loc)};
  }
  static auto value(const std::array<Handle, 1> &sums) {
    return Expr<SumType<A>>(sums[0]);
  }
};
template <Tensor A> struct Summand<A> {
  using T = ElementOf<A>;
  using S = ShapeOf<A>;
  static constexpr auto types = [] {
    std::array<DType, size_t(S::count)> all;
    all.fill(dtypeOf<T>);
    return all;
  }();
  static Handles<S> numbers(const A &term, Loc loc) {
    return term.components(loc);
  }
  static auto value(const Handles<S> &sums) {
    return TensorExpr<SumType<T>, S>(sums);
  }
};

/// Takes numbers, as the arguments of a kernel are taken.
struct NextHandle {
  const Handle *next;
  Handle scalar(DType) { return *next++; }
};
template <Registered C> struct Summand<C> {
  static constexpr NumberCounts all = FormOf<C>::numbers;
  static_assert(all.kinds == 1 && isFloat(all.types[0]),
                "the sum of a struct is one of members of one float type; sum "
                "up the others on their own");
  static constexpr auto types = [] {
    std::array<DType, size_t(FormOf<C>::count)> same;
    same.fill(all.types[0]);
    return same;
  }();
  static auto numbers(const C &term, Loc loc) {
    std::array<Handle, types.size()> found;
    Handle *next = found.data();
    add(next, term, loc);
    return found;
  }
  static auto value(const std::array<Handle, types.size()> &sums) {
    NextHandle source{sums.data()};
    return OfScalars<C>::make(source);
  }

private:
  template <class M> static void add(Handle *&next, const M &member, Loc loc) {
    if constexpr (Registered<M>)
      StructOf<M>::each(member, [&](const auto &one) { add(next, one, loc); });
    else
      for (Handle one : Summand<M>::numbers(member, loc))
        *next++ = one;
  }
};
template <class A>
  requires requires { typename A::CostateValue; }
struct Summand<A> : Summand<typename A::CostateValue> {};

/// Sums of integers and truth values are made in i64, of f16 in f32.
constexpr DType sumsIn(DType type) {
  return isFloat(type) ? derivativeOf(type) : DType::I64;
}
constexpr DType sumOf(DType type) {
  return type == DType::Bool ? DType::I64 : type;
}

} // namespace costate::detail
