#include "runtime/vulkan/VulkanDriver.h"

#include "runtime/MemoryBudget.h"
#include "runtime/Text.h"
#include "runtime/gpu/Staging.h"
#include "runtime/vulkan/Module.h"
#include "runtime/vulkan/Occupancy.h"
#include "runtime/vulkan/Probe.h"
#include "runtime/vulkan/Readback.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace costate::runtime::vulkan {
namespace {

/// What the code of the driver itself is assembled from.
constexpr unsigned char fillCode[] = {
#include "runtime/vulkan/Fill.inc"
};
constexpr int fillBlock = 256;

/// Uploads that need no memory of their own on the way.
constexpr size_t smallUpload = size_t(16) << 10;

uint64_t numberOf(const std::byte *address) {
  return reinterpret_cast<uint64_t>(address);
}

class Graph final : public gpu::Captured {
public:
  std::shared_ptr<Commands> commands;
  Statistics statistics; ///< of one replay
};

class VulkanDriver final : public gpu::Driver {
public:
  VulkanDriver(std::shared_ptr<Core> core, CodeStore store)
      : core(std::move(core)), store(std::move(store)), staging(this->core),
        readback(this->core) {}
  ~VulkanDriver() override { (void)core->stream->wait(); }

  const gpu::Properties &properties() const override {
    return core->session->adapter().properties;
  }
  Result<std::byte *> allocate(size_t bytes) override;
  void release(std::byte *address) override {
    core->device->release(numberOf(address));
  }
  size_t freeBytes() override;
  Result<> adopt(std::byte *, size_t) override {
    return Failure{ErrorCode::BadArgument,
                   "`vulkan` cannot use memory that others have allocated; "
                   "copy it into an array of the device"};
  }
  Result<std::byte *> allocateHost(size_t bytes) override;
  std::byte *onDevice(std::byte *host) override {
    return reinterpret_cast<std::byte *>(core->host->addressOf(host));
  }
  void releaseHost(std::byte *address) override;

  Result<> upload(std::byte *to, const void *from, size_t bytes) override;
  Result<> download(void *to, const std::byte *from, size_t bytes) override;
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override;
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override;

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override;
  /// Kernels are made for a size of block, which nobody knows yet.
  Result<> prepare(gpu::Module &, const std::string &, size_t) override {
    return {};
  }
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t sharedBytes) override;
  Result<int64_t> residentBlocks(gpu::Module &module, const std::string &symbol,
                                 int blockThreads, size_t sharedBytes) override;
  Result<> synchronize() override;

  Result<> useStream(std::optional<void *> stream) override {
    return stream ? noStreams("vulkan") : Result<>();
  }
  Result<> beginCapture() override;
  Result<std::shared_ptr<gpu::Captured>> endCapture() override;
  Result<> replay(gpu::Captured &captured) override;

  Counters &counters() override { return core->stream->counters(); }

private:
  Session &session() const { return *core->session; }
  Result<> notCaptured() const;
  Result<Place> find(const std::byte *address) const;
  Result<std::shared_ptr<Pipeline>> fillKernel();
  Status fillEnds(Commands &commands, Place to, size_t bytes, size_t head,
                  size_t tail, uint64_t pattern);
  Result<> fillWords(Place to, const std::byte *address, size_t bytes,
                     uint64_t pattern);

  std::shared_ptr<Core> core;
  CodeStore store;
  gpu::Staging<Slot> staging;
  Readback readback;
  std::mutex fillMutex;
  std::shared_ptr<Module> fillModule;
};

//===-- Memory ------------------------------------------------------------===//

