#pragma once
/// What arrays and kernels know about vectors, matrices and structs: so many
/// numbers of these types.

#include "costate/tensor.h"

#include <tuple>

namespace costate::detail {

/// Where the numbers of one element of an array are: those from `first` on, in
/// dimension `dim` of the array.
struct ComponentPlace {
  Place place;
  int dim = 0;
  int first = 0;
  Loc loc;

  Place at(Handle component) const {
    Place one = place;
    one.indices[static_cast<size_t>(dim)] = component;
    return one;
  }
  Place at(int component) const {
    return at(
        constant(DType::I64, static_cast<uint64_t>(first + component), loc));
  }
  Place at(const Input &component) const {
    if (!first)
      return at(component.value);
    Handle offset = constant(DType::I64, static_cast<uint64_t>(first), loc);
    return at(
        pure(Op::Add, DType::I64, {component.value, offset}, component.loc));
  }
};

/// Where the members of a struct in arrays are: a ComponentPlace for each
/// element type, of what has not been taken yet.
struct StructPlace {
  std::array<Handle, dtypeCount> arrays;
  Place place; ///< but for its array
  int dim = 0;
  Loc loc;
  std::array<int, dtypeCount> taken{};

  ComponentPlace take(DType type, int count) {
    auto index = static_cast<size_t>(type);
    ComponentPlace next{place, dim, taken[index], loc};
    next.place.array = arrays[index];
    next.place.type = type;
    taken[index] += count;
    return next;
  }
};

/// How many numbers of which types something has.
struct NumberCounts {
  std::array<int, dtypeCount> counts{};
  std::array<DType, dtypeCount> types{}; ///< in the order of their first one
  int kinds = 0;

  constexpr void add(DType type, int count) {
    int &sum = counts[static_cast<size_t>(type)];
    if (!sum)
      types[static_cast<size_t>(kinds++)] = type;
    sum += count;
  }
  constexpr void add(const NumberCounts &other) {
    for (int k = 0; k < other.kinds; ++k)
      add(other.types[static_cast<size_t>(k)],
          other.of(other.types[static_cast<size_t>(k)]));
  }
  constexpr int of(DType type) const {
    return counts[static_cast<size_t>(type)];
  }
};

constexpr NumberCounts numbersOf(DType type, int count) {
  NumberCounts numbers;
  numbers.add(type, count);
  return numbers;
}

/// How a type is made of numbers; empty for others.
template <class C> struct FormOf {};

template <class T> struct FormOf<Var<T>> {
  using Number = T;
  using Host = T;
  using Reference = ElementRef<T>;
  using Value = Expr<T>;
  static constexpr int count = 1;
  static constexpr NumberCounts numbers = numbersOf(dtypeOf<T>, 1);
  static ElementRef<T> take(StructPlace &places) {
    ComponentPlace place = places.take(dtypeOf<T>, 1);
    return {place.at(0), place.loc};
  }
};

template <class T, class S> struct FormOf<TensorVar<T, S>> {
  using Number = T;
  using Host = typename HostTensor<T, S>::type;
  using Reference = TensorRef<T, S>;
  using Value = TensorExpr<T, S>;
  static constexpr int count = S::count;
  static constexpr NumberCounts numbers = numbersOf(dtypeOf<T>, S::count);
  static TensorRef<T, S> take(StructPlace &places) {
    return TensorRef<T, S>(places.take(dtypeOf<T>, count));
  }
  static std::string name() {
    std::string text = S::rank == 1 ? "Vec<" : "Mat<";
    text += nameOf(dtypeOf<T>);
    for (int extent : S::extent)
      text += ", " + std::to_string(extent);
    return text + ">";
  }
};

/// May be the element of an array.
template <class C>
concept Composite = requires { FormOf<C>::name(); };
/// Its members have several element types: one array for each.
template <class C>
concept Mixed = Composite<C> && FormOf<C>::numbers.kinds > 1;
template <class C>
concept Uniform = Composite<C> && !Mixed<C>;
template <class C> using NumberOf = typename FormOf<C>::Number;
template <class C> struct HostTypeOf {
  using type = typename FormOf<C>::Host;
};
template <class C> using HostOf = typename HostTypeOf<C>::type;

/// The elements of adjoints and tangents.
template <class C> struct DerivedForm {
  static_assert(!std::is_same_v<NumberOf<C>, f16>,
                "adjoints and tangents of a struct of f16 are float, for which "
                "there is no struct: take AnyArray::grad() or dual()");
  using type = C;
};
template <class T, class S> struct DerivedForm<TensorVar<T, S>> {
  using type = TensorVar<DerivativeOf<T>, S>;
};

/// Of the array with those numbers of a C that are of this type.
template <Composite C> ElementForm formOf(Layout layout, DType type) {
  return {FormOf<C>::name(), FormOf<C>::numbers.of(type), layout, Mixed<C>};
}
template <Uniform C> ElementForm formOf(Layout layout) {
  return formOf<C>(layout, dtypeOf<NumberOf<C>>);
}

} // namespace costate::detail

