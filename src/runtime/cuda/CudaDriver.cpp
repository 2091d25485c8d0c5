#include "runtime/cuda/CudaDriver.h"

#include "base/DeviceSymbol.h"
#include "runtime/cuda/EventClock.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/Ptx.h"
#include "runtime/cuda/Readback.h"
#include "runtime/cuda/SideCopies.h"
#include "runtime/cuda/Spills.h"
#include "runtime/gpu/Staging.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <unordered_map>

namespace costate::runtime::cuda {
namespace {

/// Older ones lack atomics with an order and a scope.
constexpr int oldestCapability = 7;

Address addressOf(const std::byte *pointer) {
  return reinterpret_cast<Address>(pointer);
}

/// Spills that do not matter.
constexpr size_t fewBytes = 64;

class CudaModule final : public gpu::Module {
public:
  CudaModule(std::shared_ptr<Session> session, Code code)
      : session(std::move(session)), code(code) {}
  ~CudaModule() override {
    if (isUsed)
      (void)session->wait();
    (void)session->call(session->api().unloadCode, code);
  }

  /// Bytes of memory that a thread has to itself; 0 if nobody can tell.
  size_t localBytes(const std::string &symbol);

  /// A kernel that may ask for `sharedBytes`.
  Result<Function> find(const std::string &symbol, size_t sharedBytes);

private:
  struct Found {
    Function function = nullptr;
    /// That it may ask for: without a word 48 KiB, less what it has by itself.
    size_t sharedBytes = 0;
  };
  Result<> allowShared(const std::string &symbol, Found &kernel, size_t bytes);

  std::shared_ptr<Session> session;
  Code code;
  std::mutex mutex;
  bool isUsed = false; ///< by what may be queued
  std::unordered_map<std::string, Found> found;
};

class CudaGraph final : public gpu::Captured {
public:
  CudaGraph(std::shared_ptr<Session> session, Statistics statistics)
      : statistics(statistics), session(std::move(session)) {}
  ~CudaGraph() override {
    if (run)
      (void)session->call(session->api().destroyGraphRun, run);
  }

  GraphRun run = nullptr;
  const Statistics statistics; ///< of one replay

private:
  std::shared_ptr<Session> session;
};

class CudaDriver final : public gpu::Driver {
public:
  CudaDriver(gpu::Properties properties, std::shared_ptr<Session> session,
             std::unique_ptr<Memory> memory)
      : gpuProperties(std::move(properties)), session(std::move(session)),
        memory(std::move(memory)), staging(this->session),
        readback(this->session),
        clock(std::make_shared<EventClock>(this->session)) {}
  ~CudaDriver() override { (void)session->wait(); }

  const gpu::Properties &properties() const override { return gpuProperties; }
  Result<std::byte *> allocate(size_t bytes) override {
    cuda::endDropped();
    return memory->allocate(bytes);
  }
  void release(std::byte *address) override { memory->release(address); }
  void disown(std::byte *, bool waits) override {
    if (waits)
      (void)session->wait();
  }
  Result<std::byte *> allocateHost(size_t bytes) override;
  void releaseHost(std::byte *address) override;
  Result<std::unique_ptr<gpu::SideStream>> openSideStream() override {
    return openSideCopies(session);
  }
  Result<int64_t> residentBlocks(gpu::Module &module, const std::string &symbol,
                                 int blockThreads, size_t sharedBytes) override;
  size_t freeBytes() override { return memory->freeBytes(); }

  Result<> upload(std::byte *to, const void *from, size_t bytes) override;
  Result<> download(void *to, const std::byte *from, size_t bytes) override;
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override;
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override;

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    return loadImage(code.image);
  }
  Result<> prepare(gpu::Module &module, const std::string &symbol,
                   size_t sharedBytes) override;
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t sharedBytes) override;
  Result<> synchronize() override;

  Result<> useStream(std::optional<void *> stream) override;
  Result<bool> letWait(void *stream) override;
  uint64_t captureOfOthers() override { return session->captureOfOthers(); }
  Result<> goTo(gpu::Place place) override;
  Result<> giveToGraph(std::shared_ptr<void> held) override {
    return session->result(session->giveToGraph(std::move(held)),
                           "keep memory for a graph");
  }
  void endDropped() override { cuda::endDropped(); }
  Result<> beginCapture() override;
  Result<std::shared_ptr<gpu::Captured>> endCapture() override;
  Result<> replay(gpu::Captured &captured) override;

