#pragma once
/// What handles of the user hold.

#include <memory>
#include <utility>

namespace costate::detail {

/// Throws Error(BadArgument) with `why`.
[[noreturn]] void refuseEmpty(const char *why);

/// Shared ownership whose use is Error(BadArgument) where there is nothing, as
/// in a handle that has been moved from.
template <class T, const char *why> class Shared {
public:
  Shared() = default;
  Shared(std::shared_ptr<T> pointer) : pointer(std::move(pointer)) {}

  /// Never null.
  const std::shared_ptr<T> &get() const {
    if (!pointer)
      refuseEmpty(why);
    return pointer;
  }
  T *operator->() const { return get().get(); }
  T &operator*() const { return *get(); }
  bool operator==(const Shared &) const = default;

private:
  std::shared_ptr<T> pointer;
};

} // namespace costate::detail
