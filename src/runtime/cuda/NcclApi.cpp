#include "runtime/cuda/NcclApi.h"

#include <dlfcn.h>
#include <mutex>

namespace costate::runtime::cuda {
namespace {

Failure missing(const std::string &what) {
  return {ErrorCode::NoDevice,
          "ranks on GPUs need NCCL, but " + what +
              "; install it where the loader finds it (LD_LIBRARY_PATH), or "
              "import PyTorch first, which brings one"};
}

template <class Signature>
bool find(void *library, const char *symbol, Signature &function) {
  function = reinterpret_cast<Signature>(dlsym(library, symbol));
  return function;
}

/// The name of a function that is missing; null if there is none.
const char *findAll(void *library, NcclApi &api) {
#define COSTATE_NCCL_FIND(member, symbol, ...)                                 \
  if (!find(library, #symbol, api.member))                                     \
    return #symbol;
  COSTATE_NCCL_FUNCTIONS(COSTATE_NCCL_FIND)
#undef COSTATE_NCCL_FIND
  return find(library, "ncclGetErrorString", api.text) ? nullptr
                                                       : "ncclGetErrorString";
}

/// One that the process has loaded already is found by its name. It stays
/// loaded: its threads do.
Result<const NcclApi *> load() {
  static NcclApi api;
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return missing(std::string("libnccl.so.2 cannot be loaded (") +
                   (reason ? reason : "no reason given") + ")");
  }
  if (const char *symbol = findAll(library, api))
    return missing(std::string("that of this machine has no ") + symbol);
  return &api;
}

} // namespace

/// Not kept: PyTorch may bring one later.
Result<const NcclApi *> loadNccl() {
  static std::mutex mutex;
  static const NcclApi *known = nullptr;
  std::lock_guard lock(mutex);
  if (known)
    return known;
  Result<const NcclApi *> loaded = load();
  if (loaded)
    known = *loaded;
  return loaded;
}

} // namespace costate::runtime::cuda