Result<std::byte *> VulkanDriver::allocate(size_t bytes) {
  if (bytes == 0)
    return nullptr;
  if (session().isLost())
    return session().failure(VK_ERROR_DEVICE_LOST, "");
  Piece piece;
  Status status = core->device->allocate(bytes, piece);
  if (status == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    core->device->trim([this] { return core->stream->wait(); });
    status = core->device->allocate(bytes, piece);
  }
  if (status == VK_SUCCESS)
    return reinterpret_cast<std::byte *>(piece.address);
  bool isFull = status == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                status == VK_ERROR_OUT_OF_HOST_MEMORY;
  if (!isFull || session().isLost())
    return session().failure(status, "allocate " + bytesText(bytes));
  size_t most = largestBlock(session(), PoolKind::Device);
  std::string why = bytes > most
                        ? "the driver gives at most " + bytesText(most) +
                              " at a time; split the array, or release arrays"
                        : bytesText(freeBytes()) + " of the GPU's " +
                              bytesText(properties().memory) +
                              " are free; release arrays, or end other "
                              "programs that use this GPU";
  return Failure{ErrorCode::OutOfMemory,
                 bytesText(bytes) + " do not fit: " + why};
}

/// A driver for the CPU takes memory of the machine.
size_t VulkanDriver::freeBytes() {
  size_t free = core->device->freeBytes();
  if (!session().adapter().isCpu)
    return free;
  Result<size_t> limit = defaultMemoryLimit();
  return limit ? std::min(free, *limit) : free;
}

Result<std::byte *> VulkanDriver::allocateHost(size_t bytes) {
  Piece piece;
  if (Status status = core->host->allocate(bytes, piece))
    return session().failure(status, "allocate memory of the host");
  return piece.host;
}

void VulkanDriver::releaseHost(std::byte *address) {
  (void)core->stream->wait();
  core->host->release(core->host->addressOf(address));
}

Result<Place> VulkanDriver::find(const std::byte *address) const {
  Place place = core->placeOf(address);
  if (place.buffer)
    return place;
  return Failure{ErrorCode::Internal,
                 "an address that is not in memory of the device `vulkan`"};
}

/// What a thread that captures cannot do.
Result<> VulkanDriver::notCaptured() const {
  if (!core->stream->isCapturing())
    return {};
  return Failure{ErrorCode::CannotCapture,
                 "copies from and to the host cannot be part of a graph"};
}

Result<> VulkanDriver::upload(std::byte *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return {};
  if (Result<> fine = notCaptured(); !fine)
    return fine;
  Result<Place> place = find(to);
  if (!place)
    return place.error();
  ++counters().uploads;
  Status status = bytes > smallUpload
                      ? staging.upload(to, from, bytes)
                      : core->stream->record([&](Commands &commands) {
                          return commands.write(*place, from, bytes);
                        });
  return session().result(status, "receive data");
}

Result<> VulkanDriver::download(void *to, const std::byte *from, size_t bytes) {
  if (bytes == 0)
    return {};
  if (Result<> fine = notCaptured(); !fine)
    return fine;
  if (Result<Place> place = find(from); !place)
    return place.error();
  ++counters().downloads;
  Result<> done =
      session().result(readback.download(to, from, bytes), "send data");
  return done ? session().defects() : done;
}

Result<> VulkanDriver::copy(std::byte *to, const std::byte *from,
                            const CopyShape &shape) {
  if (shape.size() == 0)
    return {};
  Result<Place> source = find(from), target = find(to);
  if (!source || !target)
    return source ? target.error() : source.error();
  ++counters().copies;
  Status status = core->stream->record([&](Commands &commands) {
    commands.copy(*target, *source, shape);
    return VK_SUCCESS;
  });
  return session().result(status, "copy data");
}

//===-- Fills -------------------------------------------------------------===//

/// The pattern as it goes on after `bytes`.
uint64_t rotated(uint64_t pattern, size_t bytes) {
  size_t bits = 8 * (bytes % 8);
  return bits ? pattern >> bits | pattern << (64 - bits) : pattern;
}

