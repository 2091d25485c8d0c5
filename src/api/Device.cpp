#include "costate/detail/default_device.h"
#include "costate/dlpack.h"

#include "api/Cache.h"
#include "api/Checked.h"
#include "api/Environment.h"
#include "api/GraphImpl.h"
#include "base/Fork.h"
#include "runtime/ArrayStorage.h"
#include "runtime/MemoryBudget.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cuda/CudaDriver.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/hip/EmulatedAmd.h"
#include "runtime/hip/HipDriver.h"
#include "runtime/hip/HostAmd.h"
#include "runtime/metal/HostMetal.h"
#include "runtime/metal/MetalDriver.h"
#include "runtime/simt/SimtDevice.h"
#include "runtime/vulkan/VulkanDriver.h"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace costate;
using namespace costate::api;

static Result<runtime::gpu::GpuOptions>
gpuOptions(const DeviceOptions &options, runtime::gpu::Sorting sorting) {
  auto budget = runtime::tapeBudget(options.tape_budget);
  if (!budget)
    return budget.error();
  auto chosen = runtime::gpu::chosenSorting(sorting);
  if (!chosen)
    return chosen.error();
  return runtime::gpu::GpuOptions{.memoryLimit = options.memory_limit,
                                  .tapeBudget = *budget,
                                  .validate = options.validate,
                                  .sorting = *chosen};
}

static Result<std::shared_ptr<runtime::Device>>
openGpu(const std::string &name, const DeviceOptions &options,
        Result<std::shared_ptr<runtime::gpu::Driver>> driver) {
  auto chosen = gpuOptions(options, runtime::gpu::Sorting::IfItPays);
  if (!chosen)
    return chosen.error();
  if (!driver)
    return driver.error();
  return runtime::gpu::openGpu(name, (*driver)->properties().chip, *driver,
                               *chosen);
}

/// In the cache of the process, as it is now.
static runtime::vulkan::CodeStore codeStore() {
  std::shared_ptr<cache::Store> store = currentCache();
  if (!store)
    return {};
  auto keyOf = [](std::string_view key) {
    return cache::keyOf("assembled by Vulkan\n" + std::string(key));
  };
  return {[=](std::string_view key) { return store->find(keyOf(key)); },
          [=](std::string_view key, std::string_view code) {
            store->put(keyOf(key), code);
          }};
}

/// `name`: `vulkan`, or `vulkan:` and which one.
static Result<std::shared_ptr<runtime::Device>>
openVulkan(const std::string &name, const DeviceOptions &options,
           bool isGpu = false) {
  std::string which = name.substr(std::min(name.size(), sizeof "vulkan"));
  return openGpu(
      name, options,
      runtime::vulkan::openVulkan(which, {.validate = options.validate,
                                          .isGpu = isGpu,
                                          .store = codeStore()}));
}

static Result<std::shared_ptr<runtime::Device>>
openCuda(const DeviceOptions &options) {
  return openGpu("cuda", options, runtime::cuda::openCuda(0));
}

static Result<std::shared_ptr<runtime::Device>>
openHip(const DeviceOptions &options) {
  return openGpu("hip", options, runtime::hip::openHip(0));
}

static Result<std::shared_ptr<runtime::Device>>
openAnyGpu(const DeviceOptions &options) {
  std::string reasons;
  for (auto open : {openCuda, openHip, +[](const DeviceOptions &options) {
                      return openVulkan("vulkan", options, /*isGpu=*/true);
                    }}) {
    auto device = open(options);
    if (device || device.error().code != ErrorCode::NoDevice)
      return device;
    reasons += (reasons.empty() ? "" : "; ") + device.error().text;
  }
  return Failure{ErrorCode::NoDevice, reasons};
}

static Result<std::shared_ptr<runtime::Device>>
openSimt(const DeviceOptions &options) {
  auto chosen = gpuOptions(options, runtime::gpu::Sorting::Always);
  if (!chosen)
    return chosen.error();
  return runtime::openSimt(options.threads, options.memory_limit,
                           {.tapeBudget = chosen->tapeBudget,
                            .validate = options.validate,
                            .sorting = chosen->sorting});
}

