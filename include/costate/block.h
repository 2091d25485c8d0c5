#pragma once
/// Blocks of work items: memory that they share, and what they do together, on
/// GPUs. 32 neighbouring work items of a block are the lanes of a warp.

#include "costate/control.h"
#include "costate/detail/group.h"

namespace costate {

/// An option of a range: so many neighbouring work items are a block.
///
///     parallel(n, block_dim(128), [&](Index i) { ... });
struct BlockDim {
  int64_t workItems;
  Loc loc;
};
inline BlockDim
block_dim(int64_t workItems,
          std::source_location place = std::source_location::current()) {
  return {workItems, place};
}

template <size_t N, class F>
  requires(N > 0)
void parallel(const detail::Box<N> &extents, BlockDim blocks, F &&body) {
  detail::RangeScope<N> scope(extents.values, extents.loc);
  detail::setBlockDim(blocks.workItems, blocks.loc);
  detail::callAt(body, scope.indices());
}
template <size_t N, class F>
  requires(N >= 2 && N <= size_t(maxRank))
void parallel(const IndexOperand (&extents)[N], BlockDim blocks, F &&body) {
  parallel(detail::Box<N>(extents), blocks, body);
}
template <class F>
void parallel(IndexOperand extent, BlockDim blocks, F &&body) {
  parallel(detail::Box<1>({extent}), blocks, body);
}

namespace block {
template <class T> class SharedElement;
} // namespace block
template <class T> struct detail::TracedType<block::SharedElement<T>> {
  using type = T;
};

namespace block {

/// An element of a `Shared`. It stays a reference. `+=`, `-=`, `&=`, `|=` and
/// `^=` are atomic, as `atomic_add` and so on.
template <class T> class SharedElement : public detail::Ops<T> {
public:
  SharedElement(detail::Handle array, detail::Handle index, Loc loc)
      : array(array), index(index), loc(loc) {}
  SharedElement(const SharedElement &) = default;

  const SharedElement &operator=(const SharedElement &other) const {
    detail::storeLocal(array, index, other.value(loc), loc);
    return *this;
  }
  SharedElement &operator=(const SharedElement &other) {
    std::as_const(*this) = other;
    return *this;
  }
  const SharedElement &operator=(Source<T> source) const {
    detail::storeLocal(array, index, source.value, source.loc);
    return *this;
  }

#define COSTATE_ASSIGN(symbol, op, Condition)                                  \
  const SharedElement &operator symbol(Source<T> source) const                 \
    requires(Condition)                                                        \
  {                                                                            \
    (void)update(detail::Op::op, source);                                      \
    return *this;                                                              \
  }
  COSTATE_ASSIGN(+=, Add, detail::isNumber<T>)
  COSTATE_ASSIGN(&=, And, std::is_integral_v<T>)
  COSTATE_ASSIGN(|=, Or, std::is_integral_v<T>)
  COSTATE_ASSIGN(^=, Xor, std::is_integral_v<T>)
#undef COSTATE_ASSIGN
  const SharedElement &operator-=(Source<T> source) const
    requires(detail::isNumber<T>)
  {
    return *this += -Expr<T>(source.value);
  }

#define COSTATE_ATOMIC(name, op, Condition)                                    \
  friend Expr<T> name(const SharedElement &element, Source<T> value)           \
    requires(Condition)                                                        \
  {                                                                            \
    return element.update(detail::Op::op, value);                              \
  }
  COSTATE_ATOMIC(atomic_add, Add, detail::isNumber<T>)
  COSTATE_ATOMIC(atomic_min, Min, detail::isNumber<T>) // NaN counts as missing
  COSTATE_ATOMIC(atomic_max, Max, detail::isNumber<T>)
  COSTATE_ATOMIC(atomic_and, And, std::is_integral_v<T>)
  COSTATE_ATOMIC(atomic_or, Or, std::is_integral_v<T>)
  COSTATE_ATOMIC(atomic_xor, Xor, std::is_integral_v<T>)
#undef COSTATE_ATOMIC

  detail::Handle value(Loc at) const {
    return detail::loadLocal(dtypeOf<T>, array, index, at);
  }

private:
  Expr<T> update(detail::Op op, const Source<T> &source) const {
    return Expr<T>(
        detail::updateShared(op, array, index, source.value, source.loc));
  }

  detail::Handle array, index;
  Loc loc;
};

/// An array of N numbers that the work items of a block share. What they are at
/// first is left open; `sync` stands between a store and the load of another
/// work item.
template <Element T, int N> class Shared {
public:
  Shared(std::source_location place = std::source_location::current())
      : handle(detail::declareShared(dtypeOf<T>, N, place)) {}
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;

  SharedElement<T> operator[](IndexOperand index) const {
    return SharedElement<T>(handle, index.value, index.loc);
  }
  SharedElement<T> operator()(IndexOperand index) const {
    return (*this)[index];
  }

  /// How many elements there are.
  static constexpr int64_t size() { return N; }

private:
  detail::Handle handle;
};

} // namespace block

namespace detail {

inline Index indexOfThread(GroupOp op, Loc loc) {
  Handle number = group(op, DType::I32, {}, loc);
  return Index(pure(Op::Cast, DType::I64, {number}, loc));
}

/// The operands are given as they are traced.
template <class R>
Expr<R> together(GroupOp op, Loc loc, std::initializer_list<Handle> operands) {
  return Expr<R>(group(op, dtypeOf<R>, operands, loc));
}

/// Of what a lane gives to others.
template <class V> struct LaneNumber {
  using Type = V;
};
template <Traced V> struct LaneNumber<V> {
  using Type = TypeOf<V>;
};

} // namespace detail

namespace block {

/// Of this work item in its block, from 0.
inline Index
thread_index(std::source_location place = std::source_location::current()) {
  return detail::indexOfThread(detail::GroupOp::ThreadIndex, place);
}
/// Of the thread that runs this work item, among all threads.
inline Index global_thread_index(
    std::source_location place = std::source_location::current()) {
  return detail::indexOfThread(detail::GroupOp::GlobalThreadIndex, place);
}
/// Waits until all work items of the block have come here; then each sees what
/// the others have written.
inline void sync(std::source_location place = std::source_location::current()) {
  detail::group(detail::GroupOp::BlockSync, DType::I32, {}, place);
}
/// What this work item has written comes, for others of the block that look,
/// before what it writes later.
inline void
fence(std::source_location place = std::source_location::current()) {
  detail::group(detail::GroupOp::BlockFence, DType::I32, {}, place);
}

} // namespace block

namespace grid {

/// The same for all work items.
inline void
fence(std::source_location place = std::source_location::current()) {
  detail::group(detail::GroupOp::GridFence, DType::I32, {}, place);
}

} // namespace grid

/// What the lanes in `mask`, a bit for each, do together: all of them come to
/// the operation.
namespace warp {

using Mask = Operand<uint32_t>;

inline constexpr uint32_t all_lanes = ~uint32_t(0);
inline constexpr int size = 32;

// `value` of another lane; of lanes in front of the first one and behind the
// last one it is the own value.
#define COSTATE_SHUFFLE(name, op)                                              \
  template <class V, class T = typename detail::LaneNumber<V>::Type>           \
    requires(detail::isNumber<T> && sizeof(T) >= 4)                            \
  Expr<T> name(Mask mask, const V &value, Operand<int32_t> lanes,              \
               std::source_location place = std::source_location::current()) { \
    return detail::together<T>(                                                \
        detail::GroupOp::op, place,                                            \
        {mask.value, detail::valueAs<T>(value, place), lanes.value});          \
  }
COSTATE_SHUFFLE(shuffle, Shuffle)          ///< of lane `lanes`
COSTATE_SHUFFLE(shuffle_up, ShuffleUp)     ///< of `lanes` lanes before
COSTATE_SHUFFLE(shuffle_down, ShuffleDown) ///< of `lanes` lanes after
COSTATE_SHUFFLE(shuffle_xor, ShuffleXor)   ///< of the own lane ^ `lanes`
#undef COSTATE_SHUFFLE

#define COSTATE_VOTE(name, op, Result)                                         \
  inline Expr<Result> name(Mask mask, Operand<bool> holds,                     \
                           std::source_location place =                        \
                               std::source_location::current()) {              \
    return detail::together<Result>(detail::GroupOp::op, place,                \
                                    {mask.value, holds.value});                \
  }
COSTATE_VOTE(all, All, bool)
COSTATE_VOTE(any, Any, bool)
COSTATE_VOTE(unique, Unique, bool)     ///< whether all say the same
COSTATE_VOTE(ballot, Ballot, uint32_t) ///< the lanes where it holds
#undef COSTATE_VOTE

#define COSTATE_MATCH(name, op)                                                \
  template <class V, class T = typename detail::LaneNumber<V>::Type>           \
    requires(detail::isNumber<T> && sizeof(T) == 4)                            \
  Expr<uint32_t> name(Mask mask, const V &value,                               \
                      std::source_location place =                             \
                          std::source_location::current()) {                   \
    return detail::together<uint32_t>(                                         \
        detail::GroupOp::op, place,                                            \
        {mask.value, detail::valueAs<T>(value, place)});                       \
  }
COSTATE_MATCH(match_any, MatchAny) ///< the lanes with the same value
COSTATE_MATCH(match_all, MatchAll) ///< the mask if all have the same; else 0
#undef COSTATE_MATCH

/// Lanes that run together here.
inline Expr<uint32_t>
active_mask(std::source_location place = std::source_location::current()) {
  return detail::together<uint32_t>(detail::GroupOp::ActiveMask, place, {});
}
/// Waits until the lanes of `mask` have come here.
inline void sync(Mask mask,
                 std::source_location place = std::source_location::current()) {
  detail::group(detail::GroupOp::WarpSync, DType::I32, {mask.value}, place);
}

} // namespace warp
} // namespace costate
