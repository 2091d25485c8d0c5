#pragma once
/// Arrays on a device.

#include "costate/error.h"
#include "costate/types.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

namespace costate {

class Device;
namespace runtime {
struct ArrayStorage;
}

/// What an array carries beside its values: an adjoint array for reverse mode
/// (`grad`), a tangent array for forward mode (`dual`), or both (`grad |
/// dual`). With `dual`, its adjoint and its tangent have tangents as well,
/// which are made, all zero, when they are first used.
enum Flags { none = 0, grad = 1, dual = 2 };
constexpr Flags operator|(Flags a, Flags b) {
  return static_cast<Flags>(static_cast<int>(a) | static_cast<int>(b));
}

/// The shape of an array: `{}` (rank 0, one element), `{n}`, `{n, m}`, ... of
/// any integer types, or a `std::vector<int64_t>`.
class Extents {
public:
  struct Extent {
    int64_t value;
    template <std::integral I>
    constexpr Extent(I extent)
        : value(std::in_range<int64_t>(extent)
                    ? static_cast<int64_t>(extent)
                    : std::numeric_limits<int64_t>::max()) {}
  };

  Extents() = default;
  Extents(std::initializer_list<Extent> extents) {
    for (Extent extent : extents)
      values.push_back(extent.value);
  }
  Extents(std::vector<int64_t> extents) : values(std::move(extents)) {}
  operator const std::vector<int64_t> &() const { return values; }

private:
  std::vector<int64_t> values;
};

/// Memory that somebody else has allocated; see Device::adopt.
struct OutsideMemory {
  /// Where the device can address it: aligned to its elements.
  void *address = nullptr;
  /// Called once, on any thread, when no array needs the memory any more; also
  /// if it is not adopted after all. Must not throw.
  std::function<void()> release = {};
  /// Whoever else writes the memory says so by written_outside(). Otherwise
  /// every launch counts as one after such a write: Error(CannotReplay) for
  /// gradients that look at what the memory held before.
  bool announced = false;
  /// `release` need not wait for what the device has queued: the memory is used
  /// again only after it, on the same stream.
  bool stream_ordered = false;
};

/// Memory of an array in the hands of others; see AnyArray::lend.
struct LentMemory {
  void *address = nullptr; ///< on the device; null if there are no elements
  /// While a copy of it lives, so does the memory.
  std::shared_ptr<void> hold = {};
};

/// A handle to an array of any element type. Copies share the storage, which
/// lives as long as any handle. A default-made handle has no storage; using it
/// is Error(BadArgument). Handles may be used from several threads; writing one
/// array while something else uses it is a race of the caller.
class AnyArray {
public:
  AnyArray() = default;
  explicit AnyArray(std::shared_ptr<runtime::ArrayStorage> storage)
      : handle(std::move(storage)) {}
  explicit operator bool() const { return handle != nullptr; }

  DType dtype() const;
  int rank() const;
  /// The extents, outermost first.
  std::vector<int64_t> shape() const;
  /// Of an array of vectors, matrices or structs: what they are. shape() and
  /// size() of an AnyArray then count numbers, which stand in dimension
  /// component_dim().
  const ElementForm &form() const;
  int component_dim() const;
  /// The number of elements.
  int64_t size() const;
  /// The extent of dimension `dim`. Error(BadArgument) unless 0 <= dim < rank.
  int64_t size(int dim) const;
  size_t bytes() const;
  Device device() const;

  bool has_grad() const;
  bool has_dual() const;
  /// The adjoint (tangent) array: same shape (but see
  /// ArrayOptions::directions), dtype (but f32 for f16) and device. It lives on
  /// even if this array does not. Error(MissingGradient) if there is none;
  /// Error(OutOfMemory) if it is made now and does not fit.
  AnyArray grad() const;
  AnyArray dual() const;

  /// Counts the writes to this array by launches and by the host.
  uint64_t version() const;