uint64_t repeated(const void *pattern, size_t patternBytes) {
  std::byte bytes[8];
  for (size_t at = 0; at < sizeof bytes; at += patternBytes)
    std::memcpy(bytes + at, pattern, patternBytes);
  uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

Result<std::shared_ptr<Pipeline>> VulkanDriver::fillKernel() {
  int threads = std::min(fillBlock, properties().blockThreads);
  std::lock_guard lock(fillMutex);
  if (!fillModule) {
    gpu::DeviceCode code;
    code.image.assign(std::begin(fillCode), std::end(fillCode));
    auto module = Module::load(core->session, core->written, {}, code);
    if (!module)
      return module.error();
    fillModule = *module;
  }
  return fillModule->find("fill", threads, 0);
}

/// The bytes in front of the first whole word and after the last one.
Status VulkanDriver::fillEnds(Commands &commands, Place to, size_t bytes,
                              size_t head, size_t tail, uint64_t pattern) {
  if (head)
    if (Status status = commands.write(to, &pattern, head))
      return status;
  if (tail == 0)
    return VK_SUCCESS;
  size_t at = bytes - tail;
  uint64_t rest = rotated(pattern, at);
  return commands.write({to.buffer, to.offset + at}, &rest, tail);
}

Result<> VulkanDriver::fillWords(Place to, const std::byte *address,
                                 size_t bytes, uint64_t pattern) {
  bool isShort = static_cast<uint32_t>(pattern) == pattern >> 32;
  size_t unit = isShort ? 4 : 8;
  size_t head = std::min(bytes, (unit - numberOf(address) % unit) % unit);
  size_t words = (bytes - head) / unit, tail = (bytes - head) % unit;
  uint64_t word = rotated(pattern, head);
  std::shared_ptr<Pipeline> kernel;
  if (words && !isShort) {
    auto made = fillKernel();
    if (!made)
      return made.error();
    kernel = *made;
  }
  int threads = std::min(fillBlock, properties().blockThreads);
  int64_t most = std::max(1, properties().residentThreads / threads);
  uint64_t arguments[] = {numberOf(address) + head, words, word};
  Status status = core->stream->record([&](Commands &commands) {
    if (Status status = fillEnds(commands, to, bytes, head, tail, pattern))
      return status;
    if (words && isShort)
      commands.fill({to.buffer, to.offset + head}, words * unit,
                    static_cast<uint32_t>(word));
    if (!kernel)
      return VK_SUCCESS;
    auto blocks = static_cast<int64_t>(words) / threads + 1;
    return commands.launch(kernel, std::min(blocks, most), arguments);
  });
  return session().result(status, "fill memory");
}

Result<> VulkanDriver::fill(std::byte *to, size_t bytes, const void *pattern,
                            size_t patternBytes) {
  if (bytes == 0)
    return {};
  Result<Place> place = find(to);
  if (!place)
    return place.error();
  ++counters().fills;
  return fillWords(*place, to, bytes, repeated(pattern, patternBytes));
}

//===-- Code --------------------------------------------------------------===//

Result<std::shared_ptr<gpu::Module>>
VulkanDriver::load(const gpu::DeviceCode &code) {
  if (session().isLost())
    return session().failure(VK_ERROR_DEVICE_LOST, "");
  auto module = Module::load(core->session, core->written, store, code);
  if (!module)
    return module.error();
  return std::shared_ptr<gpu::Module>(*module);
}

Result<> VulkanDriver::launch(gpu::Module &module, const std::string &symbol,
                              gpu::Grid grid, std::span<const uint64_t> words,
                              size_t sharedBytes) {
  if (grid.blocks <= 0)
    return {};
  auto kernel = static_cast<Module &>(module).find(symbol, grid.blockThreads,
                                                   sharedBytes);
  if (!kernel)
    return kernel.error();
  if (grid.blocks > properties().mostBlocks)
    return session().failure(VK_ERROR_TOO_MANY_OBJECTS,
                             "run `" + symbol + "` in " +
                                 std::to_string(grid.blocks) + " blocks");
  ++counters().launches;
  Status status = core->stream->record([&](Commands &commands) {
    return commands.launch(*kernel, grid.blocks, words);
  });
  return session().result(status, "start the kernel `" + symbol + "`");
}

Result<int64_t> VulkanDriver::residentBlocks(gpu::Module &module,
                                             const std::string &symbol,
                                             int blockThreads,
                                             size_t sharedBytes) {
  auto kernel =
      static_cast<Module &>(module).find(symbol, blockThreads, sharedBytes);
  if (!kernel)
    return kernel.error();
  return vulkan::residentBlocks(properties(), (*kernel)->registers,
                                blockThreads, sharedBytes);
}

Result<> VulkanDriver::synchronize() {
  ++counters().synchronizations;
  Result<> done = session().result(core->stream->wait(), "finish its work");
  return done ? session().defects() : done;
}

//===-- Graphs ------------------------------------------------------------===//

Result<> VulkanDriver::beginCapture() {
  return session().result(core->stream->beginCapture(), "start a graph");
}

Result<std::shared_ptr<gpu::Captured>> VulkanDriver::endCapture() {
  auto graph = std::make_shared<Graph>();
  graph->statistics = counters().read();
  if (Status status = core->stream->endCapture(graph->commands))
    return session().failure(status, "make a graph");
  return std::shared_ptr<gpu::Captured>(std::move(graph));
}

Result<> VulkanDriver::replay(gpu::Captured &captured) {
  auto &graph = static_cast<Graph &>(captured);
  counters().add(graph.statistics);
  Status status = core->stream->record([&](Commands &commands) {
    commands.run(graph.commands);
    return VK_SUCCESS;
  });
  return session().result(status, "replay a graph");
}

} // namespace

