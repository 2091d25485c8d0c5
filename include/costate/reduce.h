#pragma once
/// Reductions: a value from all iterations of a range.
///
///     Expr<double> total = sum(n, [&](Index i) { return x(i) * y(i); });
///     Index nearest = argmin(n, [&](Index i) { return distance(i); });
///
/// In serial code the terms are computed in parallel, inside of `parallel` and
/// of another term in a loop. A term only computes. All devices, with any
/// number of threads, give the same bits as before.

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
template <class F, size_t N>
using TermType = TypeOf<typename TermOf<F, N>::type>;

template <size_t N> class Reduction {
public:
  using Handles = std::array<Handle, N>;

  explicit Reduction(const Box<N> &extents)
      : extents(extents.values), loc(extents.loc) {}

  /// `op` over `term(indices)`, which is a `type`; `start`: what it gives for
  /// no terms.
  template <class F>
  Handle fold(Op op, DType type, uint64_t start, F &&term) const {
    if (!inIteration())
      return foldRange(op, term);
    Handle result = declare(type, constant(type, start, loc), loc);
    each([&](const Handles &at) {
      Handle value = compute(term, at);
      value = pure(op, type, {read(type, result, loc), value}, loc);
      assign(result, value, loc);
    });
    return read(type, result, loc);
  }

  /// The position, row-major, of the term whose key is least: the first one of
  /// several, -1 if there is none. The greatest key does not count if
  /// `hasMissing`.
  template <class F> Handle least(bool hasMissing, F &&key) const {
    return inIteration() ? leastInLoop(hasMissing, key)
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

  template <class F> Handle compute(F &term, const Handles &at) const {
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

  template <class F> Handle foldRange(Op op, F &term) const {
    Handles at;
    beginRange(extents, at.data(), loc);
    return endFold(op, compute(term, at), loc);
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
    Handle best = foldRange(Op::Min, key);
    auto place = [&](const Handles &at) {
      Handle own = key(at);
      Handle wins =
          test(Op::And, test(Op::Eq, own, best), counts(hasMissing, own));
      return pure(Op::Select, DType::I64,
                  {wins, positionOf(at), number(greatest)}, loc);
    };
    Handle position = foldRange(Op::Min, place);
    Handle isNone = test(Op::Eq, position, number(greatest));
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

/// Sums of integers and truth values are made in i64, of f16 in f32.
template <size_t N, class F> auto sumOver(const Box<N> &range, F &f) {
  using T = TermType<F, N>;
  using Result = std::conditional_t<std::is_same_v<T, bool>, int64_t, T>;
  using Sum = std::conditional_t<isFloat(dtypeOf<T>), DerivativeOf<T>, int64_t>;
  Reduction<N> over(range);
  auto term = [&](const auto &at) {
    Handle value = valueAs<T>(callAt(f, at), over.loc);
    if constexpr (dtypeOf<T> != dtypeOf<Sum>)
      value = pure(Op::Cast, dtypeOf<Sum>, {value}, over.loc);
    return value;
  };
  Handle sum = over.fold(Op::Add, dtypeOf<Sum>, 0, term);
  if constexpr (dtypeOf<Result> != dtypeOf<Sum>)
    sum = pure(Op::Cast, dtypeOf<Result>, {sum}, over.loc);
  return Expr<Result>(sum);
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
/// extents; of truth values, how many hold. In serial code floats are added in
/// double precision, in an order that the extents decide.
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
