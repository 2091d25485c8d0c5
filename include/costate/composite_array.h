#pragma once
/// Arrays of vectors, matrices, and structs of one element type.

#include "costate/array.h"
#include "costate/detail/composite.h"

#include <algorithm>
#include <cstring>

namespace costate {

/// An array of C, of any rank up to 7. On the host an element is a Host: a
/// std::array of the components of a vector, of the rows of a matrix, or a
/// struct of these. Underneath it is an array of numbers with one dimension
/// more, the last one in AoS layout and the first one in SoA layout.
template <class C>
  requires detail::Uniform<C>
class Array<C> : public AnyArray {
  using Number = detail::NumberOf<C>;
  static constexpr size_t count = detail::FormOf<C>::count;

public:
  using Host = detail::HostOf<C>;
  static_assert(sizeof(Host) == count * sizeof(Number) &&
                std::is_trivially_copyable_v<Host>);

  Array() = default;
  /// Error(BadArgument) if the elements of `array` are not C.
  explicit Array(AnyArray array) : AnyArray(std::move(array)) {
    check_form(dtypeOf<Number>, detail::formOf<C>(AoS));
  }

  auto grad() const { return derived(AnyArray::grad()); }
  auto dual() const { return derived(AnyArray::dual()); }
  Layout layout() const { return form().layout; }

  /// In elements.
  std::vector<int64_t> shape() const {
    std::vector<int64_t> extents = AnyArray::shape();
    extents.erase(extents.begin() + component_dim());
    return extents;
  }
  int rank() const { return AnyArray::rank() - 1; }
  int64_t size() const { return AnyArray::size() / int64_t(count); }
  int64_t size(int dim) const {
    return AnyArray::size(dim < component_dim() ? dim : dim + 1);
  }

  void fill(const Host &value, Loc loc = std::source_location::current()) {
    std::array<Number, count> numbers;
    std::memcpy(&numbers, &value, sizeof numbers);
    if (std::count(numbers.begin(), numbers.end(), numbers[0]) == count)
      return fill_element(&numbers[0], loc);
    from_host(std::vector<Host>(static_cast<size_t>(size()), value), loc);
  }
  /// Replaces all elements, row-major. Error(BadArgument) unless there are as
  /// many values as elements.
  void from_host(const std::vector<Host> &values,
                 Loc loc = std::source_location::current()) {
    std::vector<std::array<Number, count>> numbers(values.size());
    if (!values.empty())
      std::memcpy(numbers.data(), values.data(), bytesOf(values));
    if (trailing() > 1 && values.size() == static_cast<size_t>(size()))
      numbers = permuted(numbers, trailing(), true);
    write(numbers.data(), bytesOf(values), loc);
  }
  /// All elements, row-major.
  std::vector<Host> to_host() const {
    std::vector<Host> values(static_cast<size_t>(size()));
    std::vector<std::array<Number, count>> numbers(values.size());
    read(numbers.data(), bytesOf(values));
    if (trailing() > 1)
      numbers = permuted(numbers, trailing(), false);
    if (!values.empty())
      std::memcpy(values.data(), numbers.data(), bytesOf(values));
    return values;
  }

private:
  static auto derived(AnyArray array) {
    return Array<typename detail::DerivedForm<C>::type>(std::move(array));
  }

  using Numbers = std::vector<std::array<Number, count>>;

  static size_t bytesOf(const std::vector<Host> &values) {
    return values.size() * sizeof(Host);
  }
  /// The number of elements whose first components stand side by side.
  size_t trailing() const {
    size_t product = 1;
    std::vector<int64_t> extents = AnyArray::shape();
    for (size_t dim = size_t(component_dim()) + 1; dim < extents.size(); ++dim)
      product *= static_cast<size_t>(extents[dim]);
    return product;
  }
  /// From elements to components for `run` elements each, or back.
  static Numbers permuted(const Numbers &from, size_t run, bool toComponents) {
    Numbers to(from.size());
    const Number *source = from.data()->data();
    Number *target = to.data()->data();
    for (size_t start = 0; start < from.size(); start += run)
      for (size_t i = 0; i < run; ++i)
        for (size_t k = 0; k < count; ++k) {
          size_t element = start * count + i * count + k;
          size_t component = start * count + k * run + i;
          target[toComponents ? component : element] =
              source[toComponents ? element : component];
        }
    return to;
  }
};

} // namespace costate
