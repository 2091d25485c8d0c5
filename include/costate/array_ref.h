#pragma once
/// An array argument inside a kernel.

#include "costate/detail/composite.h"

#include <algorithm>

namespace costate {

namespace detail {

/// The elements of an array inside a kernel; there is one array underneath for
/// each of `types`.
template <class T, int N, Layout L> struct ElementsOf {
  static_assert(Element<T>, "the elements of an array are numbers, vectors, "
                            "matrices, or structs with COSTATE_STRUCT");
  static_assert(N >= 0 && N <= maxRank, "an array has 0 to 8 dimensions");
  using Reference = ElementRef<T>;
  static constexpr int rank = N, first = 0;
  static constexpr std::array types{dtypeOf<T>};
  using Arrays = std::array<Handle, 1>;
  static ElementForm form(DType) { return {}; }
  static Reference at(const Arrays &arrays,
                      const std::array<Handle, maxRank> &indices, Loc loc) {
    return {Place{arrays[0], dtypeOf<T>, N, indices}, loc};
  }
};

/// Their numbers stand in a dimension of their own: in front, or after.
template <Composite T, int N, Layout L> struct ElementsOf<T, N, L> {
  static_assert(N >= 0 && N < maxRank,
                "an array of vectors, matrices or structs has 0 to 7 "
                "dimensions");
  using Reference = typename FormOf<T>::Reference;
  static constexpr int rank = N + 1, first = L == SoA;
  static constexpr auto types = [] {
    std::array<DType, size_t(FormOf<T>::numbers.kinds)> all;
    std::copy_n(FormOf<T>::numbers.types.begin(), all.size(), all.begin());
    return all;
  }();
  using Arrays = std::array<Handle, types.size()>;
  static ElementForm form(DType type) { return formOf<T>(L, type); }
  static Reference at(const Arrays &arrays,
                      const std::array<Handle, maxRank> &indices, Loc loc) {
    StructPlace places{{}, {{}, types[0], rank, {}}, L == SoA ? 0 : N, loc};
    for (size_t k = 0; k < types.size(); ++k)
      places.arrays[static_cast<size_t>(types[k])] = arrays[k];
    std::copy_n(indices.begin(), N, places.place.indices.begin() + first);
    return FormOf<T>::take(places);
  }
};

} // namespace detail

/// An array of T with N dimensions (0 to 8), contiguous and row-major:
/// `x(i, j)`, `x[i]` for one dimension, `x()` for none. Arrays of vectors,
/// matrices and structs say in which layout they are.
template <class T, int N, Layout L = AoS> class ArrayRef {
  using Elements = detail::ElementsOf<T, N, L>;
  using Reference = typename Elements::Reference;
  using I = IndexOperand;

public:
  static constexpr int rank = N;

  explicit ArrayRef(const typename Elements::Arrays &arrays) : arrays(arrays) {}

  /// The extent of dimension `dim`.
  Index size(int dim = 0,
             std::source_location place = std::source_location::current()) const
    requires(N > 0)
  {
    return Index(detail::extent(arrays[0], Elements::rank,
                                dim + Elements::first, place));
  }

  Reference
  operator()(std::source_location place = std::source_location::current()) const
    requires(N == 0)
  {
    return element(place, {});
  }
  Reference operator()(I a) const
    requires(N == 1)
  {
    return element(a.loc, {a.value});
  }
  Reference operator()(I a, I b) const
    requires(N == 2)
  {
    return element(a.loc, {a.value, b.value});
  }
  Reference operator()(I a, I b, I c) const
    requires(N == 3)
  {
    return element(a.loc, {a.value, b.value, c.value});
  }
  Reference operator()(I a, I b, I c, I d) const
    requires(N == 4)
  {
    return element(a.loc, {a.value, b.value, c.value, d.value});
  }
  Reference operator()(I a, I b, I c, I d, I e) const
    requires(N == 5)
  {
    return element(a.loc, {a.value, b.value, c.value, d.value, e.value});
  }
  Reference operator()(I a, I b, I c, I d, I e, I f) const
    requires(N == 6)
  {
    return element(a.loc,
                   {a.value, b.value, c.value, d.value, e.value, f.value});
  }
  Reference operator()(I a, I b, I c, I d, I e, I f, I g) const
    requires(N == 7)
  {
    return element(
        a.loc, {a.value, b.value, c.value, d.value, e.value, f.value, g.value});
  }
  Reference operator()(I a, I b, I c, I d, I e, I f, I g, I h) const
    requires(N == 8)
  {
    return element(a.loc, {a.value, b.value, c.value, d.value, e.value, f.value,
                           g.value, h.value});
  }
  Reference operator[](I a) const
    requires(N == 1)
  {
    return element(a.loc, {a.value});
  }

private:
  Reference element(Loc loc,
                    const std::array<detail::Handle, maxRank> &at) const {
    return Elements::at(arrays, at, loc);
  }

  typename Elements::Arrays arrays;
};

} // namespace costate