  std::shared_ptr<profile::Moment> mark() override { return clock->mark(); }

  bool isShared() override { return session->isShared(); }
  Result<MeetingPlace> meetingPlace(int rank) override {
    return makeMeetingPlace(rank);
  }
  Result<std::shared_ptr<Ranks>> join(const Meeting &meeting) override {
    return joinRanks(session, meeting);
  }

  Counters &counters() override { return session->counters(); }

private:
  Status copyRow(std::byte *to, const std::byte *from, size_t bytes) {
    return session->enqueue(session->api().copy, addressOf(to), addressOf(from),
                            bytes);
  }
  Status copyAll(std::byte *to, const std::byte *from, const CopyShape &shape);
  Result<> start(gpu::Module &module, const std::string &symbol, gpu::Grid grid,
                 std::span<const uint64_t> words, size_t sharedBytes);
  Result<> fillWords(std::byte *to, size_t words, uint64_t pattern);
  Result<std::shared_ptr<gpu::Module>> loadImage(const std::string &image);
  Result<std::shared_ptr<CudaModule>> assemble(const std::string &image);
  Result<std::shared_ptr<gpu::Module>> ownCode();
  Result<> prepareOwnCode();

  gpu::Properties gpuProperties;
  std::shared_ptr<Session> session;
  std::unique_ptr<Memory> memory;
  gpu::Staging<PinnedSlot> staging;
  Readback readback;
  std::shared_ptr<EventClock> clock;
  std::mutex ownCodeMutex;
  std::shared_ptr<gpu::Module> ownCodeModule;
  bool isOwnCodeReady = false; ///< for graphs
};

size_t CudaModule::localBytes(const std::string &symbol) {
  const Api &api = session->api();
  Function function = nullptr;
  int bytes = 0;
  if (session->call(api.function, &function, code, symbol.c_str()) != success ||
      session->call(api.getFunction, &bytes, FunctionAttribute::LocalBytes,
                    function) != success)
    return 0;
  return static_cast<size_t>(bytes);
}

Result<Function> CudaModule::find(const std::string &symbol,
                                  size_t sharedBytes) {
  std::lock_guard lock(mutex);
  isUsed = true;
  Found &kernel = found[symbol];
  if (!kernel.function) {
    Status status = session->call(session->api().function, &kernel.function,
                                  code, deviceSymbol(symbol).c_str());
    if (status != success)
      return session->failure(status, "find the kernel `" + symbol + "`");
  }
  if (auto done = allowShared(symbol, kernel, sharedBytes); !done)
    return done.error();
  return kernel.function;
}

Result<> CudaModule::allowShared(const std::string &symbol, Found &kernel,
                                 size_t bytes) {
  if (bytes <= kernel.sharedBytes)
    return {};
  Status status = session->call(session->api().setFunction, kernel.function,
                                FunctionAttribute::LargestDynamicShared,
                                static_cast<int>(bytes));
  if (status == success)
    kernel.sharedBytes = bytes;
  return session->result(status, "give `" + symbol + "` " +
                                     std::to_string(bytes) +
                                     " bytes of shared memory");
}

Result<std::byte *> CudaDriver::allocateHost(size_t bytes) {
  void *made = nullptr;
  Status status = session->call(session->api().allocateHost, &made, bytes,
                                hostForAllDevices | hostForCode);
  if (status != success)
    return session->failure(status, "allocate memory of the host");
  return static_cast<std::byte *>(made);
}

void CudaDriver::releaseHost(std::byte *address) {
  (void)session->wait();
  (void)session->call(session->api().freeHost, static_cast<void *>(address));
}

Result<int64_t> CudaDriver::residentBlocks(gpu::Module &module,
                                           const std::string &symbol,
                                           int blockThreads,
                                           size_t sharedBytes) {
  Result<Function> function =
      static_cast<CudaModule &>(module).find(symbol, sharedBytes);
  if (!function)
    return function.error();
  int blocks = 0;
  Status status = session->call(session->api().residentBlocks, &blocks,
                                *function, blockThreads, sharedBytes);
  if (status != success)
    return session->failure(status, "ask how much of `" + symbol + "` fits");
  return int64_t(std::max(blocks, 1)) * gpuProperties.multiprocessors;
}

Result<> CudaDriver::upload(std::byte *to, const void *from, size_t bytes) {
  if (session->captureOfOthers())
    return session->failure(captureUnsupported, "receive data");
  session->counters().uploads += bytes > 0;
  return session->result(staging.upload(to, from, bytes), "receive data");
}

