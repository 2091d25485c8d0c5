#pragma once
/// The part of the Objective-C runtime through which Metal is called. Both come
/// with macOS and are loaded at run time.

#include "base/Result.h"

#include <utility>

namespace costate::runtime::metal {

/// Anything that messages are sent to.
using Object = struct ObjectOfObjectiveC *;
using Selector = struct SelectorOfObjectiveC *;

struct Api {
  Object (*findClass)(const char *name);
  Selector (*findSelector)(const char *name);
  void (*sendMessage)(); ///< is called as the method that a message names
  void *(*pushPool)();
  void (*popPool)(void *pool);
  Object (*createDevice)();
};

/// Loaded once. NoDevice where there is no Metal.
Result<const Api *> loadApi();

/// `[object selector arguments...]`; types are those of the method.
template <class T = Object, class... Arguments>
T send(const Api &api, Object object, const char *selector,
       Arguments... arguments) {
  auto method =
      reinterpret_cast<T (*)(Object, Selector, Arguments...)>(api.sendMessage);
  return method(object, api.findSelector(selector), arguments...);
}

/// What is given back at the end of a method dies with it.
class Pool {
public:
  explicit Pool(const Api &api) : api(api), pool(api.pushPool()) {}
  ~Pool() { api.popPool(pool); }
  Pool(const Pool &) = delete;

private:
  const Api &api;
  void *const pool;
};

/// An object that lives as long as this; null for none.
class Owned {
public:
  Owned() = default;
  /// Takes over what `new...` and `copy...` have made.
  Owned(const Api &api, Object object) : api(&api), object(object) {}
  Owned(Owned &&other) noexcept { swap(other); }
  Owned &operator=(Owned &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (object)
      send<void>(*api, object, "release");
  }
  Object get() const { return object; }
  explicit operator bool() const { return object != nullptr; }

private:
  void swap(Owned &other) {
    std::swap(api, other.api);
    std::swap(object, other.object);
  }

  const Api *api = nullptr;
  Object object = nullptr;
};

} // namespace costate::runtime::metal
