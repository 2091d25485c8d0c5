#include "runtime/metal/MetalDriver.h"

#include "base/MetalChip.h"
#include "runtime/Text.h"
#include "runtime/gpu/HostCapture.h"
#include "runtime/metal/Buffers.h"
#include "runtime/metal/Commands.h"
#include "runtime/metal/Library.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace costate::runtime::metal {
namespace {

constexpr size_t lockBytes = 256 * 4;          // Prelude.metal
constexpr size_t wordsBytes = size_t(1) << 20; // of launches that are queued
/// Metal does not say how many cores a GPU has, nor what they hold.
constexpr int guessedCores = 16, threadsOfCore = 1024;

/// Copies and fills are made by the host, once the GPU has nothing to do.
class MetalDriver final : public gpu::Driver {
public:
  static Result<std::shared_ptr<gpu::Driver>> open(const Api &api);
  ~MetalDriver() override {
    if (commands)
      (void)commands->wait();
  }

  const gpu::Properties &properties() const override { return info; }

  Result<std::byte *> allocate(size_t bytes) override {
    if (bytes == 0)
      return nullptr;
    auto buffer = buffers.allocate(bytes);
    if (!buffer)
      return buffer.error();
    return (*buffer)->onDevice;
  }
  void release(std::byte *address) override {
    (void)wait();
    buffers.release(address);
  }
  Result<> adopt(std::byte *, size_t) override {
    return Failure{ErrorCode::BadArgument,
                   "`metal` cannot use memory that others have allocated; "
                   "copy it into an array of the device"};
  }
  size_t freeBytes() override {
    size_t used = buffers.used();
    return info.memory - std::min(info.memory, used);
  }
  Result<std::byte *> allocateHost(size_t bytes) override {
    auto buffer = buffers.allocate(std::max<size_t>(bytes, 1));
    if (!buffer)
      return buffer.error();
    return (*buffer)->onHost;
  }
  std::byte *onDevice(std::byte *host) override {
    return buffers.deviceAddressOf(host);
  }
  void releaseHost(std::byte *address) override {
    (void)wait();
    buffers.releaseHost(address);
  }

  Result<> upload(std::byte *to, const void *from, size_t bytes) override;
  Result<> download(void *to, const std::byte *from, size_t bytes) override;
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override;
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override;

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    auto library = Library::load(api, device.get(), code);
    if (!library)
      return library.error();
    return std::shared_ptr<gpu::Module>(std::move(*library));
  }
  Result<> prepare(gpu::Module &, const std::string &, size_t) override {
    return {};
  }
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t sharedBytes) override;
  Result<int64_t> residentBlocks(gpu::Module &, const std::string &,
                                 int blockThreads, size_t) override {
    return std::max(info.residentThreads / blockThreads, 1);
  }
  Result<> synchronize() override {
    ++count.synchronizations;
    return wait();
  }

  Result<> useStream(std::optional<void *> stream) override {
    return stream ? noStreams("metal") : Result<>();
  }
  Result<> beginCapture() override {
    capture.begin();
    return {};
  }
  Result<std::shared_ptr<gpu::Captured>> endCapture() override {
    return capture.end();
  }
  Result<> replay(gpu::Captured &captured) override {
    return gpu::HostCapture::replay(captured);
  }
  Counters &counters() override { return count; }

private:
  explicit MetalDriver(const Api &api) : api(api) {}
  Result<> prepareMemory();
  void describe();
  Result<> wait() {
    std::lock_guard lock(mutex);
    return waitLocked();
  }
  Result<> waitLocked() {
    wordsUsed = 0;
    return commands->wait();
  }
  Result<> run(Library &library, const std::string &symbol, gpu::Grid grid,
               std::span<const uint64_t> words, size_t sharedBytes);

  const Api &api;
  Owned device, queue;
  Buffers buffers;
  std::unique_ptr<Commands> commands;
  const Buffer *locks = nullptr, *launchWords = nullptr;
  size_t wordsUsed = 0;
  std::mutex mutex; ///< of the commands, and of their words
  gpu::Properties info;
  Counters count;
  gpu::HostCapture capture;
};

Result<std::shared_ptr<gpu::Driver>> MetalDriver::open(const Api &api) {
  Pool pool(api);
  std::shared_ptr<MetalDriver> driver(new MetalDriver(api));
  driver->device = Owned(api, api.createDevice());
  if (!driver->device)
    return Failure{ErrorCode::NoDevice,
                   "Metal finds no GPU that it may use; choose another device"};
  driver->queue =
      Owned(api, send(api, driver->device.get(), "newCommandQueue"));
  if (!driver->queue)
    return Failure{ErrorCode::NoDevice,
                   "the GPU takes no commands of Metal; choose another device"};
  driver->commands = std::make_unique<Commands>(api, driver->queue.get());
  driver->describe();
  if (Result<> done = driver->prepareMemory(); !done)
    return done.error();
  return std::shared_ptr<gpu::Driver>(std::move(driver));
}

