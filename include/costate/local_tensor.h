#pragma once
/// Private arrays of vectors and matrices.

#include "costate/local.h"
#include "costate/tensor.h"

namespace costate {

/// An element of a `Local` of vectors or matrices. It stays a reference.
template <class T, class S> class LocalTensor : public detail::TensorOps<T, S> {
  using Elements = std::array<LocalElement<T>, size_t(S::count)>;

public:
  explicit LocalTensor(const Elements &elements) : elements(elements) {}
  LocalTensor(const LocalTensor &) = default;

  const LocalTensor &operator=(const LocalTensor &other) const {
    return assign(other.components(elements[0].loc), elements[0].loc);
  }
  LocalTensor &operator=(const LocalTensor &other) {
    std::as_const(*this) = other;
    return *this;
  }
  const LocalTensor &operator=(TensorSource<T, S> source) const {
    return assign(source.all, source.loc);
  }

  using Side = typename detail::TensorOps<T, S>::Side;
#define COSTATE_ASSIGN(symbol, op, Condition)                                  \
  const LocalTensor &operator symbol(Side source) const                        \
    requires(Condition)                                                        \
  {                                                                            \
    return update(detail::Op::op, source);                                     \
  }
  COSTATE_ASSIGN(+=, Add, detail::isNumber<T>)
  COSTATE_ASSIGN(-=, Sub, detail::isNumber<T>)
  COSTATE_ASSIGN(*=, Mul, detail::isNumber<T> &&S::rank == 1)
  COSTATE_ASSIGN(/=, Div, detail::isNumber<T> &&S::rank == 1)
#undef COSTATE_ASSIGN
  const LocalTensor &operator*=(Operand<T> factor) const
    requires(detail::isNumber<T> && S::rank == 2)
  {
    return update(detail::Op::Mul,
                  {detail::repeated<S>(factor.value), factor.loc});
  }
  const LocalTensor &operator/=(Operand<T> divisor) const
    requires(detail::isNumber<T> && S::rank == 2)
  {
    return update(detail::Op::Div,
                  {detail::repeated<S>(divisor.value), divisor.loc});
  }

  detail::Handles<S> components(Loc loc) const {
    detail::Handles<S> all;
    for (size_t k = 0; k < all.size(); ++k)
      all[k] = elements[k].value(loc);
    return all;
  }

  LocalElement<T> operator[](HostComponent k) const
    requires(S::rank == 1)
  {
    return elements[k.below(S::count)];
  }
  /// A component that is known when the kernel runs.
  ComponentRef<T, S, true> operator[](TracedComponent k) const
    requires(S::rank == 1)
  {
    return {*this, {{k.value}}};
  }
  template <detail::ComponentIndex I, detail::ComponentIndex J>
    requires(S::rank == 2)
  auto operator()(
      const I &i, const J &j,
      std::source_location place = std::source_location::current()) const {
    if constexpr (std::integral<I> && std::integral<J>)
      return elements[detail::position<S>(i, j, place)];
    else
      return ComponentRef<T, S, true>(*this, detail::chosen<S>(i, j, place));
  }

#define COSTATE_COMPONENT(name, k)                                             \
  LocalElement<T> name() const                                                 \
    requires(S::rank == 1 && S::count > k)                                     \
  {                                                                            \
    return elements[k];                                                        \
  }
  COSTATE_COMPONENT(x, 0)
  COSTATE_COMPONENT(y, 1)
  COSTATE_COMPONENT(z, 2)
  COSTATE_COMPONENT(w, 3)
#undef COSTATE_COMPONENT

private:
  friend class ComponentRef<T, S, true>;

  /// The component that is chosen becomes `value`, if there is one.
  void assign(const detail::Chosen<S> &chosen, detail::Handle value,
              Loc loc) const {
    detail::assignChosen<T>(
        components(loc), chosen, value, loc,
        [&](size_t k, detail::Handle next) { elements[k].assign(next, loc); });
  }
  const LocalTensor &assign(const detail::Handles<S> &all, Loc loc) const {
    for (size_t k = 0; k < all.size(); ++k)
      elements[k].assign(all[k], loc);
    return *this;
  }
  const LocalTensor &update(detail::Op op,
                            const detail::Components<S> &other) const {
    return assign(
        detail::mapped<T, S>(op, {components(other.loc), other.loc}, other)
            .components(other.loc),
        other.loc);
  }

  Elements elements;
};

namespace detail {
template <class T, class S>
struct TensorTypesOf<LocalTensor<T, S>> : TensorTypes<T, S> {};
} // namespace detail

/// N vectors or matrices: a private array for each component.
template <class T, class S, int N> class Local<TensorVar<T, S>, N> {
  using Place = std::source_location;
  using Parts = std::make_index_sequence<size_t(S::count)>;

public:
  Local(Place place = Place::current()) : Local(place, Parts()) {}
  Local(const Local &other, Place place = Place::current()) : Local(place) {
    parts = other.parts;
  }
  Local &operator=(const Local &) = default;

  LocalTensor<T, S> operator[](IndexOperand index) const {
    return at(index, Parts());
  }
  LocalTensor<T, S> operator()(IndexOperand index) const {
    return (*this)[index];
  }

  /// How many elements there are.
  static constexpr int64_t size() { return N; }

private:
  template <size_t... k>
  Local(Place place, std::index_sequence<k...>) : parts{part<k>(place)...} {}
  template <size_t> static Local<T, N> part(Place place) {
    return Local<T, N>(place);
  }
  template <size_t... k>
  LocalTensor<T, S> at(const IndexOperand &index,
                       std::index_sequence<k...>) const {
    return LocalTensor<T, S>({parts[k][index]...});
  }

  std::array<Local<T, N>, size_t(S::count)> parts;
};

} // namespace costate
