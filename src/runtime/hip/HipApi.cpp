#include "runtime/hip/HipApi.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string_view>

namespace costate::runtime::hip {
namespace {

constexpr Symbols symbols{
    .init = {"hipInit"},
    .driverVersion = {"hipDriverGetVersion"},
    .deviceCount = {"hipGetDeviceCount"},
    .device = {"hipDeviceGet"},
    .deviceName = {"hipDeviceGetName"},
    .deviceMemory = {"hipDeviceTotalMem"},
    .attribute = {"hipDeviceGetAttribute"},
    .createStream = {"hipStreamCreateWithFlags"},
    .createUrgentStream = {"hipStreamCreateWithPriority"},
    .destroyStream = {"hipStreamDestroy"},
    .waitForStream = {"hipStreamSynchronize"},
    .queryStream = {"hipStreamQuery"},
    .streamWaitsFor = {"hipStreamWaitEvent"},
    .captureStatus = {"hipStreamIsCapturing"},
    .captureInfo = {"hipStreamGetCaptureInfo_v2"},
    .exchangeMode = {"hipThreadExchangeStreamCaptureMode"},
    .hold = {"hipUserObjectCreate", true},
    .giveToGraph = {"hipGraphRetainUserObject", true},
    .beginCapture = {"hipStreamBeginCapture"},
    .endCapture = {"hipStreamEndCapture"},
    .instantiate = {"hipGraphInstantiateWithFlags"},
    .launchGraph = {"hipGraphLaunch"},
    .destroyGraph = {"hipGraphDestroy"},
    .destroyGraphRun = {"hipGraphExecDestroy"},
    .createEvent = {"hipEventCreateWithFlags"},
    .destroyEvent = {"hipEventDestroy"},
    .recordEvent = {"hipEventRecord"},
    .waitForEvent = {"hipEventSynchronize"},
    .queryEvent = {"hipEventQuery"},
    .elapsed = {"hipEventElapsedTime"},
    .memoryInfo = {"hipMemGetInfo"},
    .allocate = {"hipMalloc"},
    .free = {"hipFree"},
    .allocateHost = {"hipHostMalloc"},
    .freeHost = {"hipHostFree"},
    .createPool = {"hipMemPoolCreate", true},
    .destroyPool = {"hipMemPoolDestroy", true},
    .setPool = {"hipMemPoolSetAttribute", true},
    .getPool = {"hipMemPoolGetAttribute", true},
    .trimPool = {"hipMemPoolTrimTo", true},
    .allocateFromPool = {"hipMallocFromPoolAsync", true},
    .freeAsync = {"hipFreeAsync", true},
    .copyToDevice = {"hipMemcpyHtoDAsync"},
    .copyToHost = {"hipMemcpyDtoHAsync"},
    .copy = {"hipMemcpyDtoDAsync"},
    .fill8 = {"hipMemsetD8Async"},
    .fill16 = {"hipMemsetD16Async"},
    .fill32 = {"hipMemsetD32Async"},
    .unloadCode = {"hipModuleUnload"},
    .function = {"hipModuleGetFunction"},
    .residentBlocks = {"hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"},
    .launchKernel = {"hipModuleLaunchKernel"},
};
static_assert(symbols.nameAll());

/// By either name, with the layout of either: only a text is looked for in it.
constexpr const char *propertiesNames[] = {"hipGetDevicePropertiesR0600",
                                           "hipGetDeviceProperties"};

Failure tooOld(const char *missing) {
  return {ErrorCode::NoDevice, std::string("HIP is too old: it has no ") +
                                   missing +
                                   "; update ROCm to 5.2 or newer, or choose "
                                   "another device"};
}

/// The newest, unless the process has loaded one already, as PyTorch does.
void *loadLibrary() {
  constexpr const char *versions[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                      "libamdhip64.so.5", "libamdhip64.so"};
  for (int there : {RTLD_NOLOAD, 0})
    for (const char *name : versions)
      if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | there))
        return library;
  return nullptr;
}

/// It stays loaded: it does not survive being unloaded.
Result<const HipApi *> load() {
  static HipApi &api = *new HipApi; // arrays may live longer than statics
  void *library = loadLibrary();
  if (!library)
    return Failure{ErrorCode::NoDevice,
                   "there is no HIP on this machine: libamdhip64.so.7, .6 and "
                   ".5 cannot be loaded; install ROCm 5.2 or newer, or choose "
                   "another device"};
  auto lookup = [=](const char *symbol) { return dlsym(library, symbol); };
  Result<> done = findAll(lookup, api);
  if (done && !(done = initialise(api)))
    api.own.forgetError();
  if (!done)
    return done.error();
  const char *pools = std::getenv("COSTATE_HIP_POOLS");
  api.usesPools = pools && std::string_view(pools) == "1";
  return &api;
}