void MetalDriver::describe() {
  Object of = device.get();
  Object name = send(api, of, "name");
  info.name = send<const char *>(api, name, "UTF8String");
  info.chip = metalChip({});
  info.shape = metalShape;
  info.multiprocessors = guessedCores;
  info.residentThreads = guessedCores * threadsOfCore;
  info.memory = send<uint64_t>(api, of, "recommendedMaxWorkingSetSize");
  auto shared = send<unsigned long>(api, of, "maxThreadgroupMemoryLength");
  info.sharedPerMultiprocessor = shared;
  info.sharedPerBlock = shared - std::min<size_t>(shared, metalOwnBlockBytes);
  info.sortsApart = true; // no other kernel has code that sorts
}

Result<> MetalDriver::prepareMemory() {
  if (Result<> done = Buffers::open(buffers, api, device.get(), queue.get());
      !done)
    return done;
  auto first = buffers.allocate(lockBytes),
       second = buffers.allocate(wordsBytes);
  if (!first || !second)
    return (first ? second : first).error();
  locks = *first;
  launchWords = *second;
  return {};
}

Result<> MetalDriver::upload(std::byte *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return {};
  ++count.uploads;
  Result<> done = wait();
  std::memcpy(buffers.hostAddressOf(to), from, bytes);
  return done;
}

Result<> MetalDriver::download(void *to, const std::byte *from, size_t bytes) {
  if (bytes == 0)
    return {};
  ++count.downloads;
  ++count.synchronizations;
  Result<> done = wait();
  std::memcpy(to, buffers.hostAddressOf(from), bytes);
  return done;
}

Result<> MetalDriver::copy(std::byte *to, const std::byte *from,
                           const CopyShape &shape) {
  if (shape.size() == 0)
    return {};
  return capture.perform([=, this] {
    Result<> done = wait();
    copyRows(buffers.hostAddressOf(to), buffers.hostAddressOf(from), shape);
    ++count.copies;
    return done;
  });
}

Result<> MetalDriver::fill(std::byte *to, size_t bytes, const void *pattern,
                           size_t patternBytes) {
  if (bytes == 0)
    return {};
  std::vector<std::byte> element(patternBytes);
  std::memcpy(element.data(), pattern, patternBytes);
  return capture.perform([=, this] {
    Result<> done = wait();
    std::byte *at = buffers.hostAddressOf(to);
    for (size_t k = 0; k < bytes; k += patternBytes)
      std::memcpy(at + k, element.data(), patternBytes);
    ++count.fills;
    return done;
  });
}

Result<> MetalDriver::launch(gpu::Module &module, const std::string &symbol,
                             gpu::Grid grid, std::span<const uint64_t> words,
                             size_t sharedBytes) {
  auto &library = static_cast<Library &>(module);
  return capture.perform(
      [=, this, &library, all = std::vector(words.begin(), words.end())] {
        return run(library, symbol, grid, all, sharedBytes);
      });
}

Result<> MetalDriver::run(Library &library, const std::string &symbol,
                          gpu::Grid grid, std::span<const uint64_t> words,
                          size_t sharedBytes) {
  Result<Object> pipeline = library.pipeline(symbol, grid.blockThreads);
  if (!pipeline)
    return pipeline.error();
  std::lock_guard lock(mutex);
  if (words.size_bytes() > wordsBytes)
    return Failure{ErrorCode::Internal,
                   "`" + symbol + "` takes too many words"};
  if (wordsUsed + words.size_bytes() > wordsBytes)
    if (Result<> done = waitLocked(); !done)
      return done;
  std::memcpy(launchWords->onHost + wordsUsed, words.data(),
              words.size_bytes());
  commands->dispatch(
      {*pipeline, reinterpret_cast<uint64_t>(launchWords->onDevice) + wordsUsed,
       reinterpret_cast<uint64_t>(locks->onDevice),
       sharedBytes + library.blockBytes(), grid.blocks, grid.blockThreads});
  wordsUsed += words.size_bytes();
  ++count.launches;
  return {};
}

} // namespace

Result<std::shared_ptr<gpu::Driver>> openMetal(const Api *api) {
  if (api)
    return MetalDriver::open(*api);
  Result<const Api *> loaded = loadApi();
  if (!loaded)
    return loaded.error();
  return MetalDriver::open(**loaded);
}

} // namespace costate::runtime::metal