/// `name`: `metal-host`, or `metal-host:f64`.
static Result<std::shared_ptr<runtime::Device>>
openHostMetal(const std::string &name, const DeviceOptions &options) {
  std::string which = name.substr(std::min(name.size(), sizeof "metal-host"));
  if (!which.empty() && which != "f64")
    return Failure{ErrorCode::NoDevice,
                   "there is no device `" + name +
                       "`; there are metal-host and metal-host:f64"};
  auto cpu = runtime::openCpu(options.threads, 0); // knows how many there are
  if (!cpu)
    return cpu.error();
  return openGpu(name, options,
                 runtime::metal::createHostMetal((*cpu)->info().threads,
                                                 {.f64 = which == "f64"}));
}

/// `name`: `amd-host`, or `amd-host:` and a chip.
static Result<std::shared_ptr<runtime::Device>>
openHostAmd(const std::string &name, const DeviceOptions &options) {
  std::string chip = name.substr(std::min(name.size(), sizeof "amd-host"));
  auto cpu = runtime::openCpu(options.threads, 0); // knows how many there are
  if (!cpu)
    return cpu.error();
  return openGpu(name, options,
                 runtime::hip::createHostAmd((*cpu)->info().threads,
                                             chip.empty() ? "gfx942" : chip));
}

namespace {

/// A kind of device.
struct Kind {
  std::string_view name, note;
  Result<std::shared_ptr<runtime::Device>> (*open)(const std::string &name,
                                                   const DeviceOptions &);
  bool takesWhich = false; ///< `name:` and which one
};

constexpr Kind kinds[] = {
    {"cpu", "",
     [](const std::string &, const DeviceOptions &options) {
       return runtime::openCpu(options.threads, options.memory_limit,
                               options.tape_budget);
     }},
    {"cuda", "",
     [](const std::string &, const DeviceOptions &options) {
       return openCuda(options);
     }},
    {"hip", "",
     [](const std::string &, const DeviceOptions &options) {
       return openHip(options);
     }},
    {"amd", " (the same)",
     [](const std::string &, const DeviceOptions &options) {
       return openHip(options);
     }},
    {"vulkan", "",
     [](const std::string &name, const DeviceOptions &options) {
       return openVulkan(name, options);
     },
     /*takesWhich=*/true},
    {"gpu", " (any of these GPUs)",
     [](const std::string &, const DeviceOptions &options) {
       return openAnyGpu(options);
     }},
    {"simt", " (for tests)",
     [](const std::string &, const DeviceOptions &options) {
       return openSimt(options);
     }},
    {"amd-host", " (for tests)",
     [](const std::string &name, const DeviceOptions &options) {
       return openHostAmd(name, options);
     },
     /*takesWhich=*/true},
    {"amd-emulator", " (for tests)",
     [](const std::string &name, const DeviceOptions &options) {
       std::string chip =
           name.substr(std::min(name.size(), sizeof "amd-emulator"));
       return openGpu(
           name, options,
           runtime::hip::createEmulatedAmd(chip.empty() ? "gfx942" : chip));
     },
     /*takesWhich=*/true},
    {"metal", "",
     [](const std::string &name, const DeviceOptions &options) {
       return openGpu(name, options, runtime::metal::openMetal());
     }},
    {"metal-host", " (for tests)",
     [](const std::string &name, const DeviceOptions &options) {
       return openHostMetal(name, options);
     },
     /*takesWhich=*/true}};

} // namespace

static const Kind &kindOf(const std::string &name) {
  std::string known;
  for (const Kind &kind : kinds) {
    std::string rest = name.substr(std::min(name.size(), kind.name.size()));
    if (name.starts_with(kind.name) &&
        (rest.empty() || (kind.takesWhich && rest.starts_with(':'))))
      return kind;
    known.append(known.empty() ? "" : ", ").append(kind.name).append(kind.note);
  }
  raise(ErrorCode::NoDevice,
        "there is no device `" + name + "`; this build has: " + known);
}

Device Device::open(const std::string &name, DeviceOptions options) {
  options.validate |= isOn("COSTATE_VALIDATE");
  ForeignWork work;
  return Device(checked(kindOf(name).open(name, options)));
}