  /// Copies all elements in or out; waits for launches that use the array.
  /// Error(BadArgument) if `bytes` is not bytes().
  void write(const void *from, size_t bytes,
             Loc loc = std::source_location::current());
  void read(void *to, size_t bytes) const;
  /// Copies in the elements at `index`, which counts along the outermost
  /// dimensions: one number if it has an index for each, else all behind it,
  /// row-major. A Tape records just these. Error(BadArgument) if they are not
  /// `bytes`, or `index` is outside.
  void write_at(std::span<const int64_t> index, const void *from, size_t bytes,
                Loc loc = std::source_location::current());
  /// Copies out the elements at `index`, and waits for launches that use the
  /// array. The same errors.
  void read_at(std::span<const int64_t> index, void *to, size_t bytes) const;

  /// Somebody else has written the memory of this array, which is adopted or
  /// lent: counts as a write by the host. What gradients need of it is lost.
  void written_outside(Loc loc = std::source_location::current());
  /// Lets others use the memory, without a copy. If it is `writable`, they may
  /// write it until they drop what holds it, which OutsideMemory::announced
  /// says the consequences of. What the device has queued may still be running:
  /// synchronize() waits for it. Error(BadArgument) for `writable` while a
  /// `Tape` records on this thread.
  LentMemory lend(bool writable, Loc loc = std::source_location::current());

  const std::shared_ptr<runtime::ArrayStorage> &storage() const {
    return handle;
  }

protected:
  void fill_element(const void *element, Loc loc);
  void check_dtype(DType expected) const;
  void check_form(DType dtype, const ElementForm &expected) const;
  const void *address() const;
  void *writable_address(Loc loc);

private:
  std::shared_ptr<runtime::ArrayStorage> handle;
};

/// An array of `T` of any rank up to 8, row-major and contiguous; made by
/// Device::array, all zero. `Array<long>` and `Array<long long>` are both i64.
template <class T> class Array : public AnyArray {
  static_assert(Element<T>, "the elements of an array are numbers, vectors, "
                            "matrices, or structs with COSTATE_STRUCT");

public:
  Array() = default;
  /// Error(BadArgument) if the elements of `array` are not `T`.
  explicit Array(AnyArray array) : AnyArray(std::move(array)) {
    check_dtype(dtypeOf<T>);
  }

  /// Adjoints and tangents of f16 are float: sums of small numbers get on.
  using Derivative = Array<detail::DerivativeOf<T>>;
  Derivative grad() const { return Derivative(AnyArray::grad()); }
  Derivative dual() const { return Derivative(AnyArray::dual()); }

  void fill(T value, Loc loc = std::source_location::current()) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = value;
      fill_element(&byte, loc);
    } else {
      fill_element(&value, loc);
    }
  }

  /// Replaces all elements, row-major. Error(BadArgument) unless there are as
  /// many values as elements.
  void from_host(const std::vector<T> &values,
                 Loc loc = std::source_location::current()) {
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<uint8_t> packed(values.begin(), values.end());
      write(packed.data(), packed.size(), loc);
    } else {
      write(values.data(), values.size() * sizeof(T), loc);
    }
  }
  void from_host(std::span<const T> values,
                 Loc loc = std::source_location::current()) {
    write(values.data(), values.size() * sizeof(T), loc);
  }
  void from_host(const T *values, size_t count,
                 Loc loc = std::source_location::current()) {
    write(values, count * sizeof(T), loc);
  }

  /// All elements, row-major.
  std::vector<T> to_host() const {
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<uint8_t> packed(static_cast<size_t>(size()));
      read(packed.data(), packed.size());
      return std::vector<bool>(packed.begin(), packed.end());
    } else {
      std::vector<T> values(static_cast<size_t>(size()));
      read(values.data(), values.size() * sizeof(T));
      return values;
    }
  }

  /// The elements in the memory of the host, for reading. Error(BadArgument) on
  /// devices with memory of their own.
  const T *data() const { return static_cast<const T *>(address()); }
  /// The same for writing: counts as one write by the host, at this call. What
  /// a `Tape` needs is copied now, so take a new pointer after a recording.
  /// Error(BadArgument) while a `Tape` records on this thread.
  T *mutable_data(Loc loc = std::source_location::current()) {
    return static_cast<T *>(writable_address(loc));
  }
};

} // namespace costate
