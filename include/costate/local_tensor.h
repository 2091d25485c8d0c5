#pragma once
/// Private arrays of vectors and matrices.

#include "costate/local.h"
#include "costate/tensor.h"

namespace costate {

/// An element of a `Local` of vectors or matrices. It stays a reference.
template <class T, class S>
class LocalTensor : public detail::TensorPlace<const LocalTensor<T, S>, T, S> {
  using Base = detail::TensorPlace<const LocalTensor, T, S>;
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

  detail::Handles<S> components(Loc loc) const {
    detail::Handles<S> all;
    for (size_t k = 0; k < all.size(); ++k)
      all[k] = elements[k].value(loc);
    return all;
  }

private:
  friend class ComponentRef<T, S, true>;
  friend Base;

  LocalElement<T> component(size_t k) const { return elements[k]; }
  ComponentRef<T, S, true> chosen(const detail::Chosen<S> &position,
                                  Loc) const {
    return {*this, position};
  }

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
