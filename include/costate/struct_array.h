#pragma once
/// Arrays of structs whose members have several element types.

#include "costate/composite_array.h"
#include "costate/device.h"

namespace costate {

namespace detail {

/// A number of an element on the host.
struct HostPlace {
  size_t offset;
  DType type;
};

template <class A>
void addHostPlaces(std::vector<HostPlace> &places, const void *start,
                   const A &one) {
  auto add = [&](const auto &inner) { addHostPlaces(places, start, inner); };
  if constexpr (HostNumber<A>)
    places.push_back({size_t(reinterpret_cast<const char *>(&one) -
                             static_cast<const char *>(start)),
                      dtypeOf<A>});
  else if constexpr (requires { std::tuple_size<A>::value; })
    for (const auto &inner : one)
      add(inner);
  else
    one.costateEach(add);
}

/// The numbers of a C on the host, in the order of its members.
template <class C> std::vector<HostPlace> hostPlaces() {
  const HostOf<C> one{};
  std::vector<HostPlace> places;
  addHostPlaces(places, &one, one);
  return places;
}

/// An array for each element type of a struct. A part may be `borrowed`: it is
/// read, but not written.
class StructParts {
public:
  struct Part {
    AnyArray array;
    bool borrowed = false;
  };

  StructParts() = default;
  StructParts(const Device &device, const Extents &extents, Flags flags,
              ArrayOptions options, const NumberCounts &numbers,
              const std::string &name);

  /// Error(BadArgument) if there is none.
  const AnyArray &first() const;
  const AnyArray &of(DType type) const;
  const std::vector<Part> &all() const { return parts; }

  /// In elements.
  std::vector<int64_t> shape() const;
  int64_t size() const;
  bool has(bool (AnyArray::*companion)() const) const;
  /// The parts of adjoints or tangents; those without are borrowed.
  StructParts derived(bool (AnyArray::*has)() const,
                      AnyArray (AnyArray::*companion)() const) const;

  /// `count` elements of the host, `stride` bytes apart.
  void write(const void *from, size_t count, size_t stride,
             const std::vector<HostPlace> &places, Loc loc);
  /// All elements become the one at `from`.
  void fill(const void *from, size_t bytes,
            const std::vector<HostPlace> &places, Loc loc);
  void read(void *to, size_t stride,
            const std::vector<HostPlace> &places) const;

private:
  std::vector<Part> parts;
};

} // namespace detail

/// An array of C, of any rank up to 7, where the members of C have several
/// element types. On the host an element is a Host, a struct with members of
/// the same names. Underneath there is an array of numbers for each type.
template <class C>
  requires detail::Mixed<C>
class Array<C> {
  using Parts = detail::StructParts;
  static constexpr detail::NumberCounts numbers() {
    return detail::FormOf<C>::numbers;
  }

public:
  using Host = detail::HostOf<C>;
  static_assert(std::is_trivially_copyable_v<Host>);

  Array() = default;
  /// See Device::array.
  static Array make(const Device &device, const Extents &extents, Flags flags,
                    ArrayOptions options) {
    return Array(Parts(device, extents, flags, options, numbers(),
                       detail::FormOf<C>::name()));
  }
  explicit operator bool() const { return !parts.all().empty(); }

  /// The adjoints or tangents of members of float types. Others are those of
  /// the array itself: they are read, but from_host and fill leave them alone.
  /// Error(MissingGradient) if there are none.
  Array grad() const { return derived(&AnyArray::has_grad, &AnyArray::grad); }
  Array dual() const { return derived(&AnyArray::has_dual, &AnyArray::dual); }
  bool has_grad() const { return parts.has(&AnyArray::has_grad); }
  bool has_dual() const { return parts.has(&AnyArray::has_dual); }

  Layout layout() const { return parts.first().form().layout; }
  std::vector<int64_t> shape() const { return parts.shape(); }
  int rank() const { return parts.first().rank() - 1; }
  int64_t size() const { return parts.size(); }
  int64_t size(int dim) const {
    const AnyArray &one = parts.first();
    return one.size(dim < one.component_dim() ? dim : dim + 1);
  }
  Device device() const { return parts.first().device(); }

  void fill(const Host &value, Loc loc = std::source_location::current()) {
    parts.fill(&value, sizeof value, detail::hostPlaces<C>(), loc);
  }
  /// Replaces all elements, row-major. Error(BadArgument) unless there are as
  /// many values as elements.
  void from_host(const std::vector<Host> &values,
                 Loc loc = std::source_location::current()) {
    parts.write(values.data(), values.size(), sizeof(Host),
                detail::hostPlaces<C>(), loc);
  }
  /// All elements, row-major.
  std::vector<Host> to_host() const {
    std::vector<Host> values(static_cast<size_t>(size()));
    parts.read(values.data(), sizeof(Host), detail::hostPlaces<C>());
    return values;
  }

  /// The array of all numbers of one type, such as `part<double>()`; for
  /// CustomLaunch, and to look at.
  template <Element T>
    requires(numbers().of(dtypeOf<T>) > 0)
  AnyArray part() const {
    return parts.of(dtypeOf<T>);
  }
  /// Underneath, all of them are arguments of a kernel.
  template <class F> void costateEach(const F &use) const {
    for (const typename Parts::Part &part : parts.all())
      use(part.array);
  }

private:
  explicit Array(Parts parts) : parts(std::move(parts)) {}

  Array derived(bool (AnyArray::*has)() const,
                AnyArray (AnyArray::*companion)() const) const {
    static_assert(numbers().of(DType::F16) == 0,
                  "adjoints and tangents of f16 are float: take "
                  "part<f16>().grad() or dual()");
    return Array(parts.derived(has, companion));
  }

  Parts parts;
};

} // namespace costate
