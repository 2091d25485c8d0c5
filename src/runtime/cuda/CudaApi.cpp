#include "runtime/cuda/CudaApi.h"

#include <dlfcn.h>

namespace costate::runtime::cuda {
namespace {

/// CUDA 11.8: the first that reads what `emitPtx` writes, PTX 7.8.
constexpr int oldestDriver = 11080;

constexpr const char *update = "; update the NVIDIA driver (520 or newer), or "
                               "choose another device";

Failure noLibrary() {
  const char *reason = dlerror();
  return {ErrorCode::NoDevice,
          std::string("there is no NVIDIA driver on this machine: libcuda.so.1 "
                      "cannot be loaded (") +
              (reason ? reason : "no reason given") +
              "); install the driver, or choose another device"};
}

Failure tooOld(const std::string &why) {
  return {ErrorCode::NoDevice, "the NVIDIA driver is too old: " + why + update};
}

std::string versionText(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

template <class Signature>
bool find(void *library, const char *symbol, Signature &function) {
  function = reinterpret_cast<Signature>(dlsym(library, symbol));
  return function;
}

/// The name of a function that is missing; null if there is none.
const char *findAll(void *library, Api &api) {
#define COSTATE_CUDA_FIND(member, symbol, ...)                                 \
  if (!find(library, #symbol, api.member))                                     \
    return #symbol;
  COSTATE_CUDA_FUNCTIONS(COSTATE_CUDA_FIND)
#undef COSTATE_CUDA_FIND
  return nullptr;
}

Result<> initialise(const Api &api) {
  Status status = api.init(0);
  if (status == noDevice)
    return Failure{ErrorCode::NoDevice,
                   "the NVIDIA driver finds no GPU that it may use; see "
                   "nvidia-smi and CUDA_VISIBLE_DEVICES, or choose another "
                   "device"};
  if (status != success)
    return Failure{ErrorCode::NoDevice, "the NVIDIA driver does not start: " +
                                            statusText(api, status) +
                                            "; nvidia-smi may tell more"};
  int version = 0;
  if (api.driverVersion(&version) == success && version >= oldestDriver)
    return {};
  return tooOld("it is made for " + versionText(version) + ", and " +
                versionText(oldestDriver) + " is the oldest that will do");
}

/// The library stays loaded: it does not survive being unloaded.
Result<const Api *> load() {
  static Api api;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return noLibrary();
  if (const char *missing = findAll(library, api))
    return tooOld(std::string("it has no ") + missing);
  if (Result<> done = initialise(api); !done)
    return done.error();
  return &api;
}

} // namespace

Result<const Api *> loadApi() {
  static Result<const Api *> loaded = load();
  return loaded;
}

std::string statusText(const Api &api, Status status) {
  const char *name = nullptr, *text = nullptr;
  api.errorName(status, &name);
  api.errorString(status, &text);
  if (!name || !text)
    return "CUDA error " + std::to_string(status);
  return std::string(name) + " (" + text + ")";
}

} // namespace costate::runtime::cuda
