#pragma once
/// Control flow in a kernel as plain functions; syntax.h has macros for those
/// who prefer blocks. Conditions and bounds are traced values or host values.

#include "costate/expr.h"

#include <concepts>
#include <tuple>
#include <utility>

namespace costate {

/// An option of a loop: its gradient keeps no more than so many states of it,
/// and runs the iterations between two of them again.
struct Checkpoints {
  int64_t most = 0; ///< 0: it keeps what it needs of each iteration
  Loc loc;
};
inline Checkpoints
checkpoints(int64_t most,
            std::source_location place = std::source_location::current()) {
  return {most, place};
}

namespace detail {

/// What WHILE is given.
struct LoopCondition {
  template <class C>
    requires std::convertible_to<C, Expr<bool>>
  LoopCondition(C &&condition) : condition(std::forward<C>(condition)) {}
  LoopCondition(Expr<bool> condition, Checkpoints checkpoints)
      : condition(condition), checkpoints(checkpoints) {}

  Expr<bool> condition;
  Checkpoints checkpoints;
};

inline void keep(Checkpoints checkpoints) {
  if (checkpoints.loc.line)
    keepCheckpoints(checkpoints.most, checkpoints.loc);
}

/// An open block of the kernel.
class Scope {
public:
  Scope() = default;
  Scope(const Scope &) = delete;
  ~Scope() { end(); }
};

class IfScope : Scope {
public:
  IfScope(Operand<bool> condition) { beginIf(condition.value, condition.loc); }
};

class ElseScope : Scope {
public:
  ElseScope(std::source_location place = std::source_location::current()) {
    beginElse(place);
  }
};

class ElifScope : Scope {
public:
  template <class F>
  ElifScope(F &&condition,
            std::source_location place = std::source_location::current()) {
    beginElif(place);
    beginElifBody(Operand<bool>(condition()).value, place);
  }
};

class WhileScope : Scope {
public:
  template <class F>
  WhileScope(F &&condition,
             std::source_location place = std::source_location::current()) {
    beginWhile(place);
    auto given = condition();
    if constexpr (std::same_as<decltype(given), LoopCondition>) {
      beginWhileBody(Operand<bool>(given.condition).value, place);
      keep(given.checkpoints);
    } else {
      beginWhileBody(Operand<bool>(given).value, place);
    }
  }
};

class ForScope : Scope {
public:
  ForScope(IndexOperand lo, IndexOperand hi, IndexOperand step)
      : handle(beginFor(lo.value, hi.value, step.value, lo.loc)) {}
  ForScope(Handle lo, Handle hi, Loc loc)
      : handle(beginFor(lo, hi, constant(DType::I64, 1, loc), loc)) {}
  ForScope(IndexOperand lo, IndexOperand hi)
      : ForScope(lo, hi, IndexOperand(1)) {}
  ForScope(IndexOperand lo, IndexOperand hi, IndexOperand step,
           Checkpoints checkpoints)
      : ForScope(lo, hi, step) {
    keep(checkpoints);
  }
  ForScope(IndexOperand lo, IndexOperand hi, Checkpoints checkpoints)
      : ForScope(lo, hi, IndexOperand(1), checkpoints) {}
  Index index() const { return Index(handle); }

private:
  Handle handle;
};

template <size_t N> class RangeScope : Scope {
public:
  explicit RangeScope(std::span<const Handle, N> extents, Loc loc) {
    beginRange(extents, handles.data(), loc);
  }
  const std::array<Handle, N> &indices() const { return handles; }

private:
  std::array<Handle, N> handles;
};

template <class F, size_t N>
decltype(auto) callAt(F &&body, const std::array<Handle, N> &indices) {
  return std::apply(
      [&](auto... handle) -> decltype(auto) { return body(Index(handle)...); },
      indices);
}

/// A nest of loops from `first` to `last`, the last index first; `body` gets
/// the indices.
template <size_t N, class F, size_t D = 0>
void forEach(const std::array<Handle, N> &first,
             const std::array<Handle, N> &last, Loc loc, F &&body,
             std::array<Handle, D> outer = {}) {
  if constexpr (D == N) {
    body(outer);
  } else {
    ForScope loop(first[D], last[D], loc);
    std::array<Handle, D + 1> at;
    std::copy(outer.begin(), outer.end(), at.begin());
    at[D] = loop.index().value(loc);
    forEach(first, last, loc, body, at);
  }
}

/// The sizes of a range, and the place that gives them.
template <size_t N> struct Box {
  std::array<Handle, N> values;
  Loc loc;

  Box(const std::array<Handle, N> &values, Loc loc)
      : values(values), loc(loc) {}
  Box(const IndexOperand (&extents)[N])
    requires(N > 0)
      : loc(extents[0].loc) {
    for (size_t dim = 0; dim < N; ++dim)
      values[dim] = extents[dim].value;
  }
};

} // namespace detail

/// `condition, checkpoints(k)` in the brackets of a WHILE.
template <class C>
  requires std::convertible_to<C, Expr<bool>>
detail::LoopCondition operator,(C &&condition, Checkpoints checkpoints) {
  return {Expr<bool>(std::forward<C>(condition)), checkpoints};
}

template <size_t N, class F>
  requires(N > 0)
void parallel(const detail::Box<N> &extents, F &&body) {
  detail::RangeScope<N> scope(extents.values, extents.loc);
  detail::callAt(body, scope.indices());
}

/// Runs `body(Index i, Index j, ...)` once for every index tuple below
/// `extents`, in any order and at the same time. An extent below 0 counts as 0.
template <size_t N, class F>
  requires(N >= 2 && N <= size_t(maxRank))
void parallel(const IndexOperand (&extents)[N], F &&body) {
  parallel(detail::Box<N>(extents), body);
}
template <class F> void parallel(IndexOperand extent, F &&body) {
  parallel(detail::Box<1>({extent}), body);
}

/// Runs `body(Index i)` for i = lo, lo + step, ... in front of hi; a negative
/// step counts down. Bounds and step are evaluated once.
template <class F>
void for_(IndexOperand lo, IndexOperand hi, IndexOperand step, F &&body) {
  detail::ForScope scope(lo, hi, step);
  body(scope.index());
}
template <class F> void for_(IndexOperand lo, IndexOperand hi, F &&body) {
  detail::ForScope scope(lo, hi);
  body(scope.index());
}

template <class F>
void for_(IndexOperand lo, IndexOperand hi, IndexOperand step,
          Checkpoints checkpoints, F &&body) {
  detail::ForScope scope(lo, hi, step, checkpoints);
  body(scope.index());
}
template <class F>
void for_(IndexOperand lo, IndexOperand hi, Checkpoints checkpoints, F &&body) {
  detail::ForScope scope(lo, hi, checkpoints);
  body(scope.index());
}

/// Runs `body()` as long as `condition()` holds. The condition is traced once;
/// it changes nothing.
template <class Condition, class F>
void while_(Condition &&condition, F &&body,
            std::source_location place = std::source_location::current()) {
  detail::WhileScope scope(condition, place);
  body();
}

template <class F> void if_(Operand<bool> condition, F &&then) {
  detail::IfScope scope(condition);
  then();
}
template <class F, class G>
void if_(Operand<bool> condition, F &&then, G &&otherwise) {
  Loc loc = condition.loc;
  if_(condition, then);
  detail::beginElse(loc);
  detail::Scope scope;
  otherwise();
}

/// Leaves the innermost loop.
inline void
break_(std::source_location place = std::source_location::current()) {
  detail::jumpBreak(place);
}
/// Goes on with the next iteration of the innermost loop.
inline void
continue_(std::source_location place = std::source_location::current()) {
  detail::jumpContinue(place);
}
/// Ends the work item of `parallel`; in serial code, the kernel.
inline void
return_(std::source_location place = std::source_location::current()) {
  detail::jumpReturn(place);
}

} // namespace costate
