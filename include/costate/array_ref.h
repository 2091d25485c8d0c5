#pragma once
/// An array argument inside a kernel.

#include "costate/expr.h"

namespace costate {

/// An array of T with N dimensions (0 to 8), contiguous and row-major:
/// `x(i, j)`, `x[i]` for one dimension, `x()` for none.
template <class T, int N> class ArrayRef {
  static_assert(N >= 0 && N <= maxRank, "an array has 0 to 8 dimensions");
  using I = IndexOperand;

public:
  static constexpr int rank = N;

  explicit ArrayRef(detail::Handle handle) : handle(handle) {}

  /// The extent of dimension `dim`.
  Index size(int dim = 0,
             std::source_location place = std::source_location::current()) const
    requires(N > 0)
  {
    return Index(detail::extent(handle, N, dim, place));
  }

  ElementRef<T>
  operator()(std::source_location place = std::source_location::current()) const
    requires(N == 0)
  {
    return element(place, {});
  }
  ElementRef<T> operator()(I a) const
    requires(N == 1)
  {
    return element(a.loc, {a.value});
  }
  ElementRef<T> operator()(I a, I b) const
    requires(N == 2)
  {
    return element(a.loc, {a.value, b.value});
  }
  ElementRef<T> operator()(I a, I b, I c) const
    requires(N == 3)
  {
    return element(a.loc, {a.value, b.value, c.value});
  }
  ElementRef<T> operator()(I a, I b, I c, I d) const
    requires(N == 4)
  {
    return element(a.loc, {a.value, b.value, c.value, d.value});
  }
  ElementRef<T> operator()(I a, I b, I c, I d, I e) const
    requires(N == 5)
  {
    return element(a.loc, {a.value, b.value, c.value, d.value, e.value});
  }
  ElementRef<T> operator()(I a, I b, I c, I d, I e, I f) const
    requires(N == 6)
  {
    return element(a.loc,
                   {a.value, b.value, c.value, d.value, e.value, f.value});
  }
  ElementRef<T> operator()(I a, I b, I c, I d, I e, I f, I g) const
    requires(N == 7)
  {
    return element(
        a.loc, {a.value, b.value, c.value, d.value, e.value, f.value, g.value});
  }
  ElementRef<T> operator()(I a, I b, I c, I d, I e, I f, I g, I h) const
    requires(N == 8)
  {
    return element(a.loc, {a.value, b.value, c.value, d.value, e.value, f.value,
                           g.value, h.value});
  }
  ElementRef<T> operator[](I a) const
    requires(N == 1)
  {
    return element(a.loc, {a.value});
  }

private:
  ElementRef<T> element(Loc loc,
                        const std::array<detail::Handle, maxRank> &at) const {
    return ElementRef<T>(detail::Place{handle, dtypeOf<T>, N, at}, loc);
  }

  detail::Handle handle;
};

} // namespace costate
