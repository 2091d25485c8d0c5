#include "runtime/cuda/CudaDriver.h"

#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/OwnKernels.h"
#include "runtime/cuda/Spills.h"
#include "runtime/streams/StreamDriver.h"

#include <algorithm>
#include <map>

namespace costate::runtime::cuda {
namespace {

/// Older ones lack atomics with an order and a scope.
constexpr int oldestCapability = 7;

/// Spills that do not matter.
constexpr size_t fewBytes = 64;

class CudaDriver final : public StreamDriver {
public:
  CudaDriver(const CudaApi &api, Opened opened)
      : StreamDriver(std::move(opened)), api(api) {}

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    return loadImage(code.image);
  }
  Result<MeetingPlace> meetingPlace(int rank) override {
    return makeMeetingPlace(rank);
  }
  Result<std::shared_ptr<Ranks>> join(const Meeting &meeting) override {
    return joinRanks(session, meeting);
  }

private:
  Result<std::shared_ptr<gpu::Module>> loadImage(const std::string &image);
  Result<std::shared_ptr<StreamModule>> assemble(const std::string &image);
  size_t localBytes(const StreamModule &module, const std::string &symbol);
  Result<Function> ownKernel(const OwnKernel &kernel);
  Result<> prepareOwnCode() override;
  Status tell(std::byte *to, const std::byte *from, size_t bytes,
              uint64_t *told) override;
  Result<> fillWords(std::byte *to, size_t words, uint64_t pattern) override;