Result<> CudaDriver::download(void *to, const std::byte *from, size_t bytes) {
  if (bytes == 0)
    return {};
  if (session->captureOfOthers())
    return session->failure(captureUnsupported, "send data");
  ++session->counters().downloads;
  auto done = session->result(readback.download(to, from, bytes), "send data");
  return done ? session->doubts() : done;
}

/// CUDA does not take all pitches: none of 2 GiB, for one.
Status CudaDriver::copyAll(std::byte *to, const std::byte *from,
                           const CopyShape &shape) {
  const RowCopy all{
      .from = {.device = addressOf(from), .pitch = shape.fromPitch},
      .to = {.device = addressOf(to), .pitch = shape.toPitch},
      .bytes = shape.bytes,
      .rows = shape.rows};
  Status status = session->enqueue(session->api().copyRows, &all);
  if (status != invalidValue)
    return status;
  status = success;
  for (size_t row = 0; row < shape.rows && status == success; ++row)
    status = copyRow(to + row * shape.toPitch, from + row * shape.fromPitch,
                     shape.bytes);
  return status;
}

Result<> CudaDriver::copy(std::byte *to, const std::byte *from,
                          const CopyShape &shape) {
  if (shape.size() == 0)
    return {};
  ++session->counters().copies;
  Status status = shape.rows == 1 ? copyRow(to, from, shape.bytes)
                                  : copyAll(to, from, shape);
  return session->result(status, "copy data");
}

Result<> CudaDriver::fill(std::byte *to, size_t bytes, const void *pattern,
                          size_t patternBytes) {
  if (bytes == 0)
    return {};
  ++session->counters().fills;
  const Api &api = session->api();
  uint64_t value = 0;
  std::memcpy(&value, pattern, patternBytes);
  auto low = static_cast<uint32_t>(value);
  bool isRepeated = patternBytes == 8 && low == value >> 32;
  if (patternBytes == 8 && !isRepeated)
    return fillWords(to, bytes / 8, value);
  Status status =
      patternBytes == 1
          ? session->enqueue(api.fill8, addressOf(to),
                             static_cast<unsigned char>(value), bytes)
      : patternBytes == 2
          ? session->enqueue(api.fill16, addressOf(to),
                             static_cast<unsigned short>(value), bytes / 2)
          : session->enqueue(api.fill32, addressOf(to), low, bytes / 4);
  return session->result(status, "fill memory");
}

/// words: address, number of elements, value.
std::string fillCode() {
  return stridedKernel("fill", 3, {{"%to", 0}, {"%count", 1}, {"%with", 2}},
                       R"(
  shl.b64 %place, %i, 3;
  add.u64 %place, %to, %place;
  st.u64 [%place], %with;
)");
}

Result<std::shared_ptr<gpu::Module>> CudaDriver::ownCode() {
  std::lock_guard lock(ownCodeMutex);
  if (!ownCodeModule) {
    Result<std::shared_ptr<gpu::Module>> module = loadImage(fillCode());
    if (!module)
      return module;
    ownCodeModule = *module;
  }
  return ownCodeModule;
}

/// CUDA fills with at most 4 bytes.
Result<> CudaDriver::fillWords(std::byte *to, size_t words, uint64_t pattern) {
  constexpr size_t blockThreads = 256;
  Result<std::shared_ptr<gpu::Module>> module = ownCode();
  if (!module)
    return module.error();
  size_t resident = gpuProperties.residentThreads / blockThreads;
  size_t blocks = std::min((words + blockThreads - 1) / blockThreads, resident);
  gpu::Grid grid{static_cast<int64_t>(blocks), blockThreads};
  uint64_t arguments[] = {addressOf(to), words, pattern};
  return start(**module, "fill", grid, arguments, 0);
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
    if ((*module)->localBytes(kernel.symbol) >= kernel.ownBytes + fewBytes)
      spilling.push_back(std::move(kernel));
  if (spilling.empty())
    return std::shared_ptr<gpu::Module>(*module);
  auto other = assemble(roomier(image, spilling));
  bool isBetter =
      other && std::ranges::any_of(spilling, [&](const CrowdedKernel &kernel) {
        return (*other)->localBytes(kernel.symbol) <
               (*module)->localBytes(kernel.symbol);
      });
  return std::shared_ptr<gpu::Module>(isBetter ? *other : *module);
}

