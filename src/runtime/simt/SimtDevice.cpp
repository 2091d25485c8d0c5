#include "runtime/simt/SimtDevice.h"

#include "runtime/cpu/CpuDevice.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/simt/Callbacks.h"

#include <cstring>
#include <new>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace costate::runtime::simt {
namespace {

struct Code final : gpu::Module {
  std::map<std::string, void *> addresses;
};

/// The stream is empty whenever a call returns.
class SimtDriver final : public gpu::Driver {
public:
  explicit SimtDriver(int threads)
      : info{"simt", threads, 1024, size_t(1) << 34}, arena(threads) {}

  const gpu::Properties &properties() const override { return info; }

  Result<std::byte *> allocate(size_t bytes) override {
    auto *address = static_cast<std::byte *>(
        ::operator new(bytes, std::align_val_t(256), std::nothrow));
    if (!address)
      return Failure{ErrorCode::OutOfMemory, "the system has no memory left"};
    return address;
  }
  void release(std::byte *address) override {
    ::operator delete(address, std::align_val_t(256));
  }
  size_t freeBytes() override { return info.memory; }

  Result<> upload(std::byte *to, const void *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++count.uploads;
    return {};
  }
  Result<> download(void *to, const std::byte *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++count.downloads;
    ++count.synchronizations;
    return {};
  }
  Result<> copy(std::byte *to, const std::byte *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++count.copies;
    return {};
  }
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override {
    for (size_t at = 0; at < bytes; at += patternBytes)
      std::memcpy(to + at, pattern, patternBytes);
    ++count.fills;
    return {};
  }

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    auto module = std::make_shared<Code>();
    module->addresses = code.addresses;
    return std::shared_ptr<gpu::Module>(module);
  }

  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words) override {
    auto function = reinterpret_cast<DeviceEntry>(
        static_cast<Code &>(module).addresses.at(symbol));
    int64_t threads = grid.blocks * grid.blockThreads;
    auto block = [&](int64_t number) {
      for (int k = 0; k < grid.blockThreads; ++k)
        runThread(function, words.data(), number * grid.blockThreads + k,
                  threads);
    };
    arena.execute([&] { tbb::parallel_for(int64_t(0), grid.blocks, block); });
    ++count.launches;
    return {};
  }
  Result<> synchronize() override {
    ++count.synchronizations;
    return {};
  }
  Counters &counters() override { return count; }

private:
  gpu::Properties info;
  Counters count;
  tbb::task_arena arena;
};

} // namespace
} // namespace costate::runtime::simt

namespace costate::runtime {

Result<std::shared_ptr<Device>> openSimt(int threads, size_t memoryLimit) {
  auto cpu = openCpu(threads, memoryLimit); // knows what the machine has
  if (!cpu)
    return cpu.error();
  const DeviceInfo &host = (*cpu)->info();
  return gpu::openGpu("simt", "simt",
                      std::make_shared<simt::SimtDriver>(host.threads),
                      host.memoryLimit);
}

} // namespace costate::runtime