  const CudaApi &api;
  std::mutex ownCodeMutex;
  std::map<std::string, std::shared_ptr<gpu::Module>> ownCode;
};

/// Bytes of memory that a thread has to itself; 0 if nobody can tell.
size_t CudaDriver::localBytes(const StreamModule &module,
                              const std::string &symbol) {
  Function function = nullptr;
  int bytes = 0;
  if (session->call(api.function, &function, module.code, symbol.c_str()) !=
          success ||
      session->call(api.own.getFunction, &bytes, FunctionAttribute::LocalBytes,
                    function) != success)
    return 0;
  return static_cast<size_t>(bytes);
}

Result<Function> CudaDriver::ownKernel(const OwnKernel &kernel) {
  std::lock_guard lock(ownCodeMutex);
  std::shared_ptr<gpu::Module> &module = ownCode[kernel.symbol];
  if (!module) {
    Result<std::shared_ptr<gpu::Module>> loaded = loadImage(kernel.code());
    if (!loaded)
      return loaded.error();
    module = *loaded;
  }
  return static_cast<StreamModule &>(*module).find(kernel.symbol, 0);
}

Result<> CudaDriver::fillWords(std::byte *to, size_t words, uint64_t pattern) {
  constexpr unsigned blockThreads = 256;
  Result<Function> function = ownKernel(fillKernel);
  if (!function)
    return function.error();
  size_t resident = gpuProperties.residentThreads / blockThreads;
  size_t blocks = std::min((words + blockThreads - 1) / blockThreads, resident);
  uint64_t arguments[] = {addressOf(to), words, pattern};
  Start fill{*function, static_cast<unsigned>(blocks), blockThreads};
  return session->result(session->launch(fill, arguments), "fill memory");
}

Status CudaDriver::tell(std::byte *to, const std::byte *from, size_t bytes,
                        uint64_t *told) {
  constexpr unsigned blockThreads = 128;
  size_t unit = (addressOf(from) | bytes) % 4 ? 1 : 4;
  Result<Function> function =
      ownKernel(unit == 4 ? tellWordsKernel : tellBytesKernel);
  if (!function)
    return notSupported;
  uint64_t arguments[] = {addressOf(to), addressOf(from), bytes,
                          reinterpret_cast<uint64_t>(told)};
  return session->launch({*function, 1, blockThreads}, arguments);
}

/// Registers that a sweep lacks cost more than a third block gives. Memory that
/// called functions have looks like theirs, but does not become less.
Result<std::shared_ptr<gpu::Module>>
CudaDriver::loadImage(const std::string &image) {
  auto module = assemble(image);
  if (!module)
    return module.error();
  std::vector<CrowdedKernel> spilling;
  for (CrowdedKernel &kernel : crowdedKernels(image))
    if (localBytes(**module, kernel.symbol) >= kernel.ownBytes + fewBytes)
      spilling.push_back(std::move(kernel));
  if (spilling.empty())
    return std::shared_ptr<gpu::Module>(*module);
  auto other = assemble(roomier(image, spilling));
  bool isBetter =
      other && std::ranges::any_of(spilling, [&](const CrowdedKernel &kernel) {
        return localBytes(**other, kernel.symbol) <
               localBytes(**module, kernel.symbol);
      });
  return std::shared_ptr<gpu::Module>(isBetter ? *other : *module);
}

Result<std::shared_ptr<StreamModule>>
CudaDriver::assemble(const std::string &image) {
  char log[4096] = "";
  JitOption options[] = {JitOption::ErrorLog, JitOption::ErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Code code = nullptr;
  Status status = session->call(api.own.loadCode, &code,
                                static_cast<const void *>(image.c_str()), 2u,
                                options, values);
  if (status == success)
    return std::make_shared<StreamModule>(session, code);
  if (status == unsupportedPtx)
    return Failure{ErrorCode::NoDevice,
                   "the NVIDIA driver is too old for this GPU's code: " +
                       api.text(status) + "; update it"};
  Failure failure = session->failure(status, "load code");
  if (*log)
    failure.text += std::string(": ") + log;
  return failure;
}

Result<> CudaDriver::prepareOwnCode() {
  Result<Function> fill = ownKernel(fillKernel);
  return fill ? Result<>() : fill.error();
}

Result<Description> describe(const CudaApi &api, DeviceNumber device) {
  Query query(api, device);
  int major = query.attribute(DeviceAttribute::CapabilityMajor);
  int minor = query.attribute(DeviceAttribute::CapabilityMinor);
  gpu::Properties gpu;
  gpu.name = query.name();
  gpu.multiprocessors = query.attribute(DeviceAttribute::Multiprocessors);
  gpu.residentThreads =
      gpu.multiprocessors *
      query.attribute(DeviceAttribute::ThreadsOfMultiprocessor);
  gpu.memory = query.memory();
  gpu.sharedPerBlock = query.bytes(DeviceAttribute::LargestSharedOfBlock);
  gpu.sharedPerMultiprocessor =
      query.bytes(DeviceAttribute::SharedOfMultiprocessor);
  gpu.l2Bytes = query.bytes(DeviceAttribute::L2Bytes);
  gpu.blocksProgress = true;
  gpu.chip = "sm_" + std::to_string(10 * major + minor);
  gpu.shape = nvidiaShape;
  bool hasPools = query.attribute(DeviceAttribute::HasPools);
  if (Result<> answered = query.answered(); !answered)
    return answered.error();
  if (major < oldestCapability)
    return Failure{ErrorCode::NoDevice,
                   gpu.name + " is too old a GPU (" + gpu.chip +
                       "; sm_70 is the oldest that will do); choose another "
                       "device"};
  return Description{std::move(gpu), hasPools};
}

} // namespace

Result<std::shared_ptr<gpu::Driver>> openCuda(int ordinal) {
  Result<const CudaApi *> api = loadApi();
  if (!api)
    return api.error();
  return openCuda(**api, ordinal);
}

Result<std::shared_ptr<gpu::Driver>> openCuda(const CudaApi &api, int ordinal) {
  auto opened = openDevice(
      api, ordinal, [&](DeviceNumber device) { return describe(api, device); });
  if (!opened)
    return opened.error();
  return std::shared_ptr<gpu::Driver>(
      std::make_shared<CudaDriver>(api, std::move(*opened)));
}

} // namespace costate::runtime::cuda