/// What the environment says that code shall do without.
static Result<> leaveOut(VulkanFeatures &features) {
  auto refused = [](const char *variable, const char *value,
                    const std::string &what) {
    return Failure{ErrorCode::NoDevice,
                   std::string(variable) + "=`" + value + "` is no " + what};
  };
  if (const char *name = std::getenv("COSTATE_VULKAN_PROFILE")) {
    auto left = limitedTo(features, name);
    if (!left) {
      std::string names;
      for (const VulkanProfile &profile : vulkanProfiles)
        names += (names.empty() ? "`" : "`, `") + std::string(profile.name);
      return refused("COSTATE_VULKAN_PROFILE", name,
                     "profile; there are " + names + "`, and with `;f64`");
    }
    features = *left;
  }
  if (const char *unwanted = std::getenv("COSTATE_VULKAN_WITHOUT")) {
    auto left = without(features, unwanted);
    if (!left)
      return refused("COSTATE_VULKAN_WITHOUT", unwanted,
                     "list, with semicolons, of features in `" +
                         vulkanChip(features) + "`");
    features = *left;
  }
  return {};
}

Result<std::shared_ptr<gpu::Driver>> openVulkan(const std::string &which,
                                                Options options) {
  auto instance = Instance::open(options.validate);
  if (!instance)
    return instance.error();
  auto adapter = chooseAdapter(**instance, which);
  if (!adapter)
    return adapter.error();
  if (options.isGpu && adapter->isCpu)
    return Failure{ErrorCode::NoDevice, "Vulkan has no GPU on this machine: `" +
                                            adapter->properties.name +
                                            "` is the CPU"};
  if (options.changeAdapter)
    options.changeAdapter(*adapter);
  auto session = Session::open(*instance, std::move(*adapter), options.change);
  if (!session)
    return session.error();
  auto core = Core::open(*session);
  if (!core)
    return core.error();
  auto driver = std::make_shared<VulkanDriver>(*core, std::move(options.store));
  if (options.change) // not this device
    return std::shared_ptr<gpu::Driver>(driver);
  VulkanFeatures features = (*session)->adapter().features;
  if (Result<> done = probe(*driver, (*session)->adapter().driver, features);
      !done)
    return done.error();
  if (Result<> done = leaveOut(features); !done)
    return done.error();
  (*session)->setFeatures(features);
  if (features.endsLongLoops) {
    Piece cell;
    constexpr size_t bytes = LoopWatch::cells * sizeof(uint32_t);
    if (Status status = (*core)->host->allocate(bytes, cell))
      return (*session)->failure(status, "allocate memory of the host");
    std::memset(cell.host, 0, bytes);
    (*session)->loops().start(reinterpret_cast<uint32_t *>(cell.host),
                              cell.address);
  }
  return std::shared_ptr<gpu::Driver>(driver);
}

} // namespace costate::runtime::vulkan
