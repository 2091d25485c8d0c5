#include "runtime/metal/ObjectiveC.h"

#include <dlfcn.h>
#include <string>

namespace costate::runtime::metal {
namespace {

constexpr const char *runtimePath = "/usr/lib/libobjc.A.dylib",
                     *metalPath =
                         "/System/Library/Frameworks/Metal.framework/Metal";

Failure missing(const std::string &what) {
  return {ErrorCode::NoDevice,
          "there is no Metal on this machine: " + what +
              "; it is part of macOS; choose another device"};
}

template <class Signature>
bool find(void *library, const char *symbol, Signature &function) {
  function = reinterpret_cast<Signature>(dlsym(library, symbol));
  return function;
}

/// Libraries stay loaded.
Result<const Api *> load() {
  static Api api;
  void *runtime = dlopen(runtimePath, RTLD_NOW | RTLD_LOCAL);
  void *metal = dlopen(metalPath, RTLD_NOW | RTLD_LOCAL);
  if (!runtime || !metal)
    return missing(std::string(runtime ? metalPath : runtimePath) +
                   " cannot be loaded");
  if (!find(runtime, "objc_getClass", api.findClass) ||
      !find(runtime, "sel_registerName", api.findSelector) ||
      !find(runtime, "objc_msgSend", api.sendMessage) ||
      !find(runtime, "objc_autoreleasePoolPush", api.pushPool) ||
      !find(runtime, "objc_autoreleasePoolPop", api.popPool) ||
      !find(metal, "MTLCreateSystemDefaultDevice", api.createDevice))
    return missing("its libraries lack a function");
  return &api;
}

} // namespace

Result<const Api *> loadApi() {
  static Result<const Api *> loaded = load();
  return loaded;
}

} // namespace costate::runtime::metal
