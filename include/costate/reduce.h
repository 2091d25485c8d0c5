#pragma once
/// Reductions: a value from all work items of a range.
///
///     Expr<double> total = sum(n, [&](Index i) { return x(i) * y(i); });
///     Vec<double, 3> centre = sum(n, [&](Index i) { return p(i) / n; });
///     Index nearest = argmin(n, [&](Index i) { return distance(i); });
///
/// In serial code the terms are computed in parallel, inside of `parallel` and
/// of another term in a loop. A term only computes. All devices, with any
/// number of threads, give the same bits as before.

#include "costate/detail/summand.h"
#include "costate/ranges.h"

#include <limits>

namespace costate {

namespace detail {

/// While it lives, a term is traced.
class TermScope {
public:
  TermScope() : outer(beginTerm()) {}
  TermScope(const TermScope &) = delete;
  ~TermScope() { endTerm(outer); }

private:
  uint32_t outer;
};

template <class F, size_t N> struct TermOf {
  using type = std::remove_cvref_t<decltype(callAt(
      std::declval<F &>(), std::declval<std::array<Handle, N>>()))>;
};
/// The type of the number that a term is.
template <class A> struct NumberTerm {
  static_assert(Traced<A>,
                "a minimum or maximum is one of numbers: of a vector take the "
                "norm, a component or something else that is a number");
  using type = TypeOf<A>;
};
template <class F, size_t N>
using TermType = typename NumberTerm<typename TermOf<F, N>::type>::type;

template <size_t N> class Reduction {
public:
  using Handles = std::array<Handle, N>;

  explicit Reduction(const Box<N> &extents)
      : extents(extents.values), loc(extents.loc) {}

  /// The sums of `term(indices)`, which are values of `types`.
  template <size_t K, class F>
  std::array<Handle, K> sums(const std::array<DType, K> &types,
                             F &&term) const {
    if (!inWorkItem())
      return foldRange<K>(Op::Add, term);
    std::array<Handle, K> sums;
    for (size_t k = 0; k < K; ++k)
      sums[k] = declare(types[k], constant(types[k], 0, loc), loc);
    each([&](const Handles &at) {
      std::array<Handle, K> values = compute(term, at);
      for (size_t k = 0; k < K; ++k)
        assign(sums[k],
               pure(Op::Add, types[k],
                    {read(types[k], sums[k], loc), values[k]}, loc),
               loc);
    });
    for (size_t k = 0; k < K; ++k)
      sums[k] = read(types[k], sums[k], loc);
    return sums;
  }

  /// The position, row-major, of the term whose key is least: the first one of
  /// several, -1 if there is none. The greatest key does not count if
  /// `hasMissing`.
  template <class F> Handle least(bool hasMissing, F &&key) const {
    return inWorkItem() ? leastInLoop(hasMissing, key)
                        : leastInRange(hasMissing, key);
  }

  Handles indicesOf(Handle position) const {
    Handles indices;
    Handle rest = position;
    for (size_t dim = N; dim-- > 1;) {
      indices[dim] = pure(Op::Rem, DType::I64, {rest, extents[dim]}, loc);
      rest = pure(Op::Div, DType::I64, {rest, extents[dim]}, loc);
    }
    indices[0] = rest;
    return indices;
  }

  template <class F> auto compute(F &term, const Handles &at) const {
    TermScope scope;
    return term(at);
  }

  Handle number(int64_t value) const {
    return constant(DType::I64, static_cast<uint64_t>(value), loc);
  }

  const Handles &extents;
  Loc loc;

private:
  static constexpr int64_t greatest = std::numeric_limits<int64_t>::max();

  template <size_t K, class F>
  std::array<Handle, K> foldRange(Op op, F &term) const {
    Handles at;
    beginRange(extents, at.data(), loc);
    std::array<Handle, K> values = compute(term, at);
    endFold(op, values, loc);
    return values;
  }

  template <class F> void each(F &&body) const {
    Handles first;
    first.fill(number(0));
    forEach(first, extents, loc, body);
  }

  Handle positionOf(const Handles &at) const {
    Handle position = at[0];
    for (size_t dim = 1; dim < N; ++dim) {
      position = pure(Op::Mul, DType::I64, {position, extents[dim]}, loc);
      position = pure(Op::Add, DType::I64, {position, at[dim]}, loc);
    }
    return position;
  }

  Handle test(Op op, Handle a, Handle b) const {
    return pure(op, DType::Bool, {a, b}, loc);
  }
  Handle counts(bool hasMissing, Handle key) const {
    return hasMissing ? test(Op::Ne, key, number(greatest))
                      : constant(DType::Bool, 1, loc);
  }

  template <class F> Handle leastInRange(bool hasMissing, F &key) const {
    auto pair = [&](const Handles &at) {
      Handle own = key(at);
      return std::array{own, positionOf(at)};
    };
    auto [best, position] = foldRange<2>(Op::Min, pair);
    Handle isNone =
        test(Op::Eq, hasMissing ? best : position, number(greatest));
    return pure(Op::Select, DType::I64, {isNone, number(-1), position}, loc);
  }

  template <class F> Handle leastInLoop(bool hasMissing, F &key) const {
    Handle best = declare(DType::I64, number(greatest), loc);
    Handle position = declare(DType::I64, number(-1), loc);
    each([&](const Handles &at) {
      Handle own = compute(key, at);
      Handle isFirst = test(Op::Lt, read(DType::I64, position, loc), number(0));
      Handle wins = test(Op::Or, test(Op::Lt, own, read(DType::I64, best, loc)),
                         test(Op::And, isFirst, counts(hasMissing, own)));
      beginIf(wins, loc);
      Scope scope;
      assign(best, own, loc);
      assign(position, positionOf(at), loc);
    });
    return read(DType::I64, position, loc);
  }
};

template <size_t N, class F> auto sumOver(const Box<N> &range, F &f) {
  using Form = Summand<typename TermOf<F, N>::type>;
  Reduction<N> over(range);
  constexpr auto types = Form::types;
  std::array<DType, types.size()> wide;
  for (size_t k = 0; k < types.size(); ++k)
    wide[k] = sumsIn(types[k]);
  auto term = [&](const auto &at) {
    auto values = Form::numbers(callAt(f, at), over.loc);
    for (size_t k = 0; k < types.size(); ++k)
      if (types[k] != wide[k])
        values[k] = pure(Op::Cast, wide[k], {values[k]}, over.loc);
    return values;
  };
  auto sums = over.sums(wide, term);
  for (size_t k = 0; k < types.size(); ++k)
    if (sumOf(types[k]) != wide[k])
      sums[k] = pure(Op::Cast, sumOf(types[k]), {sums[k]}, over.loc);
  return Form::value(sums);
}

/// Where the least term is, or the greatest one.
template <size_t N, class F>
Handle extremumOver(const Reduction<N> &over, F &f, bool isMax) {
  using T = TermType<F, N>;
  static_assert(isNumber<T>, "a minimum or maximum is one of numbers");
  constexpr bool hasNaN = isFloat(dtypeOf<T>);
  return over.least(hasNaN, [&](const auto &at) {
    Handle value = valueAs<T>(callAt(f, at), over.loc);
    if (isMax && hasNaN)
      value = pure(Op::Neg, dtypeOf<T>, {value}, over.loc);
    Handle key = pure(Op::Ordinal, DType::I64, {value}, over.loc);
    if (isMax && !hasNaN)
      key = pure(Op::Not, DType::I64, {key}, over.loc);
    return key;
  });
}

/// The term at the winner, computed once more: so it has a derivative.
template <size_t N, class F>
auto valueOfExtremum(const Box<N> &range, F &f, bool isMax) {
  using T = TermType<F, N>;
  using Limits = std::numeric_limits<T>;
  T none = isMax ? Limits::lowest() : Limits::max();
  if constexpr (Limits::has_infinity)
    none = isMax ? T(-Limits::infinity()) : Limits::infinity();
  Reduction<N> over(range);
  Handle position = extremumOver(over, f, isMax), start = over.number(0);
  Handle best = declare(dtypeOf<T>, literal<T>(none, over.loc), over.loc);
  {
    beginIf(pure(Op::Ge, DType::Bool, {position, start}, over.loc), over.loc);
    Scope scope;
    auto term = [&](const auto &at) {
      return valueAs<T>(callAt(f, at), over.loc);
    };
    assign(best, over.compute(term, over.indicesOf(position)), over.loc);
  }
  return Expr<T>(read(dtypeOf<T>, best, over.loc));
}

template <size_t N, class F>
auto placeOfExtremum(const Box<N> &range, F &f, bool isMax) {
  Reduction<N> over(range);
  Handle position = extremumOver(over, f, isMax);
  if constexpr (N == 1) {
    return Index(position);
  } else {
    Handle isNone =
        pure(Op::Lt, DType::Bool, {position, over.number(0)}, over.loc);
    std::array<Index, N> indices;
    std::array<Handle, N> found = over.indicesOf(position);
    for (size_t dim = 0; dim < N; ++dim)
      indices[dim] =
          Index(pure(Op::Select, DType::I64,
                     {isNone, over.number(-1), found[dim]}, over.loc));
    return indices;
  }
}

} // namespace detail

#define COSTATE_REDUCTION(name, ...)                                           \
  template <size_t N, class F>                                                 \
    requires(N > 0)                                                            \
  auto name(const detail::Box<N> &range, F &&f) {                              \
    return __VA_ARGS__;                                                        \
  }                                                                            \
  template <size_t N, class F>                                                 \
    requires(N >= 2 && N <= size_t(maxRank))                                   \
  auto name(const IndexOperand(&range)[N], F &&f) {                            \
    return name(detail::Box<N>(range), f);                                     \
  }                                                                            \
  template <class F> auto name(IndexOperand range, F &&f) {                    \
    return name(detail::Box<1>({range}), f);                                   \
  }
/// The sum of `f(Index i, Index j, ...)` over all index tuples below the
/// extents, numbers, vectors, matrices, or structs of one float type; of truth
/// values, how many hold. In serial code floats are added in double precision,
/// in an order that the extents decide.
COSTATE_REDUCTION(sum, detail::sumOver(range, f))
/// The least of the numbers `f(i, j, ...)`. NaN counts as missing, and -0 as
/// less than 0. If there is none: inf, or the greatest integer. The derivative
/// goes to the first of the least ones.
COSTATE_REDUCTION(minimum, detail::valueOfExtremum(range, f, false))
/// Likewise the greatest; if there is none: -inf, or the least integer.
COSTATE_REDUCTION(maximum, detail::valueOfExtremum(range, f, true))
/// The index of the first of the least numbers `f(i)`, or -1; over several
/// extents a std::array of indices, or of -1.
COSTATE_REDUCTION(argmin, detail::placeOfExtremum(range, f, false))
COSTATE_REDUCTION(argmax, detail::placeOfExtremum(range, f, true))
#undef COSTATE_REDUCTION

} // namespace costate
