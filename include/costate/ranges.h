#pragma once
/// Ranges over the elements of an array, and over tiles.

#include "costate/array_ref.h"
#include "costate/control.h"

#include <array>

namespace costate {

/// All indices of `array`: a range for `parallel` and for reductions.
///
///     parallel(elements(x), [&](Index i, Index j) { x(i, j) = 0; });
template <class T, int N, Layout L>
detail::Box<size_t(N)>
elements(const ArrayRef<T, N, L> &array,
         std::source_location place = std::source_location::current()) {
  std::array<detail::Handle, size_t(N)> values;
  if constexpr (N > 0)
    for (int dim = 0; dim < N; ++dim)
      values[size_t(dim)] = array.size(dim, place).value(place);
  return {values, place};
}

/// For an array without dimensions: one work item, `body()`.
template <class F> void parallel(const detail::Box<0> &range, F &&body) {
  std::array one{detail::constant(DType::I64, 1, range.loc)};
  detail::RangeScope<1> scope(one, range.loc);
  body();
}

/// Runs `body` once for each element of `array`, with its indices.
template <class T, int N, Layout L, class F>
void parallel(const ArrayRef<T, N, L> &array, F &&body,
              std::source_location place = std::source_location::current()) {
  parallel(elements(array, place), body);
}

/// A box of neighbouring indices: those from `begin` on, in front of `end`.
template <size_t N> class Tile {
public:
  Tile(const std::array<detail::Handle, N> &first,
       const std::array<detail::Handle, N> &last, Loc loc)
      : first(first), last(last), loc(loc) {}

  Index begin(int dim = 0) const { return Index(first[size_t(dim)]); }
  Index end(int dim = 0) const { return Index(last[size_t(dim)]); }
  Index size(int dim = 0) const {
    return Index(detail::pure(detail::Op::Sub, DType::I64,
                              {last[size_t(dim)], first[size_t(dim)]}, loc));
  }

  /// Runs `body(Index i, Index j, ...)` for each of its index tuples, the last
  /// index first.
  template <class F> void each(F &&body) const {
    detail::forEach(first, last, loc,
                    [&](const auto &at) { detail::callAt(body, at); });
  }

private:
  std::array<detail::Handle, N> first, last;
  Loc loc;
};

namespace detail {

/// A range of tiles; see tiles().
template <size_t N> struct Tiling {
  Box<N> extents;
  std::array<int64_t, N> sizes;
};

} // namespace detail

/// Cuts a range into tiles of the given sizes, each 1 or more; those at the end
/// of a dimension may be smaller.
///
///     parallel(tiles({n, m}, {16, 16}), [&](Tile<2> tile) {
///       tile.each([&](Index i, Index j) { y(i, j) = f(x(i, j)); });
///     });
template <size_t N>
detail::Tiling<N> tiles(const detail::Box<N> &extents,
                        const int64_t (&sizes)[N]) {
  for (int64_t size : sizes)
    if (size < 1)
      detail::noTile(size, extents.loc);
  return {extents, std::to_array(sizes)};
}
template <size_t N>
  requires(N >= 2 && N <= size_t(maxRank))
detail::Tiling<N> tiles(const IndexOperand (&extents)[N],
                        const int64_t (&sizes)[N]) {
  return tiles(detail::Box<N>(extents), sizes);
}
inline detail::Tiling<1> tiles(IndexOperand extent, int64_t size) {
  return tiles(detail::Box<1>({extent}), {size});
}

namespace detail {

/// How many tiles of `size` cover `extent`, without overflow.
inline Handle tileCount(Handle extent, Handle size, Loc loc) {
  Handle whole = pure(Op::Div, DType::I64, {extent, size}, loc);
  Handle rest = pure(Op::Rem, DType::I64, {extent, size}, loc);
  Handle zero = constant(DType::I64, 0, loc);
  Handle isMore = pure(Op::Gt, DType::Bool, {rest, zero}, loc);
  Handle more = pure(Op::Cast, DType::I64, {isMore}, loc);
  return pure(Op::Add, DType::I64, {whole, more}, loc);
}

} // namespace detail

/// Runs `body(Tile<N> tile)` once for every tile, in any order and at the same
/// time.
template <size_t N, class F>
void parallel(const detail::Tiling<N> &range, F &&body) {
  Loc loc = range.extents.loc;
  std::array<detail::Handle, N> sizes, counts, first, last;
  for (size_t dim = 0; dim < N; ++dim) {
    sizes[dim] = detail::constant(DType::I64, uint64_t(range.sizes[dim]), loc);
    counts[dim] = detail::tileCount(range.extents.values[dim], sizes[dim], loc);
  }
  detail::RangeScope<N> scope(counts, loc);
  for (size_t dim = 0; dim < N; ++dim) {
    using enum detail::Op;
    detail::Handle extent = range.extents.values[dim];
    first[dim] =
        detail::pure(Mul, DType::I64, {scope.indices()[dim], sizes[dim]}, loc);
    detail::Handle left =
        detail::pure(Sub, DType::I64, {extent, first[dim]}, loc);
    detail::Handle size =
        detail::pure(Min, DType::I64, {left, sizes[dim]}, loc);
    last[dim] = detail::pure(Add, DType::I64, {first[dim], size}, loc);
  }
  body(Tile<N>(first, last, loc));
}

} // namespace costate
