#include "runtime/cuda/CudaApi.h"

#include "base/ChosenWord.h"

#include <dlfcn.h>

namespace costate::runtime::cuda {
namespace {

/// CUDA 11.8: the first that reads what `emitPtx` writes, PTX 7.8.
constexpr int oldestDriver = 11080;

constexpr const char *update = "; update the NVIDIA driver (520 or newer), or "
                               "choose another device";

constexpr Symbols symbols{
    .init = {"cuInit"},
    .driverVersion = {"cuDriverGetVersion"},
    .deviceCount = {"cuDeviceGetCount"},
    .device = {"cuDeviceGet"},
    .deviceName = {"cuDeviceGetName"},
    .deviceMemory = {"cuDeviceTotalMem_v2"},
    .attribute = {"cuDeviceGetAttribute"},
    .createStream = {"cuStreamCreate"},
    .createUrgentStream = {"cuStreamCreateWithPriority"},
    .destroyStream = {"cuStreamDestroy_v2"},
    .waitForStream = {"cuStreamSynchronize"},
    .queryStream = {"cuStreamQuery"},
    .streamWaitsFor = {"cuStreamWaitEvent"},
    .captureStatus = {"cuStreamIsCapturing"},
    .captureInfo = {"cuStreamGetCaptureInfo_v2"},
    .exchangeMode = {"cuThreadExchangeStreamCaptureMode"},
    .hold = {"cuUserObjectCreate"},
    .giveToGraph = {"cuGraphRetainUserObject"},
    .beginCapture = {"cuStreamBeginCapture_v2"},
    .endCapture = {"cuStreamEndCapture"},
    .instantiate = {"cuGraphInstantiateWithFlags"},
    .launchGraph = {"cuGraphLaunch"},
    .destroyGraph = {"cuGraphDestroy"},
    .destroyGraphRun = {"cuGraphExecDestroy"},
    .createEvent = {"cuEventCreate"},
    .destroyEvent = {"cuEventDestroy_v2"},
    .recordEvent = {"cuEventRecord"},
    .waitForEvent = {"cuEventSynchronize"},
    .queryEvent = {"cuEventQuery"},
    .elapsed = {"cuEventElapsedTime"},
    .memoryInfo = {"cuMemGetInfo_v2"},
    .allocate = {"cuMemAlloc_v2"},
    .free = {"cuMemFree_v2"},
    .allocateHost = {"cuMemHostAlloc"},
    .freeHost = {"cuMemFreeHost"},
    .createPool = {"cuMemPoolCreate"},
    .destroyPool = {"cuMemPoolDestroy"},
    .setPool = {"cuMemPoolSetAttribute"},
    .getPool = {"cuMemPoolGetAttribute"},
    .trimPool = {"cuMemPoolTrimTo"},
    .allocateFromPool = {"cuMemAllocFromPoolAsync"},
    .freeAsync = {"cuMemFreeAsync"},
    .copyToDevice = {"cuMemcpyHtoDAsync_v2"},
    .copyToHost = {"cuMemcpyDtoHAsync_v2"},
    .copy = {"cuMemcpyDtoDAsync_v2"},
    .fill8 = {"cuMemsetD8Async"},
    .fill16 = {"cuMemsetD16Async"},
    .fill32 = {"cuMemsetD32Async"},
    .unloadCode = {"cuModuleUnload"},
    .function = {"cuModuleGetFunction"},
    .residentBlocks = {"cuOccupancyMaxActiveBlocksPerMultiprocessor"},
    .launchKernel = {"cuLaunchKernel"},
};
static_assert(symbols.nameAll());

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

/// The name of a function that is missing; null if there is none.
const char *findAll(const Lookup &lookup, CudaApi &api) {
  if (const char *missing = streams::findAll(lookup, symbols, api))
    return missing;
#define COSTATE_CUDA_FIND(member, symbol, ...)                                 \
  if (!find(lookup, #symbol, api.own.member))                                  \
    return #symbol;
  COSTATE_CUDA_FUNCTIONS(COSTATE_CUDA_FIND)
#undef COSTATE_CUDA_FIND
  return nullptr;
}

Result<> checkVersion(const CudaApi &api) {
  int version = 0;
  if (api.driverVersion(&version) == success && version >= oldestDriver)
    return {};
  return tooOld("it is made for " + versionText(version) + ", and " +
                versionText(oldestDriver) + " is the oldest that will do");
}

/// The library stays loaded: it does not survive being unloaded.
Result<const CudaApi *> load() {
  static CudaApi &api = *new CudaApi; // arrays may live longer than statics
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return noLibrary();
  auto lookup = [=](const char *symbol) { return dlsym(library, symbol); };
  if (const char *missing = findAll(lookup, api))
    return tooOld(std::string("it has no ") + missing);
  Result<> done = initialise(api);
  if (done)
    done = checkVersion(api);
  if (!done)
    return done.error();
  Result<GraphRule> graphs =
      chosenWord("COSTATE_CUDA_GRAPHS", api.graphs,
                 {{"never", noGraphs}, {"always", {.least = 1, .times = 0}}});
  if (!graphs)
    return graphs.error();
  api.graphs = *graphs;
  return &api;
}

ContextHandle handleOf(Context context) {
  return reinterpret_cast<ContextHandle>(context);
}

} // namespace

Result<const CudaApi *> loadApi() {
  static Result<const CudaApi *> loaded = load();
  return loaded;
}

const Words &CudaApi::words() const {
  static constexpr Words words{.gpu = "NVIDIA GPU",
                               .driver = "the NVIDIA driver",
                               .tool = "nvidia-smi",
                               .search = "nvidia-smi and CUDA_VISIBLE_DEVICES"};
  return words;
}

std::string CudaApi::text(Status status) const {
  const char *name = nullptr, *text = nullptr;
  own.errorName(status, &name);
  own.errorString(status, &text);
  return statusText(name, text, status);
}

Status CudaApi::retain(Context &context, DeviceNumber device) const {
  ContextHandle made = nullptr;
  Status status = own.retainContext(&made, device);
  context = static_cast<Context>(reinterpret_cast<uintptr_t>(made));
  return status;
}

void CudaApi::release(DeviceNumber device) const { own.releaseContext(device); }

Status CudaApi::enter(Context context, Context &) const {
  return own.pushContext(handleOf(context));
}

void CudaApi::leave(Context, Status) const {
  ContextHandle ours = nullptr;
  own.popContext(&ours);
}

Status CudaApi::copyRows(PitchedRows to, PitchedRows from, size_t bytes,
                         size_t rows, Stream stream) const {
  const RowCopy all{.from = {.device = from.address, .pitch = from.pitch},
                    .to = {.device = to.address, .pitch = to.pitch},
                    .bytes = bytes,
                    .rows = rows};
  return own.copyRows(&all, stream);
}

Status CudaApi::allowShared(Function function, size_t bytes) const {
  return own.setFunction(function, FunctionAttribute::LargestDynamicShared,
                         static_cast<int>(bytes));
}

} // namespace costate::runtime::cuda