Result<std::shared_ptr<CudaModule>>
CudaDriver::assemble(const std::string &image) {
  char log[4096] = "";
  JitOption options[] = {JitOption::ErrorLog, JitOption::ErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Code code = nullptr;
  Status status = session->call(session->api().loadCode, &code,
                                static_cast<const void *>(image.c_str()), 2u,
                                options, values);
  if (status == success)
    return std::make_shared<CudaModule>(session, code);
  if (status == unsupportedPtx)
    return Failure{ErrorCode::NoDevice,
                   "the NVIDIA driver is too old for this GPU's code: " +
                       statusText(session->api(), status) + "; update it"};
  Failure failure = session->failure(status, "load code");
  if (*log)
    failure.text += std::string(": ") + log;
  return failure;
}

Result<> CudaDriver::prepare(gpu::Module &module, const std::string &symbol,
                             size_t sharedBytes) {
  auto function = static_cast<CudaModule &>(module).find(symbol, sharedBytes);
  return function ? Result<>() : function.error();
}

Result<> CudaDriver::launch(gpu::Module &module, const std::string &symbol,
                            gpu::Grid grid, std::span<const uint64_t> words,
                            size_t sharedBytes) {
  if (grid.blocks <= 0)
    return {};
  ++session->counters().launches;
  return start(module, symbol, grid, words, sharedBytes);
}

Result<> CudaDriver::start(gpu::Module &module, const std::string &symbol,
                           gpu::Grid grid, std::span<const uint64_t> words,
                           size_t sharedBytes) {
  Result<Function> function =
      static_cast<CudaModule &>(module).find(symbol, sharedBytes);
  if (!function)
    return function.error();
  if (grid.blocks > INT_MAX)
    return session->failure(invalidValue,
                            "run `" + symbol + "` in so many blocks");
  uint64_t none = 0;
  size_t bytes = std::max(words.size_bytes(), sizeof none);
  auto *data = words.empty() ? &none : const_cast<uint64_t *>(words.data());
  void *extra[] = {launchBuffer, data, launchBufferBytes, &bytes, launchEnd};
  Status status = session->withStream([&](Stream stream) {
    return session->call(session->api().launchKernel, *function,
                         static_cast<unsigned>(grid.blocks), 1u, 1u,
                         static_cast<unsigned>(grid.blockThreads), 1u, 1u,
                         static_cast<unsigned>(sharedBytes), stream,
                         static_cast<void **>(nullptr),
                         static_cast<void **>(extra));
  });
  return session->result(status, "start the kernel `" + symbol + "`");
}

Result<> CudaDriver::useStream(std::optional<void *> stream) {
  std::optional<Stream> next;
  if (stream)
    next = static_cast<Stream>(*stream);
  return session->result(session->useStream(next), "go on in another stream");
}

Result<bool> CudaDriver::letWait(void *stream) {
  Status status = session->letWait(static_cast<Stream>(stream));
  if (status != success)
    return session->failure(status, "let another stream wait");
  return true;
}

/// Code cannot be loaded while a thread captures.
Result<> CudaDriver::prepareOwnCode() {
  Result<std::shared_ptr<gpu::Module>> fills = ownCode();
  Result<> ready = fills ? prepare(**fills, "fill", 0) : fills.error();
  isOwnCodeReady = ready.ok();
  return ready;
}

Result<> CudaDriver::goTo(gpu::Place place) {
  auto go = [&](gpu::Place there) {
    return session->result(session->goTo(there), "work beside a graph");
  };
  if (place == gpu::Place::InGraph && !isOwnCodeReady) {
    Result<> ready = go(gpu::Place::Aside);
    if (ready)
      ready = prepareOwnCode();
    if (Result<> left = go(gpu::Place::Usual); !ready || !left)
      return ready ? left : ready;
  }
  return go(place);
}

Result<> CudaDriver::beginCapture() {
  if (Result<> ready = prepareOwnCode(); !ready)
    return ready;
  return session->result(session->beginCapture(), "start a graph");
}

Result<std::shared_ptr<gpu::Captured>> CudaDriver::endCapture() {
  const Api &api = session->api();
  auto captured =
      std::make_shared<CudaGraph>(session, session->counters().read());
  GraphHandle graph = nullptr;
  Status status = session->endCapture(graph);
  if (status == success)
    status = session->call(api.instantiate, &captured->run, graph, 0ull);
  if (graph)
    (void)session->call(api.destroyGraph, graph);
  if (status)
    return session->failure(status, "make a graph");
  return std::shared_ptr<gpu::Captured>(std::move(captured));
}

Result<> CudaDriver::replay(gpu::Captured &captured) {
  auto &graph = static_cast<CudaGraph &>(captured);
  session->counters().add(graph.statistics);
  return session->result(
      session->enqueue(session->api().launchGraph, graph.run),
      "replay a graph");
}

Result<> CudaDriver::synchronize() {
  auto done = session->result(session->wait(), "finish its work");
  return done ? session->doubts() : done;
}

/// Reads the properties of one GPU; remembers the first failure.
class Query {
public:
  Query(const Api &api, DeviceNumber device) : api(api), device(device) {}

  int attribute(DeviceAttribute which) {
    int value = 0;
    note(api.attribute(&value, which, device));
    return value;
  }
  std::string name() {
    char text[256] = "";
    note(api.deviceName(text, sizeof text, device));
    return text;
  }
  size_t memory() {
    size_t bytes = 0;
    note(api.deviceMemory(&bytes, device));
    return bytes;
  }
  Status failed = success;

private:
  void note(Status status) { failed = failed ? failed : status; }
  const Api &api;
  DeviceNumber device;
};

Result<gpu::Properties> queryProperties(const Api &api, DeviceNumber device) {
  Query query(api, device);
  int major = query.attribute(DeviceAttribute::CapabilityMajor);
  int minor = query.attribute(DeviceAttribute::CapabilityMinor);
  gpu::Properties properties;
  properties.name = query.name();
  properties.multiprocessors =
      query.attribute(DeviceAttribute::Multiprocessors);
  properties.residentThreads =
      properties.multiprocessors *
      query.attribute(DeviceAttribute::ThreadsOfMultiprocessor);
  properties.memory = query.memory();
  auto bytes = [&](DeviceAttribute which) {
    return static_cast<size_t>(query.attribute(which));
  };
  properties.sharedPerBlock = bytes(DeviceAttribute::LargestSharedOfBlock);
  properties.sharedPerMultiprocessor =
      bytes(DeviceAttribute::SharedOfMultiprocessor);
  properties.l2Bytes = bytes(DeviceAttribute::L2Bytes);
  properties.blocksProgress = true;
  properties.chip = "sm_" + std::to_string(10 * major + minor);
  properties.shape = nvidiaShape;
  if (query.failed)
    return Failure{ErrorCode::NoDevice,
                   "the GPU does not answer: " + statusText(api, query.failed)};
  if (major < oldestCapability)
    return Failure{ErrorCode::NoDevice,
                   properties.name + " is too old a GPU (" + properties.chip +
                       "; sm_70 is the oldest that will do); choose another "
                       "device"};
  return properties;
}

Result<DeviceNumber> findDevice(const Api &api, int ordinal) {
  int count = 0;
  DeviceNumber device = 0;
  Status status = api.deviceCount(&count);
  if (status == success && ordinal >= 0 && ordinal < count)
    status = api.device(&device, ordinal);
  else if (status == success)
    return Failure{ErrorCode::NoDevice,
                   "there is no NVIDIA GPU number " + std::to_string(ordinal) +
                       ": this machine has " + std::to_string(count) +
                       ", counted from 0"};
  if (status == success)
    return device;
  return Failure{ErrorCode::NoDevice,
                 "the NVIDIA driver lists no GPU: " + statusText(api, status)};
}

} // namespace

Result<std::shared_ptr<gpu::Driver>> openCuda(int ordinal) {
  Result<const Api *> api = loadApi();
  if (!api)
    return api.error();
  return openCuda(**api, ordinal);
}

Result<std::shared_ptr<gpu::Driver>> openCuda(const Api &api, int ordinal) {
  Result<DeviceNumber> device = findDevice(api, ordinal);
  if (!device)
    return device.error();
  Result<gpu::Properties> properties = queryProperties(api, *device);
  if (!properties)
    return properties.error();
  Result<std::shared_ptr<Session>> session = Session::open(api, *device);
  if (!session)
    return session.error();
  Result<std::unique_ptr<Memory>> memory =
      Memory::open(*session, *device, properties->memory);
  if (!memory)
    return memory.error();
  return std::shared_ptr<gpu::Driver>(
      std::make_shared<CudaDriver>(*properties, *session, std::move(*memory)));
}

} // namespace costate::runtime::cuda