Context contextOf(DeviceNumber device) { return static_cast<Context>(device); }
DeviceNumber deviceOf(Context context) {
  return static_cast<DeviceNumber>(context);
}

} // namespace

Result<> findAll(const Lookup &library, HipApi &api) {
  if (const char *missing = streams::findAll(library, symbols, api))
    return tooOld(missing);
#define COSTATE_HIP_FIND(member, symbol, ...)                                  \
  if (!find(library, #symbol, api.own.member))                                 \
    return tooOld(#symbol);
  COSTATE_HIP_FUNCTIONS(COSTATE_HIP_FIND)
#undef COSTATE_HIP_FIND
  for (const char *name : propertiesNames)
    if (find(library, name, api.own.properties))
      return {};
  return tooOld(propertiesNames[1]);
}

std::vector<Symbol> usedSymbols() {
  std::vector<Symbol> all;
#define COSTATE_HIP_USED(member, ...) all.push_back(symbols.member);
  COSTATE_STREAM_FUNCTIONS(COSTATE_HIP_USED)
#undef COSTATE_HIP_USED
#define COSTATE_HIP_OWN(member, symbol, ...) all.push_back({#symbol});
  COSTATE_HIP_FUNCTIONS(COSTATE_HIP_OWN)
#undef COSTATE_HIP_OWN
  return all;
}

Result<const HipApi *> loadApi() {
  static Result<const HipApi *> loaded = load();
  return loaded;
}

const Words &HipApi::words() const {
  static constexpr Words words{
      .gpu = "AMD GPU",
      .driver = "HIP",
      .tool = "rocminfo",
      .search = "rocminfo, HIP_VISIBLE_DEVICES, and whether you may use "
                "/dev/kfd (the groups render and video)"};
  return words;
}

std::string HipApi::text(Status status) const {
  return statusText(own.errorName(status), own.errorText(status), status);
}

Status HipApi::retain(Context &context, DeviceNumber device) const {
  context = contextOf(device);
  return success;
}

/// The current device of a thread is that of all who use HIP in it; what HIP
/// has of contexts does not put it back.
Status HipApi::enter(Context context, Context &before) const {
  DeviceNumber theirs = 0;
  Status status = own.currentDevice(&theirs);
  before = contextOf(theirs);
  if (status == success && before != context)
    status = own.useDevice(deviceOf(context));
  if (status)
    own.forgetError();
  return status;
}

/// Errors of ours would be told to the next one in this thread who asks for the
/// last error, as PyTorch does after each launch.
void HipApi::leave(Context before, Status done) const {
  own.useDevice(deviceOf(before));
  if (done)
    own.forgetError();
}

Status HipApi::copyRows(PitchedRows to, PitchedRows from, size_t bytes,
                        size_t rows, Stream stream) const {
  constexpr Status invalidPitch = 12;
  Status status = own.copyRows(to.address, to.pitch, from.address, from.pitch,
                               bytes, rows, CopyKind::DeviceToDevice, stream);
  return status == invalidPitch ? invalidValue : status;
}

//===-- The chip ----------------------------------------------------------===//

/// `gfx90a:sramecc+:xnack-`.
static bool isChip(std::string_view text) {
  constexpr std::string_view start = "gfx";
  if (!text.starts_with(start))
    return false;
  size_t end = text.find_first_not_of("0123456789abcdef", start.size());
  return end == text.npos || (text[end] == ':' && end > start.size());
}

std::string_view chipIn(std::string_view bytes) {
  for (size_t at = bytes.find("gfx"); at != bytes.npos;
       at = bytes.find("gfx", at + 1)) {
    std::string_view text = bytes.substr(at, bytes.find('\0', at) - at);
    if (isChip(text))
      return text;
  }
  return {};
}

/// No function says it: it is a text in a structure, whose place differs
/// between versions. Their largest has 1.5 KiB.
std::string HipApi::chip(DeviceNumber device) const {
  auto all = std::make_unique<std::array<char, 16 << 10>>();
  all->fill(0);
  if (own.properties(all->data(), device) != success)
    return "";
  return std::string(chipIn({all->data(), all->size()}));
}

} // namespace costate::runtime::hip