namespace costate {

/// A vector or matrix in an array. Reading it loads, `=` stores, `+=` and `-=`
/// are atomic adds of each component, `*=` and `/=` a load and a store. It
/// stays a reference, as ElementRef.
template <class T, class S>
class TensorRef : public detail::TensorPlace<const TensorRef<T, S>, T, S> {
  using Base = detail::TensorPlace<const TensorRef, T, S>;
  using typename Base::Side;

public:
  explicit TensorRef(const detail::ComponentPlace &place) : place(place) {}
  TensorRef(const TensorRef &) = default;

  const TensorRef &operator=(const TensorRef &other) const {
    return *this = TensorSource<T, S>(
               TensorExpr<T, S>(other.components(place.loc)));
  }
  TensorRef &operator=(const TensorRef &other) {
    std::as_const(*this) = other;
    return *this;
  }
  const TensorRef &operator=(TensorSource<T, S> source) const {
    for (int k = 0; k < S::count; ++k)
      detail::store(place.at(k), source.all[size_t(k)], source.loc);
    return *this;
  }

  const TensorRef &operator+=(Side source) const
    requires(detail::isNumber<T>)
  {
    for (int k = 0; k < S::count; ++k)
      detail::update(detail::Op::Add, place.at(k), source.all[size_t(k)],
                     source.loc);
    return *this;
  }
  const TensorRef &operator-=(Side source) const
    requires(detail::isNumber<T>)
  {
    return *this +=
           TensorExpr<T, S>(detail::mapped<T, S>(detail::Op::Neg, source));
  }

  detail::Handles<S> components(Loc loc) const {
    detail::Handles<S> all;
    for (int k = 0; k < S::count; ++k)
      all[size_t(k)] = detail::load(place.at(k), loc);
    return all;
  }

  template <std::integral I, std::integral J>
    requires(S::rank == 2)
  ElementRef<T>
  operator()(I i, J j,
             std::source_location at = std::source_location::current()) const {
    return component(detail::position<S>(i, j, at));
  }
  template <detail::ComponentIndex I, detail::ComponentIndex J>
    requires(S::rank == 2 && !(std::integral<I> && std::integral<J>))
  ElementRef<T>
  operator()(const I &i, const J &j,
             std::source_location at = std::source_location::current()) const {
    detail::Handle row = detail::pure(
        detail::Op::Mul, DType::I64,
        {detail::valueAs<int64_t>(i, at),
         detail::constant(DType::I64, uint64_t(S::extent[S::rank - 1]), at)},
        at);
    Index position(detail::pure(detail::Op::Add, DType::I64,
                                {row, detail::valueAs<int64_t>(j, at)}, at));
    return {place.at(TracedComponent(position, at)), at};
  }

private:
  friend Base;

  ElementRef<T> component(size_t k) const {
    return {place.at(int(k)), place.loc};
  }
  /// It has to exist.
  ElementRef<T> chosen(const detail::Chosen<S> &position, Loc loc) const {
    return {place.at(detail::Input{position.index[0], loc}), loc};
  }

  /// A load and a store.
  const TensorRef &update(detail::Op op,
                          const detail::Components<S> &other) const {
    return *this = TensorSource<T, S>(detail::mapped<T, S>(
               op, {components(other.loc), other.loc}, other));
  }

  detail::ComponentPlace place;
};

} // namespace costate
