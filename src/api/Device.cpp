#include "costate/device.h"

#include "api/Checked.h"
#include "runtime/ArrayStorage.h"
#include "runtime/cpu/CpuDevice.h"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace costate;
using namespace costate::api;

Device Device::open(const std::string &name, DeviceOptions options) {
  if (name != "cpu")
    raise(ErrorCode::NoDevice,
          "there is no device `" + name + "`; this build has: cpu");
  return Device(
      checked(runtime::openCpu(options.threads, options.memory_limit)));
}

Device Device::best() {
  // Never destroyed: arrays of static storage duration may outlive any order.
  static auto &devices = *new std::map<std::string, Device>;
  static std::mutex mutex;
  const char *chosen = std::getenv("COSTATE_DEVICE");
  std::string name = chosen && *chosen ? chosen : "cpu";
  std::lock_guard lock(mutex);
  auto found = devices.find(name);
  if (found == devices.end())
    found = devices.emplace(name, open(name)).first;
  return found->second;
}

AnyArray Device::array(DType dtype, const Extents &extents, Flags flags,
                       ArrayOptions options) const {
  return AnyArray(
      checked(runtime::makeArray(handle, dtype, extents, flags & costate::grad,
                                 flags & costate::dual, options.directions)));
}

void Device::synchronize() const { checked(handle->synchronize()); }
std::string Device::name() const { return handle->info().name; }
int Device::threads() const { return handle->info().threads; }
size_t Device::current_bytes() const { return handle->memory().current; }
size_t Device::peak_bytes() const { return handle->memory().peak; }
size_t Device::memory_limit() const { return handle->info().memoryLimit; }
void Device::reset_peak_bytes() const { handle->resetPeak(); }
