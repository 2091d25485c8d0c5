#include "runtime/gpu/GpuDevice.h"

#include "runtime/gpu/Launch.h"

namespace costate::runtime::gpu {
namespace {

class GpuDevice final : public Device {
public:
  GpuDevice(DeviceInfo info, std::shared_ptr<Driver> driver)
      : deviceInfo(std::move(info)),
        engine(std::move(driver), deviceInfo.memoryLimit) {}

  const DeviceInfo &info() const override { return deviceInfo; }

  Result<Buffer> allocate(size_t bytes) override {
    if (bytes == 0)
      return Buffer{};
    Result<std::byte *> address = engine.memory.allocate(bytes);
    if (!address) {
      dropScratch();
      address = engine.memory.allocate(bytes);
    }
    if (!address)
      return address.error();
    static constexpr uint8_t zero = 0;
    if (auto done = engine.driver().fill(*address, bytes, &zero, 1); !done)
      return done.error();
    return Buffer{*address, bytes};
  }
  void release(Buffer buffer) override {
    if (buffer.address)
      engine.memory.release(buffer.address, buffer.bytes);
  }
  MemoryUse memory() const override {
    const MemoryBudget &budget = engine.memory.budget;
    return {budget.current(), budget.peak()};
  }
  void resetPeak() override { engine.memory.budget.resetPeak(); }

  Result<> upload(Buffer to, const void *from) override {
    return to.bytes ? engine.driver().upload(to.address, from, to.bytes)
                    : Result<>();
  }
  Result<> download(void *to, Buffer from) override {
    return from.bytes ? engine.driver().download(to, from.address, from.bytes)
                      : Result<>();
  }
  Result<> copy(Buffer to, Buffer from) override {
    return to.bytes ? engine.driver().copy(to.address, from.address, to.bytes)
                    : Result<>();
  }
  Result<> exchange(Buffer one, Buffer other) override;
  Result<> fill(Buffer buffer, const void *pattern,
                size_t patternBytes) override {
    return buffer.bytes ? engine.driver().fill(buffer.address, buffer.bytes,
                                               pattern, patternBytes)
                        : Result<>();
  }

  Result<LaunchReport> launch(const LaunchRequest &request) override {
    return gpu::launch(engine, request);
  }
  Result<> synchronize() override { return engine.driver().synchronize(); }

  Statistics statistics() const override {
    return engine.memory.driver->counters().read();
  }
  void resetStatistics() override { engine.driver().counters().reset(); }

private:
  /// Tapes can be made again.
  void dropScratch() {
    std::lock_guard lock(engine.mutex);
    engine.tapes.clear();
    engine.serialTape.clear();
    engine.partials.clear();
  }

  DeviceInfo deviceInfo;
  Engine engine;
};

Result<> GpuDevice::exchange(Buffer one, Buffer other) {
  if (one.bytes == 0)
    return {};
  Result<std::byte *> between = engine.memory.allocate(one.bytes);
  if (!between)
    return between.error();
  Driver &driver = engine.driver();
  Result<> done = driver.copy(*between, one.address, one.bytes);
  if (done)
    done = driver.copy(one.address, other.address, one.bytes);
  if (done)
    done = driver.copy(other.address, *between, one.bytes);
  engine.memory.release(*between, one.bytes);
  return done;
}

} // namespace

Result<std::shared_ptr<Device>> openGpu(std::string name, std::string target,
                                        std::shared_ptr<Driver> driver,
                                        size_t memoryLimit) {
  if (memoryLimit == 0)
    memoryLimit = driver->freeBytes() / 16 * 15;
  DeviceInfo info{std::move(name), driver->properties().residentThreads,
                  memoryLimit, target, target == "simt"};
  return std::shared_ptr<Device>(
      std::make_shared<GpuDevice>(std::move(info), std::move(driver)));
}

} // namespace costate::runtime::gpu