Device Device::best() {
  // Never destroyed: arrays of static storage duration may outlive any order.
  static auto &devices = *new std::map<std::string, Device>;
  static Mutex mutex;
  const char *chosen = std::getenv("COSTATE_DEVICE");
  std::string name = chosen && *chosen ? chosen : "cpu";
  std::lock_guard lock(mutex);
  auto found = devices.find(name);
  if (found == devices.end())
    found = devices.emplace(name, open(name)).first;
  return found->second;
}

namespace costate::detail {

namespace {
struct DefaultDevice {
  Mutex mutex;
  std::optional<Device> chosen;
};

DefaultDevice &theDefault() {
  // Never destroyed, as the devices of Device::best().
  static auto &device = *new DefaultDevice;
  return device;
}
} // namespace

void setDefaultDevice(std::optional<Device> device) {
  DefaultDevice &known = theDefault();
  std::lock_guard lock(known.mutex);
  known.chosen.swap(device);
}

std::shared_ptr<runtime::Device> defaultDevice() {
  DefaultDevice &known = theDefault();
  std::lock_guard lock(known.mutex);
  return known.chosen ? known.chosen->shared() : Device::best().shared();
}

} // namespace costate::detail

AnyArray Device::array(DType dtype, const Extents &extents, Flags flags,
                       ArrayOptions options) const {
  return array(dtype, extents, flags, options, {});
}
AnyArray Device::array(DType dtype, const Extents &extents, Flags flags,
                       ArrayOptions options, const ElementForm &form) const {
  auto made = checked(
      runtime::makeArray(handle.get(), dtype, extents, flags & costate::grad,
                         flags & costate::dual, options.directions, form));
  made->isScratch = options.scratch;
  return AnyArray(std::move(made));
}

static runtime::AdoptedMemory adopted(OutsideMemory memory) {
  std::shared_ptr<void> hold;
  if (memory.release)
    hold = {memory.address,
            [release = std::move(memory.release)](void *) { release(); }};
  return {static_cast<std::byte *>(memory.address),
          {std::move(hold), memory.stream_ordered},
          !memory.announced};
}

AnyArray Device::adopt(DType dtype, const Extents &extents,
                       OutsideMemory memory, Flags flags,
                       OutsideMemory gradient) const {
  runtime::AdoptedMemory primal = adopted(std::move(memory));
  std::optional<runtime::AdoptedMemory> adjoint;
  if (gradient.address || gradient.release)
    adjoint = adopted(std::move(gradient));
  return AnyArray(checked(
      runtime::adoptArray(handle.get(), dtype, extents, std::move(primal),
                          (flags & costate::grad) || adjoint,
                          flags & costate::dual, std::move(adjoint))));
}

void Device::synchronize() const {
  detail::requireNoCapture("wait for the device");
  checked(handle->synchronize());
}
void Device::use_stream(void *stream) const {
  checked(handle->useStream(stream));
}
void Device::use_own_stream() const {
  checked(handle->useStream(std::nullopt));
}
void costate::let_wait(const Device &device, std::optional<int64_t> stream) {
  detail::requireNoCapture("let others wait for it");
  constexpr int64_t nobody = -1, defaultStream = 1;
  int64_t waiting = stream.value_or(defaultStream);
  if (waiting == 0 || waiting < nobody)
    raise(ErrorCode::BadArgument,
          "`" + std::to_string(waiting) +
              "` is no stream that could wait; pass 1 for CUDA's "
              "default stream, 2 for that of the thread, the handle of "
              "another one, or -1 if nothing is to wait");
  if (waiting != nobody)
    checked(device.shared()->letWait(reinterpret_cast<void *>(waiting)));
}
std::string Device::name() const { return handle->info().name; }
int Device::threads() const { return handle->info().threads; }
size_t Device::current_bytes() const { return handle->memory().current; }
size_t Device::peak_bytes() const { return handle->memory().peak; }
size_t Device::memory_limit() const { return handle->info().memoryLimit; }
size_t Device::shared_memory() const { return handle->info().sharedPerBlock; }
void Device::reset_peak_bytes() const { handle->resetPeak(); }
Statistics Device::statistics() const { return handle->statistics(); }
void Device::reset_statistics() const { handle->resetStatistics(); }
